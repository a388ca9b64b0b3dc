"""Values of a step: hyperparameters of the next one, norms of the last one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from optimizers import OPTIMIZERS
from oxigrad import optim, schedules
from oxigrad.optim import EMA, SGD, Adam, ClipByGlobalNorm, chain, partition
from oxigrad.step.arrays.sparse_rows import SparseRows

KINDS = ("gradient", "update", "parameter")
SHAPES = {"w": (300, 7), "b": (5,), "s": ()}


def draw(seed: int, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {path: np.asarray(rng.normal(size=shape), dtype) for path, shape in SHAPES.items()}


def norm(array: Any) -> float:
    return float(np.linalg.norm(np.ravel(host(array)).astype(np.float64)))


# --- norms -------------------------------------------------------------------------------------------------------------

OTHERS: dict[str, Callable[..., Any]] = {
    "adafactor": lambda **o: optim.Adafactor(0.1, **o),
    "muon": lambda **o: partition({"w": optim.Muon(0.1), "*": SGD(0.1)}, **o),
    "partition": lambda **o: partition({"b": SGD(0.1, 0.9), "*": Adam(0.1)}, **o),
    "chain": lambda **o: chain(ClipByGlobalNorm(0.1), Adam(0.1), EMA(0.9), **o),
    "groups": lambda **o: Adam(0.1, groups={"b": {"learning_rate": 1.0}}, **o),
}


@pytest.mark.parametrize("name", [*OPTIMIZERS, *OTHERS])
@pytest.mark.one_in(4)
def test_norms_of_every_optimizer(name: str) -> None:
    if name in OTHERS:
        opt, plain = OTHERS[name](record_norms=KINDS), OTHERS[name]()
    else:
        opt, plain = OPTIMIZERS[name](), OPTIMIZERS[name]()
        opt.record_norms = KINDS
    w, v = draw(0), draw(0)
    for step in range(3):
        before, g = copy.deepcopy(w), draw(step + 1)
        opt.update(w, g)
        plain.update(v, draw(step + 1))
        for path in SHAPES:
            np.testing.assert_array_equal(w[path], v[path])  # recording changes nothing
            found = {kind: opt.recorded_norms[kind][path] for kind in KINDS}
            expected = {"gradient": g[path], "update": w[path] - before[path], "parameter": w[path]}
            for kind in KINDS:
                np.testing.assert_allclose(found[kind], norm(expected[kind]), rtol=1e-9, atol=1e-15)
    whole = np.concatenate([np.ravel(w[path]) for path in SHAPES])
    np.testing.assert_allclose(opt.global_norm("parameter"), norm(whole), rtol=1e-12)


@pytest.mark.parametrize("name", ["numpy", "read-only", "torch", "jax"])
def test_norms_over_libraries(name: str, library: Callable[[str], Any]) -> None:
    def asarray(x: np.ndarray) -> Any:
        if name == "read-only":
            x.setflags(write=False)
        return library(name).asarray(x) if name == "torch" else library("jax").numpy.asarray(x) if name == "jax" else x

    opt, w = Adam(0.1, record_norms=KINDS), {p: asarray(x) for p, x in draw(0, np.float32).items()}
    reference, v = Adam(0.1, record_norms=KINDS), draw(0, np.float32)
    for step in range(2):
        w = opt.update(w, {p: asarray(x) for p, x in draw(step + 1, np.float32).items()})
        reference.update(v, draw(step + 1, np.float32))
    for kind in KINDS:
        for path in SHAPES:
            np.testing.assert_allclose(opt.recorded_norms[kind][path], reference.recorded_norms[kind][path], rtol=1e-5)


def test_norms_of_singles_are_summed_in_float64() -> None:
    rng = np.random.default_rng(0)
    g = {"w": rng.normal(size=300_000).astype(np.float32)}
    opt = SGD(1.0, record_norms="gradient")
    opt.update({"w": np.zeros(300_000, np.float32)}, g)
    np.testing.assert_allclose(opt.recorded_norms["gradient"]["w"], norm(g["w"]), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_do_not_depend_on_threads(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    w, g = ([rng.normal(size=size).astype(dtype) for size in (150_001, 10)] for _ in range(2))
    found, threads = [], ox.get_num_threads()
    try:
        for count in (1, 2, 3):
            ox.set_num_threads(count)
            opt = optim.AdamW(0.1, record_norms=KINDS)
            opt.update(copy.deepcopy(w), g)
            found.append(opt.recorded_norms)
    finally:
        ox.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("sparse", ["lazy", "catch_up"])
def test_norms_of_rows(sparse: str) -> None:
    opt, w = Adam(0.1, sparse=sparse, record_norms=("gradient", "update")), {"t": np.zeros((4, 2))}
    for row in range(3):
        before = w["t"].copy()
        opt.update(w, {"t": SparseRows([row], np.full((1, 2), 3.0), (4, 2))})
        np.testing.assert_allclose(opt.recorded_norms["gradient"]["t"], norm([3.0, 3.0]))
        np.testing.assert_allclose(opt.recorded_norms["update"]["t"], norm(w["t"] - before))
    with pytest.raises(ValueError, match="record_norms has 'parameter' with sparse="):
        Adam(0.1, sparse=sparse, record_norms="parameter")


def test_norms_of_accumulated_and_scaled_gradients() -> None:
    opt, w = SGD(1.0, accumulate=2, loss_scale=optim.LossScale(8.0), record_norms=KINDS), {"w": np.zeros(2)}
    opt.update(w, {"w": np.array([24.0, 32.0])})
    assert opt.recorded_norms["gradient"] == {"w": 0.0}  # no step yet
    opt.update(w, {"w": np.array([0.0, 0.0])})
    assert opt.recorded_norms == {"gradient": {"w": 2.5}, "update": {"w": 2.5}, "parameter": {"w": 2.5}}


@pytest.mark.parametrize("options", [{"master": True}, {"rounding": "kahan"}, {"rounding": "stochastic"}, {}])
def test_norms_of_halves(options: dict[str, Any]) -> None:
    opt, w = Adam(0.1, record_norms=KINDS, **options), {"w": np.ones(64, np.float16)}
    opt.update(w, {"w": np.full(64, 0.5, np.float16)})
    np.testing.assert_allclose(opt.global_norm("gradient"), 4.0, rtol=1e-6)
    np.testing.assert_allclose(opt.global_norm("update"), 0.8, rtol=1e-3)
    np.testing.assert_allclose(opt.global_norm("parameter"), 7.2, rtol=1e-3)


def test_norms_are_switched_on_and_off_and_are_no_part_of_the_state() -> None:
    opt, w = Adam(0.1), draw(0)
    opt.update(w, draw(1))
    assert opt.recorded_norms == {}
    opt.record_norms = ["update", "gradient"]
    assert opt.record_norms == ("gradient", "update")
    opt.update(w, draw(2))
    assert opt.recorded_norms.keys() == {"gradient", "update"}
    state = opt.state_dict()
    assert state["slots"]["w"].keys() == {"m", "v"}
    again = optim.from_config(json.loads(json.dumps(state["config"])))
    assert again.record_norms == opt.record_norms
    again.load_state_dict(state)
    plain = Adam(0.1)
    plain.load_state_dict(state)
    models = [copy.deepcopy(w) for _ in range(2)]
    opt.update(w, draw(3))
    for each, v in zip((again, plain), models, strict=True):
        each.update(v, draw(3))
        np.testing.assert_array_equal(v["w"], w["w"])
    again.load_state_dict(opt.state_dict())  # over slots with norms
    opt.record_norms = ()
    opt.update(w, draw(4))
    assert opt.recorded_norms == {} and opt.slots["w"].keys() == {"m", "v"}
    with pytest.raises(ValueError, match="the norm 'update' is not recorded: expected one of record_norms, none"):
        opt.global_norm("update")
    with pytest.raises(ValueError, match="record_norms has 'grad': expected some of 'gradient', 'update', 'parameter'"):
        opt.record_norms = "grad"


def test_norms_of_the_pure_function_and_of_sam() -> None:
    opt, w = Adam(0.1, record_norms=KINDS), draw(0)
    state = opt.init(w)
    _, state = opt.apply(w, draw(1), state)
    np.testing.assert_allclose(state["slots"]["w"]["gradient-norm"], norm(draw(1)["w"]))
    sam, v = optim.SAM(SGD(0.5), rho=0.0, record_norms="update"), {"x": np.ones(4)}
    sam.minimize(lambda m: (m["x"] * 2.0).sum() if hasattr(m["x"], "sum") else m["x"], v)
    assert sam.recorded_norms == {"update": {"x": 2.0}}


# --- hyperparameters of the next step ----------------------------------------------------------------------------------


def test_current_values() -> None:
    opt = Adam(
        schedules.linear(1.0, 0.0, 10), groups={"b": {"learning_rate": schedules.linear(0.5, 0.0, 10), "beta1": 0.5}}
    )
    w = draw(0)
    with pytest.raises(KeyError, match="w: no parameter that is updated"):
        opt.current("learning_rate", "w")
    for step in range(4):
        assert opt.current("learning_rate") == pytest.approx(1.0 - step / 10)
        opt.update(w, draw(step))
    assert opt.current("learning_rate", "w") == opt.current("learning_rate") == pytest.approx(0.6)
    assert opt.current("learning_rate", "b") == pytest.approx(0.3)
    assert (opt.current("beta1", "w"), opt.current("beta1", "b"), opt.current("amsgrad")) == (0.9, 0.5, None)
    opt.learning_rate = 0.25
    assert opt.current("learning_rate") == opt.current("learning_rate", "w") == 0.25
    with pytest.raises(AttributeError, match="Adam has no hyperparameter lr: use learning_rate"):
        opt.current("lr")
    with pytest.raises(AttributeError, match="Adam has no hyperparameter momentum: expected one of learning_rate"):
        opt.current("momentum", "w")


def test_current_values_of_composed_optimizers() -> None:
    w = draw(0)
    rate = schedules.linear(1.0, 0.0, 10)
    parts = partition({"b": SGD(rate), "*": Adam(0.1)})
    chained = chain(ClipByGlobalNorm(rate), partition({"b": SGD(0.5), "*": Adam(0.1)}))
    single = chain(SGD(rate), EMA(0.9), EMA(0.99))
    for opt in (parts, chained, single):
        opt.update(w, draw(1))
    assert parts.current("learning_rate", "b") == 0.9 and parts.current("learning_rate", "w") == 0.1
    with pytest.raises(ValueError, match="partition: expected the key path of a parameter"):
        parts.current("learning_rate")
    assert chained.current("max_global_norm") == 0.9 and chained.current("learning_rate", "b") == 0.5
    assert single.current("learning_rate") == 0.9 and single.current("2.decay", "w") == 0.99
    sam, v = optim.SAM(SGD(rate), rho=0.0), {"x": np.ones(1)}
    sam.minimize(lambda m: m["x"][0], v)
    assert sam.current("learning_rate") == sam.current("learning_rate", "x") == 0.9
