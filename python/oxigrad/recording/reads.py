"""The reads of a function: the names in its code, what the slots of objects hold, and the modules whose functions it may call.

The standard's `dis` describes each instruction in full, which takes longer than the function runs; here only names are looked up.
"""

import dis
import operator
import sys
import types
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from oxigrad._core import Guards
from oxigrad.recording.traced import UnrecordableError


class Reads(NamedTuple):
    """Names that a code object, and those inside of it, read and write."""

    #: The globals that are read, in order.
    names: tuple[str, ...]
    #: The attributes that are read of a variable, by its name.
    attributes: dict[str, tuple[str, ...]]
    #: The first variable outside of the function that is assigned to.
    assigned: str | None
    #: The modules that are imported.
    imports: tuple[str, ...]


# The bits that precede the index of a name in the argument of an instruction.
_SHIFTS = {
    **dict.fromkeys("LOAD_NAME LOAD_METHOD STORE_GLOBAL DELETE_GLOBAL IMPORT_NAME".split(), 0),
    "LOAD_GLOBAL": 1,
    "LOAD_ATTR": 1 if sys.version_info >= (3, 12) else 0,
}
_NAMES = {dis.opmap[name]: (name, shift) for name, shift in _SHIFTS.items() if name in dis.opmap}
_VARIABLES = {dis.opmap[name]: name for name in ("LOAD_DEREF", "LOAD_CLASSDEREF", "STORE_DEREF") if name in dis.opmap}


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def _instructions(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """The name of each instruction that names something, and what it names; ("", "") for a run of others."""
    names, text, argument, was_other = code.co_names, code.co_code, 0, False
    for at in range(0, len(text), 2):
        opcode = text[at]
        argument |= text[at + 1]
        if opcode == dis.EXTENDED_ARG:
            argument <<= 8
            continue
        if opcode in _NAMES:
            name, shift = _NAMES[opcode]
            yield name, names[argument >> shift]
            was_other = False
        elif opcode in _VARIABLES:
            yield _VARIABLES[opcode], str(operator.methodcaller("_varname_from_oparg", argument)(code))
            was_other = False
        elif opcode and not was_other:  # 0 is a place for the interpreter's own use
            yield "", ""
            was_other = True
        argument = 0


def reads_of(code: types.CodeType) -> Reads:
    """Names that a function with this code reads and writes."""
    cached = _known.get(code)
    if cached is not None:
        return cached
    names, attributes, imports, assigned = dict[str, None](), dict[str, dict[str, None]](), dict[str, None](), None
    for each in codes(code):
        before = ""
        for kind, name in _instructions(each):
            if kind in ("STORE_GLOBAL", "DELETE_GLOBAL") or (kind == "STORE_DEREF" and name in code.co_freevars):
                assigned = assigned or name
            elif kind == "IMPORT_NAME":
                imports[name] = None
            elif kind in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.setdefault(before, {})[name] = None
            elif kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                names[name] = None
            before = name if kind.startswith("LOAD_") else ""
    read = {name: tuple(sorted(of)) for name, of in attributes.items() if name}
    reads = _known[code] = Reads(tuple(names), read, assigned, tuple(imports))
    return reads


_known: weakref.WeakKeyDictionary[types.CodeType, Reads] = weakref.WeakKeyDictionary()


# The content of a slot without a value.
EMPTY = object()


def slots_of(value: Any) -> dict[str, Any]:
    """The contents of the `__slots__` of an object's classes, by name; `EMPTY` for nothing."""
    slots: dict[str, Any] = {}
    for each in type(value).__mro__:
        for name, member in vars(each).items():
            if isinstance(member, types.MemberDescriptorType) and getattr(type(value), name, None) is member:
                slots[name] = getattr(value, name, EMPTY)
    return slots


def is_unchanging(value: Any) -> bool:
    """Whether a value is plain data that nothing can change, such as the numbers of arguments."""
    return all(map(is_unchanging, value)) if type(value) is tuple else type(value) in (int, bool, str, bytes)


# Functions of Python's with effects.
IMPURE = set("print input open exec eval compile globals locals vars __import__ breakpoint setattr delattr id".split())

# Libraries whose functions have no effect and read no state that changes, as far as the names of `IMPURE` go.
_PURE = set(
    """oxigrad numpy scipy array_api_compat math cmath operator functools itertools collections dataclasses typing types abc
    enum numbers fractions decimal statistics string re copy contextlib builtins __future__ typing_extensions""".split()
)


def root(module: str | None) -> str:
    """The name of the package of a module."""
    return (module or "").partition(".")[0]


def is_pure(module: str) -> bool:
    """Whether the functions of a module have no effect and read no state that changes."""
    return root(module) in _PURE


def require_pure(module: str, path: str, *, allowed_user: bool = False) -> None:
    """Raises `UnrecordableError` for a module with effects, or whose functions read the clock or random numbers."""
    if is_pure(module) and not module.startswith("numpy.random"):
        return
    if allowed_user and root(module) not in sys.stdlib_module_names:
        return
    if not allowed_user and root(module) not in sys.stdlib_module_names and root(module) in sys.modules:
        return
    raise UnrecordableError(
        f"{path or 'the function'} is of the module {module}, whose functions have effects or read what is not watched"
    )


class Slot(NamedTuple):
    """A place that a function reads: a global or a cell."""

    name: str
    place: int
    attributes: tuple[str, ...] = ()
    is_global: bool = False


def slots_read(function: types.FunctionType, guards: Guards, *, with_globals: bool) -> Iterator[Slot]:
    """The places that a function and the functions inside of it read; raises `UnrecordableError` for one that it writes."""
    code, (names, attributes, assigned, imports) = function.__code__, reads_of(function.__code__)
    if assigned is not None:
        raise UnrecordableError(f"the function assigns to {assigned}, a variable outside of it")
    for name in imports if with_globals else ():
        require_pure(name, name)
    namespace, held = function.__globals__, guards.object(function.__globals__)
    for name in names if with_globals else ():
        read = attributes.get(name, ())
        if name not in namespace and name in IMPURE:
            raise UnrecordableError(f"the function calls {name}, which has effects or reads what is not watched")
        if root(getattr(namespace.get(name), "__name__", "")) == "numpy" and "random" in read:
            raise UnrecordableError("the function draws random numbers")
        yield Slot(name, guards.item(held, name), read, is_global=True)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        place = guards.attribute(guards.object(cell), "cell_contents")
        yield Slot(name, place, attributes.get(name, ()))
    holder = guards.object(function)
    for kind in ("__defaults__", "__kwdefaults__"):
        defaults = getattr(function, kind)
        keys = defaults if isinstance(defaults, Mapping) else range(len(defaults or ()))
        place = guards.attribute(holder, kind)
        for key in keys:
            yield Slot(default_name(key), guards.item(place, key))


def default_name(key: Any) -> str:
    """The name of a default, by its index or by the argument's name."""
    return f"defaults[{key!r}]"
