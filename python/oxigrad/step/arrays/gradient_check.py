"""The check that the gradient of a parameter is one, by whichever executor the parameter is updated.

The core checks those that it reads itself, with the same messages
(``rust/python/src/stepper/parameters/parameter.rs``).
"""

from collections.abc import Callable, Mapping
from typing import Any

from oxigrad import xp
from oxigrad._core import DtypeError, NonFiniteError, ShapeError
from oxigrad._names import path_name
from oxigrad.ops.backends import dtype_name, fetched
from oxigrad.step.arrays.precision import HALVES
from oxigrad.step.arrays.sparse_rows import SparseRows


def check_gradient(path: str, g: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises `ShapeError` or `DtypeError` for a gradient whose shape or dtype is not the parameter's.

    A gradient of float32 is taken for a parameter of half precision. Dtypes are compared by the standard's names, since
    those of two libraries are never equal.
    """
    if tuple(g.shape) != shape:
        raise ShapeError(f"{path_name(path)}: gradient has shape {tuple(g.shape)}, the parameter {shape}")
    if g.dtype is dtype:
        return
    name, expected = dtype_name(g.dtype), dtype_name(dtype)
    if name != expected and not (name == "float32" and expected in HALVES):
        raise DtypeError(f"{path_name(path)}: gradient has dtype {g.dtype}, the parameter {dtype}")


def nonfinite_error(gradients: Mapping[str, Any], gather: Callable[[bytes], bytes] | None = None) -> NonFiniteError:
    """The error with the key paths of gradients that have infinities or NaN; ``gather`` is of all workers."""
    values = {path: g.values if isinstance(g, SparseRows) else g for path, g in gradients.items()}
    bad = [path for path, g in values.items() if not fetched(xp.all(xp.isfinite(g)))]
    if gather is not None:
        names = gather("".join(f"{path}\n" for path in bad).encode()).decode().splitlines()
        bad = [path for path in values if path in names]
    return NonFiniteError(f"{', '.join(map(path_name, bad))}: the gradient has infinities or NaN; nothing was changed")
