"""Initial value problems: SciPy's `solve_ivp` chooses the steps, which are taken again by differentiable functions."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import DerivativeError, NonFiniteError, Tape, Variable
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._names import check_callable
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import UnbatchedError, for_each_example, is_of_vmap, one_by_one
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.array_like import array
from oxigrad.xp._scipy.integrate.roots import check_args, corrected, has_variable, plain_tree

__all__ = ["solve_ivp"]

Slope = Callable[[Any, Any], Any]


def solve_ivp(
    fun: Function,
    t_span: Any,
    y0: Array,
    method: Any = "RK45",
    t_eval: Array | None = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """The solution of ``dy/dt = fun(t, y, *args)`` from ``y0`` of shape (n,), as in `scipy.integrate.solve_ivp`.

    The result is SciPy's, with ``t``, ``y``, ``sol``, ``t_events`` and ``y_events`` as functions of every variable: of
    ``y0``, the ends of ``t_span``, ``t_eval``, ``args``, and what ``fun`` and the events read. SciPy chooses the steps,
    on plain values; the accepted steps are constants, up to the last one, which ends at ``t_span[1]``. Their formulas
    are then differentiated, to any order. The time of an event follows from the implicit function theorem.

    ``method`` is "RK23", "RK45", "DOP853" or "Radau"; without variables any of SciPy's. Raises `DerivativeError` for
    others, `TypeError` if ``fun`` returns no numbers, and `NonFiniteError` if they are not finite at the start.
    """
    check_callable(fun, "solve_ivp")
    arguments = () if args is None else check_args(args, "solve_ivp")
    arguments_of_scipy = plain_tree((t_span, y0, t_eval, arguments))
    reads: list[bool] = [any(map(has_variable, (t_span, y0, t_eval, arguments)))]

    def bare(f: Callable[..., Any]) -> Callable[..., Any]:
        def called(t: Array, y: Array) -> Array:
            value = f(t, y, *arguments_of_scipy[3])
            reads[0] = reads[0] or has_variable(value)
            return np.asarray(plain_tree(value))

        vars(called).update(vars(f) if hasattr(f, "__dict__") else {})
        return called

    def slope(t: Array, y: Array) -> Array:
        value = unchecked(t, y)
        if not checked:  # SciPy would choose steps of size NaN forever
            _check_slope(value)
            checked.append(True)
        return value

    unchecked, checked = bare(fun), list[bool]()
    functions = [] if events is None else [events] if callable(events) else [*events]
    if callable(options.get("jac")):
        options = {**options, "jac": bare(options["jac"])}
    plain_events = [bare(event) for event in functions] or None
    solve = of_scipy("integrate", "solve_ivp")
    try:
        result = solve(
            slope, *arguments_of_scipy[:2], method, arguments_of_scipy[2], True, plain_events, vectorized, **options
        )
    except UnbatchedError as error:
        raise UnbatchedError(
            "solve_ivp: found a value that vmap has batched, expected one example, for which SciPy chooses the steps: "
            "write xp.stack([f(x) for x in xs]) for vmap(f)(xs)"
        ) from error
    if events is not None and callable(events) and result.t_events is not None:
        functions = [events]
    call = (t_span, y0, t_eval, arguments)
    result.sol = Solution(result, fun, call, method, reads_variables=reads[0])
    if reads[0]:
        _differentiated(result, functions, call)
    if not dense_output:
        result.sol = None
    return result


def _check_slope(value: np.ndarray) -> None:
    if value.dtype.kind not in "biufc":
        raise TypeError(f"solve_ivp: fun returned {value[()]!r}: expected the derivative of y, of its shape")
    if not np.all(np.isfinite(value)):
        raise NonFiniteError(f"solve_ivp: fun returned {value[()]!r} at the start: expected finite numbers")


def _differentiated(result: Any, events: Sequence[Callable[..., Any]], call: tuple[Any, ...]) -> None:
    """The result with differentiable functions in the place of its arrays."""
    (start, _), _, t_eval, args = call
    times, steps = result.sol.times, result.sol.steps
    terminal = None
    if result.t_events is not None:
        event_times = [
            [_time(event, result.sol, t, args) for t in each]
            for event, each in zip(events, result.t_events, strict=True)
        ]
        if result.status == 1:
            terminal = max(
                (t for each in event_times for t in each), key=lambda t: abs(float(plain(t)) - float(plain(start)))
            )
        result.t_events = [ops.stack([*map(array, each)]) if each else np.asarray([]) for each in event_times]
        result.y_events = [ops.stack([result.sol(t) for t in each]) if each else np.asarray([]) for each in event_times]
    if t_eval is not None:
        count = len(result.t)
        asked = array(t_eval)
        result.t = asked[:count]
        result.y = result.sol(result.t)
        return
    ends = [step.end for step in steps]
    if terminal is not None:
        times, ends = [*times[:-1], terminal], [*ends[:-1], result.sol(terminal)]
    result.t = ops.stack([array(t) * 1.0 for t in times])
    result.y = ops.stack([steps[0].y, *ends], axis=1)


def _time(event: Function, solution: "Solution", t: float, args: tuple[Array, ...]) -> Array:
    """The time of an event near ``t`` as a function of all variables."""

    def value(t: Array) -> Array:
        return event(t, solution(t), *args)

    with Tape() as tape:
        variable = tape.watch(float(t))
        slope = tape.gradient(ops.sum(value(variable)), [variable])[0]
    return corrected(value, float(t), lambda r: r / float(np.asarray(plain_tree(slope))))


class Solution:
    """The dense output: a function of times, differentiable by them and by all that the steps read.

    Without variables its values are SciPy's, and the steps are taken when a time is a variable.
    """

    def __init__(
        self, result: Any, fun: Function, call: tuple[Array, ...], method: Any, *, reads_variables: bool
    ) -> None:
        self._plain, self._call, self._method, self._fun = result.sol, call, method, fun
        self._is_whole, self._reads_variables = result.status == 0, reads_variables
        self.ts: np.ndarray = result.sol.ts
        self.interpolants: list[Array] = result.sol.interpolants
        self.t_min: float = result.sol.t_min
        self.t_max: float = result.sol.t_max

    @functools.cached_property
    def times(self) -> list[Array]:
        """The ends of the steps, as functions of ``t_span``."""
        (start, end), pieces = self._call[0], self.interpolants
        offsets = [piece.t_old - float(plain(start)) for piece in pieces[1:]]
        last = end if self._is_whole else start + (pieces[-1].t - float(plain(start)))
        return [start, *(start + offset for offset in offsets), last]

    @functools.cached_property
    def steps(self) -> list["Step"]:
        """The steps. Raises `DerivativeError` for a method of SciPy's alone."""
        name = getattr(self._method, "__name__", self._method)  # a class, or its name
        if name not in _METHODS:
            raise DerivativeError(
                f"solve_ivp: method is {name!r}: expected one of {', '.join(_METHODS)} for a derivative"
            )
        _, y0, _, args = self._call
        f: Slope = lambda t, y: _vector(self._fun(t, y, *args))  # noqa: E731
        sizes = [piece.t - piece.t_old for piece in self.interpolants]
        return _METHODS[name](f, self.times, _floats(array(y0)), sizes)

    def __call__(self, t: Array) -> Array:
        """The solution at a time, of shape (n,), or at times of shape (m,), of shape (n, m)."""
        if is_of_vmap(t):  # whose examples are in different steps
            return type(t).of(t.level, ops.stack(for_each_example(self, [t], t.level)))
        try:
            return self._at(t)
        except UnbatchedError as error:
            return one_by_one(self._at, (t,), {}, error)

    def _at(self, t: Array) -> Array:
        if not self._reads_variables and not has_variable(t):
            return self._plain(t)
        at, sign = np.asarray(plain_tree(t)), 1.0 if self.ts[-1] >= self.ts[0] else -1.0
        which = np.searchsorted(sign * self.ts, sign * at, side="left") - 1
        which = np.clip(which, 0, len(self.steps) - 1)
        if not at.ndim:
            return self.steps[int(which)].at(t)
        times = array(t)
        columns = [self.steps[int(k)].at(times[place]) for place, k in enumerate(which)]
        return ops.stack(columns, axis=1) if columns else np.zeros((self.steps[0].y.shape[0], 0))


