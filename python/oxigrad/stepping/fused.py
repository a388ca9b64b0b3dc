"""Kernels called from inside of a function that an array library compiles, such as ``jax.jit``.

Where an adapter has ``call_kernels`` (see `oxigrad.ops.backends.generic`), the elementwise rules of all leaves become one call.
It runs the kernels that update host memory, and so gives the same bits; a result lies in the memory of its operand where the
library may reuse that. Elsewhere, such as on a GPU and for derivatives, the rules are called on the arrays.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from oxigrad import _core, xp
from oxigrad.ops.backends import adapter_of, dtype_name, is_array, size_of
from oxigrad.stepping.executors import Leaf, call_rules, check_gradient
from oxigrad.stepping.precision import HALVES, half
from oxigrad.stepping.sparse_rows import SparseRows

_COMPUTED = ("float32", "float64")
# The numbers of the arrays of a leaf, as `_core.Program.written` has them; slots come after them.
_GRADIENT, _PARAMETER, _SLOTS = 0, 1, 2

Results = list[list[Any]]


def run_rules(leaves: Sequence[Leaf], programs: Sequence["_core.Program | None"], seed: int) -> tuple[Results, Any]:
    """The new parameter and slots of each leaf, as `call_rules`, but where a guard stops the step they are the old ones.

    Leaves with a program (see `trace`) go through one fused call where their library has it, the others by their rules.
    Also returns whether the step was taken: True, or a Boolean array.
    """
    fits = [program is not None and _fits(leaf) for leaf, program in zip(leaves, programs, strict=True)]
    if not all(fits) and any(leaf.rule.supplied & {"total", "guard"} for leaf in leaves):
        fits = [False] * len(leaves)  # what is of all leaves is computed in one place
    own = [pair for *pair, fit in zip(leaves, programs, fits, strict=True) if fit]
    found = _Call([leaf for leaf, _ in own], [program for _, program in own], seed).run() if own else None
    if found is None:
        return _called(leaves, seed)
    fused, _, keep = found
    called, _ = _called([leaf for leaf, fit in zip(leaves, fits, strict=True) if not fit], seed)
    by_fit = {True: iter(fused), False: iter(called)}
    return [next(by_fit[fit]) for fit in fits], keep


def run_flat(
    leaves: Sequence[Leaf], program: "_core.Program", slots: Mapping[str, Any], seed: int
) -> tuple[list[Any], dict[str, Any], Any]:
    """As `run_rules`, for leaves of one rule whose slots are one array each, which holds all leaves one after the other.

    A slot that is an array is a vector with as many elements as all leaves together, one that is a number a vector with a number
    for each leaf. The slots of the leaves themselves are not looked at. A compiled function pays for each array that it
    returns, so that this is faster where there are many leaves.

    Returns the new parameters, or their changes if ``program`` writes these (see `trace`); the new slots; and whether the step was
    taken. Where a guard stops it, slots stay, and so do parameters, or changes are zero.
    """
    split = [dataclasses.replace(leaf, slots=own) for leaf, own in zip(leaves, _split(leaves, slots), strict=True)]
    if all(_fits(leaf) for leaf in split):
        found = _Call(leaves, [program] * len(leaves), seed, slots).run()
        if found is not None:
            return [new for new, *_ in found[0]], {**slots, **found[1]}, found[2]
    results, keep = _called(split, seed)
    new = [result[0] for result in results]
    if _GRADIENT in program.written:
        new = [p - leaf.p for p, leaf in zip(new, leaves, strict=True)]
    return new, _joined(leaves[0], results), keep


def _called(leaves: Sequence[Leaf], seed: int) -> tuple[Results, Any]:
    """`call_rules`, with the old parameters and slots where a guard stops the step."""
    results, keep = call_rules(leaves, seed)
    return [select(keep, result, _before(leaf)) for leaf, result in zip(leaves, results, strict=True)], keep


def select(condition: Any, these: list[Any], those: list[Any]) -> list[Any]:
    """``these`` arrays where the condition holds, ``those`` elsewhere."""
    if condition is True:
        return these
    return [None if a is None else xp.where(condition, a, b) for a, b in zip(these, those, strict=True)]


def _before(leaf: Leaf) -> list[Any]:
    return [leaf.p, *(leaf.slots.get(slot.name) for slot in leaf.rule.slots)]


def _split(leaves: Sequence[Leaf], slots: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The slots of each leaf, as parts of those of all leaves."""
    found: list[dict[str, Any]] = [{} for _ in leaves]
    ends = [*itertools.accumulate([size_of(leaf.p.shape) for leaf in leaves], initial=0)]
    for slot in leaves[0].rule.slots:
        flat = slots[slot.name]
        for at, (own, leaf) in enumerate(zip(found, leaves, strict=True)):
            part = flat[at] if slot.is_number else flat[ends[at] : ends[at + 1]]
            own[slot.name] = part if slot.is_number else xp.reshape(part, tuple(leaf.p.shape))
    return found


