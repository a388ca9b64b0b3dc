"""Every change between steps is seen by the next step: of groups, parameters, memory, gradients, state and options, beside PyTorch."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oxigrad.torch as ours  # noqa: E402
from torch_changes import CHANGES, CLASSES, made, results, take, thawed_parameters  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "in backward": {"in_backward": True},
    "on the host": {"state_device": "host"},
}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_by_the_next_step(change: str, name: str) -> None:
    found = []
    for module in (ours, torch.optim):
        opt = made(module, name)
        for step in range(3):
            take(opt, step)
        CHANGES[change](opt, random.Random(1))
        for step in range(3, 5):
            take(opt, step)
        thawed_parameters(opt, random.Random(1))
        take(opt, 5)
        found.append(results(opt))
    # PyTorch casts a state that is loaded to the parameter's dtype, and goes on with a product in float64.
    rtol = 1e-7 if (change, name) == ("loaded_state", "NAdam") else 1e-9
    torch.testing.assert_close(found[0], found[1], rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("way", ["in backward", "on the host"])
@pytest.mark.parametrize("change", CHANGES)
def test_other_ways_of_stepping_see_it(change: str, way: str) -> None:
    if (change, way) == ("hook", "in backward"):
        pytest.skip("hooks of a step are called after the updates of the backward")
    found = []
    for module, further in ((ours, WAYS[way]), (torch.optim, {})):
        opt = made(module, "AdamW", **further)
        for step in range(3):
            take(opt, step)
        CHANGES[change](opt, random.Random(1))
        for step in range(3, 6):
            take(opt, step)
        found.append(results(opt))
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_gradients_come_and_go(name: str) -> None:
    found = []
    for module in (ours, torch.optim):
        opt = made(module, name)
        for step, without in enumerate([None, None, 1, 1, None, 3, 0, None]):
            take(opt, step, without)
        found.append(results(opt))
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("steps", [0, 3])
def test_lists_of_other_classes_are_groups(steps: int) -> None:
    """PyTorch reads any iterable."""
    found = []
    for module in (ours, torch.optim):
        opt = made(module, "AdamW")
        for step in range(steps):
            take(opt, step)
        for group in opt.param_groups:
            group["params"] = tuple(group["params"])
        opt.param_groups[0]["params"] = dict.fromkeys(opt.param_groups[0]["params"]).keys()
        for step in range(3, 6):
            take(opt, step)
        found.append(results(opt))
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_options_of_precision_are_read_at_each_step(way: str) -> None:
    """Steps of 1e-3 vanish when 1 is rounded to bfloat16, and accumulate in a compensation or in master weights."""
    for options, expected in (({}, 1.0), ({"rounding": "kahan"}, 0.984), ({"master": True}, 0.984)):
        p = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        opt = ours.SGD([p], lr=1e-3, **WAYS[way])
        for step in range(20):
            if step == 4:
                opt.param_groups[0].update(options)
            opt.zero_grad()
            p.sum().backward()
            opt.step()
        torch.testing.assert_close(
            p.detach().double(), torch.full((3,), expected, dtype=torch.float64), rtol=0, atol=4e-3
        )


@pytest.mark.parametrize(("key", "value"), [("rounding", "up"), ("master", "yes"), ("state_dtype", "fp32")])
def test_a_wrong_option_of_precision_changes_nothing(key: str, value: Any) -> None:
    p = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    opt = ours.Adam([p], lr=0.5)
    for _ in range(2):
        p.grad = torch.ones_like(p)
        opt.step()
    before = p.detach().clone()
    opt.param_groups[0][key] = value
    with pytest.raises((TypeError, ValueError), match=rf"param_groups\[0\]\['{key}'\] is '{value}': expected"):
        opt.step()
    assert torch.equal(p, before)
    assert opt.state[p]["step"] == 2
