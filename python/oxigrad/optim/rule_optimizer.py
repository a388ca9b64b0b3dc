"""Optimizers of one rule, which `define` makes, and their groups of hyperparameters."""

import dataclasses
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from oxigrad._core import RuleError
from oxigrad._typing import Array, Config
from oxigrad.ops.backends import dtype_name
from oxigrad.ops.core.aliasing import WrittenError
from oxigrad.optim.optimizer import LocalOptimizer, Optimizer
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.config import OPTIONS, REGISTRY, register_subclass
from oxigrad.optim.settings.hyperparameters import DeclaredAttributes, Part, declare, plain
from oxigrad.optim.settings.options import text_of_dtype
from oxigrad.rules.core import rule
from oxigrad.rules.core.rule import Rule
from oxigrad.step.arrays.precision import half
from oxigrad.step.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.step.parameters.rule_executors import kernel_of


class RuleOptimizer(Part, LocalOptimizer):
    """Base class of optimizers of one rule, which `define` makes.

    Hyperparameters are attributes: constants, or schedules (functions of the step).

    ``groups`` sets hyperparameters by pattern: a dict from globs, compiled regular expressions or predicates ``(path,
    array)`` to dicts of hyperparameters. None freezes parameters: they have no slots, decay or update, and their
    gradients may be missing. The first match wins. ``dtype`` restricts the optimizer to parameters of one dtype.
    ``compat`` is "torch", "optax" or "keras": the library whose defaults are used for other hyperparameters (see
    `oxigrad.optim.table`).

    A subclass may add attributes and methods; `from_config` calls it with the hyperparameters and options by keyword.
    Raises `TypeError` for a subclass that overrides `update` or `apply`: write another step as a rule, for `define`.
    """

    _options_of_class = tuple(OPTIONS)
    _groups: dict[Any, dict[str, Any] | None]
    _parameter_groups: weakref.WeakKeyDictionary[
        Optimizer, tuple[SteppingOptions, dict[tuple[int | None, str | None], ParameterGroup]]
    ]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if overridden := [name for name in ("update", "apply") if name in vars(cls)]:
            raise TypeError(
                f"{cls.__name__} overrides {' and '.join(overridden)}, which minimize, chains and partitions do not "
                "call: expected its step as a rule, for oxigrad.optim.define"
            )
        register_subclass(cls)

    def __init__(
        self, /, *args: Any, groups: Any = None, dtype: Any = None, compat: str | None = None, **keywords: Any
    ) -> None:
        keywords = keywords if compat is None else self._filled_in(compat, args, keywords)
        options = {name: keywords.pop(name) for name in (*OPTIONS,) if name in keywords} if keywords else {}
        self._set_hyperparameters(args, keywords)
        vars(self).update(dtype=None, _groups={}, _parameter_groups=weakref.WeakKeyDictionary())
        if dtype is not None:
            self.dtype = dtype
        if groups:
            self.groups = groups
        self._configure(options)

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return type(self).__name__

    @property
    def groups(self) -> Mapping[Any, Mapping[str, Any] | None]:
        """Read-only view of the hyperparameters by pattern; assign a new dict to change it."""
        shown = {pattern: values and MappingProxyType(values) for pattern, values in self._groups.items()}
        return MappingProxyType(shown)

    @groups.setter
    def groups(self, groups: Mapping[Any, Mapping[str, Any] | None]) -> None:
        param_groups.check(groups)
        checked = {pattern: self._checked(pattern, values) for pattern, values in groups.items()}
        vars(self).update(_groups=checked, _parameter_groups=weakref.WeakKeyDictionary())
        self._version.raise_structure()

    def _checked(self, pattern: Any, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if values is None:
            return None
        if not isinstance(values, Mapping):
            raise TypeError(
                f"the group {pattern!r}: found {values!r}, expected a dict of hyperparameters, or None to freeze"
            )
        unknown = sorted(values.keys() - self._declared.keys())
        if options := [name for name in unknown if name in OPTIONS]:
            raise TypeError(
                f"the group {pattern!r}: found {', '.join(options)}, an option of the whole optimizer: expected it as "
                "an argument, or a partition of optimizers with different options"
            )
        if unknown:
            names = ", ".join(self._declared)
            raise TypeError(
                f"the group {pattern!r}: unknown hyperparameters: {', '.join(unknown)}"
                f"{self._hint(unknown[0])}; there are {names}"
            )
        try:
            return {name: self._declared[name].check(value) for name, value in values.items()}
        except (TypeError, ValueError) as error:
            raise type(error)(f"the group {pattern!r}: {error}") from None

    def _rules_and_absent(self) -> list[tuple[Rule, set[str]]]:
        """See `StatefulOptimizer._rules_and_absent`."""
        values = self._hyperparameters
        overridden = {name for group in self._groups.values() for name in group or ()}
        return [(self._rule, {slot for slot, asks in self._rule.optional if not (values[asks] or asks in overridden)})]

    def _check_patterns(self, parameters: list[tuple[str, Array]]) -> None:
        """See `Optimizer._check_patterns`."""
        param_groups.check_matched(self._groups, parameters)

    def _assign(self, path: str, array: Array, owner: Optimizer | None = None) -> ParameterGroup | None:
        """See `Optimizer._assign`."""
        if self.dtype is not None and not _has(array, self.dtype):
            return None
        at = param_groups.first_match(self._groups, path, array) if self._groups else None
        overrides = {} if at is None else list(self._groups.values())[at]
        if overrides is None:
            return None
        owner = self if owner is None else owner
        options, key = owner._stepper.options, (at, half(array))
        held, groups = self._parameter_groups.get(owner, (None, {}))
        if held is not options:
            groups: dict[tuple[int | None, str | None], ParameterGroup] = {}
            self._parameter_groups[owner] = options, groups
        if key not in groups:
            groups[key] = self._new_group(options, overrides, key[1])
        return groups[key]

    def _set_checked(self, name: str, value: Any) -> None:
        """See `StatefulOptimizer._set_checked`. Raises `AttributeError` for an option of one inside of another."""
        for owner in self._parameter_groups:
            if owner is not self and value != OPTIONS.get(name, value):
                raise AttributeError(f"{name} must be set on the optimizer that takes the steps, {owner!r}")
        super()._set_checked(name, value)

    def _current(self, name: str, step: int) -> Any:
        """See `Optimizer._current`."""
        if name not in self._declared:
            raise AttributeError(f"{self.name} has no hyperparameter {name}{self._hint(name)}")
        return self._declared[name].at(self._hyperparameters[name], step)

    @property
    def program(self) -> Any:
        """The kernel of the rule with the current flags, which prints as a listing.

        None where the rule is called on arrays.
        """
        group = self._whole_group()
        return group.program(group.rule())

    def _whole_group(self, storage: str | None = None) -> ParameterGroup:
        """The group of parameters that no pattern matches; ``storage`` as in `ParameterGroup`."""
        return self._new_group(self._step_options, {}, storage)

    def _new_group(self, options: SteppingOptions, overrides: Mapping[str, Any], storage: str | None) -> ParameterGroup:
        """A group of parameters with its hyperparameters and ``overrides``."""
        return ParameterGroup(self.name, options, self._rule, self._declared, self._hyperparameters, overrides, storage)

    def get_config(self) -> Config:
        """See `Optimizer.get_config`."""
        values = {name: plain(name, value) for name, value in self.hyperparameters.items()}
        return {"optimizer": self.name, **values, **self._options()}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copy = super().__deepcopy__(memo)
        copy._parameter_groups = weakref.WeakKeyDictionary()
        return copy

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield from super()._parts()
        yield from self.hyperparameters.items()
        for number, values in enumerate(self._groups.values()):
            yield from ((f"groups.{number}.{name}", value) for name, value in (values or {}).items())

    def _given_options(self) -> Config:
        def group(values: Mapping[str, Any] | None) -> Any:
            return None if values is None else {name: plain(name, value) for name, value in values.items()}

        groups = [[param_groups.plain(pattern), group(values)] for pattern, values in self._groups.items()]
        return {**super()._given_options(), "groups": groups or None, "dtype": text_of_dtype(self.dtype)}

    def _shown(self) -> str:
        return (super()._shown() + self._shown_options()).removeprefix(", ")


if TYPE_CHECKING:

    class DefinedOptimizer(DeclaredAttributes, RuleOptimizer):
        """To type checkers, an optimizer by `define`: its hyperparameters are attributes, which they cannot know."""

else:
    DefinedOptimizer = RuleOptimizer


def define(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    elementwise: bool | None = None,
    average: Callable[..., Any] | None = None,
) -> type[DefinedOptimizer]:
    """Defines an optimizer by its rule: a subclass of `RuleOptimizer`, with the constructor's signature from the rule.

    Args:
        function: update rule ``(xp, p, g, *slots, *, step, ...)``.
        name: name of the class; by default the name of the function in camel case.
        elementwise: true demands a fused kernel, False calls the rule on arrays, None decides.
        average: function ``(xp, p, ...)`` that computes the average of the parameters.

    The rule is traced into a kernel if that is possible, which ``elementwise=True`` demands; otherwise, and with
    ``elementwise=False``, it is called on arrays, leaf by leaf, and may use any of their functions. `oxigrad.rules`
    describes the signature of a rule. A rule returns new arrays: NumPy's are read-only in it, and other arrays that may
    be written are copies. Global variables, random numbers and the clock are constants of a traced rule. ``average``
    computes ``averaged_parameters(model)`` where no slot ``average`` holds it: a function ``(xp, p, ...)`` of the
    parameter and of those slots and hyperparameters that it names, such as `oxigrad.rules.schedule_free_average`.
    Raises `TypeError` if the signature does not describe a rule, or a hyperparameter has the name of an attribute of
    all optimizers; `RuleError` where a rule does not return the parameter and its slots, or writes an argument in
    place, and, with ``elementwise=True``, where it cannot be traced into a kernel.

    >>> def sign_descent(xp, p, g, *, learning_rate=0.01):
    ...     return p - learning_rate * xp.sign(g)
    >>> SignDescent = define(sign_descent)
    >>> SignDescent(learning_rate=0.1)
    SignDescent(learning_rate=0.1)

    An annotation declares the domain of a hyperparameter, which is checked wherever it is set: by the constructor, as
    an attribute, in groups, in a configuration or by a schedule. It is `Interval` for numbers and ``Literal`` for
    names; a default of True or False means a bool. Without one, a number may be any but NaN.

    >>> from typing import Annotated, Literal
    >>> from oxigrad.optim import Interval
    >>> def blend(
    ...     xp,
    ...     p,
    ...     g,
    ...     m,
    ...     *,
    ...     beta: Annotated[float, Interval("[0, 1)")] = 0.9,
    ...     mode: Literal["sum", "mean"] = "mean",
    ... ):
    ...     m = beta * m + (g if mode == "sum" else (1 - beta) * g)
    ...     return p - 0.1 * m, m
    >>> define(blend)(beta=1.5)
    Traceback (most recent call last):
    ValueError: beta is 1.5: expected a number in [0, 1)

    The class belongs to the module of the caller. It pickles if the module has it under its name.
    """
    if not isinstance(name, str | None):
        raise TypeError(f"define: name is {name!r}: expected text, or None")
    if not isinstance(elementwise, bool | None):
        raise TypeError(f"define: elementwise is {elementwise!r}: expected True, False or None")
    if not (average is None or callable(average)):
        raise TypeError(f"define: average is {average!r}: expected a function, or None")
    return defined(function, name, caller(), elementwise=elementwise, average=average)


def defined(
    function: Callable[..., Any],
    name: str | None,
    module: str,
    *,
    elementwise: bool | None,
    average: Callable[..., Any] | None,
) -> type[DefinedOptimizer]:
    """The class of `define`, in the module of this name."""
    read = rule.read(function, "update", elementwise=elementwise is not False, average=average)
    if elementwise is None:
        read = dataclasses.replace(read, elementwise=is_elementwise(read))
    cls = register(read, name, RuleOptimizer, OPTIONS, module=module)
    cls().program  # noqa: B018 - traces the rule, so that it is refused here and not at the first step
    return cls


def is_elementwise(read: Rule) -> bool:
    """Whether an update rule can be traced into a kernel.

    Raises the `RuleError` of a rule that fails on arrays too, or whose results differ from its declaration.
    """
    _check_names(read)
    try:
        kernel_of(read, read.flags)
    except rule.ResultsError:
        raise
    except RuleError as error:
        on_arrays = dataclasses.replace(read, elementwise=False)
        _try_on_arrays(declare(on_arrays, read.name, RuleOptimizer, {**OPTIONS, "compat": None}, __name__), error)
        return False
    return True


# What arithmetic on arrays raises; any other error comes from an object of the user.
_FAILURES = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)


