"""reliability: fits of distributions to failures and right-censored times."""

import numpy as np
from reliability.Fitters import (
    Fit_Expon_1P,
    Fit_Gamma_2P,
    Fit_Loglogistic_2P,
    Fit_Lognormal_2P,
    Fit_Normal_2P,
    Fit_Weibull_2P,
    Fit_Weibull_3P,
)

RNG = np.random.default_rng(0)
X = RNG.weibull(2.0, 150) * 50.0 + 5.0


def results():
    failures, censored = X[X < 70.0], np.full((X >= 70.0).sum(), 70.0)
    for fit in (
        Fit_Weibull_2P,
        Fit_Weibull_3P,
        Fit_Gamma_2P,
        Fit_Normal_2P,
        Fit_Lognormal_2P,
        Fit_Loglogistic_2P,
        Fit_Expon_1P,
    ):
        fitted = fit(failures=failures, right_censored=censored, show_probability_plot=False, print_results=False)
        yield fit.__name__, [float(fitted.loglik)]
