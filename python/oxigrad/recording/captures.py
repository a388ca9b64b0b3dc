"""Values that a function reads besides its arguments: globals, closures, defaults, and those of the functions that it calls.

Arrays and floats among them, alone or in trees, become inputs of the recording: the function is copied, and its copy reads traced values in
their place. All else is guarded, by identity or by its contents, and what cannot be watched is refused.
"""

import builtins
import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import Function, StructureError
from oxigrad.recording.trace import is_same
from oxigrad.recording.traced import UnrecordableError

# Libraries whose functions have no effect and read no state that changes, as far as the names of `_IMPURE` go.
_PURE = set(
    """oxigrad numpy scipy array_api_compat math cmath operator functools itertools collections dataclasses typing types abc
    enum numbers fractions decimal statistics string re copy contextlib builtins __future__ typing_extensions""".split()
)
_IMPURE = set("print input open exec eval compile globals locals vars __import__ breakpoint setattr delattr id".split())
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

# Methods that no arithmetic calls.
_NOT_CALLED = set(
    """__repr__ __str__ __format__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __del__ __hash__ __init_subclass__
    __set_name__ __class_getitem__ __subclasshook__ __sizeof__ __dir__ __replace__""".split()
)

Read = Callable[[], Any]


class Captures:
    """The captured values of a function.

    ``inputs`` are the trees that become inputs, each a path and a function that reads it; ``guards`` are values that must stay what they are.
    """

    def __init__(self, f: Callable[..., Any], arguments: Any = ()) -> None:
        self.inputs: list[tuple[str, Read]] = []
        self.guards: list[tuple[str, Read, Any]] = []
        self._f = f
        self._seen: set[int] = set()
        self._slots: dict[int, tuple[int, Any]] = {}
        self._functions: dict[tuple[int, bool], tuple[types.FunctionType, list[_Slot]]] = {}
        self._is_fixed = 0
        self._refused: dict[str, UnrecordableError] = {}
        self._names: set[str] = set()
        self._value("", lambda: f, f)
        self.add_classes(arguments)

    def changed(self) -> tuple[str, Any, Any] | None:
        """The path, the old and the new value of the first guard that fails."""
        for path, read, expected in self.guards:
            try:
                found = read()
            except (KeyError, ValueError, AttributeError):
                return path, expected, "nothing"
            is_kept = found is expected or (isinstance(expected, _BY_VALUE) and is_same(found, expected))
            if not is_kept and not (isinstance(expected, _Equal) and expected == found):
                return path, expected, found
        return None

    def add_classes(self, arguments: Any) -> None:
        """Watches the classes of the containers in arguments, whose methods the function may call."""
        self._classes("arguments", arguments)
        self._require_methods()

    def copied(self, values: list[Any]) -> Callable[..., Any]:
        """The function with these values in place of the inputs."""
        return _Copy(self, values).of(self._f)

    # --- the walk ------------------------------------------------------------------------------------------------------

    def _value(self, path: str, read: Read, value: Any) -> None:
        """Classifies a captured value."""
        if isinstance(value, types.FunctionType):
            self._guard(path, read, value)
            self._function(path, value)
        elif isinstance(value, functools.partial):
            self._guard(path, read, value)
            self._value(f"{path}.func", lambda: value.func, value.func)
            for at, arg in enumerate((*value.args, *value.keywords.values())):
                self._value(f"{path}.args[{at}]", lambda arg=arg: arg, arg)
        elif isinstance(value, types.MethodType):
            self._value(f"{path}.__func__", lambda: read().__func__, value.__func__)
            self._value(f"{path}.__self__", lambda: read().__self__, value.__self__)
        elif isinstance(value, types.ModuleType):
            self._guard(path, read, value)
            _require_pure(value.__name__, path)
        elif isinstance(value, type):
            self._guard(path, read, value)
            self._class(path, value)
        elif isinstance(value, SIMPLE):
            self._guard(path, read, value)
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self._guard(path, read, value)
            owner = getattr(value, "__self__", None)
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                raise UnrecordableError(f"{path} is a method of a {type(owner).__name__}, whose state is not watched")
            _require_pure(getattr(value, "__module__", None) or "builtins", path)
            if getattr(value, "__name__", "") in _IMPURE and owner is builtins:
                raise UnrecordableError(f"{path or value.__name__} has effects")
        elif (wrapped := getattr(value, "__wrapped__", None)) is not None and hasattr(value, "why"):
            self._guard(path, read, value)
            self._value(path, lambda: wrapped, wrapped)
        else:
            self._tree(path, read, value)

    def _guard(self, path: str, read: Read, value: Any) -> None:
        if path:
            self.guards.append((path, read, value))

    def _tree(self, path: str, read: Read, value: Any) -> None:
        try:
            leaves, structure = tree.flatten(value)
        except StructureError as error:
            raise UnrecordableError(f"{path} is no tree: {error}") from None
        is_leaf = len(leaves) == 1 and leaves[0] is value
        if is_leaf and not _is_input(value):
            self._instance(path, read, value)
            return
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, types.FunctionType) or (
                not is_leaf and not _is_input(leaf) and not isinstance(leaf, SIMPLE)
            ):
                where = f"{path}.{structure.path(at)}"
                self._fixed(where, lambda at=at: tree.leaves(read())[at], leaf)
        if self._is_fixed:
            for at, leaf in enumerate(leaves):
                where, kept = f"{path}.{structure.path(at)}".rstrip("."), np.array(leaf) if _is_array(leaf) else leaf
                self.guards.append((where, lambda at=at: tree.leaves(read())[at], kept))
            self.guards.append((path, lambda: tree.flatten(read())[1], _Equal(structure)))
            return
        self._classes(path, value)
        known = self._slots.get(id(value))
        if known is None:
            self._slots[id(value)] = (len(self.inputs), value)
            self.inputs.append((path, read))
        else:
            first = self.inputs[known[0]][1]
            self.guards.append((path, lambda: read() is first(), True))

    def _classes(self, path: str, value: Any) -> None:
        """The classes of the containers in a tree, whose methods the function may call."""
        if isinstance(value, (list, tuple, dict)):
            if type(value) not in (list, tuple, dict):
                self._class(path, type(value))
            for part in value.values() if isinstance(value, dict) else value:
                self._classes(path, part)
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            self._fixed(path, lambda: value, value)
        elif not _is_input(value) and not isinstance(value, (*SIMPLE, type)):
            self._class(path, type(value))
            for part in getattr(value, "__dict__", {}).values():
                self._classes(path, part)

    def _fixed(self, path: str, read: Read, value: Any) -> None:
        """A value whose arrays and numbers are guarded by their contents."""
        self._is_fixed += 1
        try:
            self._value(path, read, value)
        finally:
            self._is_fixed -= 1

    def _instance(self, path: str, read: Read, value: Any) -> None:
        """An object that is no tree: its attributes are guarded."""
        self._guard(path, read, value)
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        _require_pure(type(value).__module__, path, allowed_user=True)
        own = getattr(value, "__dict__", None)
        if own is None or hasattr(value, "__next__"):
            raise UnrecordableError(f"{path} is a {type(value).__name__}, whose state is not watched")
        for name, attribute in list(own.items()):
            self._fixed(f"{path}.{name}", lambda name=name: own[name], attribute)
        self._class(path, type(value))

    def _class(self, path: str, value: type) -> None:
        """The methods of a class of the user's."""
        if (
            _root(value.__module__) in _PURE
            or _root(value.__module__) in sys.stdlib_module_names
            or id(value) in self._seen
        ):
            return
        self._seen.add(id(value))
        for each in value.__mro__:
            if _root(each.__module__) in _PURE:
                continue
            for name, attribute in vars(each).items():
                function = getattr(attribute, "__func__", getattr(attribute, "fget", attribute))
                if isinstance(function, types.FunctionType) and name not in _NOT_CALLED:
                    self._method(f"{each.__qualname__}.{name}", each, name, function)

    def _method(self, path: str, owner: type, name: str, function: types.FunctionType) -> None:
        """A method: one with effects is refused where its name is read anywhere."""
        self._guard(path, lambda: vars(owner)[name], vars(owner)[name])
        try:
            self._fixed(path, lambda: function, function)
        except UnrecordableError as error:
            if name.startswith("__"):
                raise
            self._refused[name] = error

    def _require_methods(self) -> None:
        """Raises the error of a method that was refused, where its name is read."""
        for name, error in self._refused.items():
            if name in self._names:
                raise error

    def _function(self, path: str, function: types.FunctionType) -> None:
        key = (id(function), self._is_fixed > 0)
        if key in self._functions:
            return
        slots: list[_Slot] = []
        self._functions[key] = (function, slots)
        module = str(function.__globals__.get("__name__", ""))  # `functools.wraps` sets another one as an attribute
        is_ours = _is_pure(module)
        if not is_ours:
            _require_pure(module, path, allowed_user=True)
        self._names.update(name for code in _codes(function.__code__) for name in code.co_names)
        slots.extend(_slots(function, with_globals=not is_ours))
        for slot in slots:
            where = f"{path}.{slot.name}" if path else slot.name
            try:
                value = slot.read()
            except (KeyError, ValueError):  # not defined yet
                continue
            if is_ours and not _may_hold(value):
                continue
            if isinstance(value, types.ModuleType) and not _is_pure(value.__name__):
                self._guard(where, slot.read, value)
                self._module(where, value, slot)
            else:
                self._value(where, slot.read, value)

    def _module(self, path: str, module: types.ModuleType, slot: "_Slot") -> None:
        """The attributes of a module of the user's that a function may read: they are guarded by their contents."""
        if _root(module.__name__) in sys.stdlib_module_names:
            _require_pure(module.__name__, path)
        own = vars(module)
        for name in slot.attributes:
            if name in own:
                self._fixed(f"{path}.{name}", lambda name=name: own[name], own[name])


