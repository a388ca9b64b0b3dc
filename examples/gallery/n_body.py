"""Bodies under gravity by the leapfrog method: how far the last positions are from goals, by the first velocities."""

from oxigrad import xp as np

BODIES, STEPS, DT, SOFT = 4, 30, 0.02, 0.1
RNG = np.random.default_rng(0)
MASSES = RNG.uniform(0.5, 1.5, BODIES)
POSITIONS = RNG.standard_normal((BODIES, 2))
GOALS = RNG.standard_normal((BODIES, 2))


def start(seed=0):
    return np.random.default_rng(seed + 1).standard_normal((BODIES, 2))


def acceleration(x):
    a = np.zeros_like(x)
    for i in range(BODIES):
        for j in range(BODIES):
            if i != j:
                d = x[j] - x[i]
                a[i] += MASSES[j] * d / (np.dot(d, d) + SOFT**2) ** 1.5
    return a


def loss(velocities):
    x, v = POSITIONS.copy(), velocities
    path = np.empty((STEPS, BODIES, 2))
    for step in range(STEPS):
        v = v + 0.5 * DT * acceleration(x)
        x = x + DT * v
        v = v + 0.5 * DT * acceleration(x)
        path[step] = x
    return np.sum((path[-1] - GOALS) ** 2) + 0.1 * np.max(np.linalg.norm(path[:, 0] - path[:, 1], axis=1))
