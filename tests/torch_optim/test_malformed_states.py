"""Malformed states of optimizers for PyTorch: each fault of each field is a named error, and nothing is changed."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox

NAMES = ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "SGD"]
OWN = ["Lion", "LAMB", "AdEMAMix", "Prodigy", "ScheduleFreeAdamW"]


def trained(torch: Any, make: Callable[..., Any], **given: Any) -> tuple[Any, Any]:
    p = torch.nn.Parameter(torch.arange(1.0, 7.0).reshape(2, 3))
    opt = make([p], **given)
    for _ in range(2):
        p.grad = torch.full((2, 3), 0.5)
        opt.step()
    return p, opt


def faults(torch: Any, own: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The key, the wrong value, and the text of the error, for the state of a parameter; a value of ... drops the key."""
    for key, value in own.items():
        if key == "step":
            for wrong in (math.nan, -1.0, math.inf, 1.5, "two", None, [1], torch.tensor(math.nan), torch.ones(2), ...):
                yield key, wrong, "step"
        elif isinstance(value, dict):
            yield key, {}, "codes"
            yield key, {"codes": value["codes"]}, "'codes' and 'scales'"
            yield key, {**value, "codes": value["codes"].float()}, "uint8"
            yield key, {**value, "scales": value["scales"][:0]}, "scales"
            yield key, {**value, "codes": None}, "expected a tensor"
        elif value.ndim:
            for wrong in (
                "text",
                3.0,
                np.ones((2, 3)),
                {"codes": value},
                torch.ones(2, 3, dtype=torch.int64),
                torch.ones(5),
            ):
                yield key, wrong, "expected"
            if "step" in own:
                yield key, ..., f"no '{key}'"
        else:
            for wrong in ("text", [1.0], torch.ones(2), {}):
                yield key, wrong, "expected a number"


def plain(opt: Any, p: Any) -> str:
    return repr((p.detach().tolist(), opt.state_dict()))


@pytest.mark.parametrize("name", [*NAMES, *OWN, "SGD momentum", "Adam 8bit"])
def test_every_fault_of_every_slot(name: str, library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    given: dict[str, Any] = {"SGD momentum": {"lr": 0.1, "momentum": 0.9}, "Adam 8bit": {"state_dtype": "8bit"}}.get(
        name, {"lr": 0.1}
    )
    make = getattr(own, name.partition(" ")[0])
    if name == "Adam 8bit":
        p = torch.nn.Parameter(torch.ones(64, 64))
        opt = make([p], **given)
        p.grad = torch.ones(64, 64)
        opt.step()
    else:
        p, opt = trained(torch, make, **given)
    good = opt.state_dict()
    before, seen = plain(opt, p), 0
    for key, wrong, text in faults(torch, good["state"].get(0, {})):
        state = copy.deepcopy(good)
        if wrong is ...:
            del state["state"][0][key]
        else:
            state["state"][0][key] = wrong
        with pytest.raises(ox.StateError, match="state") as raised:
            opt.load_state_dict(state)
        assert text in str(raised.value), (key, wrong)
        assert plain(opt, p) == before
        seen += 1
    assert seen > 4 or name == "SGD"
    opt.load_state_dict(good)
    assert plain(opt, p) == before


def test_every_fault_of_the_whole(library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    p, opt = trained(torch, own.AdamW)
    good, before = opt.state_dict(), plain(opt, p)
    empty = ox.optim.AdamW()
    for wrong in (
        None, [], "state", {}, {"state": {}}, {"param_groups": []}, {**good, "state": []}, {**good, "state": {0: None}},
        {**good, "param_groups": {}}, {**good, "param_groups": [{}]}, {**good, "param_groups": [None]},
    ):  # fmt: skip
        with pytest.raises(ox.StateError, match="state"):
            opt.load_state_dict(wrong)
        with pytest.raises(ox.StateError, match="state"):
            own.load_state_dict(empty, wrong, ["weight"])
        assert plain(opt, p) == before
    for step in (math.nan, -1, math.inf, 0.5, "one", torch.ones(2)):
        state = copy.deepcopy(good)
        state["state"][0]["step"] = step
        with pytest.raises(ox.StateError, match="step"):
            own.load_state_dict(empty, state, ["weight"])
    assert empty.step == 0


def test_states_that_pytorch_takes_are_taken(library: Any) -> None:
    """Before the first step there is none; numbers may be Python's; SGD may have no momentum."""
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    for name in [*NAMES, "SGD"]:
        given = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
        p, theirs = trained(torch, getattr(torch.optim, name), **given)
        for state in (theirs.state_dict(), getattr(torch.optim, name)([p], **given).state_dict()):
            ours = getattr(own, name)([p], **given)
            ours.load_state_dict(state)
            p.grad = torch.ones(2, 3)
            ours.step()
    p, theirs = trained(torch, torch.optim.Adam)
    state = theirs.state_dict()
    state["state"][0]["step"] = 2
    own.Adam([p]).load_state_dict(state)
