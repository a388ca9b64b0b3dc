"""States of every optimizer, loaded by every other one: only those whose slots and meaning agree are taken."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, xp

GRADS = {"w": np.full((4, 4), 0.5)}
NAMES = [name for name in optim.TABLE if name != "LBFGS"]
# The slots of a state of `apply`, and of PyTorch's classes, do not tell these apart: one meaning of each slot.
MEANINGS = [
    {"SGD", "PolyakSGD", "Signum", "Lion", "LARS", "Fromage", "Muon"},
    {"Adam", "AdamW", "StableAdamW", "AdamLRD", "RAdam", "AdaBelief", "SimplifiedAdEMAMix", "LaProp", "ADOPT", "Yogi"}
    | {"LAMB", "RMSprop"},
    {"Adagrad", "RMSprop"},
    {"DoG", "DoWG"},
]


def model() -> dict[str, Any]:
    return {"w": np.ones((4, 4))}


def stepped(opt: Any) -> Any:
    opt.update(model(), GRADS, loss=1.0)
    return opt


def test_state_dicts_and_files_load_into_their_optimizer_alone(tmp_path: Any) -> None:
    states = {name: stepped(getattr(optim, name)()).state_dict() for name in NAMES}
    for name, other in itertools.product(NAMES, NAMES):
        opt = getattr(optim, name)()
        if name == other:
            assert not opt.load_state_dict(states[other])
            continue
        with pytest.raises(ox.StateError, match=f"the optimizer is {name}, the state is of {other}"):
            opt.load_state_dict(states[other])
        assert opt.step == 0
    stepped(optim.AdamW()).save(tmp_path / "state.safetensors")
    with pytest.raises(ox.StateError, match="the optimizer is Lion, the state is of AdamW"):
        optim.Lion().load(tmp_path / "state.safetensors")


def test_states_of_several_parts() -> None:
    makes: dict[str, Any] = {
        "partition": lambda opt: optim.partition({"*": opt}),
        "chain": lambda opt: optim.chain(optim.ClipByValue(1.0), opt),
        "SAM": optim.SAM,
        "chain of a partition": lambda opt: optim.chain(optim.ClipByValue(1.0), optim.partition({"*": opt})),
    }
    for make in makes.values():
        opt = make(optim.Adam())
        opt.minimize(lambda m: xp.sum(m["w"] ** 2), model())
        assert not make(optim.Adam(0.5)).load_state_dict(opt.state_dict())
        with pytest.raises(ox.StateError, match=r"the optimizer is .*(RAdam|radam).*, the state is of .*(Adam|adam)"):
            make(optim.RAdam()).load_state_dict(opt.state_dict())


def agree(name: str, other: str) -> bool:
    return name == other or any({name, other} <= names for names in MEANINGS)


def test_pure_states() -> None:
    """`apply` refuses a state that lacks slots of its rule, or has slots of another."""
    states = {name: getattr(optim, name)().init(model()) for name in NAMES}
    for name, other in itertools.product(NAMES, NAMES):
        opt = getattr(optim, name)()
        try:
            params, _ = opt.apply(model(), GRADS, states[other], loss=1.0)
        except (ox.StateError, ox.ShapeError):
            assert name != other
        else:
            assert agree(name, other), (name, other)
            assert np.isfinite(params["w"]).all()


def test_slots_that_a_setting_adds_may_begin_later() -> None:
    opt = optim.SGD(0.1)
    state = opt.init(model())
    assert not state["slots"]["w"]
    opt.momentum = 0.9
    params, state = opt.apply(model(), GRADS, state)
    assert [*state["slots"]["w"]] == ["m"]
    opt.accumulate = 2
    opt.apply(params, GRADS, {**state, "micro": 0})


def test_states_of_classes_for_torch() -> None:
    torch, own = pytest.importorskip("torch"), importlib.import_module("oxigrad.torch")

    def parameter() -> Any:
        p = torch.nn.Parameter(torch.ones(4, 4, dtype=torch.float64))
        p.grad = torch.full_like(p, 0.5)
        return p

    states = {}
    for name in NAMES:
        opt = getattr(own, name)([parameter()])
        opt.step(lambda: torch.tensor(1.0, dtype=torch.float64))
        states[name] = opt.state_dict()
    for name, other in itertools.product(NAMES, NAMES):
        opt = getattr(own, name)([parameter()])
        try:
            opt.load_state_dict(states[other])
        except (ox.StateError, ValueError):
            assert name != other
            assert not opt.state
        else:
            assert agree(name, other), (name, other)
    with pytest.raises(ox.StateError, match=r"state\[0\] has 'exp_avg_sq': it is of another optimizer"):
        own.Lion([parameter()]).load_state_dict(states["AdamW"])


def test_states_of_transformations_for_optax() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("optax")
    own, params = importlib.import_module("oxigrad.optax"), {"w": jax.numpy.ones((4, 4))}
    for other, texts in (("adamw", {"lion": "slots m, v: expected m"}), ("lion", {"adamw": "no slot v"})):
        state = getattr(own, other)(0.1).init(params)
        for name, text in texts.items():
            with pytest.raises(ox.StateError, match=f"^w: the state has (the )?{text}"):
                getattr(own, name)(0.1).update(params, state, params)
