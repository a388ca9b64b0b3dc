"""A parameter of another shape than at the first step: an error before anything is changed, whatever calls the rule."""

import importlib
import math
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from optimizers import OPTIMIZERS as TABLE_OF_ELEMENTWISE
from optimizers import WHOLE
from oxigrad import optim, xp

SHAPES = [((2, 2), (3, 3)), ((2, 3), (3, 2)), ((4,), (2, 2)), ((3,), (1,))]
OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda: optim.SGD(0.1),
    "Adam": lambda: optim.Adam(0.1),
    "RMSprop": lambda: optim.RMSprop(0.1),
    "ScheduleFreeAdamW": lambda: optim.ScheduleFreeAdamW(0.1),
    "Adafactor": lambda: optim.Adafactor(0.1),
    "SM3": lambda: optim.SM3(0.1),
    "Shampoo": lambda: optim.Shampoo(0.1),
    "SOAP": lambda: optim.SOAP(0.1),
    "LBFGS": lambda: optim.LBFGS(),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.1), optim.EMA(0.9)),
    "SAM": lambda: optim.SAM(optim.Adam(0.1)),
}


@pytest.mark.parametrize("library", ["numpy", "jax.numpy", "torch"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_another_shape(name: str, library: str, first: Any, second: Any) -> None:
    ones = pytest.importorskip(library).ones
    opt, loss = OPTIMIZERS[name](), lambda m: xp.sum(m["w"] ** 2)
    opt.minimize(loss, {"w": ones(first)})
    model, before = {"w": ones(second)}, opt.state_dict()
    with pytest.raises(ox.ShapeError, match=r"^w: the parameter has shape "):
        opt.minimize(loss, model)
    assert opt.step == 1
    np.testing.assert_array_equal(np.asarray(model["w"]), np.ones(second))
    after = opt.state_dict()
    assert before["slots"].keys() == after["slots"].keys()
    opt.rebuild(model)
    opt.minimize(loss, model)
    assert opt.step == 2


# Of equal sizes: packed slots have one length for both.
RESHAPED: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((4, 2), (2, 4)),
    ((2, 3, 4), (2, 4, 3)),
    ((4, 2), (8,)),
    ((8,), (2, 4)),
    ((4, 2), (4, 2, 1)),
    ((6, 1), (1, 6)),
    ((1,), ()),
]
EVERY: dict[str, Any] = {**TABLE_OF_ELEMENTWISE, **WHOLE, "Muon": lambda: optim.Muon(0.1)}


def trained(name: str, shape: tuple[int, ...]) -> Any:
    """An optimizer after a step of a parameter of this shape."""
    opt = EVERY[name]()
    opt.minimize(lambda m: xp.sum((m["w"] - 0.5) ** 2), {"w": np.linspace(-1.0, 1.0, math.prod(shape)).reshape(shape)})
    return opt


def pairs_for(name: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs of shapes that an optimizer takes, where it has a slot other than numbers."""
    pairs = [pair for pair in RESHAPED if name != "Muon" or {*map(len, pair)} == {2}]
    return [pair for pair in pairs if any(slot.shape for slot in trained(name, (4, 2)).slots["w"].values())]


@pytest.mark.parametrize("name", EVERY)
def test_a_state_of_another_shape_is_refused(name: str) -> None:
    for first, second in pairs_for(name):
        before, model = trained(name, first), {"w": np.ones(second)}
        state = before.state_dict()
        built, waiting = EVERY[name](), EVERY[name]()
        built.build(model)
        own = built.state_dict()
        with pytest.raises(ox.StateError, match=r"\bw: slot |\bmissing: w|w: slot"):
            built.load_state_dict(state)
        waiting.load_state_dict(state)
        with pytest.raises(ox.StateError, match=r"\bw: slot "):
            waiting.build(model)
        assert built.load_state_dict(state, strict=False)
        for slot, array in built.slots["w"].items():
            np.testing.assert_array_equal(np.asarray(array), np.asarray(own["slots"]["w"][slot]))
        np.testing.assert_array_equal(model["w"], np.ones(second))
        assert before.rebuild(model).reset == ["w"]


@pytest.mark.parametrize("name", EVERY)
def test_apply_refuses_a_state_of_another_shape(name: str) -> None:
    if EVERY[name]()._rule.supplied & {"loss"}:
        pytest.skip("it reads the loss")
    for first, second in pairs_for(name):
        opt = EVERY[name]()
        state, model = opt.init({"w": np.ones(first)}), {"w": np.ones(second)}
        with pytest.raises((ox.StateError, ox.ShapeError), match="^w: "):
            opt.apply(model, {"w": np.ones(second)}, state)


def test_torch_refuses_a_state_of_another_shape() -> None:
    torch = pytest.importorskip("torch")
    doors = importlib.import_module("oxigrad.torch")
    classes = [each for name in doors.__all__ if isinstance(each := getattr(doors, name), type)]
    refused = 0
    for cls in (each for each in classes if issubclass(each, torch.optim.Optimizer)):
        for first, second in RESHAPED:
            state = state_of_torch(torch, cls, first)
            if not any(
                isinstance(value, dict) or getattr(value, "ndim", 0) for value in state["state"].get(0, {}).values()
            ):
                continue
            p = torch.nn.Parameter(torch.ones(second))
            try:
                opt = cls([p], lr=0.1)
            except ValueError:  # Muon takes matrices
                continue
            with pytest.raises(ox.StateError, match=r"^state\[0\]"):
                opt.load_state_dict(state)
            assert not opt.state
            refused += 1
    assert refused > 200


def state_of_torch(torch: Any, cls: Any, shape: tuple[int, ...]) -> Any:
    """The state of an optimizer of tensors after a step; an empty one where it takes no step of this kind."""
    p = torch.nn.Parameter(torch.ones(shape))
    p.grad = torch.ones(shape)
    try:
        opt = cls([p], lr=0.1)
        opt.step()
    except (RuntimeError, TypeError, ValueError, ox.ShapeError):  # without a loss, or sparse gradients, or a matrix
        return {"state": {}}
    return opt.state_dict()


def test_optax_refuses_a_state_of_another_shape() -> None:
    jnp = pytest.importorskip("jax.numpy")
    transformation = importlib.import_module("oxigrad.optax").transformation
    for name in ("Shampoo", "SOAP", "Adafactor", "SM3", "SGD", "Adam"):
        tx = transformation(OPTIMIZERS[name]() if name != "SGD" else optim.SGD(0.1, momentum=0.9))
        for first, second in RESHAPED:
            state, params = tx.init({"w": jnp.ones(first)}), {"w": jnp.ones(second)}
            with pytest.raises(ox.StateError, match="^w: "):
                tx.update(params, state, params)
