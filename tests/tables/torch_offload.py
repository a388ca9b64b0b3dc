"""Checks of optimizers of `oxigrad.torch` whose state lies elsewhere than their parameters, or whose steps fail in the middle."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from oxigrad import StateError
from torch_problems import OURS, copies, equal, gradients, parameters, skip_products_on_a_gpu, states, train


def through_a_file(opt: Any) -> Any:
    """The state of an optimizer, as `torch.save` and `torch.load` leave it."""
    file = io.BytesIO()
    torch.save(opt.state_dict(), file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=True)


def check_same(
    name: str,
    options: dict[str, Any],
    shapes: Any,
    dtype: Any,
    device: Any,
    *,
    saved: Callable[[Any], Any] = through_a_file,
) -> None:
    """Fails unless parameters and states are those without ``state_device``, to the bit, those of resumed trainings both ways too.

    ``saved`` is the state of an optimizer, as another one reads it.
    """
    skip_products_on_a_gpu(name)
    params = parameters(shapes, dtype)
    others = copies(params)
    opt, other = OURS.make(name, params, **options), OURS.make(name, others, **options, state_device=device)
    for step in range(3):
        train(opt, params, [step])
        train(other, others, [step])
        assert equal(others, params)
    assert equal(states(other), states(opt))
    assert other.state_dict()["param_groups"] == opt.state_dict()["param_groups"]
    found = []
    for state, further in (
        (opt.state_dict(), {"state_device": device}),
        (saved(other), {}),
        (saved(other), {"state_device": device}),
    ):
        resumed = OURS.make(name, again := copies(others), **options, **further)
        resumed.load_state_dict(state)
        train(resumed, again, range(3, 5))
        found.append((again, resumed))
    train(opt, params, range(3, 5))
    for again, resumed in found:
        assert equal(again, params)
        assert equal(states(resumed), states(opt))
        assert resumed.state_dict()["param_groups"] == opt.state_dict()["param_groups"]


# --- failures --------------------------------------------------------------------------------------------------------------


def failing_at(call: Callable[..., Any], at: int, error: BaseException) -> Callable[..., Any]:
    """The function, but that one call raises an error, after ``at`` calls by any thread that do not."""
    calls, lock = [0], threading.Lock()

    def counted(*args: Any, **keywords: Any) -> Any:
        with lock:
            calls[0] += 1
            if calls[0] == at + 1:
                raise error
        return call(*args, **keywords)

    return counted


def check_failed(
    opt: Any, params: Sequence[Any], before: Sequence[Any], steps: int, complete: Callable[[], Any]
) -> None:
    """Fails unless a step that an error has ended counts nothing, tells what is ahead, refuses other gradients, and is completed."""
    assert all(int(opt.state[p]["step"]) == steps for p in params)
    moved = [i for i, (p, q) in enumerate(zip(params, before, strict=True)) if not torch.equal(p, q)]
    assert {f"param_groups[0]['params'][{i}]" for i in moved} <= {*opt.ahead}
    if opt.ahead:
        with pytest.raises(StateError, match="(was|were) updated"):
            opt.state_dict()
    g, params[0].grad = params[0].grad, torch.ones_like(params[0])
    with pytest.raises(RuntimeError, match="other gradients"):
        opt.step()
    params[0].grad = g
    complete()
    assert opt.ahead == []


def check_failed_backward(opt: Any, params: Sequence[Any], step: int) -> None:
    """Gives parameters that a backward which an error has ended did not update their gradients, and completes the step."""
    with pytest.raises(StateError, match="(was|were) updated"):
        opt.state_dict()
    for i, (p, g) in enumerate(zip(params, gradients(params, step), strict=True)):
        p.grad = None if f"param_groups[0]['params'][{i}]" in opt.ahead else g
    opt.step()
    assert opt.ahead == []
