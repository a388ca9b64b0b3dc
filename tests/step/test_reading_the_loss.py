"""Rules that read the loss, through every way to a step."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import distributed, optim, xp
from oxigrad.optim.table.row import TABLE

LOSSES = [3.0, 0.5, 2.0, 1.0]
READERS = [name for name, row in TABLE.items() if "loss" in row.optimizer._rule.supplied]
Values = dict[str, Any]
# Gives the parameters after steps with these gradients, the losses of which are `LOSSES`.
Way = Callable[[str, Values, list[Values]], Values]


def drawn() -> tuple[Values, list[Values]]:
    """A model, and a gradient for each loss."""
    generator = np.random.default_rng(4)
    draw = lambda: {"a": generator.standard_normal((2, 3)), "b": generator.standard_normal(4)}  # noqa: E731
    return draw(), [draw() for _ in LOSSES]


def by_update(name: str, model: Values, gradients: list[Values]) -> Values:
    opt = getattr(optim, name)(0.5)
    for g, loss in zip(gradients, LOSSES, strict=True):
        model = opt.update(model, g, loss=loss)
    return model


def read_only(name: str, model: Values, gradients: list[Values]) -> Values:
    """Arrays become read-only between two steps, so that the plan changes in the course of one."""
    opt = getattr(optim, name)(0.5)
    for at, (g, loss) in enumerate(zip(gradients, LOSSES, strict=True)):
        if at > 1:
            model["a"].setflags(write=False)
        model = opt.update(model, g, loss=np.float32(loss))
    return model


def in_minimize(name: str, model: Values, gradients: list[Values]) -> Values:
    """Of a linear function, whose constant makes the value that of the table."""
    opt = getattr(optim, name)(0.5)
    for g, loss in zip(gradients, LOSSES, strict=True):

        def product(model: Any, g: Any = g) -> Any:
            return xp.sum(model["a"] * g["a"]) + xp.sum(model["b"] * g["b"])

        constant = loss - float(product(model))
        opt.minimize(lambda model, f=product, constant=constant: f(model) + constant, model)
    return model


def by_apply(name: str, model: Values, gradients: list[Values]) -> Values:
    opt = getattr(optim, name)(0.5)
    state = opt.init(model)
    for g, loss in zip(gradients, LOSSES, strict=True):
        model, state = opt.apply(model, g, state, loss=loss)
    return model


def under_jit(name: str, model: Values, gradients: list[Values]) -> Values:
    jax = pytest.importorskip("jax")
    opt, model = getattr(optim, name)(0.5), jax.tree.map(jax.numpy.asarray, model)
    step, state = jax.jit(lambda p, g, s, loss: opt.apply(p, g, s, loss=loss)), opt.init(model)
    for g, loss in zip(gradients, LOSSES, strict=True):
        model, state = step(model, g, state, loss)
    return model


def in_torch(name: str, model: Values, gradients: list[Values], *, by_closure: bool = False) -> Values:
    torch = pytest.importorskip("torch")
    params = {path: torch.nn.Parameter(torch.tensor(value)) for path, value in model.items()}
    opt = getattr(importlib.import_module("oxigrad.torch"), name)(params.values(), lr=0.5)
    for g, loss in zip(gradients, LOSSES, strict=True):
        for path, p in params.items():
            p.grad = torch.tensor(g[path])
        found = torch.tensor(loss, requires_grad=True)
        assert (opt.step(lambda found=found: found) if by_closure else opt.step(loss=found)) is found
    return {path: p.detach() for path, p in params.items()}


def in_torch_by_closure(name: str, model: Values, gradients: list[Values]) -> Values:
    return in_torch(name, model, gradients, by_closure=True)


def in_optax(name: str, model: Values, gradients: list[Values]) -> Values:
    jax = pytest.importorskip("jax")
    pytest.importorskip("optax")
    ours = importlib.import_module("oxigrad.optax")
    tx = ours.transformation(getattr(optim, name)(0.5))
    model = jax.tree.map(jax.numpy.asarray, model)
    state = tx.init(model)
    for g, loss in zip(gradients, LOSSES, strict=True):
        model, state = tx.apply(jax.tree.map(jax.numpy.asarray, g), state, model, value=jax.numpy.asarray(loss))
    return model


WAYS: list[Way] = [read_only, in_minimize, by_apply, in_torch, in_torch_by_closure, under_jit, in_optax]
OVER_JAX = [under_jit, in_optax]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", READERS)
def test_every_way_to_a_step_gives_it(name: str, way: Way, request: pytest.FixtureRequest) -> None:
    expected = by_update(name, *drawn())
    assert not np.array_equal(expected["a"], drawn()[0]["a"])
    if way in OVER_JAX:
        with request.getfixturevalue("precision")(True):
            found = {path: np.asarray(p) for path, p in way(name, *drawn()).items()}
    else:
        found = way(name, *drawn())
    for path, value in expected.items():
        np.testing.assert_allclose(np.asarray(found[path]), value, rtol=1e-9, err_msg=path)


@pytest.mark.parametrize("name", READERS)
def test_every_array_library(name: str, arrays: Any) -> None:
    expected = by_update(name, *drawn())
    model, gradients = drawn()
    opt = getattr(optim, name)(0.5)
    model = ox.tree.map(arrays.asarray, model)
    for g, loss in zip(gradients, LOSSES, strict=True):
        model = opt.update(model, ox.tree.map(arrays.asarray, g), loss=loss)
    for path, value in expected.items():
        np.testing.assert_allclose(host(model[path]), value, rtol=1e-9)


@pytest.mark.parametrize("name", READERS)
def test_a_step_without_it_changes_nothing(name: str) -> None:
    opt, (model, gradients) = getattr(optim, name)(0.5), drawn()
    for before in (0, 1):
        held = ox.tree.map(np.copy, model)
        with pytest.raises(TypeError, match="reads the loss, which the step was not given: expected loss="):
            opt.update(model, gradients[0])
        with pytest.raises(ox.ShapeError, match=r"the loss.* has shape \(1,\): expected a number"):
            opt.update(model, gradients[0], loss=np.ones(1))
        assert opt.step == before
        assert all(np.array_equal(model[path], value) for path, value in held.items())
        opt.update(model, gradients[0], loss=1.5)
    with pytest.raises(TypeError, match="reads the loss"):
        opt.apply(model, gradients[0], opt.init(model))


def test_rules_that_read_it_are_refused_where_there_is_not_one() -> None:
    opt, (model, gradients) = optim.MoMo(accumulate=2), drawn()
    with pytest.raises(ValueError, match="accumulate is 2: expected 1, since the rule .*momo.* reads the loss"):
        opt.update(model, gradients[0], loss=1.0)
    with pytest.raises(ValueError, match="accumulate is 2: expected 1"):
        opt.apply(model, gradients[0], opt.init(model), loss=1.0)
    for inner in (optim.MoMo(), optim.chain(optim.MoMoAdam(), optim.EMA()), optim.partition({"*": optim.PolyakSGD()})):
        with pytest.raises(TypeError, match="which reads the loss: workers have different ones"):
            distributed.LargeBatch(inner)


def test_optimizers_that_do_not_read_it_do_not_look_at_it() -> None:
    opt, (model, gradients) = optim.Adam(0.5), drawn()
    opt.update(model, gradients[0], loss=object())
    opt.apply(model, gradients[0], opt.init(model), loss=object())
    torch = pytest.importorskip("torch")
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    importlib.import_module("oxigrad.torch").Adam([p]).step(loss=object())


@pytest.mark.parametrize("name", READERS)
def test_derivatives_by_it(name: str) -> None:
    """A step size below its bound is proportional to the loss."""
    opt, (model, gradients) = getattr(optim, name)(50.0), drawn()
    if name == "PolyakSGD":
        opt.learning_rate = 1.0

    def moved(loss: Any) -> Any:
        params, state = opt.apply(model, gradients[0], opt.init(model), loss=loss)
        params, _ = opt.apply(params, gradients[1], state, loss=2 * loss)
        return xp.sum(params["a"] ** 2) + xp.sum(params["b"])

    assert ox.grad(moved)(0.7) != 0.0
    ox.testing.check_grads(moved, (0.7,), order=1)


def test_parts_of_chains_and_partitions_read_it_and_states_continue() -> None:
    def make() -> Any:
        chain = optim.chain(optim.ClipByGlobalNorm(1.0), optim.MoMo(0.5), optim.EMA(0.5))
        return optim.partition({"a": optim.MoMo(0.5), "b": optim.MoMo(0.1)}), chain

    for opt, again in zip(make(), make(), strict=True):
        model, gradients = drawn()
        for g, loss in zip(gradients[:2], LOSSES[:2], strict=True):
            opt.update(model, g, loss=loss)
        twin = ox.tree.map(np.copy, model)
        again.build(twin)
        again.load_state_dict(opt.state_dict())
        opt.update(model, gradients[2], loss=LOSSES[2])
        again.update(twin, gradients[2], loss=LOSSES[2])
        assert all(np.array_equal(model[path], twin[path]) for path in model)
