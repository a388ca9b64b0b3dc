"""Steps of `oxigrad.optax` outside of compiled functions: few Python frames, the numbers of ``jax.jit``, and every change is seen."""

from __future__ import annotations

import importlib
import inspect
import threading
from typing import Any

import numpy as np
import pytest

from oxigrad import ShapeError, StateError, StructureError, optim
from python_frames import frames

jax: Any = pytest.importorskip("jax")
optax: Any = pytest.importorskip("optax")
ours: Any = importlib.import_module("oxigrad.optax")
aliases: Any = importlib.import_module("oxigrad.optax.aliases")
jnp = jax.numpy

ELEMENTWISE = [
    name for name, row in aliases.ALIASES.items() if all(part._rule.elementwise for part in aliases.parts_of(row.parts))
]


# Read by few rules; it changes no step of the others.
LOSS = 2.5


def trees(count: int = 5, dtype: str = "float32") -> list[Any]:
    """Trees of parameters, or of gradients."""
    generator = np.random.default_rng(3)
    draw = lambda *shape: jnp.asarray(generator.standard_normal(shape), dtype)  # noqa: E731
    return [{"layers": [draw(3, 4), draw(4)], "w": draw(5)} for _ in range(count)]


def of(name: str) -> Any:
    """The transformation of a name, with a learning rate where it has no default."""
    parameters = inspect.signature(getattr(ours, name)).parameters
    rate = parameters.get("learning_rate")
    return getattr(ours, name)(*([0.1] if rate is not None and rate.default is inspect.Parameter.empty else []))


def applied(tx: Any, take: Any, trees: list[Any]) -> tuple[Any, Any]:
    """The parameters and the state after steps that return the new parameters."""
    params, *gradients = trees
    state = tx.init(params)
    for g in gradients:
        params, state = take(g, state, params, value=LOSS)
    return params, state


def updated(tx: Any, take: Any, trees: list[Any]) -> tuple[Any, Any]:
    """As `applied`, by steps that return the changes."""

    def step(g: Any, state: Any, params: Any, *, value: Any) -> Any:
        changes, state = take(g, state, params, value=value)
        return jax.tree.map(jnp.add, params, changes), state

    return applied(tx, step, trees)


