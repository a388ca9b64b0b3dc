"""An array library in the role of CuPy: its arrays report CUDA device memory, which is NumPy's memory underneath.

What an array tells of itself is what CuPy tells: device type 2 by DLPack, address, strides and stream by
``__cuda_array_interface__``. It refuses what would make the host wait for a device (its truth, its number, NumPy's
protocols, the buffer protocol) and operations with arrays of another device or of the host. So a kernel that runs on
the host under a mock driver updates it, and nothing else reads it unnoticed.

The namespace is the module `cuda_arrays`, which an array returns by ``__array_namespace__``. It has the dtypes of
NumPy, and bfloat16 where ml_dtypes is installed. `stream` sets the current stream of a device, `host` reads an array.

Over a real driver (`hardware.PageLocked`), NumPy's memory is page-locked, so that a device reads and writes it at the same address, and a
number is looked at once all work of the device is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

CUDA = 2  # kDLCUDA
LEGACY_STREAM = 1  # the default stream, as ``__cuda_array_interface__`` writes it

_streams: dict[int, int] = {}


class Placement:
    """The memory of arrays. By default where NumPy puts them, and work on them is done at once."""

    def place(self, array: np.ndarray) -> np.ndarray:
        """The array in memory that a device can access; views of such memory are left as they are."""
        return array

    def settle(self) -> None:
        """Waits until all work of devices is done."""

    def handle(self, stream: int, device: int) -> int:
        """The handle of a stream that tests call by a number."""
        return stream


#: The placement in use.
placement: Any = Placement()


@contextlib.contextmanager
def placed_by(other: Placement) -> Iterator[Placement]:
    """Uses another placement for as long as it is entered."""
    global placement  # noqa: PLW0603 - one of a process
    before, placement = placement, other
    try:
        yield other
    finally:
        placement = before


class Waiting(TypeError):
    """The host would wait for the device."""


class Device:
    """A CUDA device by its number."""

    def __init__(self, number: int = 0) -> None:
        self.id = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    __hash__: Any = None  # as CuPy's

    def __repr__(self) -> str:
        return f"cuda:{self.id}"


@contextlib.contextmanager
def stream(address: int, device: int = 0) -> Iterator[int]:
    """Makes the stream at this address the current one of a device, for as long as it is entered."""
    before = _streams.get(device, LEGACY_STREAM)
    _streams[device] = address
    try:
        yield address
    finally:
        _streams[device] = before


def current_stream(device: int = 0) -> int:
    """The address of the current stream of a device."""
    return placement.handle(_streams.get(device, LEGACY_STREAM), device)


def host(array: Any) -> np.ndarray:
    """A copy of an array in host memory, which the library itself does not allow."""
    return np.asarray(array._array if isinstance(array, Array) else array).copy()


class Array:
    """An array on a device."""

    shape: tuple[int, ...]
    dtype: Any

    def __init__(self, array: Any, device: Device | int = 0) -> None:
        self._placed = placement.place(np.asarray(array))
        self.device = device if isinstance(device, Device) else Device(device)

    @property
    def _array(self) -> np.ndarray:
        """The numbers, after all work on them."""
        placement.settle()
        return self._placed

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return namespace

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        told = self._placed.__array_interface__
        return {
            "shape": told["shape"],
            "typestr": told["typestr"],
            "data": (self._placed.ctypes.data if self._placed.size else 0, not self._placed.flags.writeable),
            "strides": None if self._placed.flags.c_contiguous else self._placed.strides,
            "stream": current_stream(self.device.id),
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device.id

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device not in (None, (CUDA, self.device.id)):
            raise BufferError(f"an array on {self.device} is not copied to {dl_device}")
        return _capsule(self._placed, self.device.id, max_version)

    def __getitem__(self, key: Any) -> Array:
        return Array(self._array[_bare(key, self.device)], self.device)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[_bare(key, self.device)] = _bare(value, self.device)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """A copy that the host can read, where the device is "cpu"."""
        return host(self) if device == "cpu" else Array(self._array.copy(), device)

    def __repr__(self) -> str:
        return f"cuda_arrays.Array(shape={self.shape}, dtype={self.dtype}, device={self.device})"


# --- DLPack ------------------------------------------------------------------------------------------------------------

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_BFLOAT = 4  # kDLBfloat


class _Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def _capsule(array: np.ndarray, device: int, max_version: Any) -> Any:
    """NumPy's capsule of an array, restated as one of a device."""
    is_bfloat16 = array.dtype.name == "bfloat16"
    exported = array.view(np.float16) if is_bfloat16 else array
    if max_version is None or max_version[0] < 1:
        capsule = exported.__dlpack__()
        tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    else:
        capsule = exported.__dlpack__(max_version=(1, 0))
        tensor = _Versioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned")).tensor
    tensor.device_type, tensor.device_id = CUDA, device
    if is_bfloat16:
        tensor.code = _BFLOAT
    return capsule


