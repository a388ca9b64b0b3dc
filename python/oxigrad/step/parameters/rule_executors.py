"""Executors of rules: a rule traced into a kernel, and a rule called on arrays."""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import _core, xp
from oxigrad._core import RuleError, ShapeError
from oxigrad._names import path_name
from oxigrad.ops.backends import (
    REFUSALS,
    adapter_of,
    beneath,
    device_of,
    fetched,
    is_array,
    namespace,
    size_of,
    to_host,
)
from oxigrad.ops.core.aliasing import WrittenError, apart
from oxigrad.rules.core.rule import Evaluation, ResultsError, Rule, Stages
from oxigrad.step.arrays.combined import combined
from oxigrad.step.arrays.device_noise import DeviceNoise, draws_on_device
from oxigrad.step.arrays.gradient_check import check_gradient
from oxigrad.step.arrays.places import check_device, is_ours, is_unreadable
from oxigrad.step.arrays.precision import half, rounded, widened
from oxigrad.step.arrays.sparse_rows import LAST_STEP, SparseRows, factors, like_column, put_rows
from oxigrad.step.parameters.rule_context import RECORDED, namespace_of, rule_tape, value_of, watched


def trace(
    rule: Rule,
    flags: Mapping[str, Any],
    *,
    zero_gradients: bool = False,
    catches_up: bool = False,
    totals: str = "computed",
) -> Any:
    """The kernel of a rule, traced by one call on symbols. Raises `RuleError` where it is not elementwise.

    With ``zero_gradients`` it leaves zeros in the gradient. Where it ``catches_up``, slots are first multiplied by
    factors, further array inputs in the order of the slots. ``totals`` are "computed"; or they are the "results", and
    nothing is written; or they are "given", as scalars after all others.
    """
    tape = _core.symbols()
    g, p = tape.leaf(), tape.leaf()
    arrays = {slot.name: tape.leaf() for slot in rule.slots if not slot.is_number}
    numbers = {name: tape.scalar() for name in rule.numbers}
    before = [arrays[slot.name] if not slot.is_number else tape.scalar() for slot in rule.slots]
    caught = [
        b if slot.is_number or not catches_up else b * tape.leaf() for slot, b in zip(rule.slots, before, strict=True)
    ]
    guards: list[Any] = []
    summed: list[Any] = []

    def total(value: Any) -> Any:
        summed.append(tape.scalar() if totals == "given" else tape.total(xp.sum(value)))
        return summed[-1]

    supplied: dict[str, Any] = {"noise": tape.noise, "total": total, "guard": guards.append}
    try:
        new, *after = rule.run(xp, p, g, caught, {**supplied, **numbers, **flags})
        if totals == "results":
            return tape.compile([], [], summed, None)
        values = [(0, g, 0.0 if zero_gradients else g), (1, p, new)]
        slot_values = [(b, a) for slot, b, a in zip(rule.slots, before, after, strict=True) if not slot.is_number]
        values += [(2 + k, b, a) for k, (b, a) in enumerate(slot_values)]
        changed = [(k, a) for k, b, a in values if a is not b]
        results = [a for slot, a in zip(rule.slots, after, strict=True) if slot.is_number]
        guard = guards[0] if guards else None
        for further in guards[1:]:
            guard = guard * further
        return tape.compile([a for _, a in changed], [k for k, _ in changed], results, guard)
    except ResultsError:
        raise
    except RuleError as error:
        prefix = f"the rule {rule.name}: "  # which errors of the rule itself have
        message = f"{prefix}{str(error).removeprefix(prefix)}; define(..., elementwise=False) calls it on arrays"
        raise RuleError(message) from None


def kernel_of(rule: Rule, flags: Mapping[str, Any], **options: Any) -> Any:
    """The kernel of a rule, as `trace` makes it, once for each flags and options; None if not elementwise."""
    if not rule.elementwise:
        return None
    return rule.remembering(_traced)(rule, tuple(flags.items()), tuple(options.items()))


def _traced(rule: Rule, flags: tuple[tuple[str, Any], ...], options: tuple[tuple[str, Any], ...]) -> Any:
    return trace(rule, dict(flags), **dict(options))


_NAME, _P, _RESULTS = map(operator.attrgetter, ("name", "p", "results"))


