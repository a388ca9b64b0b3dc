"""Distributions at special places, against mpmath: values, and derivatives by every float argument.

Special places are centres, edges of the support and beyond, tails, arguments where an inner function overflows or underflows, and
parameters for which the density at an edge is zero, finite or infinite. The conventions:

* an edge belongs to the support: a derivative there is the limit from inside, infinite where that is;
* at a kink (`laplace.pdf` at its centre) it is the mean of both sides;
* beyond the support and at infinity, where a function is constant, it is zero;
* where a value is infinite, there is one by ``x`` and ``loc``, which is not NaN, and none by other parameters;
* where the density at an edge jumps with a shape parameter, there is none by that: anything but NaN.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from mpmath import mp, mpf

import oxigrad as ox
import places_quadrature
import places_stats
from cases_stats import SLOW
from oxigrad import xp
from places import Function, Point
from places_counts import COUNTED, VECTORS, Counted
from places_stats import Law
from reference import Note, close, limit, log_of, nearest, partials, value_and_derivatives

LAWS = {**places_stats.LAWS, **places_quadrature.LAWS}
# Those by quadrature take a minute.
QUICK = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in LAWS]
COUNT_METHODS = "pmf logpmf cdf logcdf sf logsf".split()
METHODS = "pdf logpdf cdf logcdf sf logsf".split()
DENSITIES = {*METHODS, *COUNT_METHODS, "ppf", "isf", "entropy", "mean", "var", "std", "median"}
REFUSED = {"beta", "betaprime", "t", "f", "hypergeom"}  # by the shape parameters of their distribution functions
SCALE = 2.0


def _method(law: Law, method: str) -> Callable[..., Any]:
    """A method of a distribution in mpmath, inside of the support."""

    def of(x: Any, *args: Any) -> Any:
        *s, loc, scale = args
        z = (x - loc) / scale
        if method in ("pdf", "logpdf"):
            log_density = law.log_density(z, *s) - mp.log(scale)
            return mp.exp(log_density) if method == "pdf" else log_density
        one, rest = (law.lower, law.upper) if "cdf" in method else (law.upper, law.lower)
        return log_of(one(z, *s), rest(z, *s)) if "log" in method else one(z, *s)

    return of


def _inside(f: Callable[..., Any], x: float, s: tuple[float, ...]) -> list[Any]:
    with mp.workprec(320 + 2 * max(abs(math.frexp(each)[1]) for each in (x, *s))):
        args = tuple(map(mpf, (x, *s, 0.0, SCALE)))
        fine = mpf(2) ** -100
        width = min(abs(args[0]), 1) * fine if x else fine
        return partials(f, args, [width, *(a * fine for a in args[1:-2]), width, args[-1] * fine])


def _at_edge(f: Callable[..., Any], edge: float, side: int, s: tuple[float, ...]) -> list[Any]:
    """The limits from inside of the value and of the derivatives."""
    results = []
    with mp.workprec(1000):
        for distance in (mpf(2) ** -160, mpf(2) ** -320):
            args = (mpf(edge) + side * distance, *map(mpf, (*s, 0.0, SCALE)))
            fine = distance * mpf(2) ** -60
            results.append(partials(f, args, [fine] * len(args)))
        return [limit(*pair) for pair in zip(*results, strict=True)]


def _compare(
    note: Note, what: str, results: list[float | None], expected: list[float], args: Any, jumps: range
) -> None:
    value, *_ = expected
    # A derivative next to its root has the error of the terms that cancel.
    # One by the scale is that by x, which may underflow, times x.
    underflow = 1e-306 * max(1.0, abs(args[0]))
    sizes = [
        1e-15 if ".logpdf" in what else 1e-306,
        *(1e-13 * abs(value) / max(abs(arg), 1.0) + underflow for arg in args),
    ]
    for at, (one, other, size) in enumerate(zip(results, expected, sizes, strict=True)):
        if one is None:
            continue
        if math.isinf(value) and at not in (0, 1, len(args) - 1):  # by the scale and shape parameters
            continue
        is_free = at > 0 and (math.isinf(value) or (at in jumps and math.isinf(other)))
        if math.isnan(one) if is_free else not close(one, other, size):
            note(f"{what}: {'value' if at == 0 else f'derivative {at - 1}'} is {one!r}, expected {other!r}")


def distribution(name: str, note: Note) -> None:
    """Notes what is wrong with a distribution."""
    law, ours = LAWS[name], getattr(xp.stats, name)
    for s in (*law.shapes, *law.only_density):
        edges = [(SCALE * e, side) for e, side in zip(law.edges(s), (1, -1), strict=True) if not math.isinf(e)]
        # No edges: the limits would be taken too far from them.
        edges = [] if min(map(abs, s), default=1.0) < 1e-100 or not law.has_edges(*s) else edges
        places = law.inside(s)
        x = [SCALE * z for z in places] + [edge for edge, _ in edges]
        args = tuple(np.full(len(x), v) for v in (*s, 0.0, SCALE))
        for method in METHODS[:2] if s in law.only_density else METHODS:
            f = _method(law, method)
            expected = [_inside(f, at, s) for at in x[: len(places)]]
            expected += [_at_edge(f, edge, side, s) for edge, side in edges]
            for results in value_and_derivatives(getattr(ours, method), (np.array(x), *args)):
                for at, reference in enumerate(expected):
                    numbers = [None if part is None else float(part[at]) for part in results]
                    where = (x[at], *s, 0.0, SCALE)
                    jumps = range(2, 2 + len(s))
                    _compare(note, f"{name}.{method}{where}", numbers, list(map(nearest, reference)), where, jumps)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAWS)
def test_a_distribution_at_special_places(name: str) -> None:
    wrong: list[str] = []
    distribution(name, wrong.append)
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAWS)
def test_beyond_the_support_at_infinity_and_of_no_number(name: str) -> None:
    law, ours, theirs = LAWS[name], getattr(xp.stats, name), getattr(scipy.stats, name)
    s = law.shapes[-1] if name != "gompertz" else law.shapes[0]
    low, high = law.edges(s)
    below, above = low - 1e-3, high + 1e-3
    x = np.array([-math.inf, below, above, math.inf])
    args = tuple(np.full(len(x), v) for v in (*s, 0.0, 1.0))
    constant = {"pdf": (0.0, 0.0), "cdf": (0.0, 1.0), "sf": (1.0, 0.0)}
    for method in METHODS:
        f = getattr(ours, method)
        for value, *derivatives in value_and_derivatives(f, (x, *args)):
            with np.errstate(all="ignore"):
                first, last = np.log(constant[method[3:]]) if "log" in method else constant[method]
            np.testing.assert_array_equal(value, [first, first, last, last])
            for part in derivatives:
                np.testing.assert_array_equal(0.0 if part is None else part[np.isfinite(value)], 0.0)
        # A place inside of the support.
        where = (
            low + 0.7 * (high - low) if math.isfinite(high - low) else low + 0.7 if math.isfinite(low) else high - 0.7
        )
        inside = np.full(3, where if math.isfinite(where) else 0.7)
        # Of a number that is none, and of parameters that are not positive.
        assert (
            np.isnan(f(math.nan, *s))
            and np.isnan(f(inside, *s, 0.0, -1.0)).all()
            and np.isnan(f(inside, *s, 0.0, 0.0)).all()
        )
        for invalid in law.invalid or [(*s[:at], -1.0, *s[at + 1 :]) for at in range(len(s))]:
            assert np.isnan(f(inside, *invalid)).all()
    q = np.array([-0.1, 0.0, 1.0, 1.1])
    for inverse, expected in ((ours.ppf, theirs.ppf), (ours.isf, theirs.isf)):
        np.testing.assert_array_equal(inverse(q, *s), expected(q, *s))
        assert not np.isnan(ox.grad(lambda q, f=inverse: xp.sum(f(q, *s)))(q[1:3])).any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
def test_quantiles_of_rare_events(name: str) -> None:
    law, ours = LAWS[name], getattr(xp.stats, name)
    for s in law.shapes[-2:] if name != "gompertz" else law.shapes[:1]:
        for q in (1e-100, 1e-20, 0.25, 0.5, 0.75, 1.0 - 2.0**-40):
            quantile, beyond, (low, high) = float(ours.ppf(q, *s)), float(ours.isf(q, *s)), law.edges(s)
            if low < beyond < high and abs(beyond) < 1e100 and ours.pdf(beyond, *s):
                with mp.workprec(400):
                    z = mpf(beyond)
                    density, upper = mp.exp(law.log_density(z, *map(mpf, s))), law.upper(z, *map(mpf, s))
                    error = abs(upper - q) / density
                    assert error <= 2e-11 * (abs(z) + min(q, 1 - q) / density) + 1e-15, (name, s, q, beyond)
            if not (low < quantile < high) or abs(quantile) > 1e100 or not ours.pdf(quantile, *s):  # rounded to an edge
                continue
            derivatives = [ox.grad(ours.ppf)(q, *s), ox.jvp(lambda q, s=s: ours.ppf(q, *s), (q,), (1.0,))[1]]
            with mp.workprec(400):
                z = mpf(quantile)
                density, lower, upper = (f(z, *map(mpf, s)) for f in (law.log_density, law.lower, law.upper))
                density = mp.exp(density)
                # The error in units of the quantile, which has the rounding of the quantile and of q.
                error = (lower - q if q < 0.5 else (1 - mpf(q)) - upper) / density
                assert abs(error) <= 2e-11 * (abs(z) + min(q, 1 - q) / density) + 1e-15, (name, s, q, quantile)
                for derivative in derivatives:
                    assert close(derivative, float(1 / density), 1e-300, 1e-7), (name, s, q, derivative)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.one_in(4)
def test_second_derivatives_inside_of_the_support(name: str) -> None:
    law, ours = LAWS[name], getattr(xp.stats, name)
    s = law.shapes[-1] if name != "gompertz" else law.shapes[0]
    x = np.array([z for z in law.inside(s) if 1e-3 < abs(z) < 1e3])
    for method in METHODS:
        f, g = _method(law, method), getattr(ours, method)
        slope = ox.grad(lambda x, g=g: xp.sum(g(x, *s)))
        curvatures = [ox.grad(lambda x, slope=slope: xp.sum(slope(x)))(x), ox.jvp(slope, (x,), (np.ones_like(x),))[1]]
        for at, each in enumerate(x):
            with mp.workprec(400):
                args, step = (*map(mpf, s), mpf(0), mpf(1)), abs(mpf(each)) * mpf(2) ** -80
                low, middle, high = (f(mpf(each) + k * step, *args) for k in (-1, 0, 1))
                expected = float((low - 2 * middle + high) / step**2)
            size = 1e-10 * float(abs(middle)) / max(1.0, abs(each)) ** 2 + 1e-300
            for one in curvatures:
                assert close(float(one[at]), expected, size, 1e-8), (name, method, s, each, one[at], expected)


@pytest.mark.parametrize(("name", "shape"), [("dgamma", 1.1), ("dgamma", 2.7), ("dweibull", 2.1), ("dweibull", 3.0)])
@pytest.mark.parametrize("function", ["pdf", "logpdf", "cdf", "logsf"])
def test_at_the_centre_of_a_doubled_distribution_both_modes_agree(name: str, shape: float, function: str) -> None:
    f, args = getattr(getattr(xp.stats, name), function), (0.3, shape, 0.3, 1.4)
    backward = ox.grad(f, (0, 1, 2, 3))(*args)
    for at, slope in enumerate(backward):
        assert ox.jvp(lambda v, at=at: f(*args[:at], v, *args[at + 1 :]), (args[at],), (1.0,))[1] == slope
    if function in ("pdf", "logpdf"):  # of one density on both sides
        assert backward[0] == backward[2] == 0.0


def test_examples_of_places_without_a_formula() -> None:
    stats = xp.stats
    assert ox.grad(stats.laplace.cdf)(0.0) == 0.5 and ox.grad(stats.laplace.logcdf)(0.0) == 1.0
    assert (
        ox.grad(stats.gumbel_r.pdf)(-720.0)
        == ox.grad(stats.gumbel_l.pdf)(720.0)
        == ox.grad(stats.moyal.pdf)(-1430.0)
        == 0.0
    )
    assert ox.grad(stats.gompertz.pdf)(720.0, 1.7) == 0.0
    assert ox.grad(stats.gamma.pdf)(0.0, 2.0) == 1.0 and ox.grad(stats.beta.pdf)(0.0, 3.0, 2.0) == 0.0
    assert ox.grad(stats.chi2.pdf)(0.0, 55.0) == 0.0
    assert ox.grad(ox.grad(stats.gamma.pdf))(0.0, 2.0) == -2.0  # of z * exp(-z)
    assert ox.grad(ox.grad(stats.gamma.pdf))(0.0, 3.0) == 1.0  # of z**2 * exp(-z) / 2
    assert stats.halflogistic.logsf(1e-8) == pytest.approx(-0.5e-8, rel=1e-14)
    assert ox.grad(xp.special.erfcx)(1e6) == pytest.approx(-1.0 / math.sqrt(math.pi) / 1e12, rel=1e-11)
    # The edges of a likelihood: an interval that begins at zero, or ends at infinity.
    share = lambda scale: stats.weibull_min.cdf(3.0, 0.5, 0.0, scale) - stats.weibull_min.cdf(0.0, 0.5, 0.0, scale)  # noqa: E731
    assert ox.grad(share)(2.0) == ox.grad(lambda scale: stats.weibull_min.cdf(3.0, 0.5, 0.0, scale))(2.0)
    assert ox.grad(lambda scale: stats.norm.cdf(math.inf, 0.0, scale) - stats.norm.cdf(1.0, 0.0, scale))(2.0) > 0.0


# --- distributions of counts ---------------------------------------------------------------------------------------------


def _computed_once(f: Function) -> Function:
    """The function of mpmath, which is called once for the same arguments in one precision: methods of a distribution share it."""

    @functools.cache
    def value(precision: int, *args: Any) -> Any:
        return f(*args)

    return lambda *args: value(mp.prec, *args)


def _of_counts(row: Counted, method: str) -> Function:
    """A method of a distribution of counts in mpmath."""
    if method == "logpmf":
        return lambda k, *s: mp.log(row.mass(k, *s))
    if "log" in method:
        one, rest = (row.lower, row.upper) if method == "logcdf" else (row.upper, row.lower)
        return lambda k, *s: log_of(one(k, *s), rest(k, *s))
    return {"pmf": row.mass, "cdf": row.lower, "sf": row.upper}[method]


def _at_a_count(f: Function, s: Point, fixed: tuple[int, ...]) -> list[float]:
    """The value and the derivatives by the parameters; limits from inside where the last one is at an edge of its domain."""
    if s[-1] not in (0.0, 1.0):
        with mp.workprec(400 + 2 * max(abs(math.frexp(each)[1]) for each in s)):
            args = tuple(map(mpf, s))
            steps = [mpf(0) if at in fixed else arg * mpf(2) ** -100 for at, arg in enumerate(args)]
            return list(map(nearest, partials(f, args, steps)))
    results = []
    with mp.workprec(1000):
        for distance in (mpf(2) ** -160, mpf(2) ** -320):
            args = (*map(mpf, s[:-1]), abs(s[-1] - distance))
            results.append(partials(f, args, [distance * mpf(2) ** -60] * len(args)))
        return list(map(nearest, (limit(*pair) for pair in zip(*results, strict=True))))


def counted(name: str, note: Note) -> None:
    """Notes what is wrong with a distribution of counts."""
    row, ours = COUNTED[name], getattr(xp.stats, name)
    row = row._replace(**{of: _computed_once(getattr(row, of)) for of in ("mass", "lower", "upper")})
    for s, counts in row.shapes:
        for method in COUNT_METHODS:
            f = _of_counts(row, method)
            if max(counts) > 1e4 and name != "geom" and "pmf" not in method:
                continue  # a series of too many terms
            inside = [
                k
                for k in counts
                if method[-3:] == "pmf" or k < (s[0] if name == "binom" else 1.0 + 1e9 * (name != "bernoulli"))
            ]
            fixed = () if method[-3:] == "pmf" else row.fixed
            expected = [_at_a_count(functools.partial(f, mpf(k)), s, fixed) for k in inside]
            args = tuple(np.full(len(inside), v) for v in s)
            for results in value_and_derivatives(functools.partial(getattr(ours, method), np.array(inside)), args):
                refused = tuple(at for at, part in enumerate(results[1:]) if part is None)
                if refused != fixed:
                    note(f"{name}.{method} refuses derivatives by {refused}")
                for at, (k, reference) in enumerate(zip(inside, expected, strict=True)):
                    numbers = [None if part is None else float(part[at]) for part in results]
                    _compare_count(note, f"{name}.{method}{(k, *s)}", numbers, reference, s)


def _compare_count(note: Note, what: str, results: list[float | None], expected: list[float], s: Point) -> None:
    value, *_ = expected
    sizes = [1e-15 if ".log" in what else 1e-306, *(1e-13 * abs(value) / max(abs(arg), 1.0) + 1e-306 for arg in s)]
    for at, (one, other, size) in enumerate(zip(results, expected, sizes, strict=True)):
        if at == 1 and what.startswith(
            "binom"
        ):  # by the number of trials, a whole number: of the gamma functions in its place
            if s[-1] in (0.0, 1.0):  # where the probability jumps between whole numbers
                continue
            size = 2e-15
        is_free = at > 0 and math.isinf(value)  # where a value is infinite, its derivatives are anything but NaN
        if one is not None and (math.isnan(one) if is_free else not close(one, other, size)):
            note(f"{what}: {'value' if at == 0 else f'derivative {at - 1}'} is {one!r}, expected {other!r}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.one_in(4)
def test_a_distribution_of_counts_at_special_places(name: str) -> None:
    wrong: list[str] = []
    counted(name, wrong.append)
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COUNTED)
def test_numbers_that_are_no_counts_and_parameters_out_of_their_domains(name: str) -> None:
    ours, theirs, row = getattr(xp.stats, name), getattr(scipy.stats, name), COUNTED[name]
    s = next(s for s, _ in row.shapes if 0.1 < s[-1] < 5.0 and s[-1] != 1.0)
    k = np.array([-math.inf, -1.0, row.low - 0.5, row.low + 0.5, 20.0, math.inf, math.nan])
    # SciPy has no number for the tail of an infinite count, does not round those of logser, and subtracts tails from one.
    known = np.array([0, 1, 2, 3, 4, 6] if name != "logser" else [0, 1, 2, 4, 6])
    exact: dict[str, Any] = {"rtol": 1e-9 if name in ("dlaplace", "logser") else 1e-12, "atol": 1e-15}
    for method in COUNT_METHODS:
        f = getattr(ours, method)
        ends = {"pmf": 0.0, "cdf": 1.0, "sf": 0.0}[method.removeprefix("log")]
        assert f(math.inf, *s) == (ends if "log" not in method else math.log(ends) if ends else -math.inf)
        np.testing.assert_allclose(f(k, *s)[known], getattr(theirs, method)(k, *s)[known], **exact)
        np.testing.assert_allclose(f(k, *s, 2)[known], getattr(theirs, method)(k, *s, 2)[known], **exact)
        for _, part in map(
            tuple, value_and_derivatives(lambda p, f=f: f(k[[0, 1, 2, 4, 5]], *s[:-1], p), (np.full(5, s[-1]),))
        ):
            assert part is None if name == "hypergeom" and "pmf" not in method else not np.isnan(part).any()
        for p in map(float, row.invalid):
            assert math.isnan(f(1.0, *s[:-1], p)) and math.isnan(f(-1.0, *s[:-1], p))


# --- all ---------------------------------------------------------------------------------------------------------------


def test_the_tables_are_complete() -> None:
    assert {*LAWS, *COUNTED, *VECTORS} == set(xp.stats.__all__)
    # All that is public of a distribution is a method that the tests above compare, or the quantile.
    for name in [*LAWS, *COUNTED]:
        methods = {each for each in dir(getattr(xp.stats, name)) if each in DENSITIES}
        assert methods == ({*METHODS, "ppf", "isf"} if name in LAWS else set(COUNT_METHODS)), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*LAWS, *COUNTED])
def test_shape_parameters_by_name(name: str) -> None:
    ours, theirs = getattr(xp.stats, name), getattr(scipy.stats, name)
    names = theirs.shapes.split(", ") if theirs.shapes else []
    s = LAWS[name].shapes[0] if name in LAWS else COUNTED[name].shapes[0][0]
    named = dict(zip(names, s, strict=True))
    x = np.array([-2.0, -0.4, 0.3, 1.0, 2.0])
    further = {"loc": 0.25, "scale": 1.5} if name in LAWS else {"loc": 1}
    for method in METHODS if name in LAWS else COUNT_METHODS:
        f = getattr(ours, method)
        np.testing.assert_array_equal(f(x, **named, **further), f(x, *s, *further.values()))
        for key in names:
            by_name = ox.grad(lambda v, f=f, key=key: xp.sum(f(2.0, **{**named, key: v}))) if key == names[-1] else None
            if by_name is not None and not (name in REFUSED and "pdf" not in method):
                at = ox.grad(lambda v, f=f: f(2.0, *s[:-1], v))(s[-1])
                np.testing.assert_array_equal(by_name(s[-1]), at)
        with pytest.raises(TypeError, match=f"{method}: nothing is unknown: expected "):
            f(x, *s, nothing=1.0)
        if names:
            with pytest.raises(TypeError, match=f"{names[0]} is found twice"):
                f(x, *s, **{names[0]: s[0]})
            with pytest.raises(TypeError, match=f"{names[0]}.* is missing: expected "):
                f(x)
