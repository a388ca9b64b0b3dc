"""Base class of wrapper optimizers: optimizers that train with several workers by another optimizer."""

import copy
import dataclasses
import inspect
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from oxigrad import _core
from oxigrad._core import RuleError, StateError
from oxigrad._typing import Array, Config, R, T, Tree
from oxigrad.distributed.communicator import Communicator, current
from oxigrad.distributed.fields import Field, restored, written
from oxigrad.distributed.messages.reports.clock import Clock
from oxigrad.distributed.messages.reports.table import Display, WorkerReport, WorkerReports
from oxigrad.distributed.messages.reports.timeline import Timeline, packed, unpacked
from oxigrad.distributed.methods.configuration import Agreed
from oxigrad.distributed.methods.whole_steps import WholeSteps
from oxigrad.distributed.parameters import Parameters
from oxigrad.optim.losses import minimized_with_aux
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.settings.config import REGISTRY
from oxigrad.optim.settings.hyperparameters import DeclaredAttributes
from oxigrad.schedules.base import Schedule
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.state import state_dict as states
from oxigrad.stepping.state.state_dict import Report

_REQUIRED = object()


def take_step(optimizer: Optimizer, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
    """One step of an optimizer that may be a wrapper or `SAM`, by a gradient; see `Optimizer.update` and `Optimizer.minimize`."""
    if isinstance(optimizer, Wrapper):
        return optimizer._step(model, grads, keep_root=keep_root)
    with optimizer._lock.stepping():
        return optimizer._stepper.update(model, grads, keep_root=keep_root)


def delegated(path: str) -> Any:
    """An attribute that is that of another object, by the dotted names that lead to it, as in "optimizer.seed"."""
    return property(operator.attrgetter(path))


class Wrapper(Agreed, WholeSteps, DeclaredAttributes, Optimizer):
    """Base class of wrapper optimizers. A wrapper is itself an optimizer around ``optimizer``, whose attributes and slots it shows.

    Args:
        optimizer: any optimizer that takes a step by a gradient: a chain, a partition, one with groups or options of
            precision, `SAM`, or another wrapper.
        communicator: that of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default that of the communicator.

    Every wrapper is used in the same way: `start` before the first step, which `update` and `minimize` do otherwise; steps; `reform`
    after the loss of workers; and `leave`, which the end of a ``with`` block calls:

    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> with distributed.LargeBatch(optim.SGD(0.5)) as opt:
    ...     model = opt.start({"w": np.ones(2)})
    ...     model = opt.update(model, {"w": np.ones(2)})
    >>> model
    {'w': array([0.5, 0.5])}

    A block that ends by an exception leaves at once, without a word to the others and without waiting for them.

    A subclass overrides `_step`, and lists the attributes of its own state in ``_fields``. Raises `TypeError` for an optimizer that
    evaluates the loss itself, as L-BFGS does, or reads it, as `MoMo` does.
    """

    communicator: Communicator

    #: The arguments of a configuration with their defaults, `_REQUIRED` for those that it always has: read off the constructor.
    _arguments: ClassVar[Mapping[str, Any]] = {}
    #: Arguments that are not among them, and whether a configuration has all others, rather than those that may be given by position.
    _unstated: ClassVar[frozenset[str]] = frozenset({"self", "optimizer", "outer", "communicator", "timeout"})
    _states_defaults: ClassVar[bool] = False
    #: The attributes that are the wrapper's own state, beside that of the optimizer.
    _fields: ClassVar[tuple[Field, ...]] = ()
    #: Names of attributes that a copy does not have, and `_set_apart` makes.
    _transient: ClassVar[frozenset[str]] = frozenset()
    _fixed: ClassVar[frozenset[str]] = Optimizer._fixed | {"communicator"}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls is not cls._plain_class:
            return
        parameters: dict[str, inspect.Parameter] = {}
        for each in cls.__mro__:
            if issubclass(each, Wrapper) and "__init__" in vars(each):
                parameters = {**parameters, **inspect.signature(vars(each)["__init__"]).parameters, **parameters}
        cls._arguments = {
            name: p.default if p.kind is p.KEYWORD_ONLY and not cls._states_defaults else _REQUIRED
            for name, p in parameters.items()
            if name not in cls._unstated and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        cls._fixed |= cls._arguments.keys() - cls._checks.keys()
        REGISTRY[cls.__name__] = cls

    def __init__(
        self, optimizer: Optimizer, *, communicator: Communicator | None = None, timeout: float | None = None
    ) -> None:
        takes_gradients = isinstance(optimizer, Optimizer) and type(optimizer).minimize is Optimizer.minimize
        if not (takes_gradients or isinstance(optimizer, Wrapper)):
            raise TypeError(
                f"{type(self).__name__}: found {optimizer!r}, expected an optimizer that takes a step by a gradient"
            )
        if any("loss" in kind._rule.supplied for kind in optimizer._classes() if hasattr(kind, "_rule")):
            raise TypeError(
                f"{type(self).__name__}: found {optimizer!r}, which reads the loss: workers have different ones"
            )
        super().__init__()
        self.optimizer = optimizer
        self.communicator = current() if communicator is None else communicator
        self.timeout = timeout
        self._parameters = Parameters(self)
        self._report = WorkerReport(self.communicator.rank)
        self._clock, self._display = Clock(), Display()

    # --- for subclasses ------------------------------------------------------------------------------------------------

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """Takes one step, as `update`; with ``keep_root``, a model that would have to be replaced is refused."""
        raise NotImplementedError

    def _own_config(self) -> Config:
        """The arguments of the wrapper besides the optimizer and the communicator, as plain data, without those at their defaults."""
        values = {
            name: getattr(self, name) for name, default in self._arguments.items() if getattr(self, name) != default
        }
        return {name: each.get_config() if isinstance(each, Schedule) else each for name, each in values.items()}

    def _set_apart(self) -> None:
        """Makes the attributes that belong to a connection, as of a worker that has none."""

    def _abandon(self) -> None:
        """Ends what serves the training in this process, without waiting for the other workers."""

    @property
    def _seconds(self) -> float:
        """The number of seconds that a wait takes at most."""
        return self.communicator.timeout if self.timeout is None else self.timeout

    def _reform(self) -> None:
        """Continues with the survivors after a `WorkerLost`: all of them call it."""
        vars(self)["communicator"] = self.communicator.reform(timeout=self._seconds)
        self._report.rank = self.communicator.rank

    # --- membership ----------------------------------------------------------------------------------------------------

    def start(self, model: T) -> T:
        """Takes part in the training: returns the model with the parameters that all workers start from, in place as `update` does."""
        raise NotImplementedError

    def reform(self, model: T) -> T:
        """Continues with the survivors of a loss, and the workers that wait to join: all of them call it, those that join `start`."""
        raise NotImplementedError

    def leave(self, model: Tree = None) -> Any:
        """Leaves the training in good order, so that the others go on without this worker; returns ``model``.

        A worker that has left, or has not started, may call it too.
        """
        return model

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.leave()
        else:
            self._abandon()  # the others are told by the loss of this worker

    def report(self, *, gather: bool = False, live: bool = False, batch_size: int | None = None) -> WorkerReports:
        """A table of the workers that this one knows of, at least itself, which is a list of `WorkerReport`.

        Args:
            gather: whether the workers tell each other their counts and times: all of them call it then, at the same place among their
                collective operations, and each gets the table of all. Raises an error of communication. Otherwise nothing is sent.
            live: whether rank 0 prints the table on the standard error stream, on a terminal in place of the one before.
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
            packed_reports = self.communicator.all_gather_v(self._own_report().packed(), timeout=self._seconds)
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
        """Begins to keep the last ``limit`` time spans of this worker, for `timeline`; 0 ends it. Those before are forgotten."""
        self._clock.record(limit)

    def timeline(self, *, gather: bool = True) -> Timeline:
        """When workers computed, stepped and waited since `record_timeline`: ``timeline().plot()`` is a picture of it.

        With ``gather``, all workers call it, as `report`, and each gets the spans of all; otherwise those of this worker. Times are of the
        clocks of the workers' machines, which may differ.
        """
        spans = packed(self._clock.spans())
        if not gather:
            return Timeline({self.communicator.rank: unpacked(spans)})
        messages = self.communicator.all_gather_v(spans, timeout=self._seconds)
        return Timeline(dict(enumerate(map(unpacked, messages))))

    # --- steps ---------------------------------------------------------------------------------------------------------

    def update(self, model: T, grads: Tree | None = None, *, loss: Array | None = None) -> T:
        """See `Optimizer.update`. Raises an error of communication as well, and `RuleError` around `SAM`. No rule in a wrapper reads the ``loss``."""
        self._check_takes_gradients()
        with self._lock.stepping(), self._clock.step():
            return self._parameters.update(model, lambda model: self._whole(model, lambda: self._step(model, grads)))

    def _check_takes_gradients(self) -> None:
        """See `Optimizer._check_takes_gradients`."""
        self.optimizer._check_takes_gradients()

    def _gradients(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """See `Optimizer._gradients`."""
        return self.optimizer._gradients(loss, model, record=record)

    def scale_loss(self, loss: Array) -> Array:
        """See `Optimizer.scale_loss`."""
        return self.optimizer.scale_loss(loss)

    def minimize(
        self,
        loss: Callable[[T], R],
        model: T,
        *,
        record: bool = False,
        in_backward: bool = False,
        has_aux: bool = False,
    ) -> R:
        """See `Optimizer.minimize`. Raises an error of communication as well, and `ValueError` with ``in_backward``."""
        if has_aux:
            return minimized_with_aux(self.minimize, loss, model, record=record, in_backward=in_backward)
        if in_backward:
            self._refuse_in_backward(record=record)
        value, grads = self._gradients_of_step(loss, model, record=record)
        with self._lock.stepping(), self._clock.step():
            self._whole(model, lambda: self._step(model, grads, keep_root=True))
        return value

    def init(self, params: Tree, **hyperparameters: Any) -> dict[str, Any]:
        """Raises `RuleError`: a step that communicates is not a pure function."""
        raise RuleError(f"{type(self).__name__} communicates in its steps: use update or minimize, not init and apply")

    def apply(
        self, params: Tree, grads: Tree, state: dict[str, Any], **hyperparameters: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Raises `RuleError`: a step that communicates is not a pure function."""
        raise RuleError(f"{type(self).__name__} communicates in its steps: use update or minimize, not init and apply")

    # --- state ---------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return f"{type(self).__name__}({self.optimizer.name})"

    def get_config(self) -> Config:
        """See `Optimizer.get_config`. The communicator is not part of it."""
        return {"optimizer": type(self).__name__, "parts": [self.optimizer.get_config()], **self._own_config()}

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """See `Optimizer.state_dict`: the state of the optimizer, and of the wrapper."""
        with self._lock.reading():
            return self._whole_state(copy=copy)

    def _whole_state(self, *, copy: bool, for_others: bool = False) -> dict[str, Any]:
        """The state of the optimizer and of the wrapper, within a step too; ``for_others`` is what a worker that joins receives."""
        plain, arrays = written(self, self._fields, for_others=for_others)
        return self._with_own_state(self._inner_state(copy=copy, for_others=for_others), plain, arrays, copy=copy)

    def _inner_state(self, *, copy: bool, for_others: bool) -> dict[str, Any]:
        """The state of the optimizer inside."""
        return self.optimizer.state_dict(copy=copy)

    def _load_inner(self, state: Mapping[str, Any], *, strict: bool) -> Report:
        """Loads the state of the optimizer inside."""
        return self.optimizer.load_state_dict(state, strict)

    def _with_own_state(
        self, state: dict[str, Any], plain: dict[str, Any], arrays: dict[str, dict[str, Any]], *, copy: bool
    ) -> dict[str, Any]:
        of_wrapper = states.copied_slots(arrays) if copy else arrays
        slots = state["slots"]
        return {
            **state,
            "optimizer": self.name,
            "config": states.config_of(self),
            "remembered": {**state["remembered"], type(self).__name__: {**plain, "parameters": [*slots]}},
            "slots": {path: {**slots.get(path, {}), **of_wrapper.get(path, {})} for path in {**slots, **of_wrapper}},
        }

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Report:
        """See `Optimizer.load_state_dict`: the state of the optimizer, and of the wrapper."""
        with self._lock:
            return self._load(states.checked(state), strict=strict)

    def _load(self, state: Mapping[str, Any], *, strict: bool) -> Report:
        plain, arrays = self._own_parts(state)
        missing = [f"{type(self).__name__}: its state"] if plain is None else []
        values, mismatched = ({}, []) if plain is None else self._restored(plain, arrays)
        if strict:
            Report(missing=missing, mismatched=mismatched).check()
        report = self._load_inner(self._without_own(state), strict=strict)
        report.missing += missing
        report.mismatched += mismatched
        vars(self).update(values)
        return report

    def _own_parts(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, dict[str, Any]]]:
        """The wrapper's own state in a whole one: plain data, None where it has none, and arrays by key path and name."""
        names = self._own_slots()
        arrays = {path: {n: a for n, a in slots.items() if n in names} for path, slots in state["slots"].items()}
        return state["remembered"].get(type(self).__name__), {path: slots for path, slots in arrays.items() if slots}

    def _own_slots(self) -> frozenset[str]:
        """The names of the arrays of the wrapper's own state."""
        return frozenset(name for field in self._fields for name in field.slots(self))

    def _restored(
        self, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Any], list[str]]:
        """The values of attributes in a state, and its differences from the one expected, as lines; nothing is changed."""
        try:
            return restored(self, self._fields, plain, arrays), []
        except StateError as error:
            return {}, [f"{type(self).__name__}: {error}"]

    def _without_own(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The state of the optimizer in one of the wrapper."""
        names = self._own_slots()
        slots = {path: {n: a for n, a in of_path.items() if n not in names} for path, of_path in state["slots"].items()}
        # Parameters of an optimizer without slots, which has an empty dict for each once it has taken a step.
        has_begun = any(state[name] for name in ("step", "micro", "skipped"))
        default = [*slots] if has_begun else [path for path, of_path in state["slots"].items() if not of_path]
        paths = (state["remembered"].get(type(self).__name__) or {}).get("parameters", default)
        return {
            **state,
            "optimizer": self.optimizer.name if state["optimizer"] == self.name else state["optimizer"],
            "config": None,
            "remembered": {name: values for name, values in state["remembered"].items() if name != type(self).__name__},
            "slots": {
                path: slots.get(path, {})
                for path in {**slots, **dict.fromkeys(paths)}
                if slots.get(path) or path in paths
            },
        }

    def save(self, file: str | os.PathLike[str]) -> None:
        """See `Optimizer.save`."""
        with self._lock.reading():
            states.write(file, self._whole_state(copy=False))

    # --- as the optimizer that it wraps --------------------------------------------------------------------------------

    _stepper = delegated("optimizer._stepper")
    _precision = delegated("optimizer._precision")
    _version = delegated("optimizer._version")
    _resume = delegated("optimizer._resume")
    _observe = delegated("optimizer._observe")
    _gradient_parts = delegated("optimizer._gradient_parts")
    _norm_parts = delegated("optimizer._norm_parts")
    _versions = delegated("optimizer._versions")
    _check_patterns = delegated("optimizer._check_patterns")
    _parts = delegated("optimizer._parts")

    def _group_for(self, owner: Optimizer, path: str, array: Array) -> ParameterGroup | None:
        return self.optimizer._group_for(self.optimizer if owner is self else owner, path, array)

    def _classes(self) -> Iterator[type]:
        yield self._plain_class
        yield from self.optimizer._classes()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = object.__new__(type(self))
        with self._lock.reading():
            shared = {"communicator": self.communicator}
            attributes = {
                n: v for n, v in vars(self).items() if n not in ("_lock", "_parameters", *shared, *self._transient)
            }
            vars(copied).update(copy.deepcopy(attributes, memo), **shared, _lock=_core.Lock())
        vars(copied)["_parameters"] = Parameters(copied)
        copied._set_apart()
        return copied

    def _seal(self) -> None:
        """See `Sealed._seal`. The public attributes of the optimizer become attributes of the wrapper, unless it has such itself."""
        self._declare(sorted(name for name in {*dir(self.optimizer)} - {*dir(self)} if not name.startswith("_")))
        super()._seal()

    def _get_attribute(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def _set_attribute(self, name: str, value: Any) -> None:
        setattr(self.optimizer, name, value)

    def _unknown(self, name: str) -> AttributeError:
        """See `Sealed._unknown`."""
        is_own = name.startswith("_") or "_sealed" not in vars(self)
        return super()._unknown(name) if is_own else self.optimizer._unknown(name)

    if not TYPE_CHECKING:  # to type checkers, attributes are those that are declared

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self._attributes and name not in self._fixed:
                self._set_attribute(name, value)  # which validates it
            else:
                super().__setattr__(name, value)

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._own_config().items())
        return f"{type(self).__name__}({self.optimizer!r}{shown})"
