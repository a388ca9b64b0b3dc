"""Sizes below 0: a `ValueError` of every function that takes sizes, of arrays, numbers and variables, and never an `OverflowError`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.arange(6.0)
TRANSFORMS = (
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "hfft",
    "ihfft",
    "dct",
    "idct",
    "dst",
    "idst",
)  # -1 is no size along one axis
# Functions of a vector of six elements, with a size below 0. (`reshape` takes one such size for the one that is unknown, as NumPy does.)
CALLS: dict[str, Callable[[Any], Any]] = {
    "broadcast_to": lambda x: xp.broadcast_to(x, (-2, 6)),
    "np.broadcast_to": lambda x: np.broadcast_to(x, (-2, 6)),
    "reshape": lambda x: xp.reshape(x, (-2, -3)),
    "np.reshape": lambda x: np.reshape(x, (-2, -3)),
    "x.reshape": lambda x: x.reshape(-2, -3),
    "resize": lambda x: xp.resize(x, (-2,)),
    "tile": lambda x: xp.tile(x, (-2,)),
    "repeat": lambda x: xp.repeat(x, -2),
    "full": lambda x: xp.full((-2, 3), x[0]),
    "zeros": lambda x: x[0] + xp.zeros((-2, 3)),
    "ones": lambda x: x[0] + xp.ones((-2, 3)),
    "empty": lambda x: x[0] + xp.empty((-2, 3)),
    "eye": lambda x: x[0] + xp.eye(-2),
    "linspace": lambda x: xp.linspace(x[0], x[1], -2),
    "pad": lambda x: xp.pad(x, -2),
    "fft": lambda x: xp.abs(xp.fft.fft(x, n=-2)),
    "irfft": lambda x: xp.fft.irfft(x, n=-4),
    "dct": lambda x: xp.fft.dct(x, n=-2),
    **{f"{name} of -1": lambda x, name=name: xp.abs(getattr(xp.fft, name)(x, n=-1)) for name in TRANSFORMS},
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("how", ["plain", "reverse", "forward", "recorded"])
def test_sizes_below_zero(name: str, how: str) -> None:
    f = CALLS[name]
    calls: dict[str, Callable[[], Any]] = {
        "plain": lambda: f(X),
        "reverse": lambda: ox.vjp(f, X),
        "forward": lambda: ox.jvp(f, (X,), (X,)),
        "recorded": lambda: ox.record(f)(X),
    }
    with pytest.raises(ValueError, match="negative|at least [01]|zero or more|unknown dimension|Invalid number"):
        calls[how]()


@pytest.mark.parametrize("x", [X, X.astype(np.float32), np.float64(2.0), 2.0])
@pytest.mark.parametrize("shape", [(-2, 6), [-2, 6], -2])
def test_the_shape_is_named(x: Any, shape: Any) -> None:
    text = r"^broadcast_to: found the shape \(.*-2.*\), expected sizes of at least 0$"
    with pytest.raises(ox.ShapeError, match=text):
        xp.broadcast_to(x, shape)
    with pytest.raises(ox.ShapeError, match=text):
        ox.vjp(lambda x: xp.broadcast_to(x, shape), x)


def test_arrays_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ox.ShapeError, match=r"^broadcast_to: found the shape \(-2, 6\), expected sizes of at least 0$"):
        xp.broadcast_to(torch.ones(6), (-2, 6))


def test_sizes_of_zero() -> None:
    assert xp.broadcast_to(X, (0, 6)).shape == (0, 6)
    assert ox.grad(lambda x: xp.sum(xp.broadcast_to(x, (0, 6))))(X).tolist() == [0.0] * 6
