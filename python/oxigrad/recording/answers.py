"""Names that answer for the plain values of traced ones in a first call, and questions that none answers."""

import contextlib
import functools
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, TracebackType
from typing import Any

import numpy as np

from oxigrad._core import traced_in
from oxigrad._names import package_of
from oxigrad.ops.backends import standard_namespace
from oxigrad.recording import targets
from oxigrad.recording.captures import EMPTY, Captures, is_of_library
from oxigrad.recording.trace import Trace
from oxigrad.recording.traced import UNKNOWN, is_traced
from oxigrad.recording.writes import opcode


class _TypeOf(type):
    """The class of `type_of`: for all but traced values, it is `type`, also where another thread reads it."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **named: Any) -> Any:
        """A metaclass of the user's, below `type` itself."""
        return type(name, tuple(type if base is type_of else base for base in bases), namespace, **named)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if len(args) == 3:  # a class of the module that asks
            module = sys._getframe(1).f_globals.get("__name__")
            return type(args[0], args[1], {"__module__": module, **args[2]}, **named)
        if len(args) != 1 or named:
            return type(*args, **named)
        its = args[0].__class__ if is_traced(args[0]) else type(args[0])
        return type_of if its in (type, _TypeOf) else its

    def __eq__(cls, other: object) -> bool:
        return other is type_of or other is type

    def __hash__(cls) -> int:
        return hash(type)

    def __getattribute__(cls, name: str) -> Any:
        return getattr(type, name)

    def __getitem__(cls, key: Any) -> Any:
        return type[key]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, type)


# Of a traced value the class of the plain one.
type_of: type = type.__new__(_TypeOf, "type", (type,), {"__module__": "builtins"})


def _hasattr(value: Any, name: str, /) -> bool:
    return hasattr(value.plain if is_traced(value) else value, name)


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    if not is_traced(value):
        return getattr(value, name, *default)
    if not hasattr(value.plain, name):
        return getattr(value.plain, name, *default)
    try:
        return getattr(value, name)
    except AttributeError:
        value.recorder.refuse(f"the function reads {name} of an array")
        return getattr(value.plain, name)


# What names of Python are in a function that is recorded: they answer for the plain value of a traced one.
STAND_INS: dict[str, Any] = {"type": type_of, "hasattr": _hasattr, "getattr": _getattr}


@functools.cache
def functions_of_library() -> list[tuple[dict[str, Any], str, Callable[..., Any]]]:
    """Functions of NumPy's standard namespace that append an entry, with the namespaces and names of the plain ones."""
    standard = standard_namespace(np.zeros(0))
    return [
        (vars(module), name, _with_entry(function))
        for module in (standard, standard.linalg, standard.fft)
        for name, function in vars(module).items()
        if isinstance(function, (FunctionType, BuiltinFunctionType)) and targets.target_of(function) is not None
    ]


def _with_entry(function: Callable[..., Any]) -> Callable[..., Any]:
    target = targets.target_of(function)

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        traced = traced_in((args, named))
        if traced is None:
            return function(*args, **named)
        if named.get("out") is not None:
            traced.recorder.refuse(f"{function.__name__} is not a function without effects")
        return traced.recorder.apply(target or UNKNOWN, function, args, named)

    return called


# How many recordings under way have put a stand-in in the place of a name, by namespace, and what it was before.
_uses: dict[tuple[int, str], tuple[int, Any]] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def answering(captures: Captures, trace: Trace) -> Iterator[None]:
    """While it lasts, names of the user's modules, and functions of the standard's library, answer for plain values.

    Other questions that code asks, which raise exceptions, are noted in the trace.
    """
    names = [(space, name, each) for space in captures.namespaces() for name, each in STAND_INS.items()]
    with _lock:
        put = [each for each in names if each[0].get(each[1], each[2]) is each[2]] + functions_of_library()
        for space, name, each in put:
            count, before = _uses.get((id(space), name), (0, space.get(name, EMPTY)))
            _uses[id(space), name] = count + 1, before
            space[name] = each
    outer = _traces.get(threading.get_ident())
    try:
        with _lock:
            _watch(trace)
        yield
    finally:
        with _lock:
            _unwatch(outer)
            for space, name, each in put:
                count, before = _uses.pop((id(space), name))
                if count > 1:
                    _uses[id(space), name] = count - 1, before
                elif space.get(name) is each and before is EMPTY:
                    del space[name]
                elif space.get(name) is each:
                    space[name] = before


