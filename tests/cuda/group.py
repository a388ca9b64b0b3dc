"""The arguments of launches: leaves of NumPy arrays in the structures of `kernel/cuda/mod.rs`, and steps of them."""

import dataclasses
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

CHUNK = 4096
GIVEN = 256

# All that a launch may access, by name.
Memory = Sequence[tuple[str, np.ndarray]]
# An entry, the number of blocks, that of threads of a block, the bytes of `OxLaunch`, and the memory.
Launch = Callable[[str, int, int, bytes, Memory], None]


@dataclasses.dataclass
class Leaf:
    """A leaf: its arrays (gradient, parameter, slots), the scales of codes, and the slots of one number (0-d float64)."""

    arrays: Sequence[np.ndarray]
    scales: Sequence[np.ndarray] = ()
    numbers: Sequence[np.ndarray] = ()
    position: int = 0
    set: int = 0

    @property
    def length(self) -> int:
        return self.arrays[1].size


class Group:
    """The leaves of one text, and its memory on the device. ``terms`` are the places of its leaves among those of all groups."""

    def __init__(self, source: Any, leaves: Sequence[Leaf], launch: Launch, terms: Sequence[int] | None = None) -> None:
        self.source, self.leaves, self._launch = source, leaves, launch
        terms = range(len(leaves)) if terms is None else terms
        chunks = [-(-leaf.length // CHUNK) for leaf in leaves]
        self.tasks = np.array(
            [(at, chunk) for at, count in enumerate(chunks) for chunk in range(count)], np.uint32
        ).reshape(-1, 2)
        self.values = np.zeros((len(leaves), max(source.stored, 1)))
        self.partials = np.zeros((len(self.tasks), max(source.sums, 1)))
        self._first = np.cumsum([0, *chunks])
        self._terms = terms

    def _leaf(self, at: int, on_device: bool) -> bytes:
        leaf = self.leaves[at]
        row = at if on_device else leaf.set
        head = struct.pack("<QQIIII", leaf.length, leaf.position, leaf.set, row, int(self._first[at]), self._terms[at])
        return head + b"".join(
            struct.pack("<Q", array.ctypes.data) for array in (*leaf.arrays, *leaf.scales, *leaf.numbers)
        )

    def prepare(self, step: "Step", sets: Sequence[Sequence[float]], *, on_device: bool) -> None:
        """Fills in the bytes of the launches; ``sets`` are values where they are not computed ``on_device``."""
        table = b"".join(self._leaf(at, on_device) for at in range(len(self.leaves)))
        self._table = np.frombuffer(table, np.uint8).copy()
        numbers = np.array([value for own in sets for value in own], float)
        self._sets = numbers if len(numbers) > GIVEN else None
        given = np.zeros(GIVEN)
        given[: min(len(numbers), GIVEN)] = numbers[:GIVEN]
        pointers = [self._table, self.tasks, self._sets, self.values if on_device else None, self.partials]
        pointers += [step.terms, step.totals, step.control, step.batches]
        addresses = [0 if array is None else array.ctypes.data for array in pointers]
        names = "leaves tasks scalars values partials terms totals control batches".split()
        of_launch = [(name, array) for name, array in zip(names, pointers, strict=True) if array is not None]
        of_leaves = [
            (f"{kind} {number} of leaf {at}", array)
            for at, leaf in enumerate(self.leaves)
            for kind in ("arrays", "scales", "numbers")
            for number, array in enumerate(getattr(leaf, kind))
        ]
        self.memory = [*of_launch, *of_leaves]
        self.bytes = struct.pack("<12Q", *addresses, len(step.batches), step.seed, step.number) + given.tobytes()

    def run(self, entry: Any) -> None:
        grid = {"leaves": len(self.leaves), "tasks": len(self.tasks), "once": 1}[entry.scope]
        if grid:
            self._launch(entry.name, grid, entry.block, self.bytes, self.memory)


@dataclasses.dataclass
class Step:
    """A step of some groups: see "A step" in `kernel/cuda/mod.rs`."""

    groups: Sequence[Group]
    seed: int = 0
    number: int = 1
    batches: Sequence[int] | None = None
    by_control: bool = False

    def __post_init__(self) -> None:
        count = sum(len(group.leaves) for group in self.groups)
        self.terms = np.zeros(count)
        self.totals = np.zeros(max((group.source.totals for group in self.groups), default=0))
        self.batches = np.array([count] if self.batches is None else self.batches, np.uint32)
        self.by_control |= any(group.source.is_guarded for group in self.groups)
        self.control = np.zeros(2, np.uint64) if self.by_control else None
        if self.control is not None:
            self.control[0] = self.number - 1

    def is_on_device(self, group: Group) -> bool:
        """Whether the entries of a group compute its scalars."""
        return not group.source.is_plain or (self.by_control and group.source.computes_scalars)

    def run(self, sets: Sequence[Sequence[Sequence[float]]]) -> bool:
        """Launches the entries of all groups, whose sets are given; False where a guard stopped the step.

        The sets of a group whose scalars are computed on the host are those of values: see `_core.Program.scalars`.
        """
        launches = []
        for group, own in zip(self.groups, sets, strict=True):
            on_device = self.is_on_device(group)
            group.prepare(self, own, on_device=on_device)
            launches += [
                (entry.moment, entry, group)
                for entry in group.source.entries
                if entry.kind == "update" or (on_device and (entry.kind != "advance" or self.by_control))
            ]
        done = set()
        for moment, entry, group in sorted(launches, key=lambda launch: launch[0]):
            if entry.scope != "once" or moment not in done:
                group.run(entry)
                done.add(moment)
        return self.control is None or int(self.control[1] >> np.uint64(32)) == 0
