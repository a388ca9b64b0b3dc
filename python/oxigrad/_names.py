"""Names of parameters, a registry of classes and functions, and errors for unknown names and missing libraries."""

import importlib
import inspect
import itertools
import sys
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from types import FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T", bound=Callable[..., object])


class UnknownNameError(AttributeError):
    """A module has no such name.

    The text suggests a public name. The names are searched only when the text is shown, which ``hasattr`` does not do.
    """

    __module__ = "oxigrad"

    def __init__(self, module: str, name: str, names: Iterable[str], elsewhere: Mapping[str, str]) -> None:
        super().__init__(f"module {module!r} has no attribute {name!r}", name=name)
        self._name, self._names, self._elsewhere = name, names, elsewhere

    def __str__(self) -> str:
        if advice := self._elsewhere.get(self._name):
            return f"{super().__str__()}: {advice}"
        suggestion = "" if self._name.startswith("_") else nearest(self._name, self._names)
        return super().__str__() + (f" (did you mean {suggestion}?)" if suggestion else "")

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


def unknown_name(
    module: str, name: str, names: Iterable[str], elsewhere: Mapping[str, str] = MappingProxyType({})
) -> AttributeError:
    """The error for a module that has no such name, which suggests one of its public ``names``.

    ``elsewhere`` maps names of other libraries to advice.

    >>> print(unknown_name("oxigrad.optim", "adam", ["Adam", "AdamW"]))
    module 'oxigrad.optim' has no attribute 'adam' (did you mean Adam?)
    >>> print(unknown_name("oxigrad.xp", "relu", [], {"relu": "use xp.maximum(x, 0)"}))
    module 'oxigrad.xp' has no attribute 'relu': use xp.maximum(x, 0)
    """
    return UnknownNameError(module, name, names, elsewhere)


def without(
    module: str, names: list[str], elsewhere: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[], list[str]], Callable[[str], object]]:
    """The ``__dir__`` and ``__getattr__`` of a module that has these public ``names``, and no others.

    ``elsewhere`` is as in `unknown_name`.
    """

    def absent(name: str) -> object:
        raise unknown_name(module, name, names, elsewhere)

    return names.copy, absent


def check_callable(f: object, name: str) -> None:
    """Raises `TypeError` if ``f``, the argument of the function ``name``, is not callable."""
    if not callable(f):
        raise TypeError(f"{name}: found {f!r}, expected a function")


def in_words(value: object) -> str:
    """A value in an error: its text, or the name of its class if the text has several lines.

    >>> in_words(1.5)
    '1.5'
    """
    text, cls = repr(value), type(value)
    return f"{cls.__module__}.{cls.__qualname__}" if "\n" in text else text


def name_of(f: object) -> str:
    """The name of a function for errors."""
    return getattr(f, "__qualname__", None) or repr(f)


def path_name(path: object) -> str:
    """A key path as the subject of an error: its text, or words for the path of the root, which has no keys.

    >>> path_name("layers.0.w"), path_name("")
    ('layers.0.w', 'the root')
    """
    return str(path) or "the root"


def nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """The name that differs from ``name`` in case and underscores alone, or the one nearest to it.

    Empty where none is near: where the share of common letters is below the ``likeness``.
    """
    import difflib  # here, since few programs have unknown names

    plain = {each.lower().replace("_", ""): each for each in names}
    written = name.lower().replace("_", "")
    matches = [written] if written in plain else difflib.get_close_matches(written, plain, 1, likeness)
    return plain[matches[0]] if matches else ""


