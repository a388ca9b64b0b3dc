"""First steps at the rate zero with gradients of zero, as checkpoint loaders take one, and as a warmup with a masked batch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("oxigrad.torch")

from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict  # noqa: E402

from torch_problems import OURS, gradients, loss_for, parameters, shapes_for, states, values  # noqa: E402
from torch_requirements import Listed  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

# LBFGS takes a closure, and SparseAdam gradients of rows.
NAMES = [name for name in OURS.names if name not in ("LBFGS", "SparseAdam")]
RATES = [0.0, 0.05, 0.1, 0.1]
FURTHER: dict[str, dict[str, Any]] = {"in backward": {"in_backward": True}, "on the host": {"state_device": "host"}}


def warmup(opt: Any, params: Any) -> None:
    """Steps of a warmup from zero, whose first batch is masked."""
    for step, rate in enumerate(RATES):
        for group in opt.param_groups:
            group["lr"] = rate
        take(opt, params, step, masked=not step)


def take(opt: Any, params: Any, step: int, *, masked: bool = False) -> None:
    """A step by a backward."""
    opt.zero_grad()
    terms = [(p * g.to(p.dtype)).sum() * (not masked) for p, g in zip(params, gradients(params, step), strict=True)]
    torch.stack(terms).sum().backward()
    opt.step(**loss_for(opt))


def initialized(opt: Any, params: Any) -> None:
    """Steps after a loader has initialized the state of a fresh optimizer."""
    saved = get_optimizer_state_dict(Listed(params), opt)
    assert saved["state"] or not opt.state
    for step in range(3):
        take(opt, params, step)


@pytest.mark.parametrize("way", [warmup, initialized])
@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(torch.optim, name)])
def test_training_goes_on_as_in_torch(name: str, way: Callable[[Any, Any], None]) -> None:
    results, counts = [], []
    for module in (OURS.type(name), getattr(torch.optim, name)):
        params = parameters(shapes_for(name), torch.float64)
        opt = module(params, **({"lr": 0.1} if name == "SGD" else {}))
        way(opt, params)
        results.append(values(params))
        counts.append([float(state.get("step", 0)) for state in opt.state.values()])
    # PyTorch's Muon multiplies matrices of bfloat16.
    close = {"rtol": 5e-2, "atol": 5e-2} if name == "Muon" else {"rtol": 1e-9, "atol": 1e-11}
    torch.testing.assert_close(results[0], results[1], **close)
    if name != "Adagrad" or way is warmup:  # PyTorch makes its state at construction, so that loaders take no step.
        assert counts[0] == counts[1]


def reads(opt: Any) -> bool:
    """Whether a step needs the loss, which loaders do not give."""
    return bool(loss_for(opt))


# The rate zero is out of the range of FTRL, whose formula divides by it.
@pytest.mark.parametrize("name", [name for name in NAMES if not hasattr(torch.optim, name) and name != "FTRL"])
def test_training_goes_on_as_in_optim(name: str) -> None:
    params = parameters(shapes_for(name), torch.float64)
    opt = OURS.make(name, params)
    model = {str(i): p.detach().cpu().numpy().copy() for i, p in enumerate(params)}
    other = opt.ours()
    before = values(params)
    warmup(opt, params)
    for step, rate in enumerate(RATES):
        other.learning_rate = rate
        found = [g.to(torch.float64).cpu().numpy() * bool(step) for g in gradients(params, step)]
        loss = {"loss": 1.5} if reads(opt) else {}
        model = other.update(model, {str(i): g for i, g in enumerate(found)}, **loss)
    for i, (p, start) in enumerate(zip(params, before, strict=True)):
        assert bool(torch.isfinite(p).all())
        assert not torch.equal(p.detach(), start)
        np.testing.assert_allclose(p.detach().cpu().numpy(), model[str(i)], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_an_initialized_optimizer_trains(name: str) -> None:
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params)
    before = values(params)
    initialized(opt, params)
    for p, start in zip(params, before, strict=True):
        assert bool(torch.isfinite(p).all())
        assert not torch.equal(p.detach(), start)


@pytest.mark.parametrize("name", ["MoMo", "MoMoAdam", "PolyakSGD"])
def test_a_step_that_reads_the_loss_needs_it_where_it_moves_or_has_state(name: str) -> None:
    params = parameters()
    opt = OURS.make(name, params)
    get_optimizer_state_dict(Listed(params), opt)
    for rate, factor in ((0.0, 0.0), (0.1, 1.0)):  # the state is there
        for group in opt.param_groups:
            group["lr"] = rate
        for p in params:
            p.grad = torch.full_like(p, factor)
        with pytest.raises(TypeError, match="reads the loss"):
            opt.step()
    other = OURS.make(name, params)
    for p in params:
        p.grad = torch.ones_like(p)
    for group in other.param_groups:
        group["lr"] = 0.0
    with pytest.raises(TypeError, match="reads the loss"):
        other.step()


def test_a_step_of_ftrl_at_the_rate_zero_changes_nothing() -> None:
    params = parameters()
    opt = OURS.make("FTRL", params)
    take(opt, params, 0)
    before = [*values(params), *(slot.clone() for slot in states(opt) if slot.ndim)]
    opt.param_groups[0]["lr"] = 0.0
    take(opt, params, 1)
    after = [*values(params), *(slot for slot in states(opt) if slot.ndim)]
    torch.testing.assert_close(after, before, rtol=0, atol=0)


@pytest.mark.parametrize("options", FURTHER.values(), ids=FURTHER)
@pytest.mark.parametrize("name", ["AdamW", "SGD", "Lion"])
def test_other_ways_of_stepping_have_the_same_bits(name: str, options: dict[str, Any]) -> None:
    results = []
    for further in ({}, options):
        params = parameters()
        warmup(OURS.make(name, params, **further), params)
        results.append(values(params))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
