# Printed by make generated, of NumPy 2.4.
from typing import Protocol, TypeAlias, TypeVar, overload
import numpy as _numpy
from numpy import random as random
from oxigrad._core import Variable
from oxigrad._typing import Axis
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array, Device, Dtype

# A type variable: a variable gives a variable, and an argument of unknown type gives a result of unknown type.
_V = TypeVar("_V", bound=Variable)
# An array of NumPy gives one; those of other libraries have no common type.
_Plain: TypeAlias = _numpy.ndarray[Any, Any]
# What combines with an array of NumPy to another one: not a variable, so that a variable and an argument of unknown
# type give a variable.
_Host: TypeAlias = _Plain | _numpy.generic | complex | list[Any] | tuple[Any, ...]

class _Ufunc(Protocol):
    def accumulate(self, array: Array, axis: int = 0, dtype: Dtype = None, out: Array = None) -> Array: ...
    def at(self, a: Array, indices: Any, b: Array = None) -> None: ...
    def outer(self, A: Array, B: Array, **named: Any) -> Array: ...
    def reduce(
        self, array: Array, axis: int | tuple[int, ...] | None = 0, dtype: Dtype = None, **named: Any,
    ) -> Array: ...
    def reduceat(self, array: Array, indices: Any, axis: int = 0, dtype: Dtype = None, out: Array = None) -> Array: ...

class _Of1(_Ufunc, Protocol):
    def __call__(self, x: Array, /, **named: Any) -> Array: ...

class _Of2(_Ufunc, Protocol):
    def __call__(self, x1: Array, x2: Array, /, **named: Any) -> Array: ...

class _Recorded1(_Ufunc, Protocol):
    @overload
    def __call__(self, x: _V, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x: _Plain, /, **named: Any) -> _Plain: ...
    @overload
    def __call__(self, x: Array, /, **named: Any) -> Array: ...

class _Recorded2(_Ufunc, Protocol):
    @overload
    def __call__(self, x1: _V, x2: Array, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x1: _Host, x2: _V, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x1: _Plain, x2: _Host, /, **named: Any) -> _Plain: ...
    @overload
    def __call__(self, x1: _Host, x2: _Plain, /, **named: Any) -> _Plain: ...
    @overload
    def __call__(self, x1: Array, x2: _V, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x1: Array, x2: Array, /, **named: Any) -> Array: ...

from oxigrad.ops.core.dtypes import (
    can_cast as can_cast, finfo as finfo, iinfo as iinfo, isdtype as isdtype, result_type as result_type,
)
from oxigrad.ops.core.indexed_update import (At as _at)
from oxigrad.ops.core.primitives import (
    astype as astype, concat as concat, stack as stack, take_along_axis as take_along_axis,
)
from oxigrad.ops.core.products import (convolve as convolve, cross as cross, einsum as einsum)
from oxigrad.ops.core.sets import (
    unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
)
from oxigrad.ops.core.standard import (
    asarray as asarray, broadcast_arrays as broadcast_arrays, cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum, linspace as linspace, meshgrid as meshgrid, repeat as repeat, tile as tile,
    unstack as unstack,
)
from oxigrad.ops.numpy.extras import (
    array_split as array_split, atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    column_stack as column_stack, dsplit as dsplit, dstack as dstack, gradient as gradient, hsplit as hsplit,
    hstack as hstack, partition as partition, rollaxis as rollaxis, split as split, swapaxes as swapaxes,
    vsplit as vsplit, vstack as vstack,
)
from oxigrad.ops.numpy.padding import (pad as pad)
from oxigrad.xp import (
    fft as fft, integrate as integrate, interpolate as interpolate, linalg as linalg, ndimage as ndimage,
    polynomial as polynomial, signal as signal, spatial as spatial, special as special, stats as stats,
)

from numpy import False_ as False_
from numpy import ScalarType as ScalarType
from numpy import True_ as True_
abs: _Recorded1
"""The absolute value of each element; its gradient at zero is zero. Recorded on the tape of its arguments."""
absolute: _Recorded1
acos: _Recorded1
"""The inverse cosine of each element, between 0 and pi. Recorded on the tape of its arguments."""
acosh: _Recorded1
"""The inverse hyperbolic cosine of each element. Recorded on the tape of its arguments."""
add: _Recorded2
"""The sum of each pair of elements: ``x1 + x2``. Recorded on the tape of its arguments."""
def all(x: Array, /, *, axis: Any = None, keepdims: _bool = False) -> Array:
    """Whether all elements along ``axis``, or all of the array, are true."""
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: _bool = False) -> Array: ...
def amax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = ..., initial: Any = ..., where: Any = ...,
) -> Array: ...
def amin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = ..., initial: Any = ..., where: Any = ...,
) -> Array: ...
@overload
def angle(z: _V, /) -> _V: ...
@overload
def angle(z: _Plain, /) -> _Plain: ...
@overload
def angle(z: Array, /) -> Array:
    """The angle of complex numbers, in radians."""
def any(x: Array, /, *, axis: Any = None, keepdims: _bool = False) -> Array:
    """Whether any element along ``axis``, or of the whole array, is true."""
def append(arr: Any, values: Any, axis: Any = None) -> Array: ...
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Array: ...
def apply_over_axes(func: Any, a: Any, axes: Any) -> Array: ...
def arange(start: Array, /, stop: Any = None, step: Any = 1, *, dtype: Dtype = None, device: Device = None) -> Array:
    """The numbers from ``start`` up to ``stop``, exclusive, by ``step``; from 0 to ``start`` if ``stop`` is None."""
arccos: _Recorded1
arccosh: _Recorded1
arcsin: _Recorded1
arcsinh: _Recorded1
arctan: _Recorded1
arctan2: _Recorded2
arctanh: _Recorded1
def argmax(x: Array, /, *, axis: Any = None, keepdims: _bool = False) -> Array:
    """The index of the first largest element along ``axis``, or in the flattened array."""
def argmin(x: Array, /, *, axis: Any = None, keepdims: _bool = False) -> Array:
    """The index of the first smallest element along ``axis``, or in the flattened array."""
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = 'introselect', order: Any = None) -> Array: ...
def argsort(x: Array, /, *, axis: Any = -1, descending: _bool = False, stable: _bool = True) -> Array:
    """The indices that sort the elements along ``axis``."""
def argwhere(a: Any) -> Array: ...
def around(a: Any, decimals: Any = 0, out: Any = None) -> Array: ...
def array(
    object: Any, dtype: Dtype = None, *, copy: _bool = True, order: str = 'K', subok: _bool = False, ndmin: Any = 0,
    ndmax: Any = 0, like: Any = None,
) -> Array: ...
def array2string(
    a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None, separator: str = ' ',
    prefix: str = '', *, formatter: Any = None, threshold: Any = None, edgeitems: Any = None, sign: Any = None,
    floatmode: Any = None, suffix: str = '', legacy: Any = None,
) -> Array: ...
def array_equal(a1: Any, a2: Any, equal_nan: _bool = False) -> Array: ...
def array_equiv(a1: Any, a2: Any) -> Array: ...
def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> Array: ...
def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> Array: ...
def asanyarray(
    a: Any, dtype: Dtype = None, order: Any = None, *, device: Device = None, copy: Any = None, like: Any = None,
) -> Array: ...
def asarray_chkfinite(a: Any, dtype: Dtype = None, order: Any = None) -> Array: ...
def ascontiguousarray(a: Any, dtype: Dtype = None, *, like: Any = None) -> Array: ...
def asfortranarray(a: Any, dtype: Dtype = None, *, like: Any = None) -> Array: ...
asin: _Recorded1
"""The inverse sine of each element, between -pi/2 and pi/2. Recorded on the tape of its arguments."""
asinh: _Recorded1
"""The inverse hyperbolic sine of each element. Recorded on the tape of its arguments."""
def asmatrix(data: Any, dtype: Dtype = None) -> Array: ...
at = _at
atan: _Recorded1
"""The inverse tangent of each element, between -pi/2 and pi/2. Recorded on the tape of its arguments."""
atan2: _Recorded2
"""The angle in radians, between -pi and pi, of each point with the ordinate ``x1`` and the abscissa ``x2``.
Recorded on the tape of its arguments.
"""
atanh: _Recorded1
"""The inverse hyperbolic tangent of each element. Recorded on the tape of its arguments."""
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: _bool = False, *, keepdims: Any = ...,
) -> Array: ...
def bartlett(M: Any) -> Array: ...
def base_repr(number: Any, base: Any = 2, padding: Any = 0) -> Array: ...
def beta(x1: Array, x2: Array, /) -> Array:
    """The beta function of each pair of elements. Recorded on the tape of its arguments."""
