"""Rules as values: what a rule's signature says, and rules composed into one.

A part of a chain is a rule of one of three kinds, told by its third argument and by how it was defined. An *update* takes the
gradient ``g`` and returns the new parameter; a *gradient* part takes ``g`` and returns another gradient; an *after* part
takes the ``new`` parameter and returns it changed. Each may have slots and hyperparameters of its own.
"""

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oxigrad._core import RuleError
from oxigrad.rules import ranges

# What a rule is given if it names it, besides hyperparameters; those of the second line are numbers.
SUPPLIED_FUNCTIONS = ("noise", "total", "guard")
SUPPLIED_NUMBERS = ("step", "micro", "inverse_scale")
# How many results of each function of a rule are remembered: the flags that one optimizer may have.
_REMEMBERED = 64


@dataclasses.dataclass(frozen=True)
class Slot:
    """An auxiliary variable of a rule, and how it begins: a number, a function ``(xp, p, **hyperparameters)``, or zeros.

    One whose default is the name of a hyperparameter begins as zeros, and is there only where that is neither 0, None nor
    False: elsewhere the rule is given None for it, and returns None (see `Rule.without`). An update's own, where it begins
    as zeros, ``is_moment``, which may be kept in fewer bits; ``dtype`` names the one dtype that a slot must have, and
    ``dtype_by`` the hyperparameter that does so.
    """

    name: str
    begin: Any = None
    is_moment: bool = False
    dtype: str | None = None
    dtype_by: str | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is one number for the whole leaf, rather than an array."""
        return isinstance(self.begin, (int, float))

    def first(self, xp: Any, p: Any, dtype: Any, value: Callable[[str], Any]) -> Any:
        """The array that the slot of ``p`` is before the first step; None where the parameter has none.

        ``value`` tells the value of a hyperparameter.
        """
        if self.begin is None:
            return xp.zeros_like(p, dtype=dtype)
        names = list(inspect.signature(self.begin).parameters)[2:]
        return self.begin(xp, xp.astype(p, dtype, copy=False), **{name: value(name) for name in names})


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """A rule and what its signature says. ``shared`` are hyperparameters that another part of the chain declares.

    ``domains`` says what hyperparameters may be, by the annotations of the signature: see `oxigrad.rules.ranges`.

    ``average`` computes the average of the parameters that a rule keeps without a slot of that name: a function
    ``(xp, p, ...)`` of the parameter and those slots and hyperparameters that it names.
    """

    name: str
    call: Callable[..., Any]
    kind: str
    slots: tuple[Slot, ...]
    defaults: Mapping[str, Any]
    supplied: frozenset[str]
    shared: frozenset[str] = frozenset()
    elementwise: bool = True
    average: Callable[..., Any] | None = None
    domains: Mapping[str, ranges.Domain | None] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def numbers(self) -> list[str]:
        """The numbers that it is given in every step, in the order in which a kernel takes them."""
        supplied = [name for name in SUPPLIED_NUMBERS if name in self.supplied or name == "step"]
        return supplied + [name for name, default in self.defaults.items() if not is_flag(default)]

    @functools.cached_property
    def _remembered(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        return {}

    def remembering(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function ``f`` of the rule and of other values, with its last results remembered: here, so as long as the rule lives."""
        if f not in self._remembered:
            self._remembered[f] = functools.lru_cache(_REMEMBERED)(f)
        return self._remembered[f]

    def with_slots_named(self, names: Mapping[str, str]) -> "Rule":
        """The rule with other names for some of its slots, by the names that they have."""
        slots = [dataclasses.replace(slot, name=names.get(slot.name, slot.name)) for slot in self.slots]
        return dataclasses.replace(self, slots=tuple(slots))

    @property
    def optional(self) -> list[tuple[str, str]]:
        """The slots that are not always there, each with the hyperparameter that asks for it."""
        return [(slot.name, slot.begin) for slot in self.slots if isinstance(slot.begin, str)]

    def without(self, absent: Iterable[str]) -> "Rule":
        """The rule where these of its optional slots are absent, and the others are there."""
        kept = [slot.name not in absent for slot in self.slots]

        def call(xp: Any, p: Any, g: Any, *given: Any, **named: Any) -> tuple[Any, ...]:
            present = iter(given)
            first, *after = self.run(xp, p, g, [next(present) if keep else None for keep in kept], named)
            return (first, *itertools.compress(after, kept))

        slots = [dataclasses.replace(s, begin=None) if isinstance(s.begin, str) else s for s in self.slots]
        return dataclasses.replace(self, call=call, slots=tuple(itertools.compress(slots, kept)))

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the values that it takes."""
        return {name: values[name] for name in (*self.supplied, *self.defaults, *self.shared)}

    def run(self, xp: Any, p: Any, g: Any, slots: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """What the rule returns, as a list: the parameter (or the gradient), then the slots."""
        outputs = self.call(xp, p, g, *slots, **self.named(values))
        listed = list(outputs) if isinstance(outputs, tuple) else [outputs]
        if len(listed) != 1 + len(slots):
            raise RuleError(
                f"the rule {self.name} must return the parameter and {len(slots)} slots, it returned {len(listed)} values"
            )
        return listed

    def averaged(self, xp: Any, p: Any, slots: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """The average of the parameter: that which `average` computes, or a slot of that name; None where it keeps none."""
        if self.average is None:
            return slots.get("average")
        given = {**values, **slots}
        names = list(inspect.signature(self.average).parameters)[2:]
        return self.average(xp, p, **{name: given[name] for name in names})


def is_flag(default: Any) -> bool:
    """Whether a hyperparameter with this default is one that the rule branches on: it becomes a part of the kernel."""
    return default is None or isinstance(default, (bool, str))


def read(
    function: Callable[..., Any],
    *,
    changes_gradient: bool = False,
    elementwise: bool = True,
    average: Callable[..., Any] | None = None,
) -> Rule:
    """The rule that a function is, by its signature; `TypeError` where it is none."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    label = getattr(function, "__name__", "rule")
    names = [p.name for p in positional]
    if names[:3] not in (["xp", "p", "g"], ["xp", "p", "new"]) or len(positional) + len(keywords) != len(parameters):
        raise TypeError(f"{label}: a rule has the signature (xp, p, g, *slots, then after *: hyperparameters)")
    kind = "after" if names[2] == "new" else "gradient" if changes_gradient else "update"
    supplied = {p.name for p in keywords} & {*SUPPLIED_FUNCTIONS, *SUPPLIED_NUMBERS}
    if stated := [p.name for p in keywords if p.name in supplied and p.default is not p.empty]:
        raise TypeError(f"{label}: {', '.join(stated)} is supplied in each step: expected no default, or another name")
    own = [p for p in keywords if p.name not in supplied]
    without = [p.name for p in own if p.default is p.empty]
    if without and kind == "update":
        raise TypeError(f"{label}: hyperparameters need a default: {', '.join(without)}")
    of_update = kind == "update"

    def slot(p: inspect.Parameter) -> Slot:
        begin = None if p.default is p.empty else p.default
        named = f"{p.name}_dtype"
        is_moment = of_update and isinstance(begin, (str, type(None)))
        return Slot(p.name, begin, is_moment, dtype_by=named if any(h.name == named for h in own) else None)

    defaults = {p.name: p.default for p in own if p.default is not p.empty}
    return Rule(
        label,
        function,
        kind,
        tuple(slot(p) for p in positional[3:]),
        defaults,
        frozenset(supplied),
        frozenset(without),
        elementwise,
        average,
        ranges.domains(function, defaults),
    )


