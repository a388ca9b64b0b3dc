"""SciPy's signatures of functions that take fewer arguments here: the others are without effect, or refused by name.

``output`` is taken by every function that has it in SciPy: a dtype, or an array to assign to.
"""

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from oxigrad._core import Variable, plain
from oxigrad._names import parameter_kinds
from oxigrad._typing import Array
from oxigrad.ops.backends import UnbatchedError, is_array, namespace, one_by_one
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.in_place import written
from oxigrad.ops.core.shapes import RAW_ERRORS, check_given_axes, explain

# Parameters that save memory or time, or that check arguments.
_WITHOUT_EFFECT = {"blocksize", "check_finite", "overwrite_a", "overwrite_ab", "overwrite_b", "overwrite_data"}


def scipy_signature(parameters: str, *, ignored: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function to take SciPy's parameters, written as in a definition.

    Positional-only parameters of the function are SciPy's first ones. Its other parameters have SciPy's names, or any
    of them through ``**``. The function needs no defaults: it receives SciPy's. SciPy parameters that the function
    lacks have no effect if ``ignored`` names them, with the accepted values if SciPy accepts only some
    (``method=auto,fft``). For all others, values other than the default raise `NotImplementedError`.
    """
    theirs, texts = _parsed(parameters), {name: part for name, _, part in (p.partition("=") for p in ignored.split())}
    skipped = _WITHOUT_EFFECT | texts.keys()
    defaults = {name: parameter.default for name, parameter in theirs.parameters.items()}
    optional = {name: default for name, default in defaults.items() if default is not inspect.Parameter.empty}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        ours = parameter_kinds(function)
        first = [name for name, kind in ours.items() if kind is inspect.Parameter.POSITIONAL_ONLY]
        leading = list(theirs.parameters)[: len(first)]
        variadic = next((p.name for p in theirs.parameters.values() if p.kind is p.VAR_POSITIONAL), "")
        takes_all = inspect.Parameter.VAR_KEYWORD in ours.values()
        accepted = theirs.parameters.keys() - {*leading, "output"} if takes_all else ours.keys()
        absent = {name: default for name, default in optional.items() if name in accepted and name not in leading}

        @functools.wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            try:
                arguments = theirs.bind(*args, **named).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}: {error}") from None
            if not isinstance(next(iter(arguments.values()), None), (list, tuple)):  # which are not arrays yet
                check_given_axes(function.__name__, arguments)
            positional = [arguments.pop(name, defaults[name]) for name in leading] or [*arguments.pop(variadic, ())]
            output = arguments.pop("output", None)
            passed = (
                absent
                | arguments.pop("kwargs", {})
                | {name: value for name, value in arguments.items() if name in accepted}
            )
            for name in arguments.keys() & {name for name, part in texts.items() if part}:
                expected = [defaults[name], *texts[name].split(",")]
                if arguments[name] not in expected:
                    raise ValueError(f"{function.__name__}: {name} is {arguments[name]!r}: expected one of {expected}")
            for name in arguments.keys() - accepted - skipped:
                if not _is_same(arguments[name], defaults[name]):
                    raise NotImplementedError(
                        f"{function.__name__}: {name} is {arguments[name]!r}: expected {defaults[name]!r}: other "
                        "values are not implemented"
                    )
            try:
                result = function(*positional, **passed)
            except UnbatchedError as error:
                result = one_by_one(function, positional, passed, error)
            except RAW_ERRORS as error:
                explain(function.__name__, called, args, named, error)
                raise
            return result if output is None or output is defaults["output"] else _in_output(function, result, output)

        vars(called)["__signature__"] = theirs
        return called

    return decorate


def _parsed(parameters: str) -> inspect.Signature:
    """The signature of ``lambda parameters: 0``, whose defaults are literals, or names of NumPy's dtypes."""
    args = cast("ast.Lambda", ast.parse(f"lambda {parameters}: 0", mode="eval").body).args
    defaults = [inspect.Parameter.empty] * (len(args.args) - len(args.defaults)) + list(map(_default, args.defaults))
    kind = inspect.Parameter
    signature = [kind(a.arg, kind.POSITIONAL_OR_KEYWORD, default=d) for a, d in zip(args.args, defaults, strict=True)]
    if args.vararg:
        signature.append(kind(args.vararg.arg, kind.VAR_POSITIONAL))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        signature.append(kind(arg.arg, kind.KEYWORD_ONLY, default=kind.empty if default is None else _default(default)))
    if args.kwarg:
        signature.append(kind(args.kwarg.arg, kind.VAR_KEYWORD))
    return inspect.Signature(signature)


def _default(node: ast.expr) -> Any:
    return getattr(np, node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)


def _is_same(value: Any, default: Any) -> bool:
    if isinstance(value, Variable) or is_array(value):
        return False
    return value is default or bool(value == default)


def _in_output(function: Callable[..., Any], result: Array, output: Any) -> Array:
    """The result in the dtype ``output``, or assigned to it."""
    if not isinstance(output, (type, str)) and is_array(plain(output)):
        return written(function.__name__, result, output)
    dtype = getattr(namespace(plain(result)), np.dtype(output).name, output)
    return ops.astype(result, dtype, copy=False)
