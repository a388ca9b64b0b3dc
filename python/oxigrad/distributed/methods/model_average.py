"""Model averaging: workers train on their own, and average their parameters every so many steps."""

import copy
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from oxigrad import NonFiniteError, StateError
from oxigrad._typing import Config, Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.decisions.averaging import Averaging, Merge, Send, strided
from oxigrad.distributed.decisions.training import exchanging
from oxigrad.distributed.engines.background import Running
from oxigrad.distributed.errors import CommunicationError, WorkerLost
from oxigrad.distributed.fields import FACTOR, WHOLE, Arrays, Plain, check_flags
from oxigrad.distributed.messages.configuration import options_set, settings_of, values_of_functions
from oxigrad.distributed.messages.message import Layout
from oxigrad.distributed.methods import exchange as exchanges
from oxigrad.distributed.methods.average_state import AverageState
from oxigrad.distributed.parameters import check_unchanged, promoted
from oxigrad.distributed.wrapper import Wrapper
from oxigrad.extend import COUNT, OPTIONS, Domain, dtype_name, to_host
from oxigrad.optim import SAM, SGD, Interval, Optimizer, Quantized, RuleOptimizer

_SHARE, _PRECISION = Domain((None,), Interval("[0, 1]")), Domain(exchanges.EXCHANGES)


def _slot_names(average_slots: Any) -> bool | tuple[str, ...]:
    """The argument of this name: a flag, or names of slots."""
    if isinstance(average_slots, bool):
        return average_slots
    names: tuple[Any, ...] = tuple(average_slots) if isinstance(average_slots, (list, tuple)) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"average_slots is {average_slots!r}: expected True, False or a tuple of names of slots")
    return names


