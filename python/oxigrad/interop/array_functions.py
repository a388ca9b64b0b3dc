"""Functions of lists of arrays, with derivatives of the same kind, for another library's autodiff."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DerivativeError, KeyPath, Variable
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.function_calls import TreeCall, replaced
from oxigrad.autodiff.transforms import jvp, vjp
from oxigrad.ops.backends import copied, is_array, is_complex, is_immutable, is_smooth

Arrays = Sequence[Any]
# Maps the cotangents of outputs, by position, to the cotangents of arguments.
Pullback = Callable[[Mapping[int, Any]], list[Any]]


class ArrayFunction:
    """A function from a list of arrays to a list of arrays, differentiated by oxigrad.

    Each derivative is an `ArrayFunction` too, which gives derivatives of any order.
    """

    def __init__(self, compute: Callable[[Arrays], list[Any]]) -> None:
        self.compute = compute

    def pushed(self, at: Sequence[int], outputs: Sequence[int]) -> "ArrayFunction":
        """The tangents of ``outputs``, a function of the arguments and the tangents of those ``at`` these positions."""

        def compute(arrays: Arrays) -> list[Array]:
            primals, tangents = arrays[: len(arrays) - len(at)], arrays[len(arrays) - len(at) :]
            _, pushed = jvp(functools.partial(self._varied, primals, at), [primals[i] for i in at], tangents)
            return [pushed[i] for i in outputs]

        return ArrayFunction(compute)

    def pulled(self, at: Sequence[int], outputs: Sequence[int], *, conjugated: bool = False) -> "ArrayFunction":
        """The cotangents of the arguments ``at``, as a function of the arguments and the cotangents of ``outputs``.

        ``conjugated`` cotangents are the complex conjugates, PyTorch's convention.
        """

        def compute(arrays: Arrays) -> list[Array]:
            primals, cotangents = arrays[: len(arrays) - len(outputs)], arrays[len(arrays) - len(outputs) :]
            pull = self.pullback(primals, at, conjugated=conjugated)[1]
            return pull(dict(zip(outputs, cotangents, strict=True)))

        return ArrayFunction(compute)

    def pullback(self, primals: Arrays, at: Sequence[int], *, conjugated: bool = False) -> tuple[list[Array], Pullback]:
        """The outputs, and the pullback to the arguments ``at`` these positions.

        It takes the cotangents of outputs by position. ``conjugated`` cotangents are the complex conjugates.
        """
        values, pull = vjp(functools.partial(self._varied, primals, at), *(primals[i] for i in at))
        conjugate = _conjugate if conjugated else lambda x: x

        def pulled(by_output: Mapping[int, Array]) -> list[Array]:
            cotangents = [xp.zeros_like(value) if is_smooth(value) else value for value in values]
            for i, cotangent in by_output.items():
                cotangents[i] = xp.astype(conjugate(cotangent), values[i].dtype, copy=False)
            return [conjugate(cotangent) for cotangent in pull(cotangents)]

        return values, pulled

    def _varied(self, primals: Arrays, at: Sequence[int], *chosen: Any) -> list[Array]:
        return self.compute(replaced(primals, at, chosen))


def on_copies(compute: Callable[[Arrays], list[Array]]) -> Callable[[Arrays], list[Array]]:
    """The function on copies of arrays that it could write, so that assignments change none of the caller's arrays.

    Differentiated arguments are variables, and need no copy.
    """
    return lambda arrays: compute([copied(x) if _is_writable(x) else x for x in arrays])


def _is_writable(x: Array) -> bool:
    return not isinstance(x, Variable) and is_array(x) and not is_immutable(x)


def _conjugate(x: Array) -> Array:
    return xp.conj(x) if is_complex(x) else x


class ArrayCall(TreeCall):
    """A call of a function of trees, as a function from argument arrays to result arrays.

    Args:
        f: the function.
        args: its arguments, trees.
        named: its keyword arguments, trees.
        is_argument: whether a leaf is one of these arrays; others are passed to ``f`` unchanged.
        is_result: whether a leaf of the result is an output; by default, variables and possible arguments are.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        is_argument: Callable[[Any], bool] = is_array,
        is_result: Callable[[Any], bool] | None = None,
    ) -> None:
        super().__init__(f, args, named, is_argument)
        self._is_result = is_result or (lambda leaf: isinstance(leaf, Variable) or is_argument(leaf))
        self._result: tuple[list[Any], list[int], tree.Structure] | None = None

    def compute(self, arrays: Arrays) -> list[Array]:
        """The arrays of the result of the function, for these arrays among its arguments."""
        args, named = self.arguments(arrays)
        leaves, structure = tree.flatten(self._f(*args, **named))
        at = [i for i, leaf in enumerate(leaves) if self._is_result(leaf)]
        others = replaced(leaves, at, [None] * len(at))
        if any(isinstance(leaf, Variable) for leaf in others):
            raise DerivativeError(
                f"{getattr(self._f, '__qualname__', repr(self._f))} uses a variable that is not among its arguments, "
                "and would lose its derivative: pass it as an argument, or ox.stop_gradient of it"
            )
        self._result = others, at, structure
        return [leaves[i] for i in at]

    def result(self, arrays: Arrays) -> Tree:
        """The result of the function, with its arrays replaced by these."""
        assert self._result is not None, "the function has been called"  # noqa: S101
        leaves, at, structure = self._result
        return tree.unflatten(structure, replaced(leaves, at, arrays))

    def where(self, number: int) -> str:
        """The location of one of its arrays, for an error message."""
        (_, first, *rest) = self._structure.path(self._chosen[number])
        name = getattr(first, "index", None)
        within = KeyPath(rest)
        return f"argument {getattr(first, 'key', None) if name is None else name}" + (f", {within}" if rest else "")
