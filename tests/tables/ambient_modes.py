"""Modes in which a step may be taken: states of a thread or of a process that libraries read. A step has the same bits in all of them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch: Any
try:
    import torch
except ImportError:
    torch = None

Mode = Callable[[], contextlib.AbstractContextManager[Any]]


def setting(read: Callable[[], Any], write: Callable[[Any], Any], value: Any) -> Mode:
    """The mode in which a setting of the process has another value."""

    @contextlib.contextmanager
    def mode() -> Iterator[None]:
        before = read()
        write(value)
        try:
            yield
        finally:
            write(before)

    return mode


@contextlib.contextmanager
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


NUMPY: dict[str, Mode] = {
    "errstate": lambda: np.errstate(all="raise"),
    "warnings": warnings_are_errors,
    "printoptions": lambda: np.printoptions(precision=1, threshold=2),
}


def _default(dtype: str) -> Mode:
    return setting(torch.get_default_dtype, torch.set_default_dtype, getattr(torch, dtype))


def torch_modes() -> dict[str, Mode]:
    """The modes of PyTorch, and NumPy's."""
    functions = torch.overrides.TorchFunctionMode

    class Functions(functions):  # type: ignore[misc, valid-type]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    def is_deterministic() -> bool:
        return bool(torch.are_deterministic_algorithms_enabled())

    return {
        **NUMPY,
        "autocast bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
        "autocast float16": lambda: torch.autocast("cpu", torch.float16),
        "default float64": _default("float64"),
        "default bfloat16": _default("bfloat16"),
        "default float16": _default("float16"),
        "default device": lambda: torch.device("meta"),
        "threads": setting(torch.get_num_threads, torch.set_num_threads, 3),
        "inference": torch.inference_mode,
        "without gradients": torch.no_grad,
        "with gradients": torch.enable_grad,
        "deterministic": setting(is_deterministic, torch.use_deterministic_algorithms, True),
        "functions": Functions,
        "saved tensors": torch.autograd.graph.save_on_cpu,
    }


def jax_modes() -> dict[str, Mode]:
    """The modes of JAX, and NumPy's; without those whose purpose is an error, such as ``jax.transfer_guard``."""
    jax = pytest.importorskip("jax")
    return {
        **NUMPY,
        "debug_nans": lambda: jax.debug_nans(True),
        "debug_infs": lambda: jax.debug_infs(True),
        "rank promotion": lambda: jax.numpy_rank_promotion("raise"),
        "dtype promotion": lambda: jax.numpy_dtype_promotion("strict"),
        "float64": lambda: jax.enable_x64(True),
        "leaks": jax.checking_leaks,
        "eager": jax.disable_jit,
        "random": lambda: jax.default_prng_impl("rbg"),
    }
