"""JAX: immutable arrays, updated by ``x.at[key]``."""

from typing import Any

from oxigrad.ops.backends.arrays import device_of
from oxigrad.ops.backends.generic import Adapter


class JaxAdapter(Adapter):
    """JAX's arrays and tracers."""

    special_modules = ("jax.scipy.special",)
    is_immutable = True

    def op_scatter_add(self, g: Any, *, key: Any, shape: tuple[int, ...]) -> Any:
        """By ``x.at[key].add``, which adds up elements that the key names twice."""
        return self.library.zeros(shape, dtype=g.dtype, device=device_of(g)).at[key].add(g)

    def put_rows(self, array: Any, indices: Any, rows: Any) -> Any:
        """By ``x.at[indices].set``."""
        return array.at[indices].set(rows)


ADAPTER = JaxAdapter
