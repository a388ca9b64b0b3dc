"""Rules as objects: the declarations of a rule's signature, and the evaluation of a rule on one parameter.

There are three kinds. An *update* takes the gradient ``g`` and returns the new parameter. A *gradient* transform takes
``g`` and returns a new gradient. An *after* transform takes the parameter after the update, ``new``, and returns a new
one. Each may have its own slots and hyperparameters. `oxigrad.rules.core.composition` composes them to chains.
"""

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oxigrad._core import RuleError
from oxigrad._names import check_callable
from oxigrad._typing import Array, Namespace
from oxigrad.rules.core import ranges
from oxigrad.rules.core.slots import Formula, Slot, declared, guarded

# Arguments that every step supplies to rules that name them, besides hyperparameters; the second line lists numbers.
SUPPLIED_FUNCTIONS = ("noise", "total", "guard")
SUPPLIED_NUMBERS = ("step", "micro", "inverse_scale", "loss")
KINDS = ("update", "gradient", "after")
# The size of a cache of a rule: the number of combinations of flags that one optimizer may have.
_REMEMBERED = 64


class ResultsError(RuleError):
    """The results of a rule are not the parameter and its slots."""


class Total:
    """A sum over all leaves: the ``term`` of one leaf, and the ``sum`` once it is computed."""

    __slots__ = ("sum", "term")

    def __init__(self, term: Array) -> None:
        self.term: Array = term
        self.sum: Array = None