def betainc(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The regularized incomplete beta function of parameters ``x1`` and ``x2`` at ``x3``. Recorded on the tape of
    its arguments.
    """
def betainc_a(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The derivative of ``betainc`` with respect to its first parameter. Recorded on the tape of its arguments."""
def betainc_aa(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The second derivative of ``betainc`` with respect to its first parameter. Recorded on the tape of its
    arguments.
    """
def betainc_ab(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The second derivative of ``betainc`` with respect to both parameters. Recorded on the tape of its arguments."""
def betainc_b(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The derivative of ``betainc`` with respect to its second parameter. Recorded on the tape of its arguments."""
def betainc_bb(x1: Array, x2: Array, x3: Array, /) -> Array:
    """The second derivative of ``betainc`` with respect to its second parameter. Recorded on the tape of its
    arguments.
    """
def betaln(x1: Array, x2: Array, /) -> Array:
    """The logarithm of the beta function of each pair of elements. Recorded on the tape of its arguments."""
def binary_repr(num: Any, width: Any = None) -> Array: ...
def bincount(x: Array, /, weights: Any = None, minlength: Any = 0) -> Array: ...
bitwise_and: _Of2
"""``x1 & x2`` for each bit, of integers or truth values."""
bitwise_count: _Of1
bitwise_invert: _Of1
"""``~x`` for each bit, of integers or truth values."""
bitwise_left_shift: _Of2
"""The bits of ``x1`` moved to the left by ``x2`` places, zeros moved in: ``x1 << x2``."""
bitwise_not: _Of1
bitwise_or: _Of2
"""``x1 | x2`` for each bit, of integers or truth values."""
bitwise_right_shift: _Of2
"""The bits of ``x1`` moved to the right by ``x2`` places, the sign bit repeated: ``x1 >> x2``."""
bitwise_xor: _Of2
"""``x1 ^ x2`` for each bit, of integers or truth values."""
def blackman(M: Any) -> Array: ...
def block(arrays: Any) -> Array: ...
def bmat(obj: Any, ldict: Any = None, gdict: Any = None) -> Array: ...
bool: Dtype
from numpy import bool_ as bool_
from numpy import broadcast as broadcast
def broadcast_shapes(*shapes: Any) -> Array:
    """The shape to which arrays of these shapes broadcast."""
@overload
def broadcast_to(x: _V, /, shape: tuple[int, ...]) -> _V: ...
@overload
def broadcast_to(x: _Plain, /, shape: tuple[int, ...]) -> _Plain: ...
@overload
def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """``x`` repeated to a larger shape."""
def busday_count(
    begindates: Any, enddates: Any, weekmask: str = '1111100', holidays: Any = (), busdaycal: Any = None,
    out: Any = None,
) -> Array: ...
def busday_offset(
    dates: Any, offsets: Any, roll: str = 'raise', weekmask: str = '1111100', holidays: Any = None,
    busdaycal: Any = None, out: Any = None,
) -> Array: ...
from numpy import busdaycalendar as busdaycalendar
from numpy import byte as byte
bytes_: Dtype
c_: Any
cbrt: _Recorded1
"""The cube root of each element. Recorded on the tape of its arguments."""
from numpy import cdouble as cdouble
ceil: _Of1
"""The smallest integer that is not below each element. Recorded on the tape of its arguments."""
character: Dtype
def choose(a: Any, choices: Any, out: Any = None, mode: str = 'raise') -> Array: ...
@overload
def clip(x: _V, /, min: Array | None=None, max: Array | None=None) -> _V: ...
@overload
def clip(x: _Plain, /, min: Array | None=None, max: Array | None=None) -> _Plain: ...
@overload
def clip(x: Array, /, min: Array | None=None, max: Array | None=None) -> Array:
    """``x`` clipped to ``[min, max]``; at a bound the gradient is shared evenly with the bound."""
clongdouble: Dtype
def common_type(*arrays: Any) -> Array: ...
complex128: Dtype
from numpy import complex256 as complex256
complex64: Dtype
complexfloating: Dtype
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Array: ...
def concatenate(
    arrays: Array, /, axis: Any = 0, out: Any = None, *, dtype: Dtype = None, casting: str = 'same_kind',
) -> Array: ...
conj: _Recorded1
"""The complex conjugate of each element. Recorded on the tape of its arguments."""
@overload
def conjugate(x: _V, /) -> _V: ...
@overload
def conjugate(x: _Plain, /) -> _Plain: ...
@overload
def conjugate(x: Array, /) -> Array:
    """``conj`` of a complex array; a real one unchanged."""
@overload
def copy(x: _V, /) -> _V: ...
@overload
def copy(x: _Plain, /) -> _Plain: ...
@overload
def copy(x: Array, /) -> Array:
    """A copy of ``x``."""
@overload
def copysign(x1: _V, x2: Array, /) -> _V: ...
@overload
def copysign(x1: Array, x2: _V, /) -> _V: ...
@overload
def copysign(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def copysign(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def copysign(x1: Array, x2: Array, /) -> Array:
    """The magnitude of ``x1`` with the sign of ``x2``. The gradients of ``x2``, and of ``x1`` at zero, are zero."""
def copyto(dst: Any, src: Any, casting: str = 'same_kind', where: _bool = True) -> Array: ...
def corrcoef(x: Any, y: Any = None, rowvar: _bool = True, *, dtype: Dtype = None) -> Array: ...
def correlate(a: Any, v: Any, mode: str = 'valid') -> Array: ...
cos: _Recorded1
"""The cosine of each element, an angle in radians. Recorded on the tape of its arguments."""
cosh: _Recorded1
"""The hyperbolic cosine of each element. Recorded on the tape of its arguments."""
def count_nonzero(x: Array, /, *, axis: Any = None, keepdims: _bool = False) -> Array:
    """The number of elements along ``axis``, or in the whole array, that are not zero."""
def cov(
    m: Any, y: Any = None, rowvar: _bool = True, bias: _bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Dtype = None,
) -> Array: ...
from numpy import csingle as csingle
@overload
def cumprod(x: _V, /, *, axis: int | None=None, dtype: Dtype=None) -> _V: ...
@overload
def cumprod(x: _Plain, /, *, axis: int | None=None, dtype: Dtype=None) -> _Plain: ...
@overload
def cumprod(x: Array, /, *, axis: int | None=None, dtype: Dtype=None) -> Array:
    """Cumulative products along ``axis``, or of the flattened array if ``axis`` is None or ``x`` is 0-d."""
@overload
def cumsum(x: _V, /, *, axis: int | None=None, dtype: Dtype=None) -> _V: ...
@overload
def cumsum(x: _Plain, /, *, axis: int | None=None, dtype: Dtype=None) -> _Plain: ...
@overload
def cumsum(x: Array, /, *, axis: int | None=None, dtype: Dtype=None) -> Array:
    """Cumulative sums along ``axis``; of the flattened array if ``axis`` is None or ``x`` is 0-d."""
datetime64: Dtype
def datetime_as_string(arr: Any, unit: Any = None, timezone: str = 'naive', casting: str = 'same_kind') -> Array: ...
def datetime_data(dtype: Dtype, /) -> Array: ...
@overload
def deg2rad(x: _V, /) -> _V: ...
@overload
def deg2rad(x: _Plain, /) -> _Plain: ...
@overload
def deg2rad(x: Array, /) -> Array:
    """Degrees as radians."""
degrees: _Recorded1
def delete(arr: Any, obj: Any, axis: Any = None) -> Array: ...
@overload
def diag(v: _V, k: int=0) -> _V: ...
@overload
def diag(v: _Plain, k: int=0) -> _Plain: ...
@overload
def diag(v: Array, k: int=0) -> Array:
    """The matrix with the vector ``v`` on its ``k``-th diagonal, or that diagonal of a matrix ``v``."""
def diag_indices(n: Any, ndim: Any = 2) -> Array: ...
def diag_indices_from(arr: Any) -> Array: ...
def diagflat(v: Any, k: Any = 0) -> Array: ...
@overload
def diagonal(x: _V, offset: int=0, axis1: int=0, axis2: int=1) -> _V: ...
@overload
def diagonal(x: _Plain, offset: int=0, axis1: int=0, axis2: int=1) -> _Plain: ...
@overload
def diagonal(x: Array, offset: int=0, axis1: int=0, axis2: int=1) -> Array:
    """The diagonal of the matrices along two axes, as the last axis; ``offset`` counts diagonals above the main one."""
@overload
def diff(x: _V, /, *, axis: int=-1, n: int=1, prepend: Array | None=None, append: Array | None=None) -> _V: ...
@overload
def diff(x: _Plain, /, *, axis: int=-1, n: int=1, prepend: Array | None=None, append: Array | None=None) -> _Plain: ...
@overload
def diff(x: Array, /, *, axis: int=-1, n: int=1, prepend: Array | None=None, append: Array | None=None) -> Array:
    """The ``n``-th differences of neighbours along ``axis``."""
def digamma(x: Array, /) -> Array:
    """The derivative of the logarithm of the gamma function at each element. Recorded on the tape of its arguments."""
def digitize(x: Any, bins: Any, right: _bool = False) -> Array: ...
divide: _Recorded2
"""The quotient of each pair of elements: ``x1 / x2``. Recorded on the tape of its arguments."""
def divmod(
    x1: Array, x2: Array, /, out: Any = (None, None), *, where: _bool = True, casting: str = 'same_kind',
    order: str = 'K', dtype: Dtype = None, subok: _bool = True, signature: Any = None,
) -> Array: ...
@overload
def dot(x1: _V, x2: Array, /) -> _V: ...
@overload
def dot(x1: Array, x2: _V, /) -> _V: ...
@overload
def dot(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def dot(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def dot(x1: Array, x2: Array, /) -> Array:
    """Sum of products over the last dimension of ``x1`` and the second to last of ``x2``, as in NumPy."""
from numpy import double as double
from numpy import dtype as dtype
e: float
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array: ...
def einsum_path(*operands: Any, optimize: str = 'greedy', einsum_call: _bool = False) -> Array: ...
def empty(shape: Any, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of a shape whose elements are not initialized."""
def empty_like(x: Array, /, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of the shape of ``x`` whose elements are not initialized."""
equal: _Of2
"""Whether ``x1 == x2``, for each pair of elements. Recorded on the tape of its arguments."""
def erf(x: Array, /) -> Array:
    """The error function of each element. Recorded on the tape of its arguments."""
def erfc(x: Array, /) -> Array:
    """The complementary error function ``1 - erf(x)`` of each element. Recorded on the tape of its arguments."""
def erfcinv(x: Array, /) -> Array:
    """The inverse of the complementary error function of each element. Recorded on the tape of its arguments."""
def erfinv(x: Array, /) -> Array:
    """The inverse of the error function of each element. Recorded on the tape of its arguments."""
from numpy import errstate as errstate
euler_gamma: float
exp: _Recorded1
"""The exponential function of each element. Recorded on the tape of its arguments."""
@overload
def exp2(x: _V, /) -> _V: ...
@overload
def exp2(x: _Plain, /) -> _Plain: ...
@overload
def exp2(x: Array, /) -> Array:
    """2 to the power ``x``."""
@overload
def expand_dims(x: _V, /, axis: int=0) -> _V: ...
@overload
def expand_dims(x: _Plain, /, axis: int=0) -> _Plain: ...
@overload
def expand_dims(x: Array, /, axis: int=0) -> Array:
    """A new dimension of size 1 at ``axis``."""
def expit(x: Array, /) -> Array:
    """The logistic function ``1 / (1 + exp(-x))`` of each element. Recorded on the tape of its arguments."""
expm1: _Recorded1
"""``exp(x) - 1`` of each element, accurate near zero. Recorded on the tape of its arguments."""
def extract(condition: Any, arr: Any) -> Array: ...
def eye(n_rows: Array, n_cols: Any = None, /, *, k: Any = 0, dtype: Dtype = None, device: Device = None) -> Array:
    """A matrix with ones on the ``k``-th diagonal and zeros elsewhere; square if ``n_cols`` is None."""
@overload
def fabs(x: _V, /) -> _V: ...
@overload
def fabs(x: _Plain, /) -> _Plain: ...
@overload
def fabs(x: Array, /) -> Array:
    """Absolute value."""
def fill_diagonal(a: Any, val: Any, wrap: _bool = False) -> Array: ...
def fix(x: Any, out: Any = None) -> Array: ...
from numpy import flatiter as flatiter
def flatnonzero(a: Any) -> Array: ...
flexible: Dtype
@overload
def flip(x: _V, /, axis: Axis=None) -> _V: ...
@overload
def flip(x: _Plain, /, axis: Axis=None) -> _Plain: ...
@overload
def flip(x: Array, /, axis: Axis=None) -> Array:
    """The elements in reverse order along ``axis``, or along every axis."""
@overload
def fliplr(x: _V, /) -> _V: ...
@overload
def fliplr(x: _Plain, /) -> _Plain: ...
@overload
def fliplr(x: Array, /) -> Array:
    """Columns in reverse order."""
@overload
def flipud(x: _V, /) -> _V: ...
@overload
def flipud(x: _Plain, /) -> _Plain: ...
@overload
def flipud(x: Array, /) -> Array:
    """Rows in reverse order."""
from numpy import float128 as float128
float16: Dtype
float32: Dtype
float64: Dtype
@overload
def float_power(x1: _V, x2: Array, /) -> _V: ...
@overload
def float_power(x1: Array, x2: _V, /) -> _V: ...
@overload
def float_power(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def float_power(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def float_power(x1: Array, x2: Array, /) -> Array:
    """``x1`` to the power ``x2``, in double precision."""
floating: Dtype
floor: _Of1
"""The largest integer that is not above each element. Recorded on the tape of its arguments."""
floor_divide: _Of2
"""The largest integer that is not above the quotient of each pair of elements: ``x1 // x2``. Recorded on the
tape of its arguments.
"""
@overload
def fmax(x1: _V, x2: Array, /) -> _V: ...
@overload
def fmax(x1: Array, x2: _V, /) -> _V: ...
@overload
def fmax(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def fmax(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def fmax(x1: Array, x2: Array, /) -> Array:
    """The larger element, or the other one if one is NaN. Equal elements share the gradient evenly."""
@overload
def fmin(x1: _V, x2: Array, /) -> _V: ...
@overload
def fmin(x1: Array, x2: _V, /) -> _V: ...
@overload
def fmin(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def fmin(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def fmin(x1: Array, x2: Array, /) -> Array:
    """The smaller element, or the other one if one is NaN. Equal elements share the gradient evenly."""
fmod: _Recorded2
def format_float_positional(
    x: Any, precision: Any = None, unique: _bool = True, fractional: _bool = True, trim: str = 'k', sign: _bool = False,
    pad_left: Any = None, pad_right: Any = None, min_digits: Any = None,
) -> Array: ...
def format_float_scientific(
    x: Any, precision: Any = None, unique: _bool = True, trim: str = 'k', sign: _bool = False, pad_left: Any = None,
    exp_digits: Any = None, min_digits: Any = None,
) -> Array: ...
def frexp(
    x: Array, /, out: Any = (None, None), *, where: _bool = True, casting: str = 'same_kind', order: str = 'K',
    dtype: Dtype = None, subok: _bool = True, signature: Any = None,
) -> Array: ...
def from_dlpack(x: Array, /, *, device: Device = None, copy: Any = None) -> Array:
    """A NumPy array of the elements of an object with ``__dlpack__``, in the same memory if possible."""
def frombuffer(buffer: Any, dtype: Dtype = None, count: Any = -1, offset: Any = 0, *, like: Any = None) -> Array: ...
def fromfile(
    file: Any, dtype: Dtype = None, count: Any = -1, sep: str = '', offset: Any = 0, *, like: Any = None,
) -> Array: ...
def fromfunction(function: Any, shape: Any, *, dtype: Dtype = ..., like: Any = None, **kwargs: Any) -> Array: ...
def fromiter(iter: Any, dtype: Dtype, count: Any = -1, *, like: Any = None) -> Array: ...
def frompyfunc(func: Array, /, nin: Any, nout: Any, **kwargs: Any) -> Array: ...
def fromregex(file: Any, regexp: Any, dtype: Dtype, encoding: Any = None) -> Array: ...
def fromstring(*args: Any, **named: Any) -> Array: ...
def full(shape: Any, fill_value: Any, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array filled with one number, which may be a variable."""
def full_like(x: Array, /, fill_value: Any, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of the shape and dtype of ``x``, filled with one number, which may be a variable."""
def gamma(x: Array, /) -> Array:
    """The gamma function of each element. Recorded on the tape of its arguments."""
def gammainc(x1: Array, x2: Array, /) -> Array:
    """The regularized lower incomplete gamma function with the parameter ``x1``, from 0 to ``x2``. Recorded on the
    tape of its arguments.
    """
def gammainc_a(x1: Array, x2: Array, /) -> Array:
    """The derivative of ``gammainc`` with respect to its parameter. Recorded on the tape of its arguments."""
def gammaincc(x1: Array, x2: Array, /) -> Array:
    """The regularized upper incomplete gamma function with the parameter ``x1``, from ``x2`` to infinity. Recorded
    on the tape of its arguments.
    """
def gammaln(x: Array, /) -> Array:
    """The logarithm of the absolute value of the gamma function of each element. Recorded on the tape of its
    arguments.
    """
gcd: _Of2
generic: Dtype
def genfromtxt(
    fname: Any, dtype: Dtype = ..., comments: str = '#', delimiter: Any = None, skip_header: Any = 0,
    skip_footer: Any = 0, converters: Any = None, missing_values: Any = None, filling_values: Any = None,
    usecols: Any = None, names: Any = None, excludelist: Any = None,
    deletechars: str = " !#$%&'()*+,-./:;<=>?@[\\]^{|}~", replace_space: str = '_', autostrip: _bool = False,
    case_sensitive: _bool = True, defaultfmt: str = 'f%i', unpack: Any = None, usemask: _bool = False,
    loose: _bool = True, invalid_raise: _bool = True, max_rows: Any = None, encoding: Any = None, *, ndmin: Any = 0,
    like: Any = None,
) -> Array: ...
def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: _bool = True, dtype: Dtype = None, axis: Any = 0,
) -> Array: ...
def get_include() -> Array: ...
def get_printoptions() -> Array: ...
def getbufsize() -> Array: ...
def geterr() -> Array: ...
def geterrcall() -> Array: ...
greater: _Of2
"""Whether ``x1 > x2``, for each pair of elements. Recorded on the tape of its arguments."""
greater_equal: _Of2
"""Whether ``x1 >= x2``, for each pair of elements. Recorded on the tape of its arguments."""
from numpy import half as half
def hamming(M: Any) -> Array: ...
def hanning(M: Any) -> Array: ...
heaviside: _Recorded2
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Array: ...
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None,
) -> Array: ...
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array: ...
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Array: ...
hypot: _Recorded2
"""``sqrt(x1**2 + x2**2)`` of each pair of elements, without overflow. Recorded on the tape of its arguments."""
def i0(x: Any) -> Array: ...
def identity(n: Any, dtype: Dtype = None, *, like: Any = None) -> Array: ...
def imag(x: Array, /) -> Array:
    """The imaginary part of each element. Recorded on the tape of its arguments."""
from numpy import index_exp as index_exp
def indices(dimensions: Any, dtype: Dtype = ..., sparse: _bool = False) -> Array: ...
inexact: Dtype
inf: float
def info(object: Any = None, maxwidth: Any = 76, output: Any = None, toplevel: str = 'numpy') -> Array: ...
@overload
def inner(x1: _V, x2: Array, /) -> _V: ...
@overload
def inner(x1: Array, x2: _V, /) -> _V: ...
@overload
def inner(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def inner(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def inner(x1: Array, x2: Array, /) -> Array:
    """Sum of products over the last dimensions."""
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Array: ...
int16: Dtype
int32: Dtype
int64: Dtype
int8: Dtype
from numpy import int_ as int_
from numpy import intc as intc
integer: Dtype
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array: ...
def intersect1d(ar1: Any, ar2: Any, assume_unique: _bool = False, return_indices: _bool = False) -> Array: ...
from numpy import intp as intp
invert: _Of1
def is_busday(
    dates: Any, weekmask: str = '1111100', holidays: Any = None, busdaycal: Any = None, out: Any = None,
) -> Array: ...
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: _bool = False) -> Array: ...
def iscomplex(x: Any) -> Array: ...
def iscomplexobj(x: Any) -> Array: ...
isfinite: _Of1
"""Whether each element is finite: neither NaN nor infinite. Recorded on the tape of its arguments."""
def isfortran(a: Any) -> Array: ...
def isin(x1: Array, x2: Array, /, *, invert: _bool = False) -> Array:
    """Whether each element of ``x1`` is in ``x2``; the negation if ``invert`` is true."""
isinf: _Of1
"""Whether each element is infinite. Recorded on the tape of its arguments."""
isnan: _Of1
"""Whether each element is NaN. Recorded on the tape of its arguments."""
isnat: _Of1
def isneginf(x: Any, out: Any = None) -> Array: ...
def isposinf(x: Any, out: Any = None) -> Array: ...
def isreal(x: Any) -> Array: ...
def isrealobj(x: Any) -> Array: ...
def isscalar(element: Any) -> Array: ...
def issubdtype(arg1: Any, arg2: Any) -> Array: ...
def iterable(y: Any) -> Array: ...
def iv(x1: Array, x2: Array, /) -> Array:
    """The modified Bessel function of the first kind of order ``x1`` at each element of ``x2``. Recorded on the tape
    of its arguments.
    """
def ix_(*args: Any) -> Array: ...
def jn(x1: Array, x2: Array, /) -> Array:
    """The Bessel function of the first kind of integer order ``x1`` at each element of ``x2``. Recorded on the tape
    of its arguments.
    """
def kaiser(M: Any, beta: Any) -> Array: ...
@overload
def kron(x1: _V, x2: Array, /) -> _V: ...
@overload
def kron(x1: Array, x2: _V, /) -> _V: ...
@overload
def kron(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def kron(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def kron(x1: Array, x2: Array, /) -> Array:
    """Kronecker product: blocks of ``x2``, scaled by the elements of ``x1``."""
lcm: _Of2
ldexp: _Of2
left_shift: _Of2
less: _Of2
"""Whether ``x1 < x2``, for each pair of elements. Recorded on the tape of its arguments."""
less_equal: _Of2
"""Whether ``x1 <= x2``, for each pair of elements. Recorded on the tape of its arguments."""
def lexsort(keys: Any, axis: Any = -1) -> Array: ...
from numpy import little_endian as little_endian
def load(
    file: Any, mmap_mode: Any = None, allow_pickle: _bool = False, fix_imports: _bool = True, encoding: str = 'ASCII',
    *, max_header_size: Any = 10000,
) -> Array: ...
def loadtxt(
    fname: Any, dtype: Dtype = ..., comments: str = '#', delimiter: Any = None, converters: Any = None,
    skiprows: Any = 0, usecols: Any = None, unpack: _bool = False, ndmin: Any = 0, encoding: Any = None,
    max_rows: Any = None, *, quotechar: Any = None, like: Any = None,
) -> Array: ...
log: _Recorded1
"""The natural logarithm of each element. Recorded on the tape of its arguments."""
log10: _Recorded1
"""The logarithm to base 10 of each element. Recorded on the tape of its arguments."""
log1p: _Recorded1
"""``log(1 + x)`` of each element, accurate near zero. Recorded on the tape of its arguments."""
log2: _Recorded1
"""The logarithm to base 2 of each element. Recorded on the tape of its arguments."""
logaddexp: _Recorded2
"""``log(exp(x1) + exp(x2))`` of each pair of elements, without overflow. Recorded on the tape of its arguments."""
logaddexp2: _Recorded2
"""``log2(2**x1 + 2**x2)`` of each pair of elements, without overflow. Recorded on the tape of its arguments."""
logical_and: _Of2
"""Whether both elements of each pair are true. Recorded on the tape of its arguments."""
logical_not: _Of1
"""Whether each element is false. Recorded on the tape of its arguments."""
logical_or: _Of2
"""Whether at least one element of each pair is true. Recorded on the tape of its arguments."""
logical_xor: _Of2
"""Whether exactly one element of each pair is true. Recorded on the tape of its arguments."""
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: _bool = True, base: Any = 10.0, dtype: Dtype = None, axis: Any = 0,
) -> Array: ...
from numpy import long as long
longdouble: Dtype
longlong: Dtype
def mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Array: ...
@overload
def matmul(x1: _V, x2: Array, /) -> _V: ...
@overload
def matmul(x1: Array, x2: _V, /) -> _V: ...
@overload
def matmul(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def matmul(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product, over stacks of matrices and with vectors as in the standard."""
from numpy import matrix as matrix
@overload
def matrix_transpose(x: _V, /) -> _V: ...
@overload
def matrix_transpose(x: _Plain, /) -> _Plain: ...
@overload
def matrix_transpose(x: Array, /) -> Array:
    """The transpose of each matrix of a stack."""
matvec: _Recorded2
@overload
def max(x: _V, /, axis: Axis=None, *, keepdims: _bool=False, initial: Array | None=None, where: Array=None) -> _V: ...
@overload
def max(
    x: _Plain, /, axis: Axis=None, *, keepdims: _bool=False, initial: Array | None=None, where: Array=None,
) -> _Plain: ...
@overload
def max(x: Array, /, axis: Axis=None, *, keepdims: _bool=False, initial: Array | None=None, where: Array=None) -> Array:
    """Largest element along ``axis``; equal largest elements share the gradient evenly."""
maximum: _Recorded2
"""The larger of each pair of elements; equal elements share the gradient evenly. Recorded on the tape of its
arguments.
"""
def may_share_memory(a: Array, b: Array, /, max_work: Any = 0) -> Array: ...
@overload
def mean(x: _V, /, axis: Axis=None, *, dtype: Dtype=None, keepdims: _bool=False, where: Array=None) -> _V: ...
@overload
def mean(x: _Plain, /, axis: Axis=None, *, dtype: Dtype=None, keepdims: _bool=False, where: Array=None) -> _Plain: ...
@overload
def mean(x: Array, /, axis: Axis=None, *, dtype: Dtype=None, keepdims: _bool=False, where: Array=None) -> Array:
    """Arithmetic mean over ``axis``, or over everything, of the elements that ``where`` selects."""
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, keepdims: _bool = False,
) -> Array: ...
from numpy import memmap as memmap
from numpy import mgrid as mgrid
@overload
def min(x: _V, /, axis: Axis=None, *, keepdims: _bool=False, initial: Array | None=None, where: Array=None) -> _V: ...
@overload
def min(
    x: _Plain, /, axis: Axis=None, *, keepdims: _bool=False, initial: Array | None=None, where: Array=None,
) -> _Plain: ...
@overload
def min(x: Array, /, axis: Axis=None, *, keepdims: _bool=False, initial: Array | None=None, where: Array=None) -> Array:
    """Smallest element along ``axis``; equal smallest elements share the gradient evenly."""
def min_scalar_type(a: Array, /) -> Array: ...
minimum: _Recorded2
"""The smaller of each pair of elements; equal elements share the gradient evenly. Recorded on the tape of its
arguments.
"""
def mintypecode(typechars: Any, typeset: str = 'GDFgdf', default: str = 'd') -> Array: ...
mod: _Recorded2
def modf(
    x: Array, /, out: Any = (None, None), *, where: _bool = True, casting: str = 'same_kind', order: str = 'K',
    dtype: Dtype = None, subok: _bool = True, signature: Any = None,
) -> Array: ...
def modulus_slope(x1: Array, x2: Array, x3: Array, /) -> Array:
    """``x1 * x2 / x3`` of each triple of elements, zero where ``x3`` is zero. Recorded on the tape of its arguments."""
@overload
def moveaxis(x: _V, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> _V: ...
@overload
def moveaxis(x: _Plain, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> _Plain: ...
@overload
def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """The dimensions ``source`` moved to ``destination``; the others keep their order."""
multiply: _Recorded2
"""The product of each pair of elements: ``x1 * x2``. Recorded on the tape of its arguments."""
nan: float
@overload
def nan_to_num(
    x: _V, /, *, copy: _bool=True, nan: float=0.0, posinf: float | None=None, neginf: float | None=None,
) -> _V: ...
@overload
def nan_to_num(
    x: _Plain, /, *, copy: _bool=True, nan: float=0.0, posinf: float | None=None, neginf: float | None=None,
) -> _Plain: ...
@overload
def nan_to_num(
    x: Array, /, *, copy: _bool=True, nan: float=0.0, posinf: float | None=None, neginf: float | None=None,
) -> Array:
    """``x`` with NaN and infinities replaced by finite numbers, with a zero gradient; in place if not ``copy``."""
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = ...) -> Array: ...
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = ...) -> Array: ...
def nancumprod(a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None) -> Array: ...
def nancumsum(a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None) -> Array: ...
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = ..., initial: Any = ..., where: Any = ...,
) -> Array: ...
def nanmean(
    a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None, keepdims: Any = ..., *, where: Any = ...,
) -> Array: ...
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, keepdims: Any = ...,
) -> Array: ...
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = ..., initial: Any = ..., where: Any = ...,
) -> Array: ...
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear',
    keepdims: Any = ..., *, weights: Any = None,
) -> Array: ...
def nanprod(
    a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None, keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Array: ...
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear',
    keepdims: Any = ..., *, weights: Any = None,
) -> Array: ...
def nanstd(
    a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None, ddof: Any = 0, keepdims: Any = ..., *,
    where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> Array: ...
def nansum(
    a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None, keepdims: Any = ..., initial: Any = ...,
    where: Any = ...,
) -> Array: ...
def nanvar(
    a: Any, axis: Any = None, dtype: Dtype = None, out: Any = None, ddof: Any = 0, keepdims: Any = ..., *,
    where: Any = ..., mean: Any = ..., correction: Any = ...,
) -> Array: ...
from numpy import ndarray as ndarray
from numpy import ndenumerate as ndenumerate
def ndim(a: Any) -> Array: ...
from numpy import ndindex as ndindex
from numpy import nditer as nditer
negative: _Recorded1
"""The negative of each element: ``-x``. Recorded on the tape of its arguments."""
def nested_iters(
    op: Any, axes: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, order: str = 'K',
    casting: str = 'safe', buffersize: Any = 0,
) -> Array: ...
newaxis: Any
nextafter: _Of2
"""The floating-point number next to ``x1`` in the direction of ``x2``."""
def nonzero(x: Array, /) -> Array:
    """The indices of the elements that are not zero: an array for each axis."""
not_equal: _Of2
"""Whether ``x1 != x2``, for each pair of elements. Recorded on the tape of its arguments."""
number: Dtype
object_: Dtype
from numpy import ogrid as ogrid
def ones(shape: Any, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of a shape, filled with ones."""
def ones_like(x: Array, /, *, dtype: Dtype = None, device: Device = None) -> Array:
    """Ones of the shape of ``x``: a plain array, and inside of a transform a variable that takes assignments."""
@overload
def outer(x1: _V, x2: Array, /) -> _V: ...
@overload
def outer(x1: Array, x2: _V, /) -> _V: ...
@overload
def outer(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def outer(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def outer(x1: Array, x2: Array, /) -> Array:
    """The outer product of two vectors; arrays of more dimensions are flattened, as in NumPy."""
def packbits(a: Array, /, axis: Any = None, bitorder: str = 'big') -> Array: ...
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear',
    keepdims: _bool = False, *, weights: Any = None,
) -> Array: ...
@overload
def permute_dims(x: _V, /, axes: tuple[int, ...] | None=None) -> _V: ...
@overload
def permute_dims(x: _Plain, /, axes: tuple[int, ...] | None=None) -> _Plain: ...
@overload
def permute_dims(x: Array, /, axes: tuple[int, ...] | None=None) -> Array:
    """The dimensions permuted; reversed where ``axes`` is not given, as in NumPy."""
pi: float
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array: ...
def place(arr: Any, mask: Any, vals: Any) -> Array: ...
def poly(seq_of_zeros: Any) -> Array: ...
from numpy import poly1d as poly1d
def polyadd(a1: Any, a2: Any) -> Array: ...
def polyder(p: Any, m: Any = 1) -> Array: ...
def polydiv(u: Any, v: Any) -> Array: ...
def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: _bool = False, w: Any = None, cov: _bool = False,
) -> Array: ...
def polygamma(x1: Array, x2: Array, /) -> Array:
    """The derivative of order ``x1`` of the digamma function at each element of ``x2``. Recorded on the tape of its
    arguments.
    """
def polyint(p: Any, m: Any = 1, k: Any = None) -> Array: ...
def polymul(a1: Any, a2: Any) -> Array: ...
def polysub(a1: Any, a2: Any) -> Array: ...
def polyval(p: Any, x: Any) -> Array: ...
positive: _Recorded1
"""Each element itself: ``+x``. Recorded on the tape of its arguments."""
pow: _Recorded2
"""Each element of ``x1`` to the power of that of ``x2``: ``x1 ** x2``. Recorded on the tape of its arguments."""
power: _Recorded2
def printoptions(*args: Any, **kwargs: Any) -> Array: ...
@overload
def prod(x: _V, /, *, axis: Axis=None, dtype: Dtype=None, keepdims: _bool=False) -> _V: ...
@overload
def prod(x: _Plain, /, *, axis: Axis=None, dtype: Dtype=None, keepdims: _bool=False) -> _Plain: ...
@overload
def prod(x: Array, /, *, axis: Axis=None, dtype: Dtype=None, keepdims: _bool=False) -> Array:
    """Product over ``axis``, or over all elements, computed pairwise; derivatives are exact at zero elements."""
def promote_types(type1: Array, type2: Array, /) -> Array: ...
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = ...) -> Array: ...
def put(a: Any, ind: Any, v: Any, mode: str = 'raise') -> Array: ...
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Array: ...
def putmask(a: Array, /, mask: Any, values: Any) -> Array: ...
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: _bool = False, method: str = 'linear',
    keepdims: _bool = False, *, weights: Any = None,
) -> Array: ...
r_: Any
@overload
def rad2deg(x: _V, /) -> _V: ...
@overload
def rad2deg(x: _Plain, /) -> _Plain: ...
@overload
def rad2deg(x: Array, /) -> Array:
    """Radians as degrees."""
radians: _Recorded1
@overload
def ravel(x: _V, /, *, order: str='C') -> _V: ...
@overload
def ravel(x: _Plain, /, *, order: str='C') -> _Plain: ...
@overload
def ravel(x: Array, /, *, order: str='C') -> Array:
    """The flattened elements of ``x``, in the ``order`` of `reshape`, or with "K" in memory order."""
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = 'raise', order: str = 'C') -> Array: ...
def real(x: Array, /) -> Array:
    """The real part of each element. Recorded on the tape of its arguments."""
@overload
def real_if_close(x: _V, /, tol: float=100) -> _V: ...
@overload
def real_if_close(x: _Plain, /, tol: float=100) -> _Plain: ...
@overload
def real_if_close(x: Array, /, tol: float=100) -> Array:
    """The real part if all imaginary parts are negligible, else ``x``."""
from numpy import recarray as recarray
reciprocal: _Recorded1
"""The reciprocal of each element: ``1 / x``. Recorded on the tape of its arguments."""
record: Dtype
remainder: _Recorded2
"""The remainder of the division of each pair of elements, with the sign of ``x2``: ``x1 % x2``. Recorded on the
tape of its arguments.
"""
def require(a: Any, dtype: Dtype = None, requirements: Any = None, *, like: Any = None) -> Array: ...
@overload
def reshape(x: _V, /, shape: int | tuple[int, ...], *, copy: _bool | None=None, order: str='C') -> _V: ...
@overload
def reshape(x: _Plain, /, shape: int | tuple[int, ...], *, copy: _bool | None=None, order: str='C') -> _Plain: ...
@overload
def reshape(x: Array, /, shape: int | tuple[int, ...], *, copy: _bool | None=None, order: str='C') -> Array:
    """The elements of ``x`` in another shape; one size may be -1."""
def resize(a: Any, new_shape: Any) -> Array: ...
right_shift: _Of2
rint: _Of1
@overload
def roll(x: _V, /, shift: int | tuple[int, ...], *, axis: Axis=None) -> _V: ...
@overload
def roll(x: _Plain, /, shift: int | tuple[int, ...], *, axis: Axis=None) -> _Plain: ...
@overload
def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: Axis=None) -> Array:
    """The elements shifted along ``axis``, circularly."""
def root_or_zero(x: Array, /) -> Array:
    """The square root of each element, of which the derivative at zero is zero. Recorded on the tape of its
    arguments.
    """
def roots(p: Any) -> Array: ...
@overload
def rot90(x: _V, /, *, k: int=1, axes: tuple[int, int]=(0, 1)) -> _V: ...
@overload
def rot90(x: _Plain, /, *, k: int=1, axes: tuple[int, int]=(0, 1)) -> _Plain: ...
@overload
def rot90(x: Array, /, *, k: int=1, axes: tuple[int, int]=(0, 1)) -> Array:
    """``x`` rotated by 90 degrees ``k`` times, from the first of the axes towards the second."""
def round(x: Array, /) -> Array:
    """Each element rounded to the nearest integer, halves to even ones. Recorded on the tape of its arguments."""
def round_to_bfloat16(x: Array, /) -> Array:
    """Each element rounded to the nearest number of bfloat16. Recorded on the tape of its arguments."""
def round_to_float16(x: Array, /) -> Array:
    """Each element rounded to the nearest number of float16. Recorded on the tape of its arguments."""
def row_stack(tup: Any, *, dtype: Dtype = None, casting: str = 'same_kind') -> Array: ...
from numpy import s_ as s_
def save(file: Any, arr: Any, allow_pickle: _bool = True) -> Array: ...
def savetxt(
    fname: Any, X: Any, fmt: str = '%.18e', delimiter: str = ' ', newline: str = '\n', header: str = '',
    footer: str = '', comments: str = '# ', encoding: Any = None,
) -> Array: ...
def savez(file: Any, *args: Any, allow_pickle: _bool = True, **kwds: Any) -> Array: ...
def savez_compressed(file: Any, *args: Any, allow_pickle: _bool = True, **kwds: Any) -> Array: ...
from numpy import sctypeDict as sctypeDict
def searchsorted(x1: Array, x2: Array, /, *, side: str = 'left', sorter: Any = None) -> Array:
    """The indices at which inserting the elements of ``x2`` keeps the sorted vector ``x1`` sorted."""
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array: ...
def set_printoptions(
    precision: Any = None, threshold: Any = None, edgeitems: Any = None, linewidth: Any = None, suppress: Any = None,
    nanstr: Any = None, infstr: Any = None, formatter: Any = None, sign: Any = None, floatmode: Any = None, *,
    legacy: Any = None, override_repr: Any = None,
) -> Array: ...
def setbufsize(size: Any) -> Array: ...
def setdiff1d(ar1: Any, ar2: Any, assume_unique: _bool = False) -> Array: ...
def seterr(all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None) -> Array: ...
def seterrcall(func: Any) -> Array: ...
def setxor1d(ar1: Any, ar2: Any, assume_unique: _bool = False) -> Array: ...
def shape(a: Any) -> Array: ...
def shares_memory(a: Array, b: Array, /, max_work: Any = -1) -> Array: ...
from numpy import short as short
def show_config(mode: str = 'stdout') -> Array: ...
def show_runtime() -> Array: ...
sign: _Of1
"""The sign of each element, -1, 0 or 1; ``x / abs(x)`` of complex numbers. Recorded on the tape of its
arguments.
"""
signbit: _Of1
"""Whether the sign bit is set, as in -0.0."""
signedinteger: Dtype
sin: _Recorded1
"""The sine of each element, an angle in radians. Recorded on the tape of its arguments."""
@overload
def sinc(x: _V, /) -> _V: ...
@overload
def sinc(x: _Plain, /) -> _Plain: ...
@overload
def sinc(x: Array, /) -> Array:
    """``sin(pi x) / (pi x)``, and one at zero, where derivatives are computed by its series."""
from numpy import single as single
sinh: _Recorded1
"""The hyperbolic sine of each element. Recorded on the tape of its arguments."""
def size(a: Any, axis: Any = None) -> Array: ...
@overload
def sort(x: _V, /, *, axis: int | None=-1, descending: _bool=False, stable: _bool=True) -> _V: ...
@overload
def sort(x: _Plain, /, *, axis: int | None=-1, descending: _bool=False, stable: _bool=True) -> _Plain: ...
@overload
def sort(x: Array, /, *, axis: int | None=-1, descending: _bool=False, stable: _bool=True) -> Array:
    """The elements sorted along ``axis``, or flattened first if ``axis`` is None; the sort is stable."""
def sort_complex(a: Any) -> Array: ...
spacing: _Of1
sqrt: _Recorded1
"""The square root of each element. Recorded on the tape of its arguments."""
square: _Recorded1
"""The square of each element. Recorded on the tape of its arguments."""
@overload
def squeeze(x: _V, /, axis: Axis=None) -> _V: ...
@overload
def squeeze(x: _Plain, /, axis: Axis=None) -> _Plain: ...
@overload
def squeeze(x: Array, /, axis: Axis=None) -> Array:
    """``x`` without the dimensions of size 1 at ``axis``; None means all dimensions of size 1, as in NumPy."""
@overload
def std(x: _V, /, *, axis: Axis=None, correction: float=0.0, keepdims: _bool=False) -> _V: ...
@overload
def std(x: _Plain, /, *, axis: Axis=None, correction: float=0.0, keepdims: _bool=False) -> _Plain: ...
@overload
def std(x: Array, /, *, axis: Axis=None, correction: float=0.0, keepdims: _bool=False) -> Array:
    """Standard deviation; its gradient is zero where the deviation is zero."""
str_: Dtype
subtract: _Recorded2
"""The difference of each pair of elements: ``x1 - x2``. Recorded on the tape of its arguments."""
@overload
def sum(
    x: _V, /, axis: Axis=None, *, dtype: Dtype=None, keepdims: _bool=False, initial: Array | None=None,
    where: Array=None,
) -> _V: ...
@overload
def sum(
    x: _Plain, /, axis: Axis=None, *, dtype: Dtype=None, keepdims: _bool=False, initial: Array | None=None,
    where: Array=None,
) -> _Plain: ...
@overload
def sum(
    x: Array, /, axis: Axis=None, *, dtype: Dtype=None, keepdims: _bool=False, initial: Array | None=None,
    where: Array=None,
) -> Array:
    """Sum over ``axis``, or over everything, of the elements that ``where`` selects, and of ``initial``."""
@overload
def take(x: _V, indices: Array, /, *, axis: int | None=None) -> _V: ...
@overload
def take(x: _Plain, indices: Array, /, *, axis: int | None=None) -> _Plain: ...
@overload
def take(x: Array, indices: Array, /, *, axis: int | None=None) -> Array:
    """The elements at ``indices`` along ``axis``, or of the flattened array if ``axis`` is None."""
tan: _Recorded1
"""The tangent of each element, an angle in radians. Recorded on the tape of its arguments."""
tanh: _Recorded1
"""The hyperbolic tangent of each element. Recorded on the tape of its arguments."""
@overload
def tensordot(x1: _V, x2: Array, axes: int | tuple[Any, Any]=2) -> _V: ...
@overload
def tensordot(x1: Array, x2: _V, axes: int | tuple[Any, Any]=2) -> _V: ...
@overload
def tensordot(x1: _Plain, x2: Array, axes: int | tuple[Any, Any]=2) -> _Plain: ...
@overload
def tensordot(x1: Array, x2: _Plain, axes: int | tuple[Any, Any]=2) -> _Plain: ...
@overload
def tensordot(x1: Array, x2: Array, axes: int | tuple[Any, Any]=2) -> Array:
    """Sum of products over the last ``axes`` dimensions of ``x1`` and the first of ``x2``, or over the axes listed."""
def test(
    label: str = 'fast', verbose: Any = 1, extra_argv: Any = None, doctests: _bool = False, coverage: _bool = False,
    durations: Any = -1, tests: Any = None,
) -> Array: ...
timedelta64: Dtype
@overload
def trace(x: _V, offset: int=0, axis1: int=0, axis2: int=1, dtype: Dtype=None) -> _V: ...
@overload
def trace(x: _Plain, offset: int=0, axis1: int=0, axis2: int=1, dtype: Dtype=None) -> _Plain: ...
@overload
def trace(x: Array, offset: int=0, axis1: int=0, axis2: int=1, dtype: Dtype=None) -> Array:
    """Sum of the diagonal of the matrices along two axes."""
def transpose(a: Any, axes: Any = None) -> Array: ...
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Array: ...
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Dtype = ..., *, like: Any = None) -> Array: ...
@overload
def tril(x: _V, /, *, k: int=0) -> _V: ...
@overload
def tril(x: _Plain, /, *, k: int=0) -> _Plain: ...
@overload
def tril(x: Array, /, *, k: int=0) -> Array:
    """The matrix on and below the ``k``-th diagonal, zero above."""
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Array: ...
def tril_indices_from(arr: Any, k: Any = 0) -> Array: ...
def trim_zeros(filt: Any, trim: str = 'fb', axis: Any = None) -> Array: ...
@overload
def triu(x: _V, /, *, k: int=0) -> _V: ...
@overload
def triu(x: _Plain, /, *, k: int=0) -> _Plain: ...
@overload
def triu(x: Array, /, *, k: int=0) -> Array:
    """The matrix on and above the ``k``-th diagonal, zero below."""
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Array: ...
def triu_indices_from(arr: Any, k: Any = 0) -> Array: ...
true_divide: _Recorded2
trunc: _Of1
"""Each element rounded to an integer towards zero. Recorded on the tape of its arguments."""
from numpy import typecodes as typecodes
def typename(char: Any) -> Array: ...
from numpy import ubyte as ubyte
from numpy import ufunc as ufunc
from numpy import uint as uint
uint16: Dtype
uint32: Dtype
uint64: Dtype
uint8: Dtype
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
ulonglong: Dtype
def union1d(ar1: Any, ar2: Any) -> Array: ...
def unique(
    ar: Any, return_index: _bool = False, return_inverse: _bool = False, return_counts: _bool = False, axis: Any = None,
    *, equal_nan: _bool = True, sorted: _bool = True,
) -> Array: ...
@overload
def unique_values(x: _V, /) -> _V: ...
@overload
def unique_values(x: _Plain, /) -> _Plain: ...
@overload
def unique_values(x: Array, /) -> Array:
    """The unique elements, sorted; gradients flow to the first occurrences."""
def unpackbits(a: Array, /, axis: Any = None, count: Any = None, bitorder: str = 'big') -> Array: ...
def unravel_index(indices: Any, shape: Any, order: str = 'C') -> Array: ...
unsignedinteger: Dtype
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586) -> Array: ...
from numpy import ushort as ushort
def vander(x: Any, N: Any = None, increasing: _bool = False) -> Array: ...
@overload
def var(x: _V, /, *, axis: Axis=None, correction: float=0.0, keepdims: _bool=False) -> _V: ...
@overload
def var(x: _Plain, /, *, axis: Axis=None, correction: float=0.0, keepdims: _bool=False) -> _Plain: ...
@overload
def var(x: Array, /, *, axis: Axis=None, correction: float=0.0, keepdims: _bool=False) -> Array:
    """Variance over ``axis``, or over everything; ``correction`` is subtracted from the number of elements."""
@overload
def vdot(x1: _V, x2: Array, /) -> _V: ...
@overload
def vdot(x1: Array, x2: _V, /) -> _V: ...
@overload
def vdot(x1: _Plain, x2: Array, /) -> _Plain: ...
@overload
def vdot(x1: Array, x2: _Plain, /) -> _Plain: ...
@overload
def vdot(x1: Array, x2: Array, /) -> Array:
    """Sum of the products of all elements with the conjugate of ``x1``."""
@overload
def vecdot(x1: _V, x2: Array, /, *, axis: int=-1) -> _V: ...
@overload
def vecdot(x1: Array, x2: _V, /, *, axis: int=-1) -> _V: ...
@overload
def vecdot(x1: _Plain, x2: Array, /, *, axis: int=-1) -> _Plain: ...
@overload
def vecdot(x1: Array, x2: _Plain, /, *, axis: int=-1) -> _Plain: ...
@overload
def vecdot(x1: Array, x2: Array, /, *, axis: int=-1) -> Array:
    """Sum over ``axis`` of the products with the conjugate of ``x1``."""
vecmat: _Recorded2
from numpy import vectorize as vectorize
void: Dtype
def where(condition: Array, x1: Array, x2: Array, /) -> Array:
    """The element of ``x1`` where the condition is true, of ``x2`` elsewhere. Recorded on the tape of its arguments."""
def yn(x1: Array, x2: Array, /) -> Array:
    """The Bessel function of the second kind of integer order ``x1`` at each element of ``x2``. Recorded on the tape
    of its arguments.
    """
def zeros(shape: Any, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of a shape, filled with zeros."""
def zeros_like(x: Array, /, *, dtype: Dtype = None, device: Device = None) -> Array:
    """Zeros of the shape of ``x``: a plain array, and inside of a transform a variable that takes assignments."""

__array_api_version__: str
def __array_namespace_info__() -> Any: ...

__all__ = [
    'False_', 'ScalarType', 'True_', 'abs', 'absolute', 'acos', 'acosh', 'add', 'all', 'allclose', 'amax', 'amin',
    'angle', 'any', 'append', 'apply_along_axis', 'apply_over_axes', 'arange', 'arccos', 'arccosh', 'arcsin', 'arcsinh',
    'arctan', 'arctan2', 'arctanh', 'argmax', 'argmin', 'argpartition', 'argsort', 'argwhere', 'around', 'array',
    'array2string', 'array_equal', 'array_equiv', 'array_repr', 'array_split', 'array_str', 'asanyarray', 'asarray',
    'asarray_chkfinite', 'ascontiguousarray', 'asfortranarray', 'asin', 'asinh', 'asmatrix', 'astype', 'atan', 'atan2',
    'atanh', 'atleast_1d', 'atleast_2d', 'atleast_3d', 'average', 'bartlett', 'base_repr', 'binary_repr', 'bincount',
    'bitwise_and', 'bitwise_count', 'bitwise_invert', 'bitwise_left_shift', 'bitwise_not', 'bitwise_or',
    'bitwise_right_shift', 'bitwise_xor', 'blackman', 'block', 'bmat', 'bool', 'bool_', 'broadcast', 'broadcast_arrays',
    'broadcast_shapes', 'broadcast_to', 'busday_count', 'busday_offset', 'busdaycalendar', 'byte', 'bytes_', 'c_',
    'can_cast', 'cbrt', 'cdouble', 'ceil', 'character', 'choose', 'clip', 'clongdouble', 'column_stack', 'common_type',
    'complex128', 'complex256', 'complex64', 'complexfloating', 'compress', 'concat', 'concatenate', 'conj',
    'conjugate', 'convolve', 'copy', 'copysign', 'copyto', 'corrcoef', 'correlate', 'cos', 'cosh', 'count_nonzero',
    'cov', 'cross', 'csingle', 'cumprod', 'cumsum', 'cumulative_prod', 'cumulative_sum', 'datetime64',
    'datetime_as_string', 'datetime_data', 'deg2rad', 'degrees', 'delete', 'diag', 'diag_indices', 'diag_indices_from',
    'diagflat', 'diagonal', 'diff', 'digitize', 'divide', 'divmod', 'dot', 'double', 'dsplit', 'dstack', 'dtype', 'e',
    'ediff1d', 'einsum', 'einsum_path', 'empty', 'empty_like', 'equal', 'errstate', 'euler_gamma', 'exp', 'exp2',
    'expand_dims', 'expm1', 'extract', 'eye', 'fabs', 'fft', 'fill_diagonal', 'finfo', 'fix', 'flatiter', 'flatnonzero',
    'flexible', 'flip', 'fliplr', 'flipud', 'float128', 'float16', 'float32', 'float64', 'float_power', 'floating',
    'floor', 'floor_divide', 'fmax', 'fmin', 'fmod', 'format_float_positional', 'format_float_scientific', 'frexp',
    'from_dlpack', 'frombuffer', 'fromfile', 'fromfunction', 'fromiter', 'frompyfunc', 'fromregex', 'fromstring',
    'full', 'full_like', 'gcd', 'generic', 'genfromtxt', 'geomspace', 'get_include', 'get_printoptions', 'getbufsize',
    'geterr', 'geterrcall', 'gradient', 'greater', 'greater_equal', 'half', 'hamming', 'hanning', 'heaviside',
    'histogram', 'histogram2d', 'histogram_bin_edges', 'histogramdd', 'hsplit', 'hstack', 'hypot', 'i0', 'identity',
    'iinfo', 'imag', 'index_exp', 'indices', 'inexact', 'inf', 'info', 'inner', 'insert', 'int16', 'int32', 'int64',
    'int8', 'int_', 'intc', 'integer', 'integrate', 'interp', 'interpolate', 'intersect1d', 'intp', 'invert',
    'is_busday', 'isclose', 'iscomplex', 'iscomplexobj', 'isdtype', 'isfinite', 'isfortran', 'isin', 'isinf', 'isnan',
    'isnat', 'isneginf', 'isposinf', 'isreal', 'isrealobj', 'isscalar', 'issubdtype', 'iterable', 'ix_', 'kaiser',
    'kron', 'lcm', 'ldexp', 'left_shift', 'less', 'less_equal', 'lexsort', 'linalg', 'linspace', 'little_endian',
    'load', 'loadtxt', 'log', 'log10', 'log1p', 'log2', 'logaddexp', 'logaddexp2', 'logical_and', 'logical_not',
    'logical_or', 'logical_xor', 'logspace', 'long', 'longdouble', 'longlong', 'mask_indices', 'matmul', 'matrix',
    'matrix_transpose', 'matvec', 'max', 'maximum', 'may_share_memory', 'mean', 'median', 'memmap', 'meshgrid', 'mgrid',
    'min', 'min_scalar_type', 'minimum', 'mintypecode', 'mod', 'modf', 'moveaxis', 'multiply', 'nan', 'nan_to_num',
    'nanargmax', 'nanargmin', 'nancumprod', 'nancumsum', 'nanmax', 'nanmean', 'nanmedian', 'nanmin', 'nanpercentile',
    'nanprod', 'nanquantile', 'nanstd', 'nansum', 'nanvar', 'ndarray', 'ndenumerate', 'ndim', 'ndimage', 'ndindex',
    'nditer', 'negative', 'nested_iters', 'newaxis', 'nextafter', 'nonzero', 'not_equal', 'number', 'object_', 'ogrid',
    'ones', 'ones_like', 'outer', 'packbits', 'pad', 'partition', 'percentile', 'permute_dims', 'pi', 'piecewise',
    'place', 'poly', 'poly1d', 'polyadd', 'polyder', 'polydiv', 'polyfit', 'polyint', 'polymul', 'polynomial',
    'polysub', 'polyval', 'positive', 'pow', 'power', 'printoptions', 'prod', 'promote_types', 'ptp', 'put',
    'put_along_axis', 'putmask', 'quantile', 'r_', 'rad2deg', 'radians', 'ravel', 'ravel_multi_index', 'real',
    'real_if_close', 'recarray', 'reciprocal', 'record', 'remainder', 'repeat', 'require', 'reshape', 'resize',
    'result_type', 'right_shift', 'rint', 'roll', 'rollaxis', 'roots', 'rot90', 'round', 'row_stack', 's_', 'save',
    'savetxt', 'savez', 'savez_compressed', 'sctypeDict', 'searchsorted', 'select', 'set_printoptions', 'setbufsize',
    'setdiff1d', 'seterr', 'seterrcall', 'setxor1d', 'shape', 'shares_memory', 'short', 'show_config', 'show_runtime',
    'sign', 'signal', 'signbit', 'signedinteger', 'sin', 'sinc', 'single', 'sinh', 'size', 'sort', 'sort_complex',
    'spacing', 'spatial', 'special', 'split', 'sqrt', 'square', 'squeeze', 'stack', 'stats', 'std', 'str_', 'subtract',
    'sum', 'swapaxes', 'take', 'take_along_axis', 'tan', 'tanh', 'tensordot', 'test', 'tile', 'timedelta64', 'trace',
    'transpose', 'trapezoid', 'tri', 'tril', 'tril_indices', 'tril_indices_from', 'trim_zeros', 'triu', 'triu_indices',
    'triu_indices_from', 'true_divide', 'trunc', 'typecodes', 'typename', 'ubyte', 'ufunc', 'uint', 'uint16', 'uint32',
    'uint64', 'uint8', 'uintc', 'uintp', 'ulong', 'ulonglong', 'union1d', 'unique', 'unique_all', 'unique_counts',
    'unique_inverse', 'unique_values', 'unpackbits', 'unravel_index', 'unsignedinteger', 'unstack', 'unwrap', 'ushort',
    'vander', 'var', 'vdot', 'vecdot', 'vecmat', 'vectorize', 'void', 'vsplit', 'vstack', 'where', 'zeros',
    'zeros_like',
]
