"""Cosine and sine transforms of types 1 to 4, as `scipy.fft` has them, composed of Fourier transforms.

Derivatives of all orders follow, over every library that has Fourier transforms. Of complex arrays the real and the
imaginary parts are transformed.
"""

import math
from collections.abc import Sequence

import numpy as np

from oxigrad._core import ShapeError, plain
from oxigrad._typing import Array, Function, PerAxis
from oxigrad.ops.backends import array_of, dtype_of, is_complex, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.dtypes import isdtype
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.shapes import position
from oxigrad.ops.core.standard import moveaxis
from oxigrad.ops.fft.standard import Norm, are_distinct, fft, irfft, opposite, resize, rfft, sizes_and_axes
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
# Elements at the ends that orthogonal transforms scale by the root of 2 before, and by its inverse after, by kind and
# type.
_ENDS: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("dct", 1): ((0, -1), (0, -1)),
    ("dct", 2): ((), (0,)),
    ("dct", 3): ((0,), ()),
    ("dst", 2): ((), (-1,)),
    ("dst", 3): ((-1,), ()),
}

_ALONG_AXIS = "x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None"
_ALONG_AXES = "x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, orthogonalize=None"


def _function(name: str, doc: str) -> Function:
    """A transform or its inverse, whose name begins with "i"; along several axes where the name ends with "n"."""
    kind, transform = name.removeprefix("i")[:3], _inverse if name.startswith("i") else _transform

    def along_axis(x: Array, /, type: int, n: int | None, axis: int, norm: Norm, orthogonalize: bool | None) -> Array:
        return transform(kind, x, type, n, axis, norm, orthogonalize)

    def along_axes(
        x: Array,
        /,
        type: int,
        s: PerAxis[int] | None,
        axes: PerAxis[int] | None,
        norm: Norm,
        orthogonalize: bool | None,
    ) -> Array:
        return _along_axes(transform, kind, x, type, s, axes, norm, orthogonalize)

    function = along_axes if name.endswith("n") else along_axis
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    parameters = _ALONG_AXES if name.endswith("n") else _ALONG_AXIS
    parameters = parameters.replace(" orthogonalize", " *, orthogonalize") if name == "dctn" else parameters
    return scipy_signature(parameters, ignored="overwrite_x workers")(function)


def _along_axes(
    transform: Function,
    kind: str,
    x: Array,
    type: int,
    s: PerAxis[int] | None,
    axes: PerAxis[int] | None,
    norm: Norm,
    orthogonalize: bool | None,
) -> Array:
    x = array_of(x)
    name, s, axes = f"{kind}n", [s] if isinstance(s, int) else s, [axes] if isinstance(axes, int) else axes
    sizes, axes = sizes_and_axes(name, x, s, axes)
    if not are_distinct(axes):
        raise ValueError(f"{name}: axes is {axes!r}: expected none of them twice")
    for size, axis in zip(sizes, axes, strict=True):
        x = transform(kind, x, type, size, axis, norm, orthogonalize)
    return x


def _inverse(kind: str, x: Array, type: int, n: int | None, axis: int, norm: Norm, orthogonalize: bool | None) -> Array:
    """The transform of the inverse type, with the scale of the opposite norm."""
    return _transform(kind, x, _INVERSE.get(type, type), n, axis, opposite(norm), orthogonalize)


def _transform(
    kind: str, x: Array, type: int, n: int | None, axis: int, norm: Norm, orthogonalize: bool | None
) -> Array:
    if type not in _INVERSE:
        raise ValueError(f"{kind}: type is {type!r}: expected 1, 2, 3 or 4")
    opposite(norm)  # which checks it
    x = array_of(x)
    axis = position(axis, len(x.shape), kind)
    x = moveaxis(resize(_floating(x), n, axis), axis, -1)
    size = x.shape[-1]
    if size < 1 + (type == 1 and kind == "dct"):
        raise ShapeError(f"{kind}: found {size} elements along the axis, expected {1 + (type == 1)} at least")
    before, after = (
        _ENDS.get((kind, type), ((), ())) if orthogonalize or (orthogonalize is None and norm == "ortho") else ((), ())
    )
    period = 2.0 * (size + (0 if type != 1 else -1 if kind == "dct" else 1))
    scale = {"ortho": math.sqrt(1.0 / period), "forward": 1.0 / period}.get(norm or "backward", 1.0)
    parts = [ops.real(x), ops.imag(x)] if is_complex(x) else [x]
    done = []
    for part in parts:
        y = _KINDS[kind](_with_ends(part, before, math.sqrt(2.0)), type)
        y = _with_ends(y, after, math.sqrt(0.5))
        done.append(y * scale if scale != 1.0 else y)
    return moveaxis(done[0] if len(done) == 1 else done[0] + 1j * done[1], -1, axis)


