"""A step of a tree has the same bits in every mode of its library and of NumPy that is on around it."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from ambient_modes import NUMPY, Mode, jax_modes, setting, torch_modes
from libraries import host
from optimizers import OPTIMIZERS, WHOLE

ALL = {**OPTIMIZERS, **WHOLE, "muon": lambda: ox.optim.Muon(0.1)}
# Those over JAX, which compiles each op in each mode anew.
FEW = ["shampoo", "galore", "adam"]


def model(number: int) -> dict[str, Any]:
    """A model, or its gradient of a step: with zeros, a number near the least and one near the largest."""
    generator = np.random.default_rng(number)
    found = {name: generator.standard_normal(shape) for name, shape in {"a": (4, 3), "b": (2, 5)}.items()}
    if number:
        found["a"][0, 0], found["b"][0, :2] = 0.0, (1e-30, 1e25)
    return found


def stepped(name: str, asarray: Any, modes: list[Mode]) -> list[Any]:
    """The parameters after a step in each mode."""
    opt = ALL[name]()
    params = {key: asarray(x) for key, x in model(0).items()}
    loss = {"loss": 1.5} if "loss" in opt._rule.supplied else {}
    for step, mode in enumerate(modes, 1):
        grads = {key: asarray(x) for key, x in model(step).items()}
        with mode():
            params = opt.update(params, grads, **loss)
    return [np.array(host(x)) for x in params.values()]


def check_same(name: str, asarray: Any, modes: list[Mode]) -> None:
    plain = [contextlib.nullcontext] * len(modes)
    with np.errstate(all="ignore"):
        expected = stepped(name, asarray, plain)
    for x, y in zip(stepped(name, asarray, modes), expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("mode", NUMPY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ALL)
def test_arrays_of_numpy(name: str, dtype: str, mode: str) -> None:
    check_same(name, lambda x: x.astype(dtype), [NUMPY[mode], contextlib.nullcontext, NUMPY[mode]])


@pytest.mark.parametrize("name", ALL)
def test_tensors_of_pytorch(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    for mode in torch_modes().values():
        check_same(name, lambda x: torch.tensor(x, dtype=torch.float32, device="cpu"), [mode, contextlib.nullcontext])


@pytest.mark.parametrize("name", FEW)
def test_arrays_of_jax(name: str) -> None:
    jax: Any = pytest.importorskip("jax")
    for mode in jax_modes().values():
        check_same(name, lambda x: jax.numpy.asarray(x, dtype="float32"), [mode, contextlib.nullcontext])


@pytest.mark.parametrize("name", FEW)
def test_x64_changes_slots_of_one_number_alone(name: str) -> None:
    """Slots of one number have the most precise dtype of the library, which is float64 with ``jax_enable_x64``."""
    jax: Any = pytest.importorskip("jax")
    enabled = setting(lambda: jax.config.jax_enable_x64, lambda on: jax.config.update("jax_enable_x64", on), True)
    check_same(name, lambda x: jax.numpy.asarray(x, dtype="float32"), [contextlib.nullcontext, enabled, enabled])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["prodigy", "novograd"])
def test_slots_of_one_number_keep_their_dtype_with_x64(name: str, compiled: bool) -> None:
    """The dtype is the most precise one where the state is made."""
    jax: Any = pytest.importorskip("jax")
    ours: Any = pytest.importorskip("oxigrad.optax")
    params = {key: jax.numpy.asarray(x, dtype="float32") for key, x in model(0).items()}
    transformation = getattr(ours, name)(1.0)
    update = jax.jit(transformation.update) if compiled else transformation.update
    for enabled in (False, True) if compiled else (False,):  # eager steps may narrow numbers of float64 without x64
        found = []
        for modes in ([enabled, enabled], [enabled, not enabled], [not enabled, enabled]):
            with jax.enable_x64(enabled):
                state = transformation.init(params)
            expected = [x.dtype for x in jax.tree.leaves(state)]
            assert ("float64" in map(str, expected)) == enabled
            for step, mode in enumerate(modes, 1):
                with jax.enable_x64(mode):
                    grads = {key: jax.numpy.asarray(np.sin(x + step), dtype="float32") for key, x in model(0).items()}
                    updates, state = update(grads, state, params)
                assert [x.dtype for x in jax.tree.leaves(state)] == expected
            found.append([np.array(x) for x in jax.tree.leaves((updates, state))])
        for others in found[1:]:
            for x, y in zip(others, found[0], strict=True):
                np.testing.assert_allclose(x, y, rtol=0 if compiled else 1e-5, atol=0 if compiled else 1e-6)


@pytest.mark.parametrize("mode", NUMPY)
def test_transformations_of_optax(mode: str) -> None:
    jax: Any = pytest.importorskip("jax")
    optax: Any = pytest.importorskip("optax")
    oxigrad_optax = importlib.import_module("oxigrad.optax")
    found = []
    for around in (contextlib.nullcontext, jax_modes()[mode], jax_modes()["debug_nans"], jax_modes()["rank promotion"]):
        transformation = oxigrad_optax.shampoo(0.1)
        params = {key: jax.numpy.asarray(x, dtype="float32") for key, x in model(0).items()}
        state = transformation.init(params)
        for step in (1, 2):
            grads = {key: jax.numpy.asarray(x, dtype="float32") for key, x in model(step).items()}
            with around():
                updates, state = transformation.update(grads, state, params)
            params = optax.apply_updates(params, updates)
        found.append([np.array(x) for x in params.values()])
    for others in found[1:]:
        for x, y in zip(others, found[0], strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("sparse", ["lazy", "catch_up"])
def test_rows_catch_up_where_powers_underflow(sparse: str) -> None:
    found = []
    for mode in (contextlib.nullcontext, *NUMPY.values()):
        opt = ox.optim.Adam(0.1, 0.01, 0.01, sparse=sparse)
        params = {"w": np.ones((3, 2), np.float32)}
        with mode():
            for step in range(400):
                rows = [0] if 0 < step < 399 else [0, 1, 2]
                opt.update(params, {"w": ox.SparseRows(np.array(rows), np.ones((len(rows), 2), np.float32), (3, 2))})
        found.append(params["w"])
    for others in found[1:]:
        np.testing.assert_array_equal(others, found[0])
