"""Ways out of a recording: the memory of traced values, pickles, threads, and names that another thread reads meanwhile."""

from __future__ import annotations

import collections
import concurrent.futures
import copy
import ctypes
import datetime
import decimal
import fractions
import functools
import gc
import hashlib
import io
import json
import marshal
import pickle
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from test_record import agrees, equal

import oxigrad as ox
from oxigrad import _core, xp

ARRAYS = [np.random.default_rng(seed).normal(size=(3, 4)) for seed in range(3)]


def _written(x: Any) -> bytes:
    file = io.BytesIO()
    file.write(x)
    return file.getvalue()


def _pointed(x: Any) -> Any:
    return np.ctypeslib.as_array(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), x.shape) * 1.0


class Interface:
    """An object with the memory of an array."""

    def __init__(self, x: Any) -> None:
        self.__array_interface__ = x.__array_interface__


def _saved(x: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, x)
    return file.getvalue()


def _with_shape(x: Any) -> Any:
    y = x * 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.shape = (-1,)
    return y


def _with_real(x: Any) -> Any:
    y = x * 1.0
    y.real = x * 3.0
    return y


def _first_of_two(x: Any) -> Any:
    """A buffer that is asked for in vain, before NumPy asks for it."""
    try:
        shown = bytes(memoryview(x))
    except TypeError:
        shown = b""
    return shown, np.asarray(x) * 1.0


# What is read by C code, or by protocols that share memory.
MEMORY: dict[str, Callable[[Any], Any]] = {
    "memoryview": lambda x: bytes(memoryview(x)),
    "memoryview of a result": lambda x: memoryview(x * 1.0).nbytes,
    "bytes": lambda x: bytes(x),
    "bytearray": lambda x: bytes(bytearray(x)),
    "a digest": lambda x: hashlib.sha256(x).hexdigest(),
    "frombuffer": lambda x: np.frombuffer(x, dtype=x.dtype) * 1.0,
    "an array over a buffer": lambda x: np.ndarray(x.shape, x.dtype, buffer=x) * 1.0,
    "a file of bytes": _written,
    "readinto": lambda x: io.BytesIO(bytes(96)).readinto(x * 1.0),
    "a buffer and a copy": _first_of_two,
    "an interface": lambda x: x.__array_interface__["shape"],
    "an array over an interface": lambda x: np.asarray(Interface(x)) * 1.0,
    "a structure": lambda x: x.__array_struct__ is None,
    "ctypeslib": lambda x: np.ctypeslib.as_ctypes(x)[0][0],
    "a pointer": _pointed,
    "data": lambda x: bytes(x.data),
    "tobytes": lambda x: x.tobytes(),
    "DLPack": lambda x: np.from_dlpack(x) * 1.0,
    "a shape that is set": _with_shape,
    "a real part that is set": _with_real,
}
# What is copied and checked, or recorded.
COPIES: dict[str, Callable[[Any], Any]] = {
    "a pickle": lambda x: pickle.loads(pickle.dumps(x)) * 2.0,  # noqa: S301 - of its own
    "a pickle of a number": lambda x: pickle.loads(pickle.dumps(x[0, 0])) * 2.0,  # noqa: S301 - of its own
    "reduce": lambda x: x.__reduce__()[2][1],
    "copy": lambda x: copy.copy(x) * 2.0,
    "deepcopy": lambda x: copy.deepcopy([x, {"a": x[0]}]),
    "the format of files": _saved,
    "asarray": lambda x: np.asarray(x) * 2.0,
    "an array of numbers": lambda x: np.array([x[0, 0], x[0, 1]]) * 2.0,
    "arrays in a list": lambda x: np.array([x[0], x[1]]) * 2.0,
    "a contiguous array": lambda x: np.ascontiguousarray(x) * 2.0,
}


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("read", [*MEMORY.values(), *COPIES.values()], ids=[*MEMORY, *COPIES])
def test_what_leaves_a_recording_is_refused_or_checked(read: Callable[[Any], Any], catches: bool) -> None:
    """A `try` of the function's hides no refusal: the first call gives its result, and so does each later one."""

    def f(x: Any) -> Any:
        if not catches:
            return x * 2.0, read(x)
        try:
            return x * 2.0, read(x)
        except Exception:  # noqa: BLE001 - as programs do
            return x * 3.0, ()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g = ox.record(f, audit="never", limit=4)
        for at in (0, 1, 0, 2, 1):
            assert agrees(g, f, ARRAYS[at].copy()), g
    assert bool(g.recordings) == (read in COPIES.values()), g


