"""Steps by pieces, of slots in a file that memory cannot hold: the bits of slots in memory, and errors of the disk."""

from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from interrupted_waits import interrupted_waits  # noqa: E402
from oxigrad import AliasError  # noqa: E402
from oxigrad.step.plan import announcements  # noqa: E402
from oxigrad.step.state import block_file, write_back  # noqa: E402
from oxigrad.torch.state.file import StateFile  # noqa: E402
from oxigrad.torch.step.offload import plan, steps  # noqa: E402
from torch_offload import check_failed, check_failed_backward, check_same, failing_at  # noqa: E402
from torch_problems import (  # noqa: E402
    OTHER_STEPS,
    OURS,
    TOGETHER,
    AliveGradients,
    backward,
    copies,
    drawn,
    equal,
    gradients,
    layers,
    loss_for,
    parameters,
    shapes_for,
    states,
    train,
    values,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "preadv"), reason="there is no preadv")
# Their steps need all slots at once, or are other ones.
NAMES = sorted({*OURS.names} - OTHER_STEPS)
# Parameters that take several pieces, a part of one, none; some with as many numbers as a state of 8 bits asks for.
LARGE = ((70, 64), (3,), (2, 0), (5000,), (), (40, 128))
HALF, FULL = torch.bfloat16, torch.float32
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {}, torch.float64),
    ("AdamW", {"state_dtype": "8bit"}, FULL),
    ("AdamW", {"state_dtype": "4bit"}, FULL),
    ("AdamW", {"state_dtype": "bfloat16"}, FULL),
    ("AdamW", {"master": True, "state_dtype": "float32"}, HALF),
    ("AdamW", {"rounding": "kahan"}, HALF),
    ("AdamW", {"rounding": "stochastic", "state_dtype": "8bit", "seed": 3}, HALF),
    ("AdamW", {"amsgrad": True, "maximize": True}, torch.complex64),
    ("AdamW", {"max_norm": 0.5}, FULL),
    ("AdamLRD", {"dropout_rate": 0.5, "max_norm": 0.5}, FULL),
    ("LAMB", {}, FULL),
    ("LAMB", {"max_norm": 0.5, "state_dtype": "8bit"}, FULL),
    ("LAMB", {"rounding": "stochastic", "seed": 3}, HALF),
    ("Prodigy", {"state_dtype": "8bit"}, FULL),
    ("DoG", {"max_norm": 0.5}, FULL),
    ("NAdam", {"weight_decay": 0.1}, FULL),
    ("Muon", {"max_norm": 0.5}, FULL),
    # The totals are of slots that the step writes: one piece, which is larger than a place, has all parameters.
    ("DAdaptAdamW", {}, FULL),
]


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """The ranges that are written, by files that are large from the first slot on, in pieces of a page, past the page cache from there on."""
    found: list[tuple[int, int]] = []
    overwrite = StateFile.overwrite

    def watched(self: StateFile, start: int, memory: memoryview) -> None:
        overwrite(self, start, memory)
        found.append((start, start + len(memory)))

    monkeypatch.setattr(write_back, "memory_limit", lambda: 1.0)
    monkeypatch.setattr(write_back, "LEAST", 0)
    monkeypatch.setattr(block_file, "LONG", 1)
    monkeypatch.setattr(StateFile, "overwrite", watched)
    yield found
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("oxigrad state")]


@pytest.mark.parametrize("largest", [1.0, 32.0 * (1 << 16)], ids=["mapped", "in places"])
@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_of_slots_in_memory(
    name: str, largest: float, tmp_path: Path, written: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_back, "memory_limit", lambda: largest)
    monkeypatch.setattr(write_back, "is_large", lambda size: size > 0)
    shapes = ((70, 64), (40, 70)) if name == "Muon" else shapes_for(name)
    check_same(name, {}, shapes, FULL, tmp_path / "state.safetensors")
    params = parameters(shapes)
    has_slots = any(t.numel() for t in _slots(name, params))
    is_mapped = name == "Muon" and largest == 1.0  # Its parameters cannot be cut, and are larger than a place.
    assert bool(written) == (has_slots and not is_mapped)


