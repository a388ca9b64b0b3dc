"""The library of an array: its namespace and its adapter, looked up once for each type of array."""

import functools
import importlib
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError, ShapeError, plain
from oxigrad._typing import Array, Dtype, Namespace
from oxigrad.ops.backends.arrays import converted, device_of, dtype_name, is_array
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory.device_memory import DeviceMemory
from oxigrad.ops.backends.numpy import ADAPTER as NumPyAdapter

_NUMBERS = (bool, int, float, complex)
_NUMPY = NumPyAdapter(np)
_UNKNOWN = Adapter(None)

# Keyed by class id: a weak reference whose callback removes the entry, the namespace (None for numbers), the adapter.
_Entry = tuple[weakref.ref[type], Any, Adapter]
_entries: dict[int, _Entry] = {}


def namespace(*values: Any) -> Namespace:
    """The standard's namespace of the first array among the values, or else NumPy's.

    Raises `TypeError` for an object of no array library.

    >>> import numpy as np
    >>> namespace(2.0, np.ones(3)).__name__
    'numpy'
    """
    for value in map(plain, values):
        entry = _entries.get(id(type(value))) or _remembered(value)
        if entry[1] is not None:
            return entry[1]
    return np


def adapter_of(value: Any) -> Adapter:
    """The adapter of the value's library; NumPy's for a number, the generic one for an object of no array library."""
    value = plain(value)
    try:
        return (_entries.get(id(type(value))) or _remembered(value))[2]
    except TypeError:
        return _UNKNOWN


def _remembered(value: Any) -> _Entry:
    kind, key = type(value), id(type(value))
    library = _namespace_of(value)
    adapter = _NUMPY if library is None else adapter_of_library(library)
    return _entries.setdefault(key, (weakref.ref(kind, lambda _: _entries.pop(key, None)), library, adapter))


def _namespace_of(value: Any) -> Namespace | None:
    if isinstance(value, _core.BatchLevel):  # one of a recording is an instance of the class of its plain value
        batched: Any = value
        return _completed(batched.__array_namespace__()) if is_array(value) else None
    if isinstance(value, (np.ndarray, np.generic)):
        return np
    if isinstance(value, _NUMBERS):
        return None
    from array_api_compat import array_namespace  # for libraries whose own namespace is not the standard's

    return _completed(array_namespace(value))


@functools.lru_cache(maxsize=64)
def _completed(library: Namespace) -> Namespace:
    """The namespace as returned by ``complete`` of the library's file in this folder, if defined there."""
    complete = getattr(_file_of(_root(library)), "complete", None)
    return library if complete is None else complete(library)


@functools.lru_cache(maxsize=64)
def adapter_of_library(library: Namespace) -> Adapter:
    """The adapter of a namespace: the one in the library's file in this folder, or else the generic one."""
    return _NUMPY if library is np else adapter_class(_root(library))(library)


def adapter_class(root: str) -> type[Adapter]:
    """The class of the adapter of the library with this top-level module."""
    return getattr(_file_of(root), "ADAPTER", Adapter)


def _root(library: Namespace) -> str:
    """The name of the top-level module of a namespace's library."""
    return getattr(library, "__name__", "").removeprefix("array_api_compat.").partition(".")[0]


# Libraries of containers that hold another library's arrays.
_LIBRARIES = {"equinox": "jax"}


REGISTERED: dict[str, Any] = {}
"""The adapters of other packages by the top-level module of their library, in the form of a file in this folder."""


def forget_library(root: str) -> None:
    """Looks the adapter of the library with this top-level module up again, for the next of its arrays."""
    for cache in (_file_of, _completed, adapter_of_library, is_of_kind):
        cache.cache_clear()
    for key, (_, library, _) in [*_entries.items()]:
        if _root(library) == root:
            del _entries[key]
    _core.forget_functions()


@functools.lru_cache(maxsize=64)
def _file_of(root: str) -> Any:
    """The registered file, or the file in this folder, for the library with this top-level module; None without one."""
    path = f"{__package__}.{_LIBRARIES.get(root, root)}"
    try:
        return REGISTERED.get(root) or (importlib.import_module(path) if root.isidentifier() else None)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None


