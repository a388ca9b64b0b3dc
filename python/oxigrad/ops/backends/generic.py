"""The adapter of array libraries without their own file: it calls functions of the Python array API standard."""

import functools
import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import is_inexact
from oxigrad._typing import Array, Dtype, Key, Namespace, Results
from oxigrad.ops.backends.arrays import REFUSALS, device_of, dtype_name, fetched, is_array, is_basic, on_host, size_of
from oxigrad.ops.backends.functions import kernels, matrix_functions
from oxigrad.ops.backends.memory.device_memory import DEFAULT_STREAM, DeviceMemory, interface_memory
from oxigrad.ops.backends.memory.transfers import BlockingTransfers, Copies

# Ops that the standard has in an extension: its name, and the arguments that select the op's results.
_EXTENSIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "qr": ("linalg", {"mode": "reduced"}),
    "svd": ("linalg", {"full_matrices": False}),
    **dict.fromkeys("inv solve cholesky eigh eig det slogdet vector_norm".split(), ("linalg", {})),
    **dict.fromkeys("fftn ifftn rfft irfft".split(), ("fft", {})),
}

# Special functions of several arguments: libraries that have them may take arrays only, no numbers.
_ARRAYS_ONLY = {"beta", "betainc", "betaln", "gammainc", "gammaincc", "logaddexp2"}

# Functions of two arguments without an operator: libraries may copy a number among the arguments to the device.
_BINARY = {"atan2", "hypot", "logaddexp", "maximum", "minimum"}

# Functions whose first argument is an integer order.
_ORDERED = {"polygamma", "jn", "yn", "iv"}


Ops = Callable[[str], Callable[..., Any]]


def _cbrt(op: Ops, x: Array) -> Array:
    return op("sign")(x) * op("abs")(x) ** (1.0 / 3.0)


def _logaddexp2(op: Ops, x1: Array, x2: Array) -> Array:
    ln2 = math.log(2.0)
    return op("logaddexp")(x1 * ln2, x2 * ln2) / ln2


def _betaln(op: Ops, a: Array, b: Array) -> Array:
    gammaln = op("gammaln")
    return gammaln(a) + gammaln(b) - gammaln(a + b)


# Ops composed of others, with fewer digits: for arrays that the host cannot read, of libraries that lack the op.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "beta": lambda op, a, b: op("exp")(_betaln(op, a, b)),
    "betaln": _betaln,
    "cbrt": _cbrt,
    "erfcinv": lambda op, y: op("erfinv")(1.0 - y),
    "logaddexp2": _logaddexp2,
}


