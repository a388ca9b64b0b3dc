"""Training loops with oxigrad.torch: gradient scaling and accumulation, compiled modules, sparse embeddings, low precision, refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import oxigrad as ox

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from torch_problems import (  # noqa: E402
    OURS,
    bowl,
    copies,
    drawn,
    equal,
    gradients,
    loss_for,
    parameters,
    shapes_for,
    states,
    train,
    values,
)

pytestmark = pytest.mark.usefixtures("default_device")

NAMES = OURS.names
LARGE = ((64, 64), (3,))
BOTH = pytest.mark.parametrize("name", ["AdamW", "SGD"])


def options_of(name: str) -> dict[str, Any]:
    return {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}


def classifier(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = drawn((32, 5), torch.Generator().manual_seed(step))
    return x, (x[:, :3] + 0.1).argmax(1)


def loss_of(model: Any, step: int) -> torch.Tensor:
    x, labels = batch(step)
    return torch.nn.functional.cross_entropy(model(x), labels)


def near(params: Any, others: Any) -> None:
    for p, q in zip(params, others, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


# --- every optimizer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_decreases_the_loss(name: str) -> None:
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params)
    assert type(opt).__name__ in repr(opt)
    closure = bowl(opt, params)
    first = closure().item()
    for _ in range(20):
        if name == "LBFGS":
            opt.step(closure)
            continue
        loss = closure()
        if name == "SparseAdam":
            for p in params:
                p.grad = p.grad.to_sparse()  # type: ignore[union-attr]
        opt.step(**loss_for(opt, loss))
    if hasattr(opt, "eval"):
        opt.eval()
    assert closure().item() < first


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_resumes_from_a_file(name: str, tmp_path: Any) -> None:
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params)
    train(opt, params)
    torch.save(opt.state_dict(), tmp_path / "state.pt")
    others = copies(params)
    other = OURS.make(name, others)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(opt, params, range(3, 6))
    train(other, others, range(3, 6))
    assert equal(params, others)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("ScheduleFree")])
@pytest.mark.parametrize("from_step", [0, 3])
def test_a_state_saved_in_evaluation_mode_resumes(name: str, from_step: int, tmp_path: Any) -> None:
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params)
    train(opt, params, range(from_step))
    opt.eval()
    torch.save(opt.state_dict(), tmp_path / "state.pt")
    others = copies(params)
    other = OURS.make(name, others)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    for slots in list(state["state"].values())[:1]:
        point = slots.pop("train_point")
        for wrong, text in ((None, "has no 'train_point'"), (point[:1], "has shape"), ("text", "expected a tensor")):
            slots["train_point"] = wrong
            with pytest.raises(ox.StateError, match=rf"^state\[0\].*{text}"):
                other.load_state_dict(state)
        slots["train_point"] = point
    other.load_state_dict(state)
    for each, of in ((opt, params), (other, others)):
        each.train()
        train(each, of, range(from_step, from_step + 3))
    assert equal(params, others)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("LBFGS", "SparseAdam")])
def test_backward_after_a_step_detects_changed_parameters(name: str) -> None:
    """A step writes through pointers and increments the version counters of autograd."""
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params)
    y = sum((p * p).sum() for p in params)
    for step in range(2):  # the first step of SOAP changes no parameter
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = g
        opt.step(**loss_for(opt))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# --- loops ---------------------------------------------------------------------------------------------------------------


@BOTH
def test_a_scaled_loss(name: str) -> None:
    """`GradScaler` unscales gradients and skips a step with infinite ones."""
    both = []
    for made in (getattr(ours, name), getattr(torch.optim, name)):
        model = classifier()
        opt, scaler = (
            made(model.parameters(), **options_of(name)),
            torch.amp.GradScaler(torch.get_default_device().type, init_scale=1024.0),
        )
        for step in range(6):
            opt.zero_grad()
            with torch.autocast(torch.get_default_device().type, torch.bfloat16):
                loss = loss_of(model, step)
            scaler.scale(loss * (float("inf") if step == 3 else 1.0)).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        assert scaler.get_scale() == 512.0
        both.append([p.detach() for p in model.parameters()])
    near(*both)


@BOTH
def test_gradients_are_accumulated(name: str) -> None:
    both = []
    for made in (getattr(ours, name), getattr(torch.optim, name)):
        model = classifier()
        opt = made(model.parameters(), **options_of(name))
        for step in range(6):
            (loss_of(model, step) / 2).backward()
            if step % 2:
                opt.step()
                opt.zero_grad(set_to_none=step != 3)
        both.append([p.detach() for p in model.parameters()])
    near(*both)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_module(backend: str) -> None:
    model, plain = classifier(), classifier()
    opt, other = ours.AdamW(model.parameters(), lr=0.1), ours.AdamW(plain.parameters(), lr=0.1)
    compiled = torch.compile(model, backend=backend)
    for step in range(3):
        for module, one in ((compiled, opt), (plain, other)):
            one.zero_grad()
            loss_of(module, step).backward()
            one.step()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)  # the compiler reorders sums


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # Dynamo reads it
def test_a_compiled_training_step() -> None:
    """The step of the optimizer is a graph break."""
    model, plain = classifier(), classifier()
    opt, other = ours.AdamW(model.parameters(), lr=0.1), ours.AdamW(plain.parameters(), lr=0.1)

    def step(module: Any, one: Any, number: int) -> None:
        x, labels = batches[number]
        one.zero_grad()
        torch.nn.functional.cross_entropy(module(x), labels).backward()
        one.step()

    batches = [batch(number) for number in range(3)]
    compiled = torch.compile(step, backend="eager")
    for number in range(3):
        compiled(model, opt, number)
        step(plain, other, number)
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)  # the compiler reorders sums


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # by torch's Adagrad
@pytest.mark.parametrize("name", ["SparseAdam", "SGD", "Adagrad"])
def test_a_sparse_embedding(name: str) -> None:
    """`torch.nn.Embedding` with ``sparse=True``: rows that no index names do not change."""
    both = []
    for made in (getattr(ours, name), getattr(torch.optim, name)):
        torch.manual_seed(0)
        table = torch.nn.Embedding(50, 8, sparse=True)
        before = table.weight.detach().clone()
        opt = made(table.parameters(), lr=0.1)
        for step in range(4):
            opt.zero_grad()
            table(torch.tensor([1, 7, 7, 30 + step])).square().sum().backward()
            opt.step()
        others = [i for i in range(50) if i not in {1, 7, 30, 31, 32, 33}]
        assert torch.equal(table.weight[others], before[others])
        both.append([table.weight.detach()])
    near(*both)


@pytest.mark.parametrize("name", ["AdamW", "Lion"])
def test_unsupported_sparse_gradients_are_refused(name: str) -> None:
    table = torch.nn.Embedding(5, 2, sparse=True)
    opt, before = getattr(ours, name)(table.parameters()), table.weight.detach().clone()
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        opt.step()
    assert torch.equal(table.weight, before)


def test_mixed_dtypes_in_groups() -> None:
    kinds = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
    params = [p for dtype in kinds for p in parameters(((4, 3), ()), dtype)]
    theirs = copies(params)
    groups = [{"params": its[:3], "lr": 0.01, "weight_decay": 0.5} for its in (params, theirs)]
    rest = [{"params": its[3:]} for its in (params, theirs)]
    opt, expected = ours.AdamW([groups[0], rest[0]], lr=0.1), torch.optim.AdamW([groups[1], rest[1]], lr=0.1)
    train(opt, params)
    train(expected, theirs)
    for p, q in zip(params, theirs, strict=True):
        low = p.dtype in (torch.bfloat16, torch.float16)
        torch.testing.assert_close(p, q, rtol=2e-2 if low else 1e-5, atol=1e-2 if low else 1e-6)


def test_two_optimizers_share_parameters() -> None:
    params = parameters()
    first, second = ours.AdamW(params, lr=0.1), ours.SGD(params, lr=0.1)
    theirs = copies(params)
    one, two = torch.optim.AdamW(theirs, lr=0.1), torch.optim.SGD(theirs, lr=0.1)
    for step in range(4):
        train((first, second)[step % 2], params, [step])
        train((one, two)[step % 2], theirs, [step])
    near(params, theirs)


# --- precision of the state ----------------------------------------------------------------------------------------------


def compared(make: Callable[[Any], Any], dtype: Any, steps: int = 30) -> tuple[float, float]:
    """The distance from the result of AdamW in float64, and the progress in its direction, relative to its displacement."""
    params = parameters(LARGE, dtype)
    exact = [torch.nn.Parameter(p.detach().double()) for p in params]
    start = values(exact)
    opt, other = make(params), torch.optim.AdamW(exact, lr=1e-3)
    for step in range(steps):
        train(opt, params, [step])
        train(other, exact, [step])
    ends = [torch.cat([p.detach().double().flatten() for p in its]) for its in (start, params, exact)]
    found, way = ends[1] - ends[0], ends[2] - ends[0]
    return float((found - way).norm() / way.norm()), float((found * way).sum() / (way * way).sum())


@pytest.mark.parametrize(("kind", "bound", "most"), [("8bit", 0.2, 2.5), ("4bit", 0.4, 1.25)])
def test_state_of_codes(kind: str, bound: float, most: float) -> None:
    opt = None

    def made(params: Any) -> Any:
        nonlocal opt
        opt = ours.AdamW(params, lr=1e-3, state_dtype=kind)
        return opt

    error, _ = compared(made, torch.float32)
    assert error < bound
    assert opt is not None
    codes = [t for t in states(opt) if t.dtype in (torch.uint8, torch.int8)]
    assert sum(t.nbytes for t in codes) >= 2 * 64 * 64 * (0.5 if kind == "4bit" else 1)
    large = sum(t.nbytes for t in states(opt)) / (64 * 64)
    assert large < most, "bytes for a number"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_state_of_a_dtype(dtype: str) -> None:
    params = parameters(LARGE)
    opt = ours.AdamW(params, lr=1e-3, state_dtype=dtype)
    train(opt, params)
    assert {t.dtype for t in states(opt) if t.ndim} == {getattr(torch, dtype)}


@pytest.mark.parametrize("options", [{"master": True}, {"rounding": "kahan"}, {"rounding": "stochastic"}], ids=str)
def test_small_updates_in_half_precision(options: dict[str, Any]) -> None:
    """Rounding to nearest loses steps of 1e-3 on parameters of order 1 in bfloat16."""
    half = torch.bfloat16
    _, plain = compared(lambda params: ours.AdamW(params, lr=1e-3), half)
    _, found = compared(lambda params: ours.AdamW(params, lr=1e-3, **options), half)
    assert plain < 0.7 and abs(found - 1) < 0.1


def test_stochastic_rounding_is_reproducible_and_resumes() -> None:
    ends = []
    for seed in (0, 0, 1):
        params = parameters(LARGE, torch.bfloat16)
        opt = ours.AdamW(params, lr=1e-3, rounding="stochastic", seed=seed)
        train(opt, params, range(3))
        saved = copy.deepcopy(opt.state_dict())
        train(opt, params, range(3, 6))
        ends.append(params)
    assert equal(ends[0], ends[1]) and not equal(ends[0], ends[2])
    again = parameters(LARGE, torch.bfloat16)
    train(ours.AdamW(again, lr=1e-3, rounding="stochastic", seed=1), again, range(3))
    opt = ours.AdamW(again, lr=1e-3, rounding="stochastic", seed=7)
    opt.load_state_dict(saved)
    train(opt, again, range(3, 6))
    assert equal(again, ends[2])


# --- refusals -----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_meta_tensor_is_refused_and_nothing_changes(name: str) -> None:
    first, second = parameters(((3,), (4,)))
    opt = getattr(ours, name)([("first", first), ("second", second)], **options_of(name))
    before = values([first, second])
    first.grad, second.grad = torch.ones(3), torch.ones(4)
    wrong = torch.nn.Parameter(torch.ones(2, device="meta"))
    wrong.grad = torch.ones(2, device="meta")
    opt.add_param_group({"params": [("far", wrong)]})
    with pytest.raises((RuntimeError, ValueError, TypeError), match="far"):
        opt.step()
    assert equal([first, second], before)


@BOTH
def test_a_differentiable_step(name: str) -> None:
    """``differentiable=True``: autograd differentiates the step with respect to parameters and gradients."""
    found = []
    for made in (getattr(ours, name), getattr(torch.optim, name)):
        start = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
        g = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
        p = start.clone()
        opt = made([p], differentiable=True, **options_of(name))
        for _ in range(2):
            p.grad = g * 1.5
            opt.step()
        found.append((p.detach(), *torch.autograd.grad((p * p).sum(), [start, g])))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)
