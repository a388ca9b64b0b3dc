"""The base class of schedules, their arithmetic, and their configuration as plain data."""

import dataclasses
import importlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from oxigrad._core import Variable, is_inexact
from oxigrad._names import Registry
from oxigrad._typing import Array, Config
from oxigrad.ops.backends import is_array, is_smooth, namespace
from oxigrad.ops.core.aliasing import lent
from oxigrad.schedules.numbers import count_steps, number, positive

# An operand of a schedule: a number, or any function of the step.
Term = float | Callable[[Any], Any]

_REGISTRY: Registry[type["Schedule"]] = Registry()
_WHOLE = (int, int | None, "int", "int | None")
_NUMBERS = (float, float | None, "float", "float | None", *_WHOLE)


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Base class of all schedules: functions of the step, counted from 0, with a configuration as plain data.

    Schedules can be added and multiplied, with each other, with numbers and with any function of the step:

    >>> from oxigrad.schedules import linear
    >>> schedule = 0.5 * linear(0.0, 1.0, 4) + 1.0
    >>> schedule(0), schedule(2), schedule(9)
    (1.0, 1.25, 1.5)

    A subclass is a frozen dataclass with a method ``at(step)``; ``step`` is a number, or a floating-point array or
    variable. `get_config` returns its fields, none of which may be named ``schedule``:

    >>> @dataclasses.dataclass(frozen=True)
    ... class harmonic(Schedule):
    ...     initial: float
    ...
    ...     def at(self, step):
    ...         return self.initial / (step + 1)
    >>> harmonic(0.5)(1), harmonic(0.5).get_config()
    (0.25, {'schedule': 'harmonic', 'initial': 0.5})
    """

    __array_ufunc__ = None  # arithmetic with NumPy scalars defers to this class

    _positive: ClassVar[tuple[str, ...]] = ()
    _steps: ClassVar[tuple[str, ...]] = ()
    _infinite: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, positive: str = "", steps: str = "", infinite: str = "") -> None:
        """Each names fields: ``positive`` numbers, numbers of ``steps``, and those that may be ``infinite``."""
        cls._positive = (*cls._positive, *positive.split())
        cls._steps = (*cls._steps, *steps.split())
        cls._infinite = (*cls._infinite, *infinite.split())
        _REGISTRY[cls.__name__] = cls

    def __post_init__(self) -> None:
        """Converts every field to Python numbers, strings, functions, and tuples of them."""
        for field in dataclasses.fields(self):
            if field.init:
                try:
                    plain = _read_field(field, getattr(self, field.name), is_finite=field.name not in self._infinite)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"{type(self).__name__}: {field.name}: {error}") from None
                object.__setattr__(self, field.name, plain)
        positive(**{name: getattr(self, name) for name in self._positive})
        count_steps(**{name: getattr(self, name) for name in self._steps if getattr(self, name) is not None})

    def __call__(self, step: Array) -> Array:
        """The value at ``step``, counted from 0: a number, an array or a traced value, as ``step`` is.

        Integer arrays are converted to the default floating-point dtype of their library.
        """
        return self.at(step if type(step) is int else _real(step))

    def at(self, step: Array) -> Array:
        """The value at ``step``; subclasses override it."""
        raise TypeError(f"{type(self).__name__} does not define at(step)")

    @property
    def _of_counts(self) -> Callable[[Any], Any]:
        """The function of an int step, without conversion: ``at``, unless a subclass overrides ``__call__``."""
        return self.at if type(self).__call__ is Schedule.__call__ else self

    def plot(self, steps: int = 1000, ax: Any = None) -> Any:
        """Plots the values at the first ``steps`` steps by matplotlib, on ``ax`` or pyplot's axes; returns the axes.

        >>> from matplotlib.figure import Figure
        >>> from oxigrad.schedules import linear
        >>> linear(1.0, 0.0, 10).plot(3, Figure().subplots()).lines[0].get_ydata().tolist()
        [1.0, 0.9, 0.8]
        """
        ax = importlib.import_module("matplotlib.pyplot").gca() if ax is None else ax
        ax.plot(range(steps), [float(self(step)) for step in range(steps)])
        ax.set(xlabel="step", ylabel="value")
        return ax

    # --- configuration and state --------------------------------------------------------------------------------------

    def get_config(self) -> Config:
        """The schedule as plain data (JSON), for `from_config`.

        Raises `TypeError` for an operand that is a function but not a `Schedule`.
        """
        names = [field.name for field in dataclasses.fields(self) if field.init]
        if "schedule" in names:
            raise TypeError(
                f"{type(self).__name__}: found a field named schedule, which is the key of the class in "
                "configurations: rename it"
            )
        fields = {name: self._written(name, getattr(self, name)) for name in names}
        return {"schedule": type(self).__name__, **fields}

    def _written(self, name: str, value: Any) -> Any:
        if isinstance(value, Schedule):
            return value.get_config()
        if isinstance(value, tuple):
            return [self._written(name, item) for item in value]
        if value is None or isinstance(value, (int, float, str)):
            return value
        raise TypeError(
            f"{type(self).__name__}: {name} is {value!r}: expected a number or a schedule of oxigrad.schedules, which "
            "has a configuration"
        )

    def _operands(self) -> Iterator[tuple[str, "Schedule"]]:
        """The operands that are schedules, each after the prefix of its state."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            parts = enumerate(value) if isinstance(value, tuple) else [(None, value)]
            for index, part in parts:
                if isinstance(part, Schedule):
                    yield f"{field.name}." + ("" if index is None else f"{index}."), part

    def state_dict(self) -> dict[str, Any]:
        """The state as plain data (JSON): empty unless a `plateau` is among the operands.

        >>> from oxigrad.schedules import linear, plateau
        >>> schedule = linear(0.0, 1.0, 10) * plateau(0.1)
        >>> schedule.terms[1].observe(2.5)
        0.1
        >>> schedule.state_dict()
        {'terms.1.value': 0.1, 'terms.1.best': 2.5, 'terms.1.bad': 0, 'terms.1.cooling': 0}
        """
        operands = self._operands()
        return {f"{prefix}{name}": value for prefix, part in operands for name, value in part.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the state that `state_dict` returned.

        Raises `ValueError` for the state of another schedule and `TypeError` for values that are not numbers. Nothing
        is changed then.
        """
        values = self._checked_state(state)
        for prefix, part in self._operands():
            part.load_state_dict({n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)})

    def _checked_state(self, state: Mapping[str, Any]) -> dict[str, float | None]:
        expected, names = self.state_dict().keys(), state.keys()
        if expected != names:
            missing, unexpected = sorted(expected - names), sorted(names - expected)
            raise ValueError(f"the state belongs to another schedule: missing {missing}, unexpected {unexpected}")
        return {name: None if value is None else number(value) for name, value in state.items()}

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def __add__(self, other: Term) -> "Schedule":
        return _combined(add, self, other)

    def __radd__(self, other: Term) -> "Schedule":
        return _combined(add, other, self)

    def __mul__(self, other: Term) -> "Schedule":
        return _combined(multiply, self, other)

    def __rmul__(self, other: Term) -> "Schedule":
        return _combined(multiply, other, self)

    def __neg__(self) -> "Schedule":
        return -1.0 * self

    def __sub__(self, other: Term) -> "Schedule":
        return self + multiply((-1.0, other))

    def __rsub__(self, other: Term) -> "Schedule":
        return other + -self

    def __truediv__(self, other: float) -> "Schedule":
        return self * (1.0 / number(other))


@dataclasses.dataclass(frozen=True)
class add(Schedule):
    """The sum of numbers and schedules, ``a + b``.

    Args:
        terms: numbers and schedules that are added.
    """

    terms: tuple[Term, ...]

    def at(self, step: Array) -> Array:
        return sum(map(value_at, self.terms, itertools.repeat(step)))


@dataclasses.dataclass(frozen=True)
class multiply(Schedule):
    """The product of numbers and schedules, ``a * b``.

    Args:
        terms: numbers and schedules that are multiplied.

    torch's ``ChainedScheduler`` of schedulers that scale the learning rate is the product of their factors:

    >>> from oxigrad.schedules import constant, exponential, join
    >>> schedule = 0.05 * join((0.1, 1.0), (20,)) * exponential(1.0, 0.9)
    >>> [round(schedule(step), 5) for step in (0, 1, 2, 19, 20, 21)]
    [0.005, 0.0045, 0.00405, 0.00068, 0.00608, 0.00547]
    """

    terms: tuple[Term, ...]

    def at(self, step: Array) -> Array:
        return math.prod(map(value_at, self.terms, itertools.repeat(step)))


@dataclasses.dataclass(frozen=True)
class follow(Schedule):
    """The current learning rate of a scheduler of another library: ``scheduler.get_last_lr()[group]``.

    Args:
        scheduler: scheduler of another library, with a method ``get_last_lr``.
        group: index of the parameter group; may be None if the scheduler has only one group.

    The step is ignored: call ``scheduler.step()`` yourself. (torch expects one earlier call of ``step()`` of its
    optimizer, which does nothing without gradients.) If a hyperparameter is set to such a scheduler, it is set
    to this schedule. It has no configuration; save the scheduler's own ``state_dict()``. In a traced program, such as
    ``jax.jit(opt.apply)``, it is a constant, the value at the time of tracing.

    Raises `TypeError` for an object without ``get_last_lr``. Raises `ValueError` if there are several groups and
    ``group`` is None, or if ``group`` is out of range.

    >>> class Halving:
    ...     rate = 1.0
    ...
    ...     def get_last_lr(self):
    ...         return [self.rate]
    ...
    ...     def step(self):
    ...         self.rate /= 2
    >>> scheduler = Halving()
    >>> schedule = follow(scheduler)
    >>> scheduler.step()
    >>> schedule(0)
    0.5
    """

    scheduler: Any
    group: int | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.scheduler, "get_last_lr", None)):
            raise TypeError(f"follow: scheduler is {self.scheduler!r}: expected an object with a method get_last_lr")
        if self.group is not None and (isinstance(self.group, bool) or not isinstance(self.group, int)):
            raise TypeError(f"follow: group is {self.group!r}: expected an index, or None")
        groups = len(self.scheduler.get_last_lr())
        if self.group is None and groups != 1:
            raise ValueError(
                f"follow: group is None, and the scheduler has {groups} groups: expected an index, as in "
                "follow(scheduler, group=0)"
            )
        if self.group is not None and not 0 <= self.group < groups:
            raise ValueError(
                f"follow: group is {self.group}: expected an index below {groups}, the number of groups of the "
                "scheduler"
            )

    def at(self, step: Array) -> Array:
        return number(self.scheduler.get_last_lr()[self.group or 0])


def _combined(kind: type[add] | type[multiply], *terms: Term) -> Schedule:
    return kind(tuple(part for term in terms for part in (term.terms if isinstance(term, kind) else (term,))))


# --- conversion -------------------------------------------------------------------------------------------------------


def from_config(config: Mapping[str, Any]) -> Schedule:
    """The schedule of a configuration by `Schedule.get_config`.

    Args:
        config: dict that `Schedule.get_config` returned.

    Raises `ValueError` if its class is not defined, and `TypeError` for anything but a dict.

    >>> from oxigrad.schedules import constant
    >>> from_config(constant(0.1).get_config())(5)
    0.1
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"the configuration is {type(config).__name__}: expected a dict, the result of get_config")
    fields = dict(config)
    name = fields.pop("schedule", None)
    if (cls := _REGISTRY.get(name)) is None:
        raise ValueError(f"schedule is {name!r}: expected one of {sorted(_REGISTRY)}")

    def read(value: Any) -> Any:
        if isinstance(value, Mapping):
            return from_config(value)
        return tuple(map(read, value)) if isinstance(value, (list, tuple)) else value

    return cls(**{key: read(value) for key, value in fields.items()})