# --- operators ---------------------------------------------------------------------------------------------------------


def _bare(value: Any, device: Device | None = None) -> Any:
    """NumPy's arrays of the library's, in lists and tuples too. Raises `TypeError` for an array of the host or another device."""
    if isinstance(value, (list, tuple)):
        return type(value)(_bare(item, device) for item in value)
    if isinstance(value, Array):
        if device is not None and value.device != device:
            raise ValueError(f"arrays on {device} and on {value.device} are arguments of one function")
        return value._array
    if not isinstance(value, type) and hasattr(value, "__array_namespace__"):
        raise TypeError(f"a {type(value).__name__} is no array of this library")
    return value


def _wrapped(value: Any, device: Device) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Array(value, device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_wrapped(item, device) for item in value))
    return type(value)(_wrapped(item, device) for item in value) if isinstance(value, (list, tuple)) else value


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: Array, *args: Any, **named: Any) -> Any:
        raise Waiting(f"{name} of an array that lies on a device")

    return refuse


def _unary(name: str) -> Callable[[Array], Array]:
    return lambda self: Array(getattr(self._array, name)(), self.device)


def _binary(name: str) -> Callable[[Array, Any], Any]:
    def operator(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, bool, int, float, complex)):
            return NotImplemented
        return _wrapped(getattr(self._array, name)(_bare(other, self.device)), self.device)

    return operator


def _attribute(name: str) -> property:
    return property(lambda self: _wrapped(getattr(self._placed, name), self.device))


for _name in "bool float int complex index len iter array buffer contains".split():
    setattr(Array, f"__{_name}__", _refused(f"__{_name}__"))
for _name in "neg pos abs invert".split():
    setattr(Array, f"__{_name}__", _unary(f"__{_name}__"))
for _name in "lt le gt ge eq ne".split():
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))
for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))
    setattr(Array, f"__r{_name}__", _binary(f"__r{_name}__"))
for _name in "shape dtype ndim size nbytes T mT".split():
    setattr(Array, _name, _attribute(_name))


# --- the namespace -----------------------------------------------------------------------------------------------------

namespace = types.ModuleType("cuda_arrays", "The namespace of `Array`.")
sys.modules.setdefault("cuda_arrays", namespace)


def _devices(value: Any) -> Iterator[Device]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _devices(item)
    elif isinstance(value, Array):
        yield value.device


def _of_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, of arrays on a device."""

    def called(*args: Any, device: Any = None, **named: Any) -> Any:
        found = [*_devices([*args, *named.values()])]
        at = device if isinstance(device, Device) else found[0] if found else Device()
        bare = {key: _bare(value, at) for key, value in named.items()}
        return _wrapped(function(*(_bare(arg, at if found else None) for arg in args), **bare), at)

    return called


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array on a device, of the host's numbers or of an array on the same device."""
    if isinstance(obj, Array):
        if device is not None and device != obj.device:
            raise ValueError(f"an array on {obj.device} is asked for on {device}")
        return Array(np.asarray(obj._array, dtype=dtype, copy=copy), obj.device)
    made = np.array(obj, dtype=dtype)
    return Array(made, device if device is not None else Device())


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """An array of another dtype."""
    return x if not copy and x.dtype == dtype else Array(x._array.astype(dtype, copy=copy), x.device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of the library itself."""
    if isinstance(x, Array):
        return x
    raise BufferError("only arrays of a CUDA device can be imported")


class _Extension:
    """An extension of the namespace, such as `linalg`."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _of_numpy(getattr(self._module, name))


def _found(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    found = getattr(np, name)
    plain = isinstance(found, type) or not callable(found) or name in ("isdtype", "result_type", "finfo", "iinfo")
    if name == "__array_namespace_info__":
        return _info
    return found if plain else _of_numpy(found)


def _info() -> Any:
    own = np.__array_namespace_info__()
    return types.SimpleNamespace(
        capabilities=own.capabilities,
        default_device=Device,
        devices=lambda: [Device(0), Device(1)],
        default_dtypes=lambda *, device=None: own.default_dtypes(),
        dtypes=lambda *, device=None, kind=None: own.dtypes(kind=kind),
    )


namespace.__getattr__ = _found
vars(namespace).update(
    asarray=asarray,
    astype=astype,
    from_dlpack=from_dlpack,
    linalg=_Extension(np.linalg),
    fft=_Extension(np.fft),
    result_type=lambda *args: np.result_type(*(_bare(arg) if isinstance(arg, Array) else arg for arg in args)),
)
