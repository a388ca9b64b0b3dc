"""Values that a function reads besides its arguments: globals, closures, defaults, and those of the functions that it calls.

Arrays and floats among them, alone or in trees, become inputs of the recording: the function is copied, and its copy reads traced values in
their place. All else is guarded, by identity or by its contents, and what cannot be watched is refused. Guards are stated here, and checked in the
core: each place that is read has a number, which `Guards` gives.
"""

import builtins
import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import Function, Guards, RecordedFunction, StructureError
from oxigrad.recording.reads import (
    EMPTY,
    IMPURE,
    Slot,
    codes,
    default_name,
    is_pure,
    is_unchanging,
    require_pure,
    root,
    slots_of,
    slots_read,
)
from oxigrad.recording.trace import is_same
from oxigrad.recording.traced import UnrecordableError

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


class Captures:
    """The captured values of a function.

    ``inputs`` are the trees that become inputs, each a path, its place and that of its leaves; ``guards`` say what else must stay as it is.
    """

    def __init__(self, f: Callable[..., Any], arguments: Any = ()) -> None:
        self.inputs: list[tuple[str, int, int]] = []
        self.guards: Guards = Guards(is_same)
        # What the copy of the function has as it is, and may write to.
        self.held: list[Any] = []
        self._f = f
        self._seen: set[int] = set()
        # The input that a value is, by its identity while the function is walked, and by its place, where another value may be later.
        self._slots: dict[int, tuple[int, Any]] = {}
        self._input_at: dict[int, int] = {}
        # The places of the parts of partial functions, methods and recorded functions, by the place of the whole.
        self._parts: dict[tuple[int, Any], int] = {}
        self._functions: dict[tuple[int, bool], tuple[types.FunctionType, list[Slot]]] = {}
        self._is_fixed = 0
        self._refused: dict[str, UnrecordableError] = {}
        self._watched: set[tuple[int, str]] = set()
        # The names that functions read, and the attributes of classes and functions by name: path, place of the namespace, and value.
        self._names: set[str] = set()
        self._attributes: dict[str, list[tuple[str, int, Any]]] = {}
        # Modules that objects have as attributes.
        self._modules: list[tuple[str, types.ModuleType]] = []
        self._place: int = self.guards.object(f)
        self._value("", self._place, f)
        self.add_classes(arguments)

    def changed(self) -> tuple[str, Any, Any] | None:
        """The path, the old and the new value of the first guard that fails, or of an input that is there no more."""
        if changed := self.guards.changed():
            return changed
        for path, place, flat in self.inputs:
            try:
                self.guards.read(flat)
            except KeyError:
                return path, "a tree", _present(self.guards, place)
        return None

    def trees(self) -> list[tuple[str, Any]]:
        """The paths and the present values of the inputs."""
        return [(path, self.guards.read(place)) for path, place, _ in self.inputs]

    def add_classes(self, arguments: Any) -> None:
        """Watches the classes of the containers in arguments, whose methods the function may call."""
        self._classes("arguments", arguments)
        self._finish()

    def copied(self, values: list[Any]) -> Callable[..., Any]:
        """The function with these values in place of the inputs."""
        return _Copy(self, values).of(self._f, self._place)

    # --- the walk ------------------------------------------------------------------------------------------------------

    def _value(self, path: str, place: int, value: Any) -> None:
        """Classifies a captured value."""
        if isinstance(value, types.FunctionType):
            self._guard(path, place, value)
            self._function(path, value)
        elif isinstance(value, functools.partial):
            self._guard(path, place, value)
            self._part(path, place, "func", self.guards.attribute(place, "func"), value.func)
            for at, arg in enumerate(value.args):
                if not is_unchanging(arg):
                    self._part(path, place, at, self.guards.object(arg), arg)
            held = self.guards.attribute(place, "keywords")
            self.guards.expect_length(f"the number of keywords of {path or 'the function'}", held, len(value.keywords))
            for name, arg in value.keywords.items():
                if is_unchanging(arg):
                    self._guard(f"{path}.{name}".lstrip("."), self.guards.item(held, name), arg)
                else:
                    self._part(path, place, name, self.guards.item(held, name), arg)
        elif isinstance(value, types.MethodType):
            for name in ("__func__", "__self__"):
                self._part(path, place, name, self.guards.attribute(place, name), getattr(value, name))
        elif isinstance(value, types.ModuleType):
            self._guard(path, place, value)
            self._modules.append((path, value))
        elif isinstance(value, type):
            self._guard(path, place, value)
            self._class(path, value)
        elif isinstance(value, SIMPLE):
            self._guard(path, place, value)
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self._guard(path, place, value)
            owner = getattr(value, "__self__", None)
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                raise UnrecordableError(f"{path} is a method of a {type(owner).__name__}, whose state is not watched")
            require_pure(getattr(value, "__module__", None) or "builtins", path)
            if getattr(value, "__name__", "") in IMPURE and owner is builtins:
                raise UnrecordableError(f"{path or value.__name__} has effects")
        elif isinstance(value, RecordedFunction):
            self._guard(path, place, value)
            wrapped = _wrapped(value)
            self._part(path, place, "__wrapped__", self.guards.object(wrapped), wrapped)
        else:
            self._tree(path, place, value)

    def _part(self, path: str, whole: int, name: Any, place: int, value: Any) -> None:
        """A part of a captured value, which `_Copy` finds by the place of the whole."""
        self._parts[whole, name] = place
        self._value(f"{path}.{name}".lstrip("."), place, value)

    def _guard(self, path: str, place: int, value: Any) -> None:
        if path:
            self.guards.expect(path, place, value, isinstance(value, _BY_VALUE))

    def _tree(self, path: str, place: int, value: Any) -> None:
        try:
            leaves, structure = tree.flatten(value)
        except StructureError as error:
            raise UnrecordableError(f"{path} is no tree: {error}") from None
        is_leaf = len(leaves) == 1 and leaves[0] is value
        if is_leaf and not _is_input(value):
            self._instance(path, place, value)
            return
        flat = self.guards.flat(place)
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, types.FunctionType) or (
                not is_leaf and not _is_input(leaf) and not isinstance(leaf, SIMPLE)
            ):
                self._fixed(f"{path}.{structure.path(at)}", self.guards.leaf(flat, at), leaf)
        if self._is_fixed:
            self.held.append(value)
            for at, leaf in enumerate(leaves):
                snapshot = np.array(leaf) if isinstance(leaf, np.ndarray) else leaf
                self._guard(f"{path}.{structure.path(at)}".rstrip("."), self.guards.leaf(flat, at), snapshot)
            self.guards.expect_structure(path, flat, structure)
            return
        self._classes(path, value)
        entry = self._slots.get(id(value))
        if entry is None:
            self._input_at[place] = len(self.inputs)
            self._slots[id(value)] = (len(self.inputs), value)
            self.inputs.append((path, place, flat))
        else:
            self._input_at[place] = entry[0]
            self.guards.expect_place(path, place, self.inputs[entry[0]][1])

    def _classes(self, path: str, value: Any) -> None:
        """The classes of the containers in a tree, whose methods the function may call."""
        if isinstance(value, (list, tuple, dict)):
            if type(value) not in (list, tuple, dict):
                self._class(path, type(value))
            for part in value.values() if isinstance(value, dict) else value:
                self._classes(path, part)
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            self._fixed(path, self.guards.object(value), value)
        elif isinstance(value, types.ModuleType):
            self._modules.append((path, value))
        elif not _is_input(value) and not isinstance(value, (*SIMPLE, type)):
            self._class(path, type(value))
            for part in (*getattr(value, "__dict__", {}).values(), *slots_of(value).values()):
                self._classes(path, part)

    def _fixed(self, path: str, place: int, value: Any) -> None:
        """A value whose arrays and numbers are guarded by their contents."""
        self._is_fixed += 1
        try:
            self._value(path, place, value)
        finally:
            self._is_fixed -= 1

    def _instance(self, path: str, place: int, value: Any) -> None:
        """An object that is no tree: its attributes are guarded."""
        self._guard(path, place, value)
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self.held.append(value)
        require_pure(type(value).__module__, path, allowed_user=True)
        attributes, slots, object_ = getattr(value, "__dict__", None), slots_of(value), self.guards.object(value)
        if (attributes is None and not slots) or hasattr(value, "__next__"):
            raise UnrecordableError(f"{path} is a {type(value).__name__}, whose state is not watched")
        if attributes is not None:
            held = self.guards.attribute(object_, "__dict__")
            self.guards.expect_length(f"the number of attributes of {path}", held, len(attributes))
            for name, attribute in list(attributes.items()):
                self._fixed(f"{path}.{name}", self.guards.item(held, name), attribute)
        for name, attribute in slots.items():
            slot = self.guards.attribute(object_, name)
            if attribute is EMPTY:
                self.guards.expect_nothing(f"{path}.{name}", slot)
            else:
                self._fixed(f"{path}.{name}", slot, attribute)
        self._guard(f"{path}.__class__", self.guards.attribute(object_, "__class__"), type(value))
        self._class(path, type(value))

    def _class(self, path: str, value: type) -> None:
        """The methods and attributes of a class of the user's."""
        module = root(value.__module__)
        if is_pure(module) or module in sys.stdlib_module_names or id(value) in self._seen:
            return
        self._seen.add(id(value))
        bases = self.guards.attribute(self.guards.object(value), "__mro__")
        self._guard(f"the bases of {value.__qualname__}", bases, value.__mro__)
        for each in value.__mro__:
            if is_pure(each.__module__):
                continue
            held = self.guards.object(vars(each))
            self.guards.expect_length(f"the number of attributes of {each.__qualname__}", held, len(vars(each)))
            for name, attribute in list(vars(each).items()):
                function = getattr(attribute, "__func__", getattr(attribute, "fget", attribute))
                where = f"{each.__qualname__}.{name}"
                if not isinstance(function, types.FunctionType):
                    self._attributes.setdefault(name, []).append((where, held, attribute))
                elif name not in _NOT_CALLED:
                    self._guard(where, self.guards.item(held, name), attribute)
                    self._method(where, name, function)

    def _method(self, path: str, name: str, function: types.FunctionType) -> None:
        """A method: one with effects is refused where its name is read anywhere."""
        try:
            self._fixed(path, self.guards.object(function), function)
        except UnrecordableError as error:
            if name.startswith("__"):
                raise
            self._refused[name] = error

    def _finish(self) -> None:
        """Guards the attributes of classes and modules whose names are read anywhere; raises the error of a method that was refused, where its is."""
        before = -1
        while before != len(self._names) or self._names & self._attributes.keys():
            before = len(self._names)
            for name in sorted(self._names & self._attributes.keys()):
                for path, held, value in self._attributes.pop(name):
                    place = self.guards.item(held, name)
                    if isinstance(value, (RecordedFunction, types.FunctionType)) or not hasattr(type(value), "__get__"):
                        self._fixed(path, place, value)
                    else:
                        self._guard(path, place, value)
            for path, module in self._modules:
                if not is_pure(module.__name__) or module.__name__.startswith("numpy.random"):
                    self._module(path, module, sorted(self._names))
        for name, error in self._refused.items():
            if name in self._names:
                raise error

    def _function(self, path: str, function: types.FunctionType) -> None:
        key = (id(function), self._is_fixed > 0)
        if key in self._functions:
            return
        slots: list[Slot] = []
        self._functions[key] = (function, slots)
        module = str(function.__globals__.get("__name__", ""))  # `functools.wraps` sets another one as an attribute
        is_ours = is_pure(module)
        if not is_ours:
            require_pure(module, path, allowed_user=True)
        self._names.update(name for code in codes(function.__code__) for name in code.co_names)
        if not is_ours:
            code = self.guards.attribute(self.guards.object(function), "__code__")
            self._guard(f"{path}.__code__".lstrip("."), code, function.__code__)
            held = self.guards.object(vars(function))
            for name, attribute in vars(function).items():
                self._attributes.setdefault(name, []).append((f"{path}.{name}".lstrip("."), held, attribute))
        slots.extend(slots_read(function, self.guards, with_globals=not is_ours))
        for slot in slots:
            where = f"{path}.{slot.name}" if path else slot.name
            try:
                value = self.guards.read(slot.place)
            except KeyError:  # not defined yet, or a function of Python's
                self.guards.expect_nothing(where, slot.place)
                continue
            if is_ours and not _may_hold(value):
                continue
            if isinstance(value, types.ModuleType) and not is_pure(value.__name__):
                self._guard(where, slot.place, value)
                if root(value.__name__) in sys.stdlib_module_names:
                    require_pure(value.__name__, where)
                self._module(where, value, slot.attributes)
            else:
                self._value(where, slot.place, value)

    def _module(self, path: str, module: types.ModuleType, names: Iterable[str]) -> None:
        """The attributes of a module of the user's that a function may read: they are guarded by their contents."""
        attributes = vars(module)
        held = self.guards.object(attributes)
        for name in names:
            if name in attributes and (id(module), name) not in self._watched:
                self._watched.add((id(module), name))
                self._fixed(f"{path}.{name}", self.guards.item(held, name), attributes[name])


