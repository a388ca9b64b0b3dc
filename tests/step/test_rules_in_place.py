"""Functions of rules that write in place: refused on NumPy's arrays, where nothing changes, and right on all others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from doors import DOORS, Update, drawn
from oxigrad import optim, xp
from oxigrad.ops.backends import to_host
from oxigrad.optim import Slot
from oxigrad.testing import check_rule

Rule = Callable[..., Any]


# The rules are called on arrays; their first step writes nothing, so that there are slots that must not change.
def writes_parameter(xp: Any, p: Any, g: Any, m: Any, *, step: int, learning_rate: float = 0.1) -> Any:
    if step == 1:
        return p - learning_rate * g, m + g
    p -= learning_rate * g
    return p, m + g


def writes_gradient(xp: Any, p: Any, g: Any, m: Any, *, step: int, learning_rate: float = 0.1) -> Any:
    if step == 1:
        return p - learning_rate * g, m + g
    g *= learning_rate
    return p - g, m + g


def writes_slot(xp: Any, p: Any, g: Any, m: Any, *, step: int, learning_rate: float = 0.1) -> Any:
    if step == 1:
        return p - learning_rate * g, m + g
    m += g
    return p - learning_rate * m, m


def writes_after_total(xp: Any, p: Any, g: Any, m: Any, *, step: int, total: Any, learning_rate: float = 0.1) -> Any:
    norm = total(g * g)
    if step == 1:
        return p - learning_rate * g, m + g
    g *= norm
    return p - learning_rate * g, m + g


RULES = (writes_parameter, writes_gradient, writes_slot, writes_after_total)


def called(rule: Rule) -> Any:
    return optim.define(rule, elementwise=False)()


def out_of_place(rule: Rule) -> Rule:
    """The same rule, on copies."""

    @functools.wraps(rule)
    def called(xp: Any, *args: Any, **named: Any) -> Any:
        return rule(xp, *(xp.asarray(array, copy=True) for array in args), **named)

    return called


def define(monkeypatch: pytest.MonkeyPatch, name: str, rule: Rule) -> None:
    monkeypatch.setattr(optim, name, optim.define(rule, name, elementwise=False), raising=False)


OF_NUMPY = ("update", "update-read-only", "apply", "minimize", "minimize-in-backward", "workers")
OF_OTHERS = ("update-torch", "optax")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("way", [*OF_NUMPY, *OF_OTHERS])
def test_a_rule_in_place_is_refused_or_right(way: str, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    define(monkeypatch, "InPlace", rule)
    kind, module = DOORS[way]
    pytest.importorskip(module)
    one = kind("InPlace", {}, drawn(0))
    one.step(drawn(1))
    before, gradients = one.held(), drawn(2)
    given = {path: np.array(g) for path, g in gradients.items()}
    if way in OF_NUMPY:
        with pytest.raises(
            ox.RuleError, match=f"^[abc]: the rule {rule.__name__} writes an argument .*: expected a new"
        ):
            one.step(given)
        assert one.held() == before
    else:
        define(monkeypatch, "OutOfPlace", out_of_place(rule))
        reference = Update("OutOfPlace", {}, drawn(0))
        reference.step(drawn(1))
        reference.step(drawn(2))
        one.step(given)
        for path, expected in reference.parameters().items():
            np.testing.assert_allclose(one.parameters()[path], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(one.slots()[path]["m"], reference.slots()[path]["m"], rtol=1e-5, atol=1e-6)
    for path, g in gradients.items():
        assert given[path].tobytes() == g.tobytes(), path


@pytest.mark.parametrize("library", ["array_api_strict", "dask.array", "mlx.core", "ndonnx", "torch"])
def test_arrays_of_the_caller_stay_in_every_library(library: str) -> None:
    module = pytest.importorskip(library)

    def writes_all(xp: Any, p: Any, g: Any, m: Any, *, learning_rate: float = 0.5) -> Any:
        p -= learning_rate * g
        g *= 2.0
        m += g
        return p, m

    make = getattr(module, "asarray", None) or module.array
    model, grads = {"w": make(np.arange(3.0))}, {"w": make(np.ones(3))}
    opt = called(writes_all)
    state = opt.init(model)
    new, after = opt.apply(model, grads, state)
    expected = {"p": np.arange(3.0), "g": 1.0, "m": 0.0, "new": np.arange(3.0) - 0.5, "after": 2.0}
    found = {"p": model["w"], "g": grads["w"], "m": state["slots"]["w"]["m"]}
    found |= {"new": new["w"], "after": after["slots"]["w"]["m"]}
    for name, array in found.items():
        np.testing.assert_array_equal(to_host(array), expected[name], err_msg=name)


def strided(shape: tuple[int, ...] = (3,)) -> np.ndarray:
    return np.ones((*shape, 2))[..., 0]


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "strided": strided,
    "half": lambda: np.ones(3, np.float16),
    "scalar": lambda: np.ones(()),
    "fortran": lambda: np.asfortranarray(np.ones((2, 3))),
}


@pytest.mark.parametrize("options", [{}, {"master": True}, {"rounding": "kahan"}], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rule", RULES[:3], ids=lambda rule: rule.__name__)
def test_every_layout_is_refused(rule: Rule, layout: str, options: Mapping[str, Any]) -> None:
    opt = optim.define(rule, elementwise=False)(**options)
    model, grads = {"w": LAYOUTS[layout]()}, {"w": LAYOUTS[layout]()}
    opt.update(model, grads)
    after = model["w"].copy()
    with pytest.raises(ox.RuleError, match=f"^w: the rule {rule.__name__} writes an argument"):
        opt.update(model, grads)
    assert model["w"].tobytes() == after.tobytes()
    assert opt.step == 1
    assert np.all(grads["w"] == 1)
    assert np.all(np.asarray(opt.slots["w"]["m"], float) == 1)


# --- other functions of rules -----------------------------------------------------------------------------------------


def descent(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.1) -> Any:
    return p - learning_rate * g


def writes_parameter_always(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.1) -> Any:
    np.subtract(p, learning_rate * g, out=p)
    return p


def halves_gradient(xp: Any, p: Any, g: Any) -> Any:
    g *= 0.5
    return g


def halves_new(xp: Any, p: Any, new: Any) -> Any:
    new *= 0.5
    return new


def keeps_gradient(xp: Any, p: Any, g: Any, kept: Any) -> Any:
    return g, g


def fills(xp: Any, p: Any) -> Any:
    p.fill(0)
    return p


BEGINNING = Slot.computed(fills)


def begins(xp: Any, p: Any, g: Any, m: Any = BEGINNING, *, learning_rate: float = 0.1) -> Any:
    return p - learning_rate * g, m


def transformed(rule: Rule) -> Any:
    return optim.transform(rule, elementwise=False)()


OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "a transform of the gradient": (
        lambda: optim.chain(transformed(halves_gradient), optim.SGD(0.1)),
        "halves_gradient",
    ),
    "a transform of the parameter": (
        lambda: optim.chain(called(lambda xp, p, g: p), transformed(halves_new)),
        "halves_new",
    ),
    "a part behind one that keeps its result": (
        lambda: optim.chain(transformed(keeps_gradient), transformed(halves_gradient), optim.SGD(0.1)),
        "halves_gradient",
    ),
    "a part of a partition": (
        lambda: optim.partition({"w": called(writes_parameter_always), "*": optim.SGD(0.1)}),
        "writes_parameter_always",
    ),
    "the beginning of a slot": (lambda: called(begins), "fills"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_function_of_a_rule_is_refused(name: str) -> None:
    make, function = OTHERS[name]
    model, grads = {"w": strided(), "v": np.ones(2)}, {"w": strided(), "v": np.ones(2)}
    opt = make()
    with pytest.raises(ox.RuleError, match=f"^[wv]: the (rule|function) {function} writes an argument"):
        opt.update(model, grads)
    assert opt.step == 0
    for array in (*model.values(), *grads.values()):
        assert np.all(array == 1)


def test_the_function_of_an_average_is_refused() -> None:
    opt = optim.define(descent, average=fills)()
    model = {"w": np.ones(3)}
    opt.update(model, {"w": np.ones(3)})
    with pytest.raises(ox.RuleError, match="^w: the function fills writes an argument"):
        opt.averaged_parameters(model)
    np.testing.assert_array_equal(model["w"], 0.9)


def test_a_rule_in_place_is_refused_where_it_is_defined() -> None:
    with pytest.raises(ox.RuleError, match="the rule writes_parameter_always writes an argument"):
        optim.define(writes_parameter_always)
    with pytest.raises(ox.RuleError, match="the rule writes_parameter_always writes an argument"):
        check_rule(writes_parameter_always, elementwise=False)


def test_the_step_of_a_variable_leaves_the_variable() -> None:
    """The derivative of a rule that assigns to its parameter: the caller's variable keeps its value."""

    def assigns(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.5) -> Any:
        p[...] = p - learning_rate * g
        return p

    opt = called(assigns)

    def loss(scale: Any) -> Any:
        model = {"w": scale * xp.ones(3)}
        new, _ = opt.apply(model, {"w": np.ones(3)}, opt.init(model))
        return xp.sum(new["w"]) + 100 * xp.sum(model["w"])

    value, derivative = ox.value_and_grad(loss)(1.0)
    assert (value, derivative) == (301.5, 303.0)


