"""The compliance of half of an MBB beam by the densities of its elements: SIMP with a density filter."""

from oxigrad import xp as np

NX, NY, PENALTY, RADIUS = 8, 4, 3.0, 1.5
NU = 0.3


def start(seed=0):
    return np.random.default_rng(seed).uniform(0.3, 0.7, (NX, NY))


def stiffness():
    k = np.array([1/2 - NU/6, 1/8 + NU/8, -1/4 - NU/12, -1/8 + 3*NU/8, -1/4 + NU/12, -1/8 - NU/8, NU/6, 1/8 - 3*NU/8])  # fmt: skip
    order = np.array([
        [0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 7, 6, 5, 4, 3, 2], [2, 7, 0, 5, 6, 3, 4, 1], [3, 6, 5, 0, 7, 2, 1, 4],
        [4, 5, 6, 7, 0, 1, 2, 3], [5, 4, 3, 2, 1, 0, 7, 6], [6, 3, 4, 1, 2, 7, 0, 5], [7, 2, 1, 4, 3, 6, 5, 0],
    ])  # fmt: skip
    return k[order] / (1.0 - NU**2)


def filtered(density):
    i, j = np.meshgrid(np.arange(NX), np.arange(NY), indexing="ij")
    distance = np.hypot(i.ravel()[:, None] - i.ravel(), j.ravel()[:, None] - j.ravel())
    weights = np.maximum(0.0, RADIUS - distance)
    return ((weights @ density.ravel()) / weights.sum(axis=1)).reshape(NX, NY)


def loss(density):
    density = filtered(density)
    size = 2 * (NX + 1) * (NY + 1)
    K = np.zeros((size, size))
    KE = stiffness()
    for ex in range(NX):
        for ey in range(NY):
            n1, n2 = (NY + 1) * ex + ey, (NY + 1) * (ex + 1) + ey
            dofs = np.array([2*n1 + 2, 2*n1 + 3, 2*n2 + 2, 2*n2 + 3, 2*n2, 2*n2 + 1, 2*n1, 2*n1 + 1])  # fmt: skip
            K[np.ix_(dofs, dofs)] += (1e-3 + density[ex, ey] ** PENALTY) * KE
    force = np.zeros(size)
    force[1] = -1.0
    fixed = np.union1d(np.arange(0, 2 * (NY + 1), 2), np.array([size - 1]))
    free = np.setdiff1d(np.arange(size), fixed)
    u = np.zeros(size)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], force[free])
    return force @ u + 10.0 * (density.mean() - 0.5) ** 2
