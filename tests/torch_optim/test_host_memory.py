"""State in the memory of the host, ``state_device="host"``: the bits of the step without it, over a device whose copies end late."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from late_device import LateDevice  # noqa: E402

from oxigrad import AliasError  # noqa: E402
from oxigrad.ops.backends.memory import torch_transfers  # noqa: E402
from oxigrad.step.plan import announcements  # noqa: E402
from oxigrad.torch.step.offload import steps  # noqa: E402
from torch_offload import check_same  # noqa: E402
from torch_problems import (  # noqa: E402
    OTHER_STEPS,
    OURS,
    TOGETHER,
    backward,
    equal,
    gradients,
    layers,
    loss_for,
    parameters,
    shapes_for,
    skip_products_on_a_gpu,
    states,
    train,
    values,
)

pytestmark = pytest.mark.usefixtures("device")

Make = Callable[..., Any]
NAMES = sorted({*OURS.names} - OTHER_STEPS)
HALF, FULL = torch.bfloat16, torch.float32
# Parameters that take several pieces, a part of one, none; some with as many numbers as a state of 8 bits asks for.
LARGE = ((70, 64), (3,), (2, 0), (5000,), ())
# Pieces of 256 elements in float32.
SMALL = ours.HostMemory(piece=2048)
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {}, FULL),
    ("AdamW", {}, torch.float64),
    ("AdamW", {"state_dtype": "8bit"}, FULL),
    ("AdamW", {"state_dtype": "4bit"}, FULL),
    ("AdamW", {"state_dtype": "bfloat16"}, FULL),
    ("AdamW", {"state_dtype": "float32"}, HALF),
    ("AdamW", {"master": True}, HALF),
    ("AdamW", {"master": True, "state_dtype": "8bit"}, HALF),
    ("AdamW", {"master": True}, torch.float16),
    ("AdamW", {"rounding": "kahan"}, HALF),
    ("AdamW", {"rounding": "stochastic", "seed": 3}, HALF),
    ("AdamW", {"amsgrad": True, "maximize": True}, torch.complex64),
    ("NAdam", {"weight_decay": 0.1}, FULL),
    ("ASGD", {"lambd": 0.1}, FULL),
    ("Adafactor", {"rounding": "stochastic"}, HALF),
    ("Muon", {}, FULL),
    ("LAMB", {}, FULL),
    ("LAMB", {"rounding": "stochastic", "seed": 3}, HALF),
    ("Prodigy", {"state_dtype": "8bit"}, FULL),
    ("DoG", {}, FULL),
    ("AdamLRD", {"dropout_rate": 0.5}, FULL),
    ("Lion", {"state_dtype": "8bit", "weight_decay": 0.1}, FULL),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, FULL),
]


@pytest.mark.parametrize("clip", [{}, {"max_norm": 0.5}], ids=["plain", "clipped"])
@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_of_steps_without_it(name: str, clip: dict[str, Any]) -> None:
    check_same(name, clip, shapes_for(name), FULL, SMALL)


@pytest.mark.parametrize("clip", [{}, {"max_norm": 0.5}], ids=["plain", "clipped"])
@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_precision_has_the_same_bits(
    name: str, options: dict[str, Any], dtype: Any, clip: dict[str, Any]
) -> None:
    shapes = LARGE if name not in ("Muon",) else ((70, 64), (2, 5), (100, 3))
    check_same(name, {**options, **clip}, shapes, dtype, SMALL)


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("options", [{}, {"max_norm": 0.5}, {"rounding": "stochastic"}], ids=str)
def test_every_fraction_has_the_same_bits(options: dict[str, Any], fraction: float) -> None:
    check_same("AdamW", options, ((70, 64), (5000,), (3,)), HALF, ours.HostMemory(fraction, piece=2048))


def test_channels_last_views_and_groups_have_the_same_bits() -> None:
    found = []
    for further in ({}, {"state_device": SMALL}):
        torch.manual_seed(0)
        memory = torch.randn(40, 50)
        params = [
            torch.nn.Parameter(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)),
            torch.nn.Parameter(memory[::2, 1:-1]),
            torch.nn.Parameter(torch.randn(20, 30).T),
            torch.nn.Parameter(torch.randn(700)),
        ]
        groups = [{"params": params[:2]}, {"params": params[2:], "lr": torch.tensor(0.5), "betas": (0.5, 0.9)}]
        opt = ours.AdamW(groups, lr=0.1, state_dtype="8bit", **further)
        train(opt, params)
        found.append((values(params), states(opt)))
    assert equal(found[0][0], found[1][0])
    assert equal(found[0][1], found[1][1])


def test_scaled_losses_have_the_same_bits() -> None:
    for options in ({}, {"max_norm": 0.5}):
        found = []
        for further in ({}, {"state_device": SMALL}):
            params = parameters(LARGE)
            opt = ours.AdamW(params, amp_fused=True, **options, **further)
            scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=1024.0)
            for step in range(3):
                given = zip(params, gradients(params, step), strict=True)
                opt.zero_grad()
                scaler.scale(torch.stack([(p * g).sum() for p, g in given]).sum()).backward()
                scaler.step(opt)
                scaler.update()
            found.append(values(params))
        assert equal(*found)


# --- with the step in the backward ----------------------------------------------------------------------------------------


def check_in_backward(name: str, options: dict[str, Any], shapes: Any, dtype: Any = FULL, memory: Any = SMALL) -> None:
    skip_products_on_a_gpu(name)
    found = []
    for further in ({}, {"in_backward": True, "state_device": memory}):
        params = parameters(shapes, dtype)
        opt = OURS.make(name, params, **options, **further)
        for step in range(4):
            opt.zero_grad()
            backward(params, step, [1] if step == 2 else [])
            is_streamed = memory.fraction == 1 and (opt.entry.rule.elementwise or "max_norm" not in options)
            is_streamed = is_streamed and name not in TOGETHER
            assert not (further and is_streamed) or all(p.grad is None for p in params)
            opt.step(**loss_for(opt))
        found.append((params, states(opt), opt.state_dict()["param_groups"]))
    assert equal(found[1][0], found[0][0])
    assert equal(found[1][1], found[0][1])
    assert found[1][2] == found[0][2]


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_in_the_backward(name: str) -> None:
    check_in_backward(name, {}, shapes_for(name))


@pytest.mark.parametrize("clip", [{}, {"max_norm": 0.5}], ids=["plain", "clipped"])
@pytest.mark.parametrize(("name", "options", "dtype"), [row for row in OPTIONS if row[0] != "Muon"])
def test_every_precision_has_the_bits_in_the_backward(
    name: str, options: dict[str, Any], dtype: Any, clip: dict[str, Any]
) -> None:
    check_in_backward(name, {**options, **clip}, LARGE, dtype)


@pytest.mark.parametrize("options", [{}, {"max_norm": 0.5}], ids=str)
def test_fractions_in_the_backward(options: dict[str, Any]) -> None:
    check_in_backward("AdamW", options, LARGE, memory=ours.HostMemory(0.3, piece=2048))


def test_accumulated_gradients_in_the_backward() -> None:
    found = []
    for further in ({}, {"in_backward": True, "state_device": SMALL}):
        model = layers(2)
        opt = ours.AdamW(model.parameters(), lr=0.1, max_norm=0.1, **further)
        for step in range(3):
            opt.zero_grad()
            with opt.no_step():
                model(torch.ones(2, 8)).square().mean().backward()
            model(torch.full((2, 8), 3.0 + step)).square().mean().backward()
            opt.step()
        found.append(values(model.parameters()))
    assert equal(*found)


def test_gradients_of_the_device_are_given_back_in_the_backward(
    device: LateDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients that are alive are on their way down, or the next one."""
    monkeypatch.setattr(announcements, "SMALL", 0)
    model = layers(12)
    opt = ours.AdamW(model.parameters(), in_backward=True, state_device=ours.HostMemory(piece=512))
    most = [0]

    def count(_: Any) -> None:
        most[0] = max(most[0], sum(p.grad is not None for p in model.parameters()))

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(count)
    opt.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    model(torch.ones(2, 8)).square().sum().backward()
    opt.step()
    gc.collect()
    assert [ref() for ref in device.down if ref() is not None and ref().ndim == 2] == []


