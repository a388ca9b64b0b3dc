"""Inverse design by finite differences in the frequency domain: the power of a wave behind a slab of free permittivity."""

from oxigrad import xp as np

N, H, OMEGA = 14, 0.1, 2.0 * np.pi
MIDDLE = slice(5, 9)


def start(seed=0):
    return 1.0 + np.random.default_rng(seed).uniform(0.0, 2.0, (4, 4))


def laplacian():
    one = (np.eye(N, k=1) - 2.0 * np.eye(N) + np.eye(N, k=-1)) / H**2
    return np.kron(one, np.eye(N)) + np.kron(np.eye(N), one)


def loss(design):
    eps = np.ones((N, N))
    eps[MIDDLE, MIDDLE] = design
    depth = np.zeros((N, N))
    for edge in range(3):
        depth[edge, :] = depth[-1 - edge, :] = depth[:, edge] = depth[:, -1 - edge] = 3.0 - edge
    absorbing = 1.0 + 0.3j * depth
    A = laplacian() + np.diag((OMEGA**2 * eps * absorbing).ravel())
    source = np.zeros((N, N), dtype=complex)
    source[3, N // 2] = 1.0 / H**2
    field = np.linalg.solve(A, source.ravel()).reshape(N, N)
    return -np.sum(np.abs(field[10, 4:10]) ** 2)