# An evaluation of a rule, which is suspended at each total and returns the results.
Stages = Generator[Total, None, list[Array]]


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """A rule and the declarations of its signature.

    ``call`` is the function itself. If the rule ``is_staged``, it is a generator function that yields a `Total` for
    each total that is not supplied. ``shared`` are hyperparameters that another part of the chain declares. ``domains``
    are the domains of the hyperparameters, by the annotations of the signature (see `oxigrad.rules.core.ranges`).
    ``average`` computes the average of the parameters if no slot of that name holds it. ``totals`` are the functions
    that compute totals over all parameters.
    """

    name: str
    call: Callable[..., Any]
    kind: str
    slots: tuple[Slot, ...]
    defaults: Mapping[str, Any]
    supplied: frozenset[str]
    shared: frozenset[str] = frozenset()
    elementwise: bool = True
    average: Formula | None = None
    domains: Mapping[str, ranges.Domain | None] = dataclasses.field(default_factory=dict)
    is_staged: bool = False
    totals: tuple[Callable[..., Any], ...] = ()

    @functools.cached_property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on, with their defaults."""
        return {name: default for name, default in self.defaults.items() if is_flag(default)}

    @functools.cached_property
    def numbers(self) -> list[str]:
        """The names of the scalar inputs of each step, in the order of the inputs of a kernel."""
        supplied = [name for name in SUPPLIED_NUMBERS if name in self.supplied or name == "step"]
        return supplied + [name for name in self.defaults if name not in self.flags]

    @functools.cached_property
    def _remembered(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        return {}

    def remembering(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function ``f`` of the rule and of other values, with a bounded cache of the rule's lifetime."""
        if f not in self._remembered:
            self._remembered[f] = functools.lru_cache(_REMEMBERED)(f)
        return self._remembered[f]

    def __deepcopy__(self, memo: dict[int, Any]) -> "Rule":
        return self  # immutable

    @functools.cached_property
    def optional(self) -> list[tuple[str, str]]:
        """The optional slots, each with the hyperparameter that it depends on."""
        return [(slot.name, slot.when) for slot in self.slots if slot.when is not None]

    def without(self, absent: Iterable[str]) -> "Rule":
        """The rule without the optional slots ``absent``, and with the others."""
        mask = [slot.name not in absent for slot in self.slots]

        def call(xp: Namespace, p: Array, g: Array, *present_slots: Array, **named: Any) -> Stages:
            present = iter(present_slots)
            outputs = yield from self.stages(xp, p, g, [next(present) if keep else None for keep in mask], named)
            return [outputs[0], *itertools.compress(outputs[1:], mask)]

        slots = [dataclasses.replace(slot, when=None) for slot in itertools.compress(self.slots, mask)]
        return dataclasses.replace(self, call=call, slots=tuple(slots), is_staged=True)

    def with_slot(self, call: Callable[..., Stages], slot: Slot) -> "Rule":
        """The rule with ``slot`` appended to its slots, and the generator function ``call``."""
        return dataclasses.replace(self, call=call, slots=(*self.slots, slot), is_staged=True)

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the arguments of the rule; ``total`` may be missing."""
        supplied = self.supplied if "total" in values else self.supplied - {"total"}
        names = (*self.defaults, *self.shared, *supplied)
        return dict(zip(names, map(values.__getitem__, names), strict=True))

    def run(self, xp: Namespace, p: Array, g: Array, slots: Sequence[Array], values: Mapping[str, Any]) -> list[Array]:
        """The results of the rule: the parameter (or the gradient) and the slots; ``values`` has every argument."""
        evaluation = Evaluation(self.stages(xp, p, g, slots, values))
        if evaluation.resume() is not None:
            raise RuleError(f"the rule {self.name}: total is missing among the values")
        return evaluation.results

    def stages(self, xp: Namespace, p: Array, g: Array, slots: Sequence[Array], values: Mapping[str, Any]) -> Stages:
        """As `run`; where ``values`` lacks ``total``, yields a `Total` for each total and resumes with its sum."""
        named = self.named(values)
        if self.is_staged:
            outputs = yield from self.call(xp, p, g, *slots, **named)
        elif "total" in self.supplied and "total" not in named:
            outputs = yield from self._totalled(xp, p, g, slots, named)
        else:
            outputs = self.call(xp, p, g, *slots, **named)
        listed = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        if len(listed) != 1 + len(slots):
            names = ", ".join(slot.name for slot in self.slots)
            raise ResultsError(
                f"the rule {self.name}: found {len(listed)} results, expected the parameter and {len(slots)} slots"
                + (f" ({names}); hyperparameters come after *" if names else "")
            )
        return listed

    def _totalled(self, xp: Namespace, p: Array, g: Array, slots: Sequence[Array], named: Mapping[str, Any]) -> Stages:
        """The outputs of a function that calls ``total``; runs it again for each sum that differs from its term.

        Until a sum is known, ``total`` returns the leaf's term, which is the sum of a model with one leaf.
        """
        sums: list[Array] = []
        draws: list[Array] = []
        while True:
            terms: list[Array] = []
            guards: list[Array] = []
            drawn = itertools.count()

            def total(value: Array, terms: list[Array] = terms) -> Array:
                number = len(terms)
                terms.append(None if number < len(sums) else xp.sum(value))
                return sums[number] if number < len(sums) else terms[number]

            def noise(drawn: Iterator[int] = drawn) -> Array:
                number = next(drawn)
                if number == len(draws):
                    draws.append(named["noise"]())
                return draws[number]

            functions = {"total": total, "noise": noise, "guard": guards.append}
            outputs = self.call(
                xp, p, g, *slots, **{**named, **{n: functions[n] for n in self.supplied if n in functions}}
            )
            is_final = True
            while is_final and len(sums) < len(terms):
                pending = Total(terms[len(sums)])
                yield pending
                sums.append(pending.sum)
                is_final = pending.sum is pending.term
            if is_final:
                for guard in guards:
                    named["guard"](guard)
                return outputs

    @property
    def average_slot(self) -> str | None:
        """The name of the slot with the average of the parameters, the last of several; None without one."""
        return last_named([slot.name for slot in self.slots], "average")

    def averaged(self, xp: Namespace, p: Array, slots: Mapping[str, Array], values: Mapping[str, Any]) -> Array:
        """The average of the parameter, by `average` or from the slot of that name, or None."""
        if self.average is None:
            return slots.get(self.average_slot or "")
        return self.average(xp, p, {**values, **slots}.__getitem__)


class Evaluation:
    """The evaluation of a rule, suspended at each total."""

    def __init__(self, stages: Stages) -> None:
        self.results: list[Array] = []
        self._stages = self._collected(stages)

    def _collected(self, stages: Stages) -> Generator[Total, None, None]:
        self.results = yield from stages

    def resume(self) -> Total | None:
        """Resumes up to the next total, whose ``sum`` the caller sets; None when the results are complete."""
        return next(self._stages, None)


def last_named(names: Iterable[str], name: str) -> str | None:
    """The last name among ``names`` that is ``name``, with or without the number of a part as a prefix.

    >>> last_named(["m", "1.average", "2.average"], "average")
    '2.average'
    """
    return next((each for each in reversed([*names]) if each.rpartition(".")[2] == name), None)


def is_flag(default: Any) -> bool:
    """Whether a hyperparameter with this default is a flag, on which the rule may branch.

    Each value of a flag has its own kernel.
    """
    return default is None or isinstance(default, (bool, str))


def read(
    function: Callable[..., Any],
    kind: str = "update",
    *,
    elementwise: bool = True,
    average: Callable[..., Any] | None = None,
) -> Rule:
    """A function as a rule of this ``kind``; raises `TypeError` if its signature is not a rule's."""
    check_callable(function, "define")
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    label = getattr(function, "__name__", "rule")
    _check_arguments(label, kind, [p.name for p in positional], len(positional) + len(keywords) == len(parameters))
    supplied = {p.name for p in keywords} & {*SUPPLIED_FUNCTIONS, *SUPPLIED_NUMBERS}
    if stated := [p.name for p in keywords if p.name in supplied and p.default is not p.empty]:
        raise TypeError(f"{label}: {', '.join(stated)} is supplied by each step: expected no default, or another name")
    hyperparameters = [p for p in keywords if p.name not in supplied]
    without = [p.name for p in hyperparameters if p.default is p.empty]
    if without and kind == "update":
        raise TypeError(f"{label}: found hyperparameters without a default: {', '.join(without)}")
    defaults = {p.name: p.default for p in hyperparameters if p.default is not p.empty}
    return Rule(
        label,
        guarded(function, "rule"),
        kind,
        tuple(_slot(label, kind, p, defaults) for p in positional[3:]),
        defaults,
        frozenset(supplied),
        frozenset(without),
        elementwise,
        average and Formula.of(average),
        ranges.domains(function, defaults),
        totals=(function,) if "total" in supplied else (),
    )


