"""Exact clipping with the step in the backward, by a first backward that measures the norm: the bits of a clipped step after the backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from oxigrad.step.plan import announcements  # noqa: E402
from torch_problems import (  # noqa: E402
    OTHER_STEPS,
    OURS,
    TOGETHER,
    AliveGradients,
    copies,
    equal,
    layers,
    loss_of,
    parameters,
    shapes_for,
    states,
    values,
)

NAMES = sorted({*OURS.names} - TOGETHER - OTHER_STEPS)
WHOLE = {name for name in NAMES if not OURS.type(name).entry.rule.elementwise}  # pyright: ignore[reportAttributeAccessIssue]
LARGE = ((70, 64), (3,), (2, 0), (5000,))
HALF, FULL = torch.bfloat16, torch.float32
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {"state_dtype": "8bit"}, FULL),
    ("AdamW", {"master": True}, HALF),
    ("AdamW", {"rounding": "kahan"}, HALF),
    ("AdamW", {"rounding": "stochastic"}, HALF),
    ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "maximize": True}, FULL),
    ("Adam", {"weight_decay": 0.1}, torch.complex64),
    ("RMSprop", {"centered": True}, torch.float64),
]


def both(opt: Any, loss: Any) -> None:
    """The backward that measures, and the one that updates."""
    with opt.norm_pass():
        loss.backward(retain_graph=True)
    loss.backward()
    opt.step()


def check_same(make: Callable[..., Any], params: Any, *, max_norm: float = 0.5) -> None:
    """Fails unless parameters and states are those of clipped steps after the backward, to the bit."""
    others = copies(params)
    opt, other = make(params, max_norm=max_norm), make(others, max_norm=max_norm, in_backward=True)
    for step in range(4):
        without = [1] if step == 2 else []
        opt.zero_grad()
        loss_of(params, step, without).backward()
        opt.step()
        both(other, loss_of(others, step, without))
        assert all(p.grad is None for p in others)
    assert equal(others, params)
    assert equal(states(other), states(opt))
    assert other.state_dict()["param_groups"] == opt.state_dict()["param_groups"]


@pytest.mark.parametrize("name", sorted({*NAMES} - WHOLE))
def test_every_elementwise_class_has_the_bits_of_a_clipped_step(name: str) -> None:
    check_same(lambda params, **options: OURS.make(name, params, **options), parameters(shapes_for(name)))


@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_precision_has_the_same_bits(name: str, options: dict[str, Any], dtype: Any) -> None:
    check_same(lambda params, **others: OURS.make(name, params, **options, **others), parameters(LARGE, dtype))


@pytest.mark.parametrize("max_norm", [0.0, 1e-3, float("inf")])
@pytest.mark.parametrize("dtypes", [[FULL, HALF, torch.float64], [HALF, FULL, HALF], [torch.float16, FULL, FULL]])
def test_kernels_of_several_groups_and_dtypes(dtypes: list[Any], max_norm: float) -> None:
    """Whose sums a step adds up kernel by kernel."""
    params = [
        torch.nn.Parameter(p.detach().to(dtypes[i % 3])) for i, p in enumerate(parameters(((5000,), (7, 9), (3,)) * 3))
    ]

    def made(params: Any, **options: Any) -> Any:
        groups = [
            {"params": params[:2]},
            {"params": params[2:6], "amsgrad": True},
            {"params": params[6:], "maximize": True, "max_norm": 2 * options["max_norm"]},
        ]
        return ours.AdamW(groups, lr=0.1, master=True, **options)

    check_same(made, params, max_norm=max_norm)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_norms_that_are_not_finite(bad: float) -> None:
    found = []
    for others in ({}, {"in_backward": True}):
        params = parameters()
        opt = ours.SGD(params, lr=0.1, max_norm=1.0, **others)
        loss = (params[0] * torch.full((4, 3), bad)).sum() + params[1].sum()
        if others:
            both(opt, loss)
        else:
            loss.backward()
            opt.step()
        found.append([p.detach().nan_to_num(77.0) for p in params])
    assert equal(*found)


def test_gradients_are_given_back_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In both backwards at most two gradients are alive: the one that is used, and the next."""
    monkeypatch.setattr(announcements, "SMALL", 0)
    model = layers()
    gradients_alive = AliveGradients(model.parameters())
    opt = ours.AdamW(model.parameters(), in_backward=True, max_norm=0.1)
    for _ in range(2):
        both(opt, model(torch.ones(2, 8)).square().sum())
    assert len(gradients_alive.all) == 24
    assert gradients_alive.most <= 2


