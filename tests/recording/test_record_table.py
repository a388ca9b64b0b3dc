"""Every function of the table, recorded: the bits of the function and of its derivatives, at the recorded arguments and at others."""

import warnings

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from cases import CASES
from oxigrad import tree, xp


def total(function):
    """The sum of all results of a function."""
    return lambda *args: sum((xp.sum(xp.real(leaf) * 1.5) for leaf in tree.leaves(function(*args))), 0.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_recordings_give_the_bits_of_functions_and_derivatives(case):
    both = ox.value_and_grad(total(case.function), argnums=tuple(range(len(case.args))))
    moved = [a * 1.001 if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in case.args]
    for f in (case.function, both):
        try:
            f(*case.args)
        except (TypeError, ValueError):  # of integers, for derivatives
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            g = ox.record(f)
            assert agrees(g, f, *case.args)
            assert agrees(g, f, *moved)
            assert agrees(g, f, *case.args)


DISTRIBUTIONS = {
    "norm": 0,
    "gamma": 1,
    "weibull_min": 1,
    "expon": 0,
    "lognorm": 1,
    "logistic": 0,
    "t": 1,
    "laplace": 0,
    "cauchy": 0,
}


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("of", ["arrays", "numbers"])
def test_gradients_of_several_terms_of_a_distribution_are_recorded_to_the_bit(name, method, of):
    """Cotangents of arguments that several terms share are added up in the same order by a recording."""
    function = getattr(getattr(xp.stats, name), method)

    def loss(values):
        x, y = values[:8], values[8:16]
        scale, shape = (values[16:24], values[24:32]) if of == "arrays" else (values[16], values[24])
        shapes = (shape,) * DISTRIBUTIONS[name]
        terms = [xp.sum(function(z, *shapes, loc=0.0, scale=scale)) for z in (x, y)]
        return terms[0] + terms[1] * values[0]

    gradient = ox.value_and_grad(loss)
    recorded, rng = ox.record(gradient, audit="always"), np.random.default_rng(0)
    for _ in range(4):
        assert agrees(recorded, gradient, rng.uniform(0.5, 2.0, 32))
    assert recorded.recordings and not recorded.why
