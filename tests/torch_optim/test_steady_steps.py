"""Steady steps of oxigrad.torch: few Python frames while nothing changes, and every change of a group is seen by the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oxigrad.torch as ours  # noqa: E402
from python_frames import frames  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")


@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize(
    ("name", "options"), [("AdamW", {}), ("SGD", {"momentum": 0.9}), ("RMSprop", {}), ("Adagrad", {})]
)
def test_a_steady_step_runs_few_frames(name: str, options: dict[str, Any], count: int) -> None:
    params = [torch.nn.Parameter(torch.ones(3)) for _ in range(count)]
    opt = getattr(ours, name)(
        [{"params": params[:1]}, {"params": params[1:], "lr": 0.5}] if count > 1 else params, **options
    )
    for p in params:
        p.grad = torch.ones(3)
    for _ in range(3):
        opt.step()
    found = [name for name in frames(opt.step) if name.startswith("oxigrad")]
    most = 12 if torch.get_default_device().type == "cpu" else 52
    assert 1 <= len(found) <= most, found


def tensor_in_place(group: dict[str, Any], step: int) -> None:
    if step == 1:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float64)
    elif step > 1:
        group["lr"].mul_(0.5)


def list_in_place(group: dict[str, Any], step: int) -> None:
    if step == 1:
        group["betas"] = [*group["betas"]]
    elif step > 1:
        group["betas"][0] *= 0.9


def kept(key: str, value: Callable[[Any], Any]) -> Callable[[dict[str, Any], int], None]:
    """A change of one value of a group in each step but the first."""

    def change(group: dict[str, Any], step: int) -> None:
        if step:
            group[key] = value(group[key])

    return change


CHANGES: dict[str, Callable[[dict[str, Any], int], None]] = {
    "rate": kept("lr", lambda lr: lr * 0.5),
    "rate as a tensor": tensor_in_place,
    "betas": kept("betas", lambda betas: (betas[0] * 0.9, betas[1])),
    "betas in place": list_in_place,
    "flag": kept("maximize", lambda flag: not flag),
    "decay": kept("weight_decay", lambda decay: 0.1 - decay),
    "further key": lambda group, step: group.update({f"of the user {step}": torch.ones(2)}),
    "key replaced": lambda group, step: group.update({"of the user": 1 if step < 2 else torch.ones(2)}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_a_group_is_seen_by_the_next_step(change: str) -> None:
    results = []
    for cls in (ours.AdamW, torch.optim.AdamW):
        params = [torch.nn.Parameter(torch.linspace(-1, 1, 5, dtype=torch.float64) * k) for k in (1, 2)]
        opt = cls([{"params": params[:1]}, {"params": params[1:], "lr": 0.05}], lr=0.1, foreach=False)
        for step in range(5):
            CHANGES[change](opt.param_groups[1], step)
            for p in params:
                p.grad = torch.cos(p.detach() * (step + 1))
            opt.step()
        results.append([p.detach() for p in params])
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"in_backward": True}, {"state_device": "host"}], ids=str)
@pytest.mark.parametrize("name", ["AdamW", "SGD", "Lion"])
def test_a_step_without_groups_updates_nothing(name: str, options: dict[str, Any]) -> None:
    p = torch.nn.Parameter(torch.ones(3))
    opt = getattr(ours, name)([p], lr=0.1, **options)
    (p * p).sum().backward()
    opt.step()
    groups, opt.param_groups = opt.param_groups, []
    before = p.detach().clone()
    assert opt.step(lambda: torch.tensor(2.0)) == 2.0
    assert bool((p == before).all())
    opt.param_groups = groups
    (p * p).sum().backward()
    opt.step()
    assert bool((p != before).all())
