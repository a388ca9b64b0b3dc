"""JAX: immutable arrays, updated by ``x.at[key]``."""

import dataclasses
import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from oxigrad import _core
from oxigrad._typing import Array, Key, Namespace
from oxigrad.ops.backends.arrays import device_of, dtype_name
from oxigrad.ops.backends.generic import Adapter


def _jax() -> Namespace:
    """JAX, imported by name: this file has its name, and a type checker needs no JAX."""
    return importlib.import_module("jax")


class JaxAdapter(Adapter):
    """JAX's arrays and tracers."""

    special_modules: tuple[str, ...] = ("jax.scipy.special",)
    is_immutable = True

    def unreadable(self, array: Array) -> str:
        """The reason: a deleted or donated array, or a tracer whose trace has ended."""
        if not self.is_traced(array):
            gone = "an array that is deleted, or donated to a compiled function: expected the function's result"
            return gone if array.is_deleted() else ""
        try:
            self.library.logical_not(array)
        except _jax().errors.UnexpectedTracerError:
            return "a tracer outside of the transformation that it belongs to: expected an array that it returns"
        return ""

    def is_apart(self, p: Array, g: Array) -> bool:
        """False: JAX takes NumPy arrays, and raises for other differences."""
        return False

    def neutral(self, arrays: Sequence[Any], is_recorded: Callable[[], bool] = bool) -> AbstractContextManager[Any]:
        """A context that allows float64, infinities, NaN, and mixed dtypes and ranks, which modes of JAX refuse.

        Recorded computations keep the mode of float64, as their derivatives are computed in it.
        """
        jax, blocks = _jax(), ExitStack()
        if any(dtype_name(x.dtype) == "float64" for x in arrays) or not is_recorded():
            blocks.enter_context(jax.enable_x64(True))
        blocks.enter_context(jax.debug_nans(False))
        blocks.enter_context(jax.debug_infs(False))
        blocks.enter_context(jax.numpy_rank_promotion("allow"))
        blocks.enter_context(jax.numpy_dtype_promotion("standard"))
        return blocks

    def is_traced(self, array: Array) -> bool:
        """Whether the array is a tracer."""
        return isinstance(array, _jax().core.Tracer)

    def place(self, array: Array) -> str | None:
        """The devices of an array that is committed to them."""
        if self.is_traced(array) or not getattr(array, "committed", False):
            return None
        return ", ".join(sorted(map(str, array.devices())))

    def op_scatter_add(self, g: Array, *, key: Key, shape: tuple[int, ...]) -> Array:
        """By ``x.at[key].add``, which adds up elements that the key names twice."""
        return self.library.zeros(shape, dtype=g.dtype, device=device_of(g)).at[key].add(g)

    def put_rows(self, array: Array, indices: Array, rows: Array) -> Array:
        """By ``x.at[indices].set``."""
        return array.at[indices].set(rows)

    def call_kernels(
        self,
        by_kernels: Callable[..., list[Any]],
        by_rules: Callable[..., list[Any]],
        operands: list[Any],
        *,
        everywhere: bool,
    ) -> list[Any] | None:
        """XLA custom calls on the CPU; None outside of `jax.jit`."""
        jax = _jax()
        if not isinstance(self.library.zeros(()), jax.core.Tracer) or not hasattr(jax, "ffi"):
            return None
        kernels = functools.partial(by_kernels, _custom_call)

        @jax.custom_jvp
        def step(*operands: Any) -> list[Any]:
            return (
                jax.lax.platform_dependent(*operands, cpu=kernels, default=by_rules)
                if everywhere
                else kernels(*operands)
            )

        step.defjvp(functools.partial(jax.jvp, by_rules))
        return step(*operands)


def _custom_call(text: str, operands: list[Any], results: list[Any]) -> list[Any]:
    """A custom call of kernels; `jax.vmap` maps it sequentially."""
    jax = _jax()

    def described(result: Array) -> Any:
        shape, dtype = (operands[result].shape, operands[result].dtype) if isinstance(result, int) else result
        return jax.ShapeDtypeStruct(shape, dtype)

    aliases = {operand: at for at, operand in enumerate(results) if isinstance(operand, int)}
    call = jax.ffi.ffi_call(
        _registered(), [*map(described, results)], input_output_aliases=aliases, vmap_method="sequential"
    )
    return [*call(*operands, call=text)]


@functools.cache
def _registered() -> str:
    """The name under which the core's handler is known to XLA."""
    _jax().ffi.register_ffi_target("oxigrad_step", _core.xla_handler(), platform="cpu")
    return "oxigrad_step"


ADAPTER = JaxAdapter


def container(cls: type) -> None:
    """Registers a class of modules of Equinox: dataclasses whose fields are not assigned. See `container_of`."""
    library = sys.modules.get("equinox")
    if library is not None and issubclass(cls, library.Module):
        fields: Any = dataclasses.fields(cls)
        is_trainable = lambda field: field.metadata.get(_core.TRAINABLE, True)  # noqa: E731
        _core.tree_register_fields(cls, [(field.name, is_trainable(field)) for field in fields], False)