def container_of(cls: type) -> Any:
    """The mappings that hold the children of an instance, if the class is a container of some library.

    Returns a pair. The first item maps each attribute to whether its items are trainable, or to the attribute of an
    item that says so. The second item names the attribute of an item that holds its gradient. None for any other class,
    and for a class that this call has registered.
    """
    for root in dict.fromkeys(str(base.__module__).partition(".")[0] for base in cls.__mro__):
        if (function := getattr(_file_of(root), "container", None)) and (description := function(cls)):
            return description
    return None


def standard_namespace(*values: Any) -> Namespace:
    """As `namespace`, completed by `array_api_compat` if a library lacks a part of the standard.

    Lists and tuples are searched for arrays.
    """
    array = None
    for value in map(plain, _flattened(values)):
        if isinstance(value, _core.BatchLevel):  # functions of plain arrays cannot handle values batched by `vmap`
            array = value
            break
        # Scalar types, which stand for dtypes, have the attributes of arrays.
        if array is None and is_array(value) and not isinstance(value, type):
            array = value
    if type(array) is np.ndarray and array.dtype.kind in "biufc":
        return _standard_numpy()
    if isinstance(array, _core.BatchLevel):  # a number is one of a recording
        return namespace(array) if is_array(array) else _standard_numpy()
    from array_api_compat import array_namespace

    try:
        return _standard_numpy() if array is None else _completed(array_namespace(array))
    except TypeError:  # it knows only arrays whose library is imported, and NumPy's scalars are not among them
        return namespace(array)


@functools.cache
def _standard_numpy() -> Namespace:
    """The completed namespace of NumPy's numeric arrays, which `array_api_compat` looks up again for each array."""
    from array_api_compat import array_namespace

    return _completed(array_namespace(np.empty(0)))


def implementation(name: str, array: Array) -> Callable[..., Any]:
    """The function that computes an op on plain arrays of this array's library."""
    return adapter_of(array).implementation(name)


def dtype_in(library: Namespace, dtype: Dtype) -> Dtype:
    """The dtype of a library for one of NumPy's, its name, or a type of Python's; anything else unchanged.

    Raises `DtypeError` if the library has no such dtype.
    """
    return dtype if library is np or not isinstance(dtype, (str, type, np.dtype)) else _found_in(library, dtype)


@functools.lru_cache(maxsize=256)
def _found_in(library: Namespace, dtype: Dtype) -> Dtype:
    if isinstance(getattr(library, "float32", np.float32), (type, np.dtype)):  # its dtypes are NumPy's
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:  # a name such as bfloat16, which NumPy does not know
        name = str(dtype)
    own_dtype = getattr(library, name, None)
    if own_dtype is None or callable(own_dtype):
        raise DtypeError(f"found {dtype!r}, expected a dtype of {library.__name__}")
    return own_dtype


# --- objects of no array library --------------------------------------------------------------------------------------


def is_foreign(value: Any) -> bool:
    """Whether a value is no array without ``__oxigrad_converts__``, number, list, tuple, text or None.

    >>> is_foreign(memoryview(b"")), is_foreign(np.ones(3)), is_foreign([1.0])
    (True, False, False)
    """
    kind, variables = type(value), (_core.Variable, _core.BatchLevel)
    if kind is np.ndarray or id(kind) in _entries or isinstance(value, (*variables, list, tuple, str, type(None))):
        return False
    try:
        return hasattr(kind, "__oxigrad_converts__") or _remembered(value) is None
    except TypeError:
        return not kind.__module__.startswith("oxigrad.")


# --- properties -------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def is_of_kind(dtype: Dtype, kind: str | tuple[str, ...], library: Namespace) -> bool:
    """Whether a dtype of a library is of a kind, as `isdtype` of the standard; dtypes of ml_dtypes are known too."""
    return adapter_of_library(library).is_of_kind(dtype, kind)


def is_complex(value: Array) -> bool:
    """Whether the value is a complex number or array; a symbol is not."""
    value = plain(value)
    if type(value) is np.ndarray:  # without a look-up, as of most values
        return value.dtype.kind == "c"
    if isinstance(value, _core.Variable) or not is_array(value):
        return isinstance(value, complex)
    return is_of_kind(value.dtype, "complex floating", namespace(value))


