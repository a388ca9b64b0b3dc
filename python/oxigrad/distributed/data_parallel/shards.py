"""Steps of an optimizer whose slots are divided among workers (ZeRO-1, Rajbhandari et al. 2020, arXiv:1910.02054).

Each worker updates its pieces of the parameters by the mean gradient, and all of them gather the results. A rule that is elementwise
gives the same bits for a piece; a parameter whose rule is not, or sums over it, is not cut.
"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import RuleError
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel import part_states
from oxigrad.distributed.data_parallel.division import Extent, Piece, divided
from oxigrad.distributed.data_parallel.gradient_square import GroupWithSquare, square_of, with_square
from oxigrad.distributed.errors import NotSupported, WorkerLost
from oxigrad.distributed.messages import transfer
from oxigrad.distributed.messages.message import as_bytes, native
from oxigrad.distributed.parameters import Parameters, check_unchanged, nested
from oxigrad.distributed.wrapper import delegated
from oxigrad.ops.backends import copied_like, to_host
from oxigrad.optim import ClipByGlobalNorm
from oxigrad.optim.chain import Chain
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.partition import Partition
from oxigrad.optim.rule_optimizer import RuleOptimizer
from oxigrad.optim.settings.config import OPTIONS
from oxigrad.rules.core.slots import Formula, Slot
from oxigrad.stepping.arrays.precision import SMALLEST_CODED, Precision
from oxigrad.stepping.arrays.quantized import CODECS
from oxigrad.stepping.arrays.sparse_rows import SparseRows, as_array
from oxigrad.stepping.device.step_counts import StepCounts
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.announcements import named
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.protocols import ObservedScale
from oxigrad.stepping.slots.view import ParameterSlots
from oxigrad.stepping.stepper import Stepper

# Options that a part of the elements, or of the workers, cannot decide on.
_REFUSED = ("accumulate", "loss_scale", "nonfinite", "sparse", "zero_gradients")


class PartOwner:
    """The optimizer as the owner of steps of pieces: the group of a piece is that of its parameter."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer: Optimizer = optimizer
        #: The parameters by key path, during a step, and the square of the norm of their gradients.
        self.whole: Mapping[str, Any] = {}
        self.square: float = 0.0
        self._with_square: dict[ParameterGroup, GroupWithSquare] = {}

    accumulate: int = delegated("optimizer.accumulate")
    loss_scale: ObservedScale | None = delegated("optimizer.loss_scale")
    nonfinite: str = delegated("optimizer.nonfinite")
    scale: float = delegated("optimizer.scale")
    sparse: str = delegated("optimizer.sparse")
    zero_gradients: bool = delegated("optimizer.zero_gradients")
    seed: int = delegated("optimizer.seed")
    _precision: Precision = delegated("optimizer._precision")
    _gradient_parts = delegated("optimizer._gradient_parts")
    _norm_parts = delegated("optimizer._norm_parts")
    _observe = delegated("optimizer._observe")
    _versions = delegated("optimizer._versions")

    def _assign(self, path: str, array: Any) -> ParameterGroup | None:
        group = self.optimizer._assign(path, self.whole[path])
        if group is None or "total" not in group.rule().supplied:
            return group
        if group not in self._with_square:
            self._with_square[group] = GroupWithSquare(group, lambda step: self.square)
        return self._with_square[group]

    def _check_patterns(self, parameters: list[tuple[str, Any]]) -> None:
        """Does nothing: the plan of the whole model checks patterns."""


