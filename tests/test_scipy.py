"""Functions of SciPy that are written to the Array API are differentiable unchanged: they get a variable, and give one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats

from oxigrad import xp
from oxigrad.testing import check_grads

X = np.random.default_rng(0).uniform(0.5, 2.0, 6)
T = np.linspace(1.0, 2.0, 6)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "special.softmax": lambda x: xp.sum(scipy.special.softmax(x) * T),
    "special.expit": lambda x: xp.sum(scipy.special.expit(x)),
    "special.xlogy": lambda x: xp.sum(scipy.special.xlogy(x, x)),
    "special.entr": lambda x: xp.sum(scipy.special.entr(x)),
    "integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, T),
    "integrate.cumulative_trapezoid": lambda x: xp.sum(scipy.integrate.cumulative_trapezoid(x, T) * T[:-1]),
    "optimize.rosen": scipy.optimize.rosen,
    "stats.gmean": scipy.stats.gmean,
    "stats.hmean": scipy.stats.hmean,
    "stats.pmean": lambda x: scipy.stats.pmean(x, 3),
    "stats.moment": lambda x: scipy.stats.moment(x, 3),
    "stats.skew": scipy.stats.skew,
    "stats.kurtosis": scipy.stats.kurtosis,
    "stats.sem": scipy.stats.sem,
    "stats.entropy": scipy.stats.entropy,
    "stats.circmean": scipy.stats.circmean,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_scipy_are_differentiable_unchanged(name: str) -> None:
    check_grads(FUNCTIONS[name], (X,), order=2)
