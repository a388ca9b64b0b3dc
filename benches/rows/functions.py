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
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str | None, str, str]] = {
    "exp": (xp.exp, np.exp, "exp", "exp", "numpy.exp"),
    "log": (xp.log, np.log, "log", "log", "numpy.log"),
    "tanh": (xp.tanh, np.tanh, "tanh", "tanh", "numpy.tanh"),
    "sigmoid": (xp.special.expit, lambda x: 1 / (1 + np.exp(-x)), None, "sigmoid", "nn.sigmoid"),
    "sin": (xp.sin, np.sin, "sin", "sin", "numpy.sin"),
    "cos": (xp.cos, np.cos, "cos", "cos", "numpy.cos"),
    "expm1": (xp.expm1, np.expm1, "expm1", "expm1", "numpy.expm1"),
    "log1p": (xp.log1p, np.log1p, "log1p", "log1p", "numpy.log1p"),
    "erf": (xp.special.erf, np.vectorize(math.erf, otypes=["f8"]), None, "erf", "scipy.special.erf"),
    "tan": (xp.tan, np.tan, "tan", "tan", "numpy.tan"),
    "atan": (xp.atan, np.arctan, "arctan", "arctan", "numpy.arctan"),
    "sinh": (xp.sinh, np.sinh, "sinh", "sinh", "numpy.sinh"),
    "cosh": (xp.cosh, np.cosh, "cosh", "cosh", "numpy.cosh"),
    "log2": (xp.log2, np.log2, "log2", "log2", "numpy.log2"),
    "exp2": (xp.exp2, np.exp2, "exp2", "exp2", "numpy.exp2"),
    "softplus": (xp.special.softplus, lambda x: np.logaddexp(0, x), None, "nn.functional.softplus", "nn.softplus"),
    "pow": (xp.pow, np.power, "power", "pow", "numpy.power"),
    "logaddexp": (xp.logaddexp, np.logaddexp, "logaddexp", "logaddexp", "numpy.logaddexp"),
}
#: Functions of two arrays, and functions of positive numbers.
PAIRS, POSITIVE = {"pow", "logaddexp"}, {"log", "log2", "pow"}


def attribute(library: str, path: str) -> Callable[..., Any]:
    """A function of a library, by its path."""
    module, _, name = f"{library}.{path}".rpartition(".")
    return getattr(importlib.import_module(module), name)


def ready(call: Callable[[], Any], arrays: list[np.ndarray], exact: Callable[..., Any], units: int = 128) -> Ready:
    """A contestant, whose results are within so many units in the last place: jax's `log1p` of float64 is off by 64."""

    def check() -> None:
        relative = units * float(np.finfo(arrays[0].dtype).eps)
        expected = exact(*(array.astype(np.float64) for array in arrays))
        close(call(), expected, what="the result", relative=relative, absolute=relative)

    return Ready(call, check)


def ours(name: str, arrays: list[np.ndarray]) -> Ready:
    """The function of the namespace."""
    function, exact, *_ = FUNCTIONS[name]
    return ready(lambda: function(*arrays), arrays, exact, units=4)


def numpy(name: str, arrays: list[np.ndarray]) -> Ready:
    """NumPy's function."""
    function = attribute("numpy", str(FUNCTIONS[name][2]))
    return ready(lambda: function(*arrays), arrays, FUNCTIONS[name][1])


def torch(name: str, arrays: list[np.ndarray]) -> Ready:
    """torch's function."""
    import torch

    function, tensors = attribute("torch", FUNCTIONS[name][3]), [torch.from_numpy(array) for array in arrays]
    return ready(lambda: function(*tensors).numpy(), arrays, FUNCTIONS[name][1])


def jax(name: str, arrays: list[np.ndarray]) -> Ready:
    """The function of jax, compiled, on arrays of its own."""
    import jax

    function = attribute("jax", FUNCTIONS[name][4])
    jax.config.update("jax_enable_x64", True)
    compiled, copies = jax.jit(function), [jax.numpy.asarray(array) for array in arrays]
    return ready(lambda: compiled(*copies).block_until_ready(), arrays, FUNCTIONS[name][1])


def contestants(name: str, dtype: str) -> list[Contestant]:
    """Everybody, on arrays of this dtype."""
    low, random = 0.1 if name in POSITIVE else -0.9 if name == "log1p" else -4.0, np.random.default_rng(0)
    lows = [low, -4.0] if name in PAIRS else [low]
    arrays = [random.uniform(low, 4.0, sizes.numbers(LENGTH)).astype(dtype) for low in lows]
    others = [
        Contestant("torch", "peer", lambda: torch(name, arrays)),
        Contestant("jax.jit", "peer", lambda: jax(name, arrays)),
    ]
    if FUNCTIONS[name][2]:
        others.insert(0, Contestant("NumPy", "peer", lambda: numpy(name, arrays)))
    return [Contestant("oxigrad", "ours", lambda: ours(name, arrays)), *others]


def _row(name: str, dtype: str) -> Row:
    goals = tuple(Goal(1 / 1.3, peer) for peer in (["NumPy"] if FUNCTIONS[name][2] else []) + ["torch", "jax.jit"])
    return Row(f"{name} of {dtype}, per element", lambda: contestants(name, dtype), goals, operations=LENGTH)


ROWS = [_row(name, dtype) for dtype in ("float32", "float64") for name in FUNCTIONS]
