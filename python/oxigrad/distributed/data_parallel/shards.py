"""Steps of an optimizer whose slots are divided among workers (ZeRO-1, Rajbhandari et al. 2020, arXiv:1910.02054).

Each worker steps its slices of the parameters by the mean gradient, with the bits of the whole step, and all of them
gather the results. Sums over parameters are gathered before anything is written. A parameter whose rule is called on
arrays is not cut.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad import SparseRows, tree
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel import part_states
from oxigrad.distributed.data_parallel.division import Extent, Piece, divided
from oxigrad.distributed.errors import NotSupported, WorkerLost
from oxigrad.distributed.messages import transfer
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.message import as_bytes, native
from oxigrad.distributed.parameters import WorkerParameters, check_unchanged
from oxigrad.extend import Parameters, SlicedSteps, as_array, copied_like, to_host
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
        #: The pieces of each worker.
        self.pieces: list[list[Piece]] = []
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
        self.pieces, self._waiting = divided(self.extents, workers), plan.waiting

    def _slices(self, rank: int) -> dict[str, Piece]:
        """The piece that a worker has of each parameter; it may have no elements."""
        pieces = {piece.path: piece for piece in self.pieces[rank]}
        return {path: pieces.get(path, Piece(path, 0, 0, not extent.size)) for path, extent in self.extents.items()}

    # --- steps --------------------------------------------------------------------------------------------------------

    def take(
        self,
        parameters: WorkerParameters,
        model: Tree,
        means: Mapping[str, Any],
        communicator: Communicator,
        seconds: float,
    ) -> Tree:
        """The model after a step of all workers, by the mean gradients of this worker's pieces, or rows of parameters.

        They are None for a parameter of which it has no elements.
        """
        slices, specs = self._slices(communicator.rank), parameters.specs(model)

        def step(stepper: Any, pieces: Tree, placed: Callable[[str, np.ndarray], Any]) -> Tree:
            gradients = {
                path: placed(path, _part(piece, means[path], specs[path])) if path in means else None
                for path, piece in slices.items()
            }
            return stepper.update(
                pieces, Parameters.nested(dict(zip(parameters.paths(model), gradients.values(), strict=True)))
            )

        return self._stepped(step, parameters, model, communicator, seconds)

    def flush(self, parameters: WorkerParameters, model: Tree, communicator: Communicator, seconds: float) -> Tree:
        """The model after `Optimizer.flush`, which all workers call."""
        return self._stepped(lambda stepper, pieces, _: stepper.flush(pieces), parameters, model, communicator, seconds)

    def _stepped(
        self,
        step: Callable[[Any, Tree, Callable[[str, Any], Any]], Tree],
        parameters: WorkerParameters,
        model: Tree,
        communicator: Communicator,
        seconds: float,
    ) -> Tree:
        """The model after a ``step`` of a tree of pieces.

        It places gradients in the library of the parameter, where the rule is called on that.
        """
        # Workers exchange the bytes of parameters, which may be in another byte order elsewhere.
        read = parameters.read(model)
        values = {path: np.asarray(value, native(value.dtype)) for path, value in read.items()}
        check_unchanged(values, self.extents, "shard_state=True")
        leaves, slices = parameters.leaves(model), self._slices(communicator.rank)

        def placed(path: str, array: Any) -> Any:
            is_there = self.extents[path].is_called and array.size and isinstance(array, np.ndarray)
            return copied_like(array, leaves[path]) if is_there and not isinstance(leaves[path], np.ndarray) else array

        arrays = [placed(path, np.array(piece.of(values[path]))) for path, piece in slices.items()]
        pieces = Parameters.nested(dict(zip(parameters.paths(model), arrays, strict=True)))
        self._link[:] = communicator, seconds
        firsts = {path: piece.start for path, piece in slices.items()}
        stepped = self._steps.take(
            lambda stepper: step(stepper, pieces, placed), leaves, firsts, functools.partial(_gathered, self._link)
        )
        flat, structure = tree.flatten(stepped)
        updated = {str(structure.path(i)): np.asarray(to_host(leaf)) for i, leaf in enumerate(flat)}
        parts = [as_bytes(np.ascontiguousarray(updated[piece.path])) for piece in self.pieces[communicator.rank]]
        parts.append(as_bytes(np.array([float(to_host(number)) for number in self._numbers(communicator.rank)])))
        messages = communicator.all_gather_v(np.concatenate(parts), timeout=seconds)
        return parameters.write(model, self._assembled(messages, values, communicator.rank))

    def _numbers(self, rank: int) -> list[Any]:
        """The slots of one number, here, of the parameters that one worker alone steps."""
        slots = self._steps.slots
        whole = [piece.path for piece in self.pieces[rank] if not self.extents[piece.path].unit]
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
            for piece in self.pieces[rank]:
                end = at + piece.size * values[piece.path].dtype.itemsize
                parts[piece.path].append(message[at:end])
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
        pieces = [str(piece) for rank in sorted(error.ranks) for piece in self.pieces[rank]]
        held = f"{', '.join(pieces)} of rank {', '.join(map(str, sorted(error.ranks)))}" if pieces else "those workers"
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
        return part_states.joined(states, self.pieces, self.extents, self._waiting)

    def part(self, state: Mapping[str, Any], rank: int) -> dict[str, Any]:
        """The part of a state of one process that this worker has; without slots while the parameters are not known."""
        return part_states.cut(state, self._slices(rank), self.extents) if self.extents else {**state, "slots": {}}


def _gathered(link: Sequence[Any], data: bytes) -> bytes:
    """The bytes of all workers, by rank."""
    communicator, seconds = link
    messages = communicator.all_gather_v(np.frombuffer(data, np.uint8), timeout=seconds)
    return b"".join(message.tobytes() for message in messages)


def _part(piece: Piece, mean: Any, spec: GradientSpec) -> Any:
    """The mean gradient of a piece, as a step takes it."""
    if mean is None:
        return np.empty(spec.shape if piece.is_whole else 0, spec.dtype)
    is_cut = isinstance(mean, SparseRows) and not piece.is_whole
    return piece.of(as_array(mean)) if is_cut else mean
