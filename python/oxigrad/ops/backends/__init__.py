"""Array libraries: whose an array is, and how each library does what the standard has no single function for."""

import difflib
import functools
import importlib
import inspect
import math
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError, ShapeError, is_inexact, plain

_NUMBERS = (bool, int, float, complex)
# By the identity of a class, which goes with it: a reference that sees to that, and the namespace; None for numbers.
_namespaces: dict[int, tuple[weakref.ref[type], Any]] = {}


def namespace(*values: Any) -> Any:
    """The namespace, of the standard, of the first value that is an array; NumPy's where none is.

    >>> import numpy as np
    >>> namespace(2.0, np.ones(3)).__name__
    'numpy'
    """
    for value in map(plain, values):
        known = _namespaces.get(id(type(value))) or _remembered(value)
        if known[1] is not None:
            return known[1]
    return np


def _remembered(value: Any) -> tuple[weakref.ref[type], Any]:
    kind, key = type(value), id(type(value))
    known = weakref.ref(kind, lambda _: _namespaces.pop(key, None)), _namespace_of(value)
    return _namespaces.setdefault(key, known)


def _namespace_of(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return np
    if isinstance(value, _NUMBERS):
        return None
    from array_api_compat import array_namespace  # for libraries whose own namespace is not the standard's

    return array_namespace(value)


def is_array(value: Any) -> bool:
    """Whether the value is an array of some library: it has a shape and a dtype."""
    return hasattr(value, "dtype") and hasattr(value, "shape")


def refuse_meaning(array: Any, what: str) -> None:
    """Raises `DtypeError` for ``what``, an array that means more than its numbers, or that no array library computes with.

    >>> import numpy as np
    >>> refuse_meaning(np.ma.MaskedArray([1.0, 2.0], mask=[True, False]), "w: the parameter")
    Traceback (most recent call last):
    ...
    oxigrad.DtypeError: w: the parameter is a MaskedArray, whose mask would be ignored: expected an array without a mask, such as x.filled(0)
    """
    if type(array) is np.ndarray:
        return
    meaning, kind = _core.meaning(array), type(array).__name__
    if meaning is None and hasattr(type(array), "get_mask"):
        meaning = f"a {kind}, whose mask would be ignored: expected an array without a mask"
    try:
        namespace(array)
    except TypeError:
        meaning = f"a {kind}: expected an array of NumPy's, or of another library of the Python array API standard"
    if meaning is not None:
        raise DtypeError(f"{what} is {meaning}")


def is_smooth(value: Any) -> bool:
    """Whether the value can have a derivative: a float, a complex number, an array of either's dtype, or a variable."""
    return isinstance(value, (float, complex, _core.Variable)) or is_inexact(value)


def standard_namespace(*values: Any) -> Any:
    """As `namespace`, but whole: where a library lacks a part of the standard, `array_api_compat` fills it in."""
    from array_api_compat import array_namespace

    array = next((x for x in map(plain, _flattened(values)) if is_array(x)), None)
    try:
        return namespace() if array is None else array_namespace(array)
    except TypeError:  # it knows only arrays whose library is imported, and NumPy's scalars are not among them
        return namespace(array)


def has_variable(values: Iterable[Any]) -> bool:
    """Whether a variable is among the values, or in a list or tuple among them."""
    return any(isinstance(value, _core.Variable) for value in _flattened(values))


def _flattened(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flattened(value)
        else:
            yield value


def strip(value: Any) -> Any:
    """The value without its variables: lists and tuples are gone through."""
    return type(value)(map(strip, value)) if type(value) in (list, tuple) else plain(value)


def is_complex(value: Any) -> bool:
    """Whether the value is a complex number or array; a symbol is not."""
    value = plain(value)
    if isinstance(value, _core.Variable):
        return False
    return (
        is_of_kind(value.dtype, "complex floating", namespace(value)) if is_array(value) else isinstance(value, complex)
    )


def array_of(value: Any, others: Iterable[Any] = ()) -> Any:
    """A list, a tuple or a number as an array, of the library of the first array among ``others``; an array as it is.

    A list that has variables becomes their stack. Raises `DtypeError` for what is none of these.
    """
    if isinstance(value, _core.Variable) or is_array(value):
        return value
    if not isinstance(value, (list, tuple, *_NUMBERS)):
        raise DtypeError(f"expected an array, found {type(value).__name__} {value!r}")
    like = next((x for x in map(plain, others) if is_array(x)), None)
    if isinstance(value, (list, tuple)) and has_variable(value):
        items = [array_of(item, others) for item in value]
        shapes = {tuple(item.shape) for item in items}
        if len(shapes) > 1:
            raise ShapeError(f"expected a list of arrays of one shape, found the shapes {sorted(shapes)}")
        return _core.record("stack", items, {"axis": 0})
    return np.asarray(value) if like is None else namespace(like).asarray(value, device=device_of(like))


def detached(array: Any) -> Any:
    """The array without the derivatives that its own library may record of it, in the same memory."""
    return array.detach() if getattr(array, "requires_grad", False) else array


# What arrays raise that cannot be read in host memory; a `RecursionError`, which is a `RuntimeError`, is none of these.
REFUSALS = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)


# --- PyTorch, by name --------------------------------------------------------------------------------------------------
#
# Its tensors may be views that are computed when they are read: negation and conjugation are bits of a tensor, and a tensor
# of zeros may have no memory. The core reads no such tensor.


def resolved(array: Any) -> Any:
    """A tensor of PyTorch with its numbers in memory as they read; anything else, and most tensors, as it is."""
    if not _is_tensor(array):
        return array
    if array._is_zerotensor():
        return namespace(array).zeros(tuple(array.shape), dtype=array.dtype, device=array.device)
    return array.resolve_conj().resolve_neg()


def obstacle(array: Any) -> str:
    """Why steps cannot update a tensor of PyTorch, and what they can; empty where they can, and for any other array."""
    if not _is_tensor(array):
        return ""
    if str(array.layout) != "torch.strided":
        return f"a tensor of layout {array.layout}: expected torch.strided"
    if array.is_neg():
        return "a lazy view, with its negative bit set: expected a tensor of its own, tensor.resolve_neg()"
    if array._is_zerotensor():
        return "a tensor of zeros without memory: expected torch.zeros"
    if _is_freed(array):
        return "a tensor whose storage is freed: expected one that has memory"
    return ""


def _is_tensor(array: Any) -> bool:
    from array_api_compat import is_torch_array

    return is_torch_array(array)


def _is_freed(tensor: Any) -> bool:
    """Whether a tensor in host memory has elements but no memory."""
    try:
        storage = tensor.untyped_storage()
    except REFUSALS:  # that of a transform, as of ``vmap``, has none by design
        return False
    return storage.device.type == "cpu" and tensor.numel() > 0 and storage.nbytes() == 0


# -----------------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def is_of_kind(dtype: Any, kind: Any, library: Any) -> bool:
    """Whether a dtype of a library is of a kind, as the standard has it; one that NumPy was given by others is real."""
    try:
        return library.isdtype(dtype, kind)
    except TypeError:
        return "real floating" in kind and "float" in str(dtype)


# Functions that may give their argument itself, as NumPy's do; what any other gives is a copy where nothing is to be done.
_NO_COPY = {"asarray", "diff", "matrix_power", "nan_to_num"}


def composed(function: Callable[..., Any], part: str | None = None) -> Callable[..., Any]:
    """Calls the function where variables are among its arguments; else the array library's own, where it has one.

    ``part`` names the extension of the standard that the library's function is in: "linalg" or "fft".
    """
    name, on_arrays, where = function.__name__, of_arrays(function), _where_arrays(function)
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    is_elementwise = all(kind is inspect.Parameter.POSITIONAL_ONLY for kind in kinds)

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        if has_variable(args) or has_variable(named.values()):
            result = on_arrays(*args, **named)
            if name not in _NO_COPY and any(result is arg for arg in args) and is_array(plain(result)):
                return _core.record("astype", [result], {"dtype": result.dtype, "copy": True})
            return result
        if is_elementwise and len(args) > len(kinds):  # one more might be the array that the library writes to
            raise TypeError(f"{name} takes {len(kinds)} positional arguments, got {len(args)}")
        library = standard_namespace(*args)
        library = library if part is None else getattr(library, part)
        try:
            return getattr(library, name, function)(*args, **named)
        except AttributeError:
            _require_arrays(function, args, where or slice(0, 0))
            raise

    return called


# What functions call those of their parameters that are arrays.
_ARRAY_NAMES = {"a", "ab", "arrays", "b", "f", "operands", "q", "v", "x", "x1", "x2", "z"}


def of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with lists and tuples made arrays where it takes arrays.

    Raises `DtypeError` by name where it was given something else, and could not do without what arrays have.
    """
    where = _where_arrays(function)
    if where is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        for arg in args[where]:
            if arg.__class__ in _NO_ARRAYS:
                given = [array_of(x, args) if x.__class__ in _NO_ARRAYS else x for x in args[where]]
                args = (*args[: where.start], *given, *args[where.start + len(given) :])
                break
        try:
            return function(*args, **named)
        except AttributeError:
            _require_arrays(function, args, where)
            raise

    return called


def _where_arrays(function: Callable[..., Any]) -> slice | None:
    """Which positional arguments of a function are arrays."""
    parameters = list(inspect.signature(function).parameters.values())
    positions = [i for i, p in enumerate(parameters) if p.name in _ARRAY_NAMES and p.kind is not p.KEYWORD_ONLY]
    if not positions or (parameters[positions[0]].name == "arrays" and parameters[positions[0]].kind.value < 2):
        return None  # none, or a list of them
    is_variadic = parameters[positions[-1]].kind is inspect.Parameter.VAR_POSITIONAL
    return slice(positions[0], None if is_variadic else positions[-1] + 1)


def _require_arrays(function: Callable[..., Any], args: tuple[Any, ...], where: slice) -> None:
    """Raises `DtypeError` for the first argument that stands in place of an array and is none."""
    for at, arg in enumerate(args[where], where.start):
        if not is_array(arg) or str(arg.dtype) == "object":
            what = f"{type(arg).__name__} {arg!r}"
            raise DtypeError(f"{function.__name__}: argument {at} is {what}: expected an array of numbers") from None


_NO_ARRAYS = {list, tuple, str, type(None)}


def no_name(module: str, name: str, known: Iterable[str]) -> str:
    """The text of an `AttributeError`, with the name that is nearest."""
    near = difflib.get_close_matches(name, [own for own in known if not own.startswith("_")], n=1)
    return f"module {module!r} has no function {name!r}" + (f": did you mean {near[0]!r}?" if near else "")


def dtype_of(value: Any) -> Any:
    """The dtype of an array; that of a Python number as an array."""
    return value.dtype if is_array(value) else np.float64


def device_of(value: Any) -> Any:
    """Where an array lives; None where that is its library's own affair, as while a program is traced."""
    return getattr(value, "device", None if is_array(value) else "cpu")


def on_host(array: Any) -> bool:
    """Whether the numbers of an array lie in host memory, so that they can be looked at without waiting for a device."""
    if _core.exports_memory(array):
        return True
    device = getattr(array, "__dlpack_device__", None)
    try:
        return device is not None and int(device()[0]) == 1
    except RecursionError:
        raise
    except REFUSALS:  # an array that is not computed yet
        return False


def _shared(array: Any, **where: Any) -> np.ndarray:
    """NumPy's array in the memory of another; raises one of `REFUSALS` where that cannot be read there."""
    if not where and on_host(array) and not _core.exports_memory(array):
        raise BufferError(f"an array of type {type(array).__name__} has no memory that can be read")
    return np.from_dlpack(array, **where)


def fetched(value: Any) -> Any:
    """The value where the host can look at it, which waits for the device that it lies on."""
    if not is_array(value) or on_host(value):
        return value
    from array_api_compat import to_device

    return to_device(value, "cpu")


def size_of(shape: tuple[int, ...]) -> int:
    """How many elements an array of this shape has."""
    return math.prod(shape)


def dtype_name(dtype: Any) -> str:
    """What the standard calls a dtype, whatever library it is of.

    >>> dtype_name(np.dtype(">f4"))
    'float32'
    """
    try:
        return _dtype_name(dtype)
    except TypeError:  # it has no hash
        return _dtype_name.__wrapped__(dtype)


@functools.lru_cache(typed=True)  # NumPy makes a name up each time; dtypes of libraries do not compare
def _dtype_name(dtype: Any) -> str:
    name = getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype).rpartition(".")[2]


