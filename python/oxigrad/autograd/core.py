"""Vector spaces of values, pullbacks and pushforwards of functions of one argument, named as in `autograd.core`."""

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from oxigrad import _core, tree, xp
from oxigrad._core import DtypeError, Tape, Variable, plain
from oxigrad.autodiff.transforms import Recording
from oxigrad.autograd.primitives import *  # noqa: F403 - names of autograd.core too
from oxigrad.autograd.tracer import Box
from oxigrad.autograd.tracer import JVPNode as JVPNode
from oxigrad.autograd.tracer import SparseObject as SparseObject
from oxigrad.autograd.tracer import VJPNode as VJPNode
from oxigrad.autograd.tracer import getval as getval
from oxigrad.autograd.tracer import isbox as isbox
from oxigrad.ops.backends import is_array, is_complex, is_smooth
from oxigrad.ops.core.host_calls import of_dtype


class VSpace:
    """Vector space of a value: a number, an array, or a tree of these.

    Spaces are equal if structures, shapes and dtypes are.
    """

    #: Classes of values that a library has registered, with the functions that make their spaces.
    mappings: ClassVar[dict[type, Callable[[Any], Any]]] = {}

    def __init__(self, value: Any) -> None:
        leaves, structure = tree.flatten(value)
        self.structure: tree.Structure = structure
        self.leaves: list[Any] = [_zero(leaf) for leaf in leaves]

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], Any] | None = None) -> None:
        VSpace.mappings[value_type] = vspace_maker or cls

    @property
    def shape(self) -> Any:
        """Shape of the value, or tree of the spaces of its items."""
        zeros = self.zeros()
        return np.shape(zeros) if self.structure == _LEAF else tree.map(vspace, zeros)

    @property
    def size(self) -> int:
        """Number of real dimensions."""
        return sum(np.size(leaf) * (2 if is_complex(leaf) else 1) for leaf in self.leaves)

    @property
    def iscomplex(self) -> bool:
        return any(map(is_complex, self.leaves))

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*self.leaves)

    def zeros(self) -> Any:
        return tree.unflatten(self.structure, self.leaves)

    def ones(self) -> Any:
        """Vector of ones; of complex elements, 1 + 1j as in autograd."""
        return tree.map(lambda leaf: leaf + (1.0 + 1.0j if is_complex(leaf) else 1.0), self.zeros())

    def randn(self) -> Any:
        """Vector of random numbers of the normal distribution, from the global generator of NumPy."""

        def drawn(leaf: Any) -> Any:
            normal = functools.partial(np.random.randn, *np.shape(leaf))
            return np.asarray(normal() + 1j * normal() if is_complex(leaf) else normal()).astype(leaf.dtype)[()]

        return tree.map(drawn, self.zeros())

    def standard_basis(self) -> Iterator[Any]:
        """Basis vectors, one for each real dimension."""
        for at, leaf in enumerate(self.leaves):
            for index in np.ndindex(np.shape(leaf)):
                for unit in (1.0, 1.0j) if is_complex(leaf) else (1.0,):
                    vector = np.array(leaf)
                    vector[index] = unit
                    yield tree.unflatten(self.structure, [*self.leaves[:at], vector[()], *self.leaves[at + 1 :]])

    def add(self, x_prev: Any, x_new: Any) -> Any:
        return tree.map(lambda x, y: x + y, x_prev, x_new)

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """Sum of two vectors; of zeros for None. No vector is changed."""
        return self.add(self.zeros() if x_prev is None else x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        return tree.map(lambda x: x * a, x)

    def covector(self, x: Any) -> Any:
        return tree.map(lambda x: xp.conj(x) if is_complex(x) else x, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Real inner product of two vectors."""
        products = tree.map(lambda x, y: xp.sum(xp.real(xp.conj(x) * y) if is_complex(x) else x * y), x, y)
        return sum(tree.leaves(products))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VSpace) or self.structure != other.structure:
            return False
        return [*map(_kind, self.leaves)] == [*map(_kind, other.leaves)]

    def __hash__(self) -> int:
        return hash(self.size)

    def __repr__(self) -> str:
        return f"VSpace({self.zeros()!r})"


_LEAF = tree.flatten(0.0)[1]


def _kind(leaf: Any) -> tuple[Any, ...]:
    return leaf.shape, leaf.dtype


def _zero(leaf: Any) -> Any:
    """Zero of the shape and dtype of a leaf of a value; TypeError where it has no derivative."""
    value = plain(leaf)
    if isinstance(value, (bool, np.bool_)) or not (is_smooth(value) or isinstance(value, int) or is_array(value)):
        raise TypeError(
            f"vspace: found a {type(value).__name__}, expected numbers, arrays, or lists, tuples and dicts of them"
        )
    zeros = np.zeros_like(np.asarray(value))[()]
    return zeros if zeros.dtype.kind in "fc" else zeros.astype(np.float64)


def vspace(value: Any) -> Any:
    """Vector space of a value. Raises TypeError for values without one."""
    maker = VSpace.mappings.get(type(value), VSpace)
    return maker(value)


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Pullback of ``fun`` at ``x``, and the value ``fun(x)``."""
    x = floats(x)
    if not _is_smooth(x):
        return lambda _: vspace(x).zeros(), fun(x)
    call = _called(fun, x)
    return functools.partial(_pulled, call), call.value


def _pulled(call: Recording, g: Any) -> Any:
    """Gradient of a recorded call from a cotangent of its value."""
    leaves = [g] if call.structure == _LEAF else tree.leaves(g)
    seeds = [
        (to, _like(leaf, to.value, "make_vjp: found a complex cotangent"))
        for to, leaf in zip(call.outputs, leaves, strict=True)
        if to is not None
    ]
    return call.arguments(call.tape.pull(seeds, call.watched.variables))


def value_and_gradient(fun: Callable[[Any], Any], x: Any, check: Callable[[Any], object]) -> tuple[Any, Any]:
    """Value of ``fun`` at ``x``, and the gradient of the sum of its elements; ``check`` may refuse the value."""
    x = floats(x)
    if not _is_smooth(x):
        vjp, value = make_vjp(fun, x)
        check(value)
        return value, vjp(value)
    tape = Tape(detaches=True)
    watched, result = _core.record_call(tape, fun, (x,), None, 0)
    if type(result) is Variable and tape.owns(result):
        value = result.value
        if not isinstance(plain(value), float):
            check(value)
        return value, watched.unflatten(tape.pull([(result, _one(value))], watched.variables))[0]
    call = _warned(Recording(tape, watched, result, 0))
    check(call.value)
    return call.value, _pulled(call, tree.map(_one, call.value))


def _one(leaf: Any) -> Any:
    kind = type(plain(leaf))
    return kind(1.0) if issubclass(kind, float) else xp.ones_like(leaf)


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Pushforward of ``fun`` at ``x``: the function of a tangent that returns ``fun(x)`` and its derivative."""
    x, tangent = floats(x), lambda leaf, t: _like(t, leaf, "make_jvp: found a complex tangent")

    def jvp(g: Any) -> tuple[Any, Any]:
        call = _called(fun, x, forward=True)
        return call.value, call.pushed((tree.map(tangent, x, g),))

    return jvp


def _called(fun: Callable[[Any], Any], x: Any, *, forward: bool = False) -> Recording:
    return _warned(Recording.of(fun, (x,), 0, forward=forward, detaches=True))


def _warned(call: Recording) -> Recording:
    if not any(output is not None for output in call.outputs):
        warnings.warn("Output seems independent of input.", stacklevel=4)
    return call


def _is_smooth(x: Any) -> bool:
    """Whether a value has a derivative; an empty list has none."""
    return is_smooth(x) or any(map(is_smooth, tree.leaves(x)))


def floats(x: Any) -> Any:
    """Value as variables hold it, with floating-point numbers for integers, which autograd differentiates."""

    def converted(leaf: Any) -> Any:
        if maker := Box.type_mappings.get(type(leaf)):
            return maker(leaf)
        is_whole = isinstance(leaf, (np.ndarray, np.integer)) and leaf.dtype.kind in "iu"
        return leaf * 1.0 if is_whole or type(leaf) is int else leaf

    is_float = type(x) in (float, Variable) or (type(x) is np.ndarray and x.dtype.kind == "f")
    return x if is_float else tree.map(converted, x)


def _like(g: Any, value: Any, what: str) -> Any:
    """Tangent or cotangent in the shape and dtype of a value. A complex one of a real value is refused."""
    if is_complex(g) and not is_complex(value):
        raise DtypeError(f"{what}, expected a real one, as the value is")
    if not is_array(plain(value)):
        return g if isinstance(g, Variable) else type(plain(value))(g)
    array, shape = of_dtype(g if isinstance(g, Variable) else np.asarray(g), value), tuple(value.shape)
    return array if tuple(array.shape) == shape else xp.broadcast_to(array, shape)
