"""Hyperparameters as attributes: constants, or functions of the step, checked when they are set."""

import inspect
from collections.abc import Mapping
from typing import Any

from oxigrad import schedules
from oxigrad.rule import Rule, is_flag
from oxigrad.schedules.base import term


class Hyperparameter:
    """An attribute that is checked when it is set, and takes effect on the next step."""

    def __init__(self, name: str, default: Any) -> None:
        self.name = name
        self.default = default
        self.is_flag = is_flag(default)

    def __get__(self, part: Any, owner: type | None = None) -> Any:
        return self if part is None else part.hyperparameters[self.name]

    def __set__(self, part: Any, value: Any) -> None:
        part.hyperparameters[self.name] = self.check(value)

    def check(self, value: Any) -> Any:
        """The value, or `TypeError` where it is not of the kind of the default."""
        if self.is_flag:
            if not (is_flag(value) or (self.default is None and isinstance(value, (int, float)))):
                raise TypeError(f"{self.name} is {value!r}: expected a flag like {self.default!r}")
            return value
        try:
            return term(value)
        except TypeError:
            message = f"{self.name} is {value!r}: expected a number or a schedule, a function of the step"
            raise TypeError(message) from None


def plain(name: str, value: Any) -> Any:
    """A hyperparameter as plain data; raises `TypeError` for a schedule that is no `Schedule`."""
    if callable(value) and not isinstance(value, schedules.Schedule):
        raise TypeError(f"{name} is {value!r}: only the schedules of oxigrad.schedules can be written down")
    return value.get_config() if isinstance(value, schedules.Schedule) else value


def from_plain(value: Any) -> Any:
    """The hyperparameter that `plain` wrote down."""
    return schedules.from_config(value) if isinstance(value, dict) else value


class Part:
    """A rule with values for its hyperparameters, which are its attributes."""

    rule: Rule
    declared: Mapping[str, Hyperparameter] = {}

    def __init__(self, /, *args: Any, **hyperparameters: Any) -> None:
        names, label = list(self.declared), type(self).__name__
        if len(args) > len(names):
            raise TypeError(f"{label} takes at most {len(names)} positional arguments: {', '.join(names)}")
        given = dict(zip(names, args, strict=False))
        twice = sorted(given.keys() & hyperparameters.keys())
        unknown = sorted(hyperparameters.keys() - set(names))
        if twice or unknown:
            what = f"given twice: {', '.join(twice)}" if twice else f"unknown: {', '.join(unknown)}"
            raise TypeError(f"{label}: hyperparameters {what}; it has {', '.join(names)}")
        given |= hyperparameters
        self.hyperparameters: dict[str, Any] = {}
        for name, declared in self.declared.items():
            setattr(self, name, given.get(name, declared.default))

    def get_config(self) -> dict[str, Any]:
        """The part as plain data."""
        return {"part": type(self).__name__, **{n: plain(n, v) for n, v in self.hyperparameters.items()}}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.hyperparameters.items())
        return f"{type(self).__name__}({values})"


def declare(rule: Rule, title: str, base: type, options: Mapping[str, Any] = {}) -> type:
    """A subclass of ``base`` (itself a `Part`) for the rule, its constructor taken from the rule's signature."""
    declared = {name: Hyperparameter(name, default) for name, default in rule.defaults.items()}
    own = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in rule.defaults.items()]
    common = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in options.items()]
    body = {
        **declared,
        "__doc__": rule.call.__doc__,
        "__module__": rule.call.__module__,
        "__signature__": inspect.Signature([*own, *common]),
        "rule": rule,
        "declared": declared,
    }
    return type(title, (base,), body)
