"""Prints the formula of a rule: the rule is called on symbols, whose results are typeset in LaTeX."""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

from oxigrad.rules.core.rule import Rule, is_flag

LETTERS = {
    "learning_rate": r"\eta",
    "epsilon": r"\epsilon",
    "epsilon_root": r"\bar{\epsilon}",
    "weight_decay": r"\lambda",
    "momentum": r"\mu",
    "rho": r"\rho",
    "alpha": r"\alpha",
    "beta": r"\beta",
    "beta1": r"\beta_1",
    "beta2": r"\beta_2",
    "beta3": r"\beta_3",
    "gamma": r"\gamma",
    "eta_minus": r"\eta_{-}",
    "eta_plus": r"\eta_{+}",
    "dampening": r"\tau",
    "d0": "d_0",
    "t0": "t_0",
    "step": "t",
    "loss": "f_t",
    "slow": "n",
    "v_max": r"\hat{v}",
}
# Precedences of sums, products, powers and atoms.
SUM, PRODUCT, POWER, ATOM = range(4)
# The length of an expression that gets a letter where it occurs twice, and these letters.
LONG, SHORTHANDS = 45, "abcdefhijklpqr"


def letter(name: str) -> str:
    """The letter of an argument or slot, or its name."""
    return LETTERS.get(name, name if len(name) == 1 else rf"\text{{{name.replace('_', ' ')}}}")


class Symbol:
    """An expression: its operands, each with the least precedence that it may have there, and a function that writes them."""

    def __init__(
        self, write: Callable[..., str], level: int = ATOM, operands: tuple[tuple["Symbol", int], ...] = ()
    ) -> None:
        self.write, self.level, self.operands = write, level, operands
        self.raw = self.text({})

    def text(self, names: dict[str, str]) -> str:
        """The expression, with names in the place of other expressions within it."""
        return self.write(*(operand.within(level, names) for operand, level in self.operands))

    def within(self, level: int, names: dict[str, str]) -> str:
        """The expression as an operand."""
        if self.raw in names:
            return names[self.raw]
        text = self.text(names)
        return text if self.level >= level else rf"\left({text}\right)"

    def __add__(self, other: Any) -> Any:
        return self if is_number(other, 0) else two("{} + {}", SUM, (self, SUM), (other, SUM))

    def __radd__(self, other: Any) -> Any:
        return self if is_number(other, 0) else of(other) + self

    def __sub__(self, other: Any) -> Any:
        return self if is_number(other, 0) else two("{} - {}", SUM, (self, SUM), (other, PRODUCT))

    def __rsub__(self, other: Any) -> Any:
        return of(other) - self

    def __neg__(self) -> Any:
        return two("-{}", SUM, (self, PRODUCT))

    def __mul__(self, other: Any) -> Any:
        if is_number(other, 1) or is_number(other, 0):
            return self if other else 0.0
        other = of(other)
        if self.raw == other.raw:
            return self**2
        if other.raw.startswith(r"\frac{1}"):
            return self / other.operands[1][0]
        is_product = r" \, " in self.raw and len(self.operands) == 2 and not self.raw.startswith(r"\frac")
        if is_product and self.operands[1][0].raw == other.raw:
            return self.operands[0][0] * other**2
        return two(r"{} \, {}", PRODUCT, (self, PRODUCT), (other, PRODUCT))

    def __rmul__(self, other: Any) -> Any:
        return self if is_number(other, 1) else 0.0 if is_number(other, 0) else of(other) * self

    def __truediv__(self, other: Any) -> Any:
        return self if is_number(other, 1) else two(r"\frac{{{}}}{{{}}}", PRODUCT, (self, SUM), (other, SUM))

    def __rtruediv__(self, other: Any) -> Any:
        return of(other) / self

    def __pow__(self, other: Any) -> Any:
        return two("{}^{{{}}}", POWER, (self, ATOM), (other, SUM))

    def __rpow__(self, other: Any) -> Any:
        return of(other) ** self

    def __lt__(self, other: Any) -> Any:
        return two("{} < {}", SUM, (self, SUM), (other, SUM))

    def __le__(self, other: Any) -> Any:
        return two(r"{} \le {}", SUM, (self, SUM), (other, SUM))

    def __gt__(self, other: Any) -> Any:
        return two("{} > {}", SUM, (self, SUM), (other, SUM))

    def __eq__(self, other: Any) -> Any:
        return two("{} = {}", SUM, (self, SUM), (other, SUM))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def two(template: str, level: int, *operands: tuple[Any, int]) -> Symbol:
    """An expression of operands in a template."""
    return Symbol(template.format, level, tuple((of(value), least) for value, least in operands))


