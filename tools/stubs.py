"""The type stubs of the modules whose names are made when they are imported.

These are the optimizers, which come from the table, and functions under the names of the standard, of NumPy and of SciPy. Names that a
module defines in its source are imported from there; the others have the signatures that `inspect.signature` shows. Rules are formulas, whose
source leaves out the types of arrays: their stubs add them. Editors and type checkers read the stubs; nothing else does.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import compiled_stub
from compiled_stub import described, narrowed, summary
from oxigrad import vjp
from oxigrad._core import Variable
from oxigrad.optim.settings.hyperparameters import Part

PACKAGE = Path(__file__).parent.parent / "python" / "oxigrad"
_TYPES = (
    "from builtins import bool as _bool\nfrom typing import Any\n\nfrom oxigrad._typing import Array, Device, Dtype\n"
)
_OPTIMIZERS = """from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from oxigrad._typing import Dtype, Number
from oxigrad.optim.chain import Transform
from oxigrad.optim.closures.lbfgs import ClosureOptimizer
from oxigrad.optim.rule_optimizer import RuleOptimizer
from oxigrad.optim.settings.hyperparameters import Hyperparameter
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.schedules.base import Schedule

_Number: TypeAlias = Hyperparameter[float | Schedule, Number]
_Optional: TypeAlias = Hyperparameter[float | Schedule | None, Number | None]
_Groups: TypeAlias = Mapping[Any, Mapping[str, Any] | None]
_Library: TypeAlias = Literal["torch", "optax", "keras"] | None
"""
HEADS = {
    "torch": """from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from oxigrad.torch.interchange import load_state_dict as load_state_dict
from oxigrad.torch.interchange import state_dict as state_dict
from oxigrad.torch.lbfgs import LBFGS as LBFGS
from oxigrad.torch.state.file import read_state as read_state
from oxigrad.torch.step.offload.host import HostMemory as HostMemory

class _Stepping:
    def no_step(self) -> AbstractContextManager[None]: ...
    def norm_pass(self) -> AbstractContextManager[None]: ...
    @property
    def ahead(self) -> list[str]: ...
    def synchronize(self) -> None: ...
    def flush(self) -> None: ...
""",
    "optax": """from typing import Any

from oxigrad.optax.composed import muon as muon
from oxigrad.optax.composed import noisy_sgd as noisy_sgd
from oxigrad.optax.composed import optimistic_adam as optimistic_adam
from oxigrad.optax.pytrees import State as State
from oxigrad.optax.transformation import Transformation as Transformation
from oxigrad.optax.transformation import transformation as transformation
""",
    "keras": """from collections.abc import Iterable, Mapping
from typing import Any

import keras

class _Optimizer(keras.optimizers.Optimizer):
    def __init__(
        self, learning_rate: Any = None, *, no_weight_decay: str | Iterable[str] = (), **settings: Any
    ) -> None: ...
""",
    "optim.table.descent": _OPTIMIZERS,
    "optim.table.moments": _OPTIMIZERS,
    "optim.table.transforms": _OPTIMIZERS,
    "xp": f"""from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeVar, overload
import numpy as _numpy
from numpy import random as random
from oxigrad._core import Variable
from oxigrad._typing import Axis, Shape
{_TYPES}
# A type variable: a variable gives a variable, and an argument of unknown type gives a result of unknown type.
_V = TypeVar("_V", bound=Variable)
# An array of NumPy gives one; those of other libraries have no common type.
_Plain: TypeAlias = _numpy.ndarray[Any, Any]
# What combines with an array of NumPy to another one: not a variable, so that a variable and an argument of unknown
# type give a variable.
_Host: TypeAlias = _Plain | _numpy.generic | complex | list[Any] | tuple[Any, ...]

class _Ufunc(Protocol):
    def accumulate(self, array: Array, axis: int = 0, dtype: Dtype = None, out: Array = None) -> Array: ...
    def at(self, a: Array, indices: Any, b: Array = None) -> None: ...
    def outer(self, A: Array, B: Array, **named: Any) -> Array: ...
    def reduce(self, array: Array, axis: int | tuple[int, ...] | None = 0, dtype: Dtype = None, **named: Any) -> Array: ...
    def reduceat(self, array: Array, indices: Any, axis: int = 0, dtype: Dtype = None, out: Array = None) -> Array: ...

class _Of1(_Ufunc, Protocol):
    def __call__(self, x: Array, /, **named: Any) -> Array: ...

class _Of2(_Ufunc, Protocol):
    def __call__(self, x1: Array, x2: Array, /, **named: Any) -> Array: ...