def _joined(leaf: Leaf, results: Results) -> dict[str, Any]:
    """The slots of all leaves, of the results of each; ``leaf`` is any of them."""
    columns = zip(*(after for _, *after in results), strict=True)
    flat = [xp.concat([xp.reshape(part, (-1,)) for part in parts]) for parts in columns]
    return {slot.name: array for slot, array in zip(leaf.rule.slots, flat, strict=True)}


def _fits(leaf: Leaf) -> bool:
    """Whether kernels take the arrays of a leaf: of one library, of floating-point dtypes, and of the shapes that they must have.

    Raises `ShapeError` or `DtypeError` for a gradient that no rule takes.
    """
    adapter = adapter_of(leaf.p)
    if adapter.call_kernels is None or leaf.decays or isinstance(leaf.g, SparseRows):
        return False
    check_gradient(leaf)

    def fits(array: Any, *, is_number: bool = False) -> bool:
        dtypes, shape = (_COMPUTED, ()) if is_number else ((*HALVES, *_COMPUTED), tuple(leaf.p.shape))
        is_own = is_array(array) and adapter_of(array) is adapter
        return is_own and dtype_name(array.dtype) in dtypes and tuple(array.shape) == shape

    slots = [(leaf.slots.get(slot.name), slot.is_number) for slot in leaf.rule.slots]
    return fits(leaf.p) and fits(leaf.g) and all(fits(array, is_number=is_number) for array, is_number in slots)


@dataclasses.dataclass
class _Places:
    """The operands of a leaf, by number."""

    g: int
    p: int
    slots: dict[str, int]


