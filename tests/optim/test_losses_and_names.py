"""Losses that train nothing, Python floats in models, and names that nothing has: a word about each."""

from __future__ import annotations

import functools
import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import extend, optim, schedules, xp


def test_a_loss_that_depends_on_no_parameter() -> None:
    constants: list[Any] = [
        lambda m: 3.0,
        lambda m: 3,
        lambda m: np.float64(2.0),
        lambda m: xp.sum(np.ones(3)),
        lambda m: float(np.sum(ox.stop_gradient(m["w"]))),
        lambda m: ox.stop_gradient(xp.sum(m["w"])),
    ]
    for make in (
        optim.AdamW,
        lambda: optim.AdamW(loss_scale=optim.LossScale(8.0)),
        lambda: optim.SAM(optim.SGD()),
        optim.LBFGS,
    ):
        for loss in constants:
            opt, model = make(), {"w": np.ones(2)}
            with pytest.raises(ox.DerivativeError, match="the loss depends on no parameter"):
                opt.minimize(loss, model)
            assert opt.step == 0
            np.testing.assert_array_equal(model["w"], np.ones(2))
    opt.minimize(lambda m: xp.sum(m["w"] ** 2), model)


def test_python_floats_are_no_parameters() -> None:
    """The first step warns of floats that the loss depends on, by key path, and leaves them as they are."""

    def loss(m: Any) -> Any:
        return xp.sum(m["layer"]["w"] * m["layer"]["scale"]) + m["shift"] ** 2 + 0.0 * m["size"]

    def model() -> dict[str, Any]:
        return {"layer": {"w": np.ones(2), "scale": 2.0}, "shift": 1.0, "unused": 5.0, "size": 3, "name": "layer"}

    def update(opt: Any, model: Any) -> None:
        opt.update(model, ox.grad(loss)(model))

    def minimize(opt: Any, model: Any, **options: Any) -> None:
        opt.minimize(loss, model, **options)

    steps = [minimize, functools.partial(minimize, record=True), functools.partial(minimize, in_backward=True), update]
    for make in (
        lambda: optim.SGD(0.1),
        lambda: optim.chain(optim.ClipByValue(5.0), optim.SGD(0.1)),
        lambda: optim.partition({"*": optim.SGD(0.1)}),
        lambda: optim.SAM(optim.SGD(0.1), rho=0.0),
        lambda: optim.LBFGS(0.4, max_iterations=1, line_search=None),
    ):
        for step in steps[:2] if isinstance(make(), (optim.LBFGS, optim.SAM)) else steps:
            opt, trained = make(), model()
            with pytest.warns(UserWarning, match=r"^layer\.scale, shift: the gradient is of Python floats") as told:
                step(opt, trained)
            assert {each.filename for each in told} == {__file__}
            assert {**trained, "layer": None} == {**model(), "layer": None}
            assert trained["layer"]["scale"] == 2.0
            np.testing.assert_allclose(trained["layer"]["w"], 0.8)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                step(opt, trained)
                arrays = {**model(), "layer": {"w": np.ones(2), "scale": np.array(2.0)}, "shift": np.array(1.0)}
                step(make(), arrays)
            assert float(arrays["shift"]) != 1.0
            constant = model()
            make().minimize(lambda m: xp.sum(m["layer"]["w"] * ox.stop_gradient(m["layer"]["scale"])), constant)
            np.testing.assert_allclose(constant["layer"]["w"], 0.8)


# Leaves that are no parameters, with gradients that no step can take.
REFUSED = {
    "a float with an array": (1.0, np.array(0.5)),
    "a float with a vector": (1.0, np.zeros(2)),
    "a whole number": (3, 0.5),
    "a flag": (True, 0.5),
    "a complex number": (1j, 0.5j),
    "a text": ("text", np.ones(2)),
    "whole numbers": (np.arange(2), np.ones(2)),
    "objects": (np.array([1, 2], object), np.ones(2)),
    "nothing": (None, 0.5),
    "nothing, with an array": (None, np.ones(2)),
    "nothing, with a text": (None, "text"),
}
# Gradients that move nothing: zeros, None, and the leaf itself, as `grad` returns it.
TAKEN = {
    "no gradient": (1.0, None),
    "zero": (1.0, 0.0),
    "an array that is zero": (1.0, np.array(0.0)),
    "a whole number itself": (3, 3),
    "a flag itself": (True, True),
    "a text itself": ("text", "text"),
    "whole numbers themselves": (np.arange(2), np.arange(2)),
    "a function": (len, len),
}


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", [*REFUSED, *TAKEN])
def test_gradients_of_leaves_that_are_no_parameters(name: str, pure: bool) -> None:
    leaf, gradient = (REFUSED | TAKEN)[name]
    opt, model, grads = optim.SGD(0.5), {"w": np.ones(2), "b": leaf}, {"w": np.ones(2), "b": gradient}
    wanted = np.full(2, 0.5)

    def step(grads: Any) -> Any:
        return opt.apply(model, grads, opt.init(model))[0] if pure else opt.update(model, grads)

    if name in TAKEN:
        for grads_of_step in (grads, {**grads, "b": gradient}):
            moved = step(grads_of_step)
        np.testing.assert_array_equal(moved["w"], wanted if pure else wanted - 0.5)
        assert np.array_equal(moved["b"], leaf)
        return
    for before in (False, True):  # at the first step, and in a resolved one
        if before:
            step({"w": np.zeros(2), "b": None})
        with pytest.raises(ox.StructureError, match=r"^b(\.0)?: there is a gradient, but"):
            step(grads)
        np.testing.assert_array_equal(model["w"], 1.0)


