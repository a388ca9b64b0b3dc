"""Aliases for the types of annotations.

Arrays of different libraries have no common base class, and their stubs match no common protocol, so that to a type
checker `Array`, `Dtype`, `Device`, `Namespace` and `Key` are `Any`. The names state which values a function takes and
returns.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, Protocol, SupportsFloat, TypeAlias, TypeVar, TypeVarTuple, overload

Array: TypeAlias = Any
"""An array of a library of the Array API standard, a `Variable`, or a number that stands for an array."""

Dtype: TypeAlias = Any
"""A dtype of any array library."""

Device: TypeAlias = Any
"""A device of any array library."""

Namespace: TypeAlias = Any
"""The functions of an array library, as ``__array_namespace__`` returns them: a module, or an object of its kind."""

Results: TypeAlias = Array | tuple[Array, ...]
"""The result of a function of arrays, or the tuple of its results."""

Key: TypeAlias = Any
"""The index of elements of an array: an integer, a slice, ``...``, None, an array, or a tuple of these."""

Function: TypeAlias = Callable[..., Array]
"""A function whose result is an array, of arrays and other arguments."""

Tree: TypeAlias = Any
"""A nesting of containers with arrays, numbers and other objects as leaves (see `oxigrad.tree`)."""

Axis: TypeAlias = int | tuple[int, ...] | None
"""An axis, several axes, or None for all axes."""

Shape: TypeAlias = tuple[int, ...]
"""The shape of an array."""

Config: TypeAlias = dict[str, Any]
"""A configuration: plain data, which JSON can represent."""

Number: TypeAlias = SupportsFloat | Callable[[Any], Any]
"""A numeric hyperparameter, as it is set: a number, an array without axes, or a schedule, any function of the step."""

Argnums: TypeAlias = int | tuple[int, ...]
"""The positions of the arguments that a transform differentiates."""

First: TypeAlias = Literal[0] | None
"""``argnums`` of the first argument."""

A = TypeVar("A")
"""The type of the auxiliary data that a function returns beside its value."""

P = ParamSpec("P")
"""The parameters of a transformed function, which its gradient has too."""

R = TypeVar("R")
"""The result of a function."""

T = TypeVar("T")
"""The type of a tree, where a function returns a tree of the type of its argument."""

F = TypeVar("F", bound=Callable[..., Any])
"""The type of a function that a decorator leaves as it is to its callers."""

Ts = TypeVarTuple("Ts")
"""The types of primals, each a tree."""

PerAxis: TypeAlias = T | Sequence[T]
"""A value for all axes, or a sequence of one for each axis."""

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


# ``T_contra`` is the type of the argument ``x`` of the second overload.
class Differentiable(Protocol[P, T_contra, R_co]):  # pyright: ignore[reportInvalidTypeVarUse]
    """A function for type checkers: its parameters, and the type of the first one, which its gradient has."""

    @overload
    def __call__(self, *args: P.args, **named: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, x: T_contra, /, *args: Any, **named: Any) -> R_co: ...