def _floating(x: Array) -> Array:
    """The array in a dtype that has Fourier transforms: of at least 32 bits."""
    library, dtype = namespace(plain(x)), dtype_of(x)
    if not isdtype(dtype, ("real floating", "complex floating")):
        return ops.astype(x, library.float64)
    return ops.astype(x, library.float32) if str(dtype).endswith("float16") else x


def _with_ends(x: Array, places: Sequence[int], factor: float) -> Array:
    """The array with elements along the last axis multiplied by a factor."""
    if not places:
        return x
    weights = np.ones(x.shape[-1])
    for place in places:
        weights[place] = factor
    return x * _like(weights, x)


def _like(values: np.ndarray, x: Array) -> Array:
    """Numbers in the library and dtype of an array."""
    return ops.astype(of_library(values, x), dtype_of(x), copy=False)


def _turns(x: Array, start: float) -> tuple[Array, Array]:
    """The cosines and sines of quarter turns, one for each element."""
    angles = np.arange(start, x.shape[-1]) * (np.pi / (2.0 * x.shape[-1]))
    return _like(np.cos(angles), x), _like(np.sin(angles), x)


def _cosine(x: Array, type: int) -> Array:
    """The cosine transform of a real array along the last axis, without a scale."""
    size = x.shape[-1]
    if type == 1:
        return ops.real(rfft(ops.concat([x, ops.flip(x[..., 1:-1], axis=-1)], axis=-1)))
    c, s = _turns(x, 0.0)
    if type == 2:
        z = rfft(ops.concat([x, ops.flip(x, axis=-1)], axis=-1))[..., :size]
        return ops.real(z) * c + ops.imag(z) * s
    if type == 3:
        return irfft(x * c + 1j * (x * s), n=2 * size, norm="forward")[..., :size]
    z = fft(x * c - 1j * (x * s), n=2 * size)[..., :size]
    c, s = _turns(x, 0.5)
    return 2.0 * (ops.real(z) * c + ops.imag(z) * s)


def _sine(x: Array, type: int) -> Array:
    """The unscaled sine transform of a real array along the last axis.

    Except for the first type, it is computed by the cosine transform.
    """
    size = x.shape[-1]
    if type == 1:
        zero = ops.zeros_like(plain(x[..., :1]))
        return -ops.imag(rfft(ops.concat([zero, x, zero, -ops.flip(x, axis=-1)], axis=-1)))[..., 1 : size + 1]
    signs = _like((-1.0) ** np.arange(size), x)
    return ops.flip(_cosine(x * signs, 2), axis=-1) if type == 2 else _cosine(ops.flip(x, axis=-1), type) * signs


_KINDS = {"dct": _cosine, "dst": _sine}

dct: Function = _function(
    "dct",
    """The cosine transform of a ``type`` from 1 to 4 along ``axis``, after truncation or padding to ``n`` elements.

    ``norm`` is "backward" (the inverse has the scale), "ortho" or "forward". Padding adds zeros. With
    ``orthogonalize``, the default for the norm "ortho", the matrix of the transform is orthogonal.
    """,
)
idct: Function = _function("idct", "The inverse of `dct`.")
dst: Function = _function("dst", "The sine transform of a ``type`` from 1 to 4, with the arguments of `dct`.")
idst: Function = _function("idst", "The inverse of `dst`.")
dctn: Function = _function(
    "dctn", "`dct` along several axes, by default all; ``s`` has the sizes after truncation or zero-padding."
)
idctn: Function = _function("idctn", "The inverse of `dctn`.")
dstn: Function = _function("dstn", "`dst` along several axes, with the arguments of `dctn`.")
idstn: Function = _function("idstn", "The inverse of `dstn`.")
