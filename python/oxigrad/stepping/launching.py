"""The launches of a step: kernels on CUDA devices that update parameters there, in place.

All that can fail comes first: kernels are compiled, tables are allocated and filled. The launches themselves are writes of the step
(see `oxigrad.stepping.writes`). A leaf whose gradient no kernel takes, such as `SparseRows`, has its rule called on arrays.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import ArrayMemoryError, DtypeError, ShapeError
from oxigrad.cuda.counter import Counter
from oxigrad.cuda.driver import Call, CaptureError, DeviceError, Driver, driver
from oxigrad.cuda.launch import WARM_UP, DeviceStep, Leaf
from oxigrad.ops.backends import DeviceMemory, adapter_of, detached, dtype_name, is_array, laid_out_like
from oxigrad.ops.backends import resolved as unlazy
from oxigrad.stepping.device_roads import memory_of
from oxigrad.stepping.device_scale import DeviceScale
from oxigrad.stepping.places import check_places
from oxigrad.stepping.plan import Parameter, Plan
from oxigrad.stepping.quantized import Quantized
from oxigrad.stepping.resolved import ResolvedStep
from oxigrad.stepping.slots_view import ParameterSlots
from oxigrad.stepping.sparse_rows import SparseRows

# A parameter with its number in the plan.
Numbered = tuple[int, Parameter]


class LayoutError(Exception):
    """The elements of a parameter lie in another order of axes than that for which the plan was made."""


class Launches:
    """The launches of one step, which `writes` makes: calls of the driver, and the arrays whose memory they write."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], bool]] = []
        self.launched: list[Any] = []
        # Copies that kernels read in place of gradients, whose memory is theirs until the calls were made.
        self.copies: list[Any] = []
        self.counters: list[Counter] = []
        #: The loss scale that kernels read and update, if they do.
        self.scale: DeviceScale | None = None
        # The end of the calls for each device, and the key path of a leaf there.
        self._devices: list[tuple[int, int, Driver, str]] = []

    def add(self, used: Driver, device: int, path: str, calls: Iterable[tuple[Call, bool]]) -> None:
        """Adds calls on a device, with its context current; ``path`` names a leaf in errors."""
        enter, leave = used.entered(device)
        for (function, arguments), writes in ((enter, False), *calls, (leave, False)):
            self.calls.append((function, arguments, writes))
        self._devices.append((len(self.calls), device, used, path))

    def assign(self, array: Any, value: Any) -> None:
        """Adds a copy of the result of a rule into the memory of a parameter, by its library."""
        self.calls.append((_assigned, (array, value), True))

    def fail(self, number: int, status: Any) -> None:
        """Raises the error of the call with this number."""
        for end, device, used, path in self._devices:
            if number < end:
                with naming([path]):
                    used.fail(device, status)

    def of_core(self) -> dict[str, Any]:
        """The launches as arguments of `_core.Writes`."""
        return {"launches": (self.calls, self.fail), "launched": self.launched} if self.calls else {}


def _assigned(array: Any, value: Any) -> tuple[int]:
    adapter_of(array).assign(array, value)
    return (0,)


class Known:
    """The leaves of a step by device, valid while every array is where it was.

    Where libraries do not tell places in a fast way, descriptions of the memory are compared.
    """

    def __init__(self, plan: Plan, leaves: dict[int, list[Leaf]], arrays: list[Any], slots: list[Any]) -> None:
        self._plan, self.leaves, self._slots = plan, leaves, slots
        self._places = _core.Places.of([*arrays, *slots])
        self._memory = None if self._places else [*map(memory_of, (*arrays, *slots))]

    def holds(self, arrays: list[Any]) -> bool:
        """Whether parameters and gradients, and the slots, are where they were."""
        if self._places is not None:
            return self._places.hold([*arrays, *self._slots])
        return self._memory == [memory_of(array) if is_array(array) else None for array in (*arrays, *self._slots)]


