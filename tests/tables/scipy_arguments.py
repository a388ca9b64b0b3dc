"""Functions under SciPy's names with their arguments, which tests pass in each form that SciPy takes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from oxigrad import xp


@dataclasses.dataclass
class Function:
    """A function, or a class whose instances are called, by its path in `scipy` and in `xp`.

    ``arguments`` are differentiable, by their names; a result that is a function is called with ``places``. ``read``
    gives the arrays of a result. ``of`` has the functions that it takes first; SciPy takes up to ``positional`` of the
    arguments by position.
    """

    path: str
    arguments: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    places: tuple[Any, ...] = ()
    read: Callable[..., Iterable[Any]] = lambda result: (result,)
    of: tuple[Callable[..., Any], ...] = ()
    positional: int = 8

    def __call__(self, root: Any, *values: Any, by_name: bool = False) -> list[Any]:
        """The results for values of the arguments and the places."""
        function = functools.reduce(getattr, self.path.split("."), root)
        named = dict(zip(self.arguments, values, strict=False))
        leading = [] if by_name else [named.pop(name) for name in [*named][: self.positional]]
        result = function(*self.of, *leading, **named, **self.options)
        return [*self.read(result, *values[len(self.arguments) :])]

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the arguments and of the places."""
        return tuple(np.asarray(each, float) for each in (*self.arguments.values(), *self.places))


RNG = np.random.default_rng(0)
V, X = RNG.standard_normal(6), RNG.standard_normal((3, 4))
W = np.array([2.0, 1.0, 3.0])
SOS = np.array([[1.0, 0.5, 0.3, 1.0, -0.4, 0.2], [2.0, 1.0, -1.0, 1.0, 0.5, 0.1]])
SYMMETRIC = np.array([[2.0, 1.0, 0.0], [1.0, 5.0, -1.0], [0.0, -1.0, 9.0]])
POSITIVE = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
POINTS, HEIGHTS = np.array([0.0, 1.0, 3.0, 4.0, 6.0, 7.0]), np.array([1.0, 3.0, 2.0, 2.5, 5.0, 7.0])
INSIDE = np.array([0.5, 2.0, 5.0])
GRID = RNG.standard_normal((6, 4))
AXES, PLACES = np.array([[0.0, 1.0, 2.0, 4.0], [0.0, 2.0, 3.0, 5.0]]), np.array([0.5, 1.0])


def decay(t: Any, y: Any, k: Any = 1.5) -> Any:
    """A slope that reads time, the solution and a parameter."""
    return [y[1], -k * y[0] + 0.1 * t]


def crossing(t: Any, y: Any, *args: Any) -> Any:
    """An event."""
    return y[0]


def _initial(method: str) -> list[Function]:
    settings = {"method": method, "rtol": 1e-9, "atol": 1e-11}
    dense = {**settings, "dense_output": True}
    arguments = {"t_span": [0.0, 2.0], "y0": [1.0, 2.0]}
    solve = functools.partial(Function, "integrate.solve_ivp", of=(decay,), positional=2)
    return [
        solve(arguments, settings, read=lambda result: (result.y[:, -1], result.t[-1])),
        solve({**arguments, "args": [1.5]}, settings, read=lambda result: (result.y[:, -1],)),
        solve({**arguments, "t_eval": [0.5, 1.0, 1.5]}, settings, read=lambda result: (result.y, result.t)),
        solve(arguments, dense, (np.array([0.5, 1.0, 1.5]),), lambda result, t: (result.sol(t),)),
        solve(arguments, dense, (1.0,), lambda result, t: (result.sol(t),)),
        solve(
            arguments, {**settings, "events": crossing}, read=lambda result: (result.t_events[0], result.y_events[0])
        ),
    ]


def _polynomials() -> Iterable[Function]:
    grid = np.array([[1.0, 2.0, -1.0], [0.5, 1.0, 2.0]])
    solid = np.stack([grid, 1.0 - grid])
    for module, stem in {
        "polynomial": "poly",
        "chebyshev": "cheb",
        "legendre": "leg",
        "hermite": "herm",
        "hermite_e": "herme",
        "laguerre": "lag",
    }.items():
        name = f"polynomial.{module}.{stem}"
        yield Function(f"{name}val", {"x": 2.0, "c": W})
        yield Function(f"{name}val", {"x": INSIDE, "c": W})
        yield Function(f"{name}val", {"x": INSIDE, "c": grid})
        yield Function(f"{name}val2d", {"x": INSIDE, "y": INSIDE - 2.0, "c": grid})
        yield Function(f"{name}grid2d", {"x": INSIDE[:2], "y": INSIDE - 2.0, "c": grid})
        yield Function(f"{name}val3d", {"x": INSIDE, "y": INSIDE - 2.0, "z": INSIDE + 1.0, "c": solid})
        yield Function(f"{name}grid3d", {"x": INSIDE[:2], "y": INSIDE - 2.0, "z": 2.0, "c": solid})
    yield Function("polynomial.polynomial.polyvalfromroots", {"x": INSIDE, "r": W})


