"""Steps in the backward: the bits of steps after it, for every class and option; what a backward may do besides, or is refused."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from oxigrad import AliasError, StateError  # noqa: E402
from oxigrad.step.plan import announcements  # noqa: E402
from torch_problems import (  # noqa: E402
    OTHER_STEPS,
    OURS,
    AliveGradients,
    equal,
    gradients,
    layers,
    loss_for,
    parameters,
    shapes_for,
    states,
    values,
)
from torch_requirements import device_mesh  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

Make = Callable[..., Any]
NAMES = sorted({*OURS.names} - OTHER_STEPS)
LARGE = ((64, 64), (3,))  # the first has as many numbers as a state of 8 bits asks for
HALF, FULL = torch.bfloat16, torch.float32
OPTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("AdamW", {"state_dtype": "8bit"}, FULL),
    ("AdamW", {"state_dtype": "4bit"}, FULL),
    ("AdamW", {"state_dtype": "bfloat16"}, FULL),
    ("AdamW", {"state_dtype": "float32"}, HALF),
    ("AdamW", {"master": True}, HALF),
    ("AdamW", {"rounding": "kahan"}, HALF),
    ("AdamW", {"rounding": "stochastic", "seed": 3}, HALF),
    ("Adafactor", {"rounding": "stochastic"}, HALF),
    ("AdamLRD", {"dropout_rate": 0.5}, FULL),
    ("Lion", {"state_dtype": "8bit", "weight_decay": 0.1}, FULL),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}, FULL),
]


@pytest.fixture(params=[0, announcements.SMALL], ids=["one by one", "small ones together"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes up to which gradients wait for others."""
    monkeypatch.setattr(announcements, "SMALL", request.param)
    return request.param


def backward(params: Any, step: int, without: Any = ()) -> None:
    """A backward whose gradients are those of the step; parameters ``without`` gradients take no part."""
    given = zip(params, gradients(params, step), strict=True)
    terms = [(p * g.conj()).sum() for i, (p, g) in enumerate(given) if i not in without]
    loss = torch.stack([term.real if term.is_complex() else term for term in terms]).sum()
    loss.backward()


def trained(make: Make, shapes: Any, dtype: Any = FULL, *, steps: int = 4, without: Any = ()) -> tuple[Any, Any]:
    params = parameters(shapes, dtype)
    opt = make(params)
    for step in range(steps):
        opt.zero_grad()
        backward(params, step, without if step == 1 else ())
        opt.step(**loss_for(opt))
    return params, opt


def check_same(name: str, options: dict[str, Any], shapes: Any, dtype: Any = FULL, **others: Any) -> None:
    """Fails unless parameters and state dicts with and without ``in_backward`` are equal to the bit."""
    expected, before = trained(lambda ps: OURS.make(name, ps, **options), shapes, dtype, **others)
    found, opt = trained(lambda ps: OURS.make(name, ps, **options, in_backward=True), shapes, dtype, **others)
    assert equal(found, expected)
    assert equal(states(opt), states(before))
    assert opt.state_dict()["param_groups"] == before.state_dict()["param_groups"]


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_bits_of_steps_after_the_backward(name: str) -> None:
    check_same(name, {}, shapes_for(name))
    check_same(name, {}, shapes_for(name), without=[1])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("name", "options", "dtype"), OPTIONS)
def test_every_precision_has_the_same_bits(name: str, options: dict[str, Any], dtype: Any) -> None:
    check_same(name, options, LARGE, dtype)


def test_complex_parameters_have_the_same_bits() -> None:
    check_same("AdamW", {"weight_decay": 0.1}, ((4, 3), (2,)), torch.complex64)


@pytest.mark.parametrize("name", sorted(OTHER_STEPS))
def test_classes_with_other_steps_are_refused(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match="in_backward"):
        OURS.make(name, parameters(shapes_for(name)), in_backward=True)


