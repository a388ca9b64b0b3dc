"""Parameters with master weights that are written outside of a step: the next step starts from what was written."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oxigrad.torch as ours  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "in the backward": {"in_backward": True},
    "on the host": {"state_device": "host"},
    "on the host, in the backward": {"state_device": "host", "in_backward": True},
    "small pieces": {"state_device": ours.HostMemory(piece=64)},
    "stochastic": {"rounding": "stochastic"},
    "clipped": {"max_norm": 100.0},
}


def load(model: Any) -> None:
    model.load_state_dict({name: torch.full_like(value, 0.25) for name, value in model.state_dict().items()})


def fill_one(model: Any) -> None:
    with torch.no_grad():
        model[0].weight[1, 2] = 5.0


def clamp(model: Any) -> None:
    with torch.no_grad():
        for p in model.parameters():
            p.clamp_(-0.05, 0.05)


def take(opt: Any, model: Any, steps: int) -> None:
    for _ in range(steps):
        opt.zero_grad()
        loss: Any = sum((p * torch.ones_like(p)).sum() for p in model.parameters())
        loss.backward()
        opt.step()


def networks(dtype: Any, seed: int = 1) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16, dtype=dtype), torch.nn.Linear(16, 2, dtype=dtype))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", [load, fill_one, clamp])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_step_starts_from_what_was_written(dtype: Any, write: Callable[[Any], None], way: str) -> None:
    """Steps of 1e-6 change no parameter, so a step shows what it starts from; master weights stay where nothing did."""
    model = networks(dtype)
    opt = ours.SGD(model.parameters(), lr=1e-3, master=True, **WAYS[way])
    take(opt, model, 3)
    opt.param_groups[0]["lr"] = 1e-6
    before = copy.deepcopy(model.state_dict())
    masters = [opt.state[p]["master_weights"].clone() for p in model.parameters()]
    write(model)
    written = copy.deepcopy(model.state_dict())
    assert any(not torch.equal(before[name], value) for name, value in written.items())
    take(opt, model, 1)
    near = {"rtol": 0.01, "atol": 1e-5}  # of stochastic rounding, one unit in the last place
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, written[name], **near)
    for p, name, master in zip(model.parameters(), written, masters, strict=True):
        kept = written[name] == before[name]
        expected = torch.where(kept, master, written[name].float()) - 1e-6
        found = opt.state[p]["master_weights"]
        torch.testing.assert_close(found, expected.to(found), rtol=0, atol=1e-7)


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_steps_alone_leave_master_weights_alone(rounding: str) -> None:
    """Neither a copied optimizer, nor a loaded one, nor one whose groups change reads the parameters again."""
    found = []
    for restarts in (False, True):
        model = networks(torch.bfloat16)
        opt = ours.AdamW(model.parameters(), lr=1e-3, master=True, rounding=rounding)
        for step in range(6):
            if restarts and step == 2:
                state = copy.deepcopy(opt.state_dict())
                opt = ours.AdamW(model.parameters(), lr=1e-3, master=True, rounding=rounding)
                opt.load_state_dict(state)
            if restarts and step == 4:
                model[0].weight.grad = None
                with torch.no_grad():
                    model[0].weight.copy_(model[0].weight.clone())  # a write of the same values
            take(opt, model, 1)
        found.append([opt.state[p]["master_weights"] for p in model.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_inference_tensors_are_refused_as_by_torch() -> None:
    with torch.inference_mode():
        p = torch.ones(3)
        p.grad = torch.ones(3)
    values = []
    for make in (torch.optim.SGD, ours.SGD, functools.partial(ours.SGD, state_device="host")):
        opt = make([p], lr=0.25)
        before = p.tolist()
        with pytest.raises(RuntimeError, match="[Ii]nference"):
            opt.step()
        values.append([before, p.tolist()])
        with torch.inference_mode():
            opt.step()
        values[-1].append(p.tolist())
    for before, refused, taken in values[1:]:  # PyTorch raises after it has written.
        assert refused == before
        assert taken == [value - 0.25 for value in before]
