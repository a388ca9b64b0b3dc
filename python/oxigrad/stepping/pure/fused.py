"""Kernels called from inside of a function that an array library compiles, such as ``jax.jit``.

Where an adapter has ``call_kernels`` (see `oxigrad.ops.backends.generic`), the elementwise rules of all leaves become
one call. It runs the kernels that update host memory, with bitwise equal results; a result reuses the memory of its
operand where the library allows it. Elsewhere, such as on a GPU and for derivatives, the rules are called on the
arrays.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oxigrad import _core, xp
from oxigrad.ops.backends import adapter_of, dtype_name, is_array
from oxigrad.stepping.arrays.gradient_check import check_gradient
from oxigrad.stepping.arrays.precision import HALVES, half
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.parameters.rule_executors import CalledLeaf, call_rules
from oxigrad.stepping.pure.on_copies import program_of, run_on_copies

_COMPUTED = ("float32", "float64")
_FLOATING = (*HALVES, *_COMPUTED)
# The most leaves of one call: XLA takes more than quadratic time to compile a call in the number of arrays that it
# updates.
_MOST_LEAVES = 32

Results = list[list[Any]]
# The kernel of a rule (see `ParameterGroup.traced`), by the options of `trace`; None for a rule that is not
# elementwise.
Kernels = Callable[..., "_core.Program | None"]


def run_rules(leaves: Sequence[CalledLeaf], kernels: Sequence[Kernels], seed: int) -> tuple[Results, Any]:
    """The new parameter and slots of each leaf, as `call_rules`; the old ones if a guard stops the step.

    Leaves of elementwise rules go through kernels where they are in host memory or their library has calls of them, the
    others by their rules. Also returns whether the step was taken: True, or a Boolean array.
    """
    on_host = [program_of(leaf, kernel) for leaf, kernel in zip(leaves, kernels, strict=True)]
    programs = [program for program in on_host if program is not None]
    is_parted = len(programs) < len(leaves) and any(leaf.rule.supplied & {"total", "guard"} for leaf in leaves)
    if not programs or is_parted:
        return _run_elsewhere(leaves, kernels, seed)
    results, keep = run_on_copies(
        [leaf for leaf, program in zip(leaves, on_host, strict=True) if program is not None], programs, seed
    )
    others = [at for at, program in enumerate(on_host) if program is None]
    if not others:
        return results, keep
    elsewhere, _ = _run_elsewhere([leaves[at] for at in others], [kernels[at] for at in others], seed)
    return _merged([program is not None for program in on_host], results, elsewhere), keep


def _merged(chosen: Sequence[bool], these: Results, those: Results) -> Results:
    """``these`` results at the positions that are chosen, ``those`` at the others."""
    each = {True: iter(these), False: iter(those)}
    return [next(each[is_chosen]) for is_chosen in chosen]


def _run_elsewhere(leaves: Sequence[CalledLeaf], kernels: Sequence[Kernels], seed: int) -> tuple[Results, Any]:
    """`run_rules` by calls of kernels that an array library compiles, and by rules."""
    fits = [*map(_fits, leaves)]
    programs = [kernel() if fit else None for kernel, fit in zip(kernels, fits, strict=True)]
    fits = [program is not None for program in programs]
    if not all(fits) and any(leaf.rule.supplied & {"total", "guard"} for leaf in leaves):
        fits = [False] * len(leaves)  # a value over all leaves is computed in one place
    fused_leaves = [(leaf, kernel) for leaf, kernel, fit in zip(leaves, kernels, fits, strict=True) if fit]
    outcome = (
        _Step([leaf for leaf, _ in fused_leaves], [kernel for _, kernel in fused_leaves], seed).run()
        if fused_leaves
        else None
    )
    if outcome is None:
        return _called(leaves, seed)
    fused, keep = outcome
    called, _ = _called([leaf for leaf, fit in zip(leaves, fits, strict=True) if not fit], seed)
    return _merged(fits, fused, called), keep


def _called(leaves: Sequence[CalledLeaf], seed: int) -> tuple[Results, Any]:
    """`call_rules`, with the old parameters and slots where a guard stops the step."""
    results, keep = call_rules(leaves, seed)
    return [select(keep, result, leaf.before()) for leaf, result in zip(leaves, results, strict=True)], keep


def select(condition: Any, these: list[Any], those: list[Any]) -> list[Any]:
    """``these`` arrays where the condition holds, ``those`` elsewhere."""
    if condition is True:
        return these
    return [None if a is None else xp.where(condition, a, b) for a, b in zip(these, those, strict=True)]


# --- the arrays that kernels take -------------------------------------------------------------------------------------


def _fits(leaf: CalledLeaf) -> bool:
    """Whether kernels take the arrays of a leaf.

    Raises `ShapeError` or `DtypeError` for a gradient that no rule takes.
    """
    adapter = adapter_of(leaf.p)
    if adapter.call_kernels is None or leaf.decays or isinstance(leaf.g, SparseRows):
        return False
    if "drawn_at" in leaf.values and ("noise" in leaf.rule.supplied or leaf.stochastic):
        return False  # a call draws random numbers from the step that the rule reads
    check_gradient(leaf.path, leaf.g, tuple(leaf.p.shape), leaf.p.dtype)
    shape = tuple(leaf.p.shape)
    return all(_is_operand(array, adapter, shape) for array in (leaf.p, leaf.g)) and all(
        _is_operand(
            leaf.slots.get(slot.name),
            adapter,
            () if slot.is_number else shape,
            _COMPUTED if slot.is_number else _FLOATING,
        )
        for slot in leaf.rule.slots
    )


def _is_operand(array: Any, adapter: Any, shape: tuple[int, ...], dtypes: Sequence[str] = _FLOATING) -> bool:
    is_own = is_array(array) and adapter_of(array) is adapter
    return is_own and dtype_name(array.dtype) in dtypes and tuple(array.shape) == shape


# --- calls ------------------------------------------------------------------------------------------------------------


class _Step:
    """A step of some leaves by calls of kernels.

    The operands are the scalars that are known only when the calls run, then the arrays of the leaves. A call takes
    some of them, in the order that ``rust/core/src/exec/xla/handler.rs`` states.
    """

    def __init__(self, leaves: Sequence[CalledLeaf], kernels: Sequence[Kernels], seed: int) -> None:
        self._leaves, self._kernels, self._seed = leaves, kernels, seed
        self._operands: list[Any] = []
        self._scalars: list[float] = []
        self._traced: dict[int, int] = {}  # the operands of scalars
        self._sets: dict[tuple[int, int], int] = {}  # the first scalar of each rule and its values
        for leaf in leaves:
            self._add_scalars(leaf)
        self._numbers = len(self._operands)
        #: The operands of each leaf: its gradient, its parameter and its slots.
        self._places = [
            [*map(self._add, (leaf.g, leaf.p, *(leaf.slots[slot.name] for slot in leaf.rule.slots)))] for leaf in leaves
        ]
        programs = self._programs(range(len(leaves)))
        self._is_guarded = any(program.is_guarded for program in programs)
        #: The operands that are changed, in order.
        self._changed = sorted({place for at, program in enumerate(programs) for place in self._written(at, program)})

    def run(self) -> tuple[Results, Any] | None:
        """The results of each leaf, and whether the step was taken; None if there can be no call."""
        is_random = any("noise" in leaf.rule.supplied or _is_rounded_at_random(leaf) for leaf in self._leaves)
        call = adapter_of(self._leaves[0].p).call_kernels
        outputs = call and call(self._by_kernels, self._by_rules, self._operands, everywhere=not is_random)
        if outputs is None:
            return None
        *outputs, keep = outputs if self._is_guarded else (*outputs, True)
        after = dict(enumerate(self._operands)) | dict(zip(self._changed, outputs, strict=True))
        return [[after[at] for at in places[1:]] for places in self._places], keep

    def _add(self, array: Any) -> int:
        self._operands.append(array)
        return len(self._operands) - 1

    def _add_scalars(self, leaf: CalledLeaf) -> None:
        """Adds the numbers of the rule of a leaf, once for those that share them."""
        if _set_of(leaf) in self._sets:
            return
        self._sets[_set_of(leaf)] = len(self._scalars)
        for name in leaf.rule.numbers:
            value = leaf.values[name]
            if is_array(value):
                places = [at for at, operand in enumerate(self._operands) if operand is value]
                self._traced[len(self._scalars)] = places[0] if places else self._add(value)
            self._scalars.append(0.0 if is_array(value) else float(value))

    def _programs(self, numbers: Iterable[int], **options: Any) -> list["_core.Program"]:
        """The programs of these leaves."""
        programs = [self._kernels[at](**options) for at in numbers]
        return [program for program in programs if program is not None]

    def _arrays(self, at: int) -> list[int]:
        """The operands of the arrays of a leaf, in the order of `_core.Program.written`."""
        return [*self._places[at][:2], *self._slots(at, are_numbers=False)]

    def _slots(self, at: int, *, are_numbers: bool) -> list[int]:
        """The operands of the slots of a leaf that are numbers, or that are arrays."""
        slots = zip(self._leaves[at].rule.slots, self._places[at][2:], strict=True)
        return [place for slot, place in slots if slot.is_number is are_numbers]

    def _written(self, at: int, program: "_core.Program") -> list[int]:
        """The operands of a leaf that a program changes."""
        arrays = self._arrays(at)
        return [*(arrays[number] for number in program.written), *self._slots(at, are_numbers=True)]

    # --- by kernels ---------------------------------------------------------------------------------------------------

    def _by_kernels(self, call: Any, *operands: Any) -> list[Any]:
        """The operands that are changed, and if there is a guard whether the step was taken."""
        count, after, others = len(self._leaves), [*operands], []
        parts = [range(start, min(start + _MOST_LEAVES, count)) for start in range(0, count, _MOST_LEAVES)]
        totals = None
        if len(parts) > 1 and any("total" in leaf.rule.supplied for leaf in self._leaves):
            totals = self._totals(call, after)
        for part in parts:
            programs = self._programs(part, **({} if totals is None else {"totals": "given"}))
            guard = [((), "bool")] if any(program.is_guarded for program in programs) else []
            others += self._call(call, part, programs, after, totals=totals, new=guard)
        return [*(after[place] for place in self._changed), *others[:1]]

    def _totals(self, call: Any, operands: list[Any]) -> Any:
        """The totals over all leaves, each as the two halves of its bits, by a call that changes nothing."""
        part = range(len(self._leaves))
        programs = self._programs(part, totals="results")
        new = [((2 * programs[0].results,), "uint32")]
        return self._call(call, part, programs, operands, new=new, measures=True)[0]

    def _call(
        self,
        call: Any,
        part: range,
        programs: Sequence["_core.Program"],
        operands: list[Any],
        *,
        new: list[tuple[tuple[int, ...], str]],
        totals: Any = None,
        measures: bool = False,
    ) -> list[Any]:
        """Makes a call for some leaves: replaces changed operands, and returns the ``new`` results.

        One that ``measures`` changes nothing, and takes only the arrays that the programs read.
        """
        arrays, numbers = [self._arrays(at) for at in part], [self._slots(at, are_numbers=True) for at in part]
        if measures:  # each leaf keeps at least one array
            arrays = [each[: max(program.inputs, 1)] for each, program in zip(arrays, programs, strict=True)]
        written = [[each[at] for at in program.written] for each, program in zip(arrays, programs, strict=True)]
        places, changed = _in_order(arrays, numbers), [] if measures else _in_order(written, numbers)
        shared = [operands[at] for at in range(self._numbers)] + ([] if totals is None else [totals])
        local = {place: len(shared) + at for at, place in enumerate(places)}
        sizes = [(len(each), len(others)) for each, others in zip(arrays, numbers, strict=True)]
        text = self._text(part, programs, sizes, totals=None if totals is None else self._numbers, measures=measures)
        outputs = call(text, shared + [operands[at] for at in places], [local[place] for place in changed] + new)
        for place, result in zip(changed, outputs, strict=False):
            operands[place] = result
        return list(outputs[len(changed) :])

    def _text(
        self, part: range, programs: Sequence["_core.Program"], sizes: Sequence[tuple[int, int]], **how: Any
    ) -> str:
        """The text of a call for leaves with ``sizes`` numbers of arrays and of slots that are numbers.

        ``how`` is that of `_core.xla_call`.
        """
        distinct: dict[int, tuple[Any, int, int, int]] = {}
        leaves = []
        for at, program, counts in zip(part, programs, sizes, strict=True):
            leaf = self._leaves[at]
            distinct.setdefault(id(program), (program, len(leaf.rule.numbers), *counts))
            number = [*distinct].index(id(program))
            leaves.append((number, self._sets[_set_of(leaf)], leaf.position, leaf.stochastic))
        return _core.xla_call(
            [*distinct.values()],
            leaves,
            self._scalars,
            [*self._traced.items()],
            seed=self._seed,
            **how,
        )

    # --- by rules -----------------------------------------------------------------------------------------------------

    def _by_rules(self, *operands: Any) -> list[Any]:
        """As `_by_kernels`, by the rules of the leaves."""
        values: dict[tuple[int, int], dict[str, Any]] = {}
        for leaf in self._leaves:
            first = self._sets[_set_of(leaf)]
            traced = ((name, self._traced.get(first + at)) for at, name in enumerate(leaf.rule.numbers))
            traced_values = {name: operands[at] for name, at in traced if at is not None}
            values.setdefault(_set_of(leaf), {**leaf.values, **traced_values})
        leaves = [
            dataclasses.replace(
                leaf,
                g=operands[g],
                p=operands[p],
                slots={slot.name: operands[at] for slot, at in zip(leaf.rule.slots, slots, strict=True)},
                values=values[_set_of(leaf)],
            )
            for leaf, (g, p, *slots) in zip(self._leaves, self._places, strict=True)
        ]
        results, keep = _called(leaves, self._seed)
        after: dict[int, Any] = {}
        for places, of_leaf in zip(self._places, results, strict=True):
            after |= dict(zip(places[1:], of_leaf, strict=True))
        changed = [xp.astype(after[place], operands[place].dtype) for place in self._changed]
        return [*changed, *([keep] if self._is_guarded else [])]


def _in_order(arrays: list[list[int]], numbers: list[list[int]]) -> list[int]:
    """The operands of leaves, or the changed ones of them, in the order of a call."""
    return [place for each, others in zip(arrays, numbers, strict=True) for place in each + others]


def _set_of(leaf: CalledLeaf) -> tuple[int, int]:
    """The identity of the numbers that the rule of a leaf takes."""
    return id(leaf.rule), id(leaf.values)


def _is_rounded_at_random(leaf: CalledLeaf) -> bool:
    return leaf.stochastic and any(half(array) for array in (leaf.p, *leaf.slots.values()))
