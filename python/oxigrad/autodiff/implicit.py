"""Derivatives of solutions of equations by the implicit function theorem, whatever computes the solution."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import ShapeError, StructureError, elementwise_implicit
from oxigrad._names import check_callable
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.arguments import count_arguments
from oxigrad.autodiff.custom_rules import custom_vjp, with_pullback
from oxigrad.autodiff.function_calls import call_read_only, replaced
from oxigrad.autodiff.jacobians import jacobian
from oxigrad.autodiff.transforms import jvp, vjp
from oxigrad.ops.backends import is_smooth

# Solves a linear system: takes the function that multiplies its matrix by a vector, and the right-hand side.
Solve = Callable[[Callable[[Array], Array], Array], Array]


def implicit(
    residual: Callable[..., Tree], solver: Callable[..., Tree], solve: Solve | None = None
) -> Callable[..., Tree]:
    """The function ``solver``, differentiated at its solution in both modes, to any order, as a black box.

    Args:
        residual: function ``(x, *args)`` that is zero at the solution ``x``; differentiable.
        solver: function ``(*args)`` that returns the solution; any code.
        solve: solver of linear systems, ``(product, b)``; None factorizes the matrix.

    ``solver(*args)`` returns the tree ``x`` for which ``residual(x, *args)`` is zero: the minimizer of a function whose
    gradient is the residual, a fixed point, or the solution of a differential equation. It is called with plain values,
    for each example under `oxigrad.vmap`, and may be any code. The residual has the structure and shapes of ``x``, and
    is composed of differentiable functions.

    It is not checked that the residual is zero. The derivatives of a solution that has not converged are wrong. Values
    by which the solution is differentiated are arguments: variables that the residual closes over get no gradient.

    By the implicit function theorem, the derivative of ``x`` is ``-(dr/dx)^-1 dr/dargs``. ``solve(product, b)`` returns
    the vector ``v`` with ``product(v) = b``, where ``product`` multiplies the matrix ``dr/dx``, or its transpose, by a
    vector, as `scipy.sparse.linalg.gmres` does. By default, the matrix is formed and factorized. Of an elementwise
    residual of a real array or number it is diagonal: only its diagonal is formed, and zeros in it give infinities.

    Raises `StructureError` or `ShapeError` if the residual and the solution differ in structure or shape.

    >>> import numpy as np
    >>> from oxigrad import grad
    >>> root = implicit(lambda x, a: x**3 - a, np.cbrt)
    >>> round(grad(root)(8.0), 12), round(grad(grad(root))(8.0), 12)
    (0.083333333333, -0.006944444444)
    """
    for function, name in ((residual, "residual"), (solver, "solver")):
        check_callable(function, f"implicit, {name}")
    least, most = count_arguments(solver)[0], count_arguments(residual)[1]
    if 1 + least > most:
        raise TypeError(
            f"implicit: the solver takes at least {least} arguments and the residual at most {most}: expected "
            "implicit(residual, solver) with residual(x, *args) and solver(*args)"
        )

    def pull(
        g: Tree, x: Tree, args: tuple[Tree, ...], named: dict[str, Any], at: Sequence[int], _: Any
    ) -> tuple[Tree, ...]:
        pulled = elementwise_implicit(residual, g, x, args, at) if solve is None else None
        if pulled is None:
            direction = call_read_only(lambda g: _System(residual, solve).solved(g, x, args, transposed=True), g)
            _, pullback = vjp(lambda *parts: residual(x, *replaced(args, at, parts)), *(args[k] for k in at))
            pulled = pullback(_scaled(direction, -1.0))
        return tuple(replaced([None] * len(args), at, pulled))

    solved = with_pullback(solver, pull)
    return functools.wraps(solver)(lambda *args: solved(*args))  # without keywords, which the residual does not get


class _System:
    """Linear systems with the matrix ``dr/dx`` at a solution, or its transpose."""

    def __init__(self, residual: Callable[..., Tree], solve: Solve | None) -> None:
        self._residual, self._solve = residual, solve

    def solved(self, b: Tree, x: Tree, args: tuple[Tree, ...], *, transposed: bool) -> Tree:
        """The tree ``v`` with ``(dr/dx) v = b``, or with the transposed matrix, differentiable in all arguments."""
        solve = self._solve
        if solve is None:
            return self._directly(b, x, args, transposed=transposed)

        def by_products(b: Tree, x: Tree, *args: Tree) -> Tree:
            vector, unravel = tree.ravel(b)
            solution = solve(lambda v: tree.ravel(self._product(unravel(v), x, args, transposed=transposed))[0], vector)
            return unravel(xp.asarray(solution, dtype=vector.dtype))

        def rule(g: Tree, v: Tree, _: Tree, x: Tree, *args: Tree) -> tuple[Tree, ...]:
            adjoint = self.solved(g, x, args, transposed=not transposed)
            _, pullback = vjp(lambda x, *args: self._product(v, x, args, transposed=transposed), x, *args)
            return (adjoint, *pullback(_scaled(adjoint, -1.0)))

        return custom_vjp(by_products, rule)(b, x, *args)

    def _product(self, v: Tree, x: Tree, args: tuple[Tree, ...], *, transposed: bool) -> Tree:
        if transposed:
            _, pullback = vjp(lambda x: self._checked(x, args), x)
            return pullback(v)[0]
        return jvp(lambda x: self._checked(x, args), (x,), (v,))[1]

    def _directly(self, b: Tree, x: Tree, args: tuple[Tree, ...], *, transposed: bool) -> Tree:
        (right, unravel), (point, unravel_x) = tree.ravel(b), tree.ravel(x)
        matrix = jacobian(lambda point: tree.ravel(self._checked(unravel_x(point), args))[0])(point)
        return unravel(xp.linalg.solve(xp.matrix_transpose(matrix) if transposed else matrix, right))

    def _checked(self, x: Tree, args: tuple[Tree, ...]) -> Tree:
        """The residual, of the structure and shapes of ``x``."""
        residual = self._residual(x, *args)
        try:
            tree.map(_check_shape, x, residual)
        except StructureError as error:
            raise StructureError(f"implicit: the residual differs from the solution: {error}") from None
        return residual


def _check_shape(x: Any, residual: Any) -> None:
    shape, expected = tuple(getattr(residual, "shape", ())), tuple(getattr(x, "shape", ()))
    if shape != expected:
        raise ShapeError(f"implicit: the residual has shape {shape}, the solution {expected}")


def _scaled(tree_: Tree, factor: float) -> Tree:
    return tree.map(lambda leaf: leaf * factor if is_smooth(leaf) else leaf, tree_)
