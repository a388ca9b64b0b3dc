"""Parameters on CUDA devices, updated in place by kernels: one launch for all that share a rule and dtypes.

All that can fail comes first: kernels are compiled, tables are filled. The launches themselves are writes of the step.
"""

from collections.abc import Sequence
from typing import Any

from oxigrad._core import DtypeError, RuleError, ShapeError, StructureError
from oxigrad.cuda import launch
from oxigrad.cuda.driver import CaptureError, driver
from oxigrad.ops.backends import adapter_of, laid_out_like
from oxigrad.stepping import executors
from oxigrad.stepping.device_roads import FLOATING, memory_of
from oxigrad.stepping.launching import Known, Launches, naming
from oxigrad.stepping.places import check_places
from oxigrad.torch import state
from oxigrad.torch.choice import Choice
from oxigrad.torch.parameter import Parameter


def has_kernel(choice: Choice, p: Any, own: dict[str, Any]) -> bool:
    """Whether a kernel updates the local tensor ``p`` on a CUDA device with the state ``own``."""
    program, memory = choice.program(), memory_of(p)
    slots = [*state.slots_of(choice, own)]
    # Numbers of a slot are in host memory. What stops a step, and totals over all parameters, take part in the other executors too.
    if program is None or memory is None or any(slot.is_number for slot, _ in slots):
        return False
    if {"guard", "total"} & {*choice.rule().supplied}:
        return False
    arrays = [memory, memory, *(memory_of(state.local(value)) for _, value in slots)]
    if not all(_is_placed(found, memory) for found in arrays):
        return False
    dtypes = tuple([found.dtype for found in arrays if found])
    scalars = 1 + len(choice.read(1.0))
    try:
        source = launch.text_of(program, dtypes, scalars, 0, choice.precision.rounding == "stochastic")
    except (RuleError, DtypeError, ShapeError):
        return False
    # Kernels read elements in the order in which they lie in memory.
    return memory.strides is None or not (choice.draws or source.sums)


def _is_placed(found: Any, like: Any) -> bool:
    """Whether kernels take memory beside that of a parameter: dense, with the same shape, order of axes and device."""
    return (
        found is not None
        and found.is_dense
        and found.dtype in FLOATING
        and (found.shape, found.strides, found.device) == (like.shape, like.strides, like.device)
    )


class LaunchedParameters:
    """The parameters of a resolved step that kernels update, with what is kept from one step to the next."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = parameters
        self._is_plain = all(state.is_plain(p.tensor) for p in parameters)
        own = [value for p in parameters for _, value in state.slots_of(p.choice, p.own)]
        self._slots = own if all(map(state.is_plain, own)) else [*map(state.local, own)]
        # Forgotten where a step fails: only the tables of a `DeviceStep` tell then where arrays were.
        self._known: Known | None = None
        self._steps: dict[int, launch.DeviceStep] = {}

    def prepare(self, programs: launch.Programs, *, seed: int, step: int) -> Launches:
        """The launches of a step. Random numbers are those of the step with this number, from 1 on.

        Raises `StructureError` where tensors have changed so that the step has to be resolved anew.
        """
        launches = Launches()
        params = [p.tensor for p in self.parameters]
        given = [p.tensor.grad for p in self.parameters]
        if not self._is_plain:
            params, given = [*map(state.local, params)], [*map(state.local, given)]
        known, self._known = self._known, None
        moves = None if known is None else known.moved([*params, *given], exposed=True)
        copies: dict[int, Any] = {}
        if known is None or moves is None:
            leaves: dict[int, list[launch.Leaf]] = {}
            for at in range(len(params)):
                leaf = self._leaf(at, params[at], given[at], copies)
                leaves.setdefault(leaf.arrays[1].device, []).append(leaf)
            positions = [p.position for p in self.parameters]
            known = Known(positions, leaves, [*params, *given], self._slots, exposed=True)
        read = [copies.get(at, g) for at, g in enumerate(given)]
        for device, leaves_there in known.leaves.items():
            with naming(leaves_there):
                self._add(
                    launches,
                    device,
                    leaves_there,
                    programs,
                    [read[at] for at in known.positions[device]],
                    None if moves is None else moves.get(device, []),
                    seed=seed,
                    step=step,
                )
        if not copies:
            self._known = known
        # Until the launches are made, memory of copies and of views is theirs.
        launches.copies = read
        launches.launched = [*params, *self._slots]
        return launches

    def _add(
        self,
        launches: Launches,
        device: int,
        leaves: list[launch.Leaf],
        programs: launch.Programs,
        read: list[Any],
        moves: Sequence[tuple[int, int, int]] | None,
        *,
        seed: int,
        step: int,
    ) -> None:
        """Adds the launches on one device; ``read`` are the gradients, ``moves`` what has moved where nothing else has changed."""
        used, adapter = driver(), adapter_of(read[0])
        stream = adapter.current_stream(read[0], device)
        with used.current(device):
            if used.is_capturing(stream):
                raise CaptureError(
                    f"{leaves[0].path}: the step reads its numbers on the host, which a graph cannot replay: expected a step outside "
                    "of a capture, or capturable=True of a class that PyTorch has"
                )
            known = self._steps.get(device)
            if known is None or (moves is None and not known.takes(programs, leaves, {})):
                known = self._steps[device] = launch.DeviceStep(
                    used, device, programs, leaves, scales_at={}, stream=stream, capturing=False
                )
            elif moves is None:
                known.refresh(leaves, stream=stream, capturing=False)
            elif moves:
                known.relocate(moves, stream=stream, capturing=False)
            calls = known.prepare(programs, seed=seed, step=step, control=0, stream=stream, capturing=False)
            adapter.keep_until(read, device, stream)
        launches.add(used, device, leaves[0], calls)

    def _leaf(self, at: int, array: Any, g: Any, copies: dict[int, Any]) -> launch.Leaf:
        """The leaf of a parameter. Adds to ``copies`` of gradients, which lie in memory otherwise than the parameter."""
        p = self.parameters[at]
        choice, slots = p.choice, [state.local(value) for _, value in state.slots_of(p.choice, p.own)]
        if adapter_of(array).is_apart(array, g):
            check_places(p.path, array, g, {})
        executors.check_gradient(executors.Leaf(p.path, p.position, choice.rule(), array, g, {}, {}))
        memory, own = memory_of(g), memory_of(array)
        if own is not None and not (memory and memory.is_dense and memory.strides == own.strides):
            copies[at] = laid_out_like(g.detach(), array)
            memory = memory_of(copies[at])
        arrays: list[Any] = [memory, own, *map(memory_of, slots)]
        if not all(_is_placed(found, own) for found in arrays):
            raise StructureError(f"{p.path}: the memory of the parameter or of its state has changed")
        program, scalar_set = p.scalar_set
        stochastic = choice.precision.rounding == "stochastic"
        return launch.Leaf(p.path, p.position, program, scalar_set, stochastic, tuple(arrays), (), ())