class Step:
    """One step: ``y`` at its time ``t``, its size ``h``, and the solution at its ``end``."""

    def __init__(self, t: Array, h: Array, y: Array, end: Array, polynomial: Callable[[Array], Array]) -> None:
        self.t: Array = t
        self.h: Array = h
        self.y: Array = y
        self.end: Array = end
        self._polynomial = polynomial

    def at(self, t: Array) -> Array:
        """The solution at a time within the step."""
        return self.y + self._polynomial((t - self.t) / self.h)


# --- explicit methods -------------------------------------------------------------------------------------------------


def _explicit(name: str) -> Callable[..., list[Step]]:
    def steps(f: Slope, times: list[Array], y: Array, sizes: list[float]) -> list[Step]:
        tableau: Any = of_scipy("integrate", name)
        taken, slope = [], f(times[0], y)
        for t, h in zip(times, _sizes(times, sizes), strict=False):
            stages = [slope]
            for row, node in zip(tableau.A[1:], tableau.C[1:], strict=True):
                stages.append(f(t + node * h, y + h * _sum(row, stages)))
            end = y + h * _sum(tableau.B, stages)
            slope = f(t + h, end)
            stages.append(slope)
            dense = _dense_8(tableau, f, t, h, y, end, stages) if name == "DOP853" else _dense(tableau, h, stages)
            taken.append(Step(t, h, y, end, dense))
            y = end
        return taken

    return steps


