"""Hyperparameters as attributes: constants or schedules, validated when they are set."""

import inspect
import types
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from oxigrad import schedules
from oxigrad._typing import Config
from oxigrad.optim.settings.attributes import Sealed, hint
from oxigrad.optim.settings.documentation import of_rule
from oxigrad.rules.core.rule import Rule
from oxigrad.stepping.parameters.hyperparameter import Hyperparameter
from oxigrad.stepping.version import Version

HyperparameterValue: TypeAlias = float | schedules.Schedule
"""A hyperparameter as it is read: a number or a schedule.

Flags are numbers to type checkers too, where names are not declared.
"""


def plain(name: str, value: Any) -> Any:
    """A hyperparameter as plain data; raises `TypeError` for a function that is not a `Schedule`."""
    if callable(value) and not isinstance(value, schedules.Schedule):
        raise TypeError(
            f"{name} is {value!r}: expected a number or a schedule of oxigrad.schedules, which has a configuration"
        )
    return value.get_config() if isinstance(value, schedules.Schedule) else value


def from_plain(value: Any) -> Any:
    """The hyperparameter that `plain` returned as plain data."""
    return schedules.from_config(value) if isinstance(value, dict) else value


class DeclaredAttributes:
    """Base class of objects whose attributes depend on their parts, as hyperparameters of a chain do.

    `_declare` makes them properties of the object's class, by which `_get_attribute` and `_set_attribute` are called.
    That class is made for all objects with the same ones, and has the name of ``_plain_class``.
    """

    __slots__ = ()

    #: The names of these attributes, and the class without them.
    _attributes: ClassVar[tuple[str, ...]] = ()
    _plain_class: ClassVar[type]

    if TYPE_CHECKING:  # to type checkers, which do not know the names, each is a hyperparameter

        def __getattr__(self, name: str) -> HyperparameterValue: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "_attributes" not in vars(cls):
            cls._plain_class = cls

    @classmethod
    def _declaring(cls, names: Iterable[str]) -> type[Self]:
        """The class with these attributes."""
        plain: Any = cls._plain_class
        key = plain, tuple(names)
        declaring = _DECLARING.get(key)
        if declaring is None:
            body = {name: getattr(plain, name) for name in ("__module__", "__qualname__", "__doc__")}
            body |= {"__slots__": (), "_attributes": key[1], **{name: _attribute(name) for name in key[1]}}
            declaring = _DECLARING[key] = type(plain)(plain.__name__, (plain,), body)
        return declaring

    def _declare(self, names: Iterable[str]) -> None:
        """Gives the object these attributes."""
        object.__setattr__(self, "__class__", self._declaring(names))

    def _get_attribute(self, name: str) -> Any:
        """The value of an attribute."""
        raise NotImplementedError

    def _set_attribute(self, name: str, value: Any) -> None:
        """Sets an attribute."""
        raise NotImplementedError


_DECLARING: "weakref.WeakValueDictionary[tuple[type, tuple[str, ...]], Any]" = weakref.WeakValueDictionary()


def _attribute(name: str) -> property:
    return property(lambda self: self._get_attribute(name), lambda self, value: self._set_attribute(name, value))


class Part(Sealed):
    """Base class of objects of one rule, whose hyperparameters are attributes."""

    _rule: Rule
    _hyperparameters: dict[str, Any]
    _version: Version
    _declared: Mapping[str, Hyperparameter[Any, Any]] = {}
    # The names of the arguments of the constructor that are not hyperparameters.
    _options_of_class: tuple[str, ...] = ()
    # By library, the hyperparameters that reproduce its results, as far as they differ from the defaults. An empty dict
    # means that the defaults agree; a missing library, that it lacks this optimizer. Learning rates are given for
    # libraries with a default.
    _presets: Mapping[str, Mapping[str, Any]] = {}

    def __init__(self, /, *args: Any, **hyperparameters: Any) -> None:
        names, label = list(self._declared), type(self).__name__
        if len(args) > len(names):
            raise TypeError(f"{label} takes at most {len(names)} positional arguments: {', '.join(names)}")
        values = dict(zip(names, args, strict=False))
        twice = sorted(values.keys() & hyperparameters.keys())
        unknown = sorted(hyperparameters.keys() - set(names))
        if twice or unknown:
            what = f"given twice: {', '.join(twice)}" if twice else f"unknown: {', '.join(unknown)}"
            what += hint(unknown[0], [*names, *self._options_of_class]) if unknown else ""
            raise TypeError(f"{label}: {what}; its hyperparameters are {', '.join(names)}")
        values |= hyperparameters
        checked = {n: each.check(values[n]) if n in values else each.default for n, each in self._declared.items()}
        # The version is compared by parameter groups with the one that they were resolved for.
        vars(self).update(_hyperparameters=checked, _version=Version())

    @classmethod
    def _filled_in(cls, library: str | None, args: Sequence[Any], hyperparameters: Config) -> Config:
        """The hyperparameters, and ones of the library's preset that neither they nor the positional ``args`` have.

        Raises `ValueError` where the library has no such optimizer or transform.
        """
        if library is None:
            return hyperparameters
        if not (isinstance(library, str) and library in cls._presets):
            expected = ", ".join(map(repr, cls._presets)) or "None"
            raise ValueError(f"{cls.__name__}: compat is {library!r}: expected {expected}")
        positional = list(cls._declared)[: len(args)]
        preset = {name: value for name, value in cls._presets[library].items() if name not in positional}
        return preset | hyperparameters

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """Read-only view of the hyperparameters by name; set them as attributes."""
        return types.MappingProxyType(self._hyperparameters)

    def get_config(self) -> Config:
        """The part as plain data."""
        return {"part": type(self).__name__, **{n: plain(n, v) for n, v in self.hyperparameters.items()}}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()})"

    def _shown(self) -> str:
        """The arguments that ``repr`` shows."""
        return ", ".join(f"{name}={value!r}" for name, value in self.hyperparameters.items())


def declarations(rule: Rule) -> dict[str, Hyperparameter[Any, Any]]:
    """The hyperparameters of a rule, by name."""
    return {name: Hyperparameter(name, value, rule.domains.get(name)) for name, value in rule.defaults.items()}


def declare(rule: Rule, title: str, base: type, options: Mapping[str, Any], module: str) -> type:
    """A subclass of ``base`` (itself a `Part`) for the rule; the rule's signature gives the constructor's.

    ``module`` is the name of its module, where pickle looks it up.
    """
    declared = declarations(rule)
    parameters = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in rule.defaults.items()
    ]
    common = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in options.items()]
    body = {
        **declared,
        "__doc__": of_rule(rule, title, options),
        "__module__": module,
        "__signature__": inspect.Signature([*parameters, *common]),
        "_rule": rule,
        "_declared": declared,
    }
    return type(base)(title, (base,), body)