class DeviceSteps:
    """The steps of a plan on devices: what is kept from one to the next, and the count of steps that a device keeps.

    ``counters`` are those of the optimizer, by device.
    """

    def __init__(self, plan: Plan, counters: dict[int, Counter]) -> None:
        self.plan = plan
        self._counters = counters
        self._indices = [p.index for _, p in plan.on_devices]
        # By whether gradients are only accumulated, and steps also by device.
        self._known: dict[bool, Known] = {}
        self._steps: dict[tuple[int, bool], DeviceStep] = {}

    def prepare(
        self,
        resolved: ResolvedStep,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, ParameterSlots],
        *,
        count: int,
        exposed: bool,
        scale: DeviceScale | None = None,
    ) -> tuple[Launches, list[Numbered]]:
        """The launches of a step after ``count`` ones, and the parameters whose rules are to be called on arrays instead.

        Slots that are ``exposed`` may be observed by others, whose libraries are told of changes.
        """
        params, given = [leaves[i] for i in self._indices], [gradients[i] for i in self._indices]
        known, others, copies = self._known.get(resolved.holds), list[Numbered](), dict[int, Any]()
        is_steady = known is not None and known.holds([*params, *given])
        if known is None or not is_steady:
            found, others = self._found(resolved, leaves, gradients, slots, copies)
            if others and (self.plan.needs_all or not found):
                self._known.clear()
                return Launches(), [*self.plan.on_devices]
            own = [slot for _, p in self.plan.on_devices for slot in _arrays(slots[p.text])]
            known = Known(self.plan, found, [*params, *given], own)
        launches, used = Launches(), driver()
        launches.scale = scale
        for device, of_device in known.leaves.items():
            numbers = [(at, self.plan.on_devices[at][0]) for at in self._positions(of_device)]
            read = [copies.get(number, given[at]) for at, number in numbers]
            with naming([leaf.path for leaf in of_device]):
                self._prepare(used, device, of_device, resolved, leaves, read, count, launches, is_steady=is_steady)
        self._known[resolved.holds] = known
        if others or copies:
            self._known.clear()
        launches.copies = [*copies.values()]
        for number in copies if resolved.zeroes else ():
            launches.assign(gradients[self.plan.parameters[number].index], copies[number])
        written = {at for of_device in known.leaves.values() for at in self._positions(of_device)}
        for at in sorted(written) if others else range(len(params)):
            launches.launched.append(params[at])
            if resolved.zeroes:
                launches.launched.append(given[at])
            if exposed:
                launches.launched += _arrays(slots[self.plan.on_devices[at][1].text])
        return launches, others

    def _positions(self, leaves: Sequence[Leaf]) -> list[int]:
        """The numbers of leaves among all parameters on devices."""
        at = {number: at for at, (number, _) in enumerate(self.plan.on_devices)}
        return [at[leaf.position] for leaf in leaves]

    def _found(
        self,
        resolved: ResolvedStep,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, ParameterSlots],
        copies: dict[int, Any],
    ) -> tuple[dict[int, list[Leaf]], list[Numbered]]:
        """The leaves by device, and the parameters that no kernel takes. Adds to ``copies`` of gradients, by parameter."""
        self.plan.check_given(gradients)
        found: dict[int, list[Leaf]] = {}
        others: list[Numbered] = []
        for number, p in self.plan.on_devices:
            leaf = self._leaf(number, p, leaves[p.index], gradients[p.index], slots[p.text], resolved, copies)
            if leaf is None:
                others.append((number, p))
            else:
                found.setdefault(leaf.arrays[1].device, []).append(leaf)
        return found, others

    def _prepare(
        self,
        used: Driver,
        device: int,
        own: list[Leaf],
        resolved: ResolvedStep,
        leaves: Sequence[Any],
        read: Sequence[Any],
        count: int,
        launches: Launches,
        *,
        is_steady: bool,
    ) -> None:
        """Adds the launches on one device; ``read`` are the gradients."""
        stream = self.stream(device, own, leaves)
        with used.current(device):
            capturing = used.is_capturing(stream)
            key, programs = (device, resolved.holds), resolved.programs_of_all
            step = self._steps.get(key)
            if step is None or not (is_steady or step.takes(programs, own, resolved.scales_at)):
                step = self._steps[key] = DeviceStep(
                    used, device, programs, own, scales_at=resolved.scales_at, stream=stream, capturing=capturing
                )
            elif not is_steady and step.is_captured and not capturing and step.has_moved(own):
                # The graph that captured it reads its tables.
                step = self._steps[key] = DeviceStep(
                    used, device, programs, own, scales_at=resolved.scales_at, stream=stream, capturing=False
                )
            elif not is_steady:
                step.refresh(own, stream=stream, capturing=capturing)
            counter = self._counters.get(device)
            if counter is None:
                if capturing:
                    raise CaptureError(f"cuda:{device}: memory would be allocated during a capture: {WARM_UP}")
                counter = self._counters[device] = Counter(used, device, stream)
            counter.stream = stream
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
                scale=launches.scale.of_kernel if launches.scale else None,
                stream=stream,
                capturing=capturing,
            )
            if capturing:
                counter.is_ahead = step.is_captured = True
                counter.keep(step)
            elif counts and not counter.is_ahead:
                calls = [*calls, *((call, False) for call in counter.calls(stream))]
                launches.counters.append(counter)
            adapter_of(read[0]).keep_until(read, device, stream)
        launches.add(used, device, own[0].path, calls)

    @staticmethod
    def _check_capture(own: Sequence[Leaf], resolved: ResolvedStep, step: DeviceStep) -> None:
        """Raises `CaptureError` for a step that reads numbers of the host which differ from step to step, or that waits."""
        if not step.can_count:
            raise CaptureError(
                f"{own[0].path}: the rule has scalars that only the host computes, which a graph cannot replay"
            )
        if resolved.raises:
            raise CaptureError(f"{own[0].path}: nonfinite='raise' waits for the device: expected 'skip' in a capture")
        if resolved.varies_on_host or resolved.scales_there:
            raise CaptureError(
                f"{own[0].path}: a graph replays the numbers of the step that it captured: expected hyperparameters that are "
                "no schedules, no loss scale, and accumulate=1"
            )

    @staticmethod
    def _copied(p: Parameter, array: Any, g: Any, memory: DeviceMemory | None, *, zeroes: bool) -> Any:
        """A copy of a gradient with its elements in the order of the parameter's. Raises `ArrayMemoryError` if it cannot be zeroed."""
        if zeroes and memory is not None and not memory.is_writable:
            raise ArrayMemoryError(
                f"{p.text}: the gradient, where zero_gradients is to leave zeros, is read-only: expected one that can be written"
            )
        return laid_out_like(detached(unlazy(g)), array)

    def stream(self, device: int, own: Sequence[Leaf], leaves: Sequence[Any]) -> int:
        """The current stream of the libraries of these leaves; raises `ArrayMemoryError` where they are on different ones."""
        known: dict[type, tuple[int, str]] = {}
        for leaf in own:
            array = leaves[self.plan.parameters[leaf.position].index]
            if type(array) not in known:
                known[type(array)] = adapter_of(array).current_stream(array, device), leaf.path
        (stream, first), *others = known.values()
        for other, path in others:
            if other != stream:
                raise ArrayMemoryError(
                    f"{path}: the parameter's library works on the stream {other:#x} of cuda:{device}, that of {first} on "
                    f"{stream:#x}: expected one stream on each device"
                )
        return stream

    def _leaf(
        self,
        number: int,
        p: Parameter,
        array: Any,
        g: Any,
        slots: ParameterSlots,
        resolved: ResolvedStep,
        copies: dict[int, Any],
    ) -> Leaf | None:
        """The leaf of a parameter; None where its rule is to be called on arrays. Raises errors with the key path."""
        if isinstance(g, SparseRows):
            return None
        check_alike(p, array, g, slots)
        rule = resolved.groups[p.group].rule
        own = [(slot, slots[slot.name]) for slot in rule.slots]
        own_memory, memory = memory_of(array), memory_of(g)
        if own_memory is not None and (own_memory.strides is not None) != p.is_permuted:
            raise LayoutError
        if own_memory is not None and not (memory and memory.is_dense and memory.strides == own_memory.strides):
            copies[number] = self._copied(p, array, g, memory, zeroes=resolved.zeroes)
            memory = memory_of(copies[number])
        arrays: list[Any] = [memory, own_memory]
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
        strides = None if own_memory is None else own_memory.strides
        if not all(memory and memory.is_dense and memory.strides == strides for memory in arrays):
            return None
        if not all(memory and memory.is_plain for memory in (*scales, *numbers)):
            return None
        if any(memory.shape != p.shape for memory in arrays) or any(memory.shape for memory in numbers):
            slots.check()
            return None
        if any(memory.dtype != "float64" for memory in numbers):
            return None
        program, scalar_set = resolved.layout[p.group]
        stochastic = self.plan.groups[p.group].precision.rounding == "stochastic"
        return Leaf(p.text, number, program, scalar_set, stochastic, tuple(arrays), tuple(scales), tuple(numbers))


def as_placed(slot: Any, array: Any) -> Any:
    """A slot of a parameter on a device, with its elements in the order of the parameter's where it has the same shape."""
    memory, own = (None, None) if isinstance(slot, Quantized) else (memory_of(slot), memory_of(array))
    if memory is None or own is None or memory.shape != own.shape or memory.strides == own.strides:
        return slot
    return laid_out_like(slot, array)


def _arrays(slots: Mapping[str, Any]) -> list[Any]:
    """The arrays of the slots of a parameter."""
    found: list[Any] = []
    for slot in slots.values():
        found += (slot.codes, slot.scales) if isinstance(slot, Quantized) else (slot,)
    return found


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
def naming(paths: Sequence[str]) -> Iterator[None]:
    """Puts the first of these key paths before the message of a `DeviceError` that begins with none of them."""
    try:
        yield
    except DeviceError as error:
        if str(error).partition(":")[0] in paths:
            raise
        raise type(error)(f"{paths[0]}: {error}") from error