def _dense(tableau: Any, h: Array, stages: list[Array]) -> Callable[[Array], Array]:
    def polynomial(x: Array) -> Array:
        powers = [x**k for k in range(1, tableau.P.shape[1] + 1)]
        return h * _sum([_sum(row, powers) for row in tableau.P], stages)

    return polynomial


def _dense_8(
    tableau: Any, f: Slope, t: Array, h: Array, y: Array, end: Array, stages: list[Array]
) -> Callable[[Array], Array]:
    parts: list[Array] = []

    def polynomial(x: Array) -> Array:
        if not parts:
            every = [*stages]
            for row, node in zip(tableau.A_EXTRA, tableau.C_EXTRA, strict=True):
                every.append(f(t + node * h, y + h * _sum(row, every)))
            change = end - y
            parts.extend([change, h * stages[0] - change, 2.0 * change - h * (stages[-1] + stages[0])])
            parts.extend(h * _sum(row, every) for row in tableau.D)
        value: Array = 0.0
        for k, part in enumerate(reversed(parts)):
            value = (value + part) * (x if k % 2 == 0 else 1.0 - x)
        return value

    return polynomial


# --- Radau's method of order five -------------------------------------------------------------------------------------

_ROOT = math.sqrt(6.0)
_NODES = np.array([(4.0 - _ROOT) / 10.0, (4.0 + _ROOT) / 10.0, 1.0])
_WEIGHTS = np.array(
    [
        [(88.0 - 7.0 * _ROOT) / 360.0, (296.0 - 169.0 * _ROOT) / 1800.0, (-2.0 + 3.0 * _ROOT) / 225.0],
        [(296.0 + 169.0 * _ROOT) / 1800.0, (88.0 + 7.0 * _ROOT) / 360.0, (-2.0 - 3.0 * _ROOT) / 225.0],
        [(16.0 - _ROOT) / 36.0, (16.0 + _ROOT) / 36.0, 1.0 / 9.0],
    ]
)
# The polynomial through zero and the changes at the nodes: its coefficients of x, x**2 and x**3.
_THROUGH = np.linalg.inv(_NODES[:, None] ** np.arange(1, 4)).T
_ITERATIONS = 30


