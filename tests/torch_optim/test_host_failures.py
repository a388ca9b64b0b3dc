"""Steps in host memory that fail, and those that run beside the next forward: what is ahead, and the bits once they are completed."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from late_device import LateDevice  # noqa: E402

from oxigrad import StateError  # noqa: E402
from oxigrad.torch.step.offload import pieces  # noqa: E402
from torch_offload import check_failed, check_failed_backward, failing_at  # noqa: E402
from torch_problems import (  # noqa: E402
    OURS,
    backward,
    copies,
    equal,
    gradients,
    parameters,
    skip_products_on_a_gpu,
    states,
    train,
    values,
)

pytestmark = pytest.mark.usefixtures("device")

# Pieces of 256 elements in float32, two of which are on their way.
SMALL = ours.HostMemory(piece=2048, places=2)


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
        update = failing_at(pieces.step_once, at, ArithmeticError("update failed"))
        patched.setattr(pieces, "step_once", update)


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
        assert what == "memory" or at == 9  # There are fewer allocations, and pieces.
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
    place = {"down": (device, "copy_down"), "up": (device, "copy_up"), "update": (pieces, "step_once")}[what]
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
        with pytest.raises(StateError, match="was updated"):
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


# --- updates beside the next forward ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["AdamW", "LAMB", "Muon", "Prodigy"])
@pytest.mark.parametrize("options", [{}, {"max_norm": 0.5}], ids=["plain", "clipped"])
def test_delayed_updates_are_those_of_gradients_that_lack_one(name: str, options: dict[str, Any]) -> None:
    """The parameters of the device are those of the step before: gradients depend on them."""
    skip_products_on_a_gpu(name)
    start = parameters(((40, 64), (7, 9)))
    params, host, device = copies(start), copies(start), values(start)
    opt = OURS.make(name, params, **options, state_device=ours.HostMemory(delay=1, piece=2048))
    exact = OURS.make(name, host, **options)
    for step in range(5):
        assert equal(params, device)
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = g + p.detach()
        for h, d, g in zip(host, device, gradients(host, step), strict=True):
            h.grad = g + d
        device = values(host)
        opt.step()
        exact.step()
        for p in params:
            p.grad.fill_(7.0)  # by the next backward
    opt.synchronize()
    assert equal(params, host)
    assert equal(states(opt), states(exact))
    opt.synchronize()
    assert equal(params, host)


def test_reading_the_state_synchronizes() -> None:
    params = parameters(((40, 64), (3,)))
    others = copies(params)
    opt, other = ours.AdamW(params, state_device=ours.HostMemory(delay=1)), ours.AdamW(others)
    train(opt, params, [0])
    train(other, others, [0])
    assert equal(states(opt), states(other))
    assert equal(params, others)
    copied = copy.deepcopy((params, opt))
    again = pickle.loads(pickle.dumps(copied))  # noqa: S301
    for ps, each in ((params, opt), (others, other), copied, again):
        train(each, ps, [1])
        each.synchronize()
        assert equal(ps, params if ps is not others else others)
    assert equal(params, others)
    assert all(each._host.memory == ours.HostMemory(delay=1) for each in (copied[1], again[1]))


def test_an_error_of_an_update_beside_the_forward_is_raised_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    params = parameters(((40, 64), (3,)))
    others = copies(params)
    opt, other = ours.AdamW(params, state_device=ours.HostMemory(delay=1)), ours.AdamW(others)
    with monkeypatch.context() as patched:
        patched.setattr(pieces, "step_once", lambda *_, **__: (_ for _ in ()).throw(ArithmeticError("failed")))
        train(opt, params, [0])
        with pytest.raises(ArithmeticError):
            opt.synchronize()
    assert opt.ahead == []
    opt.synchronize()
    train(other, others, [0])
    assert equal(params, others)
    assert equal(states(opt), states(other))


def test_no_thread_and_no_gradient_is_left() -> None:
    params = parameters()
    opt = ours.AdamW(params, state_device=ours.HostMemory(delay=1))
    train(opt, params)
    opt.synchronize()
    ref = weakref.ref(opt)
    del opt
    gc.collect()
    assert ref() is None
    assert not [thread for thread in threading.enumerate() if thread.name == "oxigrad-host-step"]