class ModelAverage(AverageState):
    """Model averaging: workers train alone by ``optimizer``, and average parameters every ``interval`` updates.

    The plain average sets parameters to their mean over the workers, as TensorFlow 1's ModelAverageOptimizer does. An
    ``outer`` optimizer takes a step instead, from the parameters of the last average (the anchor), by their mean
    difference ``anchor - parameters`` as its gradient. ``outer=SGD(0.7, momentum=0.9, nesterov=True)`` with
    ``interval=500`` is DiLoCo (Douillard et al. 2023, arXiv:2311.08105). Block momentum, BMUF (Chen and Huo 2016), is
    the outer optimizer ``SGD(block_learning_rate, momentum=block_momentum, nesterov=nesterov)``: both forms of that
    paper are equal to it.

    Streaming DiLoCo (Douillard et al. 2025, arXiv:2501.18512): ``fragments``, each of every ``fragments``-th parameter,
    are averaged at different steps. The mean of an exchange is merged ``delay`` updates later, as ``alpha * parameters
    + (1 - alpha) * average``; meanwhile the exchange runs in a thread (`Communicator.begin`), and no update waits for
    it.

    Args:
        optimizer: the optimizer of each worker.
        interval: updates between two averages of the same parameter; each call of `update` counts.
        outer: the outer optimizer, without options; None takes the plain average.
        block_momentum, block_learning_rate, nesterov: values of block momentum, instead of ``outer``.
        fragments: the number of fragments, at most ``interval`` and the number of parameters.
        delay: updates from an exchange to its merge, less than ``interval``.
        alpha: the share of a worker's own parameters in a merge; by default 0.5 with a delay, as in the paper, and 0
            without.
        exchange: the precision of what is sent: "full" (of the parameters, float32 for half precision), "float16" or
            "8bit", for the differences from the anchor (see `oxigrad.distributed.methods.exchange.mean`).
        average_slots: which slots of ``optimizer`` are averaged with the parameters: False (none: each worker keeps its
            own), True (all of floating-point dtype), or a tuple of names. It excludes ``delay``.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    Every gradient is used by its own worker; `report` counts all as accepted. Where a worker is lost, the others
    average without it. An update that raises another error of communication takes the local step. The next update makes
    the exchange. The same holds for an update that raises `NonFiniteError`, but without the local step. Raises
    `ValueError` or `TypeError` for arguments that exclude each other.

    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> def worker(comm):
    ...     opt, model = distributed.ModelAverage(optim.SGD(1.0), interval=2), {"w": np.zeros(1)}
    ...     for _ in range(2):
    ...         model = opt.update(model, {"w": np.array([1.0 + comm.rank])})
    ...     return float(model["w"][0])
    >>> distributed.run(worker, workers=3)
    [-4.0, -4.0, -4.0]
    """

    interval: int
    fragments: int
    delay: int
    block_momentum: float
    block_learning_rate: float
    nesterov: bool
    alpha: float | None
    exchange: str
    outer: Optimizer | None
    average_slots: bool | tuple[str, ...]

    _are_replicas = False
    _has_own_writes = True
    _fixed: ClassVar[frozenset[str]] = frozenset({"outer"})

    @staticmethod
    def _of_config(optimizer: Optimizer, outer: RuleOptimizer | None = None, **values: Any) -> "ModelAverage":
        """See `WrappingOptimizer`: the parts of a configuration are the optimizer, and the outer one."""
        return ModelAverage(optimizer, outer=outer, **values)

    def __init__(
        self,
        optimizer: Optimizer,
        interval: int = 100,
        *,
        outer: Optimizer | None = None,
        block_momentum: float = 0.0,
        block_learning_rate: float = 1.0,
        nesterov: bool = True,
        fragments: int = 1,
        delay: int = 0,
        alpha: float | None = None,
        exchange: str = "full",
        average_slots: bool | tuple[str, ...] = False,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self.interval, self.fragments = COUNT.check("interval", interval), COUNT.check("fragments", fragments)
        self.delay = WHOLE.check("delay", delay)
        self._machine = Averaging(self.interval, self.fragments, self.delay)
        self.block_momentum = FACTOR.check("block_momentum", block_momentum)
        self.block_learning_rate = FACTOR.check("block_learning_rate", block_learning_rate)
        (self.nesterov,) = check_flags(nesterov=nesterov)
        self.alpha, self.exchange = _SHARE.check("alpha", alpha), _PRECISION.check("exchange", exchange)
        self.outer, self.average_slots = outer, _slot_names(average_slots)
        self._check_arguments()
        self._share = (0.5 if delay else 0.0) if alpha is None else float(alpha)
        outer_of_fragment = self._outer_optimizer()
        self._outer = [copy.deepcopy(outer_of_fragment) for _ in range(fragments)] if outer_of_fragment else []
        self._anchors: dict[str, np.ndarray] = {}
        self._sent: dict[str, np.ndarray] = {}
        self._pending: list[Send | Merge] = []
        # Exchanges that run in a thread by fragment, and what this worker has given to them.
        self._exchanges: dict[int, Running] = {}
        self._contributed: dict[int, dict[str, np.ndarray]] = {}

    def _check_arguments(self) -> None:
        if self.outer is not None:
            if not isinstance(self.outer, Optimizer) or isinstance(self.outer, (Wrapper, SAM)):
                raise TypeError(
                    f"outer is {self.outer!r}: expected an optimizer that takes a step by a gradient, or None"
                )
            if type(self.outer).minimize is not Optimizer.minimize:
                raise TypeError(
                    f"outer is {self.outer!r}, which evaluates the loss: expected one that takes a gradient"
                )
            if options := options_set(self.outer, OPTIONS.keys() - {"groups", "dtype"}):
                raise ValueError(f"outer is {self.outer!r}: {', '.join(options)} cannot be set on an outer optimizer")
            if self.block_momentum or self.block_learning_rate != 1.0:
                raise ValueError("outer and block momentum are mutually exclusive: set the momentum of outer")
        if self.average_slots and self.delay:
            raise ValueError("average_slots and delay are mutually exclusive: slots are averaged without a delay")
        if self.average_slots and str(kind := self.optimizer.slot_dtype).endswith("bit"):
            raise ValueError(f"average_slots and slot_dtype={kind!r} are mutually exclusive: codes cannot be averaged")

    def _outer_optimizer(self) -> Optimizer | None:
        """See `AverageState._outer_optimizer`."""
        if self.outer is None and self.exchange == "full" and not self.block_momentum and self.block_learning_rate == 1:
            return None
        return self.outer or SGD(self.block_learning_rate, momentum=self.block_momentum, nesterov=self.nesterov)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """See `Wrapper._step`."""
        model, late = self._entered(model)
        if late:
            self._report.count(accepted=False)
            if not self._pending:  # The others take this step as well.
                self._pending += self._machine.stepped()
            return self._exchange(model)
        if self._outer:
            check_unchanged(self._parameters.specs(model), self._anchors, "ModelAverage with anchors")
        try:
            model = self.take_step(self.optimizer, model, grads, keep_root=keep_root)
        except NonFiniteError:
            # The others count the update, and wait for this worker in what is due.
            self._pending += self._machine.stepped()
            raise
        self._report.count(accepted=True)
        self._pending += self._machine.stepped()
        return self._exchange(model)

    def average(self, model: Tree) -> Tree:
        """Averages all parameters now, as after an interval without a delay, and returns the model.

        All workers call it.

        At the end of training, it gives all workers the same parameters.
        """
        with self._lock.stepping(), exchanging(self._enrolment):
            model, _ = self._entered(model)
            share, self._share = self._share, 0.0
            self._drain()
            self._machine.sent.clear()  # an exchange that is not merged yet is replaced by this one
            try:
                self._pending += [kind(p) for p in range(self.fragments) for kind in (Send, Merge)]
                return self._exchange(model)
            finally:
                self._share = share

    def _exchange(self, model: Tree) -> Tree:
        """Does what is due; a lost worker is left out."""
        while self._pending:
            action = self._pending[0]
            try:
                if isinstance(action, Send):
                    self._send(model, action.fragment)
                else:
                    self._wait_for(action.fragment)
                    model = self._merge(model, action.fragment)
            except WorkerLost as error:
                model = self._continued(model, error)
                continue
            del self._pending[0]
        self.communicator.trainings.completed = int(self.step)
        return model

    def _continued(self, model: Tree, error: WorkerLost) -> Tree:
        """The model with the survivors after a `WorkerLost`.

        What they have completed without this worker is taken from them.
        """
        if self.delay:
            return self._recover(model, error)[0]
        if (missed := self._missed(model, error)) is None:
            return model
        # The others have completed this communication alone: every further one needs this worker.
        averaged, theirs, slots = missed
        action = self._pending.pop(0)
        paths = self._paths(self._parameters.read(model), action.fragment)
        if isinstance(action, Send) and all(path in theirs["_sent"] for path in paths):
            self._sent |= {path: theirs["_sent"][path] for path in paths}  # they wait in the exchange of its slots
            return model
        if isinstance(action, Send):
            self._pending.remove(Merge(action.fragment))
        for path in paths:
            self._sent.pop(path, None)
            for name in self._chosen_slots(path) if self.average_slots else ():
                _assign_slot(self.optimizer.slots[path], name, np.asarray(to_host(slots[path][name])))
        if self._outer:
            self._anchors |= {path: theirs["_anchors"][path] for path in paths}
            self._outer[action.fragment] = theirs["_outer"][action.fragment]
        return self._parameters.write(model, {path: averaged[path] for path in paths})

    def _wait_for(self, fragment: int) -> None:
        """Waits for the exchange of a fragment that runs in a thread.

        Where it fails, all that run are put back in front.
        """
        if fragment not in self._exchanges:
            return
        try:
            self._collect(fragment)
        except CommunicationError:
            self._drain()
            raise

    def _collect(self, fragment: int) -> None:
        """Waits for the means of a fragment. Raises the error of its exchange."""
        self._sent |= self._exchanges[fragment].result()
        del self._exchanges[fragment], self._contributed[fragment]
        self._done += 1

    def _drain(self) -> None:
        """Waits for all running exchanges: takes their means, or puts failed ones back in front, to be repeated."""
        repeated = []
        for fragment in list(self._exchanges):
            try:
                self._collect(fragment)
            except CommunicationError:
                del self._exchanges[fragment]
                repeated.append(Send(fragment))
        self._pending[:0] = repeated

    def _reform(self) -> None:
        """See `Wrapper._reform`."""
        self._drain()
        super()._reform()

    def _paths(self, values: Mapping[str, Any], fragment: int) -> list[str]:
        return strided(values, fragment, self.fragments)

    def _send(self, model: Tree, fragment: int) -> None:
        """Takes the mean over the workers of a fragment's parameters, or of their differences from the anchors."""
        if (contribution := self._contributed.pop(fragment, None)) is None:  # else it is given again
            values = self._parameters.wide(model)
            contribution = {path: values[path] for path in self._paths(values, fragment)}
            if self._outer:
                contribution = {path: self._anchors[path] - value for path, value in contribution.items()}
        if not self.delay:
            self._sent |= self._mean(contribution, self.exchange)
            self._done += 1
            return
        copies = self._contributed[fragment] = {path: array.copy() for path, array in contribution.items()}
        exchange = functools.partial(self._mean, copies, self.exchange)
        self._exchanges[fragment] = self.communicator.begin(exchange)

    def _merge(self, model: Tree, fragment: int) -> Tree:
        """Merges the mean of a fragment into the parameters."""
        values = self._parameters.read(model)
        paths = self._paths(values, fragment)
        check_unchanged(
            paths, [path for path in paths if path in self._sent], "ModelAverage, from an exchange to its merge,"
        )
        slots = self._averaged_slots(paths) if self.average_slots else {}
        new = {path: self._sent[path] for path in paths}
        if self._outer:
            new = self._outer_step(fragment, new)
            self._anchors |= new
        merged = {}
        for path, average in new.items():
            mixed = average
            if self._share:
                share = average.dtype.type(self._share)
                mixed = share * promoted(values[path]) + (1 - share) * average
            merged[path] = mixed.astype(values[path].dtype, copy=False)
        for path in paths:
            del self._sent[path]
        for (path, name), value in slots.items():
            _assign_slot(self.optimizer.slots[path], name, value)
        return self._parameters.write(model, merged)

    def _outer_step(self, fragment: int, differences: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The anchors after a step of the outer optimizer."""
        anchors = {path: self._anchors[path].copy() for path in differences}
        return self._outer[fragment].update(anchors, dict(differences))

    def _averaged_slots(self, paths: list[str]) -> dict[tuple[str, str], np.ndarray]:
        """The means of the slots of a fragment, by key path and name."""
        slots = {}
        for path in paths:
            for name in self._chosen_slots(path):
                slots[path, name] = promoted(np.asarray(to_host(self.optimizer.slots[path][name])))
        means = self._mean({f"{name} of {path}": array for (path, name), array in slots.items()}, "full")
        self._done += 1
        return dict(zip(slots, means.values(), strict=True))

    def _chosen_slots(self, path: str) -> list[str]:
        """The names of the slots of a parameter that are averaged.

        Raises `StateError` for one that it does not have.
        """
        slots = self.optimizer.slots.get(path, {})
        chosen = self.average_slots if isinstance(self.average_slots, tuple) else [*slots]
        if missing := [name for name in chosen if name not in slots]:
            raise StateError(f"{path}: average_slots has {missing[0]!r}: expected one of {', '.join(slots) or 'none'}")
        return [
            name
            for name in chosen
            if not isinstance(slots[name], Quantized) and dtype_name(slots[name].dtype).startswith(("float", "bfloat"))
        ]

    def _mean(self, arrays: Mapping[str, np.ndarray], exchange: str) -> dict[str, np.ndarray]:
        layout = Layout(arrays)
        buffers = layout.pack(arrays, out=layout.empty())
        exchanges.mean(self.communicator, buffers, exchange, timeout=self.timeout)
        return layout.views(buffers)

    # --- state --------------------------------------------------------------------------------------------------------

    def _begin(self, model: Tree) -> None:
        """See `CollectiveWrapper._begin`."""
        values = self._parameters.wide(model)
        if self.fragments > len(values):
            raise ValueError(f"fragments is {self.fragments}: expected at most {len(values)}, the number of parameters")
        if self._outer and not self._anchors:
            self._anchors = {path: np.array(value) for path, value in values.items()}

    def get_config(self) -> Config:
        """See `Wrapper.get_config`."""
        config = super().get_config()
        return {**config, "parts": [*config["parts"], self.outer.get_config()]} if self.outer else config

    def _agreed_config(self) -> Config:
        """See `Wrapper._agreed_config`."""
        return {**super()._agreed_config(), "outer": self.outer and settings_of(self.outer)}

    def _agreed_settings(self) -> list[Any]:
        """See `Wrapper._agreed_settings`. By other outer rates the anchors of the workers would part."""
        return [*super()._agreed_settings(), self.outer and {"outer": values_of_functions(self.outer, 0)}]

    def _whole_state(self, *, copy: bool, for_others: bool = False) -> dict[str, Any]:
        """See `Wrapper._whole_state`. Waits for the exchanges that run."""
        self._drain()
        return super()._whole_state(copy=copy, for_others=for_others)

    def _restored(self, plain: Plain, arrays: Arrays) -> tuple[dict[str, Any], list[str]]:
        """See `Wrapper._restored`. The exchanges that run belong to the former state."""
        values, mismatched = super()._restored(plain, arrays)
        return values | ({"_exchanges": {}, "_contributed": {}} if values else {}), mismatched

    def leave(self, model: Tree = None) -> Any:
        """See `Wrapper.leave`. Waits for the exchanges that run, which the others need."""
        with self._lock.stepping():
            self._drain()
        return super().leave(model)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        self._drain()
        return super().__deepcopy__(memo)


def _assign_slot(slots: Any, name: str, value: np.ndarray) -> None:
    slot = slots[name]
    if isinstance(slot, np.ndarray) and slot.flags.writeable:
        slot[...] = value
    else:
        slots[name] = value.astype(np.asarray(to_host(slot)).dtype)
