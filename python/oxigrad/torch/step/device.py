"""Parameters on CUDA devices, updated in place by kernels: one launch for all that share a rule and dtypes.

All that can fail comes first: kernels are compiled, tables are filled. The launches themselves are writes of the step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oxigrad._core import DtypeError, RuleError, ShapeError, StructureError
from oxigrad.cuda import launch
from oxigrad.cuda.availability import tell
from oxigrad.cuda.driver import CaptureError, driver
from oxigrad.ops.backends import adapter_of, laid_out_like
from oxigrad.stepping.arrays.gradient_check import check_gradient
from oxigrad.stepping.arrays.places import check_places
from oxigrad.stepping.device.launches import NO_MOVES, Known, Launches, naming
from oxigrad.stepping.parameters.device_kernels import FLOATING, INEXPRESSIBLE, memory_of
from oxigrad.stepping.slots.memory import CODES, are_codes, are_numbers, memory_of_slots
from oxigrad.torch.choice import Choice
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.parameter import Parameter


def order_of_kernel(choice: Choice, tensor: Any, own: dict[str, Any]) -> str:
    """The order in which a kernel takes the elements of a tensor on a CUDA device, with the state ``own``; empty without a kernel.

    It is that of "memory"; or "row-major" for a copy of a tensor with its axes in another order, such as a channels-last one, where
    the rule sums elements, draws random numbers for them, or keeps codes of eight bits. The state is put into that order.
    """
    program, memory = choice.program(), memory_of(conversion.local(tensor))
    arrays, scales, numbers = memory_of_slots(_slots(choice, own))
    if program is None or memory is None or not all(_is_like(found, memory) for found in arrays):
        return ""
    if not (are_numbers(numbers) and are_codes(arrays, scales)):
        return ""
    dtypes = (memory.dtype, memory.dtype, *(found.dtype for found in arrays))
    scalars, stochastic = 1 + len(choice.read(1.0)), choice.precision.rounding == "stochastic"
    number_dtype = numbers[0].dtype if numbers else "float64"
    try:
        source = launch.text_of(program, dtypes, scalars, len(numbers), stochastic, number_dtype)
    except RuleError as error:
        tell(f"{INEXPRESSIBLE} {choice.rule().name}: {error}")
        return ""
    except (DtypeError, ShapeError):
        return ""
    depends = choice.draws or source.sums or scales
    order = "row-major" if memory.strides is not None and depends else "memory"
    for slot, value in conversion.slots_of(choice, own):
        if not (slot.is_number or isinstance(value, dict)):
            own[choice.entry.key_of_slot(slot.name)] = _in_order(value, tensor, order)
    return order


def _slots(choice: Choice, own: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The slots of the rule, each with its value as a kernel takes it."""
    return [(slot, conversion.on_device(value)) for slot, value in conversion.slots_of(choice, own)]


def _in_order(slot: Any, tensor: Any, order: str) -> Any:
    """A slot of a parameter, or a copy whose elements lie in the order in which kernels take them."""
    p, own = conversion.local(tensor), conversion.local(slot)
    like = p if order == "memory" else torch.empty(p.shape, device=p.device)
    found, expected = memory_of(own), memory_of(like)
    if found and expected and found.strides == expected.strides:
        return slot
    return conversion.as_parameter(laid_out_like(own, like), tensor)


def _is_like(found: Any, like: Any) -> bool:
    """Whether kernels take memory as that of a slot: dense, with the shape and the device of the parameter's, in any order of axes."""
    return (
        found is not None
        and found.is_dense
        and found.dtype in (*FLOATING, CODES)
        and (found.shape, found.device) == (like.shape, like.device)
    )


def _is_placed(found: Any, like: Any) -> bool:
    """Whether kernels take memory beside that of a parameter: as `_is_like`, in the same order of axes."""
    return _is_like(found, like) and found.strides == like.strides


class Copies(NamedTuple):
    """Copies of parameters and of gradients, by the number of the parameter, which kernels read and write in their place."""

    parameters: dict[int, Any]
    gradients: dict[int, Any]


