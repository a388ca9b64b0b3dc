"""Steps over arrays on a device: on a GPU (``pytest --gpu``) kernels give the bits of the host; elsewhere, the rule its numbers."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import libraries
from libraries import Library, host
from optimizers import OPTIMIZERS, problem
from oxigrad import cuda, tree


@pytest.mark.on_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_gives_the_bits_of_the_host(name: str, dtype: str, arrays: Library) -> None:
    has_kernels = arrays in libraries.GPU and arrays.module != "jax"  # whose arrays may not be written
    if dtype == "float32" and not has_kernels:
        pytest.skip("rules on arrays round each op")
    model, grads = problem(np.dtype(dtype))
    there, given = (tree.map(arrays.asarray, each) for each in (model, grads))
    on_device, on_host = OPTIMIZERS[name](), OPTIMIZERS[name]()
    for _ in range(3):
        there = on_device.update(there, given)
        on_host.update(model, grads)
    for key, value in model.items():
        if has_kernels:
            assert cuda.why(there[key]) == ""
            assert host(there[key]).tobytes() == value.tobytes(), key
        else:
            np.testing.assert_allclose(host(there[key]), value, rtol=1e-9, atol=1e-12, err_msg=key)


MODULES: dict[str, dict[str, Any]] = {
    "AdamW": {"lr": 0.1, "amsgrad": True},
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "LAMB": {"lr": 0.1},
    "Lion": {"lr": 0.1},
    "NAdam": {"lr": 0.1},
    "ASGD": {"lr": 0.1, "t0": 1},
    "Prodigy": {},
}


def trained(name: str, device: str, dtype: str) -> list[bytes]:
    """The bytes of tensors on a device after some steps of an optimizer of `oxigrad.torch`."""
    torch, own = importlib.import_module("torch"), importlib.import_module("oxigrad.torch")
    random = np.random.default_rng(0)
    draw = lambda n: torch.tensor(random.standard_normal(n)).to(getattr(torch, dtype)).to(device)  # noqa: E731
    params = [torch.nn.Parameter(draw(n)) for n in (1, 37, 5000)]
    opt = getattr(own, name)(params, **MODULES[name])
    for _ in range(4):
        for p in params:
            p.grad = draw(p.numel())
        opt.step()
    return [p.detach().cpu().view(torch.uint8).numpy().tobytes() for p in params]


@pytest.mark.on_device
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", MODULES)
def test_modules_have_the_bits_of_the_host(name: str, dtype: str, arrays: Library) -> None:
    if arrays.module != "torch" or arrays not in libraries.GPU:
        pytest.skip("modules are PyTorch's, on a GPU")
    assert trained(name, "cuda", dtype) == trained(name, "cpu", dtype)
