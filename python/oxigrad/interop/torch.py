"""Functions that oxigrad differentiates inside PyTorch's autograd, and PyTorch's functions differentiated in oxigrad.

>>> from oxigrad import xp
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> function(lambda x: xp.sum(x**3))(x).backward()
>>> x.grad
tensor([ 3., 12.])

>>> import numpy as np
>>> import oxigrad as ox
>>> softplus = from_torch(torch.nn.functional.softplus)
>>> ox.grad(lambda x: xp.sum(softplus(x)))(np.zeros(2))
array([0.5, 0.5])
"""

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._names import check_callable, without
from oxigrad._typing import Array, Tree
from oxigrad.autodiff.function_calls import replaced
from oxigrad.interop.array_functions import ArrayCall, ArrayFunction, Pullback, on_copies
from oxigrad.interop.their_functions import Autodiff, Function, differentiable
from oxigrad.ops.backends import REFUSALS, is_array, to_host
from oxigrad.ops.core.aliasing import apart

torch: Any = importlib.import_module(
    "torch"
)  # without PyTorch, a type checker takes an import statement to mean this file

__all__ = ["from_torch", "function"]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)


# --- functions of oxigrad in PyTorch ----------------------------------------------------------------------------------


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """Converts ``f`` to a differentiable function of PyTorch's tensors, whose derivatives oxigrad computes.

    Args:
        f: function of trees with arrays that uses `oxigrad.xp`, operators, and functions that oxigrad differentiates.

    Arguments and results are trees (nested dicts, lists, tuples, dataclasses) with tensors of any shape, dtype and
    device; other leaves are passed on unchanged. ``f`` receives detached copies of the tensors, or variables of
    oxigrad. It may assign to the copies, which changes no tensor of the caller.

    Gradients have the dtypes and devices of the arguments; for complex tensors they are conjugated, PyTorch's
    convention. Derivatives of any order and both modes are available, ``create_graph=True`` and `torch.func` included.
    Under `torch.func.vmap` the function is called once for each element. `torch.compile` breaks the graph around it.

    The tape is kept until the graph is freed. A backward pass with ``create_graph=True``, and any under `torch.func`,
    calls ``f`` again.

    Exceptions of ``f`` propagate. Raises `DtypeError` or `ShapeError` if the dtype or shape of a cotangent differs from
    its output's.

    >>> from oxigrad import xp
    >>> f = function(lambda tree: {"y": xp.sin(tree["x"])})
    >>> x = torch.zeros(2, requires_grad=True)
    >>> torch.autograd.grad(f({"x": x})["y"].sum(), x)
    (tensor([1., 1.]),)
    """
    check_callable(f, "function")

    @functools.wraps(f)
    def wrapped(*args: Any, **named: Any) -> Tree:
        # `torch.compile` cannot trace the core. The import of the function that excludes it takes seconds.
        run = _called if "torch._dynamo" not in sys.modules else torch.compiler.disable(_called)
        return run(f, args, named)

    return wrapped


def _called(f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Tree:
    call = ArrayCall(f, args, named, torch.is_tensor)
    tensors, call.variables = call.variables, []
    return call.result(_applied(ArrayFunction(on_copies(call.compute)), tensors))


def _applied(function: ArrayFunction, tensors: Sequence[Array]) -> tuple[Array, ...]:
    """The function of tensors as a node of PyTorch's graph."""
    recorded = [i for i, x in enumerate(tensors) if x.requires_grad] if torch.is_grad_enabled() else []
    return _Node.apply(_Call(function, recorded), *tensors) if tensors else tuple(function.compute([]))


def _is_smooth(tensor: Array) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


class _Call:
    """One call of a function of tensors, and its pullback for a backward pass."""

    def __init__(self, function: ArrayFunction, recorded: Sequence[int] = ()) -> None:
        self.function = function
        self._recorded = recorded
        self._pull: Pullback | None = None
        self._recorded_outputs: list[tuple[Any, int]] = []

    def forward(self, tensors: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs; records the tape if PyTorch records a graph."""
        detached = [x.detach() for x in tensors]
        if self._recorded:
            values, self._pull = self.function.pullback(detached, self._recorded, conjugated=True)
            # The outputs get the graph, which keeps this call alive: the tape has other tensors of the same memory.
            self._recorded_outputs = [(y, y._version) for y in values]
            values = [y.detach() for y in values]
        else:
            values = self.function.compute(detached)
        return tuple(apart(values, detached))

    def pulled(
        self, tensors: Sequence[Array], at: Sequence[int], cotangents: Mapping[int, Array]
    ) -> Mapping[int, Array]:
        """The cotangents of the tensors ``at``, by the tape of the forward pass if no graph is recorded."""
        if any(
            y._version != version for y, version in self._recorded_outputs
        ):  # changed in place since: the tape is not valid
            self._pull, self._recorded_outputs = None, []
        if self._pull is None or torch.is_grad_enabled():
            function = self.function.pulled(at, [*cotangents], conjugated=True)
            return dict(zip(at, _applied(function, [*tensors, *cotangents.values()]), strict=True))
        pulled = self._pull(cotangents)
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            self._pull, self._recorded_outputs = None, []
        return dict(zip(self._recorded, pulled, strict=True))


class _Node(torch.autograd.Function):
    """A call of a function as a node of PyTorch's graph: its arguments are a `_Call`, and the tensors."""

    @staticmethod
    def forward(call: _Call, *tensors: Array) -> tuple[Array, ...]:
        return call.forward(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.call, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.smooth = [i for i, y in enumerate(output) if _is_smooth(y)]
        ctx.count = len(output)
        ctx.mark_non_differentiable(*(y for y in output if not _is_smooth(y)))

    @staticmethod
    def backward(ctx: Any, *cotangents: Array) -> tuple[Array, ...]:
        tensors = ctx.saved_tensors
        at = [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed]
        by_output = {i: cotangents[i] for i in ctx.smooth if cotangents[i] is not None}
        pulled = ctx.call.pulled(tensors, at, by_output) if at and by_output else {}
        return None, *(pulled.get(i) if i in at else None for i in range(len(tensors)))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Array) -> tuple[Array, ...]:
        by_input = {i: tangent for i, tangent in enumerate(tangents) if tangent is not None}
        pushed = ctx.call.function.pushed([*by_input], ctx.smooth)
        by_output = dict(zip(ctx.smooth, _applied(pushed, [*ctx.saved_tensors, *by_input.values()]), strict=True))
        return tuple(by_output.get(i) for i in range(ctx.count))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], call: _Call, *tensors: Array) -> tuple[Any, Any]:
        if not info.batch_size:
            raise ShapeError("vmap: a function of oxigrad is called for each element: expected at least one")
        dims = in_dims[1:]
        rows = [
            _applied(call.function, [x if d is None else x.select(d, at) for x, d in zip(tensors, dims, strict=True)])
            for at in range(info.batch_size)
        ]
        return tuple(torch.stack(column) for column in zip(*rows, strict=True)), (0,) * len(rows[0])


