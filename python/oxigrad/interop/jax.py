"""Functions that oxigrad differentiates inside JAX's transforms, and JAX's functions differentiated in oxigrad.

>>> from oxigrad import xp
>>> cube = function(lambda x: xp.sum(x**3))
>>> jax.jit(jax.grad(cube))(jax.numpy.arange(3.0)).tolist()
[0.0, 3.0, 12.0]

>>> import numpy as np
>>> import oxigrad as ox
>>> softplus = from_jax(jax.nn.softplus)
>>> ox.grad(lambda x: xp.sum(softplus(x)))(np.zeros(2))
array([0.5, 0.5])
"""

import contextlib
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oxigrad._core import DtypeError, ShapeError, is_inexact
from oxigrad._names import check_callable, without
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.function_calls import replaced
from oxigrad.interop.array_functions import ArrayCall, ArrayFunction, Pullback, on_copies
from oxigrad.interop.their_functions import Autodiff, Function, differentiable
from oxigrad.ops.backends import REFUSALS, dtype_name, is_array, is_smooth, to_host

jax: Any = importlib.import_module("jax")  # without JAX, a type checker takes an import statement to mean this file
ad: Any = importlib.import_module("jax.interpreters.ad")
batching: Any = importlib.import_module("jax.interpreters.batching")
partial_eval: Any = importlib.import_module("jax.interpreters.partial_eval")
mlir: Any = importlib.import_module("jax.interpreters.mlir")
_Primitive: Any = importlib.import_module("jax.extend.core").Primitive

__all__ = ["from_jax", "function"]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)


# --- functions of oxigrad in JAX --------------------------------------------------------------------------------------


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """Converts ``f`` to a differentiable function of JAX arrays, which runs on the host.

    Args:
        f: pure function of trees with NumPy arrays that oxigrad differentiates.

    oxigrad computes its derivatives. Arguments and results are trees (nested dicts, lists, tuples, dataclasses) with
    arrays of any shape and dtype; other leaves, Python numbers included, are passed to ``f`` unchanged. ``f`` receives
    new NumPy arrays, to which it may assign, or variables of oxigrad. It may be any Python code, with branches on
    values, that oxigrad differentiates. It must be pure: JAX may call it any number of times, or never.

    It works under `jax.jit`, `jax.grad`, `jax.jvp`, `jax.vmap`, `jax.lax.scan` and compositions of these, to any order
    and in both modes. Costs:

    * Each call copies arrays to the host and back.
    * No tape is kept between a forward and a backward pass: the pullback calls ``f`` again.
    * Under `jax.vmap` it is called once for each element.
    * Under `jax.jit`, `jax.eval_shape` determines shapes and dtypes of the result; if ``f`` does not accept tracers, a
      call on arrays of ones does, once per trace. Results are cast to these dtypes.

    Raises `DtypeError`, with the argument and the key path, for random keys and other extended dtypes.

    >>> import jax
    >>> from oxigrad import xp
    >>> f = function(lambda tree: xp.sum(xp.sin(tree["x"]) ** 2))
    >>> jax.jit(jax.grad(f))({"x": jax.numpy.zeros(2)})["x"].tolist()
    [0.0, 0.0]
    >>> jax.hessian(f)({"x": jax.numpy.zeros(1)})["x"]["x"].tolist()
    [[2.0]]
    """
    check_callable(f, "function")

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Tree:
        call = ArrayCall(f, args, named)
        tracers, call.variables = call.variables, []
        for number, array in enumerate(tracers):
            if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):
                raise DtypeError(
                    f"{call.where(number)}: found dtype {array.dtype}, expected numbers, such as "
                    "jax.random.key_data(key)"
                )
        arrays = [jax.numpy.asarray(array) for array in tracers]
        return call.result(_host_call.bind(*arrays, call=_HostCall(ArrayFunction(on_copies(call.compute)))))

    return wrapped