_BY_VALUE = (bool, int, float, complex, str, bytes, range, np.ndarray, np.generic)


class _Copy:
    """Copies of functions that read other values."""

    def __init__(self, captures: Captures, values: list[Any]) -> None:
        self._captures, self._values = captures, values
        self._globals: dict[int, dict[str, Any]] = {}
        self._copies: dict[int, Any] = {}

    def of(self, value: Any, place: int | None) -> Any:
        """The value of a place itself, or what stands for it."""
        captures = self._captures
        if place is None:
            return value
        if place in captures._input_at:
            return self._values[captures._input_at[place]]
        if isinstance(value, types.FunctionType):
            return self._function(value) if (id(value), False) in captures._functions else value
        part = functools.partial(self._part, place)
        if isinstance(value, functools.partial):
            keywords = {name: part(name, each) for name, each in value.keywords.items()}
            args = (part(at, each) for at, each in enumerate(value.args))
            return functools.partial(part("func", value.func), *args, **keywords)
        if isinstance(value, types.MethodType):
            return types.MethodType(part("__func__", value.__func__), part("__self__", value.__self__))
        if isinstance(value, RecordedFunction):
            return part("__wrapped__", _wrapped(value))
        return value

    def _part(self, whole: int, name: Any, value: Any) -> Any:
        return self.of(value, self._captures._parts.get((whole, name)))

    def _function(self, function: types.FunctionType) -> Any:
        if id(function) in self._copies:
            return self._copies[id(function)]
        namespace = function.__globals__
        copied = self._globals.get(id(namespace))
        if copied is None:
            copied = self._globals[id(namespace)] = dict(namespace)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        clone = types.FunctionType(function.__code__, copied, function.__name__, function.__defaults__, cells or None)
        self._copies[id(function)] = clone
        _, slots = self._captures._functions[id(function), False]
        places = {(slot.is_global, slot.name): slot.place for slot in slots}

        def default(key: Any, each: Any) -> Any:
            return self.of(each, places.get((False, default_name(key))))

        named = {name: default(name, each) for name, each in (function.__kwdefaults__ or {}).items()}
        clone.__kwdefaults__ = named or None
        clone.__defaults__ = tuple(default(at, each) for at, each in enumerate(function.__defaults__ or ())) or None
        clone.__dict__.update(function.__dict__)
        clone.__module__, clone.__qualname__ = function.__module__, function.__qualname__
        for name, new, cell in zip(function.__code__.co_freevars, cells, function.__closure__ or (), strict=True):
            try:
                new.cell_contents = self.of(cell.cell_contents, places.get((False, name)))
            except ValueError:  # an empty cell
                continue
        for slot in slots:
            if slot.is_global and slot.name in namespace:
                copied[slot.name] = self.of(namespace[slot.name], slot.place)
        return clone


def _present(guards: Guards, place: int) -> Any:
    """The object in a place, to be shown."""
    try:
        return guards.read(place)
    except KeyError:
        return "nothing"


def _wrapped(value: Any) -> Any:
    """The function that a recorded one records."""
    return value.__wrapped__


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