def to_host(array: Any) -> np.ndarray:
    """An array of any library as NumPy's, of the same dtype; a copy only where it must be.

    A dtype that NumPy does not have by itself (bfloat16) takes the package ml_dtypes.
    """
    if isinstance(array, (np.ndarray, np.generic)):
        return np.asarray(array)
    name, array = dtype_name(array.dtype), resolved(array)
    if _is_tensor(array) and _is_freed(array):
        raise BufferError("the storage of the tensor is freed: it has no memory that can be read")
    for way in (_shared, lambda x: None if on_host(x) else _shared(x, device="cpu"), np.asarray):
        try:
            found = way(array)
        except RecursionError:
            raise
        except REFUSALS:
            continue
        if found is not None and dtype_name(found.dtype) == name:
            return found
    there = fetched(array)
    if isinstance(there, np.ndarray):
        return there
    if hasattr(np, name):
        raise BufferError(f"an array of type {type(array).__name__} has no memory that can be read")
    importlib.import_module("ml_dtypes")
    library = namespace(there)
    return to_host(library.astype(there, library.float32)).astype(name)


def copied(array: Any) -> Any:
    """A copy of an array, of its own library."""
    return np.array(array) if type(array) is np.ndarray else standard_namespace(array).asarray(array, copy=True)