class PartStepper:
    """The stepper of an optimizer whose slots are divided, as users of the wrapper see it: counts, and slots of this worker's pieces."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    ahead: list[str] = delegated("_stepper.ahead")
    counts: StepCounts = delegated("_stepper.counts")
    group_of: Callable[[str], ParameterGroup] = delegated("_stepper.group_of")
    micro: int = delegated("_stepper.micro")
    progress: tuple[int, int, int] = delegated("_stepper.progress")
    own_slots: Mapping[str, ParameterSlots] = delegated("_stepper.own_slots")
    plan: Plan | None = delegated("_stepper.plan")
    slots: Mapping[str, ParameterSlots] = delegated("_stepper.slots")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise NotSupported(
            "shard_state=True: this worker has a part of the slots alone; expected an optimizer of one process with the saved state"
        )


class Shards:
    """The division of the slots of an optimizer among workers, and its steps."""

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, (RuleOptimizer, Partition)):
            raise TypeError(
                f"shard_state=True: found {optimizer!r}, expected an optimizer of rules, a chain or a partition"
            )
        self._optimizer, self._owner = optimizer, PartOwner(optimizer)
        optimizer._stepper = optimizer._stepper.copied(self._owner)
        self.extents: Mapping[str, Extent] = {}
        self._pieces: list[list[Piece]] = []
        # The arrays of the model that are not updated.
        self._waiting: set[str] = set()
        self._reads_all = False  # whether the step of a piece reads the gradients of all
        #: A state that was loaded before the parameters were known, and whether strictly.
        self.loaded: tuple[Mapping[str, Any], bool] | None = None
        self.check_options()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise NotSupported("shard_state=True: a copy would have a part of the slots alone: save the state, and load it")

    # --- what can be divided -------------------------------------------------------------------------------------------

    def check_options(self) -> None:
        """Raises `ValueError` for options of the optimizer that steps of pieces cannot have."""
        refused = [name for name in _REFUSED if getattr(self._optimizer, name) != OPTIONS[name]]
        if refused:
            raise ValueError(f"shard_state=True cannot be combined with {', '.join(refused)} of the optimizer")
        if self._optimizer._precision.rounding == "stochastic":
            raise ValueError(
                "shard_state=True cannot be combined with rounding='stochastic': the bits would depend on the division"
            )

    def divide(self, parameters: Parameters, model: Tree, workers: int) -> None:
        """Divides the parameters of a model. Raises `RuleError`, with the key path, for a rule that the slots of pieces do not suffice for."""
        plan, values = parameters.plan(model), parameters.read(model)
        first = {p.group: p.text for p in reversed(plan.parameters)}
        units = {number: self._unit(first[number], group) for number, group in enumerate(plan.groups)}
        self._reads_all = any("total" in group.rule().supplied for group in plan.groups)
        self.extents = {p.text: Extent(p.shape, values[p.text].dtype.itemsize, units[p.group]) for p in plan.parameters}
        self._pieces, self._waiting = divided(self.extents, workers), plan.waiting

    @property
    def scattered(self) -> list[list[Piece]] | None:
        """The pieces of each worker, where it needs the mean gradients of its own alone."""
        return None if self._reads_all else self._pieces

    def _unit(self, where: str, group: ParameterGroup) -> int:
        """The elements by which parameters of a group are cut; 0 where they are not."""
        rule = group.rule()
        if "noise" in rule.supplied:
            raise RuleError(f"{where}: shard_state=True does not support rules that draw random numbers")
        if "total" in rule.supplied:
            if not _clips_first(self._optimizer):
                raise RuleError(
                    f"{where}: shard_state=True supports sums over all parameters of ClipByGlobalNorm as the first part of each chain alone"
                )
            rule = with_square(rule)
        program = kernel_of(rule, group.flags)
        if program is None or "sum(" in str(program) or not all(_is_of_elements(slot, group) for slot in rule.slots):
            return 0
        # Pieces of fewer elements would have other slots than the parameter.
        return SMALLEST_CODED if group.precision.slot_dtype in CODECS else 1

    # --- steps ---------------------------------------------------------------------------------------------------------

    def take(
        self,
        parameters: Parameters,
        model: Tree,
        means: Mapping[str, Any],
        communicator: Communicator,
        seconds: float,
        *,
        are_parts: bool,
    ) -> Tree:
        """The model after a step by mean gradients, which all workers take together.

        With ``are_parts``, gradients are those of this worker's pieces, None for a parameter of which it has none.
        """
        self.check_options()
        # Workers exchange the bytes of parameters, which may be in another byte order elsewhere.
        read = parameters.read(model)
        values = {path: np.asarray(value, native(value.dtype)) for path, value in read.items()}
        check_unchanged(values, self.extents, "shard_state=True")
        local = self._pieces[communicator.rank]
        grads = {p.path: _part(p, means[p.path], is_part=are_parts) for p in local if p.path in means}
        if grads:
            updated = self._updated(
                parameters, model, local, values, grads, self._square(parameters.plan(model), values, means)
            )
        else:
            self._stepper.pass_by()
            updated = {}
        parts = [as_bytes(np.ascontiguousarray(updated[path])) for path in grads]
        message = np.concatenate([np.empty(0, np.uint8), *parts])
        messages = communicator.all_gather_v(message, timeout=seconds)
        return parameters.write(model, self._assembled(messages, {path: values[path] for path in means}))

    def _square(self, plan: Plan, values: Mapping[str, np.ndarray], means: Mapping[str, Any]) -> float:
        """The square of the norm of all gradients, where a step of pieces reads it."""
        if not self._reads_all:
            return 0.0
        return square_of(plan, values, {path: as_array(mean) for path, mean in means.items()})

    @property
    def _stepper(self) -> Stepper:
        return self._optimizer._stepper

    def _updated(
        self,
        parameters: Parameters,
        model: Tree,
        local: list[Piece],
        values: Mapping[str, np.ndarray],
        gradients: Mapping[str, np.ndarray],
        square: float,
    ) -> dict[str, np.ndarray]:
        """The pieces of this worker after its step by the ``gradients`` of them; ``square`` is that of the norm of all."""
        names, leaves = dict(zip(values, parameters.paths(model), strict=True)), parameters.leaves(model)

        def placed(piece: Piece, array: np.ndarray) -> Any:
            """A piece; in the library of its parameter, where the rule is called on that."""
            leaf, is_called = leaves[piece.path], not self.extents[piece.path].unit
            return copied_like(array, leaf) if is_called and not isinstance(leaf, np.ndarray) else array

        pieces = {names[piece.path]: placed(piece, np.array(piece.of(values[piece.path]))) for piece in local}
        grads = {
            names[piece.path]: placed(piece, gradients[piece.path]) if piece.path in gradients else None
            for piece in local
        }
        owner = self._owner
        owner.whole, owner.square = leaves, square
        try:
            with self._optimizer._lock.stepping():
                updated = self._stepper.update(nested(pieces), nested(grads))
        finally:
            owner.whole = {}
        arrays, structure = tree.flatten(updated)
        return {str(structure.path(i)): np.asarray(to_host(leaf)) for i, leaf in enumerate(arrays)}

    def _assembled(self, messages: list[np.ndarray], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The parameters in the messages of all workers, like ``values``, those that the step updates."""
        parts: dict[str, list[np.ndarray]] = {path: [] for path in values}
        for local, message in zip(self._pieces, messages, strict=True):
            at = 0
            for piece in local:
                if piece.path in parts:
                    end = at + (piece.stop - piece.start) * values[piece.path].dtype.itemsize
                    parts[piece.path].append(message[at:end])
                    at = end
        return {
            path: np.concatenate(buffers).view(values[path].dtype).reshape(values[path].shape)
            for path, buffers in parts.items()
        }

    def lost(self, error: WorkerLost) -> WorkerLost:
        """The error of a step for the loss of workers: with it, the slots that they alone had."""
        pieces = [str(piece) for rank in sorted(error.ranks) for piece in self._pieces[rank]]
        held = f"{named(pieces)} of rank {', '.join(map(str, sorted(error.ranks)))}" if pieces else "those workers"
        return WorkerLost(
            error.ranks,
            "a step with shard_state=True",
            f"the slots of {held} are lost, which no other worker has: expected a new DataParallel on communicator.reform(), with "
            "the parameters and the state of a file that was saved",
        )

    # --- state ---------------------------------------------------------------------------------------------------------

    def state(self, state: Mapping[str, Any], communicator: Communicator, seconds: float) -> dict[str, Any]:
        """The state of one process, which all workers gather; the one that was loaded while the parameters are not known."""
        if not self.extents:
            return dict(state if self.loaded is None else self.loaded[0])
        messages = communicator.all_gather_v(transfer.pack({}, state), timeout=seconds)
        return part_states.joined([transfer.unpack(message)[1] for message in messages], self.extents, self._waiting)

    def part(self, state: Mapping[str, Any], rank: int) -> dict[str, Any]:
        """The part of a state of one process that this worker has; without slots while the parameters are not known."""
        return part_states.cut(state, self._pieces[rank], self.extents) if self.extents else {**state, "slots": {}}


