"""The negative log-likelihood of a position and a velocity that a Kalman filter follows, by its noises."""

from oxigrad import xp as np

STEPS = 25
TRUTH = np.cumsum(np.random.default_rng(0).standard_normal(STEPS))
DATA = TRUTH + 0.5 * np.random.default_rng(1).standard_normal(STEPS)


def start(seed=0):
    return np.array([-0.3, 0.2, 0.9])  # logarithms of both noises, and the damping


def loss(params):
    q, r, damping = np.exp(params[0]), np.exp(params[1]), params[2]
    F = np.eye(2)
    F[0, 1] = 1.0
    F[1, 1] = damping
    H = np.array([[1.0, 0.0]])
    Q = q * np.array([[0.25, 0.5], [0.5, 1.0]])
    mean, cov = np.zeros(2), 10.0 * np.eye(2)
    total = 0.0
    for y in DATA:
        mean, cov = F @ mean, F @ cov @ F.T + Q
        S = H @ cov @ H.T + r
        innovation = y - H @ mean
        gain = np.linalg.solve(S, H @ cov).T
        _, logdet = np.linalg.slogdet(S)
        total += 0.5 * (innovation @ np.linalg.solve(S, innovation) + logdet + np.log(2.0 * np.pi))
        mean, cov = mean + gain @ innovation, cov - gain @ H @ cov
    return total
