"""Declarations of slots, the auxiliary variables of rules: initial value, condition, dtype and decay factor."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad._names import is_ours
from oxigrad._typing import Array, Dtype, Namespace
from oxigrad.ops.backends import blank_like
from oxigrad.ops.core.aliasing import lending


def guarded(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """A function of a rule that is called as by `lending`; one of the package, which writes no argument, as it is."""
    if is_ours(function):
        return function
    return lending(function, f"the {what} {getattr(function, '__name__', what)}")


@dataclasses.dataclass(frozen=True)
class Formula:
    """A function ``(xp, p, ...)`` of slots and hyperparameters of a rule.

    ``names`` maps its parameters to their names in the rule.
    """

    function: Callable[..., Any]
    names: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Formula":
        """The formula of a function whose parameters are named as the slots and hyperparameters."""
        names = [*inspect.signature(function).parameters][2:]
        return cls(guarded(function, "function"), dict(zip(names, names, strict=True)))

    def renamed(self, names: Mapping[str, str]) -> "Formula":
        """The formula with slots and hyperparameters renamed by ``names``."""
        return dataclasses.replace(
            self, names={argument: names.get(name, name) for argument, name in self.names.items()}
        )

    def __call__(self, xp: Namespace, p: Array, value: Callable[[str], Any]) -> Array:
        """The result for the parameter ``p``; ``value`` maps names to values."""
        return self.function(xp, p, **{argument: value(name) for argument, name in self.names.items()})


@dataclasses.dataclass(frozen=True)
class Slot:
    """A slot of a rule: an auxiliary variable of each parameter, declared as the default of an argument of the rule.

    An argument without a default is ``Slot.zeros()``.

    All declarations take these arguments.

    Args:
        name: the name of the slot, by default the name of the argument.
        when: the name of a hyperparameter. If that is 0, None or False, there is no slot: the rule gets None for it,
            and returns None.
        decay: the factor by which a step with a zero gradient multiplies the slot: a number, the name of a
            hyperparameter, or a function ``(xp, p, ...)`` of hyperparameters by name. By default
            `oxigrad.step.parameters.decay` measures it.
        dtype_by: the name of a hyperparameter that names the dtype of the slot, by default the parameter's dtype.
        begin: initial value: None for zeros, or a value of ``full``, ``copy``, ``scalar`` or ``computed``.
        is_moment: set when the rule is defined: whether ``slot_dtype`` applies.
        dtype: set when the rule is defined: fixed dtype of the slot.

    >>> from oxigrad import optim
    >>> def heavy_ball(xp, p, g, m=Slot.zeros(when="momentum"), *, learning_rate=0.1, momentum=0.0):
    ...     if m is not None:
    ...         g = m = momentum * m + g
    ...     return p - learning_rate * g, m
    >>> optim.define(heavy_ball)(momentum=0.5)
    HeavyBall(learning_rate=0.1, momentum=0.5)

    The other fields are set when the rule is defined. ``is_moment`` means that ``slot_dtype`` applies (to slots of an
    update rule that are initialized with zeros), and ``dtype`` is a fixed dtype of the slot.
    """

    name: str = ""
    begin: Any = None  # zeros; a number, for the whole parameter; or a `Formula`
    when: str | None = None
    decay: float | str | Callable[..., Any] | None = None
    dtype_by: str | None = None
    is_moment: bool = False
    dtype: str | None = None

    def __post_init__(self) -> None:
        if callable(self.decay) and not isinstance(self.decay, Formula):
            object.__setattr__(self, "decay", Formula.of(self.decay))

    # The declarations return Any, since they are defaults of arguments that are arrays when the rule is called.

    @classmethod
    def zeros(
        cls,
        *,
        name: str = "",
        when: str | None = None,
        decay: float | str | Callable[..., Any] | None = None,
        dtype_by: str | None = None,
    ) -> Any:
        """Initializes the slot with zeros, in the shape of the parameter."""
        return cls(name, None, when, decay, dtype_by)

    @classmethod
    def scalar(cls, value: float = 0.0, *, name: str = "") -> Any:
        """A slot of one number for each parameter, initialized with ``value``."""
        if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
            raise TypeError(f"Slot.scalar: found {value!r}, expected a number")
        return cls(name, float(value))

    @classmethod
    def copy(
        cls, *, name: str = "", decay: float | str | Callable[..., Any] | None = None, dtype_by: str | None = None
    ) -> Any:
        """Initializes the slot with a copy of the parameter."""
        return cls(name, Formula.of(_copied), None, decay, dtype_by)

    @classmethod
    def full(
        cls,
        value: float | str,
        *,
        name: str = "",
        when: str | None = None,
        decay: float | str | Callable[..., Any] | None = None,
        dtype_by: str | None = None,
        is_moment: bool = False,
    ) -> Any:
        """Initializes the slot with ``value``, a number or the name of a hyperparameter, in the shape of the parameter.

        With ``is_moment`` the option ``slot_dtype`` applies to the slot, as to slots of zeros.
        """
        if isinstance(value, str):
            begin = Formula(_filled, {"value": value})
        else:
            begin = Formula.of(lambda xp, p: xp.full_like(p, value))
        return cls(name, begin, when, decay, dtype_by, is_moment)

    @classmethod
    def computed(
        cls,
        function: Callable[..., Any],
        *,
        name: str = "",
        when: str | None = None,
        decay: float | str | Callable[..., Any] | None = None,
        dtype_by: str | None = None,
        is_moment: bool = False,
    ) -> Any:
        """Initializes the slot with ``function(xp, p, ...)``, where further parameters are hyperparameters by name.

        If the function returns None, the parameter has no slot; only rules that are called on arrays allow this. With
        ``is_moment`` the option ``slot_dtype`` applies to the slot, as to slots of zeros.
        """
        return cls(name, Formula.of(function), when, decay, dtype_by, is_moment)

    @functools.cached_property  # read for every slot in every step
    def is_number(self) -> bool:
        """Whether the slot is one number for the leaf instead of an array."""
        return isinstance(self.begin, (int, float))

    def first(self, xp: Namespace, p: Array, dtype: Dtype, value: Callable[[str], Any]) -> Array:
        """The initial value of the slot of ``p``, or None without a slot; ``value`` maps names to hyperparameters."""
        if self.begin is None:
            return blank_like("zeros_like", p, dtype, None)
        first = self.begin(xp, xp.astype(p, dtype, copy=False), value)
        # A step writes to arrays; of arrays without axes, functions of NumPy return numbers.
        return None if first is None else xp.asarray(first)

    def renamed(self, names: Mapping[str, str]) -> "Slot":
        """The slot with slots and hyperparameters renamed by ``names``."""

        def name(old: Any) -> Any:
            if isinstance(old, Formula):
                return old.renamed(names)
            return names.get(old, old) if isinstance(old, str) else old

        renamed = {field: name(getattr(self, field)) for field in ("begin", "when", "decay", "dtype_by")}
        return dataclasses.replace(self, **renamed)


def declared(name: str, default: Any) -> Slot:
    """The slot that an argument with this default declares: a function means `Slot.computed`.

    Raises `TypeError` for any other default, such as a number, which a hyperparameter has.
    """
    if isinstance(default, Slot):
        return default if default.name else dataclasses.replace(default, name=name)
    if getattr(default, "__self__", None) is Slot:
        called = f"Slot.{default.__name__}"
        raise TypeError(f"the argument {name}={called} is a function: expected a call of it, such as {called}(...)")
    if callable(default):
        return Slot(name, Formula.of(default))
    raise TypeError(
        f"the argument {name}={default!r} comes before *, as slots do: expected it after *, for a hyperparameter; "
        f"for a slot a declaration, such as {name}=Slot.scalar(0.0), a number for each parameter, or Slot.zeros()"
    )


def _copied(xp: Namespace, p: Array) -> Array:
    return xp.asarray(p, copy=True)


def _filled(xp: Namespace, p: Array, value: Array) -> Array:
    return xp.full_like(p, value)
