"""Conversion of states from and to PyTorch's optimizers, which then continue with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("oxigrad.torch")


# Ours, theirs, and whether they count steps.
PAIRS: dict[str, tuple[Any, Any, bool]] = {
    "adam": (lambda: optim.Adam(0.1), lambda p: torch.optim.Adam(p, 0.1), True),
    "adamw": (lambda: optim.AdamW(0.1, weight_decay=0.3), lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3), True),
    "amsgrad": (lambda: optim.Adam(0.1, amsgrad="raw"), lambda p: torch.optim.Adam(p, 0.1, amsgrad=True), True),
    "momentum": (lambda: optim.SGD(0.1, 0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9), False),
    "damped": (
        lambda: optim.SGD(0.1, 0.9, dampening=0.5, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, dampening=0.5, weight_decay=0.1),
        False,
    ),
    "sgd": (lambda: optim.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1), False),
}
SHAPES = {"0.weight": (3, 4), "0.bias": (3,), "1": ()}


class Problem:
    """One model and its gradients, as PyTorch's parameters and as a tree of ours that shares no memory with them."""

    def __init__(self, dtype: Any) -> None:
        generator = np.random.default_rng(0)
        self.dtype = dtype
        self.start = {name: np.asarray(generator.standard_normal(shape), dtype) for name, shape in SHAPES.items()}
        self.gradients = [
            {name: np.asarray(generator.standard_normal(shape), dtype) for name, shape in SHAPES.items()}
            for _ in range(8)
        ]

    def parameters(self, values: Any) -> dict[str, Any]:
        return {name: torch.nn.Parameter(torch.tensor(np.array(value))) for name, value in values.items()}

    def train_theirs(self, optimizer: Any, parameters: Any, first: int, last: int) -> dict[str, np.ndarray]:
        for grads in self.gradients[first:last]:
            for name, parameter in parameters.items():
                parameter.grad = torch.tensor(grads[name])
            optimizer.step()
        return {name: parameter.detach().numpy().copy() for name, parameter in parameters.items()}

    def train_ours(self, opt: Any, model: Any, first: int, last: int) -> dict[str, np.ndarray]:
        for grads in self.gradients[first:last]:
            model = opt.update(
                model, ox.tree.map(lambda p, g: torch.tensor(g) if torch.is_tensor(p) else g, model, grads)
            )
        return {name: np.asarray(value).copy() for name, value in model.items()}


def paths(model: Any) -> list[str]:
    return [str(path) for path in ox.tree.parameters(model)]