def copied_like(value: Any, like: Any) -> Any:
    """A copy of an array, of any library, as one of the library and on the device of ``like``, with its shape and dtype."""
    if type(value) is type(like) is np.ndarray and value.dtype is like.dtype and like.flags.c_contiguous:
        return value.copy()
    library = namespace(like)
    if library is np:
        made = np.empty_like(like)
        made[...] = to_host(value)
        return made
    if namespace(value) is not library:
        value = np.array(to_host(value))  # of its own memory: a library may warn about what is read-only
        if (
            value.dtype.isbuiltin == 2
        ):  # of ml_dtypes, which most libraries cannot read; float32 holds all that they hold
            value = value.astype(np.float32)
    return library.asarray(value, dtype=like.dtype, device=device_of(like), copy=True)


def fingerprint(value: Any) -> int | None:
    """A number that tells what is in an array of NumPy's; None for anything else."""
    value = plain(value)
    return zlib.crc32(np.ascontiguousarray(value).data) if isinstance(value, np.ndarray) else None


def implementation(name: str, array: Any) -> Callable[..., Any]:
    """What computes an op on plain arrays of this library."""
    if name in _OF_NO_LIBRARY:
        return _OF_NO_LIBRARY[name]
    library = namespace(array)
    if name in _irregular:
        return functools.partial(_irregular[name], library)
    if library is np and name in _CANCELLING:
        return functools.partial(_with_all_digits, name)
    own = getattr(library, name, None) or _special(name, library, array)
    if own is None and name in _COMPOSED and not on_host(array):
        return functools.partial(_COMPOSED[name], lambda part: implementation(part, array))
    if own is None:
        return functools.partial(_through_host, name, library)
    if name in _ORDERED:
        return lambda order, x: own(_whole(order), x)
    if name in _OF_ARRAYS and library is not np:
        return functools.partial(_of_arrays, library, own)
    return functools.partial(_of_two, library, own) if name in _OF_TWO and library is not np else own


