"""Clipping by the global norm in the step, ``max_norm``: beside chains of `oxigrad.optim`, and beside torch.nn.utils.clip_grad_norm_."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from oxigrad import optim  # noqa: E402
from oxigrad.torch.group import TensorGroup  # noqa: E402
from torch_problems import OURS, copies, equal, gradients, loss_for, parameters, shapes_for, train, values  # noqa: E402
from torch_requirements import device_mesh  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

# Their steps read the loss, or are other ones.
OTHERS = {"MoMo", "MoMoAdam", "PolyakSGD", "LBFGS", "SparseAdam"}
CHAINS: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
    "AdamW": ({"lr": 0.1}, lambda: optim.AdamW(0.1, compat="torch")),
    "SGD": ({"lr": 0.1, "momentum": 0.9}, lambda: optim.SGD(0.1, 0.9, compat="torch")),
    "RMSprop": ({"lr": 0.1}, lambda: optim.RMSprop(0.1, compat="torch")),
    "Lion": ({"lr": 0.1}, lambda: optim.Lion(0.1)),
    "LAMB": ({"lr": 0.1}, lambda: optim.LAMB(0.1)),
    "Prodigy": ({"lr": 1.0}, lambda: optim.Prodigy(1.0)),
}


@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e6, float("inf")])
@pytest.mark.parametrize("name", CHAINS)
def test_a_clipped_step_has_the_bits_of_a_chain(name: str, max_norm: float) -> None:
    options, made = CHAINS[name]
    params = parameters(((300, 7), (5,), ()))
    model = {str(i): p.detach().cpu().numpy().copy() for i, p in enumerate(params)}
    opt, chain = (
        OURS.make(name, params, max_norm=max_norm, **options),
        optim.chain(optim.ClipByGlobalNorm(max_norm), made()),
    )
    for step in range(4):
        found = gradients(params, step)
        model = chain.update(model, {str(i): g.cpu().numpy().copy() for i, g in enumerate(found)})
        for p, g in zip(params, found, strict=True):
            p.grad = g
        opt.step()
    for i, p in enumerate(params):
        np.testing.assert_array_equal(p.detach().cpu().numpy(), model[str(i)])


def clipped(params: Any, max_norm: float, step: int) -> list[Any]:
    """The gradients of a step, scaled down in float64 to their norm."""
    found = gradients(params, step)
    norm = float(torch.stack([g.to(torch.complex128).abs().square().sum() for g in found]).sum().sqrt())
    return [g * min(1.0, max_norm / norm) for g in found]


@pytest.mark.parametrize("name", sorted({*OURS.names} - OTHERS))
def test_every_class_takes_a_step_with_clipped_gradients(name: str) -> None:
    params = parameters(shapes_for(name), torch.float64)
    others = copies(params)
    opt, plain = OURS.make(name, params, max_norm=0.7), OURS.make(name, others)
    for step in range(3):
        for p, g in zip(others, clipped(others, 0.7, step), strict=True):
            p.grad = g
        plain.step(**loss_for(plain))
        train(opt, params, [step])
    torch.testing.assert_close(values(params), values(others), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "dtypes", [(torch.float32,) * 3, (torch.bfloat16, torch.float32, torch.float64)], ids=["one", "several"]
)
def test_the_norm_is_that_of_torch(dtypes: Any) -> None:
    params = [torch.nn.Parameter(p.detach().to(dtype)) for p, dtype in zip(parameters(), dtypes, strict=True)]
    others = copies(params)
    opt, theirs = ours.SGD(params, lr=0.1, max_norm=0.5), torch.optim.SGD(others, lr=0.1)
    for step in range(3):
        train(opt, params, [step])
        for p, g in zip(others, gradients(others, step), strict=True):
            p.grad = g
        torch.nn.utils.clip_grad_norm_(others, 0.5)
        theirs.step()
    for p, q in zip(params, others, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5 if len({*dtypes}) == 1 else 1e-2, atol=1e-5)


def test_complex_gradients_and_none_are_counted_as_torch_does() -> None:
    params = [
        torch.nn.Parameter(torch.ones(3, dtype=torch.complex64)),
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(2)),
    ]
    opt = ours.SGD(params, lr=1.0, max_norm=1.0)
    params[0].grad = torch.tensor([3j, 0, 0])
    params[1].grad = torch.tensor([4.0, 0.0])
    opt.step()
    torch.testing.assert_close(params[0].detach(), torch.tensor([1 - 0.6j, 1, 1]))
    torch.testing.assert_close(params[1].detach(), torch.tensor([0.2, 1.0]))
    assert torch.equal(params[2].detach(), torch.ones(2))


def test_a_scaled_step_clips_the_unscaled_gradient() -> None:
    results = []
    for scale in (1.0, 1024.0):
        params = parameters()
        opt = ours.AdamW(params, lr=0.1, max_norm=0.5, amp_fused=True)
        scaler = torch.amp.GradScaler(torch.get_default_device().type, init_scale=scale)
        for step in range(3):
            given = zip(params, gradients(params, step), strict=True)
            opt.zero_grad()
            scaler.scale(torch.stack([(p * g).sum() for p, g in given]).sum()).backward()
            scaler.step(opt)
            scaler.update()
        results.append(values(params))
    assert equal(*results)


def test_each_group_has_a_limit_for_the_norm_of_all() -> None:
    params = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    opt = ours.SGD([{"params": params[:1], "max_norm": 1.0}, {"params": params[1:], "max_norm": 2.0}], lr=1.0)
    params[0].grad, params[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0, 0.0])
    opt.step()
    torch.testing.assert_close([p[0].item() for p in params], [-0.6, -1.6])
    opt.param_groups[1]["max_norm"] = None
    with pytest.raises(ValueError, match=r"param_groups\[1\]: max_norm is None"):
        opt.step()


def test_the_limit_may_change_and_is_in_the_state() -> None:
    params, found = parameters(), []
    opt = ours.SGD(params, lr=1.0, max_norm=torch.tensor(1.0))
    for limit in (1.0, 0.5, float("inf")):
        opt.param_groups[0]["max_norm"] = limit
        before = values(params)
        train(opt, params, [0])
        moved = zip(params, before, strict=True)
        found.append(torch.stack([(p.detach() - q).square().sum() for p, q in moved]).sum().sqrt().item())
    norm = torch.stack([g.square().sum() for g in gradients(params, 0)]).sum().sqrt().item()
    np.testing.assert_allclose(found, [1.0, 0.5, norm], rtol=1e-5)
    assert opt.state_dict()["param_groups"][0]["max_norm"] == float("inf")


@pytest.mark.parametrize(
    ("value", "error"), [(-1.0, ValueError), (float("nan"), ValueError), ("1", TypeError), (True, TypeError)]
)
def test_limits_are_checked(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_norm"):
        ours.AdamW(parameters(), max_norm=value)
    with pytest.raises(error, match="max_norm"):
        ours.Lion([{"params": parameters(), "max_norm": value}])


def recorded(params: Any) -> Any:
    return ours.Adam(params, max_norm=1.0, differentiable=True)


def of_sparse_rows(params: Any) -> Any:
    params[0].grad = params[0].grad.to_sparse()
    return ours.SGD(params, lr=1.0, max_norm=1.0)


@pytest.mark.parametrize("made", [recorded, of_sparse_rows])
def test_steps_of_torch_do_not_clip(made: Callable[[Any], Any]) -> None:
    params = parameters()
    for p, g in zip(params, gradients(params, 0), strict=True):
        p.grad = g
    before = values(params)
    with pytest.raises(RuntimeError, match="max_norm is not supported"):
        made(params).step()
    assert equal(params, before)


def test_rows_of_sparse_gradients_are_not_clipped() -> None:
    with pytest.raises(TypeError, match="SparseAdam does not support max_norm"):
        ours.SparseAdam(parameters(), max_norm=1.0)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build of PyTorch has no torch.distributed")
def test_parts_of_distributed_tensors_are_not_clipped() -> None:
    from torch.distributed.tensor import distribute_tensor

    with device_mesh() as mesh:
        p = torch.nn.Parameter(distribute_tensor(torch.ones(4), mesh))
        p.grad = distribute_tensor(torch.ones(4), mesh)
        with pytest.raises(RuntimeError, match="no max_norm"):
            ours.AdamW([p], max_norm=1.0).step()


@pytest.mark.parametrize("square", [None, lambda _: 1.0], ids=["", "norm measured before"])
@pytest.mark.parametrize(
    ("storage", "options"),
    [
        (None, {}),
        ("bfloat16", {}),
        ("bfloat16", {"rounding": "stochastic"}),
        ("bfloat16", {"master": True, "state_dtype": "float32"}),
        ("float16", {"master": True}),
    ],
)
def test_clipped_steps_of_adamw_run_as_native_code(
    storage: str | None, options: dict[str, Any], square: Callable[[Any], float] | None
) -> None:
    """The update reads memory once; interpreted, it takes 1.6 times the processor's time."""
    opt = ours.AdamW(parameters(dtype=getattr(torch, storage or "float32")), max_norm=1.0, **options)
    group = TensorGroup(opt.entry, opt.param_groups[0], storage, scaled=False, square=square)
    assert group.program(group.rule()).is_native