def _slots(name: str, params: Any) -> list[Any]:
    opt = OURS.make(name, params)
    train(opt, params, range(1))
    return [t for each in opt.state.values() for key, t in each.items() if key != "step" and t is not None]


@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_option_has_the_same_bits(name: str, options: dict[str, Any], dtype: Any, tmp_path: Path) -> None:
    shapes = ((70, 64), (40, 70)) if name == "Muon" else LARGE
    check_same(name, options, shapes, dtype, tmp_path / "state.safetensors")


@pytest.mark.parametrize(
    ("name", "options"),
    [("AdamW", {"max_norm": 0.5}), ("LAMB", {}), ("Prodigy", {}), ("DAdaptAdamW", {}), ("Muon", {"max_norm": 0.5})],
)
def test_no_bit_depends_on_the_order_of_slots_in_the_file(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    found = []
    for further in ({}, {"state_device": tmp_path / "state.safetensors"}):
        params = parameters([(70, 64), (40, 70), (30, 20), (90, 50)])
        opt = OURS.make(name, params, **options, **further)
        for last in (3, 1, 0):
            train(opt, params[last:], range(1))
        train(opt, params, range(1, 4))
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_channels_last_views_and_groups_have_the_same_bits(tmp_path: Path) -> None:
    found = []
    for further in ({}, {"state_device": tmp_path / "state.safetensors"}):
        torch.manual_seed(0)
        first = torch.nn.Parameter(torch.randn(20, 30, 4, 4).to(memory_format=torch.channels_last))
        second = torch.nn.Parameter(torch.randn(90, 70))
        third = torch.nn.Parameter(torch.randn(70, 90)[:, ::2])
        groups = [{"params": [first]}, {"params": [second, third], "lr": torch.tensor(0.5), "betas": (0.5, 0.9)}]
        opt = ours.AdamW(groups, lr=0.1, foreach=False, **further)
        train(opt, [first, second, third], range(3))
        train(opt, [second], range(2))
        second.grad = drawn((70, 90), torch.Generator().manual_seed(0)).t()
        third.grad = torch.arange(45.0).expand(70, 45)
        opt.step()
        found.append((values([first, second, third]), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_a_step_writes_each_byte_of_the_slots_once_and_in_order(tmp_path: Path, written: list[tuple[int, int]]) -> None:
    shapes = [(300, 100), *[(7,)] * 40, (2000,)]
    params = parameters(shapes)
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params, range(1))
    written.clear()
    train(opt, params[::-1], range(1))
    assert sum(stop - start for start, stop in written) >= sum(2 * 4 * p.numel() for p in params)
    ranges = sorted(written)
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(ranges))
    assert max(stop - start for start, stop in written) <= 4096
    small = [each for each in written if each[0] >= 2 * 4 * 300 * 100 and each[1] <= opt.state_file._end - 2 * 4 * 2000]
    assert len(small) < 6  # 80 slots that lie side by side
    assert small == sorted(small)


def test_hyperparameters_and_missing_gradients_are_those_of_each_step(tmp_path: Path) -> None:
    found = []
    for further in ({}, {"state_device": tmp_path / "state.safetensors"}):
        params = parameters(LARGE)
        opt = ours.NAdam(params, **further)
        for step in range(4):
            opt.param_groups[0]["lr"] = 0.1 / (step + 1)
            train(opt, params, [step])
            params[step].grad = None
            opt.step()
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_slots_can_be_read_and_written_between_steps(tmp_path: Path) -> None:
    found = []
    for further in ({}, {"state_device": tmp_path / "state.safetensors"}):
        params = parameters(LARGE)
        opt = ours.AdamW(params, **further)
        for step in range(4):
            train(opt, params, [step])
            opt.state[params[0]]["exp_avg"].mul_(0.5)
            opt.state[params[3]]["exp_avg"][7] = 3.0
            opt.state[params[5]]["exp_avg_sq"] = opt.state[params[5]]["exp_avg_sq"] + 1.0
            found.append((values(params), values(states(opt))))
    for one, other in zip(found[:4], found[4:], strict=True):
        assert equal(one[0], other[0])
        assert equal(one[1], other[1])


# --- steps in the backward -----------------------------------------------------------------------------------------------------


def check_in_backward(name: str, options: dict[str, Any], shapes: Any, dtype: Any, path: Path) -> None:
    """Fails unless parameters and states are those of steps after the backward with slots in memory, to the bit; some lack a gradient."""
    found = []
    for further in ({}, {"in_backward": True, "state_device": path}):
        params = parameters(shapes, dtype)
        opt = OURS.make(name, params, **options, **further)
        for step in range(4):
            opt.zero_grad()
            if further and "max_norm" in options:
                with opt.norm_pass():
                    backward(params, step, [1] if step == 2 else [])
            backward(params, step, [1] if step == 2 else [])
            assert not further or name in TOGETHER or all(p.grad is None for p in params)
            opt.step(**loss_for(opt))
        found.append((params, states(opt), opt.state_dict()["param_groups"]))
    assert equal(found[1][0], found[0][0])
    assert equal(found[1][1], found[0][1])
    assert found[1][2] == found[0][2]


@pytest.mark.parametrize("largest", [1.0, 32.0 * (1 << 16)], ids=["mapped", "in places"])
@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_in_the_backward(
    name: str, largest: float, tmp_path: Path, written: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_back, "memory_limit", lambda: largest)
    monkeypatch.setattr(write_back, "is_large", lambda size: size > 0)
    shapes = ((70, 64), (40, 70)) if name == "Muon" else shapes_for(name)
    check_in_backward(name, {}, shapes, FULL, tmp_path / "state.safetensors")
    has_slots = any(t.numel() for t in _slots(name, parameters(shapes)))
    assert bool(written) == (has_slots and name not in TOGETHER and not (name == "Muon" and largest == 1.0))


@pytest.mark.parametrize(("name", "options", "dtype"), [row for row in OPTIONS if row[0] not in {"Muon", *TOGETHER}])
def test_every_option_has_the_bits_in_the_backward(
    name: str, options: dict[str, Any], dtype: Any, tmp_path: Path, written: list[tuple[int, int]]
) -> None:
    check_in_backward(name, options, LARGE, dtype, tmp_path / "state.safetensors")
    assert written


def take(opt: Any, params: Any, step: int) -> None:
    """A backward and its step."""
    backward(params, step)
    opt.step()


def test_few_gradients_wait_in_the_backward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "SMALL", 0)
    monkeypatch.setattr(steps, "_PIECE", 2 * 256)
    model = layers(12)
    opt = ours.AdamW(model.parameters(), in_backward=True, state_device=tmp_path / "state.safetensors")
    alive = AliveGradients(model.parameters())
    opt._backward.attach(opt, model.parameters())
    for _ in range(2):
        opt.zero_grad()
        alive.all.clear()
        alive.most = 0
        model(torch.ones(2, 8)).square().sum().backward()
        opt.step()
    assert len(alive.all) == 12
    assert alive.most <= 3