# --- functions that the standard does not have -------------------------------------------------------------------------


def _special(name: str, library: Any, array: Any) -> Callable[..., Any] | None:
    """The library's own special function, where it keeps them as SciPy does."""
    roots = {kind.partition(".")[0] for kind in (library.__name__, type(array).__module__)}
    for root in sorted(roots - {"numpy"}):
        for path in (f"{root}.special", f"{root}.scipy.special", f"{root}x.scipy.special"):
            try:
                found = getattr(importlib.import_module(path), name, None)
            except ImportError:
                continue
            if found is not None:
                return found
    return None


# Functions of which NumPy's lose digits next to their roots.
_CANCELLING = {"logaddexp", "logaddexp2"}

# Functions whose first argument is an order.
_ORDERED = {"polygamma", "jn", "yn", "iv"}


def _whole(value: Any) -> Any:
    """The order of a function as a whole number, which some libraries insist on."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _cbrt(op: Callable[[str], Any], x: Any) -> Any:
    return op("sign")(x) * op("abs")(x) ** (1.0 / 3.0)


def _logaddexp2(op: Callable[[str], Any], x1: Any, x2: Any) -> Any:
    ln2 = math.log(2.0)
    return op("logaddexp")(x1 * ln2, x2 * ln2) / ln2


def _betaln(op: Callable[[str], Any], a: Any, b: Any) -> Any:
    gammaln = op("gammaln")
    return gammaln(a) + gammaln(b) - gammaln(a + b)


# Functions of other ops, for arrays that the core cannot read and whose library does not have them: to fewer digits.
_COMPOSED: dict[str, Callable[..., Any]] = {
    "beta": lambda op, a, b: op("exp")(_betaln(op, a, b)),
    "betaln": _betaln,
    "cbrt": _cbrt,
    "erfcinv": lambda op, y: op("erfinv")(1.0 - y),
    "logaddexp2": _logaddexp2,
}


def _with_all_digits(name: str, *args: Any) -> Any:
    """What the core's kernel gives on floating-point arrays of NumPy's; NumPy, of other dtypes."""
    return _by_kernel(name, *args) if all(map(is_inexact, args)) else getattr(np, name)(*args)


def _through_host(name: str, library: Any, *args: Any) -> Any:
    """What the core's kernel of the op gives, for arrays that lie in host memory."""
    arrays = [value for value in args if is_array(value)]
    try:
        shared = [_shared(resolved(value)) if is_array(value) and library is not np else value for value in args]
    except RecursionError:
        raise
    except REFUSALS as error:
        raise NotImplementedError(
            f"{library.__name__} has no function {name}, and its array cannot be read in host memory"
        ) from error
    result = _by_kernel(name, *shared)
    return result if library is np or not arrays else library.asarray(result, device=arrays[0].device)


