"""Base class of wrapper optimizers: optimizers that train with several workers by another optimizer."""

import contextlib
import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from oxigrad import NonFiniteError, StructureError
from oxigrad._typing import Config, T, Tree
from oxigrad.distributed.communicator import PRESENT, SECONDS, Communicator, SingleWorker, current
from oxigrad.distributed.coordination.enrolment import Enrolment
from oxigrad.distributed.decisions.training import EXCHANGE, exchanging
from oxigrad.distributed.errors import CommunicationError, WorkerLost, of_all
from oxigrad.distributed.fields import Field, restored, written
from oxigrad.distributed.messages.agreement import SHARDS
from oxigrad.distributed.messages.configuration import arguments_of, settings_of
from oxigrad.distributed.messages.reports.clock import Clock
from oxigrad.distributed.messages.reports.table import Display, WorkerReport, WorkerReports
from oxigrad.distributed.messages.reports.timeline import Timeline, packed, unpacked
from oxigrad.distributed.parameters import WorkerParameters
from oxigrad.extend import Worker, WrappingOptimizer
from oxigrad.optim import SAM, Optimizer

_Result = TypeVar("_Result")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Wrapper(WrappingOptimizer):
    """Base class of wrapper optimizers.

    A wrapper is itself an optimizer around ``optimizer``, whose attributes and slots it shows.

    Args:
        optimizer: any optimizer that takes a step by a gradient: a chain, a partition, one with groups or options of
            precision, `SAM`, or another wrapper.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    Every wrapper is used in the same way: `start` before the first step, which `update` and `minimize` do otherwise;
    steps; `reform` after the loss of workers; and `leave`, which the end of a ``with`` block calls:

    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> with distributed.LargeBatch(optim.SGD(0.5)) as opt:
    ...     model = opt.start({"w": np.ones(2)})
    ...     model = opt.update(model, {"w": np.ones(2)})
    >>> model
    {'w': array([0.5, 0.5])}

    A block that ends by an exception leaves at once, without a word to the others and without waiting for them.

    A subclass overrides `_step`, and lists the attributes of its state in ``_fields``. Raises `TypeError` for an
    optimizer that evaluates the loss itself, as L-BFGS does, or reads it, as `MoMo` does.
    """

    communicator: Communicator
    _parameters: WorkerParameters

    _unstated: ClassVar[frozenset[str]] = frozenset({"outer", "communicator", "timeout"})
    #: The attributes that are the wrapper's own state, beside that of the optimizer.
    _fields: ClassVar[tuple[Field, ...]] = ()
    _shared: ClassVar[frozenset[str]] = frozenset({"communicator"})
    _fixed: ClassVar[frozenset[str]] = _shared
    _handled_options: ClassVar[frozenset[str]] = frozenset({"accumulate", "loss_scale"})  # all: no step looks at them
    _transient: ClassVar[frozenset[str]] = frozenset({"_enrolment"})
    _parameters_class = WorkerParameters
    #: Whether a step writes parameters beside the optimizer's step, so that an interrupt of it cannot be undone by
    #: `_with_step`.
    _has_own_writes: Any = False

    def __init__(
        self, optimizer: Optimizer, *, communicator: Communicator | None = None, timeout: float | None = None
    ) -> None:
        super().__init__(optimizer)
        self.communicator = current() if communicator is None else communicator
        self._is_alone = communicator is None and isinstance(self.communicator, SingleWorker)
        self._claimed = -1  # the generation that it has claimed its objects in
        self.timeout: float | None = None if timeout is None else SECONDS.check("timeout", timeout)
        self._report = WorkerReport(self.communicator.rank)
        self._clock, self._display = Clock(), Display()

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def _refuse_inside(self, *kinds: type) -> None:
        """Raises `TypeError` where its optimizer is, or has inside, one of these kinds."""
        inner: Any = self.optimizer
        while inner is not None:
            if isinstance(inner, kinds):
                label = type(self).__name__
                raise TypeError(f"{label}: found {type(inner).__name__} inside, which cannot be combined with {label}")
            inner = inner.optimizer if isinstance(inner, (Wrapper, SAM)) else None

    def _within_step(self, model: Tree, step: Callable[[], Tree]) -> Tree:
        """See `WrappingOptimizer._within_step`: of its training, counted by the clock, and whole."""
        if self._claimed != self.communicator.generation:
            self._claim(model)
        token = EXCHANGE.set(self._enrolment)
        try:
            with self._clock:
                return step() if self.communicator.size > 1 else self._whole(model, step)
        finally:
            EXCHANGE.reset(token)

    def _check_usable(self) -> None:
        """See `WrappingOptimizer._check_usable`: the work of its worker goes on, in this thread."""
        worker, here = self.communicator, PRESENT.communicator
        if worker.trainings.has_ended:
            raise CommunicationError(
                f"{self.name}: the work of its worker has ended: expected steps within the function that run calls"
            )
        if here is None or here is worker or here.rank == worker.rank:
            return
        if (worker.job, worker.generation) == (here.job, here.generation):
            raise StructureError(
                f"the optimizer: the workers of rank {worker.rank} and {here.rank} share one object: expected one for "
                "each worker, made by the function that run calls"
            )

    def _claim(self, model: Tree) -> None:
        """Checks that no other worker of this process trains by the same objects."""
        if self._is_alone and current().size > 1:
            raise StructureError(
                f"{self.name}: it trains alone, as it was made where no worker runs: expected a wrapper for each "
                "worker, made by the function that run calls; nothing was changed"
            )
        self.communicator.claim("the optimizer", self.optimizer)
        for path, array in self._parameters.writable(model).items():
            self.communicator.claim(path or "the root", array)
        self._claimed = self.communicator.generation

    def _own_state(self, *, for_others: bool) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """See `WrappingOptimizer._own_state`."""
        return written(self, self._fields, for_others=for_others)

    def _own_slots(self) -> frozenset[str]:
        """See `WrappingOptimizer._own_slots`."""
        return frozenset(name for field in self._fields for name in field.slots(self))

    def _own_values(self, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """See `WrappingOptimizer._own_values`."""
        return restored(self, self._fields, plain, arrays)

    def _set_apart(self) -> None:
        """Makes the attributes that belong to a connection, as of a worker that has none, and its part in trainings."""
        self._enrolment = Enrolment(self.communicator.trainings)

    def _abandon(self) -> None:
        """Ends what serves the training in this process, without waiting for the other workers."""

    @property
    def _seconds(self) -> float:
        """The number of seconds that a wait takes at most."""
        return self.communicator.timeout if self.timeout is None else self.timeout

    def _reform(self) -> None:
        """Continues with the survivors after a `WorkerLost`: all of them call it."""
        vars(self)["communicator"] = self.communicator.reform(timeout=self.timeout)
        self._report.rank = self.communicator.rank

    def _continued_by(self, end: Callable[[], T], join: Callable[[T], _Result]) -> _Result:
        """The result of ``join`` in the next generation, of what ``end`` returns, which ends this one."""
        self.communicator.alive()  # which raises `Excluded`
        while True:
            former = end()
            self._reform()
            with contextlib.suppress(WorkerLost):  # another worker was lost, or waits to join
                return join(former)

    def _end_training(self) -> None:
        """Notes that the end of this worker's work is no error of the others: it has left the training."""
        self.communicator.trainings.completed = None

    @contextlib.contextmanager
    def _gathering(self, call: str) -> Iterator[None]:
        """A context whose collective operations belong to this training, for a ``call`` of all workers."""
        with of_all(call), exchanging(self._enrolment):
            yield

    # --- what workers have alike --------------------------------------------------------------------------------------

    def _agreed_config(self) -> Config:
        """The name and the arguments that cannot change, as plain data, which all workers have alike."""
        return {"optimizer": self.name, **arguments_of(self, (n for n in self._arguments if n in self._fixed))}

    def _agreed_settings(self) -> list[Any]:
        """The hyperparameters of the wrapper and of its optimizer, as plain data: they may change, on all workers.

        In the first generation, before workers join, the shards of data that each worker has made are among them.
        """
        arguments = arguments_of(self, (n for n in self._arguments if n not in self._fixed))
        shards = {SHARDS: [*self.communicator.trainings.shards]} if self.communicator.generation == 0 else {}
        return [arguments, settings_of(self.optimizer), shards]

    def _joining_config(self) -> list[Any]:
        """As `_agreed_config`, of a worker that asks to join.

        With hyperparameters, unless they may have changed since the start.
        """
        return [self._agreed_config(), *(self._agreed_settings() if self.communicator.generation == 0 else ())]

    # --- steps that an interrupt leaves whole -------------------------------------------------------------------------

    def _whole(self, model: Tree, step: Callable[[], _Result]) -> _Result:
        """The result of a step on a model.

        No interrupt divides that of a single worker, whose parameters are updated in host memory.

        With others, it waits for them, which an interrupt ends.
        """
        if not (isinstance(self.communicator, SingleWorker) and self._has_own_writes):
            return step()
        plan = self._parameters.plan(model)
        # Other libraries have settings of threads, as the precision of JAX, which their arrays are made by.
        return step() if plan.replaced or plan.on_devices else undivided(step)

    def _with_step(
        self,
        step: Callable[[], _Result],
        values: Mapping[str, Any],
        state: Mapping[str, Any] = _NOTHING,
        *,
        accepted: bool,
        is_repeated: bool = False,
    ) -> _Result:
        """The result of the optimizer's step: attributes of the wrapper get new values, and the gradient is counted.

        Where an error or an interrupt comes before the step, all is as before it; but with other workers, which take
        the step, an interrupt is raised after it. Where the optimizer refuses the step by ``nonfinite="raise"``,
        ``values`` hold, as on all workers, and ``state`` is as before.
        """
        attributes, stepper, report = vars(self), self._stepper, self._report
        before = attributes.copy()
        progress, counts = stepper.progress, (report.accepted, report.dropped)
        try:
            attributes.update(values, **state)
            report.count(accepted=accepted)
            return step()
        except BaseException as error:
            if isinstance(error, NonFiniteError):
                attributes.update({name: before[name] for name in state})
            elif stepper.progress == progress:
                attributes.update({name: before[name] for name in (*values, *state)})
                report.accepted, report.dropped = counts
                if self.communicator.size > 1 and not (is_repeated or isinstance(error, Exception)):
                    self._with_step(step, values, state, accepted=accepted, is_repeated=True)
            raise

    # --- membership ---------------------------------------------------------------------------------------------------

    def start(self, model: T) -> T:
        """Takes part in the training: returns the model with the common first parameters, in place as `update` does."""
        raise NotImplementedError

    def reform(self, model: T) -> T:
        """Continues with survivors of a loss and workers that wait to join. All call it; new ones call `start`."""
        raise NotImplementedError

    def leave(self, model: Tree = None) -> Any:
        """Leaves the training in good order, so that the others go on without this worker; returns ``model``.

        A worker that has left, or has not started, may call it too.
        """
        self._end_training()
        return model

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.leave()
        else:
            self._end_training()
            self._abandon()  # the others are told by the loss of this worker

    def report(self, *, gather: bool = False, live: bool = False, batch_size: int | None = None) -> WorkerReports:
        """A table of the workers that this one knows of, at least itself, which is a list of `WorkerReport`.

        Args:
            gather: whether the workers tell each other their counts and times: all of them call it then, at the same
                place among their collective operations, and each gets the table of all. Raises an error of
                communication. Otherwise nothing is sent.
            live: whether rank 0 prints the table on the standard error stream, on a terminal in place of the one
                before.
            batch_size: the samples that a worker uses in an update, for a column of samples per second.

        >>> import numpy as np
        >>> from oxigrad import distributed, optim
        >>> def worker(comm):
        ...     opt = distributed.DataParallel(optim.SGD(0.1))
        ...     model = opt.update({"w": np.ones(2)}, {"w": np.ones(2)})
        ...     return opt.report(gather=True)
        >>> [
        ...     (each["rank"], each["step"], each["dropped"])
        ...     for each in distributed.run(worker, workers=2)[0].rows
        ... ]
        [(0, 1, 0), (1, 1, 0)]
        """
        reports = self._known_reports()
        if gather:
            with self._gathering("report(gather=True)"):
                packed_reports = self.communicator.all_gather_v(self._own_report().packed(), timeout=self.timeout)
            reports = [*map(WorkerReport.unpacked, packed_reports)]
        table = WorkerReports(reports, batch_size)
        if live and self.communicator.rank == 0:
            self._display.show(repr(table))
        return table

    def _own_report(self) -> WorkerReport:
        counts, communicator, clock = self._report, self.communicator, self._clock
        return dataclasses.replace(
            counts,
            stale=Counter(counts.stale),
            bytes_sent=communicator.bytes_sent,
            refused=Counter(communicator.refused),
            step=int(self.step),
            rate=clock.rate,
            waited=clock.waited,
        )

    def _known_reports(self) -> list[WorkerReport]:
        """The reports of the workers that this one knows of."""
        return [self._own_report()]

    def record_timeline(self, limit: int = 10_000) -> None:
        """Begins to keep the last ``limit`` time spans of this worker, for `timeline`; 0 ends it.

        Those before are forgotten.
        """
        self._clock.record(limit)

    def timeline(self, *, gather: bool = True) -> Timeline:
        """When workers computed, stepped and waited since `record_timeline`: ``timeline().plot()`` is a picture of it.

        With ``gather``, all workers call it, as `report`, and each gets the spans of all workers. Otherwise it has the
        spans of this worker. Times come from the clocks of the workers' machines, which may differ.
        """
        spans = packed(self._clock.spans())
        if not gather:
            return Timeline({self.communicator.rank: unpacked(spans)})
        with self._gathering("timeline()"):
            messages = self.communicator.all_gather_v(spans, timeout=self.timeout)
        return Timeline(dict(enumerate(map(unpacked, messages))))


def undivided(work: Callable[[], _Result]) -> _Result:
    """The result of work that no interrupt divides: another thread runs it, since only the main one handles signals."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[_Result] = []
    Worker().run(lambda: results.append(work()))
    return results[0]
