"""The factors by which a step with a zero gradient multiplies slots, read off the traced program of the rule.

The nodes of the program are evaluated on symbolic values: each slot, and the parameter, is a term of its own, the gradient is zero, and
hyperparameters have their present values. If the new slot is the old one times a number that is the same in every step, that number
is its factor. A slot may declare its factor instead (``Slot.zeros(decay="beta2")``).
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad import xp
from oxigrad._core import RuleError
from oxigrad.rules.core.rule import Rule, is_flag
from oxigrad.stepping.parameters.rule_executors import kernel_of


def decays(rule: Rule, values: Mapping[str, Any]) -> dict[str, Any]:
    """The factor by which one step with a zero gradient multiplies each slot that is an array.

    ``values`` are the present hyperparameters: where they changed while a row was skipped, the present ones count. Raises
    `RuleError` with the name of a slot that such a step does not multiply by one factor: an average of the parameter, say, or a
    momentum to which L2 weight decay adds.
    """
    is_plain = all(value is None or isinstance(value, (int, float, str)) for value in values.values())
    return (rule.remembering(_decays) if is_plain else _decays)(rule, tuple(values.items()))


def _decays(rule: Rule, items: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    values = dict(items)
    after = _after_step(rule, values)
    return {
        slot.name: _declared(slot.decay, values) if slot.decay is not None else _factor(rule, slot.name, after)
        for slot in rule.slots
        if not slot.is_number
    }


def _after_step(rule: Rule, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the slots that are arrays, after a step with a zero gradient."""
    program = kernel_of(rule, {name: values[name] for name, default in rule.defaults.items() if is_flag(default)})
    arrays = [slot.name for slot in rule.slots if not slot.is_number]
    supplied = {"step": _Step("step"), "micro": 1, "inverse_scale": 1.0, "loss": _Unknown("loss")}
    after: dict[str, Any] = {name: _Linear({name: 1.0}) for name in arrays}
    inputs = {
        "leaf": [_Linear({}), _Linear({"": 1.0}), *after.values()],
        "scalar": [
            *({**supplied, **values}[name] for name in rule.numbers),
            *(_Unknown(slot.name) for slot in rule.slots if slot.is_number),
        ],
    }
    nodes: list[Any] = []
    for op, *arguments in map(str.split, program.text.splitlines()):
        if op == "outputs":
            changed = {place: nodes[int(node)] for place, node in zip(program.written, arguments, strict=True)}
            return after | {name: changed[place] for place, name in enumerate(arrays, 2) if place in changed}
        if op == "constant":
            nodes.append(struct.unpack(">d", bytes.fromhex(*arguments))[0])
        elif op in inputs:
            nodes.append(inputs[op][int(*arguments)])
        else:
            nodes.append(_applied(op, arguments, nodes))
    raise RuleError(f"internal error: the program of {rule.name} has no outputs")


def _applied(op: str, arguments: list[str], nodes: list[Any]) -> Any:
    """The result of an op on nodes with these numbers."""
    if op == "noise":
        return _Unknown(("noise", *arguments))
    if op in ("sum_of_leaf", "dot_of_leaf", "total"):
        terms = _applied("multiply", arguments, nodes) if op == "dot_of_leaf" else nodes[int(arguments[0])]
        return terms if _is_zero(terms) else _unknown("sum", terms)
    operands = [nodes[int(number)] for number in arguments]
    return _KNOWN[op](*operands) if op in _KNOWN else _elementwise(op, *operands)


def _declared(decay: float | str, values: Mapping[str, Any]) -> Any:
    return values[decay] if isinstance(decay, str) else decay


def _factor(rule: Rule, name: str, after: Mapping[str, Any]) -> Any:
    """The factor of one slot, from the values of the slots after the step."""
    factor = _multiple(after[name], name)
    if factor is None or not _is_kept(after[name], name, after):
        raise RuleError(
            f"the rule {rule.name}: rows cannot catch up, since a step with a zero gradient does not multiply the slot "
            f"{name} by a factor; expected sparse='lazy' or 'dense', or a slot that declares its decay"
        )
    return factor


def _multiple(value: Any, name: str) -> Any:
    """The factor by which a value is a multiple of the slot of this name; None where it is not a multiple."""
    if isinstance(value, _Linear):
        terms = value.terms
    else:
        terms = {} if not isinstance(value, _Unknown) and value == 0 else None
    if terms is None or terms.keys() - {name} or any(isinstance(factor, _Unknown) for factor in terms.values()):
        return None
    return terms.get(name, 0.0)


def _is_kept(value: Any, name: str, after: Mapping[str, Any]) -> bool:
    """Whether a slot that comes out as a maximum of itself and another term is the larger of both.

    A slot that is the maximum of its decayed value and something else in every step is not below zero. If it does not decay,
    it is not below what it was the maximum of: another slot, which decays to less.
    """
    if not isinstance(value, _Maximum):
        return True
    if not value.other.terms:
        return value.terms[name] >= 0
    ((other, factor),) = value.other.terms.items()
    return other in after and value.terms[name] == 1.0 and 0 <= factor <= 1 and _multiple(after[other], other) == factor


class _Unknown:
    """A value known only by the expression that computed it: equal values have equal ``key``."""

    def __init__(self, key: Any) -> None:
        self.key = key


class _Step(_Unknown):
    """The number of the step. Rows catch up after they were updated: it is 2 or more."""


class _Linear(_Unknown):
    """A sum of slots and of the parameter (whose name is empty), each times a number: ``terms``, by name. Without terms it is zero."""

    def __init__(self, terms: Mapping[str, Any]) -> None:
        self.terms: dict[str, Any] = {
            name: factor for name, factor in terms.items() if isinstance(factor, _Unknown) or _is_not(factor, 0)
        }
        super().__init__(("linear", tuple((name, _key(factor)) for name, factor in sorted(self.terms.items()))))