def test_a_float_that_becomes_an_array_is_a_new_parameter() -> None:
    opt, model = optim.SGD(0.5), {"w": np.ones(2), "b": 1.0}
    opt.update(model, {"w": np.ones(2), "b": 0.0})
    model["b"] = np.array(1.0)
    with pytest.raises(ox.StructureError, match="^b: the parameter is new"):
        opt.update(model, {"w": np.ones(2), "b": np.array(1.0)})
    opt.rebuild(model)
    assert float(opt.update(model, {"w": np.ones(2), "b": np.array(1.0)})["b"]) == 0.5


def test_calling_the_number_of_steps() -> None:
    opt = optim.Adam()
    opt.update({"w": np.ones(1)}, {"w": np.ones(1)})
    with pytest.raises(TypeError, match=r"step is the number of steps taken, 1: expected opt.update\(model, grads\)"):
        opt.step()
    assert opt.step == 1
    assert isinstance(opt.step, int)
    assert repr(opt.step) == "1"


def test_names_in_another_spelling() -> None:
    rows = {
        optim: {"adam": "Adam", "sgd": "SGD", "rms_prop": "RMSprop", "ClipByNrm": "ClipByNorm"},
        schedules: {"Cosine": "cosine"},
    }
    for module, names in rows.items():
        for name, meant in names.items():
            with pytest.raises(AttributeError, match=f"has no attribute '{name}' \\(did you mean {meant}\\?\\)"):
                getattr(module, name)
        with pytest.raises(AttributeError, match="has no attribute 'zzzzzz'$"):
            module.zzzzzz  # noqa: B018
        assert not hasattr(module, "__wrapped__")


def test_names_of_torch(library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    p = [torch.nn.Parameter(torch.ones(2))]
    with pytest.raises(AttributeError, match="did you mean AdamW"):
        own.adamw  # noqa: B018
    for name in own.__all__:
        make = getattr(own, name)
        is_optimizer = isinstance(make, type) and issubclass(make, torch.optim.Optimizer)
        if not is_optimizer or name == "LBFGS":
            continue
        shaped = [torch.nn.Parameter(torch.ones(2, 2))]
        with pytest.raises(TypeError, match=rf"{name}: unknown: learning_rate \(did you mean lr\?\)"):
            make(shaped, learning_rate=0.1)
        for schedule in (schedules.linear(0.1, 0.0, 5), lambda step: 0.1):
            for call in (
                ((shaped,), {"lr": schedule}),
                ((shaped, schedule), {}),
                (([{"params": shaped, "lr": schedule}],), {}),
            ):
                with pytest.raises(TypeError, match="lr is .*: expected a number, which a scheduler may change"):
                    make(*call[0], **call[1])
        with pytest.raises(TypeError, match=r"unknown: learning_rate \(did you mean lr\?\)"):
            make([{"params": shaped, "learning_rate": 0.1}])
    for make, wrong, meant in (
        (own.Adam, "beta1", r"betas\[0\]"),
        (own.RMSprop, "rho", "alpha"),
        (own.Lion, "weigth_decay", "weight_decay"),
    ):
        with pytest.raises(TypeError, match=rf"unknown: {wrong} \(did you mean {meant}\?\)"):
            make(p, **{wrong: 0.1})
    assert own.Adam([{"params": p, "name": "all", "note": print}], lr=0.1).param_groups[0]["name"] == "all"


def test_names_of_optax(library: Any) -> None:
    library("jax"), library("optax")
    own = importlib.import_module("oxigrad.optax")
    with pytest.raises(AttributeError, match="did you mean adamw"):
        own.AdamW  # noqa: B018
    for name in own.__all__:
        if name in ("State", "Transformation", "flat", "transformation", "polyak_sgd"):
            continue
        for wrong in ("lr", "learning_rte"):
            with pytest.raises(TypeError, match=rf"{name}: unknown: {wrong} \(did you mean learning_rate\?\)"):
                getattr(own, name)(**{wrong: 0.1})
    for made, wrong, meant in (
        (own.adam, "beta1", "b1"),
        (own.adam, "epsilon", "eps"),
        (own.rmsprop, "rho", "decay"),
        (own.polyak_sgd, "fmin", "f_min"),
    ):
        with pytest.raises(TypeError, match=rf"unknown: {wrong} \(did you mean {meant}\?\)"):
            made(**{wrong: 0.1})


def test_a_class_cannot_take_the_name_of_one_of_the_package() -> None:
    def lion(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.1) -> Any:
        return p + learning_rate * g

    with pytest.raises(ValueError, match=r"^the class Lion has the name of one of oxigrad\.optim: expected another"):
        optim.define(lion)
    with pytest.raises(ValueError, match="^the class EMA has the name of one of"):
        optim.transform(lion, "EMA")
    with pytest.raises(ValueError, match="^the class SAM has the name of one of"):
        type("SAM", (extend.WrappingOptimizer,), {})
    with pytest.raises(ValueError, match=r"^the class cosine has the name of one of oxigrad\.schedules"):
        type("cosine", (schedules.Schedule,), {})
    kept = pickle.loads(pickle.dumps(optim.chain(optim.Lion(0.1), optim.EMA(0.9))))  # noqa: S301
    assert kept.get_config() == optim.chain(optim.Lion(0.1), optim.EMA(0.9)).get_config()
    assert type(pickle.loads(pickle.dumps(optim.Lion(0.1)))) is optim.Lion  # noqa: S301
