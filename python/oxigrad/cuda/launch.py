"""Launches of a step on one device: groups of leaves, their tables in device memory, and the calls of the driver.

A *group* is the set of leaves of one program with the same dtypes. Its text is compiled once. Its table of leaves stays
in device memory, and rows of leaves whose arrays have moved are rewritten. A step packs its numbers into the arguments
of the launches.
"""

import ctypes
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oxigrad.cuda import loss_scale, tables
from oxigrad.cuda.device import WARM_UP, device_record
from oxigrad.cuda.driver import Call, CaptureError, Driver
from oxigrad.cuda.memory import Arena
from oxigrad.cuda.overlap import Spans

if TYPE_CHECKING:
    from oxigrad._core import CudaEntry, CudaSource, Program
    from oxigrad.ops.backends import DeviceMemory

# The number of texts that are kept.
_REMEMBERED = 256
# The programs of a step, each with its sets of scalars.
Programs = Sequence[tuple["Program", Sequence[Sequence[float]]]]


class DeviceLeaf(NamedTuple):
    """A leaf of a step: its key path and number in the model, and the numbers of its program and scalar set.

    ``arrays`` are the memory of the gradient, of the parameter and of array slots. ``scales`` are the memory of the
    scales of quantized slots, and ``numbers`` of scalar slots.
    """

    path: str
    position: int
    program: int
    set: int
    stochastic: bool
    arrays: "tuple[DeviceMemory, ...]"
    scales: "tuple[DeviceMemory, ...]"
    numbers: "tuple[DeviceMemory, ...]"

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the arrays."""
        return tuple([memory.dtype for memory in self.arrays])

    @property
    def number_dtype(self) -> str:
        """The dtype of the slots of one number."""
        return self.numbers[0].dtype if self.numbers else "float64"

    @property
    def pointers(self) -> list[int]:
        """The addresses that kernels read."""
        return [memory.address for memory in (*self.arrays, *self.scales, *self.numbers)]

    @property
    def length(self) -> int:
        """The number of elements."""
        length = 1
        for extent in self.arrays[1].shape:
            length *= extent
        return length

    def is_like(self, other: "DeviceLeaf") -> bool:
        """Whether the other leaf has the same place in a step, so that only its addresses may differ."""
        return self[:5] == other[:5] and all(
            a.dtype == b.dtype and a.shape == b.shape for a, b in zip(self.memories, other.memories, strict=True)
        )

    @property
    def memories(self) -> "tuple[DeviceMemory, ...]":
        """All of its memory."""
        return (*self.arrays, *self.scales, *self.numbers)


class Group:
    """The leaves of one program with the same dtypes."""

    def __init__(self, program: int, source: "CudaSource", leaves: list[DeviceLeaf]) -> None:
        self.program: int = program
        self.source: CudaSource = source
        self.leaves: list[DeviceLeaf] = leaves
        self.tasks: int = sum(tables.chunks(leaf.length) for leaf in leaves)
        self.pointers: list[list[int]] = [leaf.pointers for leaf in leaves]
        # The argument of its launches, and the array of pointers to arguments.
        self._argument = ctypes.create_string_buffer(tables.LAUNCH_SIZE)
        self._pointers = (ctypes.c_void_p * 1)(ctypes.addressof(self._argument))
        self.argument: memoryview = memoryview(self._argument).cast("B")
        self.arguments: int = ctypes.addressof(self._pointers)

    def place(self, arena: Arena, sets: int) -> None:
        """Lays out its tables, and the memory that its entries write."""
        source, count = self.source, len(self.leaves)
        self.row_size: int = 8 * (tables.FIRST_POINTER + len(self.pointers[0]))
        self.places: dict[str, int] = {
            "leaves": arena.place(self.row_size * count),
            "tasks": arena.place(tables.TASK_SIZE * self.tasks),
            "values": arena.place(8 * source.stored * max(count, sets)),
            "partials": arena.place(8 * source.sums * self.tasks),
            "scalars": arena.place(8 * sets * max(source.scalars, source.stored)),
        }

    def table(self, first_terms: Mapping[int, int]) -> np.ndarray:
        """The table of its leaves; ``first_terms`` maps positions to leaf numbers counted over all groups."""
        starts = itertools.accumulate((tables.chunks(leaf.length) for leaf in self.leaves), initial=0)
        by_set = self.source.is_plain  # so that one table serves steps with and without values on the device
        fields = [
            (leaf.length, leaf.position, leaf.set, leaf.set if by_set else row, start, first_terms[leaf.position])
            for row, (leaf, start) in enumerate(zip(self.leaves, starts, strict=False))
        ]
        return tables.leaf_table(fields, self.pointers)

    def blocks(self, entry: "CudaEntry") -> int:
        """The number of blocks of an entry."""
        return {"leaves": len(self.leaves), "tasks": self.tasks, "once": 1}[entry.scope]


class DeviceStep:
    """The launches of steps of a fixed set of leaves on one device.

    ``scales_at`` are the positions of the reciprocal of a loss scale among the scalars of programs, if the device keeps
    the scale. Raises `RuleError` for an op without a device form, `CompileError`, and the errors of a `Driver`. Raises
    `CaptureError` during a capture, since memory is allocated.
    """

    def __init__(
        self,
        driver: Driver,
        number: int,
        programs: Programs,
        leaves: Sequence[DeviceLeaf],
        *,
        scales_at: Mapping[int, int],
        stream: int,
        capturing: bool,
    ) -> None:
        self._scales_at = scales_at
        self._device = device_record(driver, number)
        self._driver = driver
        self._leaves = [*leaves]
        self._programs = [program for program, _ in programs]
        self._groups = group(programs, leaves)
        self.is_plain: bool = all(each.source.is_plain for each in self._groups)
        self.is_guarded: bool = any(each.source.is_guarded for each in self._groups)
        texts = {each.source.text: [entry.name for entry in each.source.entries] for each in self._groups}
        if scales_at:
            texts[loss_scale.TEXT] = [*loss_scale.ENTRIES]
        self._modules = {text: self._device.load(text, names, capturing=capturing) for text, names in texts.items()}
        self._spans = self._memory()
        self._spans.check([np.array(each.pointers, np.uint64) for each in self._groups])
        self._place(programs, stream, capturing=capturing)
        self._calls: dict[tuple[int, bool], list[tuple[Call, bool]]] = {}
        self._uploaded: dict[int, tuple[float, ...]] = {}
        #: Whether a graph reads its tables, which then must not change.
        self.is_captured = False

        at = {
            leaf.position: (number, row)
            for number, each in enumerate(self._groups)
            for row, leaf in enumerate(each.leaves)
        }
        self._group_of, self._row_of = np.array([at[leaf.position] for leaf in leaves], np.int64).reshape(-1, 2).T

    # --- tables -------------------------------------------------------------------------------------------------------

    def _place(self, programs: Programs, stream: int, *, capturing: bool) -> None:
        """Allocates the tables and the memory that entries write, and fills the tables."""
        arena, terms, ends = Arena(), dict[int, int](), list[int]()
        for number in range(len(programs)):
            leaves = [leaf for leaf in self._leaves if leaf.program == number]
            terms |= {leaf.position: len(terms) + at for at, leaf in enumerate(leaves)}
            ends += [len(terms)] if leaves else []
        for each in self._groups:
            each.place(arena, len(programs[each.program][1]))
        totals = max(each.source.totals for each in self._groups)
        shared = {
            "terms": arena.place(8 * len(terms)),
            "totals": arena.place(8 * totals),
            "batches": arena.place(4 * len(ends)),
        }
        targets_at = arena.place(8 * sum(len(programs[each.program][1]) for each in self._groups))
        self._block = self._device.allocate(arena.size, stream, capturing=capturing)
        base = self._block.address
        parts: list[tuple[int, bytes | memoryview]] = [(base + shared["batches"], tables.batch_bytes(ends))]
        self._fixed: list[tables.Launch] = []
        self._tables: list[np.ndarray] = []
        for each in self._groups:
            self._tables.append(table := each.table(terms))
            tasks = tables.task_bytes([leaf.length for leaf in each.leaves])
            parts += [(base + each.places["leaves"], table.tobytes()), (base + each.places["tasks"], tasks)]
            group_addresses = {name: base + at for name, at in each.places.items()}
            addresses = {
                **group_addresses,
                **{name: base + at for name, at in shared.items()},
                "batch_count": len(ends),
            }
            self._fixed.append(tables.Launch(**addresses))
        targets = [*self._scale_targets(programs)]
        parts.append((base + targets_at, loss_scale.addresses(targets)))
        self._scale = loss_scale.ScaleLaunches(base + targets_at, len(targets))
        self._device.staging.upload_parts([part for part in parts if len(part[1])], stream)
        self._ends = ends

    def _memory(self) -> Spans:
        """The memory of all leaves."""
        paths = [[leaf.path for leaf in each.leaves] for each in self._groups]
        sizes = [np.array([[*map(_size, leaf.memories)] for leaf in each.leaves], np.int64) for each in self._groups]
        written = []
        for each in self._groups:
            outputs, arrays = {*self._programs[each.program].written}, len(each.leaves[0].arrays)
            written.append([at in outputs or at >= arrays for at in range(len(each.pointers[0]))])
        return Spans(paths, sizes, written)

    def _scale_targets(self, programs: Programs) -> Iterator[int]:
        """The addresses of the reciprocals of the loss scale among the scalars of all sets."""
        for each, fixed in zip(self._groups, self._fixed, strict=True):
            if each.program in self._scales_at:
                for number in range(len(programs[each.program][1])):
                    yield fixed.scalars + 8 * (number * each.source.scalars + self._scales_at[each.program])

    @property
    def can_count(self) -> bool:
        """Whether the number of the step can be in memory of the device."""
        kinds = [{entry.kind for entry in each.source.entries} for each in self._groups]
        return all({"scalars", "advance"} <= group_kinds for group_kinds in kinds)

    def takes(self, programs: Programs, leaves: Sequence[DeviceLeaf], scales_at: Mapping[int, int]) -> bool:
        """Whether it was made for these programs and leaves, wherever their arrays are now."""
        if scales_at != self._scales_at or len(leaves) != len(self._leaves) or len(programs) != len(self._programs):
            return False
        are_same = all(a is b for a, (b, _) in zip(self._programs, programs, strict=True))
        return are_same and all(a is b or a.is_like(b) for a, b in zip(leaves, self._leaves, strict=True))

    def has_moved(self, leaves: Sequence[DeviceLeaf]) -> bool:
        """Whether an array of these leaves is elsewhere than in the tables."""
        return any((a != b).any() for a, b in zip(self._filled(leaves), self._tables, strict=True))

    def refresh(self, leaves: Sequence[DeviceLeaf], *, stream: int, capturing: bool) -> None:
        """Rewrites the rows of leaves whose arrays have moved. Raises `CaptureError` during a capture."""
        self._write(self._filled(leaves), stream, capturing)
        self._leaves = [*leaves]

    def relocate(self, moves: np.ndarray, *, stream: int, capturing: bool) -> None:
        """As `refresh`, for leaves that differ only by addresses. Rows are the leaf, the column and the new address."""
        numbers, columns = moves[:, :2].astype(np.int64).T
        new = [table.copy() for table in self._tables]
        groups, rows = self._group_of[numbers], self._row_of[numbers]
        for number, table in enumerate(new):
            of_group = groups == number
            table[rows[of_group], tables.FIRST_POINTER + columns[of_group]] = moves[of_group, 2]
        self._write(new, stream, capturing)

    def _filled(self, leaves: Sequence[DeviceLeaf]) -> list[np.ndarray]:
        """The tables with the addresses of these leaves."""
        new = [table.copy() for table in self._tables]
        for number, table in enumerate(new):
            pointers = [leaves[at].pointers for at in np.flatnonzero(self._group_of == number).tolist()]
            table[:, tables.FIRST_POINTER :] = np.array(pointers, np.uint64)
        return new

    def _write(self, new: list[np.ndarray], stream: int, capturing: bool) -> None:
        """Replaces the tables; only rows that differ are copied to the device."""
        parts: list[tuple[int, bytes | memoryview]] = []
        for each, fixed, table, before in zip(self._groups, self._fixed, new, self._tables, strict=True):
            rows = np.flatnonzero((table != before).any(axis=1))
            if not rows.size:
                continue
            if capturing:
                raise CaptureError(
                    f"{each.leaves[rows[0]].path}: an array has moved since the step before the capture: expected "
                    "gradients that keep their memory (zero_grad(set_to_none=False), or a warm-up step in the "
                    "capture's memory "
                    "pool)"
                )
            first, last = int(rows[0]), int(rows[-1]) + 1
            parts.append((fixed.leaves + each.row_size * first, table[first:last].tobytes()))
        if parts:
            self._spans.check_again([table[:, tables.FIRST_POINTER :] for table in new])
            self._device.staging.upload_parts(parts, stream)
            self._tables = new

    # --- launches -----------------------------------------------------------------------------------------------------

    def prepare(
        self,
        programs: Programs,
        *,
        seed: int,
        step: int,
        control: int,
        scale: tuple[int, float, float] | None = None,
        stream: int,
        capturing: bool,
    ) -> list[tuple[Call, bool]]:
        """The calls of a step, each with whether it writes to the model's memory. ``control`` is an address, or 0.

        Without ``control``, ``step`` is the number of the step, from 1 on. ``scale`` holds the address of a loss scale
        on the device, its factor and its interval.
        """
        self._block.use_on(stream)
        if scale is not None:
            self._scale.pack(scale[0], control, *scale[1:])
        by_host = self.is_plain and not control
        parts: list[tuple[int, bytes | memoryview]] = []
        for number, (each, fixed) in enumerate(zip(self._groups, self._fixed, strict=True)):
            program, sets = programs[each.program]
            numbers = self._numbers(program, each.source, sets, by_host=by_host, counted=bool(control))
            fields = fixed._replace(
                scalars=0,
                values=0 if by_host else fixed.values,
                control=control,
                seed=seed,
                step=step,
                batch_count=len(self._ends),
            )
            if len(numbers) <= tables.MOST_NUMBERS and not self._scales_at:
                fields.pack_into(each.argument, numbers)
                continue
            fields._replace(scalars=fixed.scalars).pack_into(each.argument, ())
            if self._uploaded.get(number) != numbers:
                if capturing:
                    raise CaptureError(f"cuda:{self._device.number}: hyperparameters have changed: {WARM_UP}")
                parts.append((fixed.scalars, memoryview(_doubles(numbers)).cast("B")))
                self._uploaded[number] = numbers
        if parts:
            self._device.staging.upload_parts(parts, stream)
        return self._launches(stream, by_host=by_host, counted=bool(control))

    @staticmethod
    def _numbers(
        program: "Program", source: "CudaSource", sets: Sequence[Sequence[float]], *, by_host: bool, counted: bool
    ) -> tuple[float, ...]:
        """The numbers of all sets: results of the scalar program, or its inputs if the device evaluates it."""
        if by_host:
            return tuple([value for scalars in sets for value in program.scalars(list(scalars))])
        first = [0.0] if counted else []
        return tuple([value for scalars in sets for value in (*first, *scalars[len(first) : source.scalars])])

    def _launches(self, stream: int, *, by_host: bool, counted: bool) -> list[tuple[Call, bool]]:
        key = stream, counted
        if key not in self._calls:
            self._calls = {key: self._make_calls(stream, by_host=by_host, counted=counted)}
        return self._calls[key]

    def _make_calls(self, stream: int, *, by_host: bool, counted: bool) -> list[tuple[Call, bool]]:
        chosen: list[tuple[int, Group, CudaEntry]] = []
        once: set[int] = set()
        for each in self._groups:
            for entry in each.source.entries:
                skipped = entry.kind != "update" if by_host else entry.kind == "advance" and not counted
                if skipped or not each.blocks(entry) or (entry.scope == "once" and entry.moment in once):
                    continue
                if entry.scope == "once":
                    once.add(entry.moment)
                chosen.append((entry.moment, each, entry))
        driver, number = self._driver, self._device.number
        calls = [
            (
                driver.launch(
                    number,
                    self._modules[each.source.text].functions[entry.name],
                    each.blocks(entry),
                    entry.block,
                    stream,
                    each.arguments,
                ),
                True,
            )
            for _, each, entry in sorted(chosen, key=lambda item: item[0])
        ]
        if not self._scales_at:
            return calls
        functions = [self._modules[loss_scale.TEXT].functions[name] for name in loss_scale.ENTRIES]
        read, update = self._scale.calls(driver, number, functions, stream)
        kinds = [entry.kind for _, _, entry in sorted(chosen, key=lambda item: item[0])]
        at = kinds.index("advance")  # which forgets whether the step was stopped
        return [read, *calls[:at], update, *calls[at:]]


def group(programs: Programs, leaves: Iterable[DeviceLeaf]) -> list[Group]:
    """The groups of leaves, by program, dtypes and rounding. Raises `RuleError` for an op without a device form."""
    by_key: dict[tuple[Any, ...], list[DeviceLeaf]] = {}
    for leaf in leaves:
        numbers = len(leaf.numbers), leaf.stochastic, leaf.number_dtype
        by_key.setdefault((leaf.program, leaf.dtypes, numbers), []).append(leaf)
    return [
        Group(number, text_of(programs[number][0], dtypes, len(programs[number][1][0]), *numbers), members)
        for (number, dtypes, numbers), members in by_key.items()
    ]


@functools.lru_cache(_REMEMBERED)
def text_of(
    program: "Program",
    dtypes: tuple[str, ...],
    scalars: int,
    numbers: int,
    stochastic: bool,
    number_dtype: str = "float64",
) -> "CudaSource":
    """The text of a program for arrays of these dtypes. Raises `RuleError` for an op without a device form."""
    return program.cuda(dtypes, scalars=scalars, numbers=numbers, number_dtype=number_dtype, stochastic=stochastic)


def _doubles(numbers: Sequence[float]) -> Any:
    return (ctypes.c_double * len(numbers))(*numbers)


_BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "uint8": 8, "uint4": 4}


def _size(memory: "DeviceMemory") -> int:
    bits = _BITS[memory.dtype]
    for extent in memory.shape:
        bits *= extent
    return -(-bits // 8)