def _by_kernel(name: str, *args: Any) -> Any:
    dtype = np.result_type(*args)
    dtype = dtype if is_of_kind(dtype, "real floating", namespace()) else np.dtype(np.float64)
    computing = dtype if dtype.itemsize in (4, 8) else np.dtype(np.float32)
    arrays = np.broadcast_arrays(*(np.asarray(value, computing) for value in args))
    return _core.compute(name, list(arrays)).astype(dtype, copy=False)[()]


# --- functions that the standard has in another form -------------------------------------------------------------------


def _index(library: Any, x: Any, *, key: Any) -> Any:
    """``x[key]``; by ``take`` where one axis is indexed by a vector, which the standard has no other word for."""
    if isinstance(key, tuple) and len(key) > 1 and key[-1] is ...:
        *before, last = key[:-1]
        whole = all(isinstance(part, slice) and part == slice(None) for part in before)
        if whole and is_array(last) and len(last.shape) == 1 and not library.isdtype(last.dtype, "bool"):
            return library.take(x, last, axis=len(before))
    return x[key]


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts)


def _scatter_add(library: Any, g: Any, *, key: Any, shape: tuple[int, ...]) -> Any:
    zeros = library.zeros(shape, dtype=g.dtype, device=device_of(g))
    if hasattr(zeros, "at"):  # arrays that are never changed in place have this
        return zeros.at[key].add(g)
    if _is_basic(key):
        if key is None or (isinstance(key, tuple) and None in key):  # what is assigned to takes no new axes
            key = tuple(part for part in key or () if part is not None)
            g = library.reshape(g, zeros[key].shape)
        zeros[key] = g
        return zeros
    if hasattr(library.add, "at"):  # an add that is a ufunc
        library.add.at(zeros, key, g)
        return zeros
    places = library.reshape(library.arange(size_of(shape), device=device_of(g)), shape)
    places = library.reshape(_index(library, places, key=key), (-1,))
    return library.reshape(_sum_at(library, library.reshape(g, (-1,)), places, size_of(shape)), shape)


