"""Elementary functions of arrays that fit the cache: time for one element, beside NumPy, torch and jax.jit."""

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import sizes
from measure import Contestant, Goal, Ready, Row, close
from oxigrad import xp

LENGTH = 200_000
#: Ours; the function in float64; NumPy's name, torch's, and that of jax.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], str | None, str, str]] = {
    "exp": (xp.exp, np.exp, "exp", "exp", "numpy.exp"),
    "log": (xp.log, np.log, "log", "log", "numpy.log"),
    "tanh": (xp.tanh, np.tanh, "tanh", "tanh", "numpy.tanh"),
    "sigmoid": (xp.special.expit, lambda x: 1 / (1 + np.exp(-x)), None, "sigmoid", "nn.sigmoid"),
    "sin": (xp.sin, np.sin, "sin", "sin", "numpy.sin"),
    "cos": (xp.cos, np.cos, "cos", "cos", "numpy.cos"),
    "expm1": (xp.expm1, np.expm1, "expm1", "expm1", "numpy.expm1"),
    "log1p": (xp.log1p, np.log1p, "log1p", "log1p", "numpy.log1p"),
    "erf": (xp.special.erf, np.vectorize(math.erf, otypes=["f8"]), None, "erf", "scipy.special.erf"),
}


def ready(call: Callable[[], Any], x: np.ndarray, exact: Callable[[Any], Any], units: int = 128) -> Ready:
    """A contestant, whose results are within so many units in the last place: jax's `log1p` of float64 is off by 64."""

    def check() -> None:
        relative = units * float(np.finfo(x.dtype).eps)
        close(call(), exact(x.astype(np.float64)), what="the result", relative=relative, absolute=relative)

    return Ready(call, check)


def ours(name: str, x: np.ndarray) -> Ready:
    """The function of the namespace."""
    function, exact, *_ = FUNCTIONS[name]
    return ready(lambda: function(x), x, exact, units=4)


def numpy(name: str, x: np.ndarray) -> Ready:
    """NumPy's function."""
    _, exact, known, *_ = FUNCTIONS[name]
    function = getattr(np, str(known))
    return ready(lambda: function(x), x, exact)


def torch(name: str, x: np.ndarray) -> Ready:
    """torch's function."""
    import torch

    function, tensor = getattr(torch, FUNCTIONS[name][3]), torch.from_numpy(x)
    return ready(lambda: function(tensor).numpy(), x, FUNCTIONS[name][1])


def jax(name: str, x: np.ndarray) -> Ready:
    """The function of jax, compiled, on an array of its own."""
    import jax

    module, _, attribute = FUNCTIONS[name][4].rpartition(".")
    function = getattr(importlib.import_module(f"jax.{module}"), attribute)
    jax.config.update("jax_enable_x64", True)
    compiled, array = jax.jit(function), jax.numpy.asarray(x)
    return ready(lambda: compiled(array).block_until_ready(), x, FUNCTIONS[name][1])


def contestants(name: str, dtype: str) -> list[Contestant]:
    """Everybody, on an array of this dtype."""
    low = 0.1 if name == "log" else -0.9 if name == "log1p" else -4.0
    x = np.random.default_rng(0).uniform(low, 4.0, sizes.numbers(LENGTH)).astype(dtype)
    others = [
        Contestant("torch", "peer", lambda: torch(name, x)),
        Contestant("jax.jit", "peer", lambda: jax(name, x)),
    ]
    if FUNCTIONS[name][2]:
        others.insert(0, Contestant("NumPy", "peer", lambda: numpy(name, x)))
    return [Contestant("oxigrad", "ours", lambda: ours(name, x)), *others]


def _row(name: str, dtype: str) -> Row:
    goals = tuple(Goal(1 / 1.3, peer) for peer in (["NumPy"] if FUNCTIONS[name][2] else []) + ["torch", "jax.jit"])
    return Row(f"{name} of {dtype}, per element", lambda: contestants(name, dtype), goals, operations=LENGTH)


ROWS = [_row(name, dtype) for dtype in ("float32", "float64") for name in FUNCTIONS]