def assert_close(these: Any, those: Any, rtol: float = 0.0) -> None:
    """Within ``rtol`` of the largest element of each leaf; the same bits where it is zero."""
    for this, that in zip(jax.tree.leaves(these), jax.tree.leaves(those), strict=True):
        assert (this.dtype, this.shape) == (that.dtype, that.shape)
        atol = rtol * float(np.max(np.abs(np.asarray(that, np.float64)), initial=0.0))
        np.testing.assert_allclose(np.asarray(this, np.float64), np.asarray(that, np.float64), rtol=0, atol=atol)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_steady_step_runs_few_frames(name: str) -> None:
    tx, (params, g, *_) = of(name), trees()
    state = tx.init(params)
    for take in (tx.update, tx.apply):
        for _ in range(3):
            _, state = take(g, state, params, value=LOSS)
        found = [each for each in frames(lambda: take(g, state, params, value=LOSS)) if each.startswith("oxigrad")]  # noqa: B023
        assert 1 <= len(found) <= 60, found


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_steps_are_those_of_jit(name: str) -> None:
    """As far as float32 goes: a compiled function has numbers such as the step's count in float32, the core in float64."""
    eager, compiled = of(name), of(name)
    expected = applied(compiled, jax.jit(compiled.apply), trees())
    assert_close(applied(eager, eager.apply, trees()), expected, 2e-5)
    assert_close(updated(eager, eager.update, trees())[0], expected[0], 2e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(dtype: str) -> None:
    eager, compiled = ours.adamw(0.1), ours.adamw(0.1)
    assert_close(
        applied(eager, eager.apply, trees(dtype=dtype)), applied(compiled, jax.jit(compiled.apply), trees(dtype=dtype))
    )


@pytest.mark.parametrize("options", [{"rounding": "stochastic", "seed": 1}, {"rounding": "kahan"}, {"master": True}])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_changes_keep_the_precision_of_the_parameters(options: dict[str, Any], is_compiled: bool) -> None:
    """Numbers in [1, 2): there the difference to a number near by is exact."""
    start, *gradients = np.random.default_rng(0).uniform(1.25, 1.75, (9, 40)).astype(np.float16)
    model = {kind: {"w": start.copy()} for kind in ("nearest", "options")}
    nearest, opt = optim.SGD(1e-4), optim.SGD(1e-4, **options)
    tx = ours.transformation(optim.SGD(1e-4, **options))
    params, take = {"w": jnp.asarray(start)}, jax.jit(tx.update) if is_compiled else tx.update
    state = tx.init(params)
    for g in gradients:
        nearest.update(model["nearest"], {"w": g}), opt.update(model["options"], {"w": g})
        changes, state = take({"w": jnp.asarray(g)}, state, params)
        params = optax.apply_updates(params, changes)
    np.testing.assert_array_equal(params["w"], model["options"]["w"])
    assert not np.array_equal(params["w"], model["nearest"]["w"])


def test_arguments_are_not_changed() -> None:
    tx, (params, g, *_) = ours.adamw(0.1), trees()
    state = tx.init(params)
    _, state = tx.update(g, state, params)
    before = jax.tree.map(np.array, (params, g, state))
    tx.update(g, state, params), tx.apply(g, state, params)
    assert_close(before, jax.tree.map(np.array, (params, g, state)))


@pytest.mark.parametrize("is_committed", [False, True])
def test_results_are_committed_as_the_parameters_are(is_committed: bool) -> None:
    """An array on a device by name makes all that is computed with it lie there, and refuses arrays of another device."""
    place = lambda tree: jax.device_put(tree, jax.devices("cpu")[0] if is_committed else None)  # noqa: E731
    for name in ("adamw", "nadam", "lamb", "prodigy", "adafactor"):
        tx, (params, g, *_) = of(name), map(place, trees())
        state = tx.init(params)
        for _ in range(3):
            changes, state = tx.update(g, state, params)
            assert {leaf.committed for leaf in jax.tree.leaves(changes)} == {is_committed}, name


def test_another_structure_dtype_or_count_is_another_step() -> None:
    tx, (params, *gradients) = ours.adamw(0.1), trees()
    state = tx.init(params)
    for g in gradients:
        _, state = tx.apply(g, state, params)
    other = {"w": jnp.ones(2), "b": jnp.zeros((2, 2))}
    fresh = ours.adamw(0.1)
    assert_close(tx.apply(other, tx.init(other), other), fresh.apply(other, fresh.init(other), other))
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    assert_close(tx.apply(wide, tx.init(wide), wide), fresh.apply(wide, fresh.init(wide), wide))
    # The count decides on the bias correction.
    assert_close(
        tx.apply(gradients[0], state._replace(count=jnp.asarray(0)), params),
        fresh.apply(gradients[0], state._replace(count=jnp.asarray(0)), params),
    )


def test_hyperparameters_that_are_set_take_effect() -> None:
    opt = optim.AdamW(0.1)
    tx, (params, g, *_) = ours.transformation(opt), trees()
    state = tx.init(params)
    for _ in range(2):
        _, state = tx.update(g, state, params)
    opt.learning_rate = 0.0
    assert all(not np.any(np.asarray(change)) for change in jax.tree.leaves(tx.update(g, state, params)[0]))


def test_malformed_arguments_are_named_after_steps_too() -> None:
    tx, (params, g, *_) = ours.adamw(0.1), trees()
    state = tx.init(params)
    for _ in range(3):
        _, state = tx.update(g, state, params)
    short = {**state.slots, "m": {**state.slots["m"], "w": jnp.zeros(2)}}
    with pytest.raises(StateError, match=r"w: the slot m has shape \(2,\)"):
        tx.update(g, state._replace(slots=short), params)
    with pytest.raises(ShapeError, match="^w: gradient has shape"):
        tx.update({**g, "w": jnp.zeros(2)}, state, params)
    with pytest.raises(StateError, match="count"):
        tx.update(g, state._replace(count=jnp.asarray(-1)), params)
    with pytest.raises(StructureError):
        tx.update({"w": g["w"]}, state, params)
    with pytest.raises(ValueError, match="params is None"):
        tx.update(g, state)


@pytest.mark.parametrize("of_numpy", ["parameters", "gradients", "states", "parameters, gradients and states"])
def test_arrays_of_numpy_are_taken(of_numpy: str) -> None:
    tx, (params, *gradients) = ours.adamw(0.1), trees()
    convert = lambda name, pytree: jax.tree.map(np.asarray, pytree) if name in of_numpy else pytree  # noqa: E731

    def take(g: Any, state: Any, params: Any, **loss: Any) -> Any:
        return tx.apply(convert("gradients", g), convert("states", state), convert("parameters", params), **loss)

    params, state = applied(tx, take, [params, *gradients])
    assert_close((params, state), applied(ours.adamw(0.1), tx.apply, trees()))
    called = [each for each in frames(lambda: take(gradients[0], state, params)) if each.startswith("oxigrad")]
    assert 1 <= len(called) <= 60, called


@pytest.mark.parametrize("library", [np, jnp])
def test_an_array_that_is_there_twice_is_two_parameters(library: Any) -> None:
    tx, repeated, other = ours.adamw(0.1), library.ones(3, np.float32), library.full(3, 2.0, np.float32)
    params, expected = {"a": repeated, "b": repeated}, {name: jnp.ones(3, np.float32) for name in "ab"}
    grads = {"a": repeated, "b": other}
    state, expected_state = tx.init(params), tx.init(expected)
    for _ in range(4):
        changes, state = tx.update(grads, state, params)
        expected_changes, expected_state = jax.jit(tx.update)(grads, expected_state, expected)
        assert_close(changes, expected_changes, 2e-5)


def test_numbers_of_python_are_parameters_and_gradients() -> None:
    for params, g in (({"w": 1.0}, {"w": 2.0}), ({"w": jnp.ones(())}, {"w": 2.0}), ({"w": 1.0}, {"w": jnp.array(2.0)})):
        tx, theirs = ours.adamw(0.1), optax.adamw(0.1)
        state, expected_state = tx.init(params), theirs.init(params)
        for _ in range(3):
            changes, state = tx.update(g, state, params)
            expected, expected_state = theirs.update(g, expected_state, params)
            assert float(changes["w"]) == pytest.approx(float(expected["w"]), rel=3e-5)


def test_threads_share_a_transformation() -> None:
    tx, expected = ours.adamw(0.1), applied(ours.adamw(0.1), ours.adamw(0.1).apply, trees())
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(applied(tx, tx.apply, trees()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        assert_close(each, expected)
