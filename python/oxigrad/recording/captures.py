"""Captured values of a function: the places of its inputs besides its arguments.

Inputs are the arrays, numbers and trees of them that globals, closure cells and defaults hold by name, and attributes
of objects that they hold. Functions are followed by the names of their code objects. What is there instead of an array
is guarded by identity, or equality where it cannot change. All else is a constant of the recording.
"""

import array
import dis
import enum
import functools
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import Function, Guards, RecordedFunction, StructureError
from oxigrad.recording.bits import is_same
from oxigrad.recording.traced import Traced

SIMPLE = (
    str,
    bytes,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    bool,
    int,
    range,
    slice,
    frozenset,
    np.dtype,
    np.ufunc,
    Function,
)
# Values that cannot change, which are guarded by equality.
_BY_VALUE = (bool, int, float, complex, str, bytes, range, np.ndarray, np.generic)
# Libraries whose functions read no names of the user's, and whose objects are constants.
_LIBRARIES = {*sys.stdlib_module_names, *"oxigrad numpy scipy array_api_compat typing_extensions jax torch".split()}
# Parts of them with classes whose objects hold the user's values: containers, frozen distributions, interpolators.
_WITH_HOLDERS = (
    "collections",
    *(f"oxigrad.xp._scipy.{name}" for name in ("stats.distribution", "interpolate", "integrate")),
)
# The classes below which one of the user's is a container, and containers of Python's own that are watched by length.
_BASES = (object, list, tuple, dict, OrderedDict, types.SimpleNamespace)
_SIZED = (set, bytearray, deque, defaultdict, array.array)
# Further places are constants.
_MOST_PLACES = 1 << 12
# The flags of a class: on the heap, and immutable, as classes of C are, of which some are on the heap.
_OF_PYTHON = 1 << 9
_OF_C = 1 << 8
# The instruction of `is`.
_IS = dis.opmap["IS_OP"]
# The content of a slot or a cell without a value.
EMPTY = object()


def is_input(value: Any) -> bool:
    """Whether a value is an array, or a number that is an input wherever it is."""
    return isinstance(value, (np.ndarray, np.generic)) or type(value) in (float, complex)


def _is_unchanging(value: Any) -> bool:
    """Whether a value is plain data without inputs, which nothing can change."""
    return all(map(_is_unchanging, value)) if type(value) is tuple else isinstance(value, SIMPLE)


def is_of_library(module: Any) -> bool:
    """Whether a module is of a library."""
    return str(module).partition(".")[0] in _LIBRARIES


def _packages_of(value: Any) -> set[str]:
    """The packages, outside of the libraries, of a module, a function, a class and its bases, or an object."""
    if isinstance(value, types.ModuleType):
        modules = [value.__name__]
    elif isinstance(value, types.FunctionType):
        modules = [value.__globals__.get("__name__")]
    else:
        modules = [each.__module__ for each in (value if isinstance(value, type) else type(value)).__mro__]
    return {str(module).partition(".")[0] for module in modules} - _LIBRARIES


def _codes_of(value: Any) -> set[types.CodeType]:
    """The code of a user's function, or of all functions of a module, a class and its bases, or an object's class."""
    parts = [value]
    if not isinstance(_function_of(value), types.FunctionType):
        classes = (value if isinstance(value, type) else type(value)).__mro__
        holders = [value] if isinstance(value, types.ModuleType) else classes
        parts = [part for each in holders if not is_of_library(_module_of(each)) for part in [*vars(each).values()]]
    functions = [each for each in map(_function_of, parts) if isinstance(each, types.FunctionType)]
    return {each.__code__ for each in functions if not is_of_library(each.__globals__.get("__name__"))}


def _function_of(member: Any) -> Any:
    """The function of a member of a class or a module, if it has one."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools._lru_cache_wrapper):
        return member.__wrapped__
    return member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def _module_of(value: Any) -> str:
    return value.__name__ if isinstance(value, types.ModuleType) else value.__module__


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _has_truths(code: types.CodeType) -> bool:
    """Whether a function compares values with the constants True or False by identity."""
    return any(each is True or each is False for each in code.co_consts) and _IS in code.co_code[::2]


def _is_of_python(cls: type) -> bool:
    """Whether a class is written in Python."""
    return cls.__flags__ & (_OF_PYTHON | _OF_C) == _OF_PYTHON


def base_of(value: Any) -> type:
    """The first class of an object that is not written in Python."""
    return next(each for each in type(value).__mro__ if not _is_of_python(each))


def is_holder(value: Any) -> bool:
    """Whether a value counts as a tree of its items and attributes: a container, or an object of a user's class."""
    cls = type(value)
    if cls in (list, tuple, dict, types.SimpleNamespace):
        return True
    is_constant = is_of_library(cls.__module__) and not cls.__module__.startswith(_WITH_HOLDERS)
    if is_constant or isinstance(value, enum.Enum) or hasattr(cls, "__del__"):
        return False
    return base_of(value) in _BASES and not isinstance(value, Traced)