# What C code refuses that asks for the class itself.
CLASSES: dict[str, Callable[[Any], Any]] = {
    "a method of arrays": lambda x: np.ndarray.sum(x),
    "an operator of arrays": lambda x: np.ndarray.__add__(x, 1.0),
    "a method of floats": lambda x: float.hex(x[0, 0]),
    "json": lambda x: json.dumps(x[0, 0]),
    "a decimal number": lambda x: decimal.Decimal(x[0, 0]),
    "a fraction": lambda x: fractions.Fraction(x[0, 0]),
    "random numbers": lambda x: np.random.default_rng(3).random(out=x * 1.0),
    "marshal": lambda x: marshal.dumps(x[0, 0].item()),
    "a duration": lambda x: datetime.timedelta(x[0, 0]),
}


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("read", CLASSES.values(), ids=CLASSES)
def test_what_asks_for_a_class_is_found(read: Callable[[Any], Any], catches: bool) -> None:

    def f(x: Any) -> Any:
        if not catches:
            return x * 2.0, read(x)
        try:
            return x * 2.0, read(x)
        except (TypeError, ValueError):
            return x * 3.0, 0.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g: Any = ox.record(f)
        for at in (0, 1, 2, 1):
            assert agrees(g, f, ARRAYS[at]), g
            assert g.why.path == "not recorded"


