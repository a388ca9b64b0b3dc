"""The check that the gradient of a parameter is one, by whichever executor the parameter is updated.

The core checks those that it reads itself, with the same messages (``rust/python/src/stepper/parameters/parameter.rs``).
"""

from typing import Any

from oxigrad._core import DtypeError, ShapeError
from oxigrad._names import path_name
from oxigrad.ops.backends import dtype_name
from oxigrad.stepping.arrays.precision import HALVES


def check_gradient(path: str, g: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises `ShapeError` or `DtypeError` for a gradient whose shape or dtype is not the parameter's.

    A gradient of float32 is taken for a parameter of half precision. Dtypes are compared by the standard's names, since those of two libraries are never equal.
    """
    if tuple(g.shape) != shape:
        raise ShapeError(f"{path_name(path)}: gradient has shape {tuple(g.shape)}, the parameter {shape}")
    name, expected = dtype_name(g.dtype), dtype_name(dtype)
    if name != expected and not (name == "float32" and expected in HALVES):
        raise DtypeError(f"{path_name(path)}: gradient has dtype {g.dtype}, the parameter {dtype}")