def slots_of(value: Any) -> dict[str, Any]:
    """The contents of the `__slots__` of an object's classes, by name; `EMPTY` for nothing."""
    slots: dict[str, Any] = {}
    for each in type(value).__mro__:
        for name, member in vars(each).items() if _is_of_python(each) else ():
            if isinstance(member, types.MemberDescriptorType) and getattr(type(value), name, None) is member:
                slots[name] = getattr(value, name, EMPTY)
    return slots


def names_of(code: types.CodeType) -> dict[str, None]:
    """The names that a code object, and those inside of it, have."""
    return dict.fromkeys(name for each in _nested(code) for name in each.co_names)


def items_of(value: Any) -> list[tuple[Any, Any]]:
    """The items of a container, by their keys."""
    if isinstance(value, dict):
        return list(dict.items(value))
    return list(enumerate(value)) if isinstance(value, (list, tuple)) else []


def _may_hold(value: Any) -> bool:
    """Whether a value that a function of a library reads may hold something of the user's."""
    if isinstance(value, (list, tuple)):
        return any(map(_may_hold, value))
    is_function = isinstance(value, (types.FunctionType, functools.partial, types.MethodType, RecordedFunction))
    return is_function or is_input(value) or (callable(value) and is_holder(value))


class Captures:
    """The captured values of a function: ``inputs`` has a path, a place and that of the leaves of each tree."""

    def __init__(self, f: Callable[..., Any]) -> None:
        if is_holder(f) and isinstance(type(f).__dict__.get("__call__"), types.FunctionType):
            f = types.MethodType(type(f).__call__, f)
        self.f = f
        self.inputs: list[tuple[str, int, int]] = []
        self.guards: Guards = Guards(is_same)
        self.input_at: dict[int, int] = {}
        # The places of the parts of functions, containers and objects, with their kinds and keys; and those of objects
        # that were seen before.
        self.parts: dict[int, list[tuple[str, Any, int]]] = {}
        self.paths: dict[int, str] = {}
        self.same: dict[int, int] = {}
        self._seen: dict[int, tuple[int, Any]] = {}
        self._count = 0
        # The packages of functions, classes and modules that the function names.
        self._packages: set[str] = set()
        self._spaces: dict[int, dict[str, Any]] = {}
        # The functions that it reads, and whether one of them compares truth values by identity.
        self.has_truths: bool = False
        self.place: int = self.guards.object(f)
        self._value("", self.place, f)
        self._seen = {}
        # Objects are copied where an input, or a function that is copied, is below them.
        self.copied: set[int] = set(self.input_at)
        before = -1
        while before != len(self.copied):
            before = len(self.copied)
            for place, parts in self.parts.items():
                if any(kind == "global" or self.same.get(part, part) in self.copied for kind, _, part in parts):
                    self.copied.add(place)

    def changed(self) -> tuple[str, Any, Any] | None:
        """The path, the old and the new value of the first guard that fails, or of an input that is there no more."""
        if changed := self.guards.changed():
            return changed
        for path, place, flat in self.inputs:
            try:
                self.guards.read(flat)
            except KeyError:
                return path, "a tree", self.present(place, "nothing")
        return None

    def may_return(self) -> bool:
        """Whether this state can come back: what has changed was a constant, or is an object with a name in a module.

        Any other object may be held by nothing but the recording.
        """
        changed = self.changed()
        if changed is None or isinstance(changed[1], (*SIMPLE, np.ufunc)):
            return True
        space = sys.modules.get(getattr(changed[1], "__module__", None) or "")
        return getattr(space, getattr(changed[1], "__qualname__", ""), None) is changed[1]

    def trees(self) -> list[tuple[str, Any]]:
        """The paths and the present values of the inputs."""
        return [(path, self.guards.read(place)) for path, place, _ in self.inputs]

    def namespaces(self) -> list[dict[str, Any]]:
        """Those of the user's modules that the function may call, and of one that asks for the classes of arrays."""
        modules = [
            module
            for name, module in [*sys.modules.items()]
            if name.partition(".")[0] in self._packages or name == "array_api_compat.common._helpers"
        ]
        spaces = [vars(module) for module in modules if isinstance(module, types.ModuleType)]
        return list({**{id(space): space for space in spaces}, **self._spaces}.values())

    def present(self, place: int, missing: Any) -> Any:
        """The object in a place, or ``missing``."""
        try:
            return self.guards.read(place)
        except KeyError:
            return missing

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _value(self, path: str, place: int, value: Any) -> None:
        """Classifies a value of a place."""
        self._count += 1
        if _is_unchanging(value) or self._count > _MOST_PLACES:
            self._guard(path, place, value)
            return
        if not is_input(value):
            before = self._seen.get(id(value))
            if before is not None:
                self.same[place] = before[0]
                self.guards.expect_place(path, place, before[0])
                return
            self._seen[id(value)] = place, value
            self._packages |= _packages_of(value)
            codes = (each for code in _codes_of(value) for each in _nested(code))
            self.has_truths = self.has_truths or any(map(_has_truths, codes))
        parts = self._parts(place, value)
        if parts is None:
            if not self._tree(path, place, value):
                self._guard(path, place, value)
                if isinstance(value, _SIZED):
                    self.guards.expect_length(f"the length of {path}", place, len(value))
            return
        is_of_class = isinstance(value, (list, tuple, dict)) or is_holder(value)
        if is_of_class:
            self._guard(f"{path}.__class__", self.guards.attribute(place, "__class__"), type(value))
        else:
            self._guard(path, place, value)
        if isinstance(value, (list, tuple, dict)):
            self.guards.expect_length(f"the length of {path}", place, len(value))
        mine, self.paths[place] = self.parts.setdefault(place, []), path
        for kind, key, where, part in parts:
            mine.append((kind, key, where))
            name = f"{path}[{key!r}]" if kind == "item" else f"{path}.{key}".lstrip(".")
            if part is EMPTY:
                self.guards.expect_nothing(name, where)
            else:
                self._value(name, where, part)

    def _guard(self, path: str, place: int, value: Any) -> None:
        if path:
            self.guards.expect(path, place, value, isinstance(value, _BY_VALUE) or type(value) is tuple)

    def _tree(self, path: str, place: int, value: Any) -> bool:
        """An input, if the value is a tree of arrays and plain values in containers of Python's own."""
        if not is_input(value) and not _is_plain_tree(value):
            return False
        flat = self.guards.flat(place)
        self.input_at[place] = len(self.inputs)
        self.inputs.append((path, place, flat))
        return True

    def _parts(self, place: int, value: Any) -> list[tuple[str, Any, int, Any]] | None:
        """The kinds, keys, places and values of the parts of a value that is walked; None for any other."""
        guards = self.guards
        if isinstance(value, types.FunctionType):
            return list(self._of_function(place, value))
        if isinstance(value, functools.partial):
            parts = [("attribute", "func", guards.attribute(place, "func"), value.func)]
            args = [(at, arg) for at, arg in enumerate(value.args) if not _is_unchanging(arg)]
            parts += [("argument", at, guards.object(arg), arg) for at, arg in args]
            held = guards.attribute(place, "keywords")
            return parts + [("keyword", name, guards.item(held, name), arg) for name, arg in value.keywords.items()]
        if isinstance(value, types.MethodType):
            names = ("__func__", "__self__")
            return [("attribute", name, guards.attribute(place, name), getattr(value, name)) for name in names]
        if isinstance(value, RecordedFunction):
            wrapped = _wrapped(value)
            return [("attribute", "__wrapped__", guards.object(wrapped), wrapped)]
        if is_input(value) or not is_holder(value) or _is_plain_tree(value):
            return None
        parts = [("item", key, guards.item(place, key), part) for key, part in items_of(value)]
        attributes, slots = getattr(value, "__dict__", None), slots_of(value)
        if attributes is not None:
            held = guards.attribute(place, "__dict__")
            guards.expect_length(f"the number of attributes of {type(value).__qualname__}", held, len(attributes))
            parts += [("attribute", name, guards.item(held, name), part) for name, part in list(attributes.items())]
        return parts + [("attribute", name, guards.attribute(place, name), part) for name, part in slots.items()]

    def _of_function(self, place: int, function: types.FunctionType) -> Iterator[tuple[str, Any, int, Any]]:
        """The places that a function reads by name."""
        guards, code, namespace = self.guards, function.__code__, function.__globals__
        is_ours = is_of_library(namespace.get("__name__", ""))
        if not is_ours:
            self._spaces[id(namespace)] = namespace
            held = guards.object(namespace)
            for name in names_of(code):
                if name in namespace:
                    yield "global", name, guards.item(held, name), namespace[name]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            where = guards.attribute(guards.object(cell), "cell_contents")
            value = self.present(where, EMPTY)
            if not is_ours or _may_hold(value):
                yield "cell", name, where, value
        for attribute in ("__defaults__", "__kwdefaults__", "__dict__"):
            parts = getattr(function, attribute)
            if not parts or (is_ours and not any(map(_may_hold, dict(items_of(parts)).values()))):
                continue
            held = guards.attribute(place, attribute)
            for key, value in items_of(parts):
                yield ("attribute" if attribute == "__dict__" else "default"), key, guards.item(held, key), value


def _is_plain_tree(value: Any) -> bool:
    """Whether a value is a tree, in bare lists, tuples and dicts, of arrays and plain values, one at least an input."""
    try:
        leaves, _ = tree.flatten(value)
    except StructureError:
        return False
    has_input = any(is_input(leaf) or type(leaf) is int for leaf in leaves)
    return has_input and _is_bare(value)


def _is_bare(value: Any) -> bool:
    """Whether a value is an input or plain data, or a container without attributes whose items are."""
    if isinstance(value, (list, tuple, dict)):
        return not hasattr(value, "__dict__") and all(_is_bare(part) for _, part in items_of(value))
    return is_input(value) or isinstance(value, SIMPLE)


def _wrapped(value: Any) -> Any:
    """The function that a recorded one records."""
    return value.__wrapped__