def _caught(ask: Callable[[Any], Any], *errors: type[Exception]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        try:
            ask(x)
        except errors:
            return x * 2.0
        return x * 3.0

    return f


class Asking:
    """An object with a method that calls a function of this module."""

    def ask(self, x: Any) -> Any:
        """The text of a number."""
        return _text(x)


@functools.lru_cache(maxsize=1)
def _cached_text(x: Any) -> Any:
    return _text(x)


def _text(x: Any) -> Any:
    try:
        return json.dumps(x)
    except TypeError:
        return "caught"


ASKING, TEXTS = Asking(), {"text": _text}


@pytest.mark.parametrize(
    "f",
    [
        lambda x: ASKING.ask(x[0, 0]),
        lambda x: Asking().ask(x[0, 0]),
        lambda x: eval("_text(x[0, 0])"),  # noqa: S307 - of its own
        lambda x: sys.modules[__name__]._text(x[0, 0]),
        lambda x: TEXTS["text"](x[0, 0]),
        lambda x: _cached_text(x[0, 0]),
    ],
    ids=["an object", "a class", "text", "a module", "a table", "a cache"],
)
def test_what_asks_for_a_class_is_found_behind_names(f: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g: Any = ox.record(f)
        for at in (0, 1):
            assert agrees(g, f, ARRAYS[at]), g


def _unpacked(x: Any) -> Any:
    first, second = x[0, 0].item()
    return first + second


def _added(x: Any) -> Any:
    y = x * 1.0
    y += np.ones(5)
    return y


@pytest.mark.parametrize("raises", [_unpacked, _added])
def test_texts_of_exceptions_are_these_of_plain_values(raises: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        try:
            return raises(x)
        except (TypeError, ValueError) as error:
            return str(error)

    assert agrees(ox.record(f), f, ARRAYS[0])


def _refuses(_: Any) -> None:
    raise TypeError("of the user's")


# Exceptions that plain values raise as well, or none of them.
EXPECTED: dict[str, Callable[[Any], Any]] = {
    "a length": _caught(lambda x: len(x[0, 0]), TypeError),
    "an iterator": _caught(lambda x: iter(x[0, 0]), TypeError),
    "a hash": _caught(hash, TypeError),
    "an attribute": _caught(lambda x: x.missing, AttributeError),
    "a key": _caught(lambda x: {"a": x}["b"], KeyError),
    "a literal": _caught(lambda _: float("one"), ValueError),
    "a range": _caught(lambda x: range(x[0, 0]), TypeError),
    "an exception of the user's": _caught(_refuses, TypeError),
}


@pytest.mark.parametrize("f", EXPECTED.values(), ids=EXPECTED)
def test_exceptions_that_plain_values_raise_are_recorded(f: Callable[[Any], Any]) -> None:
    g: Any = ox.record(f)
    for at in range(3):
        assert agrees(g, f, ARRAYS[at])
    assert (g.replays, g.why) == (2, None)


def test_exceptions_of_calls_of_plain_values_run_no_function_twice() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        y = x * 2.0
        for _ in range(2):  # the first refuses the function, and the other is of a refused one
            try:
                return xp.add(y, np.ones(7))
            except ValueError:
                y = x
        return x * 3.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert equal(ox.record(f)(ARRAYS[0]), ARRAYS[0] * 3.0)
    assert len(calls) == 1


def _in_thread(task: Callable[[], Any]) -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(task).result()


def _sum_of_filled(x: Any) -> Any:
    new = xp.zeros(4)
    new[...] = x[0]
    return xp.sum(new * x)


THREADS: dict[str, Callable[[Any], Any]] = {
    "a number": lambda x: _in_thread(lambda: float(np.sum(x))),
    "an array": lambda x: _in_thread(lambda: np.exp(x) * 2.0),
    "an array that the thread makes": lambda x: _in_thread(lambda: _sum_of_filled(x)),
    "a derivative": lambda x: _in_thread(lambda: ox.grad(lambda y: xp.sum(y * y))(x)),
    "a branch": lambda x: _in_thread(lambda: x * 2.0 if np.sum(x) > 0 else x * 3.0),
}


@pytest.mark.parametrize("task", THREADS.values(), ids=THREADS)
def test_threads_of_the_function_compute_what_they_compute_without_a_recording(task: Callable[[Any], Any]) -> None:
    g: Any = ox.record(task, audit="always")
    for at in (0, 1, 0, 2, 1):
        assert equal(g(ARRAYS[at]), task(ARRAYS[at]))


# --- what the function leaves in objects that it does not name as inputs ---------------------------------------------


class Kept:
    """A class whose attributes are constants of a recording."""

    history: ClassVar[list[Any]] = []


class Appending:
    """A method, whose object is copied."""

    def __init__(self) -> None:
        self.weight = np.ones((3, 4))

    def __call__(self, x: Any) -> Any:
        QUEUE.append(self)
        return x * self.weight


@functools.cache
def _doubled(v: Any) -> Any:
    return v * 2.0, [v * 3.0]


@functools.lru_cache(maxsize=4)
def _tripled(v: Any) -> Any:
    return v * 3.0


def _key(x: Any) -> None:
    TABLE[1][x[0, 0]] = (x[0, 1], {x[0, 2]})


QUEUE: collections.deque[Any] = collections.deque()
LOCAL, WEAK, TABLE = threading.local(), weakref.WeakKeyDictionary[Any, Any](), collections.deque([{}, {}])


class Closed:
    """An object with a finalizer, which is no input."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __del__(self) -> None:
        """Does nothing."""


class Odd(set[Any]):
    """A set whose methods are the user's."""

    def update(self, *_: Any) -> None:
        """Raises an exception."""
        raise RuntimeError


KEPT: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "tuples in tuples": (lambda x: QUEUE.append((x, (x[0], (x[0, 0],)))), lambda: [*QUEUE]),
    "a default": (lambda x: QUEUE.append(lambda a=x: a * 2.0), lambda: [each() for each in QUEUE]),
    "a default by name": (lambda x: QUEUE.append(lambda *, a=x: a), lambda: [each() for each in QUEUE]),
    "a closure": (lambda x: QUEUE.append(lambda: x), lambda: [each() for each in QUEUE]),
    "a partial function": (lambda x: QUEUE.append(functools.partial(np.add, 1.0, x)), lambda: [QUEUE[0].args]),
    "a keyword": (lambda x: QUEUE.append(functools.partial(np.sum, where=x)), lambda: [QUEUE[0].keywords]),
    "a method": (lambda x: QUEUE.append(types.MethodType(abs, x)), lambda: [QUEUE[0].__self__]),
    "an exception": (lambda x: QUEUE.append(KeyError(x, x[0, 0])), lambda: [QUEUE[0].args]),
    "a slice": (lambda x: QUEUE.append(slice(x[0, 0])), lambda: [QUEUE[0].stop]),
    "an object with a finalizer": (lambda x: QUEUE.append(Closed(x)), lambda: [QUEUE[0].a]),
    "an object of a library": (lambda x: QUEUE.append(threading.Thread(args=(x,))), lambda: [QUEUE[0]._args]),
    "a set of the user's": (lambda x: QUEUE.append(Odd([x[0, 0]])), lambda: [*QUEUE[0]]),
    "a class of the call": (lambda x: setattr(Kept, "last", type("New", (), {"a": x})), lambda: vars(Kept)["last"].a),
    "a class method": (lambda x: QUEUE.append(classmethod(lambda _, a=x: a)), lambda: QUEUE[0].__func__(0)),
    "a deque": (QUEUE.append, lambda: [*QUEUE]),
    "containers in a deque": (lambda x: QUEUE.append([x, {"a": (x[0, 0], 1)}]), lambda: [*QUEUE]),
    "a class": (lambda x: setattr(Kept, "last", x * 2.0), lambda: vars(Kept)["last"]),
    "a list of a class": (lambda x: Kept.history.append(x[0, 0]), lambda: [*Kept.history]),
    "a local of a thread": (lambda x: setattr(LOCAL, "last", x), lambda: LOCAL.last),
    "a weak dictionary": (lambda x: WEAK.__setitem__(Kept, x), lambda: [*WEAK.values()]),
    "keys and sets": (_key, lambda: [(key, part[0], *part[1]) for key, part in TABLE[1].items()]),
    "a cache": (lambda x: _doubled(x[0, 0]), lambda: _doubled(ARRAYS[0][0, 0])),
    "a bounded cache": (lambda x: _tripled(x[0, 0]), lambda: _tripled(ARRAYS[0][0, 0])),
}


def _traced() -> list[Any]:
    """The values of recordings that there are: other tests may have left some."""
    return [each for each in gc.get_objects() if issubclass(type(each), _core.TracedValue)]


@pytest.fixture
def tracked() -> Iterator[None]:
    """The collector knows the objects of this file, which the session has frozen."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("tracked")
@pytest.mark.parametrize(("keep", "kept"), KEPT.values(), ids=KEPT)
def test_what_the_function_keeps_is_plain_after_the_first_call(keep: Any, kept: Any) -> None:
    def f(x: Any) -> Any:
        keep(x)
        return x * 2.0

    def forget() -> None:
        for each in (QUEUE, Kept.history, WEAK, TABLE[1]):
            each.clear()
        _doubled.cache_clear()
        _tripled.cache_clear()

    forget()
    f(ARRAYS[0])
    expected = kept()
    forget()
    before = len(_traced())
    g: Any = ox.record(f)
    assert equal(g(ARRAYS[0]), ARRAYS[0] * 2.0)
    assert equal(kept(), expected)
    assert len(_traced()) == before
    assert g.why.path == "not recorded"
    forget()


@pytest.mark.usefixtures("tracked")
def test_an_object_that_the_function_keeps_is_itself_after_the_first_call() -> None:
    QUEUE.clear()
    f = Appending()
    assert equal(ox.record(f)(ARRAYS[0]), ARRAYS[0])
    assert [each is f for each in QUEUE] == [True]
    QUEUE.clear()


BATCH = [1.0]


def _model() -> tuple[Callable[[Any], Any], Callable[[], None]]:
    """A function that keeps functions which read names, and one that changes the names."""
    weight = 1.0

    def f(x: Any) -> Any:
        def read() -> Any:
            return weight, BATCH

        of_class: Any = type("New", (), {"value": property(lambda _: weight)})
        QUEUE.extend([read, lambda: (read(), BATCH), lambda each=read: each(), lambda: of_class().value, step, BATCH])
        return x * weight

    def step() -> float:
        return weight

    def change() -> None:
        nonlocal weight
        weight += 1.0
        BATCH.append(weight)

    return f, change


@pytest.mark.usefixtures("tracked")
def test_what_the_function_keeps_reads_the_present_names() -> None:
    QUEUE.clear()
    f, change = _model()
    assert equal(ox.record(f)(ARRAYS[0]), ARRAYS[0])
    BATCH[:] = [1.0]
    change()
    pair = (2.0, [1.0, 2.0])
    assert [each() for each in [*QUEUE][:-1]] == [pair, (pair, pair[1]), pair, 2.0, 2.0]
    assert QUEUE[-1] is BATCH
    QUEUE.clear()


# --- another thread during a first call -------------------------------------------------------------------------------


class Proxy:
    """An object that gives itself for another, and counts who asks."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def __class__(self) -> Any:
        self.asked += 1
        return np.ndarray


def _namespace() -> dict[str, Any]:
    return globals()


class Model:
    """A method, so that the names of this module answer for traced values."""

    def __call__(self, x: Any) -> Any:
        ENTERED.set()
        assert LEFT.wait(60)
        return x * 2.0 if type(x) is np.ndarray else x * 3.0


ENTERED, LEFT = threading.Event(), threading.Event()


def _answers() -> dict[str, Any]:
    """What names and libraries answer of plain values."""
    proxy = Proxy()

    class Meta(type):
        pass

    class Class(metaclass=Meta):
        pass

    try:
        missing = getattr(3, "missing")  # noqa: B009 - the name is what is tested
    except AttributeError as error:
        missing = str(error)
    library = sys.modules["array_api_compat.numpy"]
    return {
        "class": type(proxy) is Proxy and isinstance(type(proxy), type),
        "metaclass": type(Class) is Meta
        and type(type) is type
        and Meta.__mro__[1] in {type(int)}
        and type(Meta) is type
        and type(int) is type,
        "class of classes": type(type) is type,
        "key": {type: 1}[type(int)],
        "new class": type("New", (), {"a": 1})().a,
        "attributes": (hasattr(proxy, "asked"), hasattr(proxy, "other"), getattr(proxy, "other", 5), missing),
        "asked": proxy.asked,
        "sum": library.sum(np.arange(4.0)).item(),
        "order": library.permute_dims(np.zeros((2, 3)), (1, 0)).shape,
        "match": _matched(int),
    }


def _matched(value: Any) -> str:
    match value:
        case type():
            return "class"
        case _:
            return "object"


def test_another_thread_gets_the_answers_of_plain_values_during_a_first_call() -> None:
    ENTERED.clear()
    LEFT.clear()
    before, names = _answers(), set(_namespace())
    g = ox.record(Model())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(g, ARRAYS[0])
        assert ENTERED.wait(60)
        during = _answers()
        LEFT.set()
        assert equal(first.result(), ARRAYS[0] * 2.0)
    assert during == before == _answers()
    assert before["asked"] == 0
    assert set(_namespace()) == names
    assert agrees(g, lambda x: x * 2.0, ARRAYS[1])


def _plain(x: Any) -> Any:
    y = x
    for _ in range(3):
        y = xp.tanh(y @ WEIGHTS["w"]) + LAYER.shifted(y)
    return xp.sum(y * y)


class Layer:
    """An object with an array."""

    def __init__(self, shift: Any) -> None:
        self.shift = shift

    def shifted(self, y: Any) -> Any:
        """The sum with the array."""
        return y + self.shift


LAYER, WEIGHTS = Layer(np.ones(4)), {"w": np.eye(4) * 0.5}


def _hook() -> Callable[[Any], Any]:
    def called(x: Any) -> Any:
        try:
            return x * np.ndarray.sum(x)
        except TypeError:
            return x * 0.0

    return called


class Hooked:
    """A class with a function that no name tells."""

    hooks = (_hook(),)


def test_a_handler_in_a_function_that_no_name_tells_is_noticed() -> None:
    g = ox.record(lambda x: Hooked.hooks[0](x))
    with pytest.warns(UserWarning, match="ran twice in this call"):
        first = g(ARRAYS[0])
    assert equal(first, ARRAYS[0] * np.sum(ARRAYS[0]))
    assert agrees(g, Hooked.hooks[0], ARRAYS[1])


@pytest.mark.parametrize("f", [_plain, ox.value_and_grad(_plain), lambda x: {"y": [_plain(x)], "x": x}])
def test_first_calls_of_plain_programs_search_no_heap(f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    g: Any = ox.record(f)

    def unexpected(*_: Any) -> Any:
        raise AssertionError("a search")

    for name in ("collect", "get_objects", "get_referrers"):
        monkeypatch.setattr(gc, name, unexpected)
    assert agrees(g, f, ARRAYS[0])
    monkeypatch.undo()
    assert agrees(g, f, ARRAYS[1])
    assert g.replays == 1, g
