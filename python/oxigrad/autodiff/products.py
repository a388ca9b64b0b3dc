"""Functions of derivatives: linearization, products with derivative matrices, diagonals, and aliases of transforms."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar, cast, overload

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import DtypeError, Variable
from oxigrad._names import check_callable, library
from oxigrad._typing import Argnums, Differentiable, P, T, Tree, Ts
from oxigrad.autodiff.arguments import resolve, transformed
from oxigrad.autodiff.function_calls import replaced
from oxigrad.autodiff.jacobians import jacobian
from oxigrad.autodiff.rules.tangents import check_several
from oxigrad.autodiff.transforms import Recording, grad, jvp, vjp
from oxigrad.autodiff.vmap import vmap
from oxigrad.ops.backends import is_complex, is_smooth, size_of

Y = TypeVar("Y")


def jacfwd(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """``jacobian(f, mode="forward")``, under JAX's name.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
    """
    check_callable(f, "jacfwd")
    return jacobian(f, argnums, "forward", has_aux)


def jacrev(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, Any]:
    """``jacobian(f, mode="reverse")``, under JAX's name.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.
        has_aux: whether ``f`` returns a pair ``(value, aux)``, whose second item is passed through.
    """
    check_callable(f, "jacrev")
    return jacobian(f, argnums, "reverse", has_aux)


@overload
def elementwise_grad(f: Differentiable[P, T, Any], argnums: Literal[0] = 0) -> Callable[P, T]: ...
@overload
def elementwise_grad(f: Callable[P, Any], argnums: Argnums) -> Callable[P, Tree]: ...
def elementwise_grad(f: Callable[P, Any], argnums: Argnums = 0) -> Callable[P, Any]:
    """A function that returns the derivative of an elementwise function at each element, in the shape of the argument.

    Args:
        f: function whose result has an element for each element of the argument.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.

    It is the gradient of the sum of all elements of the result, as in HIPS autograd. For functions that are not
    elementwise, this is the sum of the rows of the Jacobian. The result may be a tree.

    >>> import numpy as np
    >>> elementwise_grad(np.square)(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])
    """
    check_callable(f, "elementwise_grad")
    return grad(functools.update_wrapper(functools.partial(_summed, f), f), argnums)


def _summed(f: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    """The sum of all elements of the result of ``f``."""
    return functools.reduce(lambda a, b: a + b, [xp.sum(leaf) for leaf in tree.leaves(f(*args, **named))])


class LinearMap(Generic[Y]):
    """The derivative of a function at a point, from `linearize`: a linear function of tangents, with its transpose."""

    def __init__(self, call: Recording) -> None:
        self._call = call

    def __call__(self, *tangents: Any, together: bool = False) -> Y:
        """The tangent of the value; with ``together``, each tangent and each array of the result has a leading axis."""
        return cast("Y", self._call.pushed(tangents, together=together))

    def pullback(self, cotangent: Y, *, together: bool = False) -> tuple[Any, ...]:
        """The transposed map: a gradient for each primal, as of `vjp`.

        With ``together``, arrays have a leading axis.
        """
        return vmap(self._call.pulled)(cotangent) if together else self._call.pulled(cotangent)

    def operator(self) -> Any:
        """The map as a `LinearOperator` of SciPy, for GMRES, LSMR, eigs and others.

        Vectors have the elements of all differentiated arrays of the primals, and of all floating-point arrays and
        numbers of the value, in the order of `oxigrad.tree.leaves`. They may be complex. Raises `DtypeError` for
        complex arrays in the primals or the value, along which derivatives may not be linear, and for tensors of
        PyTorch.
        """
        linalg: Any = library("scipy.sparse.linalg", "LinearMap.operator needs SciPy: python -m pip install scipy")
        call, inputs = self._call, self._call.watched.variables
        # Arrays of the value that the primals do not reach have rows of zeros.
        pairs = zip(call.outputs, tree.leaves(call.value), strict=True)
        outputs = [leaf if output is None else output for output, leaf in pairs]
        outputs = [output for output in outputs if isinstance(output, Variable) or is_smooth(output)]
        if any(map(is_complex, (*inputs, *outputs))):
            raise DtypeError(
                "LinearMap.operator: found complex arrays, expected real ones: take real and imaginary parts"
            )
        reached = [output for output in outputs if isinstance(output, Variable)]
        dtypes = [each.dtype for each in (*inputs, *reached)]
        try:
            dtype = np.result_type(*dtypes)
        except TypeError:
            raise DtypeError(f"LinearMap.operator: found arrays of {dtypes[0]}, expected dtypes of NumPy") from None

        def together(vectors: np.ndarray, likes: Sequence[Any]) -> list[tuple[Any, Any]]:
            parts = zip(likes, np.split(vectors.T, np.cumsum([*map(_size, likes)])[:-1], axis=1), strict=True)
            return [
                (like, np.reshape(part, (-1, *like.shape)).astype(like.dtype))
                for like, part in parts
                if isinstance(like, Variable)
            ]

        @_linear_over_complex
        def matmat(vectors: np.ndarray) -> np.ndarray:
            count = vectors.shape[1]
            pushed = iter(call.tape.push(together(vectors, inputs), reached, count))
            parts = [next(pushed) if isinstance(each, Variable) else np.zeros((count, _size(each))) for each in outputs]
            return _columns(parts, count)

        @_linear_over_complex
        def rmatmat(vectors: np.ndarray) -> np.ndarray:
            seeds = together(vectors, outputs)
            each = [[(output, part[k]) for output, part in seeds] for k in range(vectors.shape[1])]
            return np.hstack([_columns(call.tape.pull(seed, inputs), 1) for seed in each])

        return linalg.LinearOperator(
            shape=(sum(map(_size, outputs)), sum(map(_size, inputs))),
            dtype=dtype,
            matvec=lambda vector: matmat(np.reshape(vector, (-1, 1)))[:, 0],
            rmatvec=lambda vector: rmatmat(np.reshape(vector, (-1, 1)))[:, 0],
            matmat=matmat,
            rmatmat=rmatmat,
        )


def _size(array: Any) -> int:
    return math.prod(np.shape(array))


def _columns(parts: Sequence[Any], count: int) -> np.ndarray:
    """Arrays with a leading axis of this size as the columns of one matrix."""
    return np.concatenate([np.reshape(np.asarray(part), (count, -1)) for part in parts], axis=1).T


def _linear_over_complex(product: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], np.ndarray]:
    """The product of a real matrix with vectors, which may be complex."""

    def of_vectors(vectors: Any) -> np.ndarray:
        vectors = np.asarray(vectors)
        return product(vectors.real) + 1j * product(vectors.imag) if np.iscomplexobj(vectors) else product(vectors)

    return of_vectors


def linearize(f: Callable[[*Ts], Y], *primals: *Ts) -> tuple[Y, LinearMap[Y]]:
    """The value of ``f`` at the primals, and its derivative there as a linear function of the tangents.

    Args:
        f: function to differentiate; its arguments and results are arrays, numbers or trees of them.
        *primals: values of the arguments at which ``f`` is evaluated, one tree for each.

    ``f`` is called once; each call of the linear function is one forward replay. It takes a tree for each primal, of
    its structure, shapes and dtypes, and returns a tree of the structure of the value. With ``together=True``, each
    tangent and each array of the result has a leading axis: many directions in one replay, as the columns of
    `oxigrad.jacobian`. Raises as `jvp`. Its ``pullback`` is the transposed map, and its ``operator()`` a
    `scipy.sparse.linalg.LinearOperator`.

    >>> value, derivative = linearize(lambda x: x * x, 3.0)
    >>> value, derivative(1.0), derivative(10.0)
    (9.0, 6.0, 60.0)
    >>> import numpy as np
    >>> _, derivative = linearize(lambda x: x[:2] * x[2], np.array([1.0, 2.0, 3.0]))
    >>> derivative(np.eye(3), together=True)
    array([[3., 0.],
           [0., 3.],
           [1., 2.]])
    >>> derivative.pullback(np.array([1.0, 0.0]))
    (array([3., 0., 1.]),)
    >>> derivative.operator() @ np.array([1.0, 0.0, 1.0])
    array([4., 2.])
    """
    check_callable(f, "linearize")
    call = Recording.of(f, primals, tuple(range(len(primals))), forward=True)
    return call.value, LinearMap(call)


def ggnvp(
    f: Callable[..., Any], loss: Callable[[Any], Any], primals: Sequence[Tree], tangents: Sequence[Tree]
) -> tuple[Tree, ...]:
    """The product of the generalized Gauss-Newton matrix of ``loss(f(*primals))`` with the tangents.

    Args:
        f: inner function, such as a model.
        loss: scalar function of the value of ``f``.
        primals: values of the arguments at which ``f`` is evaluated, one tree for each.
        tangents: directions: one tree for each primal, of its structure, shapes and dtypes.

    Returns a tuple with one tree for each primal. The matrix is ``J^T H J`` with the Jacobian ``J`` of ``f`` and the
    Hessian ``H`` of the scalar function ``loss`` at the value of ``f``. For a convex ``loss`` it has no negative
    eigenvalue (Schraudolph, 2002). Raises as `jvp`.

    >>> ggnvp(lambda x: x * x, lambda y: 0.5 * y * y, (3.0,), (1.0,))
    (36.0,)
    """
    check_callable(f, "ggnvp")
    check_callable(loss, "ggnvp, loss")
    check_several(primals, tangents, "ggnvp")
    value, pullback = vjp(f, *primals)
    if not any(map(is_smooth, tree.leaves(value))):
        return pullback(value)  # zeros: the value is constant almost everywhere
    _, change = jvp(f, primals, tangents)
    return pullback(jvp(grad(loss), (value,), (change,))[1])


@overload
def hessian_diag(f: Differentiable[P, T, Any], argnums: Literal[0] = 0) -> Callable[P, T]: ...
@overload
def hessian_diag(f: Callable[P, Any], argnums: Argnums) -> Callable[P, Tree]: ...
def hessian_diag(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the diagonal of the Hessian of the scalar function ``f``.

    Args:
        f: scalar function of arrays, numbers or trees of them.
        argnums: position of the argument to differentiate, or a tuple of positions; the first argument by default.

    The result has the structure of the argument. It is exact, and costs one forward replay of the gradient for each
    element: the whole matrix is never formed. Raises as `grad`.

    >>> import numpy as np
    >>> hessian_diag(lambda x: x[0] ** 2 * x[1] ** 3)(np.array([1.0, 2.0]))
    array([16., 12.])
    """
    check_callable(f, "hessian_diag")
    _, argnums = resolve(f, argnums, None)
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def wrapped(*args: Any, **named: Any) -> Any:
        def gradient(*parts: Any) -> Any:
            return grad(f, chosen)(*replaced(args, chosen, parts), **named)

        parts = tuple(args[at] for at in chosen)
        _, derivative = linearize(gradient, *parts)
        leaves, structure = tree.flatten(parts)
        diagonals = [
            _diagonal(derivative, leaves, structure, at) if is_smooth(leaf) else leaf for at, leaf in enumerate(leaves)
        ]
        result = tree.unflatten(structure, diagonals)
        return result[0] if isinstance(argnums, int) else result

    return transformed(wrapped, f, functools.partial(hessian_diag, f, argnums))


def _diagonal(derivative: Callable[..., Any], leaves: list[Any], structure: tree.Structure, at: int) -> Any:
    """The diagonal of the block of the leaf ``at`` with itself."""
    zeros = [xp.zeros_like(leaf) if is_smooth(leaf) and hasattr(leaf, "shape") else 0.0 for leaf in leaves]
    shape = tuple(getattr(leaves[at], "shape", ()))

    def pushed(unit: Any) -> Any:
        tangents = tree.unflatten(structure, [*zeros[:at], unit, *zeros[at + 1 :]])
        return tree.leaves(derivative(*tangents))[at]

    if not shape:
        return pushed(zeros[at] + 1.0)
    size = size_of(shape)
    if not size:
        return zeros[at]
    flat = xp.reshape(zeros[at], (-1,))
    units = (xp.reshape(xp.at(flat)[k].set(1.0), shape) for k in range(size))
    return xp.reshape(xp.stack([xp.reshape(pushed(unit), (-1,))[k] for k, unit in enumerate(units)]), shape)