def term(value: Any) -> Term:
    """The value as an operand: a number, a function of the step, or `follow` of a scheduler that has ``get_last_lr``.

    Raises `TypeError` for anything else, such as a class, or a function that does not take the step alone.
    """
    if callable(value) and _takes_step(value):
        return value
    if callable(getattr(value, "get_last_lr", None)):
        return follow(value)
    return number(value)


def _takes_step(function: Any) -> bool:
    """Whether it is called with the step alone: a class is not, for which an instance is meant."""
    if isinstance(function, Schedule | type):
        return isinstance(function, Schedule)
    try:
        inspect.signature(function).bind(0)
    except TypeError:
        return False
    except ValueError:  # a function of C without a signature
        pass
    return True


def _read_field(field: dataclasses.Field[Any], value: Any, *, is_finite: bool) -> Any:
    if value is None and field.default is None:
        return None
    if field.type in _NUMBERS:
        value = _but_nan(number(value))
        if is_finite and math.isinf(value):
            raise ValueError(f"found {value}: expected a finite number")
        if field.type in _WHOLE and value != int(value):
            raise ValueError(f"found {value}: expected a whole number")
        return int(value) if field.type in _WHOLE else value
    for kind, expected in ((str, "text"), (bool, "True or False")):
        if field.type in (kind, kind.__name__):
            value = value.item() if isinstance(value, np.generic) else value
            if not isinstance(value, kind):
                raise TypeError(f"found {value!r}: expected {expected}")
            return value
    if isinstance(value, (list, tuple)) and field.type not in (Term, "Term"):
        return tuple(_but_nan(term(each)) for each in value)
    return _but_nan(term(value))


