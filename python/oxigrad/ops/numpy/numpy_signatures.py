"""NumPy's signatures of the functions that stand in for its own, read off NumPy."""

import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from oxigrad.ops.core.array_like import NO_VALUE

# Arguments that do not change the elements of a result, such as its memory layout; ``out`` is assigned by the caller.
_WITHOUT_EFFECT = {"like", "order", "out", "overwrite_input", "subok"}


def numpy_signature(
    numpys: Callable[..., Any], renamed: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function to take the arguments of NumPy's, by position or by name.

    ``renamed`` maps parameters of NumPy's function to other names.

    The function receives them by name, without absent ones, and with lists of axes as tuples. It declares the defaults
    that it reads, and passes on the other arguments by ``**``.
    """
    parameters = inspect.signature(numpys).parameters.items()
    signature = inspect.Signature([each.replace(name=renamed.get(name, name)) for name, each in parameters])

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            bound = signature.bind(*args, **named).arguments.items()
            arguments = {name: value for name, value in bound if value is not NO_VALUE and name not in _WITHOUT_EFFECT}
            if isinstance(axis := arguments.get("axis"), (list, tuple)):
                arguments["axis"] = tuple(map(operator.index, axis))
            if "keepdims" in arguments:
                arguments["keepdims"] = bool(arguments["keepdims"])
            return function(**arguments)

        vars(called)["__signature__"] = signature
        return called

    return decorate
