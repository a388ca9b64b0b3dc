"""Gradients of micro-batches that are added in host memory, ``state_device="host", in_backward=True``: the bits of sums on the device."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from late_device import LateDevice  # noqa: E402

from oxigrad import StateError  # noqa: E402
from oxigrad.step.plan import announcements  # noqa: E402
from oxigrad.torch.step import in_backward  # noqa: E402
from torch_problems import (  # noqa: E402
    OURS,
    AliveGradients,
    backward,
    copies,
    equal,
    gradients,
    layers,
    parameters,
    skip_products_on_a_gpu,
    states,
    values,
)

HALF, FULL = torch.bfloat16, torch.float32
# Pieces of 256 elements in float32, two of which are on their way.
SMALL = ours.HostMemory(piece=2048)
LARGE = ((70, 64), (3,), (2, 0), (5000,), ())
CLIPS = pytest.mark.parametrize("clip", [{}, {"max_norm": 0.5}], ids=["plain", "clipped"])
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {}, FULL),
    ("AdamW", {}, torch.float64),
    ("AdamW", {"state_dtype": "8bit"}, FULL),
    ("AdamW", {"state_dtype": "4bit"}, FULL),
    ("AdamW", {"master": True, "state_dtype": "float32"}, HALF),
    ("AdamW", {"master": True, "state_dtype": "8bit"}, HALF),
    ("AdamW", {"master": True}, torch.float16),
    ("AdamW", {"rounding": "kahan"}, HALF),
    ("AdamW", {"rounding": "stochastic", "seed": 3}, HALF),
    ("AdamW", {"amsgrad": True, "maximize": True}, torch.complex64),
    ("Adafactor", {"rounding": "stochastic"}, HALF),
    ("LAMB", {}, FULL),
    ("Muon", {}, FULL),
    ("SGD", {"momentum": 0.9}, HALF),
]


@pytest.fixture(autouse=True)
def ended_threads(device: LateDevice) -> Iterator[None]:
    """Fails where a step leaves a thread."""
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "oxigrad-host-step"]


def accumulate(opt: Any, params: Any, step: int, without: Any = ()) -> None:
    """Three micro-batches of a step; the first ones lack the gradients of some parameters, and the last one those of others."""
    with opt.no_step():
        backward(params, 3 * step, without)
        backward(params, 3 * step + 1, [1])
    backward(params, 3 * step + 2, [] if not without else [3])


def check_same(
    name: str, options: dict[str, Any], dtype: Any, memory: Any, shapes: Any = LARGE, without: Any = ()
) -> None:
    """Fails unless parameters and states are those of gradients that are added on the device, in the dtype of the sums."""
    skip_products_on_a_gpu(name)
    found = []
    for further in ({}, {"in_backward": True, "state_device": memory}):
        params = parameters(shapes, dtype)
        opt = OURS.make(name, params, **options, **further)
        for step in range(3):
            opt.zero_grad()
            accumulate(opt, params, step, without)
            opt.step()
        found.append((params, states(opt), opt.state_dict()["param_groups"]))
    assert equal(found[1][0], found[0][0])
    assert equal(found[1][1], found[0][1])
    assert found[1][2] == found[0][2]


@CLIPS
@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_precision_has_the_bits_of_sums_on_the_device(
    name: str, options: dict[str, Any], dtype: Any, clip: dict[str, Any]
) -> None:
    shapes = ((70, 64), (2, 5), (7, 9), (100, 3)) if name == "Muon" else LARGE
    check_same(name, {**options, **clip}, dtype, SMALL, shapes)


@CLIPS
@pytest.mark.parametrize("options", [{}, {"state_dtype": "8bit"}, {"rounding": "stochastic"}], ids=str)
def test_gradients_that_some_micro_batches_lack(options: dict[str, Any], clip: dict[str, Any]) -> None:
    check_same("AdamW", {**options, **clip}, HALF, SMALL, without=[0])


@pytest.mark.parametrize("seed", range(10))
def test_copies_may_end_in_any_order(device: LateDevice, seed: int) -> None:
    device.random.seed(seed)
    check_same("AdamW", {"master": True}, HALF, ours.HostMemory(piece=2048), without=[0])


@CLIPS
def test_a_fraction_of_the_parameters(clip: dict[str, Any]) -> None:
    check_same("AdamW", clip, FULL, ours.HostMemory(0.3, piece=2048), without=[0])


def test_a_step_at_the_rate_zero_and_a_last_gradient_of_zero() -> None:
    found = []
    for further in ({}, {"in_backward": True, "state_device": SMALL}):
        weight = torch.nn.Parameter(torch.ones(3))
        opt = ours.AdamW([weight], lr=0.0, **further)
        for factors in ((3.0, 0.0), (2.0, 1.0)):
            opt.zero_grad()
            with opt.no_step():
                (factors[0] * weight).sum().backward()
            (factors[1] * weight).sum().backward()
            opt.step()
            opt.param_groups[0]["lr"] = 0.1
        found.append([weight, *states(opt)])
    assert equal(*found)


def test_all_micro_batches_without_a_step_and_gradients_that_are_not_contiguous() -> None:
    found = []
    for further in ({}, {"in_backward": True, "state_device": SMALL}):
        torch.manual_seed(0)
        memory = torch.randn(40, 50)
        params = [
            torch.nn.Parameter(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)),
            torch.nn.Parameter(memory[::2, 1:-1]),
            torch.nn.Parameter(torch.randn(40, 30)),
        ]
        opt = ours.AdamW(params, lr=0.1, **further)
        for factor in (1.0, 2.0):
            with opt.no_step():
                for p in params:
                    (p.sum() * factor).backward()  # of an expanded number
                (params[2].T.reshape(-1) * torch.arange(1200.0)).sum().backward()
        opt.step()
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_gradients_of_the_device_are_given_back_in_each_micro_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "SMALL", 0)
    model = layers(12)
    alive = AliveGradients(model.parameters())
    opt = ours.AdamW(model.parameters(), in_backward=True, state_device=ours.HostMemory(piece=512))
    for _ in range(2):
        with opt.no_step():
            model(torch.ones(2, 8)).square().sum().backward()
        assert all(p.grad is None for p in model.parameters())
        opt._host.finish_sums()
        assert not [ref for ref in alive.all if ref() is not None]
    model(torch.ones(2, 8)).square().sum().backward()
    opt.step()
    assert len(alive.all) == 36


def test_small_gradients_wait_for_others() -> None:
    params = parameters([(5,)] * 40)
    opt = ours.AdamW(params, in_backward=True, state_device="host")
    calls, accumulate = [], opt._host.accumulate
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opt._host, "accumulate", lambda places: (calls.append(len(places)), accumulate(places)))
        with opt.no_step():
            backward(params, 0)
    assert calls == [40]
    assert all(p.grad is None for p in params)
    opt.zero_grad()


def test_zero_grad_and_a_state_that_is_loaded() -> None:
    """`zero_grad` drops gradients, `load_state_dict` does not, as on the device."""
    found = []
    for further in ({}, {"in_backward": True, "state_device": SMALL}):
        params = parameters(LARGE)
        opt = ours.AdamW(params, lr=0.1, **further)
        with opt.no_step():
            backward(params, 0)
        opt.zero_grad()
        with opt.no_step():
            backward(params, 1)
        opt.load_state_dict(copy.deepcopy(opt.state_dict()))
        backward(params, 2)
        opt.step()
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


# --- errors ------------------------------------------------------------------------------------------------------------------


def recorded_sums(steps: Any) -> set[str]:
    """The names of the parameters whose gradients are added from now on."""
    names: set[str] = set()
    accumulate = steps.accumulate

    def recorded(places: Any) -> None:
        accumulate(places)
        names.update(place.path for place in places)

    steps.accumulate = recorded
    return names


@CLIPS
@pytest.mark.parametrize("at", [0, 3, 7])
@pytest.mark.parametrize("what", ["down", "memory"])
def test_an_error_of_a_copy_leaves_all_gradients(device: LateDevice, what: str, at: int, clip: dict[str, Any]) -> None:
    """The error comes with the next call; gradients that were final are not lost, and none is added twice."""
    found = []
    for further in ({}, {"in_backward": True, "state_device": SMALL}):
        params = parameters(LARGE)
        opt = ours.AdamW(params, **clip, **further)
        with opt.no_step():
            backward(params, 0)
            if further:
                opt._host.finish_sums()
                device.failing[what] = at
                summed = recorded_sums(opt._host)
                with contextlib.suppress(MemoryError, RuntimeError):  # Not all of them have so many copies.
                    backward(params, 1)
                    opt._host.finish_sums()
                device.failing.clear()
                # The backward ended at the error: the gradients that are left.
                left = [i for i in range(len(params)) if f"param_groups[0]['params'][{i}]" not in summed]
                opt._host.finish_sums()
                for i in left if len(left) < len(params) else ():
                    params[i].grad = None
                    (params[i] * gradients(params, 1)[i]).sum().backward()
            else:
                backward(params, 1)
        backward(params, 2)
        opt.step()
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_copies_of_the_optimizer_are_refused_while_there_are_sums() -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, in_backward=True, state_device=SMALL)
    with opt.no_step():
        backward(params, 0)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(StateError, match=r"params'\]\[.\].*gradients of micro-batches are in host memory"):
            copied(opt)
    opt.step()
    others, other = copy.deepcopy((params, opt))
    for each, of in ((opt, params), (other, others)):
        accumulate(each, of, 1)
        each.step()
    assert equal(params, others)


def test_a_micro_batch_in_the_middle_of_a_step_is_refused() -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, in_backward=True, state_device=SMALL)
    backward(params, 0, [0])
    before = states_of(opt)
    with pytest.raises(RuntimeError, match="expected step"), opt.no_step():
        backward(params, 1)
    for p in params:
        p.grad = None
    opt.step()
    assert len(states_of(opt)) == len(before)


def states_of(opt: Any) -> list[Any]:
    return [*opt.state.values()]


def test_scaled_losses_are_refused_and_unchanged() -> None:
    params = parameters(LARGE)
    before = values(params)
    opt = ours.AdamW(params, in_backward=True, state_device=SMALL)
    scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=1024.0)
    with opt.no_step():
        scaler.scale(sum(p.sum() for p in params)).backward()
    with pytest.raises(RuntimeError, match="GradScaler is not supported"):
        scaler.step(opt)
    assert equal(params, before)
    opt.zero_grad()


def test_workers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `no_sync` the gradients of DistributedDataParallel are those of one worker, which nobody would reduce."""
    monkeypatch.setattr(in_backward, "_count_workers", lambda: 2)
    params = parameters()
    opt = ours.AdamW(params, in_backward=True, state_device="host")
    with pytest.raises(RuntimeError, match="one of 2 workers"), opt.no_step():
        backward(params, 0)


def test_hooks_that_are_registered_between_micro_batches_are_refused() -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, in_backward=True, state_device=SMALL)
    with opt.no_step():
        backward(params, 0)
        params[0].register_post_accumulate_grad_hook(lambda _: None)
        with pytest.raises(RuntimeError, match=r"params'\]\[0\].*another hook was registered since"):
            backward(params, 1)
    opt.zero_grad()


def test_no_memory_for_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    params = parameters(((70, 64),))
    opt = ours.AdamW(params, in_backward=True, state_device=SMALL)

    def full(*_: Any, **__: Any) -> Any:
        raise RuntimeError("allocator failed")

    with monkeypatch.context() as patched, opt.no_step():
        patched.setattr(torch, "empty_like", full)
        with pytest.raises(MemoryError, match=r"params'\]\[0\]: no host memory of 17,920 bytes for the sum"):
            backward(params, 0)
    other = ours.AdamW(others := copies(params))
    for p, g in zip(others, gradients(others, 0), strict=True):
        p.grad = g
    opt.step()  # The gradient is still on the device.
    other.step()
    assert equal(params, others)