def test_a_hook_that_is_registered_later_in_a_step_of_the_file(tmp_path: Path) -> None:
    found = []
    for further in ({}, {"in_backward": True, "state_device": tmp_path / "state.safetensors"}):
        params = parameters(LARGE)
        opt = ours.AdamW(params, rounding="nearest", **further)
        for step in range(3):
            opt.zero_grad()
            if step == 1:
                params[0].register_post_accumulate_grad_hook(lambda _: None)
            backward(params, step)
            opt.step()
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


@pytest.mark.parametrize("at", [0, 3, 11])
@pytest.mark.parametrize("what", ["preadv", "pwritev", "update"])
def test_a_failure_in_the_backward_is_completed_by_the_step(
    what: str, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for further in ({}, {"in_backward": True, "state_device": tmp_path / "state.safetensors"}):
        params = parameters(LARGE)
        opt = ours.AdamW(params, **further)
        backward(params, 0)
        opt.step()
        opt.zero_grad()
        if further:
            with monkeypatch.context() as patched:
                failing(patched, what, at)
                with pytest.raises(OSError, match=r"failed|slots beside"):
                    take(opt, params, 1)
            check_failed_backward(opt, params, 1)
        else:
            take(opt, params, 1)
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


# --- errors --------------------------------------------------------------------------------------------------------------------


def failing(patched: pytest.MonkeyPatch, what: str, at: int) -> None:
    """Lets a read, a write or an update fail, after some that do not."""
    where, name = (plan, "step_once") if what == "update" else (os, what)
    patched.setattr(where, name, failing_at(getattr(where, name), at, OSError(errno.EIO, "failed")))


@pytest.mark.parametrize("is_completed", [True, False], ids=["step", "synchronize"])
@pytest.mark.parametrize("at", [0, 3, 11])
@pytest.mark.parametrize("what", ["preadv", "pwritev", "update"])
def test_a_step_that_fails_tells_what_is_ahead_and_is_completed(
    what: str, at: int, is_completed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = parameters(LARGE)
    others = copies(params)
    opt, other = ours.AdamW(params, state_device=tmp_path / "state.safetensors"), ours.AdamW(others)
    train(opt, params, range(1))
    train(other, others, range(3))
    before = values(params)
    for p, g in zip(params, gradients(params, 1), strict=True):
        p.grad = g
    with monkeypatch.context() as patched:
        failing(patched, what, at)
        with pytest.raises(OSError, match="failed" if what == "update" else r"slots beside .*: Input/output error"):
            opt.step()
    check_failed(opt, params, before, 1, opt.step if is_completed else opt.synchronize)
    train(opt, params, [2])
    assert equal(params, others)
    assert equal(states(opt), states(other))


def test_another_state_is_loaded_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params, range(1))
    saved, before = opt.state_dict(), values(params)
    saved["state"] = {key: {k: t.clone() for k, t in each.items()} for key, each in saved["state"].items()}
    with monkeypatch.context() as patched:
        failing(patched, "pwritev", 4)
        with pytest.raises(OSError, match="Input/output"):
            train(opt, params, [1])
    opt.load_state_dict(saved)
    assert opt.ahead == []
    other = ours.AdamW(others := parameters(LARGE))
    train(other, others, range(2))
    with torch.no_grad():
        for p, value in zip(params, before, strict=True):
            p.copy_(value)
    train(opt, params, [1])
    assert equal(params, others)
    assert equal(states(opt), states(other))


def test_a_key_that_stops_a_step_stops_it_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    other = ours.AdamW(others := copies(params))
    train(opt, params, range(1))
    train(other, others, range(2))
    with interrupted_waits(monkeypatch), pytest.raises(KeyboardInterrupt):
        train(opt, params, [1])
    assert equal(params, others)
    assert equal(states(opt), states(other))


def test_errors_of_what_is_given_come_before_anything_is_changed(tmp_path: Path) -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params, range(1))
    before, held = values(params), values(states(opt))
    params[3].grad = params[0].detach().reshape(-1)[:1].expand(5000)
    with pytest.raises(AliasError):
        opt.step()
    params[3].grad = torch.ones(5000)
    slot = opt.state[params[5]]["exp_avg"]
    opt.state[params[5]]["exp_avg"] = torch.ones(3)
    with pytest.raises(Exception, match=r"params'\]\[5\].*exp_avg"):
        opt.step()
    opt.state[params[5]]["exp_avg"] = slot
    assert equal(params, before)
    assert equal(states(opt), held)
