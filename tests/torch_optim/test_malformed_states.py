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
from optimizers import IN_TORCH

pytestmark = pytest.mark.usefixtures("default_device")

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


@pytest.mark.parametrize("name", [*IN_TORCH, *OWN, "SGD momentum", "Adam 8bit", "Adam 4bit"])
def test_every_fault_of_every_slot(name: str, library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    of_bits: dict[str, dict[str, Any]] = {f"Adam {kind}": {"state_dtype": kind} for kind in ("8bit", "4bit")}
    given = {"SGD momentum": {"lr": 0.1, "momentum": 0.9}, **of_bits}.get(name, {"lr": 0.1})
    make = getattr(own, name.partition(" ")[0])
    if name in of_bits:
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
    for name in IN_TORCH:
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


def trained_lbfgs(torch: Any, own: Any, **given: Any) -> tuple[Any, Any]:
    """A parameter, and L-BFGS after a step of some iterations."""
    p = torch.nn.Parameter(torch.arange(1.0, 7.0).reshape(2, 3))
    q = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    opt = own.LBFGS([p, q], max_iter=6, **given)

    def closure() -> Any:
        opt.zero_grad()
        loss = ((p - 1.0) ** 4).sum() + (q * q.conj()).real.sum() ** 2
        loss.backward()
        return loss

    opt.step(closure)
    return p, opt


def lbfgs_faults(torch: Any, own: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """As `faults`, for the state of L-BFGS."""
    for key, value in own.items():
        yield key, ..., f"no '{key}'" if key != "al" else ""
        yield key, "text", key
        if key in ("func_evals", "n_iter"):
            yield from ((key, wrong, key) for wrong in (math.nan, -1, math.inf, 1.5, None, [1], torch.ones(2)))
        elif key in ("d", "prev_flat_grad"):
            wrong_vectors = (3.0, None, np.ones(10), torch.ones(2, 5), torch.ones(9), torch.ones(10).long(), [value])
            yield from ((key, wrong, key) for wrong in wrong_vectors)
        elif key in ("t", "H_diag", "prev_loss"):
            yield from ((key, wrong, key) for wrong in (None, [1.0], torch.ones(2), {}))
        elif key in ("old_dirs", "old_stps"):
            wrong_lists = (None, {}, [None], [1.0], [torch.ones(9)] * len(value), torch.ones(2))
            yield from ((key, wrong, key) for wrong in wrong_lists)
            yield from ((key, wrong, "lengths") for wrong in (value[:-1], value * 9))
        else:
            yield from ((key, wrong, key) for wrong in (3.0, {}, [torch.ones(2)], ["text"], torch.ones(2)))
            yield key, value[:1], "lengths" if key == "ro" else "history_size"


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_every_fault_of_the_state_of_lbfgs(search: str | None, library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    p, opt = trained_lbfgs(torch, own, line_search_fn=search, history_size=5)
    good, before, seen = opt.state_dict(), plain(opt, p), set()
    for key, wrong, text in lbfgs_faults(torch, good["state"][0]):
        state = copy.deepcopy(good)
        if wrong is ...:
            del state["state"][0][key]
        else:
            state["state"][0][key] = wrong
        if not text:
            opt.load_state_dict(state)  # PyTorch makes it again.
            opt.load_state_dict(good)
            continue
        with pytest.raises(ox.StateError, match="state") as raised:
            opt.load_state_dict(state)
        assert text in str(raised.value), (key, wrong)
        assert plain(opt, p) == before
        seen.add(key)
    assert seen == {
        "func_evals",
        "n_iter",
        "d",
        "t",
        "old_dirs",
        "old_stps",
        "ro",
        "H_diag",
        "prev_flat_grad",
        "prev_loss",
        "al",
    }
    of_adam = trained(torch, own.AdamW)[1].state_dict()
    group = good["param_groups"][0]
    for wrong in (
        None, {}, {**good, "state": []}, {**good, "state": {0: None}}, {**good, "param_groups": [{}]}, {**of_adam, "param_groups": good["param_groups"]},
        {**good, "state": {1: good["state"][0]}}, {**good, "param_groups": [{**group, "history_size": 1}]},
    ):  # fmt: skip
        with pytest.raises(ox.StateError, match="state"):
            opt.load_state_dict(wrong)
        assert plain(opt, p) == before
    opt.load_state_dict(good)
    assert plain(opt, p) == before


def test_states_of_pytorch_s_lbfgs_are_taken(library: Any) -> None:
    """After a step, before the first, and after one that found the optimum at once."""
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    for given in ({}, {"tolerance_grad": 1e9}, {"max_iter": 0}, {"max_iter": 1}):
        theirs_p, ours_p = (torch.nn.Parameter(torch.tensor([1.0, 3.0])) for _ in range(2))
        theirs, ours = torch.optim.LBFGS([theirs_p], **given), own.LBFGS([ours_p], **given)
        for _ in range(3):
            ours.load_state_dict(theirs.state_dict())
            ours_p.data.copy_(theirs_p.data)
            for opt, p in ((theirs, theirs_p), (ours, ours_p)):

                def closure(opt: Any = opt, p: Any = p) -> Any:
                    opt.zero_grad()
                    loss = ((p - 1.0) ** 4).sum()
                    loss.backward()
                    return loss

                opt.step(closure)
            assert torch.equal(theirs_p, ours_p)


def test_named_parameters_in_another_order(library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")

    def optimizer(*names: str) -> tuple[Any, dict[str, Any]]:
        params = {name: torch.nn.Parameter(torch.ones(2)) for name in names}
        return own.AdamW([*params.items()]), params

    opt, params = optimizer("a", "b")
    for value, p in enumerate(params.values()):
        p.grad = torch.full((2,), 1.0 + value)
    opt.step()
    other, _ = optimizer("b", "a")
    with pytest.raises(ox.StateError, match=r"state\[0\] is of the parameter 'a': expected 'b'"):
        other.load_state_dict(opt.state_dict())
    assert not other.state
    for names in (("a", "b"), ("module.a", "module.b")):  # a prefix, as of DistributedDataParallel
        other, params = optimizer(*names)
        other.load_state_dict(opt.state_dict())
        means = [other.state[p]["exp_avg"].tolist() for p in params.values()]
        torch.testing.assert_close(torch.tensor(means), torch.tensor([[0.1, 0.1], [0.2, 0.2]]))


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("amp_fused", "no", TypeError),
        ("amp_fused", None, TypeError),
        ("in_backward", 1, TypeError),
        ("seed", 1.5, ValueError),
        ("seed", -1, ValueError),
        ("seed", "1", TypeError),
    ],
)
def test_options_that_are_no_flags_and_no_seeds(option: str, value: Any, kind: Any, library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    p = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(kind, match=rf"{option}.*expected"):
        own.AdamW([p], **{option: value})
    with pytest.raises((TypeError, ValueError), match=rf"{option}.*expected"):
        own.AdamW([{"params": [p], option: value}])


def of_dtype(torch: Any, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """An optimizer after a step of a parameter of a dtype."""
    p = torch.nn.Parameter(torch.ones(shape, dtype=dtype))
    opt = getattr(importlib.import_module("oxigrad.torch"), name)([p], lr=0.1)
    p.grad = torch.ones_like(p)
    opt.step()
    return opt


@pytest.mark.parametrize("shape", [(2, 3), (4,), ()])
@pytest.mark.parametrize("name", ["AdamW", "Rprop", "LAMB", "SM3", "Shampoo", "SOAP", "GaLore", "Prodigy"])
def test_slots_of_the_other_kind_of_numbers(name: str, shape: tuple[int, ...], library: Any) -> None:
    """A state of a complex parameter loads, and each slot with real numbers for complex ones, or the reverse, raises."""
    torch = library("torch")
    for dtype in (torch.float32, torch.complex64):
        opt = of_dtype(torch, name, shape, dtype)
        good, before = opt.state_dict(), repr(opt.state_dict())
        opt.load_state_dict(good)
        assert repr(opt.state_dict()) == before
        for key, value in good["state"][0].items():
            if key == "step":
                continue
            other = value.real.clone() if value.is_complex() else value.to(torch.complex64)
            state = {**good, "state": {0: {**good["state"][0], key: other}}}
            with pytest.raises(ox.StateError, match=rf"state\[0\]\['{key}'\].*expected .*(real|complex)"):
                opt.load_state_dict(state)
            assert repr(opt.state_dict()) == before


@pytest.mark.parametrize("key", ["0", 5, None])
def test_keys_that_are_no_numbers_of_the_groups(key: Any, library: Any) -> None:
    """A state under other keys would load as none, and the moments begin anew."""
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    for p, opt in (trained(torch, own.AdamW), trained_lbfgs(torch, own)):
        good, before = opt.state_dict(), plain(opt, p)
        with pytest.raises(ox.StateError, match=f"the keys {key!r}, which are in no group: expected .*param_groups, 0"):
            opt.load_state_dict({**good, "state": {key: good["state"][0]}})
        assert plain(opt, p) == before


def test_a_loss_in_the_place_of_the_closure(library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    with pytest.raises(TypeError, match=r"MoMo\.step: found Tensor, expected a closure, or step\(loss=loss\)"):
        own.MoMo([p], lr=0.1).step(torch.tensor(1.0))
    with pytest.raises(
        TypeError, match=r"state_dtpe \(did you mean state_dtype\?\); its arguments are lr, .*state_dtype"
    ):
        own.AdamW([{"params": [p], "state_dtpe": "8bit"}])
