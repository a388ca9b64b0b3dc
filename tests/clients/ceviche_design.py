"""ceviche: fields by finite differences in the frequency domain, and their gradient by the permittivity."""

import autograd.numpy as anp
import ceviche
import numpy as np

OMEGA, DL, NPML = 2 * np.pi * 200e12, 5e-8, [10, 10]


def results():
    source = np.zeros((50, 50))
    source[15, 25] = 1.0

    def power(design):
        eps = anp.ones((50, 50)) + anp.reshape(design, (50, 50))
        _, _, field = ceviche.fdfd_ez(OMEGA, DL, eps, NPML).solve(source)
        return 1e12 * anp.sum(anp.abs(field[35, 20:30]) ** 2)

    start = np.zeros((50, 50))
    start[20:30, 20:30] = 2.0
    gradient = ceviche.jacobian(power, mode="reverse")(start.ravel()).ravel()
    yield "power", [float(power(start.ravel()))]
    yield "gradient", [float(np.linalg.norm(gradient)), float(gradient[1275])]