def _but_nan(value: Any) -> Any:
    """The value; raises `ValueError` for NaN."""
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("found nan: expected a number")
    return value


def value_at(schedule: Term, step: Array) -> Array:
    """The value of a schedule or number at a ``step`` as `Schedule.at` takes it."""
    if isinstance(schedule, Schedule) and type(schedule).__call__ is Schedule.__call__:
        return schedule.at(step)
    return schedule(step) if callable(schedule) else schedule


def number_at(schedule: Term, step: Array, name: str = "the schedule") -> Array:
    """The value at ``step`` as a Python number; a traced value or a variable is returned unchanged.

    Raises `TypeError`, with ``name``, for any other value.
    """
    value: Any = schedule(step if type(step) is int else lent(step, {})) if callable(schedule) else schedule
    if type(value) is float or isinstance(value, Variable) or is_array(step):
        return value
    try:
        return number(value)
    except TypeError as error:
        if is_array(value) and tuple(value.shape) == () and is_inexact(value):
            return value
        raise TypeError(f"{name} at step {step}: {error}") from None


def _real(step: Array) -> Array:
    if isinstance(step, int) or is_smooth(step) or not is_array(step):
        return step
    library = namespace(step)
    return library.astype(step, library.__array_namespace_info__().default_dtypes()["real floating"])
