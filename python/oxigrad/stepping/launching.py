"""The launches of a step: kernels on CUDA devices that update parameters there, in place.

All that can fail comes first: kernels are compiled, tables are allocated and filled. The launches themselves are writes of the step
(see `oxigrad.stepping.writes`). A leaf whose gradient no kernel takes, such as `SparseRows`, has its rule called on arrays.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oxigrad._core import ArrayMemoryError, DtypeError, ShapeError
from oxigrad.cuda.counter import Counter
from oxigrad.cuda.driver import Call, CaptureError, DeviceError, Driver, driver
from oxigrad.cuda.launch import DeviceStep, Leaf
from oxigrad.ops.backends import adapter_of, dtype_name
from oxigrad.stepping.device_roads import memory_of
from oxigrad.stepping.places import check_places
from oxigrad.stepping.plan import Parameter, Plan
from oxigrad.stepping.quantized import Quantized
from oxigrad.stepping.resolved import ResolvedStep
from oxigrad.stepping.slots_view import ParameterSlots
from oxigrad.stepping.sparse_rows import SparseRows

# A parameter with its number in the plan.
Numbered = tuple[int, Parameter]


class Launches:
    """The launches of one step, which `writes` makes: calls of the driver, and the arrays whose memory they write."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], bool]] = []
        self.launched: list[Any] = []
        self.counters: list[Counter] = []
        self._devices: list[tuple[int, int, Driver]] = []  # the end of the calls for each device

    def add(self, used: Driver, device: int, calls: Iterable[tuple[Call, bool]]) -> None:
        """Adds calls on a device, with its context current."""
        enter, leave = used.entered(device)
        for (function, arguments), writes in ((enter, False), *calls, (leave, False)):
            self.calls.append((function, arguments, writes))
        self._devices.append((len(self.calls), device, used))

    def fail(self, number: int, status: Any) -> None:
        """Raises the error of the call with this number."""
        for end, device, used in self._devices:
            if number < end:
                used.fail(device, status)

    def of_core(self) -> dict[str, Any]:
        """The launches as arguments of `_core.Writes`."""
        return {"launches": (self.calls, self.fail), "launched": self.launched} if self.calls else {}


