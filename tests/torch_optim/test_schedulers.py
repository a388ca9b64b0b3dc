"""Learning rate schedulers and `torch.optim.swa_utils` with oxigrad.torch: the same values as with torch."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from torch.optim import lr_scheduler, swa_utils  # noqa: E402

from optimizers import IN_TORCH  # noqa: E402
from torch_problems import copies, equal, parameters, train  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

STEPS = 8
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "ChainedScheduler": lambda opt: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(opt, 0.5, 3), lr_scheduler.ExponentialLR(opt, 0.9)]
    ),
    "ConstantLR": lambda opt: lr_scheduler.ConstantLR(opt, 0.5, 3),
    "CosineAnnealingLR": lambda opt: lr_scheduler.CosineAnnealingLR(opt, 5),
    "CosineAnnealingWarmRestarts": lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, 3),
    "CyclicLR": lambda opt: lr_scheduler.CyclicLR(opt, 0.01, 0.1, step_size_up=3),
    "ExponentialLR": lambda opt: lr_scheduler.ExponentialLR(opt, 0.9),
    "LambdaLR": lambda opt: lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch)),
    "LinearLR": lambda opt: lr_scheduler.LinearLR(opt, 0.2, total_iters=5),
    "MultiStepLR": lambda opt: lr_scheduler.MultiStepLR(opt, [2, 5]),
    "MultiplicativeLR": lambda opt: lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.9),
    "OneCycleLR": lambda opt: lr_scheduler.OneCycleLR(opt, 0.1, total_steps=STEPS + 1),
    "PolynomialLR": lambda opt: lr_scheduler.PolynomialLR(opt, 6, 2.0),
    "ReduceLROnPlateau": lambda opt: lr_scheduler.ReduceLROnPlateau(opt, patience=1, factor=0.5),
    "SWALR": lambda opt: swa_utils.SWALR(opt, 0.01, anneal_epochs=4),
    "SequentialLR": lambda opt: lr_scheduler.SequentialLR(
        opt, [lr_scheduler.LinearLR(opt, 0.1, total_iters=3), lr_scheduler.CosineAnnealingLR(opt, 5)], [3]
    ),
    "StepLR": lambda opt: lr_scheduler.StepLR(opt, 2, 0.5),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {"AdamW": {"lr": 0.05}, "SGD": {"lr": 0.05, "momentum": 0.9}}


def test_all_schedulers_are_included() -> None:
    found = {
        name
        for module in (lr_scheduler, swa_utils)
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, lr_scheduler.LRScheduler)
    }
    assert found - {"LRScheduler", "_LRScheduler"} == SCHEDULERS.keys()


def advance(scheduler: Any, step: int) -> None:
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        scheduler.step(1.0 + 0.1 * step)  # never better than the first
    else:
        scheduler.step()


@pytest.mark.parametrize("tensor", [False, True], ids=["number", "tensor"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler(name: str, optimizer: str, tensor: bool) -> None:
    both = []
    for made in (getattr(ours, optimizer), getattr(torch.optim, optimizer)):
        params, options = parameters(), copy.deepcopy(OPTIMIZERS[optimizer])
        if tensor:
            options["lr"] = torch.tensor(options["lr"])
        opt = made(params, **options)
        scheduler = SCHEDULERS[name](opt)
        seen = []
        for step in range(STEPS):
            train(opt, params, [step])
            advance(scheduler, step)
            group = opt.param_groups[0]
            seen.append([float(group["lr"]), group.get("betas"), group.get("momentum")])
        both.append((params, seen))
    (params, seen), (theirs, expected) = both
    assert seen == expected and len({str(values) for values in seen}) > 1
    for p, q in zip(params, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


# torch does not save the function of a scheduler.
@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name not in ("LambdaLR", "MultiplicativeLR")])
def test_training_resumes_with_a_scheduler(name: str) -> None:
    params = parameters()
    opt = ours.AdamW(params, lr=0.05)
    scheduler = SCHEDULERS[name](opt)
    for step in range(STEPS // 2):
        train(opt, params, [step])
        advance(scheduler, step)
    others = copies(params)
    other = ours.AdamW(others, lr=0.05)
    resumed = SCHEDULERS[name](other)
    saved = copy.deepcopy((opt.state_dict(), scheduler.state_dict()))
    other.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    for step in range(STEPS // 2, STEPS):
        for one, its, schedule in ((opt, params, scheduler), (other, others, resumed)):
            train(one, its, [step])
            advance(schedule, step)
    assert equal(params, others)


def test_an_averaged_model() -> None:
    """Stochastic weight averaging with `AveragedModel`, `SWALR` and `update_bn`."""
    averages = []
    for made in (ours.SGD, torch.optim.SGD):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        average = swa_utils.AveragedModel(model)
        opt = made(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = swa_utils.SWALR(opt, 0.05, anneal_epochs=2)
        x = torch.randn(8, 3)
        for _ in range(5):
            opt.zero_grad()
            model(x).square().sum().backward()
            opt.step()
            scheduler.step()
            average.update_parameters(model)
        swa_utils.update_bn([x], average)
        averages.append([*average.state_dict().values()])
    for a, b in zip(*averages, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{}, {"in_backward": True}, {"state_device": "slots.safetensors"}],
    ids=["step", "in_backward", "file"],
)
@pytest.mark.parametrize("name", IN_TORCH)
def test_a_warmup_from_zero_counts_gradients_of_zero(
    name: str, options: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step of the adapters of a model has the rate zero, and gradients that are zero for one factor of each product."""
    if options.get("state_device") and torch.get_default_device().type != "cpu":
        pytest.skip("a file has the slots of parameters in host memory")
    monkeypatch.chdir(tmp_path)
    found = []
    for made in (getattr(torch.optim, name), getattr(ours, name)):
        down, up = torch.nn.Parameter(torch.full((2, 3), 0.3)), torch.nn.Parameter(torch.zeros(3, 2))
        momentum = {"momentum": 0.9, "dampening": 0.5} if name == "SGD" else {}
        opt = made([down, up], lr=0.1, **momentum, **({} if made is getattr(torch.optim, name) else options))
        scheduler = lr_scheduler.LambdaLR(opt, lambda epoch: epoch / 5)
        for _ in range(4):
            opt.zero_grad()
            (torch.ones(4, 3) @ (up @ down) - 1).square().sum().backward()
            opt.step()
            scheduler.step()
        found.append((down.detach(), up.detach()))
    for theirs, mine in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_sparse_adam_counts_rows_of_zeros_at_the_rate_zero() -> None:
    found = []
    for made in (torch.optim.SparseAdam, ours.SparseAdam):
        table = torch.nn.Parameter(torch.ones(3, 2, device="cpu"))
        opt = made([table])
        for rate, size in ((0.0, 0.0), (0.1, 1.0), (0.1, 2.0)):
            opt.param_groups[0]["lr"] = rate
            rows, values = torch.tensor([[1]], device="cpu"), torch.full((1, 2), size, device="cpu")
            table.grad = torch.sparse_coo_tensor(rows, values, table.shape, check_invariants=False)
            opt.step()
        found.append(table.detach())
    torch.testing.assert_close(*found)
