"""Hyperparameters as attributes: constants or schedules, validated when they are set."""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from oxigrad import schedules
from oxigrad._typing import Config
from oxigrad.optim.settings.attributes import Sealed, hint
from oxigrad.optim.settings.documentation import of_rule
from oxigrad.rules.core.rule import Rule
from oxigrad.step.parameters.hyperparameter import Hyperparameter, Version

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
    """To type checkers, base class of objects whose attributes depend on their parts: each is a hyperparameter."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> HyperparameterValue: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


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

    def _set_hyperparameters(self, args: Sequence[Any], hyperparameters: Config) -> None:
        """Sets the hyperparameters at construction. Raises `TypeError` for an unknown name, or one given twice."""
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
    def _filled_in(cls, library: str, args: Sequence[Any], hyperparameters: Config) -> Config:
        """The hyperparameters, and ones of the library's preset that neither they nor the positional ``args`` have.

        Raises `ValueError` where the library has no such optimizer or transform.
        """
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


def rules_of(parts: Iterable[type[Part]]) -> list[Rule]:
    """The rules of the classes of parts."""
    return [part._rule for part in parts]


def preset_of(part: type[Part], library: str) -> Mapping[str, Any] | None:
    """The hyperparameters that reproduce the results of a library; None where it has no such part."""
    return part._presets.get(library)


def made_as_by(part: Callable[..., Any], library: str, **values: Any) -> Any:
    """A part with these hyperparameters and options, and otherwise the preset of a library, if that has one."""
    return part(**values, compat=None if preset_of(cast("type[Part]", part), library) is None else library)


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