@dataclasses.dataclass
class CalledLeaf:
    """One parameter that a rule is called on: its key path, its arrays, and its hyperparameters of the step.

    Where slots catch up, ``decays`` are theirs. ``rows`` are those of the parameter that the arrays are of, if not all,
    and ``whole`` the number of its elements.
    """

    path: str
    position: int
    rule: Rule
    p: Any
    g: Any
    slots: Mapping[str, Any]
    values: Mapping[str, Any]
    decays: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stochastic: bool = False
    rows: Any = None
    whole: int = 0

    def operands(self) -> list[Any]:
        """The values that its rule computes with."""
        return [self.p, self.g, *self.slots.values(), *self.values.values()]

    @property
    def drawn_at(self) -> int:
        """The number of the optimizer's step, for random numbers: ``step`` lacks steps that missed the parameter."""
        step = self.values.get("drawn_at", self.values["step"])
        if is_array(step) and adapter_of(step).is_traced(step):
            raise RuleError(
                f"{path_name(self.path)}: the rule {self.rule.name} is called on arrays, and its random numbers are "
                "drawn on the host by the number of "
                "the step, which is traced: expected a step outside of the compiled function"
            )
        return int(step)

    def before(self) -> list[Any]:
        """The parameter and its slots, None for absent ones, in the order of the rule's results."""
        return [self.p, *map(self.slots.get, map(_NAME, self.rule.slots))]

    def touched(self) -> "CalledLeaf":
        """The rows with gradients, with slots caught up; the whole leaf if the gradient is an array."""
        if not isinstance(self.g, SparseRows) and LAST_STEP not in self.slots:
            return self
        slots, rows, p, g, last = dict(self.slots), None, self.p, self.g, self.slots.get(LAST_STEP)
        if isinstance(g, SparseRows):
            g = g.coalesce()
            rows, g, p = g.indices, g.values, xp.take(p, g.indices, axis=0)
            arrays = [slot.name for slot in self.rule.slots if not slot.is_number and slots.get(slot.name) is not None]
            slots |= {name: xp.take(slots[name], rows, axis=0) for name in arrays}
            last = last if last is None else xp.take(last, rows)
        if last is not None:
            for name, factor in factors(self.decays, last, self.values["step"] - 1).items():
                slots[name] = slots[name] * like_column(xp.astype(factor, slots[name].dtype), p.shape)
        whole = size_of(self.p.shape)
        return dataclasses.replace(self, p=p, g=g, slots=slots, rows=rows, whole=whole)

    def stamped(self) -> Any:
        """The slot `LAST_STEP` after this step."""
        last = self.slots[LAST_STEP]
        if not isinstance(self.g, SparseRows):
            return xp.zeros_like(last) + self.values["step"]
        rows = self.g.coalesce().indices
        return put_rows(last, rows, xp.zeros_like(rows, dtype=last.dtype) + self.values["step"])


def call_rules(
    leaves: Sequence[CalledLeaf], seed: int, gather: Callable[[bytes], bytes] | None = None
) -> tuple[list[list[Any]], Any]:
    """The rules on the arrays of these leaves: for each the new parameter and the new slots, and whether to keep them.

    All rules are evaluated up to their first total over all leaves, whose terms are added up, and go on from there with
    the sum. Where other workers have further leaves, ``gather`` returns the bytes of all, in the order of the leaves.
    """
    guards: list[tuple[str, Any]] = []
    if not leaves and gather is None:
        return [], True

    def is_recorded() -> bool:
        return any(isinstance(x, RECORDED) for leaf in leaves for x in leaf.operands())

    with rule_tape([*map(_P, leaves)], is_recorded) as tape:
        evaluations = [Evaluation(_stages(leaf, seed, guards, tape)) for leaf in leaves]
        while True:
            totals = [*map(Evaluation.resume, evaluations)]
            pending = [*filter(None, totals)]
            if not pending and gather is None:
                break
            check_totals([(leaf.path, leaf.rule) for leaf in leaves], [total is not None for total in totals])
            paths, terms = [leaf.path for leaf in leaves], [total.term for total in pending]
            if gather is not None:
                terms = _terms_of_all(terms, gather)
                paths = [""] * len(terms)
            if not terms:
                break
            summed = combined(operator.add, paths, terms)
            for total in pending:
                total.sum = summed
    keep = combined(xp.logical_and, *zip(*guards, strict=True)) if guards else True
    if gather is not None:
        keep = all(gather(bytes([bool(fetched(keep))])))
    return _apart(leaves, [*map(_RESULTS, evaluations)]), keep