def _radau(f: Slope, times: list[Array], y: Array, sizes: list[float]) -> list[Step]:
    taken = []
    for t, h in zip(times, _sizes(times, sizes), strict=False):
        changes = _changes(f, t, h, y)
        end = y + changes[2]

        def polynomial(x: Array, changes: Array = changes) -> Array:
            powers = [x, x**2, x**3]
            return _sum([_sum(row, powers) for row in _THROUGH], [changes[k] for k in range(3)])

        taken.append(Step(t, h, y, end, polynomial))
        y = end
    return taken


def _changes(f: Slope, t: Array, h: Array, y: Array) -> Array:
    """The solution of the equations of a step: the changes of ``y`` at the nodes, of shape (3, n)."""
    count = y.shape[0]

    def residual(changes: Array, t: Array, h: Array, y: Array) -> Array:
        slopes = ops.stack([f(t + node * h, y + changes[k]) for k, node in enumerate(_NODES)])
        return changes - h * ops.matmul(_WEIGHTS, slopes)

    bare = tuple(np.asarray(plain_tree(each)) for each in (t, h, y))
    changes = np.zeros((3, count))
    inverse = np.eye(3 * count)
    for _ in range(_ITERATIONS):
        inverse = np.linalg.inv(_system(f, changes, *bare))
        step = inverse @ np.asarray(plain_tree(residual(changes, *bare))).reshape(-1)
        changes = changes - step.reshape(3, count)
        if np.all(np.abs(step) <= 1e-14 * (1e-3 + np.max(np.abs(changes)))):
            break
    return corrected(
        lambda changes: residual(changes, t, h, y),
        changes,
        lambda r: ops.reshape(ops.matmul(inverse, ops.reshape(r, (-1,))), (3, count)),
    )


def _system(f: Slope, changes: np.ndarray, t: Array, h: Array, y: np.ndarray) -> np.ndarray:
    """The Jacobian of the equations of a step."""
    count = y.size
    matrix = np.eye(3 * count)
    for j, node in enumerate(_NODES):
        jacobian = _jacobian(lambda y, node=node: f(t + node * h, y), y + changes[j])
        for i in range(3):
            matrix[i * count : (i + 1) * count, j * count : (j + 1) * count] -= h * _WEIGHTS[i, j] * jacobian
    return matrix


def _jacobian(f: Callable[[Array], Array], y: np.ndarray) -> np.ndarray:
    with Tape() as tape:
        variable = tape.watch(y)
        value = f(variable)
        parts = [value[k] for k in range(y.size)]
        rows = [tape.gradient(part, [variable])[0] if tape.owns(part) else np.zeros(y.size) for part in parts]
    return np.stack([np.asarray(plain_tree(row)) for row in rows])


_METHODS: dict[Any, Callable[..., list[Step]]] = {
    **{name: _explicit(name) for name in ("RK23", "RK45", "DOP853")},
    "Radau": _radau,
}


# --- values -----------------------------------------------------------------------------------------------------------


def _sizes(times: list[Array], sizes: list[float]) -> list[Array]:
    """The sizes of the steps: numbers, but for a last step that ends at a variable."""
    last = times[-1] - times[-2] if isinstance(times[-1], Variable) or isinstance(times[0], Variable) else sizes[-1]
    return [*sizes[:-1], last]


def _sum(weights: Array, terms: Sequence[Array]) -> Array:
    """The sum of the terms with weights that are not zero, of which there may be fewer terms."""
    products = [
        weight * term
        for weight, term in zip(weights, terms, strict=False)
        if isinstance(weight, Variable) or weight != 0.0
    ]
    return sum(products[1:], products[0]) if products else 0.0 * terms[0]


def _vector(value: Array) -> Array:
    return _floats(ops.reshape(array(value), (-1,)))


def _floats(x: Array) -> Array:
    return x if np.asarray(plain_tree(x)).dtype.kind in "fc" else x * 1.0