def compose(parts: Sequence[Rule], *, until: int | None = None) -> Rule:
    """One rule that does what the parts do, one after the other; with ``until``, only the first so many of them.

    Raises `ValueError` where two parts claim one name, or there is not exactly one update.
    """
    updates = [part.name for part in parts if part.kind == "update"]
    if len(updates) != 1:
        raise ValueError(f"a chain has one optimizer, this one has {len(updates)}: {', '.join(updates) or 'none'}")
    if len(parts) == 1:
        return parts[0]
    order = [("gradient", "update", "after").index(part.kind) for part in parts]
    if order != sorted(order):
        raise ValueError(
            "in a chain, what changes gradients stands before the optimizer, what changes parameters after it"
        )
    slots = [slot for part in parts for slot in part.slots]
    defaults = {name: value for part in parts for name, value in part.defaults.items()}
    _refuse_twice("slot", [slot.name for slot in slots] + ["average" for part in parts if part.average])
    _refuse_twice("hyperparameter", [name for part in parts for name in part.defaults])
    shared = {name for part in parts for name in part.shared}
    if missing := sorted(shared - defaults.keys()):
        raise ValueError(f"a part of the chain needs {', '.join(missing)}, which no other part has")

    def call(xp: Any, p: Any, g: Any, *values: Any, **named: Any) -> tuple[Any, ...]:
        new, after = p, []
        for number, (part, own) in enumerate(zip(parts, _split(parts, values), strict=True)):
            if until is not None and number >= until:
                after += own
                continue
            first, *rest = part.run(xp, p, new if part.kind == "after" else g, own, named)
            if part.kind == "gradient":
                g = first
            else:
                new = first
            after += rest
        return (new, *after)

    return Rule(
        " then ".join(part.name for part in parts),
        call,
        "update",
        tuple(slots),
        defaults,
        frozenset().union(*(part.supplied for part in parts)),
        elementwise=all(part.elementwise for part in parts),
        average=next((part.average for part in parts if part.average), None),
        domains={name: domain for part in parts for name, domain in part.domains.items()},
    )


def _split(parts: Sequence[Rule], values: Sequence[Any]) -> Iterator[list[Any]]:
    at = 0
    for part in parts:
        yield list(values[at : at + len(part.slots)])
        at += len(part.slots)


def _refuse_twice(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two parts of the chain have a {what} {', '.join(twice)}")
