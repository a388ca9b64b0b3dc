"""The pieces in which gradients and parameters are copied, and the updates of the pieces by the core."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from oxigrad._core import ArrayMemoryError
from oxigrad.ops.backends import adapter_of
from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.device.piece_run import packed
from oxigrad.stepping.parameters.executor import HOST
from oxigrad.stepping.plan.programs import step_once
from oxigrad.stepping.writes import StepWrites, call_step
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import TensorParameter
from oxigrad.torch.step.slots import TensorSlots

# Elements of a part begin at multiples of it: blocks of codes, which have a scale, have so many, or half as many.
_BLOCK = 256
# Tensors in a place begin at multiples of so many bytes.
_ALIGNMENT = 64
# The source and the target of a copy.
Pair = tuple[Any, Any]


class Part(NamedTuple):
    """The elements of a parameter from ``start`` to ``stop`` in row-major order.

    With ``is_whole``, all of them, in their shape.
    """

    parameter: TensorParameter
    start: int
    stop: int
    is_whole: bool

    def of(self, tensor: Any) -> Any:
        """These elements of a tensor like the parameter: a view, or a copy of a gradient in another order."""
        return tensor if self.is_whole else tensor.reshape(-1)[self.start : self.stop]

    def slots(self, batch: HostBatch) -> TensorSlots:
        """The slots of these elements: views."""
        slots = batch.plan.slots[self.parameter.text]
        return slots if self.is_whole else slots.within(self.start, self.stop)


class Piece:
    """Parts of parameters that are copied, and updated, together.

    In their place lie the gradients, and the parameters. The gradients of the device are kept until their copy is done.
    Where micro-batches before have a sum, the gradient is added to it, and the sum is what the update reads.
    """

    def __init__(self, batch: HostBatch, parts: Sequence[Part]) -> None:
        self.batch: HostBatch = batch
        self.parts: Sequence[Part] = parts
        # The data's version is not that of the parameter, which autograd checks.
        self._weights = [part.of(conversion.local(part.parameter.tensor.data)) for part in parts]
        self._gradients: list[Any] = [part.of(conversion.local(part.parameter.tensor.grad)) for part in parts]
        sums = [batch.sums.get(id(part.parameter.tensor)) for part in parts]
        self._sums: list[Any] = [
            None if total is None else part.of(total) for part, total in zip(parts, sums, strict=True)
        ]
        self._offsets: list[tuple[int, int]] = []
        self._place: Any = None
        self._views: tuple[list[Any], list[Any]] = [], []
        self.size: int = 0
        for w, g in zip(self._weights, self._gradients, strict=True):
            check_dtype(parts[len(self._offsets)].parameter.text, g, w)
            self._offsets.append((self._reserve(g), self._reserve(w)))

    def _reserve(self, tensor: Any) -> int:
        start, self.size = self.size, self.size + aligned(tensor.numel() * tensor.element_size())
        return start

    @property
    def paths(self) -> list[str]:
        """The names of the parameters that it has parts of."""
        return [part.parameter.text for part in self.parts]

    @property
    def device(self) -> Any:
        """The device of its parameters."""
        return self._weights[0].device

    def _placed(self, memory: Any) -> tuple[list[Any], list[Any]]:
        """The gradients and parameters in a place. Views are made once: a device waits while the host makes them."""
        if self._place is not memory:
            at = [*zip(self._offsets, self._weights, strict=True)]
            self._views = (
                [viewed(memory, start, w) for (start, _), w in at],
                [viewed(memory, start, w) for (_, start), w in at],
            )
            self._place = memory
        return self._views

    def _landed(self, memory: Any) -> tuple[list[Any], list[Any]]:
        """The gradients, of all micro-batches, and the parameters in a place."""
        gradients, weights = self._placed(memory)
        return [g if total is None else total for g, total in zip(gradients, self._sums, strict=True)], weights

    def down(self, memory: Any) -> Iterator[Pair]:
        """The copies into its place: of gradients, and of parameters that the update reads."""
        gradients, weights = self._placed(memory)
        yield from zip(self._gradients, gradients, strict=True)
        for part, source, target in zip(self.parts, self._weights, weights, strict=True):
            if self._reads(part):
                yield source, target

    def _reads(self, part: Part) -> bool:
        """Whether the update reads the parameter, rather than its master weights alone."""
        group, p = self.batch.plan.groups[part.parameter.group], part.parameter
        return not (half(p) and group.precision.master and p.executor is HOST)

    def landed(self, memory: Any) -> None:
        """Frees gradients of the device that are in host memory now, and adds them to earlier micro-batches."""
        self._gradients = []
        for total, g in zip(self._sums, self._placed(memory)[0], strict=True):
            if total is not None:
                total.add_(g)

    def check(self) -> None:
        """Raises `ArrayMemoryError` if memory of a parameter or gradient was freed or replaced since the step began."""
        for part, w in zip(self.parts, self._weights, strict=True):
            path, p = part.parameter.text, conversion.local(part.parameter.tensor.data)
            if why := adapter_of(w).obstacle(w):
                raise ArrayMemoryError(f"{path}: the parameter has become {why}, in the middle of a step")
            if p.untyped_storage().data_ptr() != w.untyped_storage().data_ptr():
                raise ArrayMemoryError(f"{path}: the memory of the parameter was replaced in the middle of a step")
        for part, g in zip(self.parts, self._gradients, strict=False):  # without gradients once they have landed
            check_gradient_memory(part.parameter.text, g)

    def measure(self, opt: Any, memory: Any, norm: MeasuredNorm) -> None:
        """Adds the norms of the gradients to ``norm``. Its parts are whole."""
        for part, g, w in zip(self.parts, *self._landed(memory), strict=True):
            norm.add(opt, self.batch.places[id(part.parameter.tensor)], g, w)

    def update(self, memory: Any) -> None:
        """Updates the parameters in their place, and their slots; rules are called on whole parameters."""
        program, plan, writes = self.batch.fill(), self.batch.plan, StepWrites()
        gradients, leaves = [*plan.parameters], [*plan.parameters]
        written, read, parameters = [], [], []
        numbers: dict[tuple[str, str], Any] = {}
        all_slots = self._slots(memory)
        for part, g, w, slots in zip(self.parts, *self._landed(memory), all_slots, strict=True):
            p = part.parameter
            gradients[p.index], leaves[p.index] = g, w
            if p.executor is HOST:
                values = [(slot, self._slot(p, slots, slot, numbers)) for slot in program.groups[p.group].rule.slots]
                parameters.append(program.host_parameter(p, w, values, first=part.start))
                written.append(w)
                read.append(g)
        slots_by_path = {part.parameter.text: slots for part, slots in zip(self.parts, all_slots, strict=True)}
        call_step(program, leaves, gradients, slots_by_path, writes)
        step_once(
            parameters,
            tuple(written),
            tuple(read),
            programs=program.programs,
            count=plan.count,
            seed=program.seed,
            writes=writes.frozen(),
        )
        self.batch.numbers |= numbers

    def _slots(self, memory: Any) -> list[TensorSlots]:
        """The slots of the elements of each part."""
        return [part.slots(self.batch) for part in self.parts]

    def _slot(self, p: TensorParameter, slots: TensorSlots, slot: Slot, numbers: dict[tuple[str, str], Any]) -> Any:
        """A slot as the core takes it; of one number a copy, since each part begins with the number before the step."""
        value = slots.of_core(slot)
        if not slot.is_number:
            return value
        key = self.batch.plan.groups[p.group].entry.key_of_slot(slot.name)
        return numbers.setdefault((p.text, key), value.clone())

    def up(self, memory: Any) -> Iterator[Pair]:
        """The copies out of its place: of parameters."""
        yield from zip(self._placed(memory)[1], self._weights, strict=True)


class Addend(NamedTuple):
    """Elements of a gradient on its device, and those of the sum; with ``is_first``, the sum has none yet."""

    path: str
    gradient: Any
    total: Any
    is_first: bool


class SumPiece:
    """Gradients that are copied down together, each into a place from where it is added to its sum."""

    def __init__(self, addends: Sequence[Addend]) -> None:
        self._addends = addends
        #: The names of the parameters.
        self.paths: list[str] = [addend.path for addend in addends]
        #: The device of the gradients.
        self.device: Any = addends[0].gradient.device
        self._offsets: list[int] = []
        self.size: int = 0
        for addend in addends:
            self._offsets.append(self.size)
            self.size += aligned(addend.gradient.nbytes)
        # Tensors with the shapes and dtypes of gradients, which take no memory.
        self._likes = [torch.empty_like(addend.gradient, device="meta") for addend in addends]

    def _placed(self, memory: Any) -> Iterator[Any]:
        return (viewed(memory, start, like) for start, like in zip(self._offsets, self._likes, strict=True))

    def down(self, memory: Any) -> Iterator[Pair]:
        """The copies of the gradients into its place."""
        return zip((addend.gradient for addend in self._addends), self._placed(memory), strict=True)

    def landed(self, memory: Any) -> None:
        """Gives the gradients of the device back."""
        self._addends = [addend._replace(gradient=None) for addend in self._addends]

    def check(self) -> None:
        """Raises `ArrayMemoryError` for a gradient whose memory was freed since the backward."""
        for addend in self._addends:
            if addend.gradient is not None:
                check_gradient_memory(addend.path, addend.gradient)

    def measure(self, opt: Any, memory: Any, norm: MeasuredNorm) -> None:
        """Raises `NotImplementedError`: gradients are measured in their step."""
        raise NotImplementedError

    def update(self, memory: Any) -> None:
        """Adds the gradients to their sums."""
        for addend, g in zip(self._addends, self._placed(memory), strict=True):
            addend.total.copy_(g) if addend.is_first else addend.total.add_(g)

    def up(self, memory: Any) -> Iterator[Pair]:
        """Nothing is copied up."""
        return iter(())


def cut(batch: HostBatch, size: int) -> list[Piece]:
    """The parameters of a batch in pieces of at most ``size`` bytes.

    A part that cannot be cut may be larger, and is then alone.
    """
    parts = [part for p in batch.plan.parameters for part in divided(batch, p, size // (2 * p.dtype.itemsize))]
    sizes = [2 * aligned((part.stop - part.start) * part.parameter.dtype.itemsize) for part in parts]
    return [Piece(batch, each) for each in packed(zip(parts, sizes, strict=True), size, _device)]


def whole(batch: HostBatch) -> list[Piece]:
    """Each parameter of a batch in a piece of its own."""
    return [Piece(batch, [_all_of(batch, p)]) for p in batch.plan.parameters]


def together(batch: HostBatch) -> list[Piece]:
    """All parameters of a batch in one piece, for rules that are called on them."""
    parts = [_all_of(batch, p) for p in batch.plan.parameters]
    return [Piece(batch, parts)] if parts else []


def check_dtype(path: str, g: Any, p: Any) -> None:
    """Raises `RuntimeError` for a gradient of another dtype than its parameter."""
    if g.dtype != p.dtype:
        raise RuntimeError(f"{path}: the gradient has dtype {g.dtype}: expected {p.dtype}, that of the parameter")


def check_gradient_memory(path: str, g: Any) -> None:
    """Raises `ArrayMemoryError` for a gradient whose memory was freed."""
    if why := adapter_of(g).unreadable(g):
        raise ArrayMemoryError(f"{path}: the gradient has become {why}, in the middle of a step")


def aligned(count: int) -> int:
    """The bytes of a tensor in a place, up to where the next one begins."""
    return -(-count // _ALIGNMENT) * _ALIGNMENT


def _device(part: Part) -> Any:
    return part.parameter.tensor.device


def _all_of(batch: HostBatch, p: TensorParameter) -> Part:
    return Part(p, 0, conversion.local(p.tensor).numel(), is_whole=True)


def divided(batch: HostBatch, p: TensorParameter, count: int) -> Iterator[Part]:
    """A parameter in parts of at most ``count`` elements, or of the least number that can be.

    One that cannot be cut is whole.
    """
    elements, step = conversion.local(p.tensor).numel(), max(count // _BLOCK, 1) * _BLOCK
    if elements <= step or not _is_cut(batch, p):
        yield _all_of(batch, p)
        return
    for start in range(0, elements, step):
        yield Part(p, start, min(start + step, elements), is_whole=False)


def _is_cut(batch: HostBatch, p: TensorParameter) -> bool:
    """Whether parts of a parameter are updated as the whole is: no sums, and rows in order."""
    group = batch.plan.groups[p.group]
    return (
        p.executor is HOST
        and not group.sums
        and conversion.local(p.tensor).is_contiguous()
        and all(conversion.real(tensor).is_contiguous() for _, tensor in batch.plan.slots[p.text].arrays())
    )


def viewed(memory: Any, start: int, like: Any) -> Any:
    """A tensor in host memory from this byte on, with another's shape and dtype, and its strides without gaps."""
    flat = memory[start : start + like.numel() * like.element_size()].view(like.dtype)
    return flat.as_strided(like.shape, like.stride()) if conversion.is_dense(like) else flat.view(like.shape)
