"""Distributions with parameters out of range: NaN where SciPy's are, and NaN for derivatives, by numbers and arrays."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

stats = pytest.importorskip("scipy.stats")

VALUES = (-1.0, 0.0, math.nan, math.inf, -math.inf, 1.5, -0.5, 2.5)
METHODS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
VALID: dict[str, list[float]] = {
    "bernoulli": [0.3],
    "betabinom": [5, 2.0, 3.0],
    "binom": [5, 0.3],
    "boltzmann": [1.2, 5],
    "geom": [0.3],
    "hypergeom": [20, 7, 12],
    "logser": [0.4],
    "nbinom": [5, 0.3],
    "randint": [2, 9],
    "zipf": [2.5],
}
NAMES = [name for name in dir(xp.stats) if hasattr(getattr(stats, name, None), "shapes")]


def calls(name: str) -> Any:
    """Methods, places, and parameters of which one is out of range or infinite."""
    theirs = getattr(stats, name)
    count = len(theirs.shapes.split(",")) if theirs.shapes else 0
    valid = VALID.get(name, [1.7] * count)
    shapes = [[*valid[:i], value, *valid[i + 1 :]] for i in range(count) for value in VALUES]
    for method in METHODS:
        if hasattr(getattr(xp.stats, name), method) and hasattr(theirs, method):
            places = (0.4,) if method in ("ppf", "isf") else (2.0, -3.0) if hasattr(theirs, "pmf") else (0.7, -0.7, 3.0)
            yield from ((method, place, each) for each in shapes for place in places)
            if not hasattr(theirs, "pmf"):
                scales = (0.0, -1.0, math.nan)
                yield from ((method, place, [*valid, 0.0, scale]) for scale in scales for place in places)


def scipy_s(name: str, method: str, place: float, parameters: list[float]) -> float:
    """SciPy's value. Its ``logcdf`` of counts is 0 for invalid parameters, where its ``cdf`` is NaN."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "logcdf" and np.isnan(getattr(stats, name).cdf(place, *parameters)):
            return math.nan
        return float(getattr(getattr(stats, name), method)(place, *parameters))


@pytest.mark.parametrize("name", NAMES)
def test_invalid_parameters_give_nan(name: str) -> None:
    refused = 0
    for method, place, parameters in calls(name):
        try:
            expected = scipy_s(name, method, place, parameters)
        except ValueError:  # as of SciPy's vonmises at infinity
            expected = math.nan
        ours = getattr(getattr(xp.stats, name), method)
        with np.errstate(all="ignore"):
            value = float(ours(place, *parameters))
        if name == "boltzmann" and not float(parameters[1]).is_integer() and math.isfinite(parameters[1]):
            continue  # its formula has derivatives by the number N, and is that of real ones
        label = f"{name}.{method}({place}, {parameters})"
        with np.errstate(all="ignore"):
            of_arrays = float(ours(np.array([place]), *map(np.float64, parameters))[0])
        assert np.isnan(value) == np.isnan(of_arrays), label
        if not math.isnan(expected):
            # NaN takes the place of limits at infinite parameters, where a formula has none.
            assert math.isinf(sum(map(abs, parameters))) or math.isclose(
                value, expected, rel_tol=1e-6, abs_tol=1e-12
            ), label
            continue
        assert math.isnan(value), label
        refused += 1
        if not hasattr(getattr(stats, name), "pmf"):
            with np.errstate(all="ignore"):
                derivative = ox.grad(lambda x, ours=ours, parameters=parameters: ours(x, *parameters))(place)
            assert math.isnan(derivative), f"derivative of {label}"
    assert refused or name in ("dirichlet", "multivariate_normal")


def test_derivatives_by_invalid_parameters_are_nan() -> None:
    cases: list[tuple[Any, float, tuple[float, ...], int]] = [
        (xp.stats.pareto.logpdf, 0.5, (-1.0,), 1),
        (xp.stats.weibull_max.cdf, 0.5, (-1.0,), 1),
        (xp.stats.gamma.logsf, -1.0, (-1.0,), 1),
        (xp.stats.norm.logcdf, 0.3, (0.0, -1.0), 2),
        (xp.stats.binom.logcdf, 2.0, (5, 1.5), 2),
        (xp.stats.poisson.cdf, 2.0, (-1.0,), 1),
        (xp.stats.geom.logsf, 2.0, (1.5,), 1),
    ]
    for f, place, parameters, argument in cases:
        assert math.isnan(ox.grad(f, argument)(place, *parameters)), (f, parameters)


def test_no_trials_are_valid() -> None:
    for k in (-1.0, 0.0, 2.0):
        for method in ("pmf", "cdf", "sf", "logpmf", "logcdf", "logsf"):
            expected = scipy_s("binom", method, k, [0, 0.3])
            assert float(getattr(xp.stats.binom, method)(k, 0, 0.3)) == pytest.approx(expected, abs=1e-15), (method, k)