def _terms_of_all(terms: Sequence[Any], gather: Callable[[bytes], bytes]) -> list[Any]:
    """The terms of a total, of all workers, as arrays like those of this worker."""
    on_host = [np.asarray(to_host(term)) for term in terms]
    sent = np.array([(term.item(), term.dtype.itemsize) for term in on_host], np.float64)
    numbers = np.frombuffer(gather(sent.tobytes())).reshape(-1, 2)
    like = terms[0] if terms else np.zeros(())
    return [
        namespace(like).asarray(number, dtype=getattr(namespace(like), f"float{8 * int(size)}"), device=device_of(like))
        for number, size in numbers.tolist()
    ]


def first_of_each_rule(named: Iterable[tuple[str, str]]) -> str:
    """The first parameter of each rule, with the rule's name, for an error; ``named`` are paths and names."""
    first: dict[str, str] = {}
    for path, rule in named:
        first.setdefault(rule, path)
    return ", ".join(f"{path} ({rule})" for rule, path in first.items())


def check_totals(named: Iterable[tuple[str, Rule]], is_pending: Sequence[bool] | None = None) -> None:
    """Raises `RuleError` for rules of one step, with paths of parameters, that have different totals.

    ``is_pending`` tells of rules that have been called whether each goes on to a further total; before that, their
    functions tell.
    """
    first: dict[Any, tuple[str, str]] = {}
    for number, (path, rule) in enumerate(named):
        first.setdefault(rule.totals if is_pending is None else is_pending[number], (path, rule.name))
    if len(first) > 1:
        raise RuleError(
            f"{', '.join(f'{path} ({name})' for path, name in sorted(first.values()))}: found rules with different "
            "totals over "
            "all parameters in one step, expected the same totals in each, or separate optimizers"
        )


