"""L-BFGS: each iterate compared with torch.optim.LBFGS, the solution with SciPy."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, schedules, xp
from oxigrad.optim.closures.line_search import Point, strong_wolfe


def rosenbrock(x: Any) -> Any:
    return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


START = np.array([-1.2, 1.0, 0.5, -0.7, 1.3])


def quadratic(seed: int = 0, n: int = 12) -> tuple[Any, Any]:
    """A matrix with eigenvalues from 1 to 100, and a vector."""
    generator = np.random.default_rng(seed)
    q, _ = np.linalg.qr(generator.standard_normal((n, n)))
    return (q * np.geomspace(1, 100, n)) @ q.T, generator.standard_normal(n)


# --- against torch -------------------------------------------------------------------------------------------------------

OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"line_search_fn": "strong_wolfe", "history_size": 10}),
    ({"history": 3, "max_iterations": 4}, {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 4}),
    (
        {"learning_rate": 0.3, "max_iterations": 7, "max_evaluations": 8},
        {"lr": 0.3, "line_search_fn": "strong_wolfe", "max_iter": 7, "max_eval": 8, "history_size": 10},
    ),
    ({"line_search": None, "learning_rate": 1e-3, "history": 5}, {"lr": 1e-3, "history_size": 5}),
    (
        {"line_search": None, "learning_rate": 5e-3, "max_iterations": 1, "tolerance_gradient": 1e-3},
        {"lr": 5e-3, "max_iter": 1, "tolerance_grad": 1e-3, "history_size": 10},
    ),
]


@pytest.mark.parametrize(("options", "theirs"), OPTIONS)
@pytest.mark.parametrize("problem", ["rosenbrock", "quadratic"])
def test_the_iterates_of_torch(options: dict[str, Any], theirs: dict[str, Any], problem: str, library: Any) -> None:
    torch = library("torch")
    matrix, vector = quadratic()
    losses = {
        "rosenbrock": (
            lambda m: rosenbrock(m["x"]),
            lambda x: torch.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
            START,
        ),
        "quadratic": (
            lambda m: 0.5 * m["x"] @ (matrix @ m["x"]) - vector @ m["x"],
            lambda x: 0.5 * x @ (torch.tensor(matrix) @ x) - torch.tensor(vector) @ x,
            np.zeros(12),
        ),
    }
    ours, other, start = losses[problem]
    x = torch.tensor(start, requires_grad=True)
    reference = torch.optim.LBFGS([x], **theirs)

    def closure() -> Any:
        reference.zero_grad()
        loss = other(x)
        loss.backward()
        return loss.detach()

    opt, model = optim.LBFGS(**options), {"x": start.copy()}
    for _ in range(5):
        value = opt.minimize(ours, model)
        np.testing.assert_allclose(float(value), float(reference.step(closure)), rtol=1e-6, atol=1e-12)
        theirs_now = x.detach().numpy()
        np.testing.assert_allclose(model["x"], theirs_now, rtol=0, atol=1e-6 * np.max(np.abs(theirs_now)))
    assert opt.step == 5


def test_vectors_are_over_all_parameters() -> None:
    matrix, vector = quadratic(1)
    one, several = {"x": np.zeros(12)}, {"a": np.zeros((2, 3)), "b": [np.zeros(5), np.array(0.0)]}
    whole, parts = optim.LBFGS(max_iterations=3), optim.LBFGS(max_iterations=3)

    def loss(x: Any) -> Any:
        return 0.5 * x @ (matrix @ x) - vector @ x

    def joined(m: Any, xp: Any = xp) -> Any:
        return xp.concat([xp.reshape(m["a"], (6,)), m["b"][0], xp.reshape(m["b"][1], (1,))])

    for _ in range(5):
        value = parts.minimize(lambda m: loss(joined(m)), several)
        np.testing.assert_allclose(value, whole.minimize(lambda m: loss(m["x"]), one))
        np.testing.assert_allclose(joined(several, np), one["x"], rtol=1e-6)


# --- against SciPy -------------------------------------------------------------------------------------------------------


def test_the_optimum_of_scipy(library: Any) -> None:
    optimize = library("scipy.optimize")
    matrix, vector = quadratic(2)
    problems = [
        (rosenbrock, START),
        (lambda x: 0.5 * x @ (matrix @ x) - vector @ x + xp.sum(xp.log(1 + x * x)), np.ones(12)),
    ]
    for loss, start in problems:
        found = optimize.minimize(ox.value_and_grad(loss), start, jac=True, method="BFGS", tol=1e-9)
        model = {"x": start.copy()}
        opt = optim.LBFGS(max_iterations=200, tolerance_gradient=1e-9, tolerance_change=0.0)
        opt.minimize(lambda m, loss=loss: loss(m["x"]), model)
        np.testing.assert_allclose(model["x"], found.x, rtol=1e-6, atol=1e-7)


# --- the line search -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda t: (t - 2) ** 2, lambda t: 2 * (t - 2)),
        (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
        (lambda t: math.cos(t) - t, lambda t: -math.sin(t) - 1 + (t > 20) * 40),
        (lambda t: -math.log(t + 1) + t / 9 if t < 20 else math.inf, lambda t: -1 / (t + 1) + 1 / 9),
    ],
)
def test_steps_satisfy_the_strong_wolfe_conditions(f: Any, slope: Any, length: float) -> None:
    evaluated = []

    def evaluate(t: float) -> Point:
        evaluated.append(t)
        return Point(t, f(t), slope(t), None)

    start = evaluate(0.0)
    found = strong_wolfe(evaluate, start, length, evaluations=40, width=1e-12)
    assert found.length in evaluated and len(evaluated) <= 42
    assert found.value <= start.value + 1e-4 * found.length * start.slope
    if f(5.0) != math.cos(5.0) - 5.0:  # the third has no such step: it falls for ever
        assert abs(found.slope) <= 0.9 * abs(start.slope)


def test_a_loss_that_overflows_is_a_step_too_long(asarray: Any) -> None:
    def loss(m: Any) -> Any:
        return xp.sum(xp.exp(m["x"] * m["x"])) + xp.sum(m["x"])

    with np.errstate(over="ignore", invalid="ignore"):
        model = {"x": asarray(np.array([2.0, -1.8]))}
        opt = optim.LBFGS(learning_rate=1e9, max_iterations=100, max_evaluations=1000)
        for _ in range(5):
            opt.minimize(loss, model)
    x = host(model["x"])
    np.testing.assert_allclose(2 * x * np.exp(x * x) + 1, 0, atol=1e-6)


# --- models, and failures that change nothing ----------------------------------------------------------------------------


class Layer(NamedTuple):
    weight: Any
    bias: Any


@dataclasses.dataclass
class Net:
    layers: list[Layer]
    scale: Any
    name: str = "net"


def net(asarray: Any) -> Net:
    generator = np.random.default_rng(0)
    draw = lambda *shape: asarray(generator.standard_normal(shape))  # noqa: E731
    return Net([Layer(draw(3, 4), draw(4)), Layer(draw(4, 1), draw(1))], asarray(np.array(0.7)))


def fitting(asarray: Any) -> Any:
    generator = np.random.default_rng(1)
    x, y = asarray(generator.standard_normal((20, 3))), asarray(generator.standard_normal((20, 1)))

    def loss(net: Net) -> Any:
        first, second = net.layers
        found = xp.tanh(xp.matmul(x, first.weight) + first.bias) @ second.weight + second.bias
        return xp.mean((net.scale * found - y) ** 2)

    return loss


@pytest.mark.parametrize("line_search", ["strong_wolfe", None])
def test_any_array_library_gives_the_same_numbers(line_search: str | None, asarray: Any) -> None:
    def run(asarray: Any) -> tuple[Net, list[float], Any]:
        model, loss = net(asarray), fitting(asarray)
        opt = optim.LBFGS(0.5, max_iterations=6, line_search=line_search)
        return model, [float(host(opt.minimize(loss, model))) for _ in range(3)], opt

    expected, values, reference = run(np.array)
    found, other, opt = run(asarray)
    np.testing.assert_allclose(other, values, rtol=1e-9)
    for (path, array), (_, value) in zip(
        ox.tree.parameters(found).items(), ox.tree.parameters(expected).items(), strict=True
    ):
        assert type(array) is type(path(net(asarray)))
        np.testing.assert_allclose(host(array), value, rtol=1e-6, atol=1e-9)
    for path, own in reference.slots.items():
        assert {name: tuple(slot.shape) for name, slot in opt.slots[path].items()} == {
            name: slot.shape for name, slot in own.items()
        }


def test_writable_arrays_are_written_in_place() -> None:
    model = net(np.array)
    arrays = ox.tree.leaves(model)
    optim.LBFGS().minimize(fitting(np.array), model)
    assert all(a is b for a, b in zip(ox.tree.leaves(model), arrays, strict=True))


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_loss_that_raises_changes_nothing(at: int, asarray: Any) -> None:
    model, loss, calls = net(asarray), fitting(asarray), 0
    opt = optim.LBFGS(max_iterations=3)
    opt.minimize(loss, model)
    before = [host(leaf).copy() for leaf in ox.tree.leaves(model) if not isinstance(leaf, str)]
    slots = {path: {name: host(s).copy() for name, s in own.items()} for path, own in opt.slots.items()}

    def failing(model: Net) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise RuntimeError("no loss")
        return loss(model)

    with pytest.raises(RuntimeError, match="no loss"):
        opt.minimize(failing, model)
    after = [host(leaf) for leaf in ox.tree.leaves(model) if not isinstance(leaf, str)]
    for x, y in zip(after, before, strict=True):
        np.testing.assert_array_equal(x, y)
    for path, own in slots.items():
        for name, slot in own.items():
            np.testing.assert_array_equal(host(opt.slots[path][name]), slot)
    assert opt.step == 1
    opt.minimize(loss, model)
    assert opt.step == 2


def test_an_immutable_root_is_refused_before_the_loss_is_called(library: Any) -> None:
    numpy = library("jax.numpy")
    with pytest.raises(ox.StructureError, match="no container on its path can be changed"):
        optim.LBFGS().minimize(lambda m: pytest.fail("called"), (numpy.ones(2),))


def test_shared_arrays_are_one_parameter() -> None:
    w = np.array([2.0, -1.0])
    tied, single = {"a": w, "b": w}, {"w": w.copy()}
    optim.LBFGS(max_iterations=5).minimize(lambda m: xp.sum(m["a"] ** 4 + (m["b"] - 1) ** 2), tied)
    optim.LBFGS(max_iterations=5).minimize(lambda m: xp.sum(m["w"] ** 4 + (m["w"] - 1) ** 2), single)
    assert tied["a"] is tied["b"]
    np.testing.assert_allclose(tied["a"], single["w"], rtol=1e-12)


def test_frozen_parameters_and_other_dtypes_stay() -> None:
    model = {"x": np.ones(2), "frozen": np.ones(2), "single": np.ones(2, np.float32)}
    loss = lambda m: xp.sum((m["x"] - m["frozen"] + 2 * m["single"]) ** 2)  # noqa: E731
    opt = optim.LBFGS(groups={"frozen": None}, dtype="float64")
    opt.minimize(loss, model)
    np.testing.assert_allclose(model["x"], -1.0)
    np.testing.assert_array_equal(model["frozen"], 1.0)
    np.testing.assert_array_equal(model["single"], 1.0)
    assert list(opt.slots) == ["x"]
    both = optim.LBFGS()
    both.minimize(loss, model)
    assert model["single"].dtype == both.slots["single"]["steps"].dtype == np.float32


# --- options -------------------------------------------------------------------------------------------------------------


def test_configuration_round_trips() -> None:
    opt = optim.LBFGS(schedules.linear(1.0, 0.5, 10), max_evaluations=7, line_search=None, groups={"b": None})
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert again.get_config() == opt.get_config()
    assert repr(again) == repr(opt)


def test_slots_are_the_last_steps_and_changes() -> None:
    model = {"x": START.copy()}
    opt = optim.LBFGS(history=3, max_iterations=2)
    for _ in range(4):
        opt.minimize(lambda m: rosenbrock(m["x"]), model)
    own = opt.slots["x"]
    assert own["steps"].shape == own["changes"].shape == (3, 5)
    assert np.all(np.sum(own["steps"] * own["changes"], axis=1) > 0)
    gradient = ox.grad(rosenbrock)
    np.testing.assert_allclose(gradient(model["x"] - own["move"]), own["gradient"], rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.LBFGS(accumulate=2), ValueError, "LBFGS: accumulate"),
        (
            lambda: optim.LBFGS(line_search="backtracking").minimize(sum, {"x": np.ones(1)}),
            ValueError,
            "line_search is",
        ),
        (lambda: optim.LBFGS().update({"x": np.ones(1)}, {"x": np.ones(1)}), ox.RuleError, "call minimize"),
        (
            lambda: optim.LBFGS(groups={"a": {"history": 3}}).minimize(sum, {"a": np.ones(1), "b": np.ones(1)}),
            ValueError,
            "found groups with hyperparameters",
        ),
    ],
)
def test_unsupported_uses_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("policy", ["propagate", "skip", "raise"])
def test_gradients_that_are_not_finite(policy: str) -> None:
    model, opt = {"x": np.ones(2), "y": np.ones(2)}, optim.LBFGS(nonfinite=policy)
    loss = lambda m: xp.sum(m["x"] ** 2) + xp.sum(m["y"] * np.nan)  # noqa: E731
    if policy == "raise":
        with pytest.raises(ox.NonFiniteError, match="^y: the gradient has infinities or NaN"):
            opt.minimize(loss, model)
    else:
        opt.minimize(loss, model)
    if policy == "propagate":
        assert np.isnan(model["y"]).all() and opt.step == 1
    else:
        np.testing.assert_array_equal(model["x"], 1.0)
        assert (opt.step, opt.skipped) == (0, int(policy == "skip"))


def test_at_a_minimum_nothing_moves() -> None:
    model, opt = {"x": np.zeros(3)}, optim.LBFGS()
    assert opt.minimize(lambda m: xp.sum(m["x"] ** 2), model) == 0.0
    np.testing.assert_array_equal(model["x"], 0.0)