# --- functions of PyTorch in oxigrad ----------------------------------------------------------------------------------


def from_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """Converts ``f``, a function of tensors, to a function of arrays that PyTorch's autograd differentiates.

    Args:
        f: function of trees with PyTorch's tensors.

    Arguments and results are trees with arrays of any library. ``f`` receives a new tensor for each array and each
    variable, and may change it in place; other leaves are passed on unchanged. Tensors in the result become arrays of
    the library of the first array among the arguments, or numbers if all arguments are numbers. Other tensors that
    ``f`` uses, such as the parameters of a module, are constants.

    Derivatives of any order are available in both modes, as far as PyTorch differentiates ``f`` twice; forward mode
    transposes the pullback. The tape keeps the graph. Under `oxigrad.vmap` the function is called for each example.

    >>> import numpy as np
    >>> import oxigrad as ox
    >>> from oxigrad import xp
    >>> square = from_torch(lambda tree: torch.square(tree["x"]))
    >>> ox.grad(lambda tree: xp.sum(square(tree)))({"x": np.ones(2)})
    {'x': array([2., 2.])}
    """
    return differentiable(f, _TORCH, "from_torch")


class _Autograd(Autodiff):
    """PyTorch's automatic differentiation."""

    def array(self, value: Array) -> Array:
        if torch.is_tensor(value):
            return value.detach()
        if not is_array(value):
            dtype = torch.complex128 if isinstance(value, complex) else torch.float64
            return torch.tensor(value, dtype=dtype, device="cpu")
        if not isinstance(value, (np.ndarray, np.generic)):
            try:
                return torch.from_dlpack(value)
            except REFUSALS:
                pass
        return _from_host(to_host(value))

    def is_array(self, value: Any) -> bool:
        return torch.is_tensor(value)

    def to_host(self, array: Array) -> np.ndarray:
        return to_host(array.detach())

    def evaluate(self, f: Function, arrays: Sequence[Array]) -> list[Array]:
        with torch.no_grad():
            return f([x.clone() for x in arrays])

    def record(self, f: Function, arrays: Sequence[Array], at: Sequence[int]) -> tuple[list[Array], Pullback]:
        with torch.enable_grad():
            # In a pullback that is differentiated, they have a graph.
            inputs = [arrays[i] if arrays[i].requires_grad else arrays[i].detach().requires_grad_() for i in at]
            outputs = f([x.clone() for x in replaced(arrays, at, inputs)])

        def pullback(cotangents: Mapping[int, Array]) -> list[Array]:
            active = [(outputs[i], _fitted(c, outputs[i])) for i, c in cotangents.items() if outputs[i].requires_grad]
            if not active:
                return [None] * len(inputs)
            gradients = torch.autograd.grad(
                [y for y, _ in active],
                inputs,
                [c for _, c in active],
                retain_graph=True,
                create_graph=torch.is_grad_enabled(),
                allow_unused=True,
            )
            return [g if g is None else g.conj() for g in gradients]

        return [*outputs] if torch.is_grad_enabled() else [y.detach() for y in outputs], pullback

    def pull(self, pullback: Pullback, cotangents: Mapping[int, Array]) -> list[Array]:
        with torch.no_grad():
            return [g if g is None else g.resolve_conj() for g in pullback(cotangents)]

    def zeros_like(self, array: Array) -> Array:
        return torch.zeros_like(array)


_TORCH = _Autograd()


def _fitted(cotangent: Array, output: Array) -> Array:
    """A cotangent in PyTorch's convention: conjugated, and of the dtype and on the device of the output."""
    return cotangent.conj().to(dtype=output.dtype, device=output.device).reshape(output.shape)


def _from_host(array: np.ndarray) -> Array:
    """A NumPy array as a tensor, in the same memory where PyTorch can write and address it."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable or any(stride < 0 or stride % array.itemsize for stride in array.strides):
        array = np.array(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
