"""The negative log-posterior of a logistic regression whose groups share a normal prior."""

from oxigrad import xp as np

GROUPS, ROWS, FEATURES = 4, 60, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, FEATURES))
GROUP = RNG.integers(0, GROUPS, ROWS)
Y = (RNG.uniform(size=ROWS) < 1.0 / (1.0 + np.exp(-X[:, 0] - 0.5 * GROUP))).astype(float)


def start(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "mean": np.zeros(FEATURES),
        "log_scale": np.zeros(FEATURES),
        "weights": 0.1 * rng.standard_normal((GROUPS, FEATURES)),
        "offset": np.zeros(GROUPS),
    }


def loss(params):
    scale = np.exp(params["log_scale"])
    weights = params["mean"] + scale * params["weights"]
    logits = np.einsum("ij,ij->i", X, weights[GROUP]) + params["offset"][GROUP]
    likelihood = np.sum(Y * logits - np.logaddexp(0.0, logits))
    prior = -0.5 * np.sum(params["weights"] ** 2) - 0.5 * np.sum(params["mean"] ** 2)
    prior += -0.5 * np.sum(params["offset"] ** 2) - 0.5 * np.sum(params["log_scale"] ** 2)
    return -(likelihood + prior)
