"""Functions of SciPy and scikit-learn that are written to the Array API are differentiable unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.cluster
import scipy.integrate
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

from oxigrad import grad, vjp, xp
from oxigrad.testing import check_grads

X = np.random.default_rng(0).uniform(0.5, 2.0, 6)
T = np.linspace(1.0, 2.0, 6)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "special.softmax": lambda x: xp.sum(scipy.special.softmax(x) * T),
    "special.log_softmax": lambda x: xp.sum(scipy.special.log_softmax(x) * T),
    "special.logsumexp": scipy.special.logsumexp,
    "special.logsumexp, weighted": lambda x: scipy.special.logsumexp(x, b=x - 0.3),
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
    "stats.circvar": scipy.stats.circvar,
    "stats.zscore": lambda x: xp.sum(scipy.stats.zscore(x) * T),
    "stats.gzscore": lambda x: xp.sum(scipy.stats.gzscore(x) * T),
    "stats.zmap": lambda x: xp.sum(scipy.stats.zmap(x, x * x) * T),
    "stats.tvar": scipy.stats.tvar,
    "stats.gstd": scipy.stats.gstd,
    "stats.kstat": lambda x: scipy.stats.kstat(x, 3),
    "stats.trim_mean": lambda x: scipy.stats.trim_mean(x, 0.2),
    "stats.lmoment": lambda x: xp.sum(scipy.stats.lmoment(x)),
    "stats.sigmaclip": lambda x: xp.sum(scipy.stats.sigmaclip(x)[0] ** 2),
    "stats.differential_entropy": scipy.stats.differential_entropy,
    "cluster.vq.whiten": lambda x: xp.sum(scipy.cluster.vq.whiten(xp.reshape(x, (2, 3))) ** 3),
    "signal.fftconvolve": lambda x: xp.sum(scipy.signal.fftconvolve(x, x) ** 2),
    "signal.oaconvolve": lambda x: xp.sum(scipy.signal.oaconvolve(x, x * x)),
    "signal.resample": lambda x: xp.sum(scipy.signal.resample(x, 4) ** 2),
    "signal.hilbert": lambda x: xp.sum(xp.abs(scipy.signal.hilbert(x))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_scipy_are_differentiable_unchanged(name: str) -> None:
    np.testing.assert_allclose(vjp(FUNCTIONS[name], X)[0], FUNCTIONS[name](X), rtol=1e-12)
    check_grads(FUNCTIONS[name], (X,), order=2)


def _matrix(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """A weighted sum of a matrix of similarities of the rows of two."""
    weights = np.arange(9.0).reshape(3, 3)
    return lambda x: xp.sum(f(xp.reshape(x, (3, 2)), xp.reshape(x * x, (3, 2))) * weights)


KERNELS = """additive_chi2_kernel cosine_similarity euclidean_distances linear_kernel polynomial_kernel rbf_kernel
    sigmoid_kernel""".split()


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_scikit_learn_are_differentiable_unchanged(library, name: str) -> None:
    sklearn = library("sklearn")
    with sklearn.config_context(array_api_dispatch=True):
        f = _matrix(getattr(library("sklearn.metrics.pairwise"), name))
        np.testing.assert_allclose(vjp(f, X)[0], f(X), rtol=1e-12)
        check_grads(f, (X,), order=2)


def test_metrics_of_scikit_learn_say_that_they_turn_into_floats(library) -> None:
    sklearn, metrics = library("sklearn"), library("sklearn.metrics")
    with sklearn.config_context(array_api_dispatch=True), pytest.raises(TypeError, match="lose its derivative"):
        grad(lambda x: metrics.mean_squared_error(x * x, x))(X)