@pytest.mark.parametrize("options", [{"differentiable": True}, {"capturable": True}], ids=str)
def test_recorded_steps_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="excludes"):
        ours.Adam(parameters(), in_backward=True, **options)


# --- memory --------------------------------------------------------------------------------------------------------------


def test_gradients_are_given_back_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most two gradients are alive: the one that is used, and the next."""
    monkeypatch.setattr(announcements, "SMALL", 0)
    model = layers()
    gradients_alive = AliveGradients(model.parameters())
    opt = ours.AdamW(model.parameters(), in_backward=True)
    for _ in range(3):
        model(torch.ones(2, 8)).square().sum().backward()
        assert all(p.grad is None for p in model.parameters())
        opt.step()
    assert len(gradients_alive.all) == 18
    assert gradients_alive.most <= 2


def test_an_optimizer_that_is_dropped_leaves_nothing() -> None:
    model = layers(2)
    opt = ours.SGD(model.parameters(), lr=0.1, in_backward=True)
    model(torch.ones(2, 8)).sum().backward()
    opt.step()
    ref = weakref.ref(opt)
    del opt
    gc.collect()
    assert ref() is None
    before = values(model.parameters())
    model(torch.ones(2, 8)).sum().backward()
    assert all(p.grad is not None and not p._post_accumulate_grad_hooks for p in model.parameters())
    assert equal(model.parameters(), before)


# --- situations: each trains a model, with and without in_backward --------------------------------------------------------


def tied(model: Any, opt: Any, step: int) -> None:
    """The first weight is used in two layers."""
    x = torch.full((2, 8), 1.0 + step)
    (model[1](model[0](x)) @ model[0].weight).square().sum().backward()
    opt.step()


def accumulated(model: Any, opt: Any, step: int) -> None:
    with opt.no_step():
        for k in range(2):
            model(torch.full((2, 8), 1.0 + k)).square().mean().backward()
    model(torch.full((2, 8), 3.0 + step)).square().mean().backward()
    opt.step()


def accumulated_in_other_layers(model: Any, opt: Any, step: int) -> None:
    """The last backward reaches fewer layers than those before it."""
    with opt.no_step():
        model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    model[:2](torch.ones(2, 8)).square().mean().backward()
    opt.step()


def by_hand(model: Any, opt: Any, step: int) -> None:
    """Some gradients come from a backward, others are set."""
    model[0](torch.full((2, 8), 1.0 + step)).square().mean().backward()
    model[1].weight.grad = torch.full((8, 8), 0.1 * step)
    opt.step()


def zeroed_in_place(model: Any, opt: Any, step: int) -> None:
    opt.zero_grad(set_to_none=False)
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()


def by_closure(model: Any, opt: Any, step: int) -> None:
    def closure() -> Any:
        opt.zero_grad()
        loss = model(torch.full((2, 8), 1.0 + step)).square().mean()
        loss.backward()
        return loss

    assert opt.step(closure).item() >= 0


def scheduled(model: Any, opt: Any, step: int) -> None:
    if step == 0:
        opt.schedule = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()
    opt.schedule.step()


def recomputed(model: Any, opt: Any, step: int) -> None:
    x = torch.full((2, 8), 1.0 + step, requires_grad=True)
    checkpoint(model[1], checkpoint(model[0], x, use_reentrant=False), use_reentrant=False).square().sum().backward()
    opt.step()


def recomputed_reentrant(model: Any, opt: Any, step: int) -> None:
    x = torch.full((2, 8), 1.0 + step, requires_grad=True)
    checkpoint(model[1], checkpoint(model[0], x, use_reentrant=True), use_reentrant=True).square().sum().backward()
    opt.step()


def frozen_in_turn(model: Any, opt: Any, step: int) -> None:
    model[0].weight.requires_grad_(step % 2 == 0)
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()
    opt.zero_grad()


def squares(p: Any) -> None:
    p.grad.square_()


def hooks_of_others(model: Any, opt: Any, step: int) -> None:
    """A hook before the optimizer's, which halves the gradient, and one that is registered after it, which squares it."""
    p = model[0].weight
    if step == 0:
        p.register_hook(lambda g: g * 0.5)
    if step == 1:
        p.register_post_accumulate_grad_hook(squares)
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()


