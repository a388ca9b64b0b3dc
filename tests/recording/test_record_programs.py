"""Whole programs that are recorded: those of the gallery, functions of SciPy's by `xp`, and training steps.

Each call is audited.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_record import equal

import oxigrad as ox
from oxigrad import optim, tree, xp

GALLERY = Path(__file__).parent.parent.parent / "examples" / "gallery"


@pytest.mark.parametrize("name", sorted(file.stem for file in GALLERY.glob("*.py")))
def test_programs_of_the_gallery_are_recorded(name: str) -> None:
    module, rng = runpy.run_path(str(GALLERY / f"{name}.py")), np.random.default_rng(0)
    both = ox.value_and_grad(module["loss"])
    recorded, start = ox.record(both, audit="always"), module["start"]()
    for _ in range(3):
        moved = tree.map(lambda leaf: leaf + 0.01 * rng.standard_normal(np.shape(leaf)), start)
        assert equal(recorded(moved), both(moved))
        assert recorded.why is None, recorded


def _posterior(x: Any) -> Any:
    covariance = xp.exp(-((x[:, None] - x[None, :]) ** 2)) + 0.1 * xp.eye(x.shape[0])
    factor = xp.linalg.cholesky(covariance)
    return xp.sum(xp.log(xp.linalg.diagonal(factor))) + xp.sum(xp.linalg.solve(covariance, x) * x)


SCIPY: dict[str, Callable[[Any], Any]] = {
    "erf": lambda x: xp.sum(xp.special.erf(x)),
    "gammaln": lambda x: xp.sum(xp.special.gammaln(x + 1.0)),
    "logsumexp": lambda x: xp.special.logsumexp(x),
    "softmax": lambda x: xp.sum(xp.special.softmax(x) ** 2),
    "expit": lambda x: xp.sum(xp.special.expit(x) * x),
    "a posterior": _posterior,
    "expm": lambda x: xp.sum(xp.linalg.expm(xp.reshape(x[:4], (2, 2)))),
    "solve_triangular": lambda x: xp.sum(xp.linalg.solve_triangular(xp.eye(5) * x, x, lower=True)),
}


@pytest.mark.parametrize("is_derivative", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", SCIPY)
def test_functions_of_scipy_by_xp_are_recorded(name: str, is_derivative: bool) -> None:
    pytest.importorskip("scipy")
    f = ox.grad(SCIPY[name]) if is_derivative else SCIPY[name]
    g = ox.record(f, audit="always")
    for at in range(4):
        x = np.linspace(0.3, 1.7, 5) + 0.1 * at
        assert equal(g(x), f(x))
        assert g.why is None, g


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(0.1),
    "Adam": lambda: optim.Adam(0.1),
    "AdamW": lambda: optim.AdamW(0.1, weight_decay=0.01),
    "RMSProp": lambda: optim.RMSprop(0.1),
    "Lion": lambda: optim.Lion(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whole_training_steps_are_recorded(name: str) -> None:
    """A step of `apply` is a function of model, state and batch."""
    opt, rng = OPTIMIZERS[name](), np.random.default_rng(0)

    def loss(model: Any, batch: Any) -> Any:
        return xp.mean((xp.tanh(batch @ model["w"]) @ model["v"] + model["b"] - xp.sum(batch, axis=1)) ** 2)

    def step(model: Any, state: Any, batch: Any) -> Any:
        value, grads = ox.value_and_grad(loss)(model, batch)
        return (*opt.apply(model, grads, state), value)

    g: Any = ox.record(step, audit="always")
    model: Any = {"w": rng.normal(size=(3, 4)), "v": rng.normal(size=4), "b": np.zeros(1)}
    state = opt.init(model)
    for _ in range(5):
        batch = rng.normal(size=(8, 3))
        result = g(model, state, batch)
        assert equal(result, step(model, state, batch))
        assert g.why is None, g
        model, state, _ = result


def test_training_by_minimize_gives_the_model_of_training_without_a_recording() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(64, 3))

    def trained(*, record: bool) -> Any:
        model, opt, batch = {"w": np.zeros(3), "b": np.zeros(())}, optim.Adam(0.1), inputs[:16]

        def loss(model: Any) -> Any:
            return xp.mean((batch @ model["w"] + model["b"] - xp.sum(batch, axis=1)) ** 2)

        values = []
        for at in range(12):
            batch = inputs[16 * (at % 4) :][:16]
            values.append(opt.minimize(loss, model, record=record))
        return values, model

    assert equal(trained(record=True), trained(record=False))