def is_immutable(array: Array) -> bool:
    """Whether no array of its library is ever changed in place: such arrays may share memory unnoticed."""
    return adapter_of(array).is_immutable


def memory_of(array: Array) -> DeviceMemory | None:
    """The memory of an array on a CUDA device that kernels can read and write; None for all other values."""
    return None if isinstance(array, _core.Variable) else adapter_of(array).device_memory(array)


def detached(array: Array) -> Array:
    """The array without the derivatives that its own library records, in the same memory; variables are unchanged."""
    return array if isinstance(array, (np.ndarray, _core.Variable)) else adapter_of(array).detached(array)


def resolved(array: Array) -> Array:
    """The array with its values in memory; some libraries have lazy views."""
    return array if isinstance(array, (np.ndarray, _core.Variable)) else adapter_of(array).resolved(array)


def obstacle(array: Array) -> str:
    """The reason why a step cannot update the array in place, and the alternative; else empty, as for variables."""
    return "" if isinstance(array, (np.ndarray, _core.Variable)) else adapter_of(array).obstacle(array)


class _Operand:
    """An operand that no array library knows, with the protocols of a variable."""

    def __array_ufunc__(self, *_args: Any, **_named: Any) -> Any:
        return self

    __rmul__ = __array_ufunc__


def defers(array: Array) -> bool:
    """Whether the library's operators defer to the operators of other classes, as Python's and NumPy's do."""
    kind = type(array)
    if kind not in _defers and isinstance(array, _core.BatchLevel):
        _defers[kind] = True
    if kind not in _defers:
        operand = _Operand()
        try:
            _defers[kind] = array * operand is operand
        except (TypeError, ValueError):
            _defers[kind] = False
    return _defers[kind]


_defers: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def refuse_masked_or_units(array: Array, what: str) -> None:
    """Raises `DtypeError` for an array, called ``what``, with a mask, units or the like, or of no array library.

    >>> import numpy as np
    >>> refuse_masked_or_units(np.ma.MaskedArray([1.0, 2.0], mask=[True, False]), "w: the parameter")
    Traceback (most recent call last):
    ...
    oxigrad.DtypeError: w: the parameter is a MaskedArray, whose mask would be ignored: expected an array without a
    mask, such as x.data[~x.mask]
    """
    if type(array) is np.ndarray:
        return
    meaning, kind = _core.meaning(array), type(array).__name__
    if meaning is None and hasattr(type(array), "get_mask"):  # torch.masked.MaskedTensor, a tensor but for its class
        meaning = f"a {kind}, whose mask would be ignored: expected an array without a mask"
    try:
        namespace(array)
    except TypeError:
        meaning = f"a {kind}: expected an array of NumPy's, or of another library of the Python array API standard"
    if meaning is not None:
        raise DtypeError(f"{what} is {meaning}")


# --- variables among values -------------------------------------------------------------------------------------------


def has_variable(values: Iterable[Any], kinds: type | tuple[type, ...] = _core.Variable) -> bool:
    """Whether a variable is among the values, or in a list or tuple among them; or any value of ``kinds``."""
    for value in values:  # without a generator, as most functions of variables ask
        if isinstance(value, kinds) or (isinstance(value, (list, tuple)) and has_variable(value, kinds)):
            return True
    return False


def has_derivative(values: Iterable[Any]) -> bool:
    """As `has_variable`, of variables other than constants."""
    return any(isinstance(value, _core.Variable) and not _core.is_constant(value) for value in _flattened(values))


def has_batched(values: Iterable[Any]) -> bool:
    """Whether a value that `vmap` has batched is among the values, or in a list or tuple among them."""
    return has_variable(values, _core.BatchLevel)


def batched_of(values: Iterable[Any]) -> "Examples | None":
    """The value of the highest `vmap` level among the values, including items of lists and tuples, or None."""
    return max(filter(is_of_vmap, _flattened(values)), key=operator.attrgetter("level"), default=None)


def examples_of(values: Array) -> range:
    """The indices of the examples of batched values. Raises `ShapeError` for an empty batch."""
    if not values.shape[0]:
        raise ShapeError("vmap: found no examples, expected at least one: a function in it is called for each example")
    return range(values.shape[0])