def groups_are_added(model: Any, opt: Any, step: int) -> None:
    if step == 1:
        model.append(torch.nn.Linear(8, 8, bias=False))
        torch.nn.init.ones_(model[-1].weight)
        opt.add_param_group({"params": model[-1].parameters(), "lr": 0.5})
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()


def parameters_are_replaced(model: Any, opt: Any, step: int) -> None:
    if step == 2:
        before = model[0].weight
        model[0].weight = opt.param_groups[0]["params"][0] = torch.nn.Parameter(before.detach().clone())
        opt.state[model[0].weight] = opt.state.pop(before)
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()


def memory_is_swapped(model: Any, opt: Any, step: int) -> None:
    if step == 2:
        model[0].weight.data = model[0].weight.data.clone()
        opt.state[model[1].weight]["exp_avg"].data = opt.state[model[1].weight]["exp_avg"].clone()
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()


def hyperparameters_change(model: Any, opt: Any, step: int) -> None:
    opt.param_groups[0]["maximize"] = step % 2 == 1
    opt.param_groups[0]["weight_decay"] = 0.1 * step
    model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
    opt.step()


SITUATIONS = [
    tied,
    accumulated,
    accumulated_in_other_layers,
    by_hand,
    zeroed_in_place,
    by_closure,
    scheduled,
    recomputed,
    recomputed_reentrant,
    frozen_in_turn,
    hooks_of_others,
    groups_are_added,
    parameters_are_replaced,
    memory_is_swapped,
    hyperparameters_change,
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("options", [{}, {"max_norm": 0.1}], ids=["plain", "clipped"])
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_situations(situation: Callable[[Any, Any, int], None], options: dict[str, Any]) -> None:
    found = []
    for others in ({}, {"in_backward": True}):
        model = layers(2)
        opt = ours.Adam(model.parameters(), lr=0.1, **options, **others)
        for step in range(5):
            situation(model, opt, step)
            if not others:
                opt.zero_grad(set_to_none=situation is not zeroed_in_place)
            assert not others or all(p.grad is None for p in model.parameters())
        found.append((values(model.parameters()), states(opt)))
    assert equal(found[1][0], found[0][0])
    assert equal(found[1][1], found[0][1])


def test_sparse_gradients_are_left_to_the_step() -> None:
    """PyTorch's step takes them, and without ``in_backward`` all others, which it rounds in another way."""
    found = []
    for others in ({}, {"in_backward": True}):
        torch.manual_seed(0)
        table, dense = torch.nn.Embedding(5, 2, sparse=True), torch.nn.Linear(2, 2)
        opt = ours.SGD([*table.parameters(), *dense.parameters()], lr=0.1, **others)
        for step in range(3):
            opt.zero_grad()
            dense(table(torch.tensor([1, step]))).square().sum().backward()
            opt.step()
        found.append(values([*table.parameters(), *dense.parameters()]))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])  # noqa: S301
def test_copies_go_on_in_the_backward(copied: Callable[[Any], Any]) -> None:
    params = parameters()
    opt = ours.AdamW(params, in_backward=True)
    backward(params, 0)
    opt.step()
    others, other = copied((params, opt))
    for each, stepped in ((params, opt), (others, other)):
        backward(each, 1)
        assert all(p.grad is None for p in each)
        stepped.step()
    assert equal(params, others)
    assert equal(states(opt), states(other))


