"""Chains: optimizers of several parts, composed into one rule."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from oxigrad._names import in_words
from oxigrad._typing import Config
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.rule_optimizer import RuleOptimizer, caller, is_elementwise, register
from oxigrad.optim.settings.attributes import Sealed, hint
from oxigrad.optim.settings.config import OPTIONS, construct, register_subclass
from oxigrad.optim.settings.hyperparameters import DeclaredAttributes, Part, declarations
from oxigrad.rules.core import composition, rule
from oxigrad.rules.core.rule import Rule


class Transform(Part):
    """Base class of transforms: parts of a chain that change gradients, steps, or parameters after a step.

    ``compat`` is "torch", "optax" or "keras": the library whose defaults hyperparameters that are not given have.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        register_subclass(cls)

    def __init__(self, *args: Any, compat: str | None = None, **keywords: Any) -> None:
        self._set_hyperparameters(args, keywords if compat is None else self._filled_in(compat, args, keywords))

    def _hint(self, name: str) -> str:
        if not hasattr(Optimizer, name):
            return super()._hint(name)
        label = type(self).__name__
        parts = f"SGD(...), {label}(...)" if self._rule.kind == "after" else f"{label}(...), SGD(...)"
        return f", which a chain has: write chain({parts})"


if TYPE_CHECKING:

    class DefinedTransform(DeclaredAttributes, Transform):
        """To type checkers, a transform by `transform`: its hyperparameters are attributes, which they cannot know."""

else:
    DefinedTransform = Transform


class ChainPart(DeclaredAttributes, Sealed):
    """A part of a chain. Its hyperparameters are attributes, which can be set.

    A part of a chain with a partition is common to the chains of all patterns: setting a hyperparameter sets it for all
    patterns. ``optimizers[pattern].parts`` of the chain has the parts of one pattern.

    >>> from oxigrad import optim
    >>> opt = optim.chain(optim.SGD(0.1), optim.EMA(0.9), optim.EMA(0.99))
    >>> opt.parts[2].decay = 0.999
    >>> opt.parts[2], dict(opt.parts[2].slot_names)
    (EMA(decay=0.999, average_from='start'), {'average': '2.average'})
    """

    def __init__(self, number: int, places: "tuple[tuple[Chain, int], ...]") -> None:
        self._number = number
        #: The chains that it is a part of, with its number in each.
        self._places = places
        self._attributes = frozenset(self._names)

    def __reduce__(self) -> Any:
        return ChainPart, (self._number, self._places)

    @property
    def name(self) -> str:
        """The name of its class."""
        return self._kind.__name__

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """Read-only view of its hyperparameters by name; set them as attributes."""
        values = self._places[0][0].hyperparameters
        return MappingProxyType({name: values[of_chain] for name, of_chain in self._names.items()})

    @property
    def slot_names(self) -> Mapping[str, str]:
        """Maps the names of its slots to their names in ``slots`` of the optimizer."""
        chain, at = self._places[0]
        return MappingProxyType(chain._slot_names[at])

    def get_config(self) -> Config:
        """The part as plain data."""
        return self._copy().get_config()

    @property
    def _rule(self) -> Rule:
        return self._kind._rule

    @property
    def _kind(self) -> type[Part]:
        chain, at = self._places[0]
        return chain._kinds[at]

    @property
    def _names(self) -> Mapping[str, str]:
        chain, at = self._places[0]
        return chain._hyperparameter_names[at]

    def _copy(self) -> Part:
        """A part of the same class outside of the chain, with the current hyperparameters."""
        return construct(self._kind, **self.hyperparameters)

    def _get_attribute(self, name: str) -> Any:
        return self.hyperparameters[name]

    def _set_attribute(self, name: str, value: Any) -> None:
        try:
            for chain, at in self._places:
                setattr(chain, chain._hyperparameter_names[at][name], value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"parts[{self._number}]: {error}") from None

    def _unknown(self, name: str) -> AttributeError:
        """See `Sealed._unknown`."""
        return AttributeError(f"{self.name} has no attribute {name}{'' if name.startswith('_') else self._hint(name)}")

    def __repr__(self) -> str:
        return repr(self._copy())


class Chain(DeclaredAttributes, RuleOptimizer):
    """Optimizer of several parts, composed into one rule; `oxigrad.optim.chain` makes one.

    Args:
        *parts: transforms and optimizers, in the order in which they are applied.
        **options: options of every optimizer, by keyword; see `Optimizer`.

    A hyperparameter is an attribute of its part, ``opt.parts[1].decay``, and of the chain if its name is unique among
    the parts. A name that several parts have is prefixed by the number of the part in ``groups``, ``"1.decay"``, as are
    the names of slots, ``1.average``.
    """

    def __init__(self, *parts: Part, **options: Any) -> None:
        if unknown := sorted(options.keys() - OPTIONS.keys()):
            raise TypeError(f"chain: unknown options: {', '.join(unknown)}{hint(unknown[0], OPTIONS)}")
        flat = [one for part in parts for one in _flat(part)]
        rules = [part._rule for part in flat]
        self._rule = composition.compose(rules, labels=[type(part).__name__ for part in flat])
        self._declared = declarations(self._rule)
        self._attributes = frozenset(self._declared)
        self._kinds = tuple(map(type, flat))
        self._hyperparameter_names = composition.hyperparameter_names(rules)
        self._slot_names = composition.slot_names(rules)
        named = zip(self._hyperparameter_names, flat, strict=True)
        values = {names[name]: value for names, part in named for name, value in part.hyperparameters.items()}
        super().__init__(**values, **options)

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return self._rule.name

    @property
    def parts(self) -> tuple[ChainPart, ...]:
        """The parts in order, nested chains flattened."""
        return tuple(ChainPart(number, ((self, number),)) for number in range(len(self._kinds)))

    def get_config(self) -> Config:
        """See `Optimizer.get_config`."""
        return {"optimizer": "chain", "parts": [part.get_config() for part in self.parts], **self._options()}

    def _classes(self) -> Iterator[type]:
        yield from self._kinds

    def _get_attribute(self, name: str) -> Any:
        return self._hyperparameters[name]

    def _set_attribute(self, name: str, value: Any) -> None:
        self._declared[name].__set__(self, value)

    def _hint(self, name: str) -> str:
        return hint_of_parts(name, self.parts) or super()._hint(name)

    def __repr__(self) -> str:
        return f"chain({', '.join(map(repr, self.parts))}{self._shown_options()})"