def _part(piece: Piece, mean: Any, *, is_part: bool) -> np.ndarray:
    """The mean gradient of a piece: itself, or in that of its parameter."""
    return mean if is_part and not isinstance(mean, SparseRows) else piece.of(as_array(mean))


def _clips_first(optimizer: Optimizer) -> bool:
    """Whether the only total of an optimizer is that of `ClipByGlobalNorm`, of gradients that nothing has changed before."""
    if isinstance(optimizer, Partition):
        return all(_clips_first(each) for each in optimizer.optimizers.values() if each is not None)
    if not isinstance(optimizer, Chain):
        return False
    first, *others = optimizer._kinds
    return first is ClipByGlobalNorm and not any("total" in kind._rule.supplied for kind in others)


def _is_of_elements(slot: Slot, group: ParameterGroup) -> bool:
    """Whether a slot of a piece begins with the numbers that it has in the slot of the parameter."""
    if not isinstance(slot.begin, Formula):
        return True
    p = np.linspace(-1.0, 2.0, 6)
    whole, part = (slot.first(xp, each, p.dtype, group.value) for each in (p, p[2:5]))
    if whole is None or part is None:
        return whole is part
    return whole.shape == p.shape and part.shape == (3,) and np.array_equal(np.asarray(whole)[2:5], np.asarray(part))
