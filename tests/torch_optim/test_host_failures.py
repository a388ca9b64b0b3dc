"""Steps in host memory that fail: what is ahead, and the bits once they are completed."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from late_device import LateDevice  # noqa: E402

from oxigrad import StateError  # noqa: E402
from oxigrad.torch.step.offload import plan  # noqa: E402
from torch_offload import check_failed, check_failed_backward, failing_at  # noqa: E402
from torch_problems import (  # noqa: E402
    backward,
    copies,
    equal,
    gradients,
    parameters,
    states,
    train,
    values,
)

pytestmark = pytest.mark.usefixtures("device")

# Pieces of 256 elements in float32, two of which are on their way.
SMALL = ours.HostMemory(piece=2048)


# --- failures --------------------------------------------------------------------------------------------------------------


def has_failed(step: Callable[[], Any]) -> bool:
    """Whether a step raised the error that is due."""
    try:
        step()
    except (ArithmeticError, MemoryError, RuntimeError) as error:
        return "failed" in str(error)
    return False


def due(device: LateDevice, patched: pytest.MonkeyPatch, what: str, at: int) -> None:
    """Lets a copy, an allocation or an update fail, after some that do not."""
    device.failing[what] = at
    if what == "update":
        update = failing_at(plan.step_once, at, ArithmeticError("update failed"))
        patched.setattr(plan, "step_once", update)


@pytest.mark.parametrize("clip", [{}, {"max_norm": 0.5}], ids=["plain", "clipped"])
@pytest.mark.parametrize("at", [0, 1, 5, 9])
@pytest.mark.parametrize("what", ["down", "up", "memory", "update"])
def test_a_step_that_fails_tells_what_is_ahead_and_is_completed(
    device: LateDevice, monkeypatch: pytest.MonkeyPatch, what: str, at: int, clip: dict[str, Any]
) -> None:
    params = parameters(((40, 64), (3,), (2000,), *[(5,)] * 4))
    others = copies(params)
    opt, other = ours.AdamW(params, state_device=SMALL, **clip), ours.AdamW(others, **clip)
    train(other, others, range(2))
    before = values(params)
    for p, g in zip(params, gradients(params, 0), strict=True):
        p.grad = g
    with monkeypatch.context() as patched:
        due(device, patched, what, at)
        is_failed = has_failed(opt.step)
    if is_failed:
        check_failed(opt, params, before, 0, opt.step if at % 2 else opt.synchronize)
    else:
        assert what == "memory" or at == 9 or (clip and at == 5)  # There are fewer allocations, and pieces.
    device.failing.clear()
    assert opt.ahead == []
    train(opt, params, [1])
    assert equal(params, others)
    assert equal(states(opt), states(other))


@pytest.mark.parametrize("what", ["down", "up", "update"])
def test_a_failure_in_the_backward_is_completed_by_the_step(
    device: LateDevice, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    found = []
    for further in ({}, {"in_backward": True, "state_device": SMALL}):
        params = parameters(((40, 64), (3,), (2000,)))
        opt = ours.AdamW(params, **further)
        if further:
            due(device, monkeypatch, what, 1)
            assert has_failed(lambda params=params, opt=opt: (backward(params, 0), opt.step()))
            check_failed_backward(opt, params, 0)
        else:
            backward(params, 0)
            opt.step()
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


@pytest.mark.parametrize("what", ["down", "update", "up"])
def test_a_stop_in_a_step_is_never_taken_for_a_step(
    device: LateDevice, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Ctrl-C in the middle of an action may have left it half done: no later step counts, until a state is loaded."""
    params = parameters(((40, 64), (3,), (2000,)))
    opt = ours.AdamW(params, state_device=SMALL)
    train(opt, params, [0])
    saved, before = copy.deepcopy(opt.state_dict()), values(params)
    place = {"down": (device, "copy_down"), "up": (device, "copy_up"), "update": (plan, "step_once")}[what]
    for p, g in zip(params, gradients(params, 1), strict=True):
        p.grad = g
    with monkeypatch.context() as patched:
        patched.setattr(*place, failing_at(getattr(*place), 2, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            opt.step()
    assert what == "down" or opt.ahead
    with pytest.raises(RuntimeError, match="was interrupted"):
        opt.step()
    if opt.ahead:
        with pytest.raises(StateError, match="(was|were) updated"):
            opt.state_dict()
    assert all(int(opt.state[p]["step"]) == 1 for p in params)
    with torch.no_grad():
        for p, value in zip(params, before, strict=True):
            p.copy_(value)
    other = ours.AdamW(others := copies(params))
    for each, of in ((opt, params), (other, others)):
        each.load_state_dict(copy.deepcopy(saved))
        train(each, of, [1])
    assert equal(params, others)
    assert equal(states(opt), states(other))


def test_no_thread_and_no_gradient_is_left() -> None:
    params = parameters()
    opt = ours.AdamW(params, state_device=SMALL)
    train(opt, params)
    ref = weakref.ref(opt)
    del opt
    gc.collect()
    assert ref() is None
    assert not [thread for thread in threading.enumerate() if thread.name == "oxigrad-host-step"]