class _Equal:
    """A value that is compared by equality."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, _Equal) else other))

    __hash__: Any = None

    def __repr__(self) -> str:
        return repr(self.value)


_BY_VALUE = (bool, int, float, complex, str, bytes, range, np.ndarray, np.generic)


class _Slot:
    """A place that a function reads: a global or a cell."""

    def __init__(self, name: str, read: Read, attributes: tuple[str, ...] = (), *, is_global: bool = False) -> None:
        self.name, self.read, self.attributes, self.is_global = name, read, attributes, is_global


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _slots(function: types.FunctionType, *, with_globals: bool) -> Iterator[_Slot]:
    """The places that a function and the functions inside of it read; raises `UnrecordableError` for one that it writes."""
    code, names, attributes = function.__code__, dict[str, None](), dict[str, set[str]]()
    for each in _codes(code):
        before = ""
        for instruction in dis.get_instructions(each):
            kind, name = instruction.opname, str(instruction.argval)
            if kind in ("STORE_GLOBAL", "DELETE_GLOBAL") or (kind == "STORE_DEREF" and name in code.co_freevars):
                raise UnrecordableError(f"the function assigns to {name}, a variable outside of it")
            if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                names[name] = None
            elif kind == "IMPORT_NAME" and with_globals:
                _require_pure(name, name)
            elif kind in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.setdefault(before, set()).add(name)
            before = name if kind.startswith("LOAD_") else ""
    if not with_globals:
        names = dict[str, None]()
    for name in names:
        if name in function.__globals__:
            read = tuple(sorted(attributes.get(name, ())))
            if _root(getattr(function.__globals__[name], "__name__", "")) == "numpy" and "random" in read:
                raise UnrecordableError("the function draws random numbers")
            yield _Slot(name, lambda name=name: function.__globals__[name], read, is_global=True)
        elif name in _IMPURE:
            raise UnrecordableError(f"the function calls {name}, which has effects or reads what is not watched")
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield _Slot(name, lambda cell=cell: cell.cell_contents, tuple(sorted(attributes.get(name, ()))))
    for at, _ in enumerate(function.__defaults__ or ()):
        yield _Slot(f"defaults[{at}]", lambda at=at: (function.__defaults__ or ())[at])
    for name in function.__kwdefaults__ or ():
        yield _Slot(f"defaults[{name!r}]", lambda name=name: (function.__kwdefaults__ or {})[name])


class _Copy:
    """Copies of functions that read other values."""

    def __init__(self, captures: Captures, values: list[Any]) -> None:
        self._captures, self._values = captures, values
        self._globals: dict[int, dict[str, Any]] = {}
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """The value itself, or what stands for it."""
        captures = self._captures
        if id(value) in captures._slots:
            return self._values[captures._slots[id(value)][0]]
        if isinstance(value, types.FunctionType):
            return self._function(value) if (id(value), False) in captures._functions else value
        if isinstance(value, functools.partial):
            keywords = {name: self.of(each) for name, each in value.keywords.items()}
            return functools.partial(self.of(value.func), *map(self.of, value.args), **keywords)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.of(value.__func__), self.of(value.__self__))
        if (wrapped := getattr(value, "__wrapped__", None)) is not None and hasattr(value, "why"):
            return self.of(wrapped)
        return value

    def _function(self, function: types.FunctionType) -> Any:
        if id(function) in self._made:
            return self._made[id(function)]
        own = function.__globals__
        copied = self._globals.get(id(own))
        if copied is None:
            copied = self._globals[id(own)] = dict(own)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        made = types.FunctionType(function.__code__, copied, function.__name__, function.__defaults__, cells or None)
        self._made[id(function)] = made
        made.__kwdefaults__ = {name: self.of(each) for name, each in (function.__kwdefaults__ or {}).items()} or None
        made.__defaults__ = tuple(map(self.of, function.__defaults__ or ())) or None
        made.__dict__.update(function.__dict__)
        made.__module__, made.__qualname__ = function.__module__, function.__qualname__
        for new, cell in zip(cells, function.__closure__ or (), strict=True):
            try:
                new.cell_contents = self.of(cell.cell_contents)
            except ValueError:  # an empty cell
                continue
        _, slots = self._captures._functions[id(function), False]
        for slot in slots:
            if slot.is_global and slot.name in own:
                copied[slot.name] = self.of(own[slot.name])
        return made


def _may_hold(value: Any) -> bool:
    """Whether a value that a function of this package reads may hold something of the user's."""
    if isinstance(value, (list, tuple)):
        return any(map(_may_hold, value))
    if isinstance(value, dict):
        return any(isinstance(key, str) and _may_hold(part) for key, part in value.items())
    is_function = isinstance(value, (types.FunctionType, functools.partial, types.MethodType))
    return (
        is_function
        or _is_input(value)
        or (callable(value) and hasattr(value, "__dict__") and not isinstance(value, type))
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def _is_input(value: Any) -> bool:
    return _is_array(value) or type(value) in (float, complex)


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _is_pure(module: str) -> bool:
    return _root(module) in _PURE


def _require_pure(module: str, path: str, *, allowed_user: bool = False) -> None:
    """Raises `UnrecordableError` for a module with effects, or whose functions read the clock or random numbers."""
    if _is_pure(module) and not module.startswith("numpy.random"):
        return
    if allowed_user and _root(module) not in sys.stdlib_module_names:
        return
    if not allowed_user and _root(module) not in sys.stdlib_module_names and _root(module) in sys.modules:
        return
    raise UnrecordableError(
        f"{path or 'the function'} is of the module {module}, whose functions have effects or read what is not watched"
    )
