"""Dask's arrays stay lazy: recording, derivatives and steps add to graphs, and compute none."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import libraries
import oxigrad as ox
from libraries import TABLE, differentiated, gradient
from oxigrad import optim, xp
from oxigrad.step.arrays.sparse_rows import SparseRows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RANDOM = np.random.default_rng(0)
WEIGHTS, INPUTS, TARGETS = (
    RANDOM.standard_normal((3, 2)),
    RANDOM.standard_normal((8, 3)),
    RANDOM.standard_normal((8, 2)),
)


@pytest.fixture
def uncomputed() -> Iterator[None]:
    """It is an error to compute a graph."""

    def refuse(*args: Any, **named: Any) -> Any:
        raise AssertionError("a graph is computed")

    with dask.config.set(scheduler=refuse):
        yield


def loss(model: Any, x: Any, y: Any) -> Any:
    return xp.mean(xp.square(xp.tanh(x @ model["w"]) - y))


def of_blocks(*arrays: np.ndarray) -> list[Any]:
    """Arrays of two blocks along each axis."""
    return [da.from_array(array, chunks=tuple((size + 1) // 2 for size in array.shape)) for array in arrays]


@pytest.mark.parametrize("name", libraries.named("dask").sample.split())
def test_derivatives_of_either_mode_and_order_compute_nothing(name: str, uncomputed) -> None:
    asarray, case = libraries.named("dask").asarray, TABLE[name]
    args = tuple(map(asarray, case.args))
    for order in (1, 2):
        f = differentiated(case, asarray, order)
        assert all(isinstance(g, da.Array) for g in gradient(f, len(args))(*args))
    assert isinstance(ox.jvp(f, args, libraries.directions(case, asarray))[1], da.Array)


@pytest.mark.parametrize(
    "name", ["matmul", "sum", "sort", "take", "inv", "svd-tall", "cumulative_sum", "rfft-n5", "erfinv", "betainc"]
)
def test_derivatives_over_several_blocks(name: str) -> None:
    case = TABLE[name]
    args = of_blocks(*case.args)
    found = gradient(differentiated(case, libraries.named("dask").asarray, 1), len(args))(*args)
    for own, expected in zip(dask.compute(*found), libraries.of_numpy(name)["order 1, reverse"], strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)


def test_what_is_computed_block_by_block_goes_to_another_process() -> None:
    (x,) = of_blocks(np.arange(1.0, 7.0))
    derivative = ox.grad(lambda x: xp.sum(xp.special.jn(1, x)))(x)
    again = pickle.loads(pickle.dumps(derivative))  # noqa: S301 - as Dask does with what it sends
    np.testing.assert_array_equal(again, derivative)


def test_a_step_deepens_the_graph_and_computes_nothing(uncomputed) -> None:
    w, x, y = of_blocks(WEIGHTS, INPUTS, TARGETS)
    model, opt = {"w": w}, optim.chain(optim.ClipByGlobalNorm(0.5), optim.AdamW(0.1))
    depths = []
    for _ in range(3):
        opt.minimize(lambda model: loss(model, x, y), model)
        depths.append(len(model["w"].dask.layers))
    assert depths[0] < depths[1] < depths[2]
    assert opt.step == 3
    assert all(isinstance(slot, da.Array) for slot in opt.slots["w"].values())


@pytest.mark.parametrize("make", [optim.AdamW, optim.SOAP, optim.Prodigy])
def test_the_pure_step_is_lazy_and_persists_as_one(make: Any) -> None:
    params, expected = {"w": of_blocks(WEIGHTS)[0]}, {"w": WEIGHTS}
    x, y = of_blocks(INPUTS, TARGETS)
    opt = make()
    state, reference = opt.init(params), opt.init(expected)
    for _ in range(2):
        params, state = opt.apply(params, ox.grad(loss)(params, x, y), state)
        params, state = dask.persist(params, state)
        expected, reference = opt.apply(expected, ox.grad(loss)(expected, INPUTS, TARGETS), reference)
    assert len(params["w"].dask.layers) == 1
    np.testing.assert_allclose(params["w"], expected["w"], rtol=1e-9)


def test_slots_are_persisted_in_place() -> None:
    w, x, y = of_blocks(WEIGHTS, INPUTS, TARGETS)
    model, opt, expected, reference = {"w": w}, optim.Adam(0.1), {"w": WEIGHTS.copy()}, optim.Adam(0.1)
    for _ in range(3):
        opt.minimize(lambda model: loss(model, x, y), model)
        model.update(dask.persist(model)[0])
        for own in opt.slots.values():
            own.update(dask.persist(dict(own))[0])
        reference.minimize(lambda model: loss(model, INPUTS, TARGETS), expected)
    assert max(len(array.dask.layers) for array in (model["w"], *opt.slots["w"].values())) <= 2
    np.testing.assert_allclose(model["w"], expected["w"], rtol=1e-12)


@pytest.mark.parametrize("sparse", ["dense", "lazy"])
def test_sparse_rows(sparse: str) -> None:
    model, expected = {"w": of_blocks(WEIGHTS)[0]}, {"w": WEIGHTS.copy()}
    opt, reference = optim.Adam(0.1, sparse=sparse), optim.Adam(0.1, sparse=sparse)
    indices, values = np.array([2, 0, 2]), RANDOM.standard_normal((3, 2))
    for _ in range(2):
        opt.update(model, {"w": SparseRows(*of_blocks(indices, values), (3, 2))})
        reference.update(expected, {"w": SparseRows(indices, values, (3, 2))})
    np.testing.assert_allclose(model["w"], expected["w"], rtol=1e-12)


def test_state_is_saved_and_loaded(tmp_path) -> None:
    (w,), grads = of_blocks(WEIGHTS), [{"w": RANDOM.standard_normal((3, 2))} for _ in range(4)]
    model, opt, expected, reference = {"w": w}, optim.Adam(0.1), {"w": WEIGHTS.copy()}, optim.Adam(0.1)
    for g in grads[:2]:
        opt.update(model, {"w": da.from_array(g["w"])})
    opt.save(tmp_path / "state")
    again = optim.Adam(0.1)
    again.load(tmp_path / "state")
    for g in grads[2:]:
        again.update(model, {"w": da.from_array(g["w"])})
    for g in grads:
        reference.update(expected, g)
    np.testing.assert_allclose(model["w"], expected["w"], rtol=1e-12)


def test_gradients_that_do_not_fit_are_named() -> None:
    w, x = of_blocks(WEIGHTS, INPUTS)
    model, opt = {"layers": [{"w": w}]}, optim.Adam(0.1)
    with pytest.raises(ox.ShapeError, match=r"^layers\.0\.w: gradient has shape \(8, 3\), the parameter \(3, 2\)"):
        opt.update(model, {"layers": [{"w": x}]})
    with pytest.raises(ox.DtypeError, match=r"^layers\.0\.w: gradient has dtype float32"):
        opt.update(model, {"layers": [{"w": w.astype(np.float32)}]})
    assert model["layers"][0]["w"] is w
    assert opt.step == 0


def test_shapes_that_depend_on_numbers_are_refused() -> None:
    (x,) = of_blocks(INPUTS)
    with pytest.raises((ValueError, TypeError, NotImplementedError)):
        ox.grad(lambda x: xp.sum(xp.unique_values(x) ** 2))(x)
