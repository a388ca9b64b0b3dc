"""MLX: a namespace with the standard's signatures. NumPy computes the functions that MLX lacks, in shared memory.

MLX's arrays have no device, and are evaluated lazily. Its linear algebra is of real matrices, in host memory.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._typing import Array, Axis, Device, Dtype, Key, Namespace, Results
from oxigrad.ops.backends.arrays import dtype_name, is_array
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory.copies import to_host

# Creation functions: the standard gives them an argument ``device``, which MLX lacks.
_MADE = "arange empty empty_like eye full full_like linspace ones ones_like zeros zeros_like".split()
# Functions that MLX lacks.
_LACKING = (
    "copysign hypot isin nextafter nonzero repeat signbit unique_all unique_counts unique_inverse unique_values".split()
)
# Functions that MLX has for real matrices only.
_OF_REAL_MATRICES = {"cholesky", "det", "eigh", "eigvalsh", "inv", "pinv", "slogdet"}


class _Namespace(types.ModuleType):
    """MLX's functions, overridden by the functions that are set as attributes."""

    def __init__(self, module: Namespace) -> None:
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _Linalg(_Namespace):
    """MLX's linear algebra of real matrices, and NumPy's for everything else."""

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._call, name, getattr(np.linalg, name))

    def _call(self, name: str, numpys: Callable[..., Any], x: Array, *args: Array, **named: Any) -> Results:
        module = self._module
        is_own = name in _OF_REAL_MATRICES and not (args or named) and dtype_name(x.dtype) in ("float32", "float64")
        if not is_own:
            return _by_numpy(module, numpys, x, *args, **named)
        result = getattr(module.linalg, name)(x, stream=module.cpu)  # MLX has it on the CPU only
        return tuple(result) if isinstance(result, (list, tuple)) else result


def complete(module: Namespace) -> Namespace:
    """The namespace of the standard over the module ``mlx.core``."""
    namespace = _Namespace(module)
    functions: dict[str, Any] = {name: functools.partial(_make, getattr(module, name)) for name in _MADE}
    functions |= {name: functools.partial(_by_numpy, module, getattr(np, name)) for name in _LACKING}
    functions |= {name: functools.partial(_reduce, getattr(module, name)) for name in ("sum", "prod")}
    functions |= {
        function.__name__[1:]: functools.partial(function, module) for function in (_asarray, _argsort, _clip, _sort)
    }
    vars(namespace).update(functions, astype=_astype, bool=module.bool_, linalg=_Linalg(module))
    return namespace


def _make(function: Callable[..., Any], *args: Array, device: Device = None, **named: Any) -> Array:
    """Calls a creation function without ``device`` and without arguments that are None."""
    return function(*args, **{name: value for name, value in named.items() if value is not None})


def _reduce(
    function: Callable[..., Any], x: Array, /, *, axis: Axis = None, dtype: Dtype = None, keepdims: bool = False
) -> Array:
    """A reduction, of elements converted to ``dtype``."""
    return function(x if dtype is None else x.astype(dtype), axis=axis, keepdims=keepdims)


def _astype(x: Array, dtype: Dtype, /, *, copy: bool = True) -> Array:
    return x.astype(dtype) if copy or x.dtype != dtype else x


def _clip(module: Namespace, x: Array, /, min: Array | None = None, max: Array | None = None) -> Array:
    return module.clip(x, min, max)


def _asarray(
    module: Namespace, obj: Array, /, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None
) -> Array:
    """An array of the same dtype as NumPy's `asarray` gives: MLX alone converts float64 to float32."""
    if isinstance(obj, module.array) and not copy:
        return obj if dtype in (None, obj.dtype) else obj.astype(dtype)
    if dtype is None and isinstance(obj, (np.ndarray, np.generic)):
        name = obj.dtype.name
        dtype = getattr(module, {"complex128": "complex64", "bool": "bool_"}.get(name, name))
        obj = obj.astype(np.float32) if name == "bfloat16" else obj  # which represents its values exactly
    return module.array(obj, dtype)


def _sort(module: Namespace, x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    ascending = module.sort(x, axis)
    return module.flip(ascending, axis=axis) if descending else ascending


def _argsort(module: Namespace, x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The order of the elements; equal elements keep theirs, in descending order too."""
    if not descending:
        return module.argsort(x, axis)
    order = module.argsort(module.flip(x, axis=axis), axis)
    return x.shape[axis] - 1 - module.flip(order, axis=axis)


def _by_numpy(module: Namespace, function: Callable[..., Any], *args: Array, **named: Any) -> Results:
    """The results of NumPy's function, as arrays of MLX's."""
    result = function(*(to_host(x) if is_array(x) else x for x in args), **named)
    if not isinstance(result, tuple):
        return _asarray(module, result)
    converted = [_asarray(module, x) for x in result]
    return type(result)(*converted) if hasattr(result, "_fields") else tuple(converted)


class MLXAdapter(Adapter):
    """MLX's arrays."""

    def op_index(self, x: Array, *, key: Key) -> Array:
        """``x[key]``; a mask becomes indices, since MLX takes no masks."""
        if is_array(key) and dtype_name(key.dtype) == "bool":
            key = self.library.nonzero(key)
        return super().op_index(x, key=key)


ADAPTER = MLXAdapter