class _Recorded1(_Ufunc, Protocol):
    @overload
    def __call__(self, x: _V, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x: _Plain, /, **named: Any) -> _Plain: ...
    @overload
    def __call__(self, x: Array, /, **named: Any) -> Array: ...

class _Recorded2(_Ufunc, Protocol):
    @overload
    def __call__(self, x1: _V, x2: Array, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x1: _Host, x2: _V, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x1: _Plain, x2: _Host, /, **named: Any) -> _Plain: ...
    @overload
    def __call__(self, x1: _Host, x2: _Plain, /, **named: Any) -> _Plain: ...
    @overload
    def __call__(self, x1: Array, x2: _V, /, **named: Any) -> _V: ...
    @overload
    def __call__(self, x1: Array, x2: Array, /, **named: Any) -> Array: ...
""",
    "xp.fft": _TYPES,
    "xp.integrate": _TYPES,
    "xp.interpolate": _TYPES,
    "xp.linalg": _TYPES,
    "xp.ndimage": _TYPES,
    "xp.signal": _TYPES,
    "xp.spatial.distance": _TYPES,
    "xp.special": _TYPES,
    "xp.stats": _TYPES,
}
# Modules of rules.
RULES = (
    *"rules.adagrad rules.adam rules.adam_variants rules.factored rules.gradient_transforms rules.layerwise".split(),
    *"rules.low_rank rules.orthogonal rules.parameter_free rules.preconditioned rules.schedule_free rules.sgd".split(),
    *"rules.core.arrays rules.core.eigenvectors rules.core.moments rules.core.norms torch.formulas".split(),
)
_PARAMS = "Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]"
# The release whose signatures `oxigrad.xp` shows.
NUMPY = np.__version__.rpartition(".")[0]
_LITERAL = (bool, str, float, int, type(None))
# The types of hyperparameters as arguments, by those of the attributes.
_GIVEN = {"_Number": "Number", "_Optional": "Number | None"}
# The types of the options of optimizers.
_OPTION_TYPES = {
    "seed": "int",
    "accumulate": "int",
    "nonfinite": 'Literal["propagate", "skip", "raise"]',
    "loss_scale": "LossScale | None",
    "zero_gradients": "bool",
    "sparse": 'Literal["dense", "lazy", "catch_up"]',
    "slot_dtype": 'Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None',
    "master": "bool",
    "rounding": 'Literal["nearest", "stochastic", "kahan"]',
    "record_norms": "str | Iterable[str]",
    "state_device": 'Literal["host"] | None',
    "groups": "_Groups | None",
    "dtype": "Dtype",
    "compat": "_Library",
}


def path(name: str) -> Path:
    """The file of the stub of a module."""
    place = PACKAGE / name.replace(".", "/")
    return place / "__init__.pyi" if place.is_dir() else place.with_suffix(".pyi")


def stub(name: str) -> str:
    """The text of the stub of a module, which must be importable."""
    module = importlib.import_module(f"oxigrad.{name}")
    if name in RULES:
        return narrowed("\n".join(["# Printed by make generated.", *_rules(module)]))
    if name in ("torch", "optax"):
        made = [key for key in module.__all__ if f" as {key}\n" not in HEADS[name]]
        parts = _classes(module, made) if name == "torch" else _functions(module, made)
    elif name == "keras":
        parts = _keras(module)
    elif name.startswith("optim."):
        parts = _optimizers(module)
    else:
        parts = _names(module)
    body = [*parts]
    printed = f"# Printed by make generated{f', of NumPy {NUMPY}' * (name == 'xp')}."
    return narrowed("\n".join([printed, _pruned(HEADS[name], "\n".join(body)), *body]))


def _pruned(head: str, body: str) -> str:
    """The head without the names that it imports and nothing reads."""
    code = re.sub(r'"""(?:[^"]|"(?!""))*"""', "", head + body)
    lines = []
    for line in head.splitlines(keepends=True):
        start, found, names = line.rstrip().partition(" import ")
        if start.startswith("from ") and found:
            used = [each for each in names.split(", ") if len(re.findall(rf"\b{each.split()[-1]}\b", code)) > 1]
            lines.append(f"{start} import {', '.join(used)}\n" if used else "")
        else:
            lines.append(line)
    return "".join(lines)


def _classes(module: ModuleType, names: list[str]) -> Iterator[str]:
    for name in sorted(names):
        kind = getattr(module, name)
        theirs = getattr(kind, "theirs", None)
        base = f"torch.optim.{theirs.__name__}" if theirs else "torch.optim.Optimizer"
        yield f"class {name}(_Stepping, {base}):"
        yield described(kind)
        annotations = {"params": _PARAMS, "seed": "int"}
        yield f"    def __init__(self, {_arguments(kind, _by_default('float | Tensor', annotations))}) -> None: ...\n"


def _functions(module: ModuleType, names: list[str]) -> Iterator[str]:
    for name in sorted(names):
        function = getattr(module, name)
        yield f"def {name}({_arguments(function, _by_default('Any', {}))}) -> Transformation:"
        yield f"{described(function)}\n"


def _keras(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        kind = getattr(module, name)
        yield f"class {name}(_Optimizer):\n{described(kind)}"
        if inspect.signature(kind) != inspect.signature(kind.__base__):
            yield f"    def __init__(self, {_arguments(kind, lambda _: 'Any')}) -> None: ..."
        yield ""


def _optimizers(module: ModuleType) -> Iterator[str]:
    """The classes of a table of optimizers or transforms, with their hyperparameters as attributes."""
    if hasattr(module, "TRANSFORMS"):
        yield "TRANSFORMS: dict[str, type[Transform]]\n"
    for name, kind in vars(module).items():
        if not (isinstance(kind, type) and issubclass(kind, Part) and kind.__name__ == name and hasattr(kind, "_rule")):
            continue
        types = {each: _domain(declared) for each, declared in kind._declared.items()}
        yield f"class {name}({kind.__bases__[0].__name__}):"
        yield described(kind)
        yield from (f"    {each}: {text}" for each, text in types.items())
        given = {each: _GIVEN.get(text, text) for each, text in types.items()}
        yield f"    def __init__(self, {_arguments(kind, functools.partial(_argument, given))}) -> None: ...\n"


def _rules(module: ModuleType) -> Iterator[str]:
    """The functions and constants of a module of rules, with the imports that they read."""
    source = ast.parse(Path(str(module.__file__)).read_text())
    body = [*_typed(module, source)]
    code = re.sub(r'"""(?:[^"]|"(?!""))*"""', "...", "\n".join(body))
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    imports = [node for node in source.body if isinstance(node, ast.ImportFrom)]
    rule = "from oxigrad.rules.core.rule import Rule"
    for node in [*imports, *ast.parse(f"from typing import Any\nfrom oxigrad._typing import Array\n{rule}").body]:
        used = [each for each in node.names if each.name in names]
        names -= {each.name for each in used}
        if used:
            yield ast.unparse(ast.ImportFrom(node.module, used, 0))
    yield from ["", *body]


def _typed(module: ModuleType, source: ast.Module) -> Iterator[str]:
    for node in source.body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            yield f"def {node.name}({_typed_arguments(node.args)}) -> {_returned(node)}:"
            yield f"{summary(getattr(module, node.name))}\n" if ast.get_docstring(node) else "    ...\n"
        elif isinstance(node, ast.Assign):
            for name in (each.id for each in node.targets if isinstance(each, ast.Name)):
                value = getattr(module, name, None)
                if name == "__all__" or "Annotated[" in ast.unparse(node.value):
                    yield ast.unparse(node)
                elif name[0] != "_":
                    yield f"{name}: {type(value).__name__ if type(value).__name__ == 'Rule' else _container(value)}"


def _container(value: Any) -> str:
    """The type of a constant."""
    if isinstance(value, dict):
        return f"dict[{', '.join(_container(next(iter(part))) for part in (value, value.values()))}]"
    return "tuple[Any, ...]" if isinstance(value, tuple) else type(value).__name__


def _typed_arguments(given: ast.arguments) -> str:
    """The parameters of a rule: arrays, where no type is written."""
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if each is not None and each.annotation is None:
            each.annotation = ast.Name("Any" if each.arg == "xp" or each in (given.vararg, given.kwarg) else "Array")
    for defaults in (given.defaults, given.kw_defaults):
        defaults[:] = [
            each if each is None or isinstance(each, ast.Constant) else ast.Constant(...) for each in defaults
        ]
    return ast.unparse(given)


def _returned(function: ast.FunctionDef) -> str:
    """The type of a result: as it is written, else a tuple where every result is one."""
    if function.returns is not None:
        return ast.unparse(function.returns)
    found = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return "tuple[Array, ...]" if found and all(isinstance(value, ast.Tuple) for value in found) else "Array"


def _argument(types: dict[str, str], parameter: inspect.Parameter) -> str:
    """The type of an argument of an optimizer: a hyperparameter of these types, or an option."""
    return types.get(parameter.name) or _OPTION_TYPES[parameter.name]


def _domain(declared: Any) -> str:
    """The type of a hyperparameter, by its domain."""
    domain = declared.domain
    if domain is None:
        return "Any"
    names = [repr(each) for each in domain.choices or () if each is not None and not isinstance(each, bool)]
    found = [f"Literal[{', '.join(names)}]"] if names else []
    if any(isinstance(each, bool) for each in domain.choices or ()):
        found.append("bool")
    is_optional = domain.choices is not None and None in domain.choices
    if domain.interval is not None:
        if not found:
            return "_Optional" if is_optional else "_Number"
        found.append("_Number")
    return " | ".join([*found, *["None"] * is_optional])


def _names(module: ModuleType) -> Iterator[str]:
    """The names of a module: imported from where they are defined, or with their signatures."""
    imported: dict[str, list[str]] = {}
    written = []
    own = {name for name in _defined(module.__name__) if name[0] != "_"}
    unlisted = getattr(module, "_unlisted", {})
    parts = [each.__name__ for each in vars(module).values() if isinstance(each, ModuleType)]
    for name in sorted({*module.__all__, *own, *unlisted}):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            imported.setdefault(value.__name__.rpartition(".")[0], []).append(
                f"{value.__name__.rpartition('.')[2]} as {name}"
            )
        elif not inspect.isroutine(value) and (part := next((p for p in parts if name in _typed_objects(p)), "")):
            imported.setdefault(part, []).append(f"{name} as {name}")
        elif module.__name__ == "oxigrad.xp" and (overloads := _overloads(name, value)):
            written += overloads
        elif _is_defined(value) and value.__module__ != module.__name__:
            renamed = name if value.__qualname__ == name else f"_{name}"
            imported.setdefault(value.__module__, []).append(f"{value.__qualname__} as {renamed}")
            if renamed != name:
                written.append(f"{name} = {renamed}")
        elif (isinstance(value, type) and value.__module__.partition(".")[0] == "numpy") or not callable(value):
            written.append(_constant(name, value))
        else:
            written += _function(name, value, is_xp=module.__name__ == "oxigrad.xp")
    yield from (f"from {source} import ({', '.join(names)})" for source, names in sorted(imported.items()))
    yield from ["", *written]
    if module.__name__ == "oxigrad.xp":
        yield "\n__array_api_version__: str\ndef __array_namespace_info__() -> Any: ..."
    yield f"\n__all__ = {sorted(module.__all__)!r}\n"


def _constant(name: str, value: Any) -> str:
    if isinstance(value, (float, str)):
        return f"{name}: {type(value).__name__}"
    if isinstance(value, type) and issubclass(value, (np.generic, np.bool)) and value.__name__ == name:
        return f"{name}: Dtype"
    if getattr(np, name, None) is value and value is not None:
        return f"from numpy import {name} as {name}"
    return f"{name}: Any"


def _function(name: str, value: Any, *, is_xp: bool) -> list[str]:
    """A function with the signature that it shows; one that is a ufunc of NumPy has the methods of ufuncs.

    Functions that have NumPy's documentation, which is long, have none in the stub.
    """
    theirs = getattr(np, name, None) if is_xp else None
    about = [] if inspect.getdoc(value) == inspect.getdoc(theirs) else [summary(value)]
    if isinstance(theirs, np.ufunc) and theirs.nin < 3 and theirs.nout == 1:
        kind = "_Recorded" if _records(value, theirs.nin) else "_Of"
        return [f"{name}: {kind}{theirs.nin}", *map(textwrap.dedent, about)]
    head = f"def {name}({_arguments(value, _annotation)}) -> Array:"
    return [head, *about] if about else [f"{head} ..."]


# Further arguments of functions of a square matrix.
_MORE: dict[str, tuple[Any, ...]] = {
    "broadcast_to": ((2, 2),),
    "moveaxis": (0, 1),
    "reshape": (4,),
    "roll": (1,),
    "take": (np.array([0]),),
}


def _records(function: Callable[..., Any], variables: int, *others: Any) -> bool:
    """Whether the result of a function of variables is a variable."""
    results: list[Any] = []

    def probe(x: Any) -> Any:
        results.append(function(*[x] * variables, *others))
        return 0.0

    with contextlib.suppress(TypeError, ValueError, ArithmeticError), np.errstate(all="ignore"):
        vjp(probe, np.array([[0.3, 0.1], [0.1, 0.4]]))
    return bool(results) and isinstance(results[0], Variable)


def _overloads(name: str, value: Any) -> list[str]:
    """A function with the result `Variable` for a variable, and an array for NumPy's; empty for any other function.

    The types are those of its source. Functions whose first argument is not one array are not overloaded.
    """
    if not _is_defined(value) or isinstance(value, type):
        return []
    (node,) = (
        each
        for each in ast.parse(Path(sys.modules[value.__module__].__file__ or "").read_text()).body
        if isinstance(each, ast.FunctionDef) and each.name == value.__name__
    )
    arrays = [each for each in (*node.args.posonlyargs, *node.args.args) if _written(each.annotation) == "Array"]
    first = [*node.args.posonlyargs, *node.args.args][:1]
    count = 2 if [each.arg for each in arrays[:2]] == ["x1", "x2"] else 1
    if not arrays or arrays[:1] != first or _written(node.returns) != "Array":
        return []
    if not _records(value, count, *_MORE.get(name, ())):
        return []
    lines = []
    for kind, each in itertools.product(("_V", "_Plain"), arrays[:count]):
        each.annotation = ast.Name(kind)
        lines += ["@overload", f"def {name}({_shown(node.args)}) -> {kind}: ..."]
        each.annotation = ast.Name("Array")
    return [*lines, "@overload", f"def {name}({_shown(node.args)}) -> Array:", summary(value)]


def _written(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


def _shown(arguments: ast.arguments) -> str:
    """Parameters as text, where ``bool`` is Python's."""
    return re.sub(r"\bbool\b", "_bool", ast.unparse(arguments))


@functools.cache
def _statements(module: str) -> list[ast.stmt]:
    """The source of a module of the package; empty for others."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return ast.parse(Path(file).read_text()).body if file and module.startswith("oxigrad") else []


@functools.cache
def _typed_objects(module: str) -> frozenset[str]:
    """The names of the objects that the source of a module defines with their types, such as distributions."""
    objects = [node.target for node in _statements(module) if isinstance(node, ast.AnnAssign)]
    return frozenset(each.id for each in objects if isinstance(each, ast.Name) and each.id[0] != "_")


@functools.cache
def _defined(module: str) -> frozenset[str]:
    """The names of the functions and classes that the source of a module defines, with their own signatures."""
    definitions = [node for node in _statements(module) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return frozenset(node.name for node in definitions if not any(map(_replaces, node.decorator_list)))


def _replaces(decorator: ast.expr) -> bool:
    """Whether a decorator gives a function another signature than its definition."""
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("_signature")


def _is_defined(value: Any) -> bool:
    return getattr(value, "__qualname__", "") in _defined(getattr(value, "__module__", ""))


def _arguments(value: Any, annotate: Callable[[inspect.Parameter], str]) -> str:
    """The parameters of a function with annotations."""
    found: list[str] = []
    before = None
    for each in inspect.signature(value).parameters.values():
        if before is each.POSITIONAL_ONLY and each.kind is not before:
            found.append("/")
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            found.append("*")
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        found.append(f"{stars}{each.name}: {annotate(each)}{_default(each.default)}")
        before = each.kind
    return ", ".join([*found, *["/"] * (before is inspect.Parameter.POSITIONAL_ONLY)])


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    plain = isinstance(value, _LITERAL) or (
        isinstance(value, tuple) and all(isinstance(each, _LITERAL) for each in value)
    )
    return f" = {value!r}".replace("= inf", '= float("inf")') if plain else " = ..."


def _annotation(parameter: inspect.Parameter) -> str:
    """The type of a parameter of a function of arrays, by its name and its default."""
    if parameter.name in ("dtype", "device"):
        return parameter.name.capitalize()
    default = parameter.default
    if parameter.kind is parameter.POSITIONAL_ONLY and default is parameter.empty:
        return "Array"
    return {bool: "_bool", str: "str"}.get(type(default), "Any")


def _by_default(number: str, annotations: dict[str, str]) -> Callable[[inspect.Parameter], str]:
    """The types of parameters by their defaults, where numbers are of the type ``number``."""

    def annotation(default: Any) -> str:
        if isinstance(default, tuple):
            return f"tuple[{', '.join(map(annotation, default))}]"
        return {bool: "bool", str: "str", float: number, int: number}.get(type(default), "Any")

    return lambda parameter: annotations.get(parameter.name) or annotation(parameter.default)


def print_stubs() -> None:
    """Writes the stubs of the modules whose libraries are installed."""
    for name in (*HEADS, *RULES):
        try:
            text = stub(name)
        except ModuleNotFoundError as error:
            sys.stderr.write(f"oxigrad.{name}: {error}\n")
            continue
        path(name).write_text(text)
    compiled = path("_core")
    compiled.write_text(compiled_stub.documented(compiled.read_text()))