class Adapter:
    """Adapter of an array library: properties of its arrays, and its implementation of each op.

    The defaults call functions of the Array API standard. A library that differs has a file of its name in this folder,
    whose ``ADAPTER`` is a subclass. A method ``op_<name>`` implements the op ``<name>``. Every other op is the function
    of that name in the namespace or in its extensions `linalg`, `fft` and `special`, or else the core's kernel.
    """

    # Modules with special functions under SciPy's names, besides the namespace's own extension `special`.
    special_modules: tuple[str, ...] = ()
    # Whether functions of the library that the standard does not have are NumPy's of the same names.
    follows_numpy = True
    # Whether no array of the library is ever changed in place.
    is_immutable = False
    # Whether an array is a graph, which is computed each time the array is read.
    is_lazy = False
    # ``put_rows(array, indices, rows)``: a copy with new rows at sorted indices, if the library has a scatter for it.
    put_rows: Callable[..., Any] | None = None
    # ``call_kernels(by_kernels, by_rules, operands, everywhere=...)``, for a library that compiles functions which may
    # call kernels. Returns the results of a step inside a function that is being compiled, or None outside of one.
    # Derivatives use ``by_rules(*operands)``, and with ``everywhere`` so do devices without kernels. Other devices use
    # ``by_kernels(call, *operands)``, in which ``call(text, operands, results)`` makes the call that ``text`` describes
    # (see ``rust/core/src/exec/xla/call.rs``). An item of ``results`` is the number of the operand that the result
    # replaces, in the same memory if possible, or the shape and the dtype's name of a new array.
    call_kernels: Callable[..., list[Any] | None] | None = None

    # The methods of its arrays that differ from NumPy's. Maps each to the function of ``xp`` and the names of its
    # further positional arguments. A name has a default after ``=``. A name that ends in ``*`` accepts a tuple as
    # separate arguments (without a name if it is positional). ``-`` marks further arguments that return another kind of
    # result.
    methods: Mapping[str, str] | None = None

    def __init__(self, library: Namespace) -> None:
        """Adapter of the library with this namespace, or of no library if it is None."""
        self.library = library

    # --- properties ---------------------------------------------------------------------------------------------------

    def is_of_kind(self, dtype: Dtype, kind: str | tuple[str, ...]) -> bool:
        """Whether a dtype is of a kind, as `isdtype` of the standard; dtypes of ml_dtypes are real floating or none."""
        try:
            return self.library.isdtype(dtype, kind)
        except TypeError:
            return "real floating" in kind and _is_floating(dtype)

    def is_complex(self, array: Array) -> bool:
        """Whether an array has a complex dtype."""
        return self.is_of_kind(array.dtype, "complex floating")

    def detached(self, array: Array) -> Array:
        """The array without the derivatives that its own library records, in the same memory."""
        return array

    def resolved(self, array: Array) -> Array:
        """The array with its values in memory, for libraries with lazy views."""
        return array

    def strides(self, array: Array) -> tuple[int, ...]:
        """The strides of each axis; equal ones if the library does not expose them."""
        return getattr(array, "strides", (1,) * len(array.shape))

    def is_in_fortran_order(self, array: Array) -> bool:
        """Whether the first index is the fastest in memory, and the last one is not."""
        return bool(getattr(getattr(array, "flags", None), "fnc", False))

    def in_order(self, array: Array) -> Array:
        """The array, made contiguous if the bits of the library's sums depend on its layout."""
        return array

    def neutral(self, arrays: Sequence[Any], is_recorded: Callable[[], bool] = bool) -> AbstractContextManager[Any]:
        """A context in which no mode of the thread changes or refuses computations, which may be recorded."""
        return nullcontext()

    def obstacle(self, array: Array) -> str:
        """The reason why a step cannot update the array in place, and the alternative; empty if it can."""
        return ""

    def unreadable(self, array: Array) -> str:
        """The reason why no rule can be called on the array, and the alternative; empty if one can."""
        return ""

    def is_traced(self, array: Array) -> bool:
        """Whether the array is a tracer, which stands for values inside a transformation and is invalid outside."""
        return False

    def is_apart(self, p: Array, g: Array) -> bool:
        """Whether gradient and parameter differ in library, device or layout, and an op on both would raise no error.

        Called in each step that calls a rule, so that it must be cheap.
        """
        return type(g) is not type(p)

    def place(self, array: Array) -> str | None:
        """The place that all arrays of a computation share, such as the device; None if any place is accepted."""
        return str(device_of(array))

    # --- CUDA devices -------------------------------------------------------------------------------------------------

    def device_memory(self, array: Array) -> DeviceMemory | None:
        """The memory of an array on a CUDA device; None for any other, and for arrays that may not be written."""
        return None if self.is_immutable or self.is_lazy else interface_memory(array)

    def current_stream(self, array: Array, device: int) -> int:
        """The stream on which the library enqueues its next work with an array on a device."""
        stream = array.__cuda_array_interface__.get("stream")
        return DEFAULT_STREAM if stream is None else int(stream)

    def assign(self, array: Array, value: Array) -> None:
        """Enqueues a copy of ``value`` into the memory of an array on the same device."""
        array[...] = value

    def keep_until(self, arrays: Iterable[Any], device: int, stream: int) -> None:
        """Keeps the memory of arrays from being used again before the work on a stream so far is done.

        Libraries that free memory in the order of one stream need nothing.
        """

    # --- copies -------------------------------------------------------------------------------------------------------

    def transfers(self, array: Array) -> Copies:
        """The copies between the device of an array and host memory."""
        return BlockingTransfers(self)

    def to_host(self, array: Array) -> np.ndarray:
        """The array as NumPy's, of the same dtype; a copy only where necessary."""
        name = dtype_name(array.dtype)
        for read in (_shared, lambda x: None if on_host(x) else _shared(x, device="cpu"), np.asarray):
            try:
                host = read(array)
            except RecursionError:
                raise
            except REFUSALS:
                continue
            if host is not None and dtype_name(host.dtype) == name:
                return host
        there = fetched(array)
        if isinstance(there, np.ndarray):
            return there
        if there is not array:
            return self.to_host(there)
        if self.library is None or hasattr(np, name):
            return _by_element(array, name)
        importlib.import_module("ml_dtypes")  # NumPy then has bfloat16 and its like
        return self.to_host(self.library.astype(there, self.library.float32)).astype(name)

    def from_host(self, array: np.ndarray, like: Array) -> Array:
        """A copy of a NumPy array as one of this library, with the dtype and on the device of ``like``."""
        array = np.array(array)  # a copy: a library may warn about read-only arrays
        if (
            array.dtype.isbuiltin == 2
        ):  # a dtype of ml_dtypes, which most libraries cannot read: float32 represents its values exactly
            array = array.astype(np.float32)
        return self.copied_like(array, like)

    def copied_like(self, array: Array, like: Array) -> Array:
        """A copy of an array of this library, with the dtype and on the device of ``like``."""
        return self.library.asarray(array, dtype=like.dtype, device=device_of(like), copy=True)

    def filled(self, number: Array, like: Array) -> Array:
        """A number as a 0-d array on the device of ``like``, and of its dtype if it fits."""
        fits = is_inexact(like) and (self.is_complex(like) or not isinstance(number, complex))
        return self.library.full((), number, dtype=like.dtype if fits else None, device=device_of(like))

    # --- ops ----------------------------------------------------------------------------------------------------------

    def implementation(self, name: str) -> Callable[..., Any]:
        """The function that computes the op ``name`` on plain arrays of this library."""
        function = getattr(self, f"op_{name}", None)
        if function is not None:
            return function
        if name in _EXTENSIONS:
            return functools.partial(self._by_extension, name)
        function = getattr(self.library, name, None) or self.special(name)
        if function is None:
            return functools.partial(self._missing, name)
        if name in _ORDERED:
            return lambda order, x: function(_as_integer(order), x)
        if name in _ARRAYS_ONLY:
            return functools.partial(self._of_arrays, function)
        return functools.partial(self._of_two, function) if name in _BINARY else function

    def special(self, name: str) -> Callable[..., Any] | None:
        """The library's special function of that name, or None."""
        modules = [getattr(self.library, "special", None), *map(importlib.import_module, self.special_modules)]
        return next((function for module in modules if (function := getattr(module, name, None)) is not None), None)

    def _missing(self, name: str, *args: Array) -> Array:
        if name in _COMPOSED and not on_host(_first_array(args)):
            composed = functools.partial(_COMPOSED[name], self.implementation)
            return self._of_arrays(composed, *args) if name in _ARRAYS_ONLY else composed(*args)
        return self._by_kernel(name, *args)

    def _by_kernel(self, name: str, *args: Array) -> Array:
        """The core's kernel of the op, on arrays in host memory."""
        try:
            shared = [_shared(self.resolved(value)) if is_array(value) else value for value in args]
        except RecursionError:
            raise
        except REFUSALS as error:
            raise NotImplementedError(
                f"{self.library.__name__} has no function {name}, and its array cannot be read in host memory"
            ) from error
        return self.library.asarray(kernels.compute(name, *shared), device=device_of(_first_array(args)))

    def _by_extension(self, name: str, *args: Array, **named: Any) -> Results:
        extension, selected = _EXTENSIONS[name]
        function = getattr(getattr(self.library, extension, None), name, None)
        if function is None:
            raise NotImplementedError(f"{self.library.__name__} has no function {extension}.{name}")
        return function(*args, **selected, **named)

    def _of_arrays(self, function: Callable[..., Any], *args: Array) -> Results:
        like = _first_array(args)
        return function(*(x if is_array(x) else self.filled(x, like) for x in args))

    def _of_two(self, function: Callable[..., Any], x1: Array, x2: Array) -> Array:
        return function(x1, x2) if on_host(x1 if is_array(x1) else x2) else self._of_arrays(function, x1, x2)

    # --- ops with a signature that the standard does not have ---------------------------------------------------------

    def op_call(self, *args: Array, function: Callable[..., Any], pull: Any, push: Any) -> Results:
        """A user's function with a custom derivative."""
        return function(*args)

    def op_item(self, results: Sequence[Array], *, index: int) -> Array:
        """One result of an op that has several."""
        return results[index]

    def op_astype(self, x: Array, *, dtype: Dtype, copy: bool) -> Array:
        """``x`` in another dtype; of a number, an array without axes."""
        return self.library.astype(x if is_array(x) else self.library.asarray(x), dtype, copy=copy)

    def op_broadcast_to(self, x: Array, *, shape: tuple[int, ...]) -> Array:
        """``x`` repeated to a shape."""
        return self.library.broadcast_to(x, shape)

    def op_concat(self, *arrays: Array, axis: int, ends: tuple[int, ...]) -> Array:
        """Arrays joined along ``axis``."""
        return self.library.concat(arrays, axis=axis)

    def op_stack(self, *arrays: Array, axis: int) -> Array:
        """Arrays joined along a new ``axis``."""
        return self.library.stack(arrays, axis=axis)

    def op_where(self, condition: Array, x1: Array, x2: Array) -> Array:
        """``x1`` where ``condition`` is true, else ``x2``; any of them may be a number, which the standard excludes."""
        like = _first_array((x1, x2, condition))
        if not is_array(condition):
            condition = self.library.full((), bool(condition), device=device_of(like))
        if not on_host(like):  # copying a number to a device makes the host wait
            x1, x2 = (value if is_array(value) else self.filled(value, like) for value in (x1, x2))
        elif not is_array(x1) and not is_array(x2):  # the standard takes one number, not two
            x1 = self.library.asarray(x1, device=device_of(like))
        return self.library.where(condition, x1, x2)

    def op_take_along_axis(self, x: Array, *, indices: Array, axis: int) -> Array:
        """The elements at ``indices`` along ``axis``."""
        return self.library.take_along_axis(x, indices, axis=axis)

    def op_index(self, x: Array, *, key: Key) -> Array:
        """``x[key]``; a vector of indices along one axis uses ``take``, the standard's only function for it."""
        if isinstance(key, tuple) and len(key) > 1 and key[-1] is ...:
            *before, last = key[:-1]
            is_whole = all(isinstance(part, slice) and part == slice(None) for part in before)
            if is_whole and is_array(last) and len(last.shape) == 1 and not self.library.isdtype(last.dtype, "bool"):
                return self.library.take(x, last, axis=len(before))
        return x[key]

    def op_scatter_add(self, g: Array, *, key: Key, shape: tuple[int, ...]) -> Array:
        """Zeros of ``shape`` with ``g`` added at ``key``; elements that the key names twice get the sum."""
        library = self.library
        zeros = library.zeros(shape, dtype=g.dtype, device=device_of(g))
        if is_basic(key) and hasattr(zeros, "__setitem__"):
            if key is None or (isinstance(key, tuple) and None in key):  # assignment takes no new axes
                key = tuple(part for part in key or () if part is not None)
                g = library.reshape(g, zeros[key].shape)
            if size_of(g.shape):
                zeros[key] = g
            return zeros
        add: Any = getattr(library, "add", None)
        if hasattr(add, "at"):  # a ufunc, of NumPy and CuPy
            add.at(zeros, key, g)
            return zeros
        numbers = library.reshape(library.arange(size_of(shape), device=device_of(g)), shape)
        numbers = library.reshape(self.op_index(numbers, key=key), (-1,))
        return library.reshape(self.segment_sum(library.reshape(g, (-1,)), numbers, size_of(shape)), shape)

    def segment_sum(self, values: Array, numbers: Array, size: int) -> Array:
        """A vector of ``size`` elements, each the sum of the ``values`` that have its number; sums are pairwise.

        The values are sorted by number, then runs of equal numbers are added up in a logarithmic number of rounds.
        """
        library, count = self.library, numbers.shape[0]
        zeros = library.zeros(size, dtype=values.dtype, device=device_of(values))
        if not count:
            return zeros
        order = library.argsort(numbers)
        numbers, values = library.take(numbers, order), library.take(values, order)
        width = 1
        while width < count:
            same = numbers[width:] == numbers[:-width]
            if on_host(same) and not library.any(same):
                break
            added = library.where(same, values[width:], library.zeros_like(values[width:]))
            values = library.concat([values[:-width] + added, values[-width:]])
            width *= 2
        wanted = library.arange(size, dtype=numbers.dtype, device=device_of(values))
        first = library.searchsorted(numbers, wanted)
        is_named = first < library.searchsorted(numbers, wanted, side="right")
        return library.where(is_named, library.take(values, library.clip(first, max=count - 1)), zeros)

    def op_cofactor(self, x: Array, *directions: Array) -> Array:
        """The derivative of the determinant, or its higher derivative along directions."""
        return matrix_functions.cofactor(self.library, x, *directions, is_complex=self.is_complex(x))

    def op_sqrtm(self, x: Array) -> Array:
        """The principal square root of each matrix."""
        return matrix_functions.sqrtm(self.library, x, is_complex=self.is_complex(x))

    def op_pinv(self, x: Array, *, rtol: Array) -> Array:
        """The pseudo-inverse of each matrix."""
        return self.library.linalg.pinv(x) if rtol is None else self.library.linalg.pinv(x, rtol=rtol)

    def op_kink(self, x: Array, *, of_tangents: bool = False) -> Array:
        """A modulus itself."""
        return x

    def op_root_or_zero(self, x: Array) -> Array:
        """The square root of each element."""
        return self.implementation("sqrt")(x)

    def op_modulus_slope(self, x1: Array, x2: Array, x3: Array) -> Array:
        """``x1 * x2 / x3``; zero where ``x3`` is zero."""
        where = self.implementation("where")
        return x1 * where(x3 == 0.0, 0.0, x2 / where(x3 == 0.0, 1.0, x3))

    def op_round_to_bfloat16(self, x: Array) -> Array:
        """The nearest values of bfloat16, in the dtype of ``x``."""
        return self._rounded_to("bfloat16", x)

    def op_round_to_float16(self, x: Array) -> Array:
        """The nearest values of float16, in the dtype of ``x``."""
        return self._rounded_to("float16", x)

    def _rounded_to(self, name: str, x: Array) -> Array:
        dtype = getattr(self.library, name, None)
        if dtype is None:
            return self._by_kernel(f"round_to_{name}", x)
        return self.library.astype(self.library.astype(x, dtype), x.dtype)