def _try_on_arrays(cls: type[RuleOptimizer], obstacle: RuleError) -> None:
    """Raises the ``obstacle`` to tracing a rule that fails on arrays too, both on matrices and on vectors."""
    reason: Exception | None = None
    for shape in ((2, 2), (2,)):
        try:
            cls().update({"p": np.ones(shape)}, {"p": np.full(shape, 0.5)}, loss=1.0)
        except WrittenError:
            raise
        except _FAILURES as error:
            reason = error
        else:
            return
    raise obstacle from reason


def caller() -> str:
    """The name of the module of the caller's caller, in which a class is defined."""
    return sys._getframe(2).f_globals.get("__name__", "__main__")


def register(read: Rule, name: str | None, base: type, options: Mapping[str, Any] = {}, *, module: str) -> Any:
    """A subclass of ``base`` for a rule, registered (weakly) for `from_config`; ``options`` are in its signature."""
    _check_names(read)
    title = name or "".join(part.capitalize() for part in read.name.split("_"))
    cls = declare(read, title, base, {**options, "compat": None}, module)
    REGISTRY[title] = cls
    return cls


def _check_names(read: Rule) -> None:
    if taken := sorted(name for name in read.defaults if name in _TAKEN or name.startswith("_")):
        raise TypeError(
            f"{read.name}: found hyperparameters named {', '.join(taken)}: expected names without an underscore in "
            "front that no attribute or option of optimizers has"
        )


# Attributes of optimizers, and the keys of their configurations.
_TAKEN = {
    *dir(RuleOptimizer),
    *OPTIONS,
    "compat",
    "hyperparameters",
    "optimizer",
    "part",
    "parts",
}


def _has(array: Array, dtype: Any) -> bool:
    """Whether an array has a dtype, given as an object or by name."""
    return dtype_name(array.dtype) == dtype if isinstance(dtype, str) else bool(array.dtype == dtype)
