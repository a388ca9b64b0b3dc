"""JAX: immutable arrays, updated by ``x.at[key]``."""

import functools
from collections.abc import Callable
from typing import Any

from oxigrad import _core
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

    def call_kernels(
        self,
        text: str,
        operands: list[Any],
        aliased: list[int | None],
        by_rules: Callable[..., list[Any]],
        *,
        everywhere: bool,
    ) -> list[Any] | None:
        """A custom call of XLA's on the CPU; inside of `jax.jit` only."""
        import jax

        if not isinstance(self.library.zeros(()), jax.core.Tracer) or not hasattr(jax, "ffi"):
            return None
        target, numbers = _registered(), {at: number for number, at in enumerate(aliased) if at is not None}
        results = [
            jax.ShapeDtypeStruct((), bool)
            if at is None
            else jax.ShapeDtypeStruct(operands[at].shape, operands[at].dtype)
            for at in aliased
        ]

        def by_kernels(*operands: Any) -> list[Any]:
            call = jax.ffi.ffi_call(target, results, input_output_aliases=numbers, vmap_method="sequential")
            return call(*operands, call=text)

        def elsewhere(*operands: Any) -> list[Any]:
            found = by_rules(*operands)
            return [jax.lax.convert_element_type(array, like.dtype) for array, like in zip(found, results, strict=True)]

        @jax.custom_jvp
        def step(*operands: Any) -> list[Any]:
            if not everywhere:
                return by_kernels(*operands)
            return jax.lax.platform_dependent(*operands, cpu=by_kernels, default=elsewhere)

        step.defjvp(functools.partial(jax.jvp, elsewhere))
        return step(*operands)


@functools.cache
def _registered() -> str:
    """The name under which the core's handler is known to XLA."""
    import jax

    jax.ffi.register_ffi_target("oxigrad_step", _core.xla_handler(), platform="cpu")
    return "oxigrad_step"


ADAPTER = JaxAdapter
