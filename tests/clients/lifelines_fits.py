"""lifelines: fits of univariate models and of regressions."""

import numpy as np
import pandas as pd
from lifelines import (
    CoxPHFitter,
    GeneralizedGammaFitter,
    LogLogisticAFTFitter,
    LogLogisticFitter,
    LogNormalFitter,
    PiecewiseExponentialFitter,
    SplineFitter,
    WeibullAFTFitter,
    WeibullFitter,
)

RNG = np.random.default_rng(0)
DURATION = RNG.weibull(1.5, 300) * 10.0 + 0.01
OBSERVED = RNG.uniform(size=300) < 0.8
FRAME = pd.DataFrame({"x": RNG.standard_normal(300), "z": RNG.uniform(size=300), "t": DURATION, "e": OBSERVED})
FRAME["t"] *= np.exp(0.3 * FRAME["x"])


def results():
    fitters = {
        "Weibull": WeibullFitter(),
        "log-normal": LogNormalFitter(),
        "log-logistic": LogLogisticFitter(),
        "generalized gamma": GeneralizedGammaFitter(),
        "piecewise": PiecewiseExponentialFitter([4.0, 8.0]),
        "spline": SplineFitter(np.percentile(DURATION, [5, 50, 95])),
    }
    for name, fitter in fitters.items():
        fitter.fit(DURATION, OBSERVED)
        yield name, [fitter.log_likelihood_, *np.asarray(fitter.summary["coef"])]
    regressions = {
        "Weibull AFT": WeibullAFTFitter(),
        "log-logistic AFT": LogLogisticAFTFitter(),
        "Cox, spline": CoxPHFitter(baseline_estimation_method="spline", n_baseline_knots=3),
    }
    for name, fitter in regressions.items():
        fitter.fit(FRAME, "t", "e")
        yield name, [fitter.log_likelihood_]
