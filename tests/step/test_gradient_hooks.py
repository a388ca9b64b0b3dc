"""Hooks of gradients that are final: the last ones of their leaves, as long as their owner lives."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from oxigrad.step.plan.gradient_hooks import GradientHooks  # noqa: E402


class Owner:
    """An owner that notes the leaves that are announced, and None for a call without a leaf."""

    def __init__(self) -> None:
        self.announced: list[Any] = []
        self.hooks = GradientHooks(self, Owner.note)

    def note(self, leaf: Any = None) -> None:
        self.announced.append(leaf)


def test_each_trainable_leaf_is_announced_once_its_gradient_is_final() -> None:
    owner, a, b = Owner(), torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    for _ in range(2):  # a second call puts no further hooks
        owner.hooks.attach([a, b, frozen])
    (a * a + b * frozen).sum().backward()
    assert {*map(id, owner.announced)} == {id(a), id(b)} and len(owner.announced) == 2
    owner.hooks.run()
    assert owner.announced[2] is None
    owner.hooks.remove()
    a.sum().backward()
    assert len(owner.announced) == 3 and not a._post_accumulate_grad_hooks


def test_a_hook_is_put_after_those_that_were_registered_since() -> None:
    owner, order, p = Owner(), list[str](), torch.nn.Parameter(torch.ones(2))
    owner.hooks.attach([p])
    assert owner.hooks.is_last(p)
    p.register_post_accumulate_grad_hook(lambda _: order.append(f"after {len(owner.announced)}"))
    assert not owner.hooks.is_last(p)
    p.sum().backward()
    owner.hooks.attach([p])
    assert owner.hooks.is_last(p)
    p.sum().backward()
    assert order == ["after 1", "after 1"] and len(owner.announced) == 2


def test_hooks_of_an_owner_that_is_gone_are_none() -> None:
    p, first, second = torch.nn.Parameter(torch.ones(2)), Owner(), Owner()
    first.hooks.attach([p])
    assert not first.hooks.has_others(p)
    second.hooks.attach([p])
    assert first.hooks.has_others(p) and second.hooks.has_others(p)
    run = first.hooks.run
    del first
    assert not second.hooks.has_others(p) and len(p._post_accumulate_grad_hooks) == 1
    run(p)  # as a backward that began before may call it
    p.sum().backward()
    assert len(second.announced) == 1