def close(a: Any, b: Any, dtype: Any) -> None:
    for name, value in a.items():
        np.testing.assert_allclose(value, b[name], rtol=1e-11 if dtype == np.float64 else 2e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("convert", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", PAIRS)
def test_from_torch_to_oxigrad(name: str, convert: Any, dtype: Any) -> None:
    make, other, counts = PAIRS[name]
    problem = Problem(dtype)
    parameters = problem.parameters(problem.start)
    optimizer = other([*parameters.values()])
    middle = problem.train_theirs(optimizer, parameters, 0, 4)
    opt, model = make(), {name: convert(value) for name, value in middle.items()}
    report = theirs.load_state_dict(opt, optimizer.state_dict(), paths(model), **({} if counts else {"step": 4}))
    assert not report and opt.step == 4
    found = problem.train_ours(opt, model, 4, 8)
    close(found, problem.train_theirs(optimizer, parameters, 4, 8), dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("convert", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", PAIRS)
def test_from_oxigrad_to_torch(name: str, convert: Any, dtype: Any) -> None:
    make, other, _ = PAIRS[name]
    problem = Problem(dtype)
    opt, model = make(), {name: convert(value) for name, value in problem.start.items()}
    parameters = problem.parameters(problem.train_ours(opt, model, 0, 4))
    optimizer = other([{"params": [parameters["0.weight"]]}, {"params": [parameters["0.bias"], parameters["1"]]}])
    optimizer.load_state_dict(theirs.state_dict(opt, paths(model), optimizer.state_dict()["param_groups"]))
    found = problem.train_theirs(optimizer, parameters, 4, 8)
    close(found, problem.train_ours(opt, model, 4, 8), dtype)
    back = make()
    if optimizer.state_dict()["state"]:
        step = 8 if name in ("momentum", "damped") else None
        theirs.load_state_dict(back, optimizer.state_dict(), paths(model), step=step)
        back.build(model)
        assert back.step == 8
        for path, own in back.slots.items():
            close(own, opt.slots[path], dtype)


def test_a_frozen_parameter_has_no_state() -> None:
    parameters = {"a": torch.nn.Parameter(torch.ones(2)), "b": torch.nn.Parameter(torch.ones(2), requires_grad=False)}
    optimizer = torch.optim.Adam(parameters.values(), 0.1)
    parameters["a"].grad = torch.ones(2)
    optimizer.step()
    opt, model = optim.Adam(0.1, groups={"b": None}), {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    theirs.load_state_dict(opt, optimizer.state_dict(), ["a", "b"])
    opt.build(model)
    assert set(theirs.state_dict(opt, ["a", "b"], optimizer.state_dict()["param_groups"])["state"]) == {0}


ADAM = {"step": torch.tensor(2.0), "exp_avg": torch.ones(2), "exp_avg_sq": torch.ones(2)}
GROUPS = [{"params": [0]}]
WRONG: dict[str, tuple[Any, str]] = {
    "too many names": ({"state": {}, "param_groups": []}, "found 1 names: expected 0"),
    "no such parameter": (
        {"state": {3: ADAM}, "param_groups": GROUPS},
        "keys 3, which are in no group: expected numbers of param_groups, 0",
    ),
    "of RMSprop": (
        {"state": {0: {"step": 1, "square_avg": torch.ones(2)}}, "param_groups": GROUPS},
        "w: .* square_avg",
    ),
    "of SGD": (
        {"state": {0: {"momentum_buffer": torch.ones(2)}}, "param_groups": GROUPS},
        "w: .* expected the argument step",
    ),
    "half a step": ({"state": {0: {**ADAM, "step": 0.5}}, "param_groups": GROUPS}, "w: .* step 0.5"),
    "another shape": (
        {"state": {0: {**ADAM, "exp_avg": torch.ones(3)}}, "param_groups": GROUPS},
        "w: slot m has shape",
    ),
    "a slot too few": ({"state": {0: {"step": 1, "exp_avg": torch.ones(2)}}, "param_groups": GROUPS}, "w: slot v"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mismatched_state_is_refused(name: str) -> None:
    state, message = WRONG[name]
    opt = optim.Adam()
    opt.build({"w": np.zeros(2, np.float32)})
    before = str(opt.state_dict())
    with pytest.raises(ox.StateError, match=message):
        theirs.load_state_dict(opt, state, ["w"])
    assert str(opt.state_dict()) == before


def test_a_slot_without_counterpart_is_refused() -> None:
    model, grads = {"w": np.zeros(2), "b": np.zeros(1)}, {"w": np.ones(2), "b": np.ones(1)}
    groups = [{"params": [0, 1]}]
    averaged = optim.chain(optim.Adam(), optim.EMA())
    averaged.update(model, grads)
    with pytest.raises(ox.StateError, match="w: the slots average have no counterpart"):
        theirs.state_dict(averaged, ["w", "b"], groups)
    opt = optim.Adam(accumulate=2)
    opt.update(model, grads)
    with pytest.raises(ox.StateError, match="1 gradients are accumulated"):
        theirs.state_dict(opt, ["w", "b"], groups)
    opt.update(model, grads)
    assert set(theirs.state_dict(opt, ["w", "b"], groups)["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    with pytest.raises(ox.StateError, match="parameters that are not named: b"):
        theirs.state_dict(opt, ["w"], [{"params": [0]}])


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("absent", [(0, 1), (2, 3), (1, 4)], ids=str)
def test_steps_that_a_parameter_missed_are_exchanged(name: str, absent: tuple[int, int]) -> None:
    """A parameter without a gradient in some steps has taken fewer, by which its moments are corrected."""
    rng, paths = np.random.default_rng(0), ["a", "b"]
    grads = [{path: rng.normal(size=3) for path in paths} for _ in range(9)]

    def their_step(their: Any, at: int) -> None:
        for p, path in zip(their.param_groups[0]["params"], paths, strict=True):
            p.grad = None if path == "b" and at in absent else torch.tensor(grads[at][path])
        their.step()

    def their_optimizer(model: Any) -> Any:
        return getattr(torch.optim, name)([torch.nn.Parameter(torch.tensor(model[path])) for path in paths], lr=0.1)

    start = {path: np.ones(3) for path in paths}
    reference, opt, model = their_optimizer(start), getattr(optim, name)(learning_rate=0.1, compat="torch"), start
    for at in range(5):
        their_step(reference, at)
        model = opt.update(model, {path: None if path == "b" and at in absent else g for path, g in grads[at].items()})
    again = their_optimizer(model)
    again.load_state_dict(theirs.state_dict(opt, paths, again.state_dict()["param_groups"]))
    fresh, with_history = (getattr(optim, name)(learning_rate=0.1, compat="torch") for _ in range(2))
    for at in absent:  # what another optimizer has missed is of no account
        with_history.update({"a": np.ones(3), "b": np.ones(3)}, {"a": np.ones(3), "b": None if at else np.ones(3)})
    loaded = []
    for ours in (fresh, with_history):
        theirs.load_state_dict(ours, reference.state_dict(), paths)
        loaded.append((ours, {path: array.copy() for path, array in model.items()}))
    for at in range(5, 9):
        their_step(reference, at)
        their_step(again, at)
        for ours, its_model in loaded:
            ours.update(its_model, grads[at])
    for p, q, path in zip(reference.param_groups[0]["params"], again.param_groups[0]["params"], paths, strict=True):
        np.testing.assert_allclose(q.detach(), p.detach(), rtol=1e-12, err_msg=path)
        for _, its_model in loaded:
            np.testing.assert_allclose(its_model[path], p.detach(), rtol=1e-12, err_msg=path)
