"""Steps of an optimizer whose slots are divided among workers (ZeRO-1, Rajbhandari et al. 2020, arXiv:1910.02054).

Each worker steps its slices of the parameters by the mean gradient, with the bits of the whole step, and all of them
gather the results. Sums over parameters are gathered before anything is written. A parameter whose rule is called on
arrays is not cut.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad import SparseRows, tree
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel import part_states
from oxigrad.distributed.data_parallel.division import Extent, divided
from oxigrad.distributed.errors import NotSupported, WorkerLost
from oxigrad.distributed.messages import transfer
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.message import as_bytes, native
from oxigrad.distributed.parameters import WorkerParameters, check_unchanged
from oxigrad.extend import Parameters, Slice, SlicedSteps, as_array, copied_like, to_host
from oxigrad.optim import Optimizer

_PART_ALONE = (
    "shard_state=True: this worker has a part of the slots alone; expected an optimizer of one process with the "
    "saved state"
)


class Shards:
    """The division of the slots of an optimizer among workers, and its steps."""

    def __init__(self, optimizer: Optimizer) -> None:
        try:
            self._steps = SlicedSteps(optimizer, NotSupported(_PART_ALONE))
        except TypeError as error:
            raise TypeError(f"shard_state=True: {error}") from None
        self.extents: Mapping[str, Extent] = {}
        #: The slices of each worker.
        self.slices: list[list[Slice]] = []
        # The arrays of the model that are not updated.
        self._waiting: set[str] = set()
        #: A state that was loaded before the parameters were known, and whether strictly.
        self.loaded: tuple[Mapping[str, Any], bool] | None = None
        # The communicator of the last step, and the seconds that a wait takes at most; plans hold the list.
        self._link: list[Any] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise NotSupported("shard_state=True: a copy would have a part of the slots alone: save the state, and load it")

    def divide(self, parameters: WorkerParameters, model: Tree, workers: int) -> None:
        """Divides the parameters of a model."""
        plan, values = parameters.plan(model), parameters.read(model)
        rules = [group.rule() for group in plan.groups]
        called = [not rule.elementwise for rule in rules]
        if any(called) and plan.needs_all:  # then all rules are called on arrays
            called = [True] * len(rules)
        units = [
            0 if is_called else SlicedSteps.unit(group) for is_called, group in zip(called, plan.groups, strict=True)
        ]
        numbers = [frozenset(slot.name for slot in rule.slots if slot.is_number) for rule in rules]
        self.extents = {
            p.text: Extent(p.shape, values[p.text].dtype.itemsize, units[p.group], called[p.group], numbers[p.group])
            for p in plan.parameters
        }
        self.slices, self._waiting = divided(self.extents, workers), plan.waiting

    def _slices(self, rank: int) -> dict[str, Slice]:
        """The slice that a worker has of each parameter; it may have no elements."""
        here = {each.path: each for each in self.slices[rank]}
        return {path: here.get(path, Slice(path, extent, 0, 0)) for path, extent in self.extents.items()}

    # --- steps --------------------------------------------------------------------------------------------------------

    def take(
        self,
        parameters: WorkerParameters,
        model: Tree,
        means: Mapping[str, Any],
        communicator: Communicator,
        seconds: float,
    ) -> Tree:
        """The model after a step of all workers, by the mean gradients of this worker's slices, or rows of parameters.

        They are None for a parameter of which it has no elements.
        """
        slices, specs = self._slices(communicator.rank), parameters.specs(model)
        gradients = {
            path: _part(each, means[path], specs[path]) if path in means else None for path, each in slices.items()
        }
        return self._stepped(gradients, parameters, model, communicator, seconds)

    def flush(self, parameters: WorkerParameters, model: Tree, communicator: Communicator, seconds: float) -> Tree:
        """The model after `Optimizer.flush`, which all workers call."""
        return self._stepped(None, parameters, model, communicator, seconds)

    def _stepped(
        self,
        gradients: Mapping[str, Any] | None,
        parameters: WorkerParameters,
        model: Tree,
        communicator: Communicator,
        seconds: float,
    ) -> Tree:
        """The model after a step by the gradients of slices, or a flush without them.

        Slices and gradients are in the library of the parameter, where the rule is called on that.
        """
        # Workers exchange the bytes of parameters, which may be in another byte order elsewhere.
        read = parameters.read(model)
        values = {path: np.asarray(value, native(value.dtype)) for path, value in read.items()}
        check_unchanged(values, self.extents, "shard_state=True")
        leaves, slices = parameters.leaves(model), self._slices(communicator.rank)

        def nested(arrays: Mapping[str, Any]) -> Tree:
            placed = [self._placed(array, path, leaves[path]) for path, array in arrays.items()]
            return Parameters.nested(dict(zip(parameters.paths(model), placed, strict=True)))

        parts = nested({path: np.array(each.of(values[path])) for path, each in slices.items()})
        self._link[:] = communicator, seconds
        leaf_slices = [dataclasses.replace(each, leaf=leaves[path]) for path, each in slices.items()]
        grads = None if gradients is None else nested(gradients)
        stepped = self._steps.take(parts, grads, leaf_slices, functools.partial(_gathered, self._link))
        flat, structure = tree.flatten(stepped)
        updated = {str(structure.path(i)): np.asarray(to_host(leaf)) for i, leaf in enumerate(flat)}
        sent = [as_bytes(np.ascontiguousarray(updated[each.path])) for each in self.slices[communicator.rank]]
        sent.append(as_bytes(np.array([float(to_host(number)) for number in self._numbers(communicator.rank)])))
        messages = communicator.all_gather_v(np.concatenate(sent), timeout=seconds)
        return parameters.write(model, self._assembled(messages, values, communicator.rank))

    def _placed(self, array: Any, path: str, leaf: Any) -> Any:
        """An array for a step of a parameter, in the library of the parameter where its rule is called on it."""
        is_there = isinstance(array, np.ndarray) and self.extents[path].is_called and array.size
        return copied_like(array, leaf) if is_there and not isinstance(leaf, np.ndarray) else array

    def _numbers(self, rank: int) -> list[Any]:
        """The slots of one number, here, of the parameters that one worker alone steps."""
        slots = self._steps.slots
        whole = [each.path for each in self.slices[rank] if not each.leaf.unit]
        return [slots[path][name] for path in whole if path in slots for name in sorted(self.extents[path].numbers)]

    def _assembled(
        self, messages: list[np.ndarray], values: Mapping[str, np.ndarray], here: int
    ) -> dict[str, np.ndarray]:
        """The parameters in the messages of all workers, like ``values``.

        Sets the numbers that the worker of this rank, ``here``, has not computed.
        """
        parts: dict[str, list[np.ndarray]] = {path: [] for path in values}
        for rank, message in enumerate(messages):
            at = 0
            for each in self.slices[rank]:
                end = at + each.count * each.leaf.itemsize
                parts[each.path].append(message[at:end])
                at = end
            if rank != here:
                for number, value in zip(self._numbers(rank), message[at:].copy().view(np.float64), strict=True):
                    number[...] = value
        return {
            path: np.concatenate(buffers).view(values[path].dtype).reshape(values[path].shape)
            for path, buffers in parts.items()
        }

    def lost(self, error: WorkerLost) -> WorkerLost:
        """The error of a step for the loss of workers: with it, the slots that they alone had."""
        lost = [str(each) for rank in sorted(error.ranks) for each in self.slices[rank]]
        held = f"{', '.join(lost)} of rank {', '.join(map(str, sorted(error.ranks)))}" if lost else "those workers"
        return WorkerLost(
            error.ranks,
            "a step with shard_state=True",
            f"the slots of {held} are lost, which no other worker has: expected a new DataParallel on "
            "communicator.reform(), with the parameters and the state of a file that was saved",
        )

    # --- state --------------------------------------------------------------------------------------------------------

    def state(self, state: Mapping[str, Any], communicator: Communicator, seconds: float) -> dict[str, Any]:
        """The state of one process, which all workers gather.

        The one that was loaded while the parameters are not known.
        """
        if not self.extents:
            return dict(state if self.loaded is None else self.loaded[0])
        messages = communicator.all_gather_v(transfer.pack({}, state), timeout=seconds)
        states = [transfer.unpack(message)[1] for message in messages]
        return part_states.joined(states, self.slices, self.extents, self._waiting)

    def part(self, state: Mapping[str, Any], rank: int) -> dict[str, Any]:
        """The part of a state of one process that this worker has; without slots while the parameters are not known."""
        return part_states.cut(state, self._slices(rank)) if self.extents else {**state, "slots": {}}


def _gathered(link: Sequence[Any], data: bytes) -> bytes:
    """The bytes of all workers, by rank."""
    communicator, seconds = link
    messages = communicator.all_gather_v(np.frombuffer(data, np.uint8), timeout=seconds)
    return b"".join(message.tobytes() for message in messages)


def _part(part: Slice, mean: Any, spec: GradientSpec) -> Any:
    """The mean gradient of a slice, as a step takes it."""
    if mean is None:
        return np.empty(spec.shape if part.is_whole else 0, spec.dtype)
    is_cut = isinstance(mean, SparseRows) and not part.is_whole
    return part.of(as_array(mean)) if is_cut else mean
