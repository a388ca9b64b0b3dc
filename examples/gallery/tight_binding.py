"""Two bands of a chain: the energy of the filled one, and the phase of its Wilson loop, by the hoppings."""

from oxigrad import xp as np

POINTS = 12


def start(seed=0):
    return np.array([1.0, 0.6, 0.3])  # hoppings within and between cells, and the difference of sites


def hamiltonian(params, k):
    inner, outer, mass = params
    h = np.zeros((2, 2), dtype=complex)
    h[0, 1] = inner + outer * np.exp(-1j * k)
    h[1, 0] = np.conj(h[0, 1])
    h[0, 0] = mass
    h[1, 1] = -mass
    return h


def loss(params):
    energy, states = 0.0, []
    for k in np.linspace(0.0, 2.0 * np.pi, POINTS, endpoint=False):
        values, vectors = np.linalg.eigh(hamiltonian(params, k))
        energy += values[0] / POINTS
        states.append(vectors[:, 0])
    loop = 1.0
    for one, other in zip(states, states[1:] + states[:1]):
        loop *= np.vdot(one, other)
    return energy + (np.angle(loop) - 1.0) ** 2