@pytest.mark.parametrize("other", [{"in_backward": True}, {}], ids=["in the backward", "after it"])
def test_states_are_those_of_steps_after_the_backward(other: dict[str, Any]) -> None:
    """Through `torch.save`, in both directions."""
    first = {} if other else {"in_backward": True}
    params, opt = trained(lambda ps: ours.AdamW(ps, **first), LARGE)
    others = [torch.nn.Parameter(p.detach().clone()) for p in params]
    resumed = ours.AdamW(others, **other)
    file = io.BytesIO()
    torch.save(opt.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for each, stepped in ((params, opt), (others, resumed)):
        stepped.zero_grad()
        backward(each, 7)
        stepped.step()
    assert equal(params, others)
    assert equal(states(opt), states(resumed))


def test_a_state_is_loaded_again_and_again() -> None:
    params, opt = trained(lambda ps: ours.AdamW(ps, in_backward=True), LARGE)
    for _ in range(3):
        opt.load_state_dict(opt.state_dict())
    assert all(len(p._post_accumulate_grad_hooks) == 1 for p in params)


# --- small gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"MOST": 3}, {"BUCKET": 600}, {"BUCKET": 1}], ids=str)
def test_small_gradients_wait_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(announcements, name, value)
    found = []
    for others in ({}, {"in_backward": True}):
        model = layers(8)
        gradients_alive = AliveGradients(model.parameters())
        opt = ours.AdamW(model.parameters(), lr=0.1, **others)
        for step in range(3):
            opt.zero_grad()
            model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
            opt.step()
        found.append((values(model.parameters()), states(opt)))
    assert gradients_alive.most <= 4
    assert equal(found[1][0], found[0][0])
    assert equal(found[1][1], found[0][1])


def test_small_gradients_that_an_error_left_are_used_once() -> None:
    model = layers(3)
    opt = ours.SGD(model.named_parameters(), lr=0.1, in_backward=True)
    fails = [True]

    def fail(g: Any) -> None:
        if fails.pop():
            raise ArithmeticError("in the middle")
        fails.append(False)

    model[0].weight.register_hook(fail)
    with pytest.raises(ArithmeticError):
        model(torch.ones(2, 8)).sum().backward()
    fails.append(False)
    with pytest.raises(
        RuntimeError, match=r"2\.weight: a second gradient before step\(\), and no parameter was updated"
    ):
        model(torch.ones(2, 8)).sum().backward()
    opt.zero_grad()
    before = values(model.parameters())
    model(torch.ones(2, 8)).sum().backward()
    assert sorted(opt.ahead) == ["0.weight", "1.weight", "2.weight"]
    assert not any(map(torch.equal, before, model.parameters()))


# --- what is refused, by name ---------------------------------------------------------------------------------------------


@pytest.fixture
def begun() -> tuple[Any, Any]:
    """A model and its optimizer, after a backward and before the step."""
    model = layers(2)
    opt = ours.AdamW(model.named_parameters(), in_backward=True)
    model(torch.ones(2, 8)).sum().backward()
    return model, opt


def test_a_second_backward_is_refused(begun: Any) -> None:
    model, opt = begun
    before = values(model.parameters())
    assert sorted(opt.ahead) == ["0.weight", "1.weight"]
    with pytest.raises(RuntimeError, match=r"1\.weight: a second gradient before step\(\).*no_step"):
        model(torch.ones(2, 8)).sum().backward()
    assert equal(model.parameters(), before)
    opt.zero_grad()
    opt.step()
    assert opt.ahead == []
    model(torch.ones(2, 8)).sum().backward()


def test_gradients_of_parameters_that_are_ahead_are_refused(begun: Any) -> None:
    model, opt = begun
    model[0].weight.grad = torch.ones(8, 8)
    before = values(model.parameters())
    with pytest.raises(RuntimeError, match=r"0\.weight .*gradient again"):
        opt.step()
    assert equal(model.parameters(), before)


def test_a_state_between_backward_and_step_is_refused(begun: Any) -> None:
    _, opt = begun
    with pytest.raises(StateError, match=r"1\.weight, 0\.weight were updated"):
        opt.state_dict()
    opt.step()
    assert len(opt.state_dict()["state"]) == 2


def test_a_scaled_loss_is_refused() -> None:
    model = layers(2)
    opt, scaler = (
        ours.AdamW(model.parameters(), in_backward=True),
        torch.amp.GradScaler(torch.get_default_device().type),
    )
    scaler.scale(model(torch.ones(2, 8)).sum()).backward()
    with pytest.raises(RuntimeError, match="GradScaler is not supported"):
        scaler.step(opt)


def test_an_error_in_a_backward_tells_what_is_ahead(small: int) -> None:
    """Parameters that wait for others when it comes are not ahead; ``step()`` updates them."""

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise ArithmeticError("in the middle")

    model = layers(3)
    opt = ours.AdamW(model.named_parameters(), in_backward=True)
    before = values(model.parameters())
    with pytest.raises(ArithmeticError):
        model[2](model[1](Failing.apply(model[0](torch.ones(2, 8))))).sum().backward()
    assert sorted(opt.ahead) == ([] if small else ["1.weight", "2.weight"])
    assert [p.grad is None for p in model.parameters()] == [True, not small, not small]
    assert torch.equal(model[0].weight, before[0])
    opt.step()
    assert opt.ahead == []
    assert [int(opt.state[p]["step"]) for p in model.parameters() if p in opt.state] == [1, 1]
    model(torch.ones(2, 8)).sum().backward()
    opt.step()
    assert [int(opt.state[p]["step"]) for p in model.parameters()] == [1, 2, 2]


def test_a_checkpoint_with_a_parameter_used_twice_is_refused_where_it_is_reentrant() -> None:
    model = layers(1)
    opt = ours.AdamW(model.parameters(), in_backward=True)
    x = torch.ones(2, 8, requires_grad=True)
    found = checkpoint(model[0], checkpoint(model[0], x, use_reentrant=True), use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=True"):
        found.sum().backward()
    assert len(opt.ahead) == 1


def test_two_optimizers_of_a_parameter_are_refused() -> None:
    model = layers(1)
    kept = [ours.SGD(model.parameters(), lr=0.1, in_backward=True) for _ in range(2)]
    with pytest.raises(RuntimeError, match="another optimizer"):
        model(torch.ones(2, 8)).sum().backward()
    assert [opt.ahead for opt in kept] == [[], []]


def test_parameters_that_share_memory_are_refused() -> None:
    memory = torch.ones(6)
    params = [torch.nn.Parameter(memory[:4]), torch.nn.Parameter(memory[2:])]
    opt = ours.SGD(params, lr=0.1, in_backward=True)
    with pytest.raises(AliasError, match=r"params'\]\[1\]"):
        torch.stack([p.sum() for p in params]).sum().backward()
    assert opt.ahead == []
    assert torch.equal(memory, torch.ones(6))


# --- several workers --------------------------------------------------------------------------------------------------------


def test_gradients_of_one_of_several_workers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    model = layers(1)
    opt = ours.SGD(model.named_parameters(), lr=0.1, in_backward=True)
    before = values(model.parameters())
    with pytest.raises(RuntimeError, match=r"0\.weight: the gradient is that of one of 2 workers"):
        model(torch.ones(2, 8)).sum().backward()
    assert equal(model.parameters(), before)
    assert opt.ahead == []


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build of PyTorch has no torch.distributed")
def test_sharded_parameters_have_the_same_bits() -> None:
    from torch.distributed.fsdp import fully_shard

    found = []
    with device_mesh() as mesh:
        for others in ({}, {"in_backward": True}):
            model = layers(3)
            for layer in model:
                fully_shard(layer, mesh=mesh)
            opt = ours.AdamW(model.parameters(), lr=0.1, **others)
            for step in range(3):
                if not others:
                    opt.zero_grad()
                model(torch.full((2, 8), 1.0 + step)).square().mean().backward()
                assert len(opt.ahead) == (3 if others else 0)
                opt.step()
            found.append([p.full_tensor().detach() for p in model.parameters()])
    assert equal(*found)
