"""The negative log-likelihood of labels in a linear-chain conditional random field."""

from oxigrad import xp as np

LENGTH, LABELS, FEATURES = 12, 3, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((LENGTH, FEATURES))
Y = RNG.integers(0, LABELS, LENGTH)


def start(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "emission": 0.3 * rng.standard_normal((FEATURES, LABELS)),
        "transition": 0.3 * rng.standard_normal((LABELS, LABELS)),
    }


def logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def loss(params):
    scores = X @ params["emission"]
    alpha = scores[0]
    for t in range(1, LENGTH):
        alpha = scores[t] + logsumexp(alpha[:, None] + params["transition"], axis=0)
    path = np.sum(scores[np.arange(LENGTH), Y]) + np.sum(params["transition"][Y[:-1], Y[1:]])
    return logsumexp(alpha, axis=0) - path