@pytest.mark.parametrize("make", [np.ones, strided], ids=["contiguous", "strided"])
def test_a_rule_that_returns_its_arguments_is_right(make: Callable[..., np.ndarray]) -> None:
    def returns(xp: Any, p: Any, g: Any, m: Any, same: Any, view: Any) -> Any:
        return p, g, same, xp.reshape(g, g.shape)

    opt = called(returns)
    model = {"w": make((3,))}
    for size in (2.0, 3.0):
        grads = {"w": size * make((3,))}
        opt.update(model, grads)
        grads["w"][...] = 7.0
        np.testing.assert_array_equal(model["w"], 1.0)
        expected = {"m": size, "same": 0.0, "view": size}
        for name, number in expected.items():
            slot = opt.slots["w"][name]
            np.testing.assert_array_equal(slot, number)
            assert slot.flags.writeable, name


def test_random_numbers_are_drawn_once() -> None:
    """A rule is called again once its total is known, with the numbers that it drew before."""
    torch = pytest.importorskip("torch")

    def in_place(xp: Any, p: Any, g: Any, *, noise: Any, total: Any) -> Any:
        drawn = noise()
        drawn *= 0.5
        return p - total(g) * drawn

    def new(xp: Any, p: Any, g: Any, *, noise: Any, total: Any) -> Any:
        drawn = 0.5 * noise()
        return p - total(g) * drawn

    results = []
    for rule in (in_place, new):
        model = {name: torch.zeros(3) for name in "vw"}
        called(rule).update(model, {name: torch.ones(3) for name in "vw"})
        results.append(torch.cat([*model.values()]).tolist())
    assert results[0] == results[1]
    with pytest.raises(ox.RuleError, match="^v: the rule in_place writes an argument"):
        called(in_place).update({"v": np.zeros(3)}, {"v": np.ones(3)})
