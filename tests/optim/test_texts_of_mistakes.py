"""Texts of errors of optimizers and their parts: the class, the key path or the argument, and what to write."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
import oxigrad.scipy
from oxigrad import optim, xp


def model() -> dict[str, Any]:
    return {"w": np.ones(2)}


def squares(m: Any) -> Any:
    return xp.sum(m["w"] ** 2)


def of_sgd() -> Any:
    return optim.SGD(0.1, momentum=0.9).init(model())


PARTS: Any = optim
SWAPPED: Any = model()
FILES = "expected None or 'host'; files are for the optimizers of oxigrad.torch"
LIKE_X0 = "each a number, None or a tree like x0, such as an array; or scipy.optimize.Bounds"
TEXTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "range_test": (
        lambda: optim.range_test(optim.SGD(0.1), SWAPPED, squares),
        TypeError,
        "range_test: loss is dict: expected a function of the model, before the model",
    ),
    "a transform steps": (
        lambda: PARTS.ClipByGlobalNorm(1.0).update(model(), model()),
        AttributeError,
        "ClipByGlobalNorm has no attribute update, which a chain has: write chain(ClipByGlobalNorm(...), SGD(...))",
    ),
    "an average steps": (
        lambda: PARTS.EMA(0.9).update(model(), model()),
        AttributeError,
        "write chain(SGD(...), EMA(...))",
    ),
    "slots of SGD": (
        lambda: optim.Adam(0.1).apply(model(), model(), of_sgd()),
        ox.StateError,
        "w: the state has the slots m: expected m, v, as Adam has them",
    ),
    "slots of SGD, for amsgrad": (
        lambda: optim.Adam(0.1, amsgrad=True).apply(model(), model(), of_sgd()),
        ox.StateError,
        "expected m, v, v_max, as Adam has them",
    ),
    "a file": (lambda: PARTS.Adam(0.1, state_device="state.bin"), ValueError, FILES),
    "bounds of pairs": (
        lambda: oxigrad.scipy.minimize(lambda x: xp.sum(x**2), np.ones(3), bounds=[(0, 1), (0, 1)]),
        ox.StructureError,
        LIKE_X0,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str) -> None:
    call, kind, text = TEXTS[name]
    with pytest.raises(kind, match=re.escape(text)):
        call()


@pytest.mark.parametrize("at", ["swap_in", "swap_out"])
@pytest.mark.parametrize(
    ("other", "kind", "text"),
    [
        (np.ones(5), ox.ShapeError, "w: the new value has shape (2,), the parameter (5,)"),
        (np.ones((1, 2)), ox.ShapeError, "w: the new value has shape (2,), the parameter (1, 2)"),
        (np.ones(2, np.float32), ox.DtypeError, "w: the parameter has dtype float32, at the last step float64"),
    ],
)
def test_averages_of_another_model(at: str, other: Any, kind: type[Exception], text: str) -> None:
    opt = optim.chain(optim.SGD(0.1), optim.EMA(0.5))
    own = opt.update(model(), model())
    before = own["w"].copy()
    if at == "swap_out":
        opt.swap_in(own)
    unchanged = other.copy()
    with pytest.raises(kind, match=re.escape(text)):
        getattr(opt, at)({"w": other})
    np.testing.assert_array_equal(other, unchanged)
    if at == "swap_in":
        opt.swap_in(own)
    opt.swap_out(own)
    np.testing.assert_array_equal(own["w"], before)


def test_a_checked_rule_may_be_defined() -> None:
    def plain_descent(xp: Any, p: Any, g: Any, *, learning_rate: Any = 0.1) -> Any:
        return p - learning_rate * g

    unnamed: Any = lambda xp, p, g, *, learning_rate=0.1: p - learning_rate * g  # noqa: E731
    for rule in (plain_descent, unnamed):
        ox.testing.check_rule(rule)
        new = optim.define(rule)(0.5).update(model(), model())
        np.testing.assert_array_equal(new["w"], [0.5, 0.5])


def test_a_parameter_that_cannot_be_replaced(library: Any) -> None:
    numpy = library("jax.numpy")
    with pytest.raises(ox.StructureError, match="^1: the parameter cannot be written, and no container on its path"):
        optim.SGD(0.1).minimize(lambda m: xp.sum(m[1]), (np.ones(2), numpy.ones(2)))


def test_slot_dtype_without_moments() -> None:
    assert optim.SGD(0.1, slot_dtype="8bit").slot_dtype == "8bit"
    with pytest.raises(ValueError, match="DoG: slot_dtype='8bit' would have no effect"):
        optim.DoG(slot_dtype="8bit")


def test_keras_without_a_backend(library: Any) -> None:
    library("keras")
    program = "import os, sys; os.environ['KERAS_BACKEND'] = 'tensorflow'; sys.modules['tensorflow'] = None\n"
    completed = subprocess.run(
        [sys.executable, "-c", f"{program}import oxigrad.keras"], capture_output=True, text=True, check=False
    )
    assert "set the environment variable KERAS_BACKEND to torch or jax" in completed.stderr, completed.stderr
    program = "import os; os.environ['KERAS_BACKEND'] = 'jax'\nimport oxigrad.keras\noxigrad.keras.Adam(lr=0.1)"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "Adam: unknown: lr: use learning_rate" in completed.stderr, completed.stderr