def parameter_kinds(function: Callable[..., Any]) -> "dict[str, inspect._ParameterKind]":
    """The names and kinds of a function's parameters, as in ``inspect.signature``.

    Decorators read the parameters of some hundred functions when the package is imported. Reading them from the code
    takes a tenth of the time.

    >>> [(name, kind.name) for name, kind in parameter_kinds(lambda x, /, *, axis: x).items()]
    [('x', 'POSITIONAL_ONLY'), ('axis', 'KEYWORD_ONLY')]
    """
    stated: Any = function
    while (
        isinstance(stated, FunctionType) and "__wrapped__" in stated.__dict__ and "__signature__" not in stated.__dict__
    ):
        stated = stated.__dict__["__wrapped__"]
    if not isinstance(stated, FunctionType) or "__signature__" in stated.__dict__:
        return {name: parameter.kind for name, parameter in inspect.signature(function).parameters.items()}
    code, kind = stated.__code__, inspect.Parameter
    names = iter(code.co_varnames)

    def take(count: int, kind: "inspect._ParameterKind") -> "dict[str, inspect._ParameterKind]":
        return {name: kind for name in itertools.islice(names, count)}  # noqa: C420

    by_position = take(code.co_posonlyargcount, kind.POSITIONAL_ONLY)
    by_either = take(code.co_argcount - code.co_posonlyargcount, kind.POSITIONAL_OR_KEYWORD)
    by_name = take(code.co_kwonlyargcount, kind.KEYWORD_ONLY)
    variadic = take(code.co_flags & inspect.CO_VARARGS > 0, kind.VAR_POSITIONAL)
    others = take(code.co_flags & inspect.CO_VARKEYWORDS > 0, kind.VAR_KEYWORD)
    return by_position | by_either | variadic | by_name | others


def calling_frame(packages: Container[str] = ("oxigrad",)) -> FrameType:
    """The innermost frame outside of these packages, or the outermost frame of all."""
    frame = sys._getframe(1)
    while frame.f_back is not None and package_of(frame) in packages:
        frame = frame.f_back
    return frame


def package_of(frame: FrameType) -> str:
    """The package of the code of a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def library(name: str, absent: str) -> ModuleType:
    """The module of another library; raises ``ModuleNotFoundError`` with the text ``absent`` if it is not installed.

    Args:
        name: name of the module, such as "scipy.linalg".
        absent: text of the error, such as what needs the library.

    >>> library("numpy", "needs NumPy").__name__
    'numpy'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise  # it is installed, and lacks a library itself
        raise ModuleNotFoundError(absent, name=error.name) from error


def is_ours(value: Any) -> bool:
    """Whether a class or function is of this package."""
    return str(value.__module__).partition(".")[0] == "oxigrad"  # None in code that runs in no module


def _may_replace(value: Any, held: Any) -> bool:
    is_subclass = isinstance(held, type) and isinstance(value, type) and issubclass(value, held)
    return is_subclass or is_ours(value) or not is_ours(held)


class Registry(Generic[T]):
    """A weak mapping of names to classes and functions; of several with one name, the latest that is alive.

    A name of this package stays the package's, or a subclass's: configurations, files and pickles refer to it.

    >>> registry = Registry()
    >>> class A: ...
    >>> registry["A"] = A
    >>> registry.get("A") is A, registry.get("B"), list(registry)
    (True, None, ['A'])
    """

    def __init__(self) -> None:
        self._by_name: dict[str, list[weakref.ref[T]]] = {}

    def __setitem__(self, name: str, value: T) -> None:
        held = self.get(name)
        if held is not None and not _may_replace(value, held):
            raise ValueError(f"the class {name} has the name of one of {held.__module__}: expected another name")
        self._by_name.setdefault(name, []).append(weakref.ref(value, lambda gone: self._forget(name, gone)))

    def _forget(self, name: str, gone: "weakref.ref[T]") -> None:
        references = [reference for reference in self._by_name.get(name, ()) if reference is not gone]
        if references:
            self._by_name[name] = references
        else:
            self._by_name.pop(name, None)

    def get(self, name: str | None) -> T | None:
        """The latest living object that is registered under a name, or None."""
        references = self._by_name.get(name, ()) if name is not None else ()
        return next((value for value in (ref() for ref in reversed(references)) if value is not None), None)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._by_name))


def check_flags(**flags: Any) -> list[bool]:
    """The flags by name, in this order; raises `TypeError`, with the name, for anything but True and False.

    Args:
        **flags: values of flags by their names, which errors show.

    >>> check_flags(overlap=True, nesterov=False)
    [True, False]
    """
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} is {value!r}: expected True or False")
    return [*map(bool, flags.values())]