class _HostCall:
    """A function of NumPy arrays that the host calls.

    ``types`` are the shapes and dtypes of its outputs, None if they are not known yet. For a function that is linear in
    its last arguments, ``linear`` is the number of these. Its ``transpose`` takes positions of outputs and the types of
    these arguments.
    """

    def __init__(
        self,
        function: ArrayFunction,
        types: Sequence[Any] | None = None,
        linear: int = 0,
        transpose: "Callable[[Sequence[int], Sequence[Any]], _HostCall] | None" = None,
    ) -> None:
        self._function = function
        self._types = types
        self.linear = linear
        self.transpose = transpose

    def types(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The shapes and dtypes of the outputs, for arguments of these shapes and dtypes."""
        if self._types is None:
            types = [_type(x) for x in arguments]
            try:
                outputs = jax.eval_shape(lambda *arrays: self._function.compute(arrays), *types)
            except (*REFUSALS, IndexError):  # it takes no tracers, or would raise on the host too
                outputs = self.host(*(np.ones(x.shape, x.dtype) for x in types))
            self._types = [_type(y) for y in outputs]
        return self._types

    def host(self, *arrays: Array) -> list[np.ndarray]:
        """The outputs as NumPy arrays, of the shapes and dtypes that are known."""
        outputs = [to_host(np.asarray(y)) for y in self._function.compute([np.asarray(x) for x in arrays])]
        if self._types is None:
            return outputs
        shapes, expected = [y.shape for y in outputs], [tuple(y.shape) for y in self._types]
        if shapes != expected:
            raise ShapeError(f"the results have the shapes {shapes}, and had {expected} when the function was traced")
        return [
            y.astype(expected_type.dtype, copy=False) for y, expected_type in zip(outputs, self._types, strict=True)
        ]

    def pushed(self, at: Sequence[int], outputs: Sequence[int], types: Sequence[Any]) -> "_HostCall":
        """See `ArrayFunction.pushed`; the tangents of ``outputs`` have these types."""

        def transpose(chosen: Sequence[int], types: Sequence[Any]) -> _HostCall:
            return self.pulled(at, [outputs[i] for i in chosen], types)

        return _HostCall(self._function.pushed(at, outputs), types, len(at), transpose)

    def pulled(self, at: Sequence[int], outputs: Sequence[int], types: Sequence[Any]) -> "_HostCall":
        """See `ArrayFunction.pulled`; the cotangents of the arguments have these types."""

        def transpose(chosen: Sequence[int], types: Sequence[Any]) -> _HostCall:
            return self.pushed([at[i] for i in chosen], outputs, types)

        return _HostCall(self._function.pulled(at, outputs), types, len(outputs), transpose)


def _type(array: Array) -> Any:
    return jax.ShapeDtypeStruct(tuple(array.shape), jax.dtypes.canonicalize_dtype(array.dtype))


# The primitive of a call on the host. JAX's own primitive for callbacks has no derivative in either mode.
_host_call = _Primitive("oxigrad_host_call")
_host_call.multiple_results = True


@_host_call.def_impl
def _evaluated(*arrays: Array, call: _HostCall) -> list[Any]:
    return [jax.numpy.asarray(y) for y in call.host(*arrays)]


@_host_call.def_abstract_eval
def _abstract(*arguments: Any, call: _HostCall) -> list[Any]:
    return [jax.core.ShapedArray(y.shape, y.dtype) for y in call.types(arguments)]


def _lowered(*arrays: Array, call: _HostCall) -> list[Any]:
    return jax.pure_callback(call.host, [*call.types(arrays)], *arrays, vmap_method="sequential")


def _pushed(primals: Sequence[Any], tangents: Sequence[Any], *, call: _HostCall) -> tuple[list[Any], list[Any]]:
    outputs = _host_call.bind(*primals, call=call)
    at = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero and is_inexact(primals[i])]
    smooth = [i for i, y in enumerate(outputs) if is_inexact(y)]
    pushed = call.pushed(at, smooth, [_type(outputs[i]) for i in smooth])
    by_output = {}
    if at and smooth:
        by_output = dict(zip(smooth, _host_call.bind(*primals, *(tangents[i] for i in at), call=pushed), strict=True))
    return outputs, [
        by_output[i] if i in by_output else ad.Zero(jax.typeof(y).to_tangent_aval()) for i, y in enumerate(outputs)
    ]


def _transposed(cotangents: Sequence[Any], *arguments: Any, call: _HostCall) -> list[Any]:
    count = len(arguments) - call.linear
    constants, unknown = arguments[:count], arguments[count:]
    if call.transpose is None or not all(map(ad.is_undefined_primal, unknown)):
        raise NotImplementedError("oxigrad_host_call is not linear in these arguments, and has no transpose")
    nonzero = [i for i, cotangent in enumerate(cotangents) if type(cotangent) is not ad.Zero]
    if not nonzero:
        return [None] * count + [ad.Zero(x.aval) for x in unknown]
    call = call.transpose(nonzero, [_type(x.aval) for x in unknown])
    return [None] * count + _host_call.bind(*constants, *(cotangents[i] for i in nonzero), call=call)


def _batched(arrays: Sequence[Any], axes: Sequence[Any], *, call: _HostCall) -> tuple[list[Any], list[int]]:
    mapped = [i for i, axis in enumerate(axes) if axis is not None]

    def one(chosen: Sequence[Any]) -> list[Any]:
        return _host_call.bind(*replaced(arrays, mapped, chosen), call=call)

    stacked = [jax.numpy.moveaxis(arrays[i], axes[i], 0) for i in mapped]
    if any(isinstance(x, jax.core.Tracer) for x in arrays) or not stacked[0].shape[0]:
        outputs = jax.lax.map(one, stacked)
    else:  # not compiled
        outputs = [jax.numpy.stack(column) for column in zip(*map(one, zip(*stacked, strict=True)), strict=True)]
    return outputs, [0] * len(outputs)


mlir.register_lowering(_host_call, mlir.lower_fun(_lowered, multiple_results=True))
ad.primitive_jvps[_host_call] = _pushed
ad.primitive_transposes[_host_call] = _transposed
batching.primitive_batchers[_host_call] = _batched


# --- functions of JAX in oxigrad --------------------------------------------------------------------------------------


def from_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """Converts ``f``, a function of JAX arrays, to a function of arrays of any library, differentiated by `jax.vjp`.

    Args:
        f: function of trees with JAX arrays, compiled or not.

    Arguments and results are trees. ``f`` receives a JAX array for each array of any library and for each variable;
    other leaves are passed on unchanged. JAX arrays in the result become arrays of the library of the first array among
    the arguments, in the same memory if possible: NumPy arrays are then read-only. Numbers give numbers.

    Derivatives of any order are available in both modes; forward mode transposes the pullback. ``f`` may be compiled,
    ``from_jax(jax.jit(f))``. The tape keeps the residuals of `jax.vjp`. If an argument has float64 or complex128, or
    all are Python numbers, ``f`` runs under ``jax.enable_x64``. Under `oxigrad.vmap` the function is called for each
    example.

    >>> import numpy as np
    >>> import oxigrad as ox
    >>> from oxigrad import xp
    >>> square = from_jax(lambda tree: jax.numpy.square(tree["x"]))
    >>> ox.grad(lambda tree: xp.sum(square(tree)))({"x": np.ones(2)})
    {'x': array([2., 2.])}
    """
    return differentiable(f, _JAX, "from_jax")


class _Jax(Autodiff):
    """JAX's automatic differentiation."""

    def array(self, value: Array) -> Array:
        if isinstance(value, jax.Array) or not is_array(value):
            return value
        with _precision([value]):
            if not isinstance(value, (np.ndarray, np.generic)):
                with contextlib.suppress(*REFUSALS):
                    return jax.dlpack.from_dlpack(value)
            array = to_host(value)
            return jax.numpy.asarray(array.astype(array.dtype.newbyteorder("="), copy=False))

    def is_array(self, value: Any) -> bool:
        return isinstance(value, jax.Array)

    def evaluate(self, f: Function, arrays: Sequence[Any]) -> list[Any]:
        with _precision(arrays):
            return f(arrays)

    def record(self, f: Function, arrays: Sequence[Any], at: Sequence[int]) -> tuple[list[Any], Pullback]:
        def varied(*chosen: Any) -> list[Any]:
            return f(replaced(arrays, at, chosen))

        with _precision(arrays):
            outputs, pull = jax.vjp(varied, *(arrays[i] for i in at))

        def pullback(cotangents: Mapping[int, Any]) -> list[Any]:
            with _precision(arrays):
                pulled = pull([_cotangent(cotangents.get(i), y) for i, y in enumerate(types)])
            used = _are_used(pull, [i in cotangents for i in range(len(types))]) or [True] * len(at)
            return [cotangent if is_used else None for cotangent, is_used in zip(pulled, used, strict=True)]

        types = [_type_of(y) for y in outputs]
        return outputs, pullback


_JAX = _Jax()


def _are_used(pull: Any, wanted: list[bool]) -> list[bool] | None:
    """Whether the wanted outputs depend on each argument, read from the pullback; None if JAX does not say."""
    program = getattr(pull, "jaxpr", None)  # no such attribute before JAX 0.8
    if program is None:
        return None
    # It lacks outputs that depend on no argument.
    return partial_eval.dce_jaxpr(
        program, wanted if len(wanted) == len(program.outvars) else [True] * len(program.outvars)
    )[1]


def _type_of(array: Array) -> tuple[tuple[int, ...], Any]:
    return tuple(array.shape), array.dtype


def _cotangent(cotangent: Array, of: tuple[tuple[int, ...], Any]) -> Array:
    """A cotangent in the shape and dtype of the output; zeros for None."""
    shape, dtype = of
    if not jax.numpy.issubdtype(dtype, jax.numpy.inexact):
        return np.zeros(shape, jax.dtypes.float0)
    return (
        jax.numpy.zeros(shape, dtype)
        if cotangent is None
        else jax.numpy.reshape(jax.numpy.asarray(cotangent, dtype), shape)
    )


def _precision(arrays: Sequence[Any]) -> Any:
    """A context for double precision in JAX, if one of the arrays has it or all are Python numbers."""
    smooth = [x for x in arrays if is_smooth(x)]
    of_arrays = {dtype_name(x.dtype) for x in smooth if is_array(x)}
    is_double = bool(of_arrays & {"float64", "complex128"}) or (bool(smooth) and not of_arrays)
    return jax.enable_x64(True) if is_double else contextlib.nullcontext()
