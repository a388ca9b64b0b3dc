"""pymanopt: conjugate gradients and trust regions on the sphere and on Stiefel manifolds."""

import autograd.numpy as anp
import numpy as np
import pymanopt
from pymanopt.manifolds import Sphere, Stiefel, SymmetricPositiveDefinite
from pymanopt.optimizers import ConjugateGradient, TrustRegions

RNG = np.random.default_rng(0)
A = RNG.standard_normal((200, 200))
A = A + A.T


def results():
    sphere, stiefel, definite = Sphere(200), Stiefel(200, 10), SymmetricPositiveDefinite(5)

    @pymanopt.function.autograd(sphere)
    def rayleigh(x):
        return x @ A @ x

    @pymanopt.function.autograd(stiefel)
    def brockett(x):
        return anp.trace(x.T @ A @ x @ anp.diag(anp.arange(10.0) + 1.0))

    target = A[:5, :5] @ A[:5, :5] + anp.eye(5)

    @pymanopt.function.autograd(definite)
    def distance(x):
        return anp.sum((x - target) ** 2)

    for name, cost, manifold in (
        ("sphere", rayleigh, sphere),
        ("Stiefel", brockett, stiefel),
        ("definite", distance, definite),
    ):
        start = np.random.default_rng(1)
        first = np.linalg.qr(start.standard_normal((200, 10)))[0] if name == "Stiefel" else start.standard_normal(200)
        first = np.eye(5) if name == "definite" else first / np.linalg.norm(first) if name == "sphere" else first
        for solver in (ConjugateGradient, TrustRegions):
            optimizer = solver(verbosity=0, max_iterations=300)
            result = optimizer.run(pymanopt.Problem(manifold, cost), initial_point=first)
            yield f"{name}, {solver.__name__}", [float(result.cost)]