class LaunchedParameters:
    """The parameters of a resolved step that kernels update, with what is kept from one step to the next."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters, self._tensors = parameters, [p.tensor for p in parameters]
        self._is_plain = all(conversion.is_plain(p.tensor) for p in parameters)
        values = [value for p in parameters for _, value in conversion.slots_of(p.choice, p.own)]
        self._own = [part for value in values for part in conversion.parts_of(value)]
        self._slots: list[Any] = []
        self._watched = conversion.Watched([part for part in self._own if not conversion.is_plain(part)])
        # Forgotten where a step fails: only the tables of a `DeviceStep` tell then where arrays were.
        self._known: Known | None = None
        self._steps: dict[int, launch.DeviceStep] = {}

    def prepare(self, programs: launch.Programs, *, seed: int, step: int) -> Launches:
        """The launches of a step. Random numbers are those of the step with this number, from 1 on.

        Raises `StructureError` where tensors have changed so that the step has to be resolved anew.
        """
        launches = Launches()
        params, given = self._tensors, [tensor.grad for tensor in self._tensors]
        if [g for g in given if g is None]:
            raise StructureError("a gradient is missing")
        if not self._is_plain:
            params, given = [*map(conversion.local, params)], [*map(conversion.local, given)]
        known, self._known = None if self._watched.have_moved() else self._known, None
        moves = None if known is None else known.moved([*params, *given], exposed=True)
        copies = Copies({}, {})
        if known is None or moves is None:
            self._slots = [part if conversion.is_plain(part) else conversion.local(part) for part in self._own]
            leaves: dict[int, list[launch.Leaf]] = {}
            for at in range(len(params)):
                leaf = self._leaf(at, params[at], given[at], copies)
                leaves.setdefault(leaf.arrays[1].device, []).append(leaf)
            positions = [p.position for p in self.parameters]
            known = Known(positions, leaves, [*params, *given], self._slots, exposed=True)
        read = [copies.gradients.get(at, g) for at, g in enumerate(given)] if copies.gradients else given
        for device, leaves_there in known.leaves.items():
            with naming(leaves_there):
                self._add(
                    launches,
                    device,
                    leaves_there,
                    programs,
                    read if len(leaves_there) == len(read) else [read[at] for at in known.positions[device]],
                    None if moves is None else moves.get(device, NO_MOVES),
                    seed=seed,
                    step=step,
                )
        if not any(copies):
            self._known = known
        for at, copy in copies.parameters.items():
            launches.assign(params[at].detach(), copy)
        # Until the launches are made, memory of copies and of views is theirs.
        launches.copies = [*read, *copies.parameters.values()]
        launches.launched = [*params, *self._slots]
        return launches

    def _add(
        self,
        launches: Launches,
        device: int,
        leaves: list[launch.Leaf],
        programs: launch.Programs,
        read: list[Any],
        moves: np.ndarray | None,
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
            elif moves.size:
                known.relocate(moves, stream=stream, capturing=False)
            calls = known.prepare(programs, seed=seed, step=step, control=0, stream=stream, capturing=False)
            adapter.keep_until(read, device, stream)
        launches.add(used, device, leaves[0], calls)

    def _leaf(self, at: int, array: Any, g: Any, copies: Copies) -> launch.Leaf:
        """The leaf of a parameter. Adds to the ``copies`` of what lies in memory in another order than kernels take it."""
        p = self.parameters[at]
        choice = p.choice
        if adapter_of(array).is_apart(array, g):
            check_places(p.path, array, g, {})
        check_gradient(p.path, g, tuple(array.shape), array.dtype)
        if p.order == "row-major":
            array = copies.parameters[at] = array.detach().clone(memory_format=torch.contiguous_format)
        memory, own = memory_of(g), memory_of(array)
        if own is not None and not (memory and memory.is_dense and memory.strides == own.strides):
            copies.gradients[at] = laid_out_like(g.detach(), array)
            memory = memory_of(copies.gradients[at])
        arrays, scales, numbers = memory_of_slots(_slots(choice, p.own))
        if not (_is_placed(memory, own) and all(_is_placed(found, own) for found in arrays)):
            raise StructureError(f"{p.path}: the memory of the parameter or of its state has changed")
        if not (are_numbers(numbers) and are_codes(arrays, scales)):
            raise StructureError(f"{p.path}: the numbers or the codes of the state have changed")
        program, scalar_set = p.scalar_set
        stochastic = choice.precision.rounding == "stochastic"
        found: tuple[Any, ...] = (memory, own, *arrays)
        return launch.Leaf(p.path, p.position, program, scalar_set, stochastic, found, tuple(scales), tuple(numbers))
