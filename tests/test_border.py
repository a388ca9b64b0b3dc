"""The border with the compiled module: sizes that overflow, and arguments of any kind. No panic crosses it."""

from __future__ import annotations

import ctypes
import inspect
import operator
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, optim, xp

HUGE = 2**40


@pytest.fixture
def tape() -> Iterator[ox.Tape]:
    with ox.Tape() as tape:
        yield tape


# --- sizes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(HUGE, HUGE), (HUGE, HUGE, 0), (0, HUGE, HUGE), (2**62, 2), (2**31, 2**32, 1), (2**64,), (-1,)]
)
@pytest.mark.parametrize("array", [np.ones(1), np.ones(()), np.float64(1.0), np.ones(1, np.int8), np.ones(0), 1.0])
def test_shapes_that_no_address_space_has_room_for(shape: Any, array: Any) -> None:
    with pytest.raises((ValueError, OverflowError, TypeError, MemoryError)):
        xp.broadcast_to(array, shape)
    with pytest.raises((ValueError, OverflowError, TypeError, MemoryError)):
        ox.grad(lambda x: xp.sum(xp.broadcast_to(x * array, shape)))(np.ones(1))


class Tensor(ctypes.Structure):
    """`DLManagedTensor` of DLPack before version 1."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Exporter:
    """An array in host memory that says of itself whatever it is told to."""

    dtype = np.dtype(np.float64)

    def __init__(self, shape: Any, strides: Any = None, **others: Any) -> None:
        self.shape = tuple(shape)
        self._memory = np.ones(4)
        numbers = [(ctypes.c_int64 * len(n))(*n) if n is not None else None for n in (shape, strides)]
        self._numbers = numbers
        fields = {"dimensions": len(shape), "code": 2, "bits": 64, "lanes": 1, "data": self._memory.ctypes.data}
        self._tensor = Tensor(device=(1, 0), shape=numbers[0], strides=numbers[1], **{**fields, **others})

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._tensor), b"dltensor", None)


def test_the_description_of_an_exporter_is_used() -> None:
    exporter = Exporter((2, 2))
    target = np.zeros((2, 2))
    _core.copy(exporter, target)
    assert _core.is_floating(exporter) and target.all()


@pytest.mark.parametrize(
    "exporter",
    [
        Exporter((2**62,)),
        Exporter((2**62,), (0,)),
        Exporter((2**61,), (0,)),
        Exporter((2**62, 2**62)),
        Exporter((2**62, 2**62), (0, 0)),
        Exporter((2**62, 2**62, 0), (0, 0, 0)),
        Exporter((2**32, 2**31), (0, 0)),
        Exporter((3, 2**61), (2**61, 1)),
        Exporter((4,), (2**62,)),
        Exporter((4,), (-(2**62),)),
        Exporter((4,), (-(2**63),)),
        Exporter((-1,)),
        Exporter((2,), bits=255, lanes=65535),
        Exporter((2,), offset=2**64 - 1),
        Exporter((2,), data=2**64 - 8),
        Exporter((2,), data=0),
        Exporter((2,), dimensions=-1),
        Exporter((0, 2**62, 2**62)),
    ],
    ids=lambda exporter: str(exporter.shape),
)
def test_an_exporter_with_an_impossible_description_is_refused(exporter: Exporter) -> None:
    target, before = np.zeros(2), np.ones(2)
    _core.exports_memory(exporter), _core.is_floating(exporter), _core.is_writable(exporter)
    with pytest.raises((ox.DtypeError, ox.ShapeError, ox.ArrayMemoryError, TypeError, ValueError)):
        _core.copy(exporter, target)
    with pytest.raises((ox.DtypeError, ox.ShapeError, ox.ArrayMemoryError, ox.StructureError)) as raised:
        optim.Adam().update({"a": before, "w": target}, {"a": np.ones(2), "w": exporter})
    assert "w" in str(raised.value)
    assert not target.any() and before.all()


def test_noise_of_more_numbers_than_there_is_memory_for() -> None:
    for count, rows in ((2**60, None), (2**64 - 1, None), (2**63, [0, 1]), (2**32, [0] * 2**16)):
        for draw in (_core.uniform, _core.rounding):
            with pytest.raises((MemoryError, OverflowError)):
                draw(0, 0, 0, 0, count, rows)
    assert len(_core.uniform(2**64 - 1, 2**64 - 1, 2**64 - 1, 2**32 - 1, 3, [2**64 - 1, 0])) == 48


@pytest.mark.parametrize("threads", [0, -1, 1025, 2**40, 2**64, 1.5, None, True, "2"])
def test_no_number_of_threads(threads: Any) -> None:
    before = _core.get_num_threads()
    error = ValueError if type(threads) is int else TypeError
    with pytest.raises(error, match=f"^threads is {threads!r}: expected a whole number from 1 to 1024$"):
        _core.set_num_threads(threads)
    assert _core.get_num_threads() == before


def test_lists_of_variables_are_lists(tape: ox.Tape) -> None:
    x = tape.watch(1.0)
    huge = np.broadcast_to(np.ones(1), (2**59,))
    for call in (lambda: tape.gradient(x, huge), lambda: tape.pull(huge, [x]), lambda: tape.pull([(x, 1.0)], huge)):
        with pytest.raises(TypeError, match="expected a list or a tuple, found ndarray"):
            call()
    assert tape.gradient(x, (x,)) == tape.gradient(x, [x]) == [1.0]


def test_a_program_of_symbols_of_another() -> None:
    symbols, other = _core.symbols(), _core.symbols()
    g, p = symbols.leaf(), symbols.leaf()
    foreign = [other.leaf() for _ in range(9)][-1]
    for number in (foreign, ox.Tape().watch(1.0), 1.0):
        with pytest.raises(TypeError, match="the number: found|not an instance"):
            symbols.total(number)
    with pytest.raises(ox.RuleError):
        symbols.compile([foreign], [1], [], None)
    with pytest.raises(ValueError, match="1 outputs are written to 2 places"):
        symbols.compile([p - g], [1, 2], [], None)


@pytest.mark.parametrize(
    ("name", "args"), [("add", [1.0]), ("add", [1.0, 2.0, 3.0]), ("exp", [1.0, 2.0]), ("where", [True])]
)
def test_ops_with_another_number_of_arguments(name: str, args: list[float]) -> None:
    with pytest.raises(TypeError, match=f"{name} takes"):
        _core.record(name, args)


# --- any arguments -------------------------------------------------------------------------------------------------------


def hostile(tape: Any) -> list[Any]:
    """Values that nobody expects, or of sizes that overflow."""
    (leaf, *_), structure = _core.tree_flatten({"a": np.ones(2), "b": [1, 2]})
    symbols = _core.symbols()
    named = [{"shape": (HUGE, HUGE)}, {"shape": (HUGE, HUGE, 0)}, {"shape": (-1,)}, {"axis": 2**62}, {"axis": -(2**63)}]
    named += [
        {"axis": (0, 2**63 - 1), "keepdims": True},
        {"key": 2**63},
        {"key": (2**62, ...)},
        {"index": -(2**63)},
        {},
    ]
    numbers = [0, -1, 1, 2**31, HUGE, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**70), 1.5, float("nan"), True, 1j]
    arrays = [np.ones(1), np.ones((2, 3)), np.ones(0), np.float64(1), np.zeros((), object), np.ones(3, np.float32)]
    arrays += [np.broadcast_to(np.ones(1), (1, 2**59)), np.ones((2, 2)).T, np.ones(4)[::-2], np.zeros(2, "M8[s]")]
    exporters = [Exporter((2**62,), (0,)), Exporter((2**32, 2**31), (0, 0)), Exporter((2, 2))]
    others = [None, "x", "add", "", b"x", [], [1], (HUGE, HUGE), (-1,), object(), object, lambda *args: args[0], [leaf]]
    return [
        *named, *numbers, *arrays, *exporters, *others, symbols, symbols.leaf(), tape, structure, structure.path(0),
        tape.watch(np.ones(3)), tape.watch(2.0), [tape.watch(2.0)], [(tape.watch(2.0), 1.0)], [structure.path(0)],
    ]  # fmt: skip


def entries(values: list[Any]) -> dict[str, Callable[..., Any]]:
    """Everything that can be called in the compiled module, and the methods of what it makes."""
    # State of the process or the thread, which later tests would find changed.
    skipped = {
        "install",
        "set_debug_nans",
        "set_num_threads",
        "Stepper",
        "tree_register_fields",
        "tree_register_functions",
    }
    found = {n: f for n, f in vars(_core).items() if callable(f) and not n.endswith("Error") and n not in skipped}
    made = [value for value in values if type(value).__module__.partition(".")[0] in ("oxigrad", "builtins")]
    made += [_core.Key.Index(3), _core.elementwise_functions()[0]]
    own = [value for value in made if type(value).__name__ in {*vars(_core), "Function", "Key_Index", "Key"}]
    left_alone = {
        "__class__",
        "__init_subclass__",
        "__subclasshook__",
        "__new__",
        "__enter__",  # state of the thread
        "__exit__",
        "__reduce__",
        "__reduce_ex__",
    }
    for number, value in enumerate(own):
        for name in set(dir(type(value))) - left_alone:
            found[f"{type(value).__name__} {number}.{name}"] = lambda *args, value=value, name=name: getattr(
                value, name
            )(*args)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_no_panic_crosses_the_border(seed: int, tape: ox.Tape) -> None:
    """Any arguments give a result or an exception other than `InternalError`."""
    generator, values = random.Random(seed), hostile(tape)
    ops = [name for name, _ in _core.ops()]
    with np.errstate(all="ignore"):
        for call in entries(values).values():
            for args in ((), *((value,) for value in values)):
                _try(call, args)
            for _ in range(20):
                _try(call, generator.choices(values, k=generator.randint(2, 6)))
        for _ in range(2000):
            op, args = generator.choice(ops), generator.choices(values, k=generator.randint(1, 3))
            _try(_core.record, (op, args, generator.choice([None, *values[:10]])))
            _try(_core.compute, (op, args))


def _try(call: Callable[..., Any], args: Any) -> None:
    try:
        call(*args)
    except ox.InternalError:
        raise
    except Exception:  # noqa: BLE001, S110 - any other will do
        pass


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("add", 1, "add takes 2 arrays, got 1"),
        ("sum", 2, "sum takes 1 arrays, got 2"),
        ("where", 0, "where needs at least one argument"),
        ("concat", 0, "concat needs at least one argument"),
    ],
)
def test_an_op_takes_its_number_of_arrays(name: str, count: int, message: str) -> None:
    entries = [_core.Entry("input"), _core.Entry("call", target=("op", name), args=(_core.EntryId(0),) * count)]
    for call in (
        lambda: _core.record(name, [np.ones(3)] * count),
        lambda: _core.compute_in_rule(name, [np.ones(3)] * count),
        lambda: _core.Replay(entries, [1], operator.is_, bool),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_a_method_of_a_recording_has_an_object() -> None:
    target = ("method", "sum")
    with pytest.raises(TypeError, match="method sum needs an object"):
        _core.Replay([_core.Entry("call", target=target)], [0], operator.is_, bool)


def test_guards_are_of_places_that_there_are() -> None:
    guards = _core.Guards(operator.is_)
    guards.object(3)
    for call in (
        lambda: guards.read(1),
        lambda: guards.item(1, "a"),
        lambda: guards.flat(1),
        lambda: guards.expect_nothing("x", 1),
        lambda: guards.expect_place("x", 0, 1),
    ):
        with pytest.raises(IndexError, match="found place 1, expected one below 1"):
            call()
    assert guards.read(0) == 3 and guards.changed() is None


def test_a_process_goes_on_after_an_import_that_was_interrupted() -> None:
    program = """
        import sys, numpy
        dtype, calls = numpy.dtype, []
        class Broken:
            def __call__(self, *args):
                raise KeyboardInterrupt
        numpy.dtype = Broken()
        try:
            import oxigrad
        except KeyboardInterrupt:
            print("interrupted")
        numpy.dtype = dtype
        for name in [name for name in sys.modules if name.partition(".")[0] == "oxigrad"]:
            del sys.modules[name]
        import oxigrad
        print(oxigrad.grad(lambda x: oxigrad.xp.sum(x * x))(numpy.ones(2)))
    """
    lines = "\n".join(line[8:] for line in program.splitlines())
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)
    assert ran.stdout == "interrupted\n[2. 2.]\n", ran.stderr


# --- callbacks -----------------------------------------------------------------------------------------------------------

CALLBACKS = list(inspect.signature(_core.install_callbacks).parameters)


def test_callbacks_are_installed_by_name() -> None:
    given: dict[str, Any] = dict.fromkeys(CALLBACKS, abs)
    with pytest.raises(TypeError, match="missing 1 required keyword argument: 'unbroadcast'"):
        _core.install_callbacks(**{name: given[name] for name in CALLBACKS if name != "unbroadcast"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'unbroadcasted'"):
        _core.install_callbacks(**given, unbroadcasted=abs)
    with pytest.raises(TypeError, match="positional"):
        _core.install_callbacks(*given.values())  # pyright: ignore[reportCallIssue]
    with pytest.raises(RuntimeError, match="installed already"):
        _core.install_callbacks(**given)


@pytest.mark.parametrize("name", CALLBACKS)
def test_a_callback_must_be_callable(name: str) -> None:
    given: dict[str, Any] = {**dict.fromkeys(CALLBACKS, abs), name: 3}
    with pytest.raises(TypeError, match=f"callback {name} is a int: expected a callable"):
        _core.install_callbacks(**given)


def test_the_core_looks_up_no_name_of_the_package() -> None:
    program = """
import sys
import numpy as np
import oxigrad as ox

f = ox.grad(lambda x: np.sum(np.sin(x)) * x.size + sum(x) + (x[None].mT * np.ones(2)).T[0, 1])
x = np.arange(3.0)
f(x)  # imports what is imported when it is first used
for name in [name for name in sys.modules if name.split(".")[0] == "oxigrad"]:
    del sys.modules[name]
sys.meta_path.clear()  # nothing can be imported any more
found = f(x)
assert np.array_equal(found, np.cos(x) * 3 + [1, 2, 1]), found
"""
    subprocess.run([sys.executable, "-c", program], check=True)
