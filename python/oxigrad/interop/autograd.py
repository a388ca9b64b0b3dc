"""Functions of HIPS autograd, written with ``autograd.numpy`` and its primitives, in the automatic differentiation of oxigrad.

>>> import autograd.numpy as anp
>>> import oxigrad as ox
>>> norm = from_autograd(lambda x: anp.sqrt(anp.sum(anp.stack([x, x]) ** 2)))
>>> ox.grad(norm)(np.array([3.0, 4.0])).round(6)
array([0.848528, 1.131371])
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad.autodiff.function_calls import replaced
from oxigrad.interop.array_functions import Pullback
from oxigrad.interop.their_functions import Autodiff, Function, differentiable
from oxigrad.ops.backends import is_array, to_host

autograd: Any = importlib.import_module("autograd")  # as an import statement would mean this file to a type checker
_core: Any = importlib.import_module("autograd.core")
_builtins: Any = importlib.import_module("autograd.builtins")
_tracer: Any = importlib.import_module("autograd.tracer")
importlib.import_module("autograd.numpy")  # registers arrays

__all__ = ["from_autograd"]
__dir__: Callable[[], list[str]] = __all__.copy


def from_autograd(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function ``f`` of autograd's boxes as a function of arrays of any library, which oxigrad differentiates by HIPS autograd.

    Arguments and results are trees. ``f`` gets a NumPy array, or a box of autograd, for each array of any library and for
    each variable; other leaves are passed on unchanged. Arrays and numbers in the result become arrays of the library of the first array among the
    arguments. So functions with ``autograd.extend.primitive`` and ``defvjp`` keep their derivatives.

    Derivatives of any order are available in both modes, as far as autograd differentiates ``f`` twice; forward mode
    transposes the pullback. Under `oxigrad.vmap` the function is called for each example.

    >>> import autograd.numpy as anp
    >>> import oxigrad as ox
    >>> square = from_autograd(lambda tree: anp.square(tree["x"]))
    >>> ox.hessian(lambda tree: square(tree).sum())({"x": np.ones(1)})
    {'x': {'x': array([[2.]])}}
    """
    return differentiable(f, _AUTOGRAD)


class _Autograd(Autodiff):
    """The automatic differentiation of HIPS autograd: its arrays are NumPy's, numbers, and boxes of them."""

    def array(self, value: Any) -> Any:
        return to_host(value) if is_array(value) and not _tracer.isbox(value) else value

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic, float, complex)) or _tracer.isbox(value)

    def record(self, f: Function, arrays: Sequence[Any], at: Sequence[int]) -> tuple[list[Any], Pullback]:
        count = len(at)

        def called(chosen: Any) -> Any:
            return _builtins.tuple(f(replaced(arrays, at, [chosen[i] for i in range(count)])))

        inputs = _builtins.tuple([arrays[i] for i in at])
        pull, result = _core.make_vjp(called, inputs)
        outputs = [result[i] for i in range(len(result))]

        def pullback(cotangents: Mapping[int, Any]) -> list[Any]:
            filled = [cotangents.get(i, _zeros(y)) for i, y in enumerate(outputs)]
            pulled = pull(_builtins.tuple(filled))
            return [pulled[i] for i in range(count)]

        return outputs, pullback


_AUTOGRAD = _Autograd()


def _zeros(output: Any) -> Any:
    """The cotangent zero of an output."""
    return np.zeros_like(_tracer.getval(output))
