"""Kernels called from inside of a function that an array library compiles, such as ``jax.jit``.

Where an adapter has ``call_kernels`` (see `oxigrad.ops.backends.generic`), the elementwise rules of all leaves become
one call. It runs the kernels that update host memory, with bitwise equal results; a result reuses the memory of its
operand where the library allows it. Elsewhere, such as on a GPU and for derivatives, the rules are called on the
arrays.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad import _core, xp
from oxigrad.ops.backends import adapter_of, dtype_name, is_array
from oxigrad.step.arrays.gradient_check import check_gradient
from oxigrad.step.arrays.precision import HALVES, half
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.parameters.rule_executors import CalledLeaf, call_rules
from oxigrad.step.pure.on_copies import program_of, run_on_copies

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
    chosen = [*map(_chosen, leaves, kernels)]
    runs = dict.fromkeys(run for run, _ in chosen)
    if len(runs) > 1 and any(leaf.rule.supplied & {"total", "guard"} for leaf in leaves):
        return _called(leaves, seed)  # a value over all leaves is computed in one place
    by_leaf: dict[int, list[Any]] = {}
    keep: Any = True
    for run in runs:
        numbers = [at for at, (chosen_run, _) in enumerate(chosen) if chosen_run is run]
        results, keep = run([leaves[at] for at in numbers], [chosen[at][1] for at in numbers], seed)
        by_leaf |= zip(numbers, results, strict=True)
    return [by_leaf[at] for at in range(len(leaves))], keep


def _chosen(leaf: CalledLeaf, kernel: Kernels) -> tuple[Callable[..., tuple[Results, Any]], Any]:
    """The function that runs the rule of a leaf, and the program or the kernel that it takes."""
    program = program_of(leaf, kernel)
    if program is not None:
        return run_on_copies, program
    return (_run_fused, kernel) if _fits(leaf) and kernel() is not None else (_run_called, None)


def _run_called(leaves: Sequence[CalledLeaf], _: Sequence[None], seed: int) -> tuple[Results, Any]:
    return _called(leaves, seed)


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

# The operands of a step: the scalars that are known only when calls run, and the gradient, the parameter and the slots
# of each leaf.
Shared = list[Any]
Operands = list[list[Any]]
# The program of a leaf, by the options of `trace`.
Programs = Callable[..., "_core.Program"]
# The shape and the dtype's name of a new array.
New = tuple[tuple[int, ...], str]
# The first scalar of each rule and its values.
Sets = dict[tuple[int, int], int]


def _run_fused(leaves: Sequence[CalledLeaf], kernels: Sequence[Programs], seed: int) -> tuple[Results, Any]:
    """The results of each leaf, and whether the step was taken, by calls of kernels; by rules if none is possible."""
    sets: Sets = {}
    scalars: list[Any] = []
    for leaf in leaves:
        if _set_of(leaf) not in sets:
            sets[_set_of(leaf)] = len(scalars)
            scalars += map(leaf.values.__getitem__, leaf.rule.numbers)
    shared = {id(value): value for value in scalars if is_array(value)}
    traced = {at: [*shared].index(id(value)) for at, value in enumerate(scalars) if is_array(value)}
    numbers = [0.0 if at in traced else float(value) for at, value in enumerate(scalars)]
    text = functools.partial(_text, sets, numbers, [*traced.items()], seed)
    is_random = any("noise" in leaf.rule.supplied or _is_rounded_at_random(leaf) for leaf in leaves)
    call = adapter_of(leaves[0].p).call_kernels
    outputs = call and call(
        functools.partial(_by_kernels, leaves, kernels, text),
        functools.partial(_by_rules, leaves, kernels, sets, traced, seed),
        [[*shared.values()], [[leaf.g, *leaf.before()] for leaf in leaves]],
        everywhere=not is_random,
    )
    if outputs is None:
        return _called(leaves, seed)
    results, guard = outputs
    return results, guard[0] if guard else True


def _by_kernels(
    leaves: Sequence[CalledLeaf], kernels: Sequence[Programs], text: Any, call: Any, shared: Shared, operands: Operands
) -> tuple[Results, list[Any]]:
    """The new parameter and slots of each leaf, and if there is a guard whether the step was taken."""
    parts = [slice(start, start + _MOST_LEAVES) for start in range(0, len(leaves), _MOST_LEAVES)]
    options, totals = dict[str, str](), list[Any]()
    results, guards = list[list[Any]](), list[Any]()
    if len(parts) > 1 and any("total" in leaf.rule.supplied for leaf in leaves):
        programs = [kernel(totals="results") for kernel in kernels]
        # The two halves of the bits of each total over all leaves.
        new: list[New] = [((2 * programs[0].results,), "uint32")]
        _, totals = _call(call, text, leaves, programs, shared, operands, new, measures=True)
        options, text = {"totals": "given"}, functools.partial(text, totals=len(shared))
    for part in parts:
        programs = [kernel(**options) for kernel in kernels[part]]
        new = [((), "bool")] if any(program.is_guarded for program in programs) else []
        of_part, guard = _call(call, text, leaves[part], programs, [*shared, *totals], operands[part], new)
        results += of_part
        guards += guard
    return results, guards[:1]


def _call(
    call: Any,
    text: Any,
    leaves: Sequence[CalledLeaf],
    programs: Sequence["_core.Program"],
    shared: Shared,
    operands: Operands,
    new: list[New],
    *,
    measures: bool = False,
) -> tuple[Results, list[Any]]:
    """The new parameter and slots of some leaves by one call, and its ``new`` results.

    The operands are in the order that ``rust/core/src/exec/xla/handler.rs`` states. A call that ``measures`` changes
    nothing, and takes only the arrays that the programs read.
    """
    taken, changed, sizes = [*shared], list[tuple[int, int, int]](), list[tuple[int, int]]()
    for number, (leaf, program) in enumerate(zip(leaves, programs, strict=True)):
        are_numbers = [False, False, *(slot.is_number for slot in leaf.rule.slots)]
        arrays, numbers = ([at for at, each in enumerate(are_numbers) if each is kind] for kind in (False, True))
        if measures:  # each leaf keeps at least one array
            arrays = arrays[: max(program.inputs, 1)]
        written = () if measures else (*program.written, *range(len(arrays), len(arrays) + len(numbers)))
        order = [*arrays, *numbers]
        changed += [(number, order[at], len(taken) + at) for at in written]
        taken += map(operands[number].__getitem__, order)
        sizes.append((len(arrays), len(numbers)))
    outputs = call(text(leaves, programs, sizes, measures=measures), taken, [at for *_, at in changed] + new)
    after = [[*each] for each in operands]
    for (number, at, _), result in zip(changed, outputs, strict=False):
        after[number][at] = result
    return [each[1:] for each in after], [*outputs[len(changed) :]]


def _text(
    sets: Sets,
    scalars: Sequence[float],
    traced: Sequence[tuple[int, int]],
    seed: int,
    leaves: Sequence[CalledLeaf],
    programs: Sequence["_core.Program"],
    sizes: Sequence[tuple[int, int]],
    **how: Any,
) -> str:
    """The text of a call for leaves with ``sizes`` numbers of arrays and of slots that are numbers: see `xla_call`."""
    distinct: dict[int, tuple[Any, int, int, int]] = {}
    described = []
    for leaf, program, counts in zip(leaves, programs, sizes, strict=True):
        distinct.setdefault(id(program), (program, len(leaf.rule.numbers), *counts))
        number = [*distinct].index(id(program))
        described.append((number, sets[_set_of(leaf)], leaf.position, leaf.stochastic))
    return _core.xla_call([*distinct.values()], described, scalars, traced, seed=seed, **how)


def _by_rules(
    leaves: Sequence[CalledLeaf],
    kernels: Sequence[Programs],
    sets: Sets,
    traced: Mapping[int, int],
    seed: int,
    shared: Shared,
    operands: Operands,
) -> tuple[Results, list[Any]]:
    """As `_by_kernels`, by the rules of the leaves."""
    values: dict[tuple[int, int], dict[str, Any]] = {}
    called = []
    for leaf, (g, p, *slots) in zip(leaves, operands, strict=True):
        key = _set_of(leaf)
        if key not in values:
            places = [(name, traced.get(sets[key] + at)) for at, name in enumerate(leaf.rule.numbers)]
            values[key] = {**leaf.values, **{name: shared[at] for name, at in places if at is not None}}
        by_name = {slot.name: array for slot, array in zip(leaf.rule.slots, slots, strict=True)}
        called.append(dataclasses.replace(leaf, g=g, p=p, slots=by_name, values=values[key]))
    results, keep = _called(called, seed)
    same_dtypes = [
        [xp.astype(new, old.dtype) for new, old in zip(result, leaf.before(), strict=True)]
        for result, leaf in zip(results, called, strict=True)
    ]
    return same_dtypes, [keep] if any(kernel().is_guarded for kernel in kernels) else []


def _set_of(leaf: CalledLeaf) -> tuple[int, int]:
    """The identity of the numbers that the rule of a leaf takes."""
    return id(leaf.rule), id(leaf.values)


def _is_rounded_at_random(leaf: CalledLeaf) -> bool:
    return leaf.stochastic and any(half(array) for array in (leaf.p, *leaf.slots.values()))
