"""Dask: lazy arrays in blocks. An op that Dask lacks is mapped over the blocks, and computed by their library.

All ops are lazy: they add to the task graph, and compute nothing.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad._typing import Array, Dtype, Key, Results
from oxigrad.ops.backends.arrays import is_array
from oxigrad.ops.backends.dispatch import implementation
from oxigrad.ops.backends.generic import Adapter

# The dimensions of ops on matrices, which lie whole in one block; further dimensions are a stack, in any blocks.
_SIGNATURES = {
    "det": "(n,n)->()",
    "slogdet": "(n,n)->(),()",
    "inv": "(n,n)->(n,n)",
    "cholesky": "(n,n)->(n,n)",
    "eigh": "(n,n)->(n),(n,n)",
    "eig": "(n,n)->(n),(n,n)",
    "cofactor": "(n,n)->(n,n)",
    "sqrtm": "(n,n)->(n,n)",
    "pinv": "(m,n)->(n,m)",
    "qr": "(m,n)->(m,k),(k,n)",
    "svd": "(m,n)->(m,k),(k),(k,n)",
}
# Functions that Dask has for matrices of many blocks along one dimension.
_IN_BLOCKS = {"qr", "svd"}


class DaskAdapter(Adapter):
    """Dask's arrays."""

    is_lazy = True

    def implementation(self, name: str) -> Callable[..., Any]:
        """Dask's function, or the function of the blocks' library, applied to each block."""
        if name in _SIGNATURES:
            return functools.partial(self._of_matrices, name)
        return super().implementation(name)

    def _missing(self, name: str, *args: Array) -> Results:
        return self._by_block(name, ",".join("()" for _ in filter(is_array, args)) + "->()", *args)

    _by_kernel = _missing

    def _of_matrices(self, name: str, x: Array, *others: Array, **named: Any) -> Results:
        if name in _IN_BLOCKS and x.ndim == 2 and min(x.numblocks) == 1 < max(x.numblocks):
            return self._by_extension(name, x, **named)
        if name == "eig":  # complex for any matrix: the dtype of a lazy array cannot depend on values
            x = self.library.astype(x, np.result_type(x.dtype, np.complex64))
        sizes = {"k": min(x.shape[-2:])} if "k" in _SIGNATURES[name] else {}
        signature = "(n,n)," * len(others) + _SIGNATURES[name]
        return self._by_block(name, signature, x, *others, sizes=sizes, **named)

    def _by_extension(self, name: str, *args: Array, **named: Any) -> Results:
        x, *rest = args
        if name in ("fftn", "ifftn", "rfft", "irfft"):  # each transformed axis lies whole in one block
            axes = named.get("axes", named.get("axis", -1))
            x = x.rechunk(dict.fromkeys(range(x.ndim) if axes is None else np.atleast_1d(axes).tolist(), -1))
        return super()._by_extension(name, x, *rest, **named)

    def op_solve(self, x1: Array, x2: Array) -> Array:
        """The solutions for whole matrices, and for whole vectors."""
        return self._by_block("solve", "(n,n),(n)->(n)" if x2.ndim == 1 else "(n,n),(n,k)->(n,k)", x1, x2)

    def op_index(self, x: Array, *, key: Key) -> Array:
        """``x[key]``; several arrays of indices become one, since Dask takes no more."""
        if not (isinstance(key, tuple) and len(key) > 1 and all(map(is_array, key))):
            return super().op_index(x, key=key)
        numbers: Any = 0
        for part, size in zip(key, x.shape, strict=False):
            numbers = numbers * size + self.library.where(part < 0, part + size, part)
        rest = x.shape[len(key) :]
        rows = self.library.reshape(x, (-1, *rest))
        taken = self.library.take(rows, self.library.reshape(numbers, (-1,)), axis=0)
        return self.library.reshape(taken, (*numbers.shape, *rest))

    def op_take_along_axis(self, x: Array, *, indices: Array, axis: int) -> Array:
        """The elements along a whole axis."""
        x, indices = (self.library.moveaxis(array, axis, -1) for array in (x, indices))
        taken = self._by_block("take_along_axis", "(n),(m)->(m)", x, indices=indices, axis=-1)
        return self.library.moveaxis(taken, -1, axis)

    def _by_block(
        self, name: str, signature: str, *args: Array, sizes: Mapping[str, int] | None = None, **named: Any
    ) -> Results:
        """The op on each block, as a generalized ufunc of this signature; other arguments are passed to each call."""
        arrays = [x for x in (*args, *named.values()) if is_array(x)]
        places = (
            [_ARRAY if is_array(x) else x for x in args],
            {k: _ARRAY if is_array(x) else x for k, x in named.items()},
        )
        on_block = functools.partial(_on_block, name, *places)
        cores = [part.count(",") + 1 if part else 0 for part in signature.partition("->")[0][1:-1].split("),(")]
        outputs = on_block(*(_one(core, x.dtype) for core, x in zip(cores, arrays, strict=True)))
        dtypes = [x.dtype for x in outputs] if isinstance(outputs, tuple) else outputs.dtype
        return importlib.import_module("dask.array").apply_gufunc(
            on_block, signature, *arrays, output_dtypes=dtypes, output_sizes=sizes, allow_rechunk=True
        )


_ARRAY = np.ndarray  # placeholder of an array among arguments: a class keeps its identity in another process


def _on_block(name: str, args: Any, named: Any, *blocks: Array) -> Results:
    """An op on blocks, in the places of the arrays among its arguments."""
    arrays = iter(blocks)
    placed = [next(arrays) if x is _ARRAY else x for x in args]
    result = implementation(name, blocks[0])(
        *placed, **{k: next(arrays) if x is _ARRAY else x for k, x in named.items()}
    )
    return tuple(result) if isinstance(result, tuple) else result


def _one(ndim: int, dtype: Dtype) -> np.ndarray:
    """An array of one element: 1, or 0 for integers, which may be indices."""
    return (np.ones if np.issubdtype(dtype, np.inexact) else np.zeros)((1,) * ndim, dtype)


ADAPTER = DaskAdapter
