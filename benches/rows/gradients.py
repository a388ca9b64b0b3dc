"""Values and gradients of whole functions: networks, a mixture model, a recurrent net and a mix of transcendental ones.

Everybody evaluates the same formula in its own library's plain, eager style; JAX also compiled, for information. The
reference is a directional derivative by central differences of the same formula in NumPy, in float64.
The mixture model and the recurrent net have the form of ADBench (Srajer, Kukelova and Fitzgibbon 2018).
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import elsewhere
import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, WrongResultError
from oxigrad import xp

Arrays = Sequence[np.ndarray]
Objective = Callable[..., Any]
Problem = tuple[Objective, Callable[[], Arrays]]


def checked(call: Callable[[], tuple[Any, Any]], objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """A contestant whose call returns value and gradients, compared with central differences of the NumPy objective."""
    rng = np.random.default_rng(7)
    double = [np.asarray(a, np.float64) for a in args]
    along = [rng.standard_normal(a.shape) for a in double]
    step = 1e-6
    ahead = objective(np, *(a + step * d for a, d in zip(double, along, strict=True)))
    behind = objective(np, *(a - step * d for a, d in zip(double, along, strict=True)))
    slope, value = (ahead - behind) / (2 * step), objective(np, *double)

    def check() -> None:
        found, gradients = call()
        inner = sum(float(np.sum(np.asarray(g, np.float64) * d)) for g, d in zip(gradients, along, strict=True))
        for what, got, right in (("value", float(found), float(value)), ("slope", inner, float(slope))):
            if not abs(got - right) <= tolerance * max(1.0, abs(right)):
                raise WrongResultError(f"the {what} is {got!r}, the reference {right!r}")

    return Ready(call, check)


def ours(objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """`value_and_grad` of the objective over `xp`."""
    both = ox.value_and_grad(lambda *args: objective(xp, *args), argnums=tuple(range(len(args))))
    return checked(lambda: both(*args), objective, args, tolerance)


def in_torch(objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """Torch, whose functions take the names that the objectives use."""
    import torch

    leaves = [torch.tensor(a, requires_grad=True) for a in args]

    def call() -> tuple[Any, Any]:
        value = objective(torch, *leaves)
        return value.detach(), torch.autograd.grad(value, leaves)

    return checked(call, objective, args, tolerance)


def in_autograd(objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """HIPS autograd."""
    import autograd.numpy
    from autograd import value_and_grad

    both = value_and_grad(lambda args: objective(autograd.numpy, *args))
    return checked(lambda: both(tuple(args)), objective, args, tolerance)


def in_advect(objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """advect, to which NumPy's functions lead."""
    import advect

    both = advect.value_and_grad(lambda *args: objective(np, *args), argnums=tuple(range(len(args))))
    return checked(lambda: both(*args), objective, args, tolerance)


