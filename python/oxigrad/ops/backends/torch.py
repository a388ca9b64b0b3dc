"""PyTorch: tensors that record their own derivatives, and lazy views, evaluated when they are read.

Negation and conjugation are bits of a tensor, and a tensor of zeros may have no memory. The core reads no such tensor.
"""

import functools
import importlib
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import MappingProxyType
from typing import Any

import numpy as np

from oxigrad._typing import Array, Namespace
from oxigrad.ops.backends.arrays import REFUSALS, device_of, dtype_name
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory.device_memory import DEFAULT_STREAM, DeviceMemory, dense_strides
from oxigrad.ops.backends.memory.transfers import Copies

# Functions of ``xp`` that are methods of tensors with the same arguments.
_ELEMENTWISE = """abs acos acosh add asin asinh atan atan2 atanh ceil copysign cos cosh divide exp exp2 expm1
    float_power floor floor_divide greater greater_equal hypot isfinite isinf isnan less less_equal log log10 log1p log2
    logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul maximum minimum multiply negative
    not_equal pow ravel reciprocal remainder sign signbit sin sinc sinh sqrt square subtract tan tanh trunc"""
_RENAMED = {
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "bmm": "matmul",
    "clamp": "clip min max",
    "clip": "clip min max",
    "clone": "copy",
    "contiguous": "copy",
    "cumprod": "cumulative_prod axis",
    "cumsum": "cumulative_sum axis",
    "detach": "stop_gradient",
    **{name: f"special.{name}" for name in ("digamma", "erf", "erfc", "erfinv", "logit")},
    "div": "divide",
    "eq": "equal",
    "expand": "broadcast_to shape*",
    "flatten": "ravel",
    "flip": "flip axis*",
    "ge": "greater_equal",
    "gt": "greater",
    "item": "item",
    "le": "less_equal",
    "lgamma": "special.gammaln",
    "lt": "less",
    "max": "max -",  # PyTorch's with a dimension gives indices too: refused
    "min": "min -",
    "mm": "matmul",
    "mul": "multiply",
    "mv": "matmul",
    "ne": "not_equal",
    "neg": "negative",
    "permute": "permute_dims axes*",
    "reshape": "reshape shape*",
    "roll": "roll shift axis",
    "sigmoid": "special.expit",
    "squeeze": "squeeze axis",
    "std": "std axis keepdims correction=1",
    "sub": "subtract",
    "swapaxes": "swapaxes",
    "t": "matrix_transpose",
    "tile": "tile *",
    "tolist": "tolist",
    "transpose": "swapaxes",
    "tril": "tril k",
    "triu": "triu k",
    "true_divide": "divide",
    "unsqueeze": "expand_dims axis",
    "var": "var axis keepdims correction=1",
    "view": "reshape shape*",
    **{name: f"{name} axis keepdims" for name in ("all", "any", "argmax", "argmin")},
    **{f"a{name}": f"{name} axis keepdims" for name in ("max", "min")},
    **{name: f"{name} axis keepdims dtype" for name in ("mean", "prod", "sum")},
}