# --- questions that traced values answer otherwise --------------------------------------------------------------------

# Exceptions that programs raise on purpose, and that no code raises where it asks for a class.
_OTHERS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, MemoryError, NameError),
    *(OSError, RuntimeError, StopAsyncIteration, StopIteration, Warning),
)
# What Python and NumPy say of traced values as of plain ones.
_ALIKE = re.compile(
    "has no len|unsized object|not iterable|0-d array|not subscriptable|invalid index|unhashable|operand type|"
    "not supported between|as an integer|truth value|could not convert string|invalid literal|unpack|length-1|"
    "keyword argument|positional argument|0-dimensional"
)
# The trace of the innermost recording under way in each thread, and the number of the tool that watches for exceptions.
_traces: dict[int, Trace] = {}
_tool: int | None = None


def _has_asked(code: CodeType, offset: int, error: BaseException, frames: TracebackType | None) -> bool:
    """Whether an exception in the user's code may tell that C code or a library has asked for a class."""
    if not isinstance(error, Exception) or isinstance(error, _OTHERS):
        return False
    packages = [package_of(frame) for frame, _ in traceback.walk_tb(frames)]
    # Code that this package calls gets plain values; an exception of another function of the user's was noted there.
    if "oxigrad" in packages or [*map(is_of_library, packages)] != [False, *[True] * (len(packages) - 1)]:
        return False
    return len(packages) > 1 or (opcode(code, offset) != "RAISE_VARARGS" and not _ALIKE.search(str(error)))


def _note(code: CodeType, offset: int, error: BaseException, frames: TracebackType | None = None) -> None:
    trace = _traces.get(threading.get_ident())
    if trace is not None and _has_asked(code, offset, error, frames or error.__traceback__):
        trace.refuse_result(f"{type(error).__name__}: {error}")


def _enter(frame: FrameType, event: str, detail: Any) -> Any:
    """Notes the exceptions of the user's frames, where Python is older than `sys.monitoring`."""
    if event == "call" and is_of_library(package_of(frame)):
        return None
    frame.f_trace_lines = False
    if event == "exception":
        _note(frame.f_code, frame.f_lasti, detail[1], detail[2])
    return _enter


def _watch(trace: Trace) -> None:
    """Watches for exceptions from now on."""
    global _tool  # noqa: PLW0603 - Python has one list of tools
    _traces[threading.get_ident()] = trace
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        if sys.gettrace() is None:  # a debugger's stays
            sys.settrace(_enter)
    elif _tool is None:
        _tool = next((each for each in (4, 3) if monitoring.get_tool(each) is None), None)
        if _tool is not None:
            monitoring.use_tool_id(_tool, "oxigrad")
            monitoring.register_callback(_tool, monitoring.events.RAISE, _note)
            monitoring.set_events(_tool, monitoring.events.RAISE)


def _unwatch(outer: Trace | None) -> None:
    """Watches for an outer trace of this thread, if there is one."""
    global _tool  # noqa: PLW0603 - see above
    if outer is not None:
        _traces[threading.get_ident()] = outer
        return
    _traces.pop(threading.get_ident(), None)
    if sys.gettrace() is _enter:
        sys.settrace(None)
    if not _traces and _tool is not None:
        monitoring: Any = getattr(sys, "monitoring", None)
        monitoring.set_events(_tool, 0)
        monitoring.free_tool_id(_tool)
        _tool = None