class _Maximum(_Linear):
    """The maximum of a slot times a number, which are its ``terms``, and an ``other`` multiple of a slot, or zero."""

    def __init__(self, terms: Mapping[str, Any], other: _Linear) -> None:
        super().__init__(terms)
        self.other = other
        self.key = ("maximum", self.key, other.key)


def _is_not(factor: Any, number: float) -> bool:
    """Whether a factor is known to be another number; a traced one is not known to be any."""
    return not isinstance(factor, (int, float)) or factor != number


def _key(value: Any) -> Any:
    return value.key if isinstance(value, _Unknown) else value if isinstance(value, (int, float, str)) else id(value)


def _is_zero(value: Any) -> bool:
    if isinstance(value, _Linear):
        return not value.terms and not isinstance(value, _Maximum)
    return isinstance(value, (int, float)) and value == 0


def _is_sum(value: Any) -> bool:
    return isinstance(value, _Linear) and not isinstance(value, _Maximum)


def _scaled(value: _Linear, factor: Any) -> _Linear:
    return _Linear({name: _multiply(term, factor) for name, term in value.terms.items()})


def _unknown(name: str, *args: Any) -> _Unknown:
    return _Unknown((name, *map(_key, args)))


def _add(a: Any, b: Any) -> Any:
    if _is_zero(a) or _is_zero(b):
        return b if _is_zero(a) else a
    if _is_sum(a) and _is_sum(b):
        names = dict.fromkeys([*a.terms, *b.terms])
        return _Linear({name: _add(a.terms.get(name, 0.0), b.terms.get(name, 0.0)) for name in names})
    if isinstance(a, _Unknown) or isinstance(b, _Unknown):
        return _unknown("add", a, b)
    return a + b


def _subtract(a: Any, b: Any) -> Any:
    if isinstance(a, _Unknown) and isinstance(b, _Unknown) and a.key == b.key:
        return _Linear({})
    return _add(a, _multiply(b, -1.0))


def _multiply(a: Any, b: Any) -> Any:
    if _is_zero(a) or _is_zero(b):
        return _Linear({})
    for this, other in ((a, b), (b, a)):
        if not isinstance(other, _Unknown) and not _is_not(other, 1):
            return this
        if _is_sum(this) and not isinstance(other, _Linear):
            return _scaled(this, other)
    if isinstance(a, _Unknown) or isinstance(b, _Unknown):
        return _unknown("multiply", a, b)
    return a * b


def _divide(a: Any, b: Any) -> Any:
    if _is_zero(a):
        return a
    if isinstance(b, _Unknown) or not _is_sum(a):
        return _unknown("divide", a, b) if isinstance(a, _Unknown) or isinstance(b, _Unknown) else a / b
    return _scaled(a, xp.divide(1.0, b))


def _maximum(a: Any, b: Any) -> Any:
    """The maximum; see `_Maximum` for that of slots."""
    if _is_zero(a) and _is_zero(b):
        return _Linear({})
    for this, other in ((a, b), (b, a)):
        if _is_sum(this) and len(this.terms) == 1 and _is_sum(other) and len(other.terms) < 2:
            factors = [*this.terms.values(), *other.terms.values()]
            # Of two slots, the one that does not decay is the one that is kept.
            is_kept = not other.terms or factors[0] == 1.0
            if is_kept and "" not in this.terms and all(isinstance(factor, (int, float)) for factor in factors):
                return _Maximum(this.terms, other)
    return _elementwise("maximum", a, b)


def _where(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, bool):
        return a if condition else b
    if _key(a) == _key(b):
        return a
    if all(_is_sum(x) or _is_zero(x) for x in (a, b)) and not isinstance(condition, _Linear):
        terms = [x.terms if isinstance(x, _Linear) else {} for x in (a, b)]
        names = dict.fromkeys([*terms[0], *terms[1]])
        return _Linear({name: _where(condition, *(each.get(name, 0.0) for each in terms)) for name in names})
    return _elementwise("where", condition, a, b)


def _elementwise(name: str, *args: Any) -> Any:
    """The function of `oxigrad.xp` for numbers; for other values an unknown, unless zeros determine the result."""
    if any(isinstance(arg, _Unknown) and not _is_zero(arg) for arg in args):
        return _unknown(name, *args)
    result = getattr(xp, name)(*(0.0 if isinstance(arg, _Unknown) else arg for arg in args))
    if getattr(result, "shape", None) == () and hasattr(result, "item") and type(result).__module__ == "numpy":
        result = result.item()
    return _Linear({}) if any(isinstance(arg, _Unknown) for arg in args) and _is_zero(result) else result


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def compare(a: Any, b: Any) -> Any:
        if isinstance(a, _Step) and isinstance(b, (int, float)) and b < 2:
            a = 2
        if isinstance(b, _Step) and isinstance(a, (int, float)) and a < 2:
            b = 2
        return _elementwise(name, *(0.0 if _is_zero(x) else x for x in (a, b)))

    return compare


def _power(a: Any, b: Any) -> Any:
    return a if _is_zero(a) and isinstance(b, (int, float)) and b > 0 else _elementwise("pow", a, b)


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_KNOWN: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "maximum": _maximum,
    "where": _where,
    "pow": _power,
    "negative": lambda a: _multiply(a, -1.0),
    "square": lambda a: _multiply(a, a),
    **{name: _comparison(name) for name in _COMPARISONS},
}
