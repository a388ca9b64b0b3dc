"""PyTorch's CUDA tensors without memory, by `FakeTensorMode`: shapes, dtypes and devices are computed, numbers are not.

No driver is needed. What would read a number on the host raises: PyTorch itself refuses ``.item()`` and shapes that depend on
numbers, `Alone` refuses copies between the host and a device, and further questions that are answered by numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from mock_driver import MockDriver
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from oxigrad.cuda.driver import driver

ASKING = {"_local_scalar_dense", "equal", "is_nonzero", "nonzero", "allclose", "masked_select", "_assert_async"}


class Waiting(TypeError):
    """The host would wait for the device, or copies memory to it or from it."""


class Alone(TorchDispatchMode):
    """Refuses copies to the host, and what is answered by numbers of a device; copies from the host too, unless they are ``given``."""

    def __init__(self, *, given: bool = False) -> None:
        super().__init__()
        self.given = given

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.split("::")[1]
        sources = {tensor.device.type for tensor in _tensors((args, kwargs))}
        if name in ASKING and "cuda" in sources:
            raise Waiting(f"{name} of a tensor on a device")
        result = func(*args, **(kwargs or {}))
        if name == "_to_copy" and sources != (to := {tensor.device.type for tensor in _tensors(result)}):
            if not (self.given and to == {"cuda"}):
                raise Waiting(f"{name} from {sources} to {to}")
        elif name == "copy_" and len(sources) > 1 and not (self.given and args[0].is_cuda):
            raise Waiting(f"{name} between {sources}")
        return result


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


@contextlib.contextmanager
def cuda() -> Iterator[Callable[[Any], Any]]:
    """A context in which PyTorch has a CUDA device without memory; a function that makes a tensor there like an array of NumPy's."""

    def asarray(values: Any) -> Any:
        values = np.asarray(values)
        dtype = getattr(torch, "bool" if values.dtype == bool else values.dtype.name)
        return torch.empty(values.shape, dtype=dtype, device="cuda")

    with FakeTensorMode(allow_non_fake_inputs=False):
        yield asarray


@contextlib.contextmanager
def posing(monkeypatch: Any) -> Iterator[Callable[[Any], Any]]:
    """A context in which tensors in host memory pose as CUDA tensors; a function that makes one like an array of NumPy's.

    Kernels that run on the host under a mock driver update them. Other tensors remain those of the host. Tests are skipped over
    other drivers.
    """
    if not isinstance(driver(), MockDriver):
        pytest.skip("by the mock driver only: tensors of the host pose as CUDA tensors")
    from oxigrad.ops.backends import DeviceMemory, dtype_name
    from oxigrad.ops.backends.memory.device_memory import dense_strides
    from oxigrad.ops.backends.torch import TorchAdapter
    from oxigrad.step.parameters.executor import DEVICE, RULE, Executor
    from oxigrad.step.plan import assignment, plan
    from oxigrad.torch.step import plan as tensor_plan

    posed: list[Any] = []
    own = plan.executor_of

    def device_memory(self: Any, array: Any) -> DeviceMemory | None:
        if self.obstacle(array):
            return None
        is_plain, shape = array.is_contiguous(), tuple(array.shape)
        strides = None if is_plain else dense_strides(shape, array.stride())
        return DeviceMemory(array.data_ptr(), 0, dtype_name(array.dtype), shape, is_plain, strides)

    def executor_of(array: Any, elementwise: bool = True) -> Executor:
        # A module's parameter is another tensor of the same memory. All empty tensors have the address 0.
        addresses = {each.data_ptr() for each in posed} - {0}
        is_posed = isinstance(array, torch.Tensor) and array.data_ptr() in addresses
        if not is_posed:
            return own(array, elementwise)
        return DEVICE if elementwise else RULE

    def asarray(values: Any) -> Any:
        made = values.clone() if isinstance(values, torch.Tensor) else torch.tensor(np.array(values))
        posed.append(made)
        return made

    monkeypatch.setattr(TorchAdapter, "device_memory", device_memory)

    def keep_until(self: Any, found: Any, device: int, stream: int) -> None:
        assert all(isinstance(array, torch.Tensor) for array in found)

    monkeypatch.setattr(TorchAdapter, "current_stream", lambda self, array, device: 0)
    monkeypatch.setattr(TorchAdapter, "keep_until", keep_until)
    for module in (plan, assignment, tensor_plan):
        monkeypatch.setattr(module, "executor_of", executor_of)
    yield asarray