def _shared(array: Array, **where: Any) -> np.ndarray:
    """NumPy's array in the memory of another; raises one of `REFUSALS` where that cannot be read."""
    if not where and on_host(array) and not _core.exports_memory(array):
        raise BufferError(f"an array of type {type(array).__name__} has no memory that can be read")
    return np.from_dlpack(array, **where)


def _by_element(array: Array, name: str) -> np.ndarray:
    """The elements of an array that shares no memory, read one by one as Python numbers."""
    shape = tuple(array.shape)
    try:
        read = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[np.dtype(name).kind]
        numbers = [read(array[index] if index else array) for index in np.ndindex(shape)]
    except RecursionError:
        raise
    except (*REFUSALS, LookupError) as error:
        raise BufferError(f"an array of type {type(array).__name__} has no memory that can be read") from error
    return np.array(numbers, name).reshape(shape)


def _first_array(values: Iterable[Array]) -> Array:
    return next((value for value in values if is_array(value)), None)


def _is_floating(dtype: Dtype) -> bool:
    try:
        return is_inexact(np.empty(0, dtype))
    except TypeError:
        return False


def _as_integer(order: int | Array) -> Array:
    """The order as an integer if its value is integral: some libraries reject floats."""
    return int(order) if isinstance(order, float) and order.is_integer() else order
