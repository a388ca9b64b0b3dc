"""Keys of parameter groups that PyTorch's class has no argument for, and sparse gradients of tensors in any order of memory."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from optimizers import IN_TORCH

KEYS: dict[str, Any] = {"weight_decay": 0.3, "decoupled_weight_decay": True, "maximize": True}


@pytest.mark.parametrize("name", [*IN_TORCH, "SparseAdam"])
def test_a_step_reads_the_keys_that_torch_s_class_reads(name: str, library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    start, *grads = torch.randn(5, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    coupled = {"weight_decay": 0.3, "decoupled_weight_decay": False}
    for keys in ({}, *({key: value} for key, value in KEYS.items()), KEYS, coupled):
        found = []
        for module in (torch.optim, own):
            p = torch.nn.Parameter(start.clone())
            opt = getattr(module, name)([{"params": [p], **keys}], lr=0.1)
            for g in grads:
                p.grad = g.to_sparse(1) if name == "SparseAdam" else g.clone()
                opt.step()
            found.append(p.detach().numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-12, err_msg=str(keys))


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_the_kind_of_weight_decay_changes_between_steps(name: str, dtype: str, library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    generator = torch.Generator().manual_seed(0)
    start, *grads = torch.randn(9, 4, 3, generator=generator).to(getattr(torch, dtype))
    found = []
    for module in (torch.optim, own):
        p = torch.nn.Parameter(start.clone())
        opt = getattr(module, name)([p], lr=0.1, weight_decay=0.3)
        for step, g in enumerate(grads):
            opt.param_groups[0]["decoupled_weight_decay"] = step // 2 % 2 == 0
            p.grad = g.clone()
            opt.step()
        found.append(p.detach().double().numpy())
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == "float64" else {"rtol": 3e-2, "atol": 3e-2}
    np.testing.assert_allclose(found[1], found[0], **tolerance)


def test_sparse_adam_of_tensors_that_are_not_contiguous(library: Any) -> None:
    torch, own = library("torch"), importlib.import_module("oxigrad.torch")
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(6, 8, 5, dtype=torch.float64, generator=generator)
    layouts = {
        "transposed": lambda x: x[:, :, 0].t(),
        "strided": lambda x: x[::2, ::3, 1],
        "offset": lambda x: x[1:, 2:, 2],
        "columns": lambda x: x[:, 0, :],
        "permuted": lambda x: x.permute(2, 0, 1),
        "contiguous": lambda x: x[0],
    }
    for layout, view in layouts.items():
        found = []
        for module in (torch.optim, own):
            held = base.clone()
            p = torch.nn.Parameter(view(held))
            opt = module.SparseAdam([p], lr=0.1)
            draw = torch.Generator().manual_seed(1)
            for rows in ([0, 1, 0], [2, 2], [1]):
                values = torch.randn(len(rows), *p.shape[1:], dtype=torch.float64, generator=draw)
                p.grad = torch.sparse_coo_tensor([rows], values, p.shape, check_invariants=True)
                opt.step()
            found.append((p.detach().clone().numpy(), held.numpy(), opt.state[p]["exp_avg"].numpy()))
        for ours, theirs in zip(found[1], found[0], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14, err_msg=layout)