def _apart(leaves: Sequence[CalledLeaf], results: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The results, copied if they share memory with arguments, unless a rule returned an argument itself.

    So a slot never shares memory with a parameter or a gradient, which the user may change.
    """
    arguments: list[Any] = []
    changed: list[Any] = []
    for leaf, of_leaf in zip(leaves, results, strict=True):
        g = (leaf.g.values, leaf.g.indices) if isinstance(leaf.g, SparseRows) else (leaf.g,)
        arguments += [leaf.p, *g, *leaf.slots.values()]
        for new, old in zip(of_leaf, leaf.before(), strict=True):
            changed += () if new is old else (new,)
    separate, by_leaf = iter(apart(changed, arguments)), list[list[Any]]()
    for leaf, of_leaf in zip(leaves, results, strict=True):
        by_leaf.append([])
        for new, old in zip(of_leaf, leaf.before(), strict=True):
            by_leaf[-1].append(old if new is old else next(separate))
    return by_leaf


def _stages(leaf: CalledLeaf, seed: int, guards: list[tuple[str, Any]], tape: _core.Tape | None) -> Stages:
    """The rule on one leaf: results of the same shapes and dtypes."""
    check_library(leaf)
    try:
        part = leaf.touched()
        results = yield from _stages_on_all(part, seed, guards, tape)
    except (*REFUSALS, AssertionError) as error:
        if not is_ours(error):
            check_device(leaf.path, leaf.p, leaf.g, leaf.slots.items())
        raise
    if part.rows is None:
        return results
    is_number = [False, *(slot.is_number for slot in leaf.rule.slots)]
    return [
        new if new is None or whole else put_rows(old, part.rows, new)
        for old, new, whole in zip(leaf.before(), results, is_number, strict=True)
    ]


def _stages_on_all(leaf: CalledLeaf, seed: int, guards: list[tuple[str, Any]], tape: _core.Tape | None) -> Stages:
    """The rule on the arrays of a leaf, computed in float32 for half precision, in one memory order."""
    check_gradient(leaf.path, leaf.g, tuple(leaf.p.shape), leaf.p.dtype)
    in_order = adapter_of(leaf.p).in_order
    p, path = in_order(widened(leaf.p)), leaf.path
    g = xp.astype(leaf.g, p.dtype, copy=False)
    supplied: dict[str, Any] = {"guard": lambda guard: guards.append((path, value_of(tape, guard)))}
    if "noise" in leaf.rule.supplied:
        noise = _noise(leaf, p, seed)
        supplied["noise"] = noise if tape is None else lambda: watched(tape, noise())
    slots = [(slot, leaf.slots.get(slot.name)) for slot in leaf.rule.slots]
    before = [
        value if value is None or slot.is_number else in_order(xp.astype(value, p.dtype, copy=False))
        for slot, value in slots
    ]
    operands = [p, g, *before]
    if tape is not None:
        operands = [watched(tape, each) for each in operands]
    try:
        outputs = yield from leaf.rule.stages(
            namespace_of(tape), operands[0], operands[1], operands[2:], {**leaf.values, **supplied}
        )
    except (ShapeError, WrittenError) as error:
        raise type(error)(f"{path_name(path)}: {error}") from error.__cause__
    if tape is not None:
        outputs = [value_of(tape, each) for each in outputs]
    results, number = [_stored(leaf, seed, "parameter", 0, leaf.p, leaf.p if outputs[0] is p else outputs[0])], 0
    for (slot, old), taken, new in zip(slots, before, outputs[1:], strict=True):
        number += not slot.is_number
        results.append(_stored(leaf, seed, f"slot {slot.name}", number, old, old if new is taken else new))
    return results


def check_library(leaf: CalledLeaf) -> None:
    """Raises `DtypeError` for a gradient, or a slot, of another library or on another device than the parameter.

    Raises `ArrayMemoryError` for one that cannot be read.
    """
    p = beneath(leaf.p)
    is_apart = not isinstance(leaf.g, SparseRows) and adapter_of(p).is_apart(p, beneath(leaf.g))
    if is_apart or any(map(is_unreadable, leaf.slots.values())):
        check_device(leaf.path, leaf.p, leaf.g, leaf.slots.items())


def _stored(leaf: CalledLeaf, seed: int, what: str, number: int, old: Any, new: Any) -> Any:
    """The result of a rule for an array, in the dtype of that array; the parameter has number 0, slots count from 1."""
    path = leaf.path
    if old is None:
        if new is not None:
            raise RuleError(f"{path_name(path)}: the rule returned a {what} that the parameter does not have")
        return None
    if type(new) is type(old) and new.dtype is old.dtype and new.shape == old.shape:
        return new
    library = namespace(leaf.p)
    value = new if is_array(new) else library.full((), new, dtype=old.dtype, device=device_of(old))
    if not is_array(beneath(value)):  # a variable of a number, which has no library
        value = xp.full_like(library.zeros((), dtype=old.dtype, device=device_of(old)), value)
    if isinstance(value, np.generic) and isinstance(old, np.ndarray):
        value = np.asarray(value)
    if tuple(value.shape) != tuple(old.shape):
        raise RuleError(
            f"{path_name(path)}: the rule returned a {what} of shape {tuple(value.shape)} for {tuple(old.shape)}"
        )
    if not (leaf.stochastic and half(old)) or value.dtype == old.dtype:
        return xp.astype(value, old.dtype, copy=False)
    if (there := _device_noise(leaf, value, seed)) is not None:
        return rounded(value, old.dtype, there.rounding(number))
    random = _core.rounding(seed, leaf.drawn_at, leaf.position, number, *_elements(leaf, value))
    return rounded(value, old.dtype, _asarray(random, value))


def _elements(leaf: CalledLeaf, like: Any) -> tuple[int, list[int] | None]:
    """The number of elements for which random numbers are drawn: of all of an array, or of each row, and the rows."""
    if leaf.rows is None:
        return size_of(like.shape), None
    return size_of(leaf.p.shape[1:]), list(map(int, fetched(leaf.rows)))


def _asarray(numbers: bytes, like: Any) -> Any:
    """An array of float64 from its bytes, of the library, shape, dtype and device of another."""
    numbers_on_host = np.frombuffer(bytearray(numbers)).reshape(tuple(like.shape))
    return namespace(like).asarray(numbers_on_host, dtype=like.dtype, device=device_of(like))


def _device_noise(leaf: CalledLeaf, like: Any, seed: int) -> DeviceNoise | None:
    """The random numbers for an array of a leaf, drawn on its device; None where the core draws them."""
    if not draws_on_device(like, leaf.whole or size_of(leaf.p.shape)):
        return None
    return DeviceNoise(seed, leaf.drawn_at, leaf.position, like, leaf.rows)


def _noise(leaf: CalledLeaf, p: Any, seed: int) -> Callable[[], Any]:
    """The function that draws uniform numbers for a leaf, others in each call."""
    draws, there = itertools.count(), _device_noise(leaf, p, seed)

    def noise() -> Any:
        if there is not None:
            return there.uniform(next(draws))
        numbers = _core.uniform(seed, leaf.drawn_at, leaf.position, next(draws), *_elements(leaf, p))
        return _asarray(numbers, p)

    return noise
