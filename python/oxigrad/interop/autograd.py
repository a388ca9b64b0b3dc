"""Functions of HIPS autograd, written with ``autograd.numpy`` and its primitives, differentiated in oxigrad.

>>> import autograd.numpy as anp
>>> import oxigrad as ox
>>> norm = from_autograd(lambda x: anp.sqrt(anp.sum(anp.stack([x, x]) ** 2)))
>>> ox.grad(norm)(np.array([3.0, 4.0])).round(6)
array([0.848528, 1.131371])
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oxigrad._names import without
from oxigrad._typing import Array
from oxigrad.autodiff.function_calls import replaced
from oxigrad.interop.array_functions import Pullback
from oxigrad.interop.their_functions import Autodiff, Function, differentiable
from oxigrad.ops.backends import is_array, to_host

autograd: Any = importlib.import_module("autograd")  # as an import statement would mean this file to a type checker
_core: Any = importlib.import_module("autograd.core")
_extend: Any = importlib.import_module("autograd.extend")
_builtins: Any = importlib.import_module("autograd.builtins")
_tracer: Any = importlib.import_module("autograd.tracer")
importlib.import_module("autograd.numpy")  # registers arrays

__all__ = ["from_autograd"]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)


def from_autograd(f: Callable[..., Any]) -> Callable[..., Any]:
    """Converts ``f``, a function of autograd's boxes, to a function of arrays that HIPS autograd differentiates.

    Args:
        f: function of trees with arrays that autograd differentiates.

    Arguments and results are trees. ``f`` receives a NumPy array, or a box of autograd, for each array of any library
    and for each variable; other leaves are passed on unchanged. Arrays and numbers in the result become arrays of the
    library of the first array among the arguments. Functions with ``autograd.extend.primitive`` and ``defvjp``
    therefore keep their derivatives.

    Derivatives of any order are available in both modes, as far as autograd differentiates ``f`` twice; forward mode
    transposes the pullback. Under `oxigrad.vmap` the function is called for each example.

    >>> import autograd.numpy as anp
    >>> import oxigrad as ox
    >>> square = from_autograd(lambda tree: anp.square(tree["x"]))
    >>> ox.hessian(lambda tree: square(tree).sum())({"x": np.ones(1)})
    {'x': {'x': array([[2.]])}}
    """
    return differentiable(f, _AUTOGRAD, "from_autograd")


class _Autograd(Autodiff):
    """The automatic differentiation of HIPS autograd: its arrays are NumPy's, numbers, and boxes of them."""

    def array(self, value: Array) -> Array:
        return to_host(value) if is_array(value) and not _tracer.isbox(value) else value

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic, float, complex)) or _tracer.isbox(value)

    def record(self, f: Function, arrays: Sequence[Array], at: Sequence[int]) -> tuple[list[Array], Pullback]:
        boxes: list[Array] = []
        used: set[int] = set()

        def called(chosen: Any) -> Any:
            boxes[:] = f(replaced(arrays, at, [_taken(chosen, i, used) for i in range(len(at))]))
            traces[:] = [chosen._trace]
            return _builtins.tuple(boxes)

        traces: list[int] = []
        result = _core.make_vjp(called, _builtins.tuple([arrays[i] for i in at]))[1]

        def pullback(cotangents: Mapping[int, Array]) -> list[Array]:
            active = [i for i in cotangents if _tracer.isbox(boxes[i]) and boxes[i]._trace in traces]
            if not active:
                return [None] * len(at)
            used.clear()
            end = _builtins.tuple([boxes[i] for i in active])
            pulled = _core.backward_pass(_builtins.tuple([cotangents[i] for i in active]), end._node)
            return [pulled[i] if i in used else None for i in range(len(at))]

        return [result[i] for i in range(len(result))], pullback


_AUTOGRAD = _Autograd()


@_extend.primitive
def _taken(arrays: Any, i: int, used: set[int]) -> Array:
    """An item of a tuple, whose number a backward pass that reaches it adds to ``used``."""
    return arrays[i]


def _untaken(_: Any, arrays: Any, i: int, used: set[int]) -> Callable[[Array], Array]:
    def pull(cotangent: Array) -> Array:
        used.add(i)
        return _builtins.container_untake(cotangent, i, _extend.vspace(arrays))

    return pull


_extend.defvjp(_taken, _untaken, argnums=(0,))
