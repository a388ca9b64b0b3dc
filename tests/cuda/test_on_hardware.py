"""Steps over arrays on a device: on a GPU (``pytest --gpu``) kernels give the bits of the host; elsewhere, the rule its numbers."""

from __future__ import annotations

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
    if dtype == "float32" and arrays not in libraries.GPU:
        pytest.skip("rules on arrays round each op")
    model, grads = problem(np.dtype(dtype))
    there, given = (tree.map(arrays.asarray, each) for each in (model, grads))
    on_device, on_host = OPTIMIZERS[name](), OPTIMIZERS[name]()
    for _ in range(3):
        there = on_device.update(there, given)
        on_host.update(model, grads)
    for key, value in model.items():
        if arrays in libraries.GPU:
            assert cuda.why(there[key]) == ""
            assert host(there[key]).tobytes() == value.tobytes(), key
        else:
            np.testing.assert_allclose(host(there[key]), value, rtol=1e-9, atol=1e-12, err_msg=key)