def is_number(value: Any, number: float) -> bool:
    """Whether a value is this number, and no symbol."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == number


def atom(text: str, level: int = ATOM) -> Symbol:
    """A letter or a number."""
    return Symbol(lambda: text, level)


def of(value: Any) -> Symbol:
    """A number as a symbol; a symbol unchanged."""
    if isinstance(value, Symbol):
        return value
    if value == math.inf:
        return atom(r"\infty")
    for share in (3, 4):
        if value == 1 / share and share != 4:
            return atom(rf"1/{share}")
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return atom(text, ATOM if value >= 0 and not exponent else SUM)


def called(name: str, *values: Any) -> Symbol:
    """A call of a function."""
    template = rf"{name}\left({', '.join(['{}'] * len(values))}\right)"
    return two(template, ATOM, *((value, SUM) for value in values))


class Space:
    """The functions of `xp` that elementwise rules call."""

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return two(r"\sqrt{{{}}}", ATOM, (x, SUM))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """A choice."""
        if is_number(x, 0) and is_number(y, 1):
            return two(r"\left[\text{{not }} {}\right]", ATOM, (condition, SUM))
        return two(r"\left[{} \text{{ if }} {} \text{{, else }} {}\right]", ATOM, (x, SUM), (condition, SUM), (y, SUM))

    def abs(self, x: Any) -> Any:
        """The magnitude."""
        return two(r"\left|{}\right|", ATOM, (x, SUM))

    def pow(self, x: Any, y: Any) -> Any:
        """A power."""
        return of(x) ** y

    def equal(self, x: Any, y: Any) -> Any:
        """A condition."""
        return of(x) == of(y)

    def sum(self, x: Any) -> Any:
        """A sum of all elements."""
        return two(r"\sum {}", PRODUCT, (x, PRODUCT))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """A number between bounds."""
        return called(r"\text{{clip}}", x, low, high)

    def __getattr__(self, name: str) -> Any:
        shorts = {"maximum": r"\max", "minimum": r"\min", "remainder": r"\text{{mod}}", "exp": r"\exp", "log": r"\log"}
        shorts |= {"sign": r"\text{{sign}}", "floor": r"\text{{floor}}"}
        if name not in shorts:
            raise AttributeError(name)
        return lambda *values: called(shorts[name], *values)


def lines(rule: Rule) -> list[str]:
    """The formula of a rule with its default flags: one line for each slot, and one for the parameter; empty where it needs arrays."""
    optional = {slot.when for slot in rule.slots}
    values: dict[str, Any] = {name: atom(letter(name)) for name in ("step", *rule.supplied, *rule.shared)}
    for name, default in rule.defaults.items():
        is_off = is_flag(default) or (name in optional and default == 0)
        values[name] = default if is_off else atom(letter(name))
    space = Space()
    values |= {"noise": lambda: atom("U"), "total": space.sum}
    names = [letter(slot.name) for slot in rule.slots]
    slots = [
        None if slot.when and not values[slot.when] else atom(f"{name}_{{t-1}}")
        for slot, name in zip(rule.slots, names, strict=True)
    ]
    arguments = {name: values[name] for name in inspect.signature(rule.call).parameters if name in values}
    try:
        results = rule.call(space, atom(r"\theta_{t-1}"), atom("g_t"), *slots, **arguments)
    except (AttributeError, IndexError, TypeError, ValueError):
        return []
    new, *rest = results if isinstance(results, tuple) else (results,)
    changed = [
        (f"{name}_t", result)
        for name, result, slot in zip(names, rest, slots, strict=True)
        if isinstance(result, Symbol) and result is not slot
    ]
    return [*_written(changed, of(new))]


def _written(slots: list[tuple[str, Symbol]], new: Symbol) -> Iterator[str]:
    """The lines of slots, of long expressions that occur twice, and of the parameter, each after those that it reads."""
    names = {result.raw: name for name, result in slots if result.operands}
    uses: dict[str, set[str]] = {}
    nodes: dict[str, Symbol] = {}
    pending = [new, *(result for _, result in slots)]
    while pending:
        node = pending.pop()
        if node.raw in nodes:
            continue
        nodes[node.raw] = node
        for operand, _ in node.operands:
            uses.setdefault(operand.raw, set()).add(node.raw)
            pending.append(operand)
    taken = {name for name, _ in slots}
    letters = (each for each in SHORTHANDS if f"{each}_t" not in taken)
    for raw in sorted(nodes, key=len):
        is_long = len(raw) >= LONG or (r"\text{ if }" in raw and len(raw) >= LONG // 2)
        if is_long and len(uses.get(raw, ())) > 1 and raw not in names and raw != new.raw:
            names[raw] = f"{next(letters)}_t"
    defined = dict(slots)
    defined |= {name: nodes[raw] for raw, name in names.items() if name not in defined}
    for name, result in sorted(defined.items(), key=lambda item: len(item[1].raw)):
        yield f"{name} = {result.text(names)}"
    yield rf"\theta_t = {new.text(names) if new.raw not in names else names[new.raw]}"


# The formulas of rules of whole matrices, for a matrix with rows and columns.
MATRICES = {
    "Muon": [
        r"m_t = \mu \, m_{t-1} + \left(1 - \mu\right) \, g_t",
        r"o_t = \text{orthogonalized}\left(\mu \, m_t + \left(1 - \mu\right) \, g_t\right)",
        r"\theta_t = \left(1 - \eta \, \lambda\right) \, \theta_{t-1} - \eta \, s \, o_t",
    ],
    "Shampoo": [
        r"L_t = \beta_2 \, L_{t-1} + g_t \, g_t^{T}",
        r"R_t = \beta_2 \, R_{t-1} + g_t^{T} \, g_t",
        r"\theta_t = \left(1 - \eta \, \lambda\right) \, \theta_{t-1} - \eta \, \left(L_t + \epsilon\right)^{-1/4} \, g_t \, \left(R_t + \epsilon\right)^{-1/4}",
    ],
    "SOAP": [
        r"L_t = \beta_2 \, L_{t-1} + \left(1 - \beta_2\right) \, g_t \, g_t^{T}, \quad R_t = \beta_2 \, R_{t-1} + \left(1 - \beta_2\right) \, g_t^{T} \, g_t",
        r"u_t = \text{Adam}\left(Q_L^{T} \, g_t \, Q_R\right)",
        r"\theta_t = \left(1 - \eta \, \lambda\right) \, \theta_{t-1} - \eta \, Q_L \, u_t \, Q_R^{T}",
    ],
    "GaLore": [
        r"u_t = \text{Adam}\left(P^{T} \, g_t\right)",
        r"\theta_t = \left(1 - \eta \, \lambda\right) \, \left(\theta_{t-1} - \eta \, \alpha \, P \, u_t\right)",
    ],
    "Adafactor": [
        r"\beta_t = 1 - t^{\gamma}",
        r"r_t = \beta_t \, r_{t-1} + \left(1 - \beta_t\right) \, \text{row means}\left(g_t^{2}\right), \quad c_t = \beta_t \, c_{t-1} + \left(1 - \beta_t\right) \, \text{column means}\left(g_t^{2}\right)",
        r"u_t = \text{clipped}\left(\frac{g_t}{\sqrt{r_t \, c_t / \text{mean}\left(r_t\right)}}\right)",
        r"\theta_t = \left(1 - \eta \, \lambda\right) \, \theta_{t-1} - \eta_t \, u_t",
    ],
    "SM3": [
        r"v_t = \beta_2 \, \min\left(r_{t-1}, c_{t-1}\right) + g_t^{2}",
        r"r_t = \text{row maxima}\left(v_t\right), \quad c_t = \text{column maxima}\left(v_t\right)",
        r"m_t = \mu \, m_{t-1} + \left(1 - \mu\right) \, \frac{g_t}{\sqrt{v_t + \epsilon}}",
        r"\theta_t = \theta_{t-1} - \eta \, m_t",
    ],
}