class _Call:
    """A call of the kernels of some leaves. Operands and results have the order that ``rust/python/src/xla/handler.rs`` states.

    Where slots are ``flat``, they are one array for all leaves each.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        programs: Sequence["_core.Program"],
        seed: int,
        flat: Mapping[str, Any] | None = None,
    ) -> None:
        self._leaves, self._programs, self._seed, self._flat = leaves, programs, seed, flat
        self._operands: list[Any] = []
        self._results: list[int] = []  # the operand that each result takes the place of
        self._scalars: list[float] = []
        self._traced: dict[int, int] = {}  # the operands of scalars that are known only when the call runs
        self._sets: dict[tuple[int, int], int] = {}  # the first scalar of each rule and its values
        for leaf in leaves:
            self._add_scalars(leaf)
        self._places = [self._add_leaf(leaf, program) for leaf, program in zip(leaves, programs, strict=True)]
        self._flat_places = {} if flat is None else self._add_slots(leaves[0], programs[0], flat)
        self._is_guarded = any(program.is_guarded for program in programs)

    def run(self) -> tuple[Results, dict[str, Any], Any] | None:
        """The results of each leaf, the flat slots, and whether the step was taken; None if there can be no call."""
        aliased = [*self._results, None] if self._is_guarded else self._results
        is_random = any("noise" in leaf.rule.supplied or _is_rounded_at_random(leaf) for leaf in self._leaves)
        call = adapter_of(self._leaves[0].p).call_kernels
        found = call(self._text(), self._operands, aliased, self._by_rules, everywhere=not is_random)
        if found is None:
            return None
        *found, keep = found if self._is_guarded else (*found, True)
        after = [*self._operands]
        for place, result in zip(self._results, found, strict=True):
            after[place] = result
        results = [
            [
                after[places.g if _GRADIENT in program.written else places.p],
                *(after[at] for at in places.slots.values()),
            ]
            for places, program in zip(self._places, self._programs, strict=True)
        ]
        return results, {name: after[at] for name, at in self._flat_places.items()}, keep

    def _text(self) -> str:
        programs: dict[int, tuple[Any, int, int, int]] = {}
        for leaf, program in zip(self._leaves, self._programs, strict=True):
            numbers = sum(slot.is_number for slot in leaf.rule.slots)
            sizes = len(leaf.rule.numbers), len(leaf.rule.slots) - numbers, numbers
            programs.setdefault(id(program), (program, *sizes))
        order = {key: at for at, key in enumerate(programs)}
        leaves = [
            (order[id(program)], self._sets[_set_of(leaf)], leaf.position, leaf.stochastic)
            for leaf, program in zip(self._leaves, self._programs, strict=True)
        ]
        traced, is_flat = [*self._traced.items()], self._flat is not None
        return _core.xla_call([*programs.values()], leaves, self._scalars, traced, seed=self._seed, flat=is_flat)

    # --- operands ------------------------------------------------------------------------------------------------------

    def _add(self, array: Any, *, is_written: bool = False) -> int:
        at = len(self._operands)
        self._operands.append(array)
        if is_written:
            self._results.append(at)
        return at

    def _add_scalars(self, leaf: Leaf) -> None:
        """Adds the numbers of the rule of a leaf, once for those that share them."""
        if _set_of(leaf) in self._sets:
            return
        self._sets[_set_of(leaf)] = len(self._scalars)
        for name in leaf.rule.numbers:
            value = leaf.values[name]
            if is_array(value):
                known = [at for at, operand in enumerate(self._operands) if operand is value]
                self._traced[len(self._scalars)] = known[0] if known else self._add(value)
            self._scalars.append(0.0 if is_array(value) else float(value))

    def _add_leaf(self, leaf: Leaf, program: "_core.Program") -> _Places:
        g = self._add(leaf.g, is_written=_GRADIENT in program.written)
        p = self._add(leaf.p, is_written=_PARAMETER in program.written)
        return _Places(g, p, self._add_slots(leaf, program, leaf.slots) if self._flat is None else {})

    def _add_slots(self, leaf: Leaf, program: "_core.Program", slots: Mapping[str, Any]) -> dict[str, int]:
        """Adds the slots that are arrays, then those that are numbers; returns their operands in the order of the rule."""
        arrays = [slot.name for slot in leaf.rule.slots if not slot.is_number]
        numbers = [slot.name for slot in leaf.rule.slots if slot.is_number]
        written = {name for number, name in enumerate(arrays, _SLOTS) if number in program.written}
        places = {name: self._add(slots[name], is_written=name in written) for name in arrays}
        places |= {name: self._add(slots[name], is_written=True) for name in numbers}
        return {slot.name: places[slot.name] for slot in leaf.rule.slots}

    # --- the same by rules ---------------------------------------------------------------------------------------------

    def _by_rules(self, *operands: Any) -> list[Any]:
        """The results of the call on other operands, by the rules of the leaves."""
        values: dict[tuple[int, int], dict[str, Any]] = {}
        for leaf in self._leaves:
            first = self._sets[_set_of(leaf)]
            traced = ((name, self._traced.get(first + at)) for at, name in enumerate(leaf.rule.numbers))
            given = {name: operands[at] for name, at in traced if at is not None}
            values.setdefault(_set_of(leaf), {**leaf.values, **given})
        leaves = [
            dataclasses.replace(
                leaf,
                p=operands[places.p],
                g=operands[places.g],
                slots={name: operands[at] for name, at in places.slots.items()},
                values=values[_set_of(leaf)],
            )
            for leaf, places in zip(self._leaves, self._places, strict=True)
        ]
        if self._flat is not None:
            split = _split(leaves, {name: operands[at] for name, at in self._flat_places.items()})
            leaves = [dataclasses.replace(leaf, slots=own) for leaf, own in zip(leaves, split, strict=True)]
        results, keep = _called(leaves, self._seed)
        after: dict[int, Any] = {}
        for leaf, places, (new, *slots) in zip(leaves, self._places, results, strict=True):
            after |= {places.g: new - leaf.p, places.p: new, **dict(zip(places.slots.values(), slots, strict=False))}
        if self._flat is not None:
            joined = _joined(leaves[0], results)
            after |= {at: joined[name] for name, at in self._flat_places.items()}
        return [*(after[place] for place in self._results), *([keep] if self._is_guarded else [])]


def _set_of(leaf: Leaf) -> tuple[int, int]:
    """The identity of the numbers that the rule of a leaf takes."""
    return id(leaf.rule), id(leaf.values)


def _is_rounded_at_random(leaf: Leaf) -> bool:
    return leaf.stochastic and any(half(array) for array in (leaf.p, *leaf.slots.values()))
