"""SurPyval: maximum likelihood with censored data, and regressions."""

import numpy as np
import surpyval

RNG = np.random.default_rng(0)
X = RNG.weibull(1.8, 200) * 20.0
CENSORED = (X > 25.0).astype(int)


def results():
    for name in (
        "Weibull",
        "Gumbel",
        "Normal",
        "LogNormal",
        "Logistic",
        "LogLogistic",
        "Exponential",
        "Gamma",
        "ExpoWeibull",
    ):
        model = getattr(surpyval, name).fit(np.minimum(X, 25.0), c=CENSORED)
        yield name, [float(model.neg_ll())]
    offset = surpyval.Weibull.fit(X + 10.0, offset=True)
    yield "Weibull, offset", [float(offset.neg_ll())]