class TorchAdapter(Adapter):
    """PyTorch's tensors."""

    special_modules: tuple[str, ...] = ("torch.special",)
    follows_numpy = False  # its median of an even number of elements is the lower one; others have other parameters
    methods: Mapping[str, str] | None = MappingProxyType({**{name: name for name in _ELEMENTWISE.split()}, **_RENAMED})

    def detached(self, array: Array) -> Array:
        """The tensor without its gradient, in the same memory."""
        return array.detach() if array.requires_grad else array

    def resolved(self, array: Array) -> Array:
        """The tensor with its values in memory; most tensors are returned unchanged."""
        if _is_without_memory(array):
            return self.library.zeros(tuple(array.shape), dtype=array.dtype, device=array.device)
        # Inside of a transformation, a call that resolves nothing gives another tensor.
        return array.resolve_conj().resolve_neg() if array.is_conj() or array.is_neg() else array

    def in_order(self, array: Array) -> Array:
        """The tensor, or a contiguous copy of one in host memory."""
        is_on_host = isinstance(array, self.library.Tensor) and array.device.type == "cpu"
        return array.contiguous() if is_on_host else array

    def neutral(self, arrays: Sequence[Any], is_recorded: Callable[[], bool] = bool) -> AbstractContextManager[Any]:
        """A context without autocast and without inference mode.

        Autocast changes the dtype of products. Tensors of the inference mode cannot be updated outside of it.
        """
        torch, blocks = self._torch, ExitStack()
        if torch.is_inference_mode_enabled():
            blocks.enter_context(torch.inference_mode(False))
            blocks.enter_context(torch.no_grad())
        for kind in sorted({array.device.type for array in arrays}):
            if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
                blocks.enter_context(torch.autocast(kind, enabled=False))
        return blocks

    def strides(self, array: Array) -> tuple[int, ...]:
        """By ``Tensor.stride``."""
        return tuple(array.stride())

    def is_in_fortran_order(self, array: Array) -> bool:
        """By ``Tensor.is_contiguous``, also of the tensor with its axes reversed."""
        return not array.is_contiguous() and array.permute(*reversed(range(array.ndim))).is_contiguous()

    def obstacle(self, array: Array) -> str:
        """The reason: a layout, or a lazy view, that cannot be updated in place."""
        if why := self.unreadable(array):
            return why
        if array.is_neg():
            return "a lazy view, with its negative bit set: expected tensor.resolve_neg()"
        if array.is_conj():
            return "a lazy view, with its conjugate bit set: expected tensor.resolve_conj()"
        if _is_without_memory(array):
            return "a tensor of zeros without memory: expected torch.zeros"
        return ""

    def unreadable(self, array: Array) -> str:
        """The reason: an unsupported layout, or a storage that was freed or shrunk."""
        if str(array.layout) != "torch.strided":
            return f"a tensor of layout {array.layout}: expected torch.strided"
        if (length := _shrunk_to(array)) is not None:
            what = (
                "was shrunk: expected one that has all of its elements"
                if length
                else "is freed: expected one that has memory"
            )
            return f"a tensor whose storage {what}"
        return ""

    def is_traced(self, array: Array) -> bool:
        """Whether it is a tensor inside a transform such as ``torch.func.vmap``, which has no storage by design."""
        if str(array.layout) != "torch.strided":
            return False
        try:
            array.untyped_storage()
        except REFUSALS:
            return True
        return False

    def is_apart(self, p: Array, g: Array) -> bool:
        """Whether layout, device or placements differ: PyTorch raises no error for some of them.

        It takes sparse tensors, redistributes ``DTensor``s, and reads memory that was freed.
        """
        plain = self._torch.Tensor, self._torch.nn.Parameter
        if not (type(g) in plain if type(p) in plain else isinstance(g, type(p))):
            return True
        if p.layout != g.layout or p.device != g.device or hasattr(p, "placements"):
            return True
        return _shrunk_to(p) is not None or _shrunk_to(g) is not None

    def place(self, array: Array) -> str | None:
        """The device, marked for a ``FakeTensor``; the placements of a ``DTensor``."""
        if hasattr(array, "placements"):
            return f"a DTensor of placements {tuple(array.placements)} on {array.device_mesh}"
        return f"{array.device}, fake" if hasattr(array, "fake_mode") else str(array.device)

    def device_memory(self, array: Array) -> DeviceMemory | None:
        """The memory of a tensor on a CUDA device; None for lazy views, and for tensors without storage."""
        if not array.is_cuda or hasattr(array, "fake_mode") or hasattr(array, "placements") or self.obstacle(array):
            return None
        device = array.device.index
        is_plain, shape = array.is_contiguous(), tuple(array.shape)
        strides = None if is_plain else dense_strides(shape, array.stride())
        return DeviceMemory(array.data_ptr(), device, dtype_name(array.dtype), shape, is_plain, strides)

    def current_stream(self, array: Array, device: int) -> int:
        """PyTorch's current stream of the device."""
        return self._cuda.current_stream(device).cuda_stream

    def assign(self, array: Array, value: Array) -> None:
        """By ``Tensor.copy_``."""
        array.copy_(value)

    def keep_until(self, arrays: Iterable[Any], device: int, stream: int) -> None:
        """By ``Tensor.record_stream``, unless the stream is the default one, whose order all other memory follows."""
        if stream != DEFAULT_STREAM:
            used = self._cuda.current_stream(device)
            for array in arrays:
                array.record_stream(used)

    @functools.cached_property
    def _torch(self) -> Namespace:
        return importlib.import_module("torch")

    @functools.cached_property
    def _cuda(self) -> Namespace:
        return importlib.import_module("torch.cuda")

    def transfers(self, array: Array) -> Copies:
        """Copies by streams of the device, if it has streams."""
        return importlib.import_module("oxigrad.ops.backends.memory.torch_transfers").device_of(array.device)

    def to_host(self, array: Array) -> np.ndarray:
        """The tensor's memory as a NumPy array, or a copy."""
        array = self.resolved(array)
        if _shrunk_to(array) is not None:
            raise BufferError("the storage of the tensor was freed or shrunk: its elements cannot be read")
        return super().to_host(array.detach())

    def copied_like(self, array: Array, like: Array) -> Array:
        """By ``Tensor.to``: ``torch.asarray`` copies no array of NumPy without axes to a device."""
        tensor = array.detach() if isinstance(array, self.library.Tensor) else self.library.from_numpy(array)
        return tensor.to(like.device, like.dtype, copy=True)

    def op_sign(self, x: Array) -> Array:
        """Computes the sign by ``torch.sgn``, which returns zero for NaN.

        Assignment by a mask would synchronize with the device if ``x`` is a number.
        """
        sign = self.library.sgn(x)
        return self.library.where(self.library.isnan(x), x, sign) if x.is_floating_point() else sign

    def segment_sum(self, values: Array, numbers: Array, size: int) -> Array:
        """By ``Tensor.index_put_``, which adds up elements of one index."""
        zeros = self.library.zeros(size, dtype=values.dtype, device=device_of(values))
        return zeros.index_put_((numbers,), values, accumulate=True)


def container(cls: type) -> Any:
    """The attributes in which a module holds its parameters, buffers and submodules.

    See `oxigrad.ops.backends.container_of`.
    """
    modules = sys.modules.get("torch.nn")
    if modules is None or not issubclass(cls, modules.Module):
        return None
    return [("_parameters", "requires_grad"), ("_buffers", False), ("_modules", True)], "grad"


def _is_without_memory(tensor: Array) -> bool:
    """Whether a tensor is one of zeros without memory, as derivatives of PyTorch may be."""
    return tensor._is_zerotensor()


def _shrunk_to(tensor: Array) -> int | None:
    """The bytes of a tensor's storage if its elements need more, else None."""
    try:
        storage = tensor.untyped_storage()
    except REFUSALS:  # a tensor inside a transform such as ``vmap`` has no storage by design
        return None
    if storage.device.type not in ("cpu", "cuda") or hasattr(tensor, "fake_mode") or not tensor.numel():
        return None
    strides = tensor.stride()
    last = tensor.storage_offset() + sum(map(operator.mul, tensor.shape, strides)) - sum(strides)
    length = storage.nbytes()
    return length if length < (last + 1) * tensor.itemsize else None


ADAPTER = TorchAdapter
