"""JAX: immutable arrays, updated by ``x.at[key]``."""

import importlib
from typing import Any

from oxigrad.ops.backends.arrays import device_of
from oxigrad.ops.backends.generic import Adapter


class JaxAdapter(Adapter):
    """JAX's arrays and tracers."""

    special_modules = ("jax.scipy.special",)
    is_immutable = True

    def unreadable(self, array: Any) -> str:
        """Whether the array is deleted, or donated, or a tracer whose trace has ended."""
        if not self.is_traced(array):
            gone = "an array that is deleted, or donated to a compiled function: expected the function's result"
            return gone if array.is_deleted() else ""
        try:
            self.library.logical_not(array)
        except importlib.import_module("jax").errors.UnexpectedTracerError:
            return "a tracer outside of the transformation that it belongs to: expected an array that it returns"
        return ""

    def is_apart(self, p: Any, g: Any) -> bool:
        """NumPy's arrays go with JAX's, whose errors name all else."""
        return False

    def is_traced(self, array: Any) -> bool:
        """Whether the array is a tracer."""
        return isinstance(array, importlib.import_module("jax").core.Tracer)

    def place(self, array: Any) -> str | None:
        """The devices, where the array is committed to them."""
        if self.is_traced(array) or not getattr(array, "committed", False):
            return None
        return ", ".join(sorted(map(str, array.devices())))

    def op_scatter_add(self, g: Any, *, key: Any, shape: tuple[int, ...]) -> Any:
        """By ``x.at[key].add``, which adds up elements that the key names twice."""
        return self.library.zeros(shape, dtype=g.dtype, device=device_of(g)).at[key].add(g)

    def put_rows(self, array: Any, indices: Any, rows: Any) -> Any:
        """By ``x.at[indices].set``."""
        return array.at[indices].set(rows)


ADAPTER = JaxAdapter
