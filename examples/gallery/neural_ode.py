"""A neural ODE: the slope of a spiral is a small network, integrated by Dormand and Prince's steps."""

from oxigrad import xp as np

TIMES = np.linspace(0.0, 1.5, 16)
ANGLES = 2.0 * TIMES
DATA = np.stack([np.exp(-0.3 * TIMES) * np.cos(ANGLES), np.exp(-0.3 * TIMES) * np.sin(ANGLES)], axis=1)
A = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
]
B = [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]


def start(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "w1": 0.5 * rng.standard_normal((8, 2)),
        "b1": np.zeros(8),
        "w2": 0.5 * rng.standard_normal((2, 8)),
        "b2": np.zeros(2),
    }


def slope(params, y):
    hidden = np.tanh(params["w1"] @ y + params["b1"])
    return params["w2"] @ hidden + params["b2"]


def step(params, y, h):
    stages = []
    for row in A:
        stages.append(slope(params, y + h * sum(a * k for a, k in zip(row, stages))))
    return y + h * sum(b * k for b, k in zip(B, stages))


def loss(params):
    path = np.zeros(DATA.shape)
    path[0] = DATA[0]
    for i in range(1, len(TIMES)):
        path[i] = step(params, path[i - 1], TIMES[i] - TIMES[i - 1])
    return np.mean((path - DATA) ** 2)