class DeviceSteps:
    """The steps of a plan on devices: what is kept from one to the next, and the count of steps that a device keeps.

    ``counters`` are those of the optimizer, by device.
    """

    def __init__(self, plan: Plan, counters: dict[int, Counter]) -> None:
        self.plan = plan
        self._counters = counters
        self._steps: dict[tuple[int, bool], DeviceStep] = {}  # by device, and by whether gradients are only accumulated

    def prepare(
        self,
        resolved: ResolvedStep,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, ParameterSlots],
        *,
        count: int,
    ) -> tuple[Launches, list[Numbered]]:
        """The launches of a step after ``count`` ones, and the parameters whose rules are to be called on arrays instead."""
        found: dict[int, list[Leaf]] = {}
        others: list[Numbered] = []
        for number, p in self.plan.on_devices:
            leaf = self._leaf(number, p, leaves[p.index], gradients[p.index], slots[p.text], resolved)
            if leaf is None:
                others.append((number, p))
            else:
                found.setdefault(leaf.arrays[1].device, []).append(leaf)
        if others and self.plan.needs_all:
            return Launches(), [*self.plan.on_devices]
        launches, used = Launches(), driver()
        for device, own in found.items():
            with naming(own):
                self._prepare(used, device, own, resolved, leaves, gradients, count, launches)
        positions = {leaf.position for own in found.values() for leaf in own}
        self._note(launches, resolved, leaves, gradients, slots, positions)
        return launches, others

    def _prepare(
        self,
        used: Driver,
        device: int,
        own: list[Leaf],
        resolved: ResolvedStep,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        count: int,
        launches: Launches,
    ) -> None:
        """Adds the launches on one device."""
        stream = self.stream(device, own, leaves)
        with used.current(device):
            capturing = used.is_capturing(stream)
            key, programs = (device, resolved.holds), resolved.programs_of_all
            step = self._steps.get(key)
            if step is None or not step.takes(programs, own):
                step = self._steps[key] = DeviceStep(used, device, programs, own, stream=stream, capturing=capturing)
            else:
                step.refresh(own, stream=stream, capturing=capturing)
            counter = self._counters.get(device)
            if counter is None and not capturing:
                counter = self._counters[device] = Counter(used, device, stream)
            if counter is None:
                raise CaptureError(f"cuda:{device}: memory would be allocated during a capture")
            if capturing:
                self._check_capture(own, resolved, step)
            counts = capturing or counter.is_ahead or step.is_guarded
            if counts:
                counter.begin(count)
            calls = step.prepare(
                programs,
                seed=resolved.seed,
                step=count + 1,
                control=counter.address if counts else 0,
                stream=stream,
                capturing=capturing,
            )
            if capturing:
                counter.is_ahead = True
            elif counts and not counter.is_ahead:
                calls = [*calls, *((call, False) for call in counter.calls(stream))]
                launches.counters.append(counter)
            read = [gradients[self.plan.parameters[leaf.position].index] for leaf in own]
            adapter_of(read[0]).keep_until(read, device, stream)
        launches.add(used, device, calls)

    @staticmethod
    def _check_capture(own: Sequence[Leaf], resolved: ResolvedStep, step: DeviceStep) -> None:
        """Raises `CaptureError` for a step that reads numbers of the host which differ from step to step, or that waits."""
        if not step.can_count:
            raise CaptureError(
                f"{own[0].path}: the rule has scalars that only the host computes, which a graph cannot replay"
            )
        if resolved.raises:
            raise CaptureError(f"{own[0].path}: nonfinite='raise' waits for the device: expected 'skip' in a capture")
        if resolved.varies_on_host:
            raise CaptureError(
                f"{own[0].path}: a graph replays the numbers of the step that it captured: expected hyperparameters that are "
                "no schedules, no loss scale, and accumulate=1"
            )

    def stream(self, device: int, own: Sequence[Leaf], leaves: Sequence[Any]) -> int:
        """The current stream of the libraries of these leaves; raises `ArrayMemoryError` where they are on different ones."""
        known: dict[Any, tuple[int, str]] = {}
        for leaf in own:
            array = leaves[self.plan.parameters[leaf.position].index]
            adapter = adapter_of(array)
            if adapter not in known:
                known[adapter] = adapter.current_stream(array, device), leaf.path
        (stream, first), *others = known.values()
        for other, path in others:
            if other != stream:
                raise ArrayMemoryError(
                    f"{path}: the parameter's library works on the stream {other:#x} of cuda:{device}, that of {first} on "
                    f"{stream:#x}: expected one stream on each device"
                )
        return stream

    def _leaf(
        self, number: int, p: Parameter, array: Any, g: Any, slots: ParameterSlots, resolved: ResolvedStep
    ) -> Leaf | None:
        """The leaf of a parameter; None where its rule is to be called on arrays. Raises errors with the key path."""
        if isinstance(g, SparseRows):
            return None
        check_alike(p, array, g, slots)
        rule = resolved.groups[p.group].rule
        own = [(slot, slots[slot.name]) for slot in rule.slots]
        arrays: list[Any] = [memory_of(g), memory_of(array)]
        scales: list[Any] = []
        numbers: list[Any] = []
        for slot, value in own:
            if isinstance(value, Quantized):
                arrays.append(memory_of(value.codes))
                scales.append(memory_of(value.scales))
            elif slot.is_number:
                numbers.append(memory_of(value))
            else:
                arrays.append(memory_of(value))
        memories = [memory for memory in (*arrays, *scales, *numbers) if memory is not None and memory.is_plain]
        if len(memories) < len(arrays) + len(scales) + len(numbers):
            return None
        if any(memory.shape != p.shape for memory in arrays) or any(memory.shape for memory in numbers):
            slots.check()
            return None
        if any(memory.dtype != "float64" for memory in numbers):
            return None
        program, scalar_set = resolved.layout[p.group]
        stochastic = self.plan.groups[p.group].precision.rounding == "stochastic"
        return Leaf(p.text, number, program, scalar_set, stochastic, tuple(arrays), tuple(scales), tuple(numbers))

    def _note(
        self,
        launches: Launches,
        resolved: ResolvedStep,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, ParameterSlots],
        positions: set[int],
    ) -> None:
        """Notes the arrays that the launches write."""
        for number, p in self.plan.on_devices:
            if number in positions:
                launches.launched.append(leaves[p.index])
                if resolved.zeroes:
                    launches.launched.append(gradients[p.index])
                launches.launched += [value for value in slots[p.text].values() if not isinstance(value, Quantized)]


def check_alike(p: Parameter, array: Any, g: Any, slots: Mapping[str, Any]) -> None:
    """Raises `ShapeError`, `DtypeError` or `ArrayMemoryError` for a gradient of another shape, dtype, library or device."""
    if adapter_of(array).is_apart(array, g) or memory_of(g) is None:
        check_places(p.text, array, g, slots)
    if tuple(g.shape) != p.shape:
        raise ShapeError(f"{p.text}: gradient has shape {tuple(g.shape)}, the parameter {p.shape}")
    if g.dtype != p.dtype and not (p.is_half and dtype_name(g.dtype) == "float32"):
        raise DtypeError(f"{p.text}: gradient has dtype {g.dtype}, the parameter {p.dtype}")
    memory, own = memory_of(g), memory_of(array)
    if memory is not None and own is not None and memory.device != own.device:
        raise ArrayMemoryError(f"{p.text}: the gradient is on cuda:{memory.device}, the parameter on cuda:{own.device}")


@contextlib.contextmanager
def naming(own: Sequence[Leaf]) -> Iterator[None]:
    """Puts the key path of the first of these leaves before the message of a `DeviceError` without one."""
    try:
        yield
    except DeviceError as error:
        if str(error).startswith("cuda:"):
            raise type(error)(f"{own[0].path}: {error}") from error
        raise