def _sum_at(library: Any, values: Any, places: Any, size: int) -> Any:
    """Zeros with the values added at places, which may come again: those of one place are added up by halves."""
    zeros = library.zeros(size, dtype=values.dtype, device=device_of(values))
    count = places.shape[0]
    if hasattr(zeros, "index_put_"):
        return zeros.index_put_((places,), values, accumulate=True)
    if not count:
        return zeros
    order = library.argsort(places)
    places, values = library.take(places, order), library.take(values, order)
    width = 1
    while width < count:
        same = places[width:] == places[:-width]
        if on_host(same) and not library.any(same):
            break
        added = library.where(same, values[width:], library.zeros_like(values[width:]))
        values = library.concat([values[:-width] + added, values[-width:]])
        width *= 2
    wanted = library.arange(size, dtype=places.dtype, device=device_of(values))
    first = library.searchsorted(places, wanted)
    there = first < library.searchsorted(places, wanted, side="right")
    return library.where(there, library.take(values, library.clip(first, max=count - 1)), zeros)


def _where(library: Any, condition: Any, x1: Any, x2: Any) -> Any:
    like = next((value for value in (x1, x2, condition) if is_array(value)), None)
    if like is None:  # complex numbers
        return x1 if condition else x2
    if not is_array(condition):
        condition = library.full((), bool(condition), device=device_of(like))
    if not on_host(like):  # a number that is copied to a device makes the host wait
        x1, x2 = (value if is_array(value) else _filled(library, value, like) for value in (x1, x2))
    elif not is_array(x1) and not is_array(x2):  # the standard takes one number, not two
        x1 = library.asarray(x1, device=device_of(like))
    return library.where(condition, x1, x2)


# Special functions of several arguments, of which some libraries take no numbers.
_OF_ARRAYS = {"beta", "betainc", "betaln", "gammainc", "gammaincc", "logaddexp2"}


def _of_arrays(library: Any, own: Callable[..., Any], *args: Any) -> Any:
    like = next(x for x in args if is_array(x))
    return own(*(x if is_array(x) else _filled(library, x, like) for x in args))


# Functions of two arguments that no operator stands for: a number among them is some libraries' to copy.
_OF_TWO = {"atan2", "hypot", "logaddexp", "maximum", "minimum"}


def _of_two(library: Any, own: Callable[..., Any], x1: Any, x2: Any) -> Any:
    like = x1 if is_array(x1) else x2
    if on_host(like):
        return own(x1, x2)
    return own(*(x if is_array(x) else _filled(library, x, like) for x in (x1, x2)))


def _filled(library: Any, number: Any, like: Any) -> Any:
    """A number as an array, made where another lies."""
    fits = is_inexact(like) and (is_complex(like) or not isinstance(number, complex))
    return library.full((), number, dtype=like.dtype if fits else None, device=device_of(like))