def kind_of_transform(function: Callable[..., Any]) -> str:
    """The kind of a transform by its signature: "after" for ``(xp, p, new, ...)``, else "gradient"."""
    check_callable(function, "transform")
    names = list(inspect.signature(function).parameters)
    return "after" if names[:3] == ["xp", "p", "new"] else "gradient"


def _check_arguments(label: str, kind: str, names: list[str], are_all: bool) -> None:
    third = "new" if kind == "after" else "g"
    if names[:3] == ["xp", "p", third] and are_all:
        return
    if kind == "update" and names[:3] == ["xp", "p", "new"]:
        raise TypeError(f"{label}: a rule (xp, p, new, ...) changes new parameters: expected oxigrad.optim.transform")
    raise TypeError(f"{label}: a rule has the signature (xp, p, {third}, *slots, then after *: hyperparameters)")


def _slot(label: str, kind: str, p: inspect.Parameter, defaults: Mapping[str, Any]) -> Slot:
    """The slot that the parameter ``p`` of a rule declares."""
    try:
        slot = Slot(p.name) if p.default is p.empty else declared(p.name, p.default)
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from None
    named = [name for name in (slot.when, slot.decay, slot.dtype_by) if isinstance(name, str)]
    for formula in (slot.begin, slot.decay):
        named += formula.names.values() if isinstance(formula, Formula) else ()
    if unknown := [name for name in named if name not in defaults]:
        expected = ", ".join(defaults) or "none"
        raise TypeError(
            f"{label}: the slot {slot.name}: found {', '.join(unknown)}, expected a hyperparameter of {expected}"
        )
    by_name = f"{p.name}_dtype"
    if slot.dtype_by is None and by_name in defaults:
        raise TypeError(
            f"{label}: the slot {slot.name}: expected a declared dtype, as in Slot.zeros(dtype_by={by_name!r})"
        )
    return dataclasses.replace(slot, is_moment=kind == "update" and (slot.begin is None or slot.is_moment))
