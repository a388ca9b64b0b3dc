"""Clipped steps after a backward with hooks: the bits of steps without them, whatever has changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from torch_problems import OTHER_STEPS, OURS, backward, copies, equal, loss_for, parameters, shapes_for, states  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

NAMES = sorted({*OURS.names} - OTHER_STEPS)
LARGE = ((70, 64), (3,), (2, 0), (5000,), ())
HALF, FULL = torch.bfloat16, torch.float32
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {"state_dtype": "8bit"}, FULL),
    ("AdamW", {"master": True}, HALF),
    ("AdamW", {"rounding": "stochastic"}, HALF),
    ("Adam", {"weight_decay": 0.1}, torch.complex64),
    ("RMSprop", {"centered": True}, torch.float64),
]


def check_same(
    make: Callable[..., Any], params: Any, change: Callable[[Any, int], None] = lambda *_: None, steps: int = 4
) -> None:
    """Fails unless parameters and states are those of clipped steps without hooks, to the bit."""
    others = copies(params)
    opt, other = make(params), make(others, in_backward=True)
    for step in range(steps):
        for each, stepped in ((params, opt), (others, other)):
            stepped.zero_grad()
            backward(each, step, [1] if step == 2 else [])
            change(each, step)
            stepped.step(**loss_for(stepped))
    assert equal(others, params)
    assert equal(states(other), states(opt))


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_of_a_clipped_step(name: str) -> None:
    check_same(lambda ps, **more: OURS.make(name, ps, max_norm=0.5, **more), parameters(shapes_for(name)))


@pytest.mark.parametrize("in_backward", [False, True])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_norm_that_is_not_finite_clips_as_in_torch(bad: float, in_backward: bool) -> None:
    params, theirs = (parameters(LARGE) for _ in range(2))
    opt, other = ours.SGD(params, lr=0.1, max_norm=0.5, in_backward=in_backward), torch.optim.SGD(theirs, lr=0.1)
    for each in (params, theirs):
        sum((p * torch.full_like(p, bad if i == 1 else 2.0)).sum() for i, p in enumerate(each)).backward()
    torch.nn.utils.clip_grad_norm_(theirs, 0.5)
    opt.step()
    other.step()
    for p, q in zip(params, theirs, strict=True):
        torch.testing.assert_close(p, q, equal_nan=True)


@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_precision_has_the_same_bits(name: str, options: dict[str, Any], dtype: Any) -> None:
    make = lambda ps, **more: OURS.make(name, ps, max_norm=0.5, **options, **more)  # noqa: E731
    check_same(make, parameters(LARGE, dtype))


def groups(params: Any, **options: Any) -> Any:
    found = [{"params": params[:1]}, {"params": params[1:3], "amsgrad": True}, {"params": params[3:], "max_norm": 0.1}]
    return ours.AdamW(found, max_norm=0.5, master=True, **options)


def test_groups_and_dtypes_have_the_same_bits() -> None:
    params = [torch.nn.Parameter(p.detach().to(HALF if i % 2 else FULL)) for i, p in enumerate(parameters(LARGE))]
    check_same(groups, params)


# --- gradients that change after the hooks ---------------------------------------------------------------------------------


def in_place(params: Any, step: int) -> None:
    params[0].grad.mul_(3.0)


def through_data(params: Any, step: int) -> None:
    params[0].grad.data.mul_(3.0)
    if params[3].grad.device.type == "cpu":
        params[3].grad.numpy()[...] *= 2.0


def replaced(params: Any, step: int) -> None:
    params[0].grad = params[0].grad * 3.0


def dropped(params: Any, step: int) -> None:
    params[0].grad = None


def added(params: Any, step: int) -> None:
    if params[1].grad is None:
        params[1].grad = torch.full_like(params[1], 5.0)


def clipped_by_torch(params: Any, step: int) -> None:
    torch.nn.utils.clip_grad_norm_(params, 0.01)


def accumulated(params: Any, step: int) -> None:
    backward(params, step + 10, [0])


def all_dropped(params: Any, step: int) -> None:
    for p in params:
        p.grad = None


CHANGES = [in_place, through_data, replaced, dropped, added, clipped_by_torch, accumulated, all_dropped]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_gradients_that_change_are_those_of_the_step(change: Callable[[Any, int], None]) -> None:
    make = lambda ps, **more: ours.AdamW(ps, lr=0.1, max_norm=0.5, **more)  # noqa: E731
    check_same(make, parameters(LARGE), change)
    check_same(make, parameters(LARGE), lambda ps, step: change(ps, step) if step == 1 else None)


def squares(p: Any) -> None:
    p.grad.square_()


def test_hooks_that_come_later_are_seen() -> None:
    def change(params: Any, step: int) -> None:
        if step == 0:
            params[0].register_post_accumulate_grad_hook(squares)

    check_same(lambda ps, **more: ours.AdamW(ps, max_norm=0.5, **more), parameters(LARGE), change)


def test_a_step_that_is_refused_leaves_the_state() -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, max_norm=0.5, in_backward=True)
    backward(params, 0)
    opt.param_groups[0]["max_norm"] = None
    opt.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "max_norm": 1.0})
    with pytest.raises(ValueError, match="max_norm is None"):
        opt.step()
    assert not opt.state
    opt.param_groups[0]["max_norm"] = 0.5
    opt.step()
    assert len(opt.state) == len(LARGE)
