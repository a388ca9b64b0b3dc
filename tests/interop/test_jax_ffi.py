"""Steps inside ``jax.jit``: kernels through XLA's foreign function interface, with the bits of a step over NumPy arrays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from optimizers import OPTIMIZERS
from oxigrad import optim

jax = pytest.importorskip("jax")
pytest.importorskip("ml_dtypes")
jnp = jax.numpy

DTYPES = ["float64", "float32", "float16", "bfloat16"]
SHAPES = [(3, 4), (), (0, 2), (5,), (130,)]


@pytest.fixture(autouse=True)
def _double(precision: Any) -> Iterator[None]:
    with precision(True):
        yield


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    return np.array(np.random.default_rng(seed).standard_normal(shape)).astype(jnp.dtype(dtype))


def problem(shapes: Any = SHAPES, dtypes: Any = DTYPES, seed: int = 0) -> dict[str, np.ndarray]:
    names = [(f"{dtype}-{number}", shape, dtype) for dtype in dtypes for number, shape in enumerate(shapes)]
    # In the order to which JAX sorts the keys of dicts: random numbers depend on the position of a parameter.
    return {name: numbers(shape, dtype, seed + at) for at, (name, shape, dtype) in enumerate(sorted(names))}


def to_jax(arrays: Any) -> Any:
    return jax.tree.map(jnp.array, arrays)


def donating(opt: Any) -> Any:
    return jax.jit(opt.apply, donate_argnums=(0, 2))


def calls(function: Any, *args: Any) -> int:
    """The number of custom calls of kernels in a compiled function."""
    return jax.jit(function).lower(*args).as_text().count("@oxigrad_step")


def assert_same(found: Any, expected: Any) -> None:
    """The same bits, dtypes and shapes."""
    found = {key: np.asarray(value) for key, value in found.items()}
    assert {k: (v.dtype, v.shape) for k, v in found.items()} == {k: (v.dtype, v.shape) for k, v in expected.items()}
    for key, value in expected.items():
        assert found[key].tobytes() == np.ascontiguousarray(value).tobytes(), key


def assert_equal_steps(make: Any, model: dict[str, np.ndarray], steps: int = 3) -> None:
    """Steps under jit give the bits of `Optimizer.update` over NumPy arrays, of parameters and of slots."""
    host, opt = make(), make()
    params, step = to_jax(model), donating(opt)
    state = opt.init(params)
    for seed in range(steps):
        grads = {key: numbers(p.shape, p.dtype.name, 100 * seed + at) for at, (key, p) in enumerate(model.items())}
        given = to_jax(grads)
        host.update(model, grads)
        params, state = step(params, given, state)
    assert_same(params, model)
    assert int(state["step"]) == steps == host.step
    for path, slots in host.slots.items():
        assert_same(state["slots"][path], slots)


# --- equality ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_has_the_bits_of_numpy(name: str) -> None:
    opt, params = OPTIMIZERS[name](), to_jax(problem())
    assert calls(opt.apply, params, params, opt.init(params)) == 1
    assert_equal_steps(OPTIMIZERS[name], problem())


CHAINS = {
    "clip": lambda: optim.chain(optim.ClipByGlobalNorm(0.5), optim.AdamW(0.1)),
    "skip": lambda: optim.Adam(0.1, nonfinite="skip"),
    "groups": lambda: optim.SGD(0.1, 0.9, groups={"float32*": {"learning_rate": 0.3}, "*-1": {"nesterov": True}}),
    "partition": lambda: optim.partition({"*-0": optim.Lion(0.1), "*": optim.Adam(0.1)}),
    "master": lambda: optim.AdamW(0.1, master=True),
    "kahan": lambda: optim.AdamW(0.1, rounding="kahan"),
    "stochastic": lambda: optim.AdamW(0.1, rounding="stochastic", seed=7),
    "bfloat16 slots": lambda: optim.AdamW(0.1, slot_dtype="bfloat16"),
    "average": lambda: optim.chain(optim.SGD(0.1), optim.EMA(decay=0.5)),
    "noise": lambda: optim.chain(optim.GradientNoise(0.1), optim.SGD(0.1)),
    "zeroing": lambda: optim.SGD(0.1, 0.9, zero_gradients=True),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_and_options_have_the_bits_of_numpy(name: str) -> None:
    assert_equal_steps(CHAINS[name], problem())


@pytest.mark.parametrize("name", ["clip", "skip", "groups", "stochastic"])
def test_many_leaves_in_several_calls_have_the_bits_of_numpy(name: str) -> None:
    assert_equal_steps(CHAINS[name], problem(shapes=SHAPES * 2), steps=2)


def test_in_single_precision(precision: Any) -> None:
    """Without ``jax_enable_x64`` scalars are computed in float64 all the same."""
    with precision(False):
        assert_equal_steps(lambda: optim.AdamW(0.123, beta2=0.98), problem(dtypes=["float32", "bfloat16"]))
        model = problem(shapes=[(5,)] * 34, dtypes=["float32"])
        assert_equal_steps(lambda: optim.chain(optim.ClipByGlobalNorm(0.5), optim.Adam(0.1)), model)


def test_schedules_and_accumulation_agree() -> None:
    model = problem(dtypes=["float64"])
    make = lambda: optim.AdamW(ox.schedules.cosine(0.1, 10), accumulate=2)  # noqa: E731
    host, opt = make(), make()
    params, step = to_jax(model), donating(opt)
    state = opt.init(params)
    for seed in range(5):
        grads = problem(dtypes=["float64"], seed=seed + 50)
        host.update(model, grads)
        params, state = step(params, to_jax(grads), state)
    assert int(state["step"]) == 2
    for key, value in model.items():
        np.testing.assert_allclose(np.asarray(params[key]), value, rtol=1e-12, atol=1e-14)


def test_a_step_that_is_not_finite_changes_nothing() -> None:
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.Prodigy(), nonfinite="skip")
    for count in (2, 34):
        params = to_jax({f"p{at:02}": numbers((3,), "float32", at) for at in range(count)})
        step, state = jax.jit(opt.apply), opt.init(params)
        params, state = step(params, params, state)
        after, kept = step(params, {**params, "p01": params["p01"] * np.inf}, state)
        assert jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), (after, kept), (params, state)))
        assert int(step(params, params, state)[1]["step"]) == 2 and int(kept["step"]) == 1


def test_parameters_of_rules_that_are_not_elementwise_are_computed_by_rules() -> None:
    model = {"a": numbers((4, 4), "float64", 1), "b": numbers((4,), "float64", 2)}
    make = lambda: optim.partition({"a": optim.Muon(0.1), "b": optim.Adam(0.1)})  # noqa: E731
    host, opt, params = make(), make(), to_jax(model)
    state = opt.init(params)
    assert calls(opt.apply, params, params, state) == 1
    params, _ = jax.jit(opt.apply)(params, to_jax(model), state)
    host.update(model, {key: value.copy() for key, value in model.items()})
    np.testing.assert_allclose(np.asarray(params["a"]), model["a"], rtol=1e-9)
    assert_same({"b": params["b"]}, {"b": model["b"]})


def test_outside_of_jit_rules_are_called() -> None:
    opt, params = optim.Adam(0.1), to_jax(problem(dtypes=["float64"]))
    state = opt.init(params)
    eager, traced = opt.apply(params, params, state)[0], jax.jit(opt.apply)(params, params, state)[0]
    for key, value in eager.items():
        np.testing.assert_allclose(np.asarray(value), np.asarray(traced[key]), rtol=1e-12)


# --- memory ------------------------------------------------------------------------------------------------------------


def pointers(tree: Any) -> list[int]:
    return [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(tree) if np.size(leaf) > 1]


@pytest.mark.parametrize("count", [3, 34])
def test_donated_arrays_are_updated_in_place(count: int) -> None:
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.1))
    params = to_jax({f"p{at:02}": numbers((300,), "float32", at) for at in range(count)})
    grads, step, state = params | {}, donating(opt), opt.init(params)
    grads = jax.tree.map(jnp.copy, grads)
    before, given = pointers((params, state)), jax.tree.map(np.array, grads)
    params, state = step(params, grads, state)
    assert pointers((params, state)) == before
    assert_same(grads, given)


def test_arrays_that_are_not_donated_stay() -> None:
    opt, model = optim.AdamW(0.1), problem()
    params = to_jax(model)
    state = opt.init(params)
    slots = jax.tree.map(np.array, state["slots"])
    jax.jit(opt.apply)(params, params, state)
    assert_same(params, model)
    for path, own in slots.items():
        assert_same(state["slots"][path], own)


def test_one_array_may_be_parameter_gradient_and_slot() -> None:
    opt = optim.SGD(0.5, 0.5)
    x = jnp.arange(3.0)
    new, _ = jax.jit(lambda x: opt.apply({"w": x}, {"w": x}, {"step": 1, "slots": {"w": {"m": x}}}))(x)
    np.testing.assert_array_equal(new["w"], np.arange(3.0) * 0.25)


# --- transformations ---------------------------------------------------------------------------------------------------


def test_a_scan_trains_in_one_compiled_function() -> None:
    opt, host = optim.Adam(0.1), optim.Adam(0.1)
    model = {"w": numbers((40,), "float32", 1)}
    params = to_jax(model)

    @jax.jit
    def train(params: Any, state: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (opt.apply(carry[0], carry[0], carry[1]), None), (params, state), None, 5)[
            0
        ]

    state = opt.init(params)
    params, state = train(params, {**state, "step": jnp.asarray(0)})
    for _ in range(5):
        host.update(model, {"w": model["w"].copy()})
    assert_same(params, model)
    assert int(state["step"]) == 5


def test_vmap_gives_the_bits_of_each_model() -> None:
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.LAMB(0.1))
    models = [to_jax({f"p{at:02}": numbers((5,), "float32", 50 * m + at) for at in range(34)}) for m in range(3)]
    stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *models)
    states = jax.tree.map(lambda *arrays: jnp.stack([*map(jnp.asarray, arrays)]), *map(opt.init, models))
    found, _ = jax.jit(jax.vmap(opt.apply))(stacked, stacked, states)
    for number, model in enumerate(models):
        expected, _ = jax.jit(opt.apply)(model, model, {**opt.init(model), "step": jnp.asarray(0)})
        assert_same({key: value[number] for key, value in found.items()}, jax.tree.map(np.asarray, expected))


def test_derivatives_are_those_of_the_rule() -> None:
    def loss(p: Any, learning_rate: Any) -> Any:
        opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(lambda step: learning_rate))
        params, state = {"w": p}, opt.init({"w": p})
        for _ in range(2):
            params, state = opt.apply(params, {"w": params["w"] ** 2}, state)
        return (params["w"] ** 3).sum()

    p = jnp.asarray(numbers((5,), "float64", 3))
    for derivative in (jax.grad(loss, (0, 1)), lambda *args: jax.jvp(loss, args, (jnp.ones(5), 1.0))):
        found, expected = jax.jit(derivative)(p, 0.1), derivative(p, 0.1)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
    hessian = jax.jit(jax.hessian(loss))(p, 0.1)
    np.testing.assert_allclose(hessian, jax.hessian(loss)(p, 0.1), rtol=1e-8, atol=1e-12)


def test_several_optimizers_in_one_function() -> None:
    first, second = optim.Adam(0.1), optim.SGD(0.3)
    model = {"w": numbers((7,), "float32", 1)}

    @jax.jit
    def both(params: Any) -> Any:
        params, _ = first.apply(params, params, first.init(params))
        return second.apply(params, params, second.init(params))[0]

    found = both(to_jax(model))
    for opt in (optim.Adam(0.1), optim.SGD(0.3)):
        opt.update(model, {"w": model["w"].copy()})
    assert_same(found, model)


def test_the_program_outlives_its_optimizer() -> None:
    """More functions than the cache holds, whose optimizers no longer exist."""
    x = jnp.arange(3.0)

    def made(rate: float) -> Any:
        return jax.jit(lambda x: optim.SGD(rate).apply({"w": x}, {"w": x}, {"step": 0, "slots": {"w": {}}})[0]["w"])

    functions = [made(rate) for rate in np.arange(70) / 64]
    for _ in range(2):
        for function, rate in zip(functions, np.arange(70) / 64, strict=True):
            np.testing.assert_array_equal(function(x), np.arange(3.0) * (1 - rate))


def test_steps_of_two_threads_do_not_disturb_each_other() -> None:
    model = {"w": numbers((200_000,), "float32", 1)}
    opts = [optim.Adam(0.1), optim.Lion(0.1)]
    expected, found = [], {}
    for opt in opts:
        expected.append({"w": model["w"].copy()})
        for _ in range(5):
            opt.update(expected[-1], model)

    def run(number: int) -> None:
        opt = [optim.Adam(0.1), optim.Lion(0.1)][number]
        params, step = to_jax(model), donating(opt)
        state, grads = opt.init(params), to_jax(model)
        for _ in range(5):
            params, state = step(params, grads, state)
        found[number] = params

    workers = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for number, own in enumerate(expected):
        assert_same(found[number], own)