def tied(model: Any, x: Any) -> Any:
    return (model[1](model[0](x)) @ model[0].weight).square().sum()


def recomputed(model: Any, x: Any) -> Any:
    x = x.requires_grad_()
    return checkpoint(model[1], checkpoint(model[0], x, use_reentrant=False), use_reentrant=False).square().sum()


@pytest.mark.parametrize("loss", [tied, recomputed])
def test_models(loss: Callable[[Any, Any], Any]) -> None:
    found = []
    for others in ({}, {"in_backward": True}):
        model = layers(2)
        opt = ours.AdamW(model.parameters(), lr=0.1, max_norm=0.1, **others)
        for step in range(4):
            opt.zero_grad()
            value = loss(model, torch.full((2, 8), 1.0 + step))
            if others and step != 2:  # where step() clips, with all gradients
                both(opt, value)
            else:
                value.backward()
                opt.step()
        found.append(values(model.parameters()))
    assert equal(*found)


# --- what is refused, by name ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_rules_on_arrays_are_refused(name: str) -> None:
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params, in_backward=True, max_norm=1.0)
    before = values(params)
    with pytest.raises(RuntimeError, match=r"norm_pass\(\) measures"), opt.norm_pass():
        loss_of(params, 0).backward()
    assert equal(params, before)


@pytest.mark.parametrize("name", sorted(TOGETHER))
def test_rules_that_sum_over_all_parameters_are_refused(name: str) -> None:
    opt = OURS.make(name, parameters(shapes_for(name)), in_backward=True, max_norm=1.0)
    with pytest.raises(ValueError, match=r"norm_pass\(\) is for rules"), opt.norm_pass():
        pass


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"in_backward": True}, {}], ids=str)
def test_it_is_for_in_backward_with_max_norm(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="norm_pass"), ours.AdamW(parameters(), **options).norm_pass():
        pass


@pytest.fixture
def clipping() -> tuple[Any, Any]:
    """A model of two layers, and its optimizer."""
    model = layers(2)
    return model, ours.SGD(model.named_parameters(), lr=0.1, in_backward=True, max_norm=1.0)


def test_accumulated_gradients_are_refused(clipping: Any) -> None:
    model, opt = clipping
    with opt.no_step():
        model(torch.ones(2, 8)).sum().backward()
    with pytest.raises(RuntimeError, match="begins a step"), opt.norm_pass():
        pass
    opt.step()
    both(opt, model(torch.ones(2, 8)).sum())


def test_two_backwards_in_the_pass_are_refused(clipping: Any) -> None:
    model, opt = clipping
    before = values(model.parameters())
    second = model(torch.ones(2, 8)).sum()
    with opt.norm_pass():
        model(torch.ones(2, 8)).sum().backward()
        with pytest.raises(RuntimeError, match=r"1\.weight: a second gradient in norm_pass"):
            second.backward()
    assert equal(model.parameters(), before)


def test_a_gradient_that_was_not_measured_is_refused(clipping: Any) -> None:
    model, opt = clipping
    with opt.norm_pass():
        model[1](torch.ones(2, 8)).sum().backward()
    with pytest.raises(RuntimeError, match=r"0\.weight: a gradient that is not measured in norm_pass\(\)"):
        model(torch.ones(2, 8)).sum().backward()
    assert opt.ahead == []  # small ones wait for the end
    assert model[1].weight.grad is not None


def test_a_gradient_that_was_not_used_is_refused(clipping: Any) -> None:
    model, opt = clipping
    with opt.norm_pass():
        model(torch.ones(2, 8)).sum().backward()
    model[1](torch.ones(2, 8)).sum().backward()
    with pytest.raises(RuntimeError, match=r"0\.weight: the gradient was measured in norm_pass\(\) and not used"):
        opt.step()
    opt.step()
    assert opt.ahead == []


def test_hooks_that_come_later_are_refused(clipping: Any) -> None:
    model, opt = clipping
    model[1].weight.register_post_accumulate_grad_hook(lambda p: None)
    with pytest.raises(RuntimeError, match=r"1\.weight: norm_pass\(\) is not supported"), opt.norm_pass():
        model(torch.ones(2, 8)).sum().backward()