def _broadcast_to(library: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    if library is np and type(x) is not np.ndarray and isinstance(x, np.generic):
        x = np.asarray(x)
    if library is np and type(x) is np.ndarray and x.ndim == 0:
        repeated = np.ndarray(
            shape, x.dtype, x, 0, (0,) * len(shape)
        )  # what np.broadcast_to makes, in a tenth of the time
        repeated.flags.writeable = False
        return repeated
    return library.broadcast_to(x, shape)


# What knows no array library.
_OF_NO_LIBRARY: dict[str, Callable[..., Any]] = {
    "call": lambda *args, function, pull, push: function(*args),
    "item": lambda results, *, index: results[index],
}


def _cofactor(library: Any, x: Any) -> Any:
    """The derivative of the determinant; from singular values, of which some may be zero, where one may be."""
    if on_host(x):
        y = library.linalg.det(x)
        if bool(library.all(y != 0)):
            return y[..., None, None] * library.matrix_transpose(library.linalg.inv(x))
    u, s, vh = library.linalg.svd(x, full_matrices=False)
    n = s.shape[-1]
    others = library.where(library.eye(n, device=device_of(s)) > 0, library.ones_like(s)[..., None, :], s[..., None, :])
    sign = library.linalg.det(u @ vh)[..., None, None]
    y = (u * library.prod(others, axis=-1)[..., None, :]) @ vh
    return sign * (library.conj(y) if is_complex(y) else y)


def _sqrtm(library: Any, x: Any) -> Any:
    """By the product form of Denman's and Beavers' iteration, scaled by determinants (Cheng, Higham, Kenney and Laub 2001)."""
    n = x.shape[-1]
    eye = library.eye(n, dtype=x.dtype, device=device_of(x))
    root, m, there = x, x, on_host(x)
    for _ in range(_ROUNDS):
        logarithm = library.linalg.slogdet(m)[1][..., None, None]
        scale = library.astype(library.exp(logarithm / (-2.0 * max(n, 1))), x.dtype)
        inverse = library.linalg.inv(m) / (scale * scale)
        root = (root + root @ inverse) * scale * 0.5
        m = (eye + (m * (scale * scale) + inverse) * 0.5) * 0.5
        if there and not library.any(library.abs(m - eye) > 10.0 * n * float(library.finfo(x.dtype).eps)):
            break
    residual = library.linalg.matrix_norm(root @ root - x, keepdims=True)
    is_root = residual <= 1e-3 * library.linalg.matrix_norm(x, keepdims=True)
    return _where(library, is_root, root, math.nan)


# What scaling leaves to be done, for matrices as far from singular as numbers go.
_ROUNDS = 24


def _pinv(library: Any, x: Any, *, rtol: Any) -> Any:
    return library.linalg.pinv(x) if rtol is None else library.linalg.pinv(x, rtol=rtol)


def _rounded(name: str, library: Any, x: Any) -> Any:
    """The numbers of a dtype of half precision that are nearest, in the dtype of ``x``."""
    if library is np or not hasattr(library, name):
        return _through_host(f"round_to_{name}", library, x)
    return library.astype(library.astype(x, getattr(library, name)), x.dtype)


def _part(part: str, name: str, **options: Any) -> Callable[..., Any]:
    """A function of one of the standard's extensions."""

    def called(library: Any, *args: Any, **named: Any) -> Any:
        own = getattr(getattr(library, part, None), name, None)
        if own is None:
            raise NotImplementedError(f"{library.__name__} has no function {part}.{name}")
        return own(*args, **options, **named)

    return called


# What computes an op where the standard has no function of that name and signature.
_irregular: dict[str, Callable[..., Any]] = {
    "broadcast_to": _broadcast_to,
    "where": _where,
    "round_to_bfloat16": functools.partial(_rounded, "bfloat16"),
    "round_to_float16": functools.partial(_rounded, "float16"),
    "concat": lambda library, *arrays, axis, ends: library.concat(arrays, axis=axis),
    "stack": lambda library, *arrays, axis: library.stack(arrays, axis=axis),
    "index": _index,
    "scatter_add": _scatter_add,
    "astype": lambda library, x, *, dtype, copy: library.astype(x, dtype, copy=copy),
    "take_along_axis": lambda library, x, *, indices, axis: library.take_along_axis(x, indices, axis=axis),
    "cofactor": _cofactor,
    "pinv": _pinv,
    "sqrtm": _sqrtm,
    "qr": _part("linalg", "qr", mode="reduced"),
    "svd": _part("linalg", "svd", full_matrices=False),
    **{name: _part("linalg", name) for name in "inv solve cholesky eigh eig det slogdet vector_norm".split()},
    **{name: _part("fft", name) for name in "fftn ifftn rfft irfft".split()},
}
