"""``state_device="host"`` of `oxigrad.optim` over PyTorch: tensors that stand in for those of a device, whose copies end late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from late_device import LateDevice  # noqa: E402

from oxigrad import optim  # noqa: E402
from oxigrad.ops.backends.memory import torch_transfers  # noqa: E402
from oxigrad.ops.backends.torch import TorchAdapter  # noqa: E402
from oxigrad.step.placement import host_placement  # noqa: E402
from torch_problems import equal, layers, values  # noqa: E402

Pose = Callable[[Any], Any]


@pytest.fixture
def pose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pose]:
    """A function that makes a tensor one of a device for steps in host memory."""
    posed: list[Any] = []
    device, on_host = LateDevice(), host_placement.on_host

    def posing(tensor: Any) -> Any:
        posed.append(tensor)
        return tensor

    def is_posed(array: Any) -> bool:
        addresses = {each.data_ptr() for each in posed}
        return isinstance(array, torch.Tensor) and array.data_ptr() in addresses

    monkeypatch.setattr(host_placement, "on_host", lambda array: not is_posed(array) and on_host(array))
    monkeypatch.setattr(TorchAdapter, "transfers", lambda self, array: device)
    yield posing
    device.join()


def follow(make: Callable[..., Any], tensors: dict[str, Any], pose: Pose, steps: int = 3) -> Any:
    """Steps of a dict of tensors with and without the option, compared after each."""
    there, here = ({name: t.clone() for name, t in tensors.items()} for _ in range(2))
    for t in there.values():
        pose(t)
    opt, other = make(state_device="host"), make()
    for number in range(steps):
        generator = torch.Generator().manual_seed(number)
        g = {n: torch.randn(t.shape, generator=generator).to(t.dtype) for n, t in tensors.items()}
        assert opt.update(there, {name: pose(t.clone()) for name, t in g.items()}) is there
        other.update(here, g)
        assert equal(there.values(), here.values())
        assert all(
            np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(*map(arrays, (opt, other)), strict=True)
        )
    return opt


def arrays(opt: Any) -> list[Any]:
    """The arrays of the slots, as float64."""
    found = [slot for own in opt.slots.values() for slot in own.values()]
    return [slot.double() if isinstance(slot, torch.Tensor) else slot for slot in found]


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {}),
        (torch.float32, {"slot_dtype": "8bit"}),
        (torch.bfloat16, {"master": True}),
        (torch.bfloat16, {"rounding": "kahan"}),
        (torch.bfloat16, {"rounding": "stochastic", "seed": 3}),
    ],
)
def test_tensors_have_the_bits_of_the_host(dtype: Any, options: dict[str, Any], pose: Pose) -> None:
    torch.manual_seed(0)
    shapes = {"w": (70, 64), "b": (3,), "one": ()}
    tensors = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    tensors["last"] = torch.randn(2, 3, 4, 4).to(dtype).to(memory_format=torch.channels_last)
    opt = follow(lambda **named: optim.AdamW(0.1, **options, **named), tensors, pose)
    assert opt._stepper.placement._parameters["last"].stride() == tensors["last"].stride()


def test_modules_that_hold_their_gradients(pose: Pose) -> None:
    model, other_model = layers(), layers()
    for module in (model, other_model):
        module[0].weight.requires_grad_(False)
    for p in model.parameters():
        pose(p)
    make = lambda **named: optim.chain(optim.ClipByGlobalNorm(0.1), optim.Adam(0.1), **named)  # noqa: E731
    opt, other = make(state_device="host"), make()
    before = values(model.parameters())
    for number in range(3):
        torch.manual_seed(number)
        x = torch.randn(5, model[0].in_features)
        for module in (model, other_model):
            module.zero_grad()
            module(x).square().sum().backward()
        for module in (model, other_model):
            [*module.parameters()][2].grad = None
        for p in model.parameters():
            if p.grad is not None:
                pose(p.grad)
        held = [p.grad for p in model.parameters()]
        assert opt.update(model) is model
        other.update(other_model)
        assert equal(model.parameters(), other_model.parameters())
        assert all(p.grad is g for p, g in zip(model.parameters(), held, strict=True))
    assert [*opt.slots] == [*other.slots]
    moved = [not torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True)]
    assert moved == [number not in (0, 2) for number in range(len(before))]


def test_the_copies_of_devices_with_streams_are_begun_before_one_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every device all copies down begin, and all copies up, before the first wait; work after the step follows the copies up."""
    calls: list[str] = []

    class Event:
        def record_event(self) -> Event:
            return self

        def is_done(self) -> bool:
            return False

        def wait(self) -> None:
            calls.append("wait")

    class Device(torch_transfers.HostDevice):
        def mark(self) -> None:
            calls.append("mark")

        def copy_down(self, source: Any, target: Any) -> Any:
            calls.append("down")
            super().copy_down(source, target)
            return Event()

        def copy_up(self, source: Any, target: Any) -> Any:
            calls.append("up")
            super().copy_up(source, target)
            return Event()

        def join(self) -> None:
            calls.append("join")

    there = {name: torch.ones(3) for name in "ab"}
    grads = {name: torch.ones(3) for name in "ab"}
    posed = {id(t) for t in (*there.values(), *grads.values())}
    device = Device()
    monkeypatch.setattr(host_placement, "on_host", lambda array: id(array) not in posed)
    monkeypatch.setattr(TorchAdapter, "transfers", lambda self, array: device)
    opt = optim.SGD(0.5, state_device="host")
    opt.update(there, grads)
    assert " ".join(calls) == "mark down down down down wait wait wait wait up up wait wait join"
    assert equal(there.values(), [torch.full((3,), 0.5)] * 2)


def test_memory_like_a_tensor_has_its_layout() -> None:
    for tensor in (torch.ones(2, 3), torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last), torch.ones(())):
        like = torch_transfers.device_of(tensor.device).like(tensor.half())
        assert (like.shape, like.stride(), like.dtype) == (tensor.shape, tensor.stride(), torch.float16)