def in_jax(objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """JAX, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(jax.value_and_grad(lambda args: objective(jax.numpy, *args)))
    arrays = tuple(map(jax.numpy.asarray, args))
    return checked(lambda: jax.block_until_ready(compiled(arrays)), objective, args, tolerance)


def forward_only(objective: Objective, args: Arrays) -> Ready:
    """The formula in NumPy, without derivatives."""
    return Ready(lambda: objective(np, *args), lambda: None)


def row(name: str, problem: Problem, tolerance: float, faster: float, *, jax: bool = True, **settings: Any) -> Row:
    """Everybody on a problem; the goal is to be so many times ``faster`` than torch."""
    objective, make = problem

    def build() -> list[Contestant]:
        args = make()
        everybody = [
            Contestant("oxigrad", "ours", lambda: ours(objective, args, tolerance)),
            Contestant("torch", "peer", lambda: in_torch(objective, args, tolerance)),
            Contestant("autograd", "peer", lambda: in_autograd(objective, args, tolerance)),
            elsewhere.contestant("advect", "gradients", name, lambda: in_advect(objective, args, tolerance)),
            Contestant("jax, jit", "peer", lambda: in_jax(objective, args, tolerance)),
            Contestant("NumPy, forward only", "ceiling", lambda: forward_only(objective, args)),
        ]
        return everybody if jax else [c for c in everybody if not c.name.startswith("jax")]

    return Row(name, build, (Goal(faster, "torch"),), **settings)


# --- the functions ------------------------------------------------------------------------------------------------------


def constants(*arrays: np.ndarray) -> Callable[[Any], tuple[Any, ...]]:
    """The arrays that a formula reads, by library: each library converts them once, oxigrad and JAX take NumPy's.

    The cache is not part of what a recording of the formula captures: a call by another library leaves it as it is.
    """

    @functools.cache
    def of(lib: Any) -> tuple[Any, ...]:
        convert = lib.from_numpy if lib.__name__ == "torch" else np.asarray
        return tuple(map(convert, arrays))

    return of


def mix(lib: Any, x: Any) -> Any:
    """Transcendental functions, element by element, and a sum."""
    return lib.sum(lib.exp(-x * x) * lib.sin(x) + lib.tanh(x) * lib.cos(x))


def network(shapes: Sequence[int], batch: int, dtype: type) -> Problem:
    """The mean squared error of a multilayer perceptron with tanh, and its weights and biases."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((batch, shapes[0])).astype(dtype)
    targets = rng.standard_normal((batch, shapes[-1])).astype(dtype)
    data = constants(inputs, targets)

    def objective(lib: Any, *parameters: Any) -> Any:
        y, target = data(lib)
        for i in range(0, len(parameters), 2):
            y = y @ parameters[i] + parameters[i + 1]
            if i + 2 < len(parameters):
                y = lib.tanh(y)
        return lib.mean((y - target) ** 2)

    def make() -> Arrays:
        arrays: list[np.ndarray] = []
        for n, m in itertools.pairwise(shapes):
            arrays += [(rng.standard_normal((n, m)) / np.sqrt(n)).astype(dtype), np.zeros(m, dtype)]
        return arrays

    return objective, make


def log_sum_exp(lib: Any, x: Any) -> Any:
    """Along the first axis; its arguments here are moderate."""
    return lib.log(lib.sum(lib.exp(x), axis=0))


def mixture(d: int, k: int, n: int) -> Problem:
    """The log-likelihood of a Gaussian mixture with full covariances, with a Wishart prior."""
    rng = np.random.default_rng(1)
    points, gamma, m = rng.standard_normal((n, d)), 1.0, 0
    place = np.full((d, d), d * (d - 1) // 2)
    place.T[np.tril_indices(d, -1)] = np.arange(d * (d - 1) // 2)  # the factors, transposed
    nothing, diagonal = np.zeros((k, 1)), np.eye(d)
    data = constants(points, place, nothing, diagonal)

    def objective(lib: Any, alphas: Any, means: Any, logs: Any, lower: Any) -> Any:
        x, where, zero, eye = data(lib)
        concat = lib.concat if lib is xp else lib.concatenate
        scales = lib.exp(logs)
        factors = concat([lower, zero], axis=1)[:, where] + scales[:, :, None] * eye
        centred = (x - means[:, None, :]) @ factors
        sums = lib.sum(logs, axis=1)
        terms = (alphas + sums)[:, None] - 0.5 * lib.sum(centred * centred, axis=2)
        prior = 0.5 * gamma**2 * (lib.sum(scales * scales) + lib.sum(lower * lower)) - m * lib.sum(sums)
        return lib.sum(log_sum_exp(lib, terms)) - n * log_sum_exp(lib, alphas) + prior

    def make() -> Arrays:
        scale = 0.3 / np.sqrt(d)
        return [
            0.1 * rng.standard_normal(k),
            0.5 * rng.standard_normal((k, d)),
            0.1 * rng.standard_normal((k, d)),
            scale * rng.standard_normal((k, d * (d - 1) // 2)),
        ]

    return objective, make


def letters(characters: int, size: int = 14) -> np.ndarray:
    """A random text of so many characters, as numbers of an alphabet of ``size`` letters."""
    return np.random.default_rng(2).integers(0, size, characters)


def recurrent(layers: int, characters: int, size: int = 14) -> Problem:
    """The loss of a diagonal LSTM that predicts the next character."""
    rng, text = np.random.default_rng(3), np.eye(size)[letters(characters, size)]
    data = constants(*text)

    def sigmoid(lib: Any, x: Any) -> Any:
        return 1.0 / (1.0 + lib.exp(-x))

    def objective(lib: Any, main: Any, extra: Any, state: Any) -> Any:
        rows = data(lib)
        cells = [(state[2 * i], state[2 * i + 1]) for i in range(layers)]
        # The gates of a layer in order: forget and change read the input, take and give the hidden state.
        weights = [[main[2 * i, g] for g in range(4)] for i in range(layers)]
        biases = [[main[2 * i + 1, g] for g in range(4)] for i in range(layers)]
        first, second, third = extra[0], extra[1], extra[2]
        total = 0.0
        for t in range(characters - 1):
            x = rows[t] * first
            for i in range(layers):
                hidden, cell = cells[i]
                (wf, wi, wo, wc), (bf, bi, bo, bc) = weights[i], biases[i]
                forget, take = sigmoid(lib, x * wf + bf), sigmoid(lib, hidden * wi + bi)
                give, change = sigmoid(lib, x * wo + bo), lib.tanh(hidden * wc + bc)
                cell = cell * forget + take * change
                x = give * lib.tanh(cell)
                cells[i] = (x, cell)
            y = x * second + third
            total = total + lib.sum(rows[t + 1] * y) - lib.log(lib.sum(lib.exp(y)) + 2.0)
        return -total / (characters * size)

    def make() -> Arrays:
        return [
            0.5 * rng.standard_normal((2 * layers, 4, size)),
            0.5 * rng.standard_normal((3, size)),
            0.5 * rng.standard_normal((2 * layers, size)),
        ]

    return objective, make


def large() -> Arrays:
    """A million numbers."""
    return [np.random.default_rng(3).standard_normal(sizes.numbers(1_000_000))]


ROWS = [
    row("mix of exp, sin, tanh, cos, 1e6 float64", (mix, large), 1e-5, 3, samples=15),
    row("network 2-16-1, batch 32", network((2, 16, 1), 32, np.float64), 1e-5, 3, threads=1),
    row(
        "network 784-128-64-10, batch 64, float32",
        network((784, 128, 64, 10), 64, np.float32),
        2e-3,
        1.2,
        threads=1,
    ),
    row("mixture d=10 K=25 n=1000", mixture(10, 25, sizes.items(1000)), 1e-5, 1.5, samples=15),
    row("mixture d=20 K=50 n=1000", mixture(20, 50, sizes.items(1000)), 1e-5, 1.5, samples=9),
    row("recurrent net, 2 layers, 1024 characters", recurrent(2, sizes.items(1024)), 1e-5, 8, jax=False, samples=5),
]
