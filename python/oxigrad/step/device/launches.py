"""The launches of a step: kernels on CUDA devices that update parameters there, in place.

All that can fail comes first: kernels are compiled, tables are allocated and filled. The launches themselves are writes
of the step (see `oxigrad.step.writes`). A leaf whose gradient no kernel takes, such as `SparseRows`, has its rule
called on arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from oxigrad._core import ArrayMemoryError
from oxigrad._names import path_name
from oxigrad.cuda.counter import Counter
from oxigrad.cuda.device import device_record
from oxigrad.cuda.driver import CaptureError, Driver, driver
from oxigrad.cuda.launch import DeviceLeaf, DeviceStep
from oxigrad.ops.backends import DeviceMemory, adapter_of, detached, laid_out_like, memory_of, row_major
from oxigrad.ops.backends import resolved as unlazy
from oxigrad.ops.backends.memory.device_memory import LEGACY_STREAM
from oxigrad.step.arrays.gradient_check import check_gradient
from oxigrad.step.arrays.places import check_device
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.device.address_cache import AddressCache
from oxigrad.step.device.loss_scale import DeviceScale
from oxigrad.step.device.step_writes import StepWrites, naming
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.slots import Slots, arrays_of
from oxigrad.step.plan.assignment import Assignment
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.slots.memory import are_codes, are_numbers, memory_of_slots

# The moves of a step in which nothing has moved: see `DeviceStep.relocate`.
NO_MOVES = np.empty((0, 3), np.uint64)


# Copies of parameters, and of gradients, that kernels read and write instead, by the parameter's position.
Copies: TypeAlias = tuple[dict[int, Any], dict[int, Any]]


def _slot_arrays(parameters: Iterable[Parameter], slots: Mapping[str, Slots]) -> list[Any]:
    """The arrays of the slots of some parameters."""
    return [array for p in parameters for array in arrays_of(slots[p.text])]


class DeviceSteps:
    """The steps of a plan on devices: what is kept from one to the next, and the count of steps that a device keeps.

    ``counters`` are those of the optimizer, by device.
    """

    def __init__(self, plan: Assignment, counters: dict[int, Counter]) -> None:
        self.plan = plan
        self._counters = counters
        self._indices = [p.index for p in plan.on_devices]
        # By whether gradients are only accumulated, and steps also by device.
        self._caches: dict[bool, AddressCache] = {}
        self._steps: dict[tuple[int, bool], DeviceStep] = {}

    def prepare(
        self,
        resolved: StepProgram,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, Slots],
        writes: StepWrites,
        *,
        count: int,
        exposed: bool,
        scale: DeviceScale | None = None,
    ) -> list[Parameter] | None:
        """Adds the launches of a step after ``count`` ones to its ``writes``.

        Returns the parameters whose rules are called on arrays.

        None for parameters and gradients that the plan is not for: see `Assignment.is_of` and `reads_on_devices`.

        Slots that are ``exposed`` may be observed by others, whose libraries are told of changes.
        """
        params, grads = [leaves[i] for i in self._indices], [gradients[i] for i in self._indices]
        holds, others, there = resolved.holds, list[Parameter](), self.plan.on_devices
        copies: Copies = {}, {}
        of_parameters, of_gradients = copies
        # Forgotten where the step fails: only the tables of a `DeviceStep` tell then where arrays were.
        cache = self._caches.pop(holds, None)
        moves = None if cache is None else cache.moved([*params, *grads], exposed=exposed)
        if moves and any(self._steps[device, holds].is_captured for device in moves):
            moves = None
        if cache is None or moves is None:
            are_there = all(self.plan.is_of(p, array) for array, p in zip(params, there, strict=True))
            if not (are_there and self.plan.reads_on_devices(gradients)):
                return None
            device_leaves, others = self._device_leaves(resolved, leaves, gradients, slots, copies)
            if others and (self.plan.needs_all or not device_leaves):
                return [*there]
            cache = AddressCache(
                [p.position for p in there],
                device_leaves,
                [*params, *grads],
                _slot_arrays(there, slots) if exposed else [],
                exposed=exposed,
            )
        used, writes.scale = driver(), scale
        for device, of_device in cache.leaves.items():
            read = grads
            if of_gradients or len(of_device) < len(grads):
                read = [of_gradients.get(there[at].position, grads[at]) for at in cache.positions[device]]
            with naming(of_device):
                stream = self._stream(device, [(params[at], there[at]) for at in cache.first[device]])
                own_moves = None if moves is None else moves.get(device, NO_MOVES)
                self._prepare(used, device, of_device, resolved, read, count, writes, stream, own_moves)
        if not (others or any(copies)):
            self._caches[holds] = cache
        writes.read = [*of_parameters.values(), *of_gradients.values()]
        for p in there if any(copies) else ():
            if p.position in of_parameters:
                writes.assign(detached(leaves[p.index]), of_parameters[p.position])
            if p.position in of_gradients and resolved.zeroes:
                writes.assign(gradients[p.index], of_gradients[p.position])
        slot_arrays = cache.slots
        if others:
            numbers = sorted({at for positions in cache.positions.values() for at in positions})
            there, params, grads = ([each[at] for at in numbers] for each in (there, params, grads))
            slot_arrays = _slot_arrays(there, slots) if exposed else []
        writes.launched = [*params, *(grads if resolved.zeroes else ()), *slot_arrays]
        return others

    def _counts(self, resolved: StepProgram) -> bool:
        """Whether the device counts the steps, which are those of parameters that missed none."""
        is_guarded = any("guard" in group.rule.supplied for group in resolved.groups)
        return is_guarded or any(counter.is_ahead for counter in self._counters.values())

    def _device_leaves(
        self,
        resolved: StepProgram,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, Slots],
        copies: Copies,
    ) -> tuple[dict[int, list[DeviceLeaf]], list[Parameter]]:
        """The leaves by device, and the parameters that no kernel takes. Adds to the ``copies``."""
        device_leaves: dict[int, list[DeviceLeaf]] = {}
        others: list[Parameter] = []
        for p in self.plan.on_devices:
            leaf = self._leaf(p, leaves[p.index], gradients[p.index], slots[p.text], resolved, copies)
            if leaf is None:
                others.append(p)
            else:
                device_leaves.setdefault(leaf.arrays[1].device, []).append(leaf)
        return device_leaves, others

    def _prepare(
        self,
        used: Driver,
        device: int,
        device_leaves: list[DeviceLeaf],
        resolved: StepProgram,
        read: Sequence[Any],
        count: int,
        writes: StepWrites,
        stream: int,
        moves: np.ndarray | None,
    ) -> None:
        """Adds the launches on one device; ``read`` are the gradients, ``moves`` the moves if nothing else changed."""
        with used.current(device):
            capturing = used.is_capturing(stream)
            if capturing and self.plan.uncaptured:
                raise CaptureError(f"{path_name(device_leaves[0].path)}: {self.plan.uncaptured}")
            key, programs = (device, resolved.holds), resolved.programs_of_all
            step = self._steps.get(key)
            if step is None or (
                moves is None
                and (
                    not step.takes(programs, device_leaves, resolved.scales_at)
                    # The graph that captured it reads its tables.
                    or (step.is_captured and not capturing and step.has_moved(device_leaves))
                )
            ):
                step = self._steps[key] = DeviceStep(
                    used,
                    device,
                    programs,
                    device_leaves,
                    scales_at=resolved.scales_at,
                    stream=stream,
                    capturing=capturing,
                )
            elif moves is None:
                step.refresh(device_leaves, stream=stream, capturing=capturing)
            elif moves.size:
                step.relocate(moves, stream=stream, capturing=capturing)
            counter = self._counters.get(device)
            if counter is None:
                counter = self._counters[device] = Counter(device_record(used, device), stream, capturing=capturing)
            counter.use_on(stream)
            if capturing:
                self._check_capture(device_leaves, resolved, step)
            counts = capturing or counter.is_ahead or step.is_guarded
            if counts:
                counter.begin(count, stream, capturing=capturing)
            calls = step.prepare(
                programs,
                seed=resolved.seed,
                step=count + 1,
                control=counter.address if counts else 0,
                scale=writes.scale.of_kernel if writes.scale else None,
                stream=stream,
                capturing=capturing,
            )
            if capturing:
                counter.is_ahead = step.is_captured = True
                counter.keep(step)
            elif counts and not counter.is_ahead:
                calls = [*calls, *((call, False) for call in counter.calls(stream))]
                writes.counters.append(counter)
            kinds = {*map(type, read)}
            for kind in kinds:
                of_kind = read if len(kinds) == 1 else [g for g in read if type(g) is kind]
                adapter_of(of_kind[0]).keep_until(of_kind, device, stream)
        writes.launch(used, device, device_leaves[0], calls)

    @staticmethod
    def _check_capture(device_leaves: Sequence[DeviceLeaf], resolved: StepProgram, step: DeviceStep) -> None:
        """Raises `CaptureError` for a step that waits, or reads numbers of the host that differ between steps."""
        if not step.can_count:
            raise CaptureError(
                f"{path_name(device_leaves[0].path)}: the rule has scalars that only the host computes, which a graph "
                "cannot replay"
            )
        if any(resolved.plan.missed):
            raise CaptureError(
                f"{path_name(device_leaves[0].path)}: a parameter missed earlier steps, and a graph counts one step "
                "for all: expected parameters that "
                "were updated in every step"
            )
        if resolved.raises:
            raise CaptureError(
                f"{path_name(device_leaves[0].path)}: nonfinite='raise' waits for the device: expected 'skip' in a "
                "capture"
            )
        if resolved.varies_on_host or resolved.scales_there:
            raise CaptureError(
                f"{path_name(device_leaves[0].path)}: a graph replays the numbers of the step that it captured: "
                "expected hyperparameters that are "
                "no schedules, no loss scale, and accumulate=1"
            )

    @staticmethod
    def _copied(p: Parameter, array: Any, g: Any, memory: DeviceMemory | None, *, zeroes: bool) -> Any:
        """A copy of a gradient in the parameter's order. Raises `ArrayMemoryError` if it cannot be zeroed."""
        if zeroes and memory is not None and not memory.is_writable:
            raise ArrayMemoryError(
                f"{path_name(p.text)}: the gradient, where zero_gradients is to leave zeros, is read-only: expected "
                "one that can be written"
            )
        return laid_out_like(detached(unlazy(g)), array)

    @staticmethod
    def _stream(device: int, parameters: Sequence[tuple[Any, Parameter]]) -> int:
        """The current stream of the libraries of these parameters. Raises `ArrayMemoryError` for several."""
        streams = [adapter_of(array).current_stream(array, device) for array, _ in parameters]
        for other, (_, p) in zip(streams, parameters, strict=True):
            if (other or LEGACY_STREAM) != (streams[0] or LEGACY_STREAM):
                raise ArrayMemoryError(
                    f"{path_name(p.text)}: the parameter's library works on the stream {other:#x} of cuda:{device}, "
                    "that of "
                    f"{parameters[0][1].text} on {streams[0]:#x}: expected one stream on each device"
                )
        return streams[0]

    def _leaf(
        self, p: Parameter, array: Any, g: Any, slots: Slots, resolved: StepProgram, copies: Copies
    ) -> DeviceLeaf | None:
        """The leaf of a parameter; None where its rule is to be called on arrays. Raises errors with the key path."""
        if isinstance(g, SparseRows) or (p.missed and self._counts(resolved)):
            return None
        check_alike(p, array, g, slots)
        rule = resolved.groups[p.group].rule
        rule_slots = [(slot, slots[slot.name]) for slot in rule.slots]
        own_memory, memory = memory_of(array), memory_of(g)
        if p.is_copied:
            array = copies[0][p.position] = row_major(detached(array))
            own_memory = memory_of(array)
        if own_memory is not None and not (memory and memory.is_dense and memory.strides == own_memory.strides):
            g = copies[1][p.position] = self._copied(p, array, g, memory, zeroes=resolved.zeroes)
            memory = memory_of(g)
        of_slots, scales, numbers = memory_of_slots(rule_slots)
        arrays: list[Any] = [memory, own_memory, *of_slots]
        strides = None if own_memory is None else own_memory.strides
        if not all(memory and memory.is_dense and memory.strides == strides for memory in arrays):
            return None
        if not are_codes(of_slots, scales) or not all(memory and memory.is_plain for memory in numbers):
            return None
        if any(memory.shape != p.shape for memory in arrays) or any(memory.shape for memory in numbers):
            slots.check()
            return None
        if not are_numbers(numbers):
            return None
        program, scalar_set = resolved.layout[p.group]
        stochastic = self.plan.groups[p.group].precision.rounding == "stochastic"
        return DeviceLeaf(
            p.text, p.position, program, scalar_set, stochastic, tuple(arrays), tuple(scales), tuple(numbers)
        )


def check_alike(p: Parameter, array: Any, g: Any, slots: Slots) -> None:
    """Raises `ShapeError`, `DtypeError` or `ArrayMemoryError` for a gradient unlike its parameter."""
    if adapter_of(array).is_apart(array, g) or memory_of(g) is None:
        check_device(p.text, array, g, slots.items())
    check_gradient(p.text, g, p.shape, p.dtype)
    memory, parameter_memory = memory_of(g), memory_of(array)
    if memory is not None and parameter_memory is not None and memory.device != parameter_memory.device:
        raise ArrayMemoryError(
            f"{path_name(p.text)}: the gradient is on cuda:{memory.device}, the parameter on "
            f"cuda:{parameter_memory.device}"
        )