def hint_of_parts(name: str, parts: Sequence[Any]) -> str:
    """The end of the error message for an attribute that several parts have; empty for any other."""
    owners = [at for at, part in enumerate(parts) if name in getattr(part, "hyperparameters", ())]
    shown = ", ".join(f"parts[{at}] ({parts[at].name})" for at in owners)
    return f": several parts have it, {shown}" if owners else ""


def _flat(part: Any) -> list[Part]:
    """The parts of a nested chain, else the part itself, as a tuple."""
    if not isinstance(part, Part):
        hint = ""
        if type(part) in (list, tuple):
            hint = ": write chain(*parts)"
        elif isinstance(part, type) and issubclass(part, Part):
            hint = f": write {part.__name__}(...)"
        elif isinstance(part, Optimizer) and hasattr(part, "optimizer"):  # a wrapper, as of oxigrad.distributed
            hint = f": write {type(part).__name__}(chain(...))"
        raise TypeError(
            f"chain: found {in_words(part)}, expected optimizers of one rule, transforms and at most one partition"
            f"{hint}"
        )
    label = "chain" if isinstance(part, Chain) else type(part).__name__
    if isinstance(part, Optimizer):
        if options := part._options():
            raise ValueError(f"{label}: {', '.join(options)} must be set on the chain instead")
        if type(part).minimize is not Optimizer.minimize:
            raise TypeError(
                f"chain: found {label}, which evaluates the loss: expected optimizers that take a step by a gradient"
            )
    return [each._copy() for each in part.parts] if isinstance(part, Chain) else [part]


def transform(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    changes: Literal["gradient", "parameters"] | None = None,
    elementwise: bool | None = None,
) -> type[DefinedTransform]:
    """Defines a transform for a `chain` by a rule that changes gradients or new parameters.

    Args:
        function: rule ``(xp, p, g, *slots, ...)``, or ``(xp, p, new, *slots, ...)``.
        name: name of the class; by default the name of the function.
        changes: what the rule changes: "gradient" or "parameters"; None reads the signature.
        elementwise: true demands a fused kernel, False calls the rule on arrays, None decides.

    With ``changes="gradient"`` the rule is ``(xp, p, g, *slots, ...)`` and returns a new gradient; after an optimizer
    of the chain, ``g`` is its step. With ``changes="parameters"`` it is ``(xp, p, new, *slots, ...)``, must come after
    an optimizer, and returns a new parameter. Both return the new slots, too. By default the signature decides. Raises
    `TypeError` for any other signature.

    The rule is traced into the kernel of its chain if that is possible, which ``elementwise=True`` demands of the
    chain; otherwise, and with ``elementwise=False``, all rules of the chain are called on arrays. Raises `RuleError`
    for a rule that neither is possible for.

    >>> from oxigrad.optim import SGD, chain
    >>> Halve = transform(lambda xp, p, g, *, share=0.5: share * g, "Halve", changes="gradient")
    >>> chain(Halve(share=0.1), SGD(1.0)).parts[0]
    Halve(share=0.1)
    """
    kinds = {"gradient": "gradient", "parameters": "after", None: rule.kind_of_transform(function)}
    if changes not in kinds:
        raise ValueError(f"changes is {changes!r}: expected 'gradient' or 'parameters'")
    return transformed(function, kinds[changes], name, caller(), elementwise=elementwise)


def transformed(
    function: Callable[..., Any],
    kind: str,
    name: str | None,
    module: str,
    *,
    elementwise: bool | None,
    average: Callable[..., Any] | None = None,
) -> type[DefinedTransform]:
    """The class of a transform by a rule of this kind, in the module of this name; ``average`` as in `define`."""
    read = rule.read(function, kind, elementwise=elementwise is not False, average=average)
    if elementwise is None:
        read = dataclasses.replace(read, elementwise=is_elementwise(_beside_descent(read)))
    return register(read, name, Transform, module=module)


def _beside_descent(read: Rule) -> Rule:
    """An update rule of a transform and the plainest rule, which has the hyperparameters that the transform shares."""
    shared = dict.fromkeys(read.shared - {composition.GRADIENT}, 0.5)
    descent = Rule("descent", lambda xp, p, g, **shared: p - g, "update", (), shared, frozenset())
    return composition.compose([descent, read] if read.kind == "after" else [read, descent])