# --- the ring --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [1, 2, 3])
@pytest.mark.parametrize(("name", "options"), [("AdamW", {}), ("AdamLRD", {"dropout_rate": 0.5})], ids=str)
def test_host_memory_of_copies_is_that_of_the_ring(
    device: LateDevice, name: str, options: dict[str, Any], places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_PLACES", places)
    params = parameters(((4000,), (70, 64), *[(5,)] * 40))
    opt = getattr(ours, name)(params, state_device=ours.HostMemory(piece=4096), **options)
    train(opt, params)
    assert device.held <= places * 4096


@pytest.mark.parametrize("seed", range(20))
def test_copies_may_end_in_any_order(device: LateDevice, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_PLACES", 1 + seed % 4)
    device.random.seed(seed)
    check_same("AdamW", {"master": True}, LARGE, HALF, ours.HostMemory(piece=2048))


# --- what is refused, by name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "match"),
    [
        ({"fraction": 1.5}, "fraction is 1.5"),
        ({"piece": 0}, "piece is 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": True}, "threads is True"),
    ],
)
def test_options_are_checked(memory: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ours.HostMemory(**memory)


def test_combinations_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.safetensors"):
        ours.AdamW(parameters(), state_device="hosts")
    with pytest.raises(TypeError, match="SparseAdam does not support state_device"):
        ours.SparseAdam(parameters(), state_device="host")
    for make in (
        lambda ps: ours.AdamW(ps, differentiable=True, state_device="host"),
        lambda ps: ours.Prodigy(ps, state_device=ours.HostMemory(0.5)),
    ):
        params = parameters()
        before = values(params)
        with pytest.raises(ValueError, match=r"excludes|fraction is"):
            train(make(params), params)
        assert equal(params, before)
    opt = ours.AdamW(parameters(), in_backward=True, max_norm=1.0, state_device="host")
    with pytest.raises(ValueError, match="excludes state_device"), opt.norm_pass():
        pass


def test_shared_memory_and_other_dtypes_are_refused() -> None:
    memory = torch.ones(6)
    params = [torch.nn.Parameter(memory[:4]), torch.nn.Parameter(memory[2:])]
    opt = ours.SGD(params, lr=0.1, state_device="host")
    for p in params:
        p.grad = torch.ones(4)
    with pytest.raises(AliasError, match=r"params'\]\[1\]"):
        opt.step()
    assert torch.equal(memory, torch.ones(6))
    sparse = torch.nn.Parameter(torch.ones(3))
    opt = ours.SGD([sparse], lr=0.1, state_device="host")
    sparse.grad = torch.ones(3).to_sparse()
    with pytest.raises(RuntimeError, match="state_device is not supported"):
        opt.step()
    assert opt.ahead == []


# --- streams of CUDA ---------------------------------------------------------------------------------------------------------


class FakeStream:
    """A stream whose calls are written down."""

    def __init__(self, name: str, calls: list[tuple[str, ...]]) -> None:
        self.name, self.calls = name, calls

    def record_event(self) -> FakeStream:
        self.calls.append((self.name, "record"))
        return FakeStream(f"event {len(self.calls)}", self.calls)

    def wait_event(self, event: FakeStream) -> None:
        self.calls.append((self.name, "wait", event.name))

    def wait_stream(self, stream: FakeStream) -> None:
        self.calls.append((self.name, "wait", stream.name))

    def query(self) -> bool:
        return False

    def synchronize(self) -> None:
        self.calls.append((self.name, "synchronize"))


def test_copies_on_streams_wait_for_the_work_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []
    names = iter(("down", "up"))
    monkeypatch.setattr(torch.cuda, "Stream", lambda _: FakeStream(next(names), calls))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: FakeStream("current", calls))

    @contextlib.contextmanager
    def within(stream: FakeStream) -> Iterator[None]:
        calls.append(("begin", stream.name))
        yield
        calls.append(("end", stream.name))

    monkeypatch.setattr(torch.cuda, "stream", within)
    copies_of_cuda = torch_transfers.CudaDevice(torch.device("cuda", 0))
    copies_of_cuda.mark()
    source, target = torch.ones(3), torch.zeros(3)
    end = copies_of_cuda.copy_down(source, target)
    assert not end.is_done()
    end.wait()
    copies_of_cuda.copy_up(target, source)
    copies_of_cuda.join()
    assert torch.equal(target, source)
    assert calls == [
        ("current", "record"),
        ("current", "record"),
        ("down", "wait", "event 2"),
        ("begin", "down"),
        ("down", "record"),
        ("end", "down"),
        ("event 5", "synchronize"),
        ("up", "wait", "event 2"),
        ("begin", "up"),
        ("up", "record"),
        ("end", "up"),
        ("current", "wait", "up"),
    ]