def holds_variable(value: Any) -> bool:
    """Whether a value is a variable, or one that `vmap` has batched from one."""
    return isinstance(value, _core.Variable) or (is_of_vmap(value) and holds_variable(value.value))


def beneath(value: Array) -> Array:
    """The array beneath variables and values that `vmap` has batched, with the axes of examples in front."""
    while isinstance(value := plain(value), Examples):
        value = value.value
    return value


def without_variables(value: Array) -> Array:
    """The plain value, of a batched value the batched plain value: derivatives treat it as a constant."""
    value = plain(value)
    return type(value).of(value.level, without_variables(value.value)) if is_of_vmap(value) else value


class Examples(_core.BatchLevel):
    """Base class of values that `vmap` has batched. Values of a recording and symbols have other classes."""

    value: Any

    @classmethod
    def of(cls, level: int, value: Array) -> "Examples":
        """The examples ``value`` of the `vmap` of a level, in the class of their library."""
        raise NotImplementedError

    def undifferentiated(self, function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
        """The result of a function without a derivative, of whose arguments this has the highest level."""
        raise NotImplementedError


def is_of_vmap(value: Any) -> TypeGuard[Examples]:
    """Whether a value is one that `vmap` has batched."""
    return isinstance(value, Examples)


def for_each_example(function: Callable[..., Any], values: Sequence[Any], level: int) -> list[Any]:
    """The result of a function for each example of the batched values of a level."""
    pairs = [(value, is_of_vmap(value) and value.level == level) for value in values]
    first = next(value.value for value, flag in pairs if flag)
    return [function(*(value.value[at, ...] if flag else value for value, flag in pairs)) for at in examples_of(first)]


class UnbatchedError(TypeError):
    """Raised when a function reads a value that differs between examples; it is then called for each, if possible."""

    __module__ = "oxigrad"


# Calls a function for each example of a batch: `oxigrad.autodiff.checkpoint` sets it.
_one_by_one: list[Callable[..., Any]] = []


def install_one_by_one(function: Callable[..., Any]) -> None:
    """Installs the function that `one_by_one` calls."""
    _one_by_one[:] = [function]


def one_by_one(
    function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], error: UnbatchedError | None = None
) -> Any:
    """The stacked results of a function for each example of its batched values; raises the ``error`` without any."""
    return _one_by_one[0](function, args, named, error)


def _flattened(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield from _flattened(value) if isinstance(value, (list, tuple)) else (value,)


def strip(value: Any) -> Any:
    """The value with variables replaced by their plain arrays, also inside lists and tuples."""
    return type(value)(map(strip, value)) if type(value) in (list, tuple) else plain(value)


def array_of(value: Any, others: Iterable[Any] = ()) -> Array:
    """An array_like as an array, of the library of the first array among ``others``; an array unchanged.

    A list with variables is stacked. Raises `DtypeError` unless the value is an array, a number, a list or a tuple.
    """
    if type(value) is np.ndarray or isinstance(value, _core.Variable) or (is_array(value) and not is_foreign(value)):
        return value
    if not isinstance(value, (list, tuple, *_NUMBERS)):
        return converted(value)
    like = next((x for x in map(plain, others) if is_array(x)), None)
    if isinstance(value, (list, tuple)) and (has_variable(value) or has_batched(value)):
        items = [array_of(item, others) for item in value]
        shapes = {tuple(item.shape) for item in items}
        if len(shapes) > 1:
            raise ShapeError(f"expected a list of arrays of one shape, found the shapes {sorted(shapes)}")
        return _core.record("stack", items, {"axis": 0})
    return np.asarray(value) if like is None else _of_precision(value, like)


def _of_precision(value: Array, like: Array) -> Array:
    """Numbers as an array of the library of ``like``, in the precision of ``like`` if it is wider."""
    library, device = namespace(like), device_of(like)
    array = library.asarray(value, device=device)
    wider = _WIDER.get(dtype_name(array.dtype)) if dtype_name(like.dtype) in _WIDER.values() else None
    return library.asarray(value, dtype=getattr(library, wider), device=device) if wider else array


_WIDER = {"float32": "float64", "complex64": "complex128"}