def _transforms() -> Iterable[Function]:
    for name in "fft ifft rfft ihfft dct idct dst idst fft2 ifft2 rfft2 ihfft2 fftn ifftn rfftn ihfftn dctn dstn idctn idstn".split():
        yield Function(f"fft.{name}", {"x": X})
    for name in "irfft hfft irfft2 hfft2 irfftn hfftn".split():
        yield Function(f"fft.{name}", {"x": X}, {"norm": "ortho"})
    for name in "fht ifht".split():
        yield Function(f"fft.{name}", {"a" if name == "fht" else "A": V[:4]}, {"dln": 0.1, "mu": 0.5})


_eigen = lambda result: (result[0], abs(result[1]))  # noqa: E731
_call = lambda f, *places: (f(*places),)  # noqa: E731
FUNCTIONS: list[Function] = [
    *(each for method in ("RK45", "DOP853", "Radau") for each in _initial(method)),
    Function(
        "integrate.quad", {"a": 1.0, "b": 2.0, "args": 3.0}, read=lambda r: r[:1], of=(lambda x, c: xp.exp(-c * x) * x,)
    ),
    Function(
        "integrate.odeint",
        {"y0": [1.0, 2.0], "t": [0.0, 1.0, 2.0]},
        {"rtol": 1e-10, "atol": 1e-12},
        of=(lambda y, t: [y[1], -y[0] + t],),
    ),
    Function("interpolate.CubicSpline", {"x": POINTS, "y": HEIGHTS}, {}, (INSIDE,), _call),
    Function("interpolate.CubicSpline", {"x": POINTS, "y": GRID}, {"bc_type": "natural"}, (2.0,), _call),
    Function("interpolate.PchipInterpolator", {"x": POINTS, "y": HEIGHTS}, {}, (INSIDE,), _call),
    Function("interpolate.PchipInterpolator", {"x": POINTS, "y": GRID}, {}, (2.0,), _call),
    Function("interpolate.make_interp_spline", {"x": POINTS, "y": HEIGHTS}, {}, (INSIDE,), _call),
    Function("interpolate.make_interp_spline", {"x": POINTS, "y": GRID}, {"k": 1}, (2.0,), _call),
    *(
        Function(
            "interpolate.RegularGridInterpolator",
            {"points": AXES, "values": GRID[:4]},
            {"method": method},
            (PLACES,),
            _call,
        )
        for method in ("linear", "cubic")
    ),
    Function("signal.lfilter", {"b": [1.0, 2.0], "a": [2.0, 1.0, 0.5], "x": V}),
    Function("signal.lfilter", {"b": [1.0, 2.0, 3.0], "a": 2.0, "x": X}, {"axis": 0}),
    Function("signal.lfilter", {"b": 3.0, "a": [2.0, 1.0], "x": X}),
    Function("signal.lfilter", {"b": 3.0, "a": 2.0, "x": X}),
    Function(
        "signal.lfilter",
        {"b": [1.0, 2.0], "a": [2.0, 1.0, 0.5], "x": V, "zi": [1.0, -2.0]},
        positional=3,
        read=lambda r: r,
    ),
    Function("signal.lfilter", {"b": [1.0, 2.0], "a": 2.0, "x": X, "zi": X[:, :1]}, positional=3, read=lambda r: r),
    Function(
        "signal.lfilter",
        {"b": [1.0, 2.0], "a": [2.0, 1.0, 0.5], "x": X, "zi": X[:2]},
        {"axis": 0},
        positional=3,
        read=lambda r: r,
    ),
    Function("signal.sosfilt", {"sos": SOS, "x": V}),
    Function("signal.sosfilt", {"sos": SOS, "x": X}, {"axis": 0}),
    Function("signal.sosfilt", {"sos": SOS, "x": V, "zi": [[1.0, 2.0], [-1.0, 3.0]]}, positional=2, read=lambda r: r),
    Function(
        "signal.sosfilt", {"sos": SOS, "x": X, "zi": np.stack([X[:, :2], X[:, 2:]])}, positional=2, read=lambda r: r
    ),
    Function("special.betainc", {"a": 2.0, "b": 3.0, "x": 0.3}),
    Function("special.betainc", {"a": W, "b": W + 1.0, "x": [0.3, 0.5, 0.7]}),
    Function("linalg.eigh", {"a": SYMMETRIC, "b": POSITIVE}, read=_eigen),
    Function("linalg.eigh", {"a": SYMMETRIC}, read=_eigen),
    *_transforms(),
    *_polynomials(),
]
