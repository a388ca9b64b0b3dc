"""The XLA handler: valid call frames are executed; invalid ones return an error, and nothing is written."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxigrad import _core, optim
from oxigrad.rules.core import rule
from oxigrad.step.parameters.rule_executors import trace

SIZE, WORD, INT, POINTER = ctypes.c_size_t, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p
HEAD = [("size", SIZE), ("extensions", POINTER)]


def structure(name: str, *fields: tuple[str, Any]) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": [*HEAD, *fields]})


Version: Any = structure("Version", ("major", INT), ("minor", INT))
ErrorArguments: Any = structure("ErrorArguments", ("message", ctypes.c_char_p), ("code", INT))
Create = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(ErrorArguments))
Api: Any = structure("Api", ("version", Version), ("internal", POINTER), ("create", Create))
Array: Any = structure("Array", ("dtype", INT), ("data", POINTER), ("rank", WORD), ("dimensions", POINTER))
Arrays: Any = structure("Arrays", ("count", WORD), ("kinds", POINTER), ("items", POINTER))
Attributes: Any = structure("Attributes", ("count", WORD), ("kinds", POINTER), ("names", POINTER), ("values", POINTER))
Frame: Any = structure(
    "Frame",
    ("api", POINTER),
    ("context", POINTER),
    ("stage", INT),
    ("operands", Arrays),
    ("results", Arrays),
    ("attributes", Attributes),
)


class Bytes(ctypes.Structure):
    _fields_ = [("data", POINTER), ("length", SIZE)]


class Metadata(ctypes.Structure):
    _fields_ = [("size", SIZE), ("version", Version), ("traits", ctypes.c_uint32), ("state", WORD)]


class Extension(ctypes.Structure):
    _fields_ = [("size", SIZE), ("kind", INT), ("next", POINTER), ("metadata", POINTER)]


def handler() -> Callable[[Any], int | None]:
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = POINTER, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.CFUNCTYPE(POINTER, POINTER)(read(_core.xla_handler(), None))


def made(kind: Any, **fields: Any) -> Any:
    return kind(size=ctypes.sizeof(kind), **fields)


DTYPES = {"float32": 11, "float64": 12, "int32": 4, "bool": 1, "uint32": 8}


class Call:
    """A call frame over NumPy arrays, all of whose parts can be changed."""

    def __init__(self, text: str, operands: list[np.ndarray], results: list[np.ndarray]) -> None:
        self.errors: list[tuple[int, str]] = []
        self.kept: list[Any] = []
        self.text = text.encode()
        self.api = made(Api, version=made(Version, minor=3), create=self.keep(Create(self.create)))
        self.operands = [self.array(array) for array in operands]
        self.results = [self.array(array) for array in results]
        self.name = Bytes(self.address(b"call"), 4)
        self.value = Bytes(self.address(self.text), len(self.text))
        self.frame = made(Frame, api=ctypes.addressof(self.api), stage=3)
        self.frame.operands, self.frame.results = self.arrays(self.operands), self.arrays(self.results)
        names, values = self.pointers([self.name]), self.pointers([self.value])
        kinds = ctypes.addressof(self.keep((INT * 1)(4)))
        self.frame.attributes = made(Attributes, count=1, kinds=kinds, names=names, values=values)

    def keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value

    def create(self, arguments: Any) -> int:
        self.errors.append((arguments.contents.code, arguments.contents.message.decode()))
        return 1

    def address(self, text: bytes) -> int:
        return ctypes.addressof(self.keep(ctypes.create_string_buffer(text)))

    def array(self, array: np.ndarray) -> Any:
        dimensions = ctypes.addressof(self.keep((WORD * (array.ndim + 1))(*array.shape)))
        data = array.ctypes.data if array.size else None
        return made(Array, dtype=DTYPES[array.dtype.name], data=data, rank=array.ndim, dimensions=dimensions)

    def pointers(self, items: list[Any]) -> int:
        return ctypes.addressof(self.keep((POINTER * (len(items) + 1))(*map(ctypes.addressof, items))))

    def arrays(self, items: list[Any]) -> Any:
        kinds = ctypes.addressof(self.keep((INT * (len(items) + 1))(*[1] * len(items))))
        return made(Arrays, count=len(items), kinds=kinds, items=self.pointers(items))

    def run(self) -> str | None:
        """The message of the error, if there is one."""
        failed = handler()(ctypes.addressof(self.frame))
        assert bool(failed) == bool(self.errors)
        return self.errors[0][1] if self.errors else None


def descent(xp: Any, p: Any, g: Any, m: Any, *, learning_rate: float = 0.5) -> Any:
    m = m + g
    return p - learning_rate * m, m


def text(**options: Any) -> str:
    program = trace(rule.read(descent), {})
    return _core.xla_call([(program, 2, 3, 0)], [(0, 0, 0, False)], [1.0, 0.5], [(1, 0)], seed=0, **options)


def call(shape: tuple[int, ...] = (2, 3)) -> tuple[Call, list[np.ndarray]]:
    """A call of `descent` with the learning rate as an operand; and the rate, the gradient, the parameter and the slot."""
    rate = np.array(0.25, np.float32)
    arrays = [rate, *(np.full(shape, value, np.float32) for value in (1.0, 2.0, 3.0))]
    return Call(text(), arrays, arrays[2:]), arrays


def test_a_call_updates_in_place() -> None:
    for shape in [(2, 3), (), (0, 4), (100_000,)]:
        frame, (_, g, p, m) = call(shape)
        assert frame.run() is None
        assert (g == 1.0).all() and (p == 1.0).all() and (m == 4.0).all()


def test_results_may_lie_apart() -> None:
    _, arrays = call()
    results = [np.zeros((2, 3), np.float32) for _ in range(2)]
    assert Call(text(), arrays, results).run() is None
    assert (results[0] == 1.0).all() and (results[1] == 4.0).all() and (arrays[2] == 2.0).all()


def test_metadata_is_the_version_of_the_caller() -> None:
    for major, minor, stated in [(0, 1, (0, 1)), (0, 3, (0, 3)), (0, 9, (0, 9)), (1, 0, (0, 3))]:
        frame, _ = call()
        frame.api.version.major, frame.api.version.minor = major, minor
        metadata = made(Metadata, version=made(Version))
        extension = Extension(size=ctypes.sizeof(Extension), kind=1, metadata=ctypes.addressof(metadata))
        first = Extension(size=ctypes.sizeof(Extension), kind=7, next=ctypes.addressof(extension))
        frame.frame.extensions = ctypes.addressof(first)
        assert frame.run() is None
        assert (metadata.version.major, metadata.version.minor) == stated


def set_field(*path: Any, to: Any) -> Callable[[Call], None]:
    """Sets a part of a call frame, by attributes and items."""

    def change(frame: Call) -> None:
        owner: Any = frame
        for name in path[:-1]:
            owner = owner[name] if isinstance(name, int) else getattr(owner, name)
        setattr(owner, path[-1], to)

    return change


WRONG = {
    "version": (set_field("api", "version", "major", to=1), "version 1.3"),
    "stage": (set_field("frame", "stage", to=1), "stage 1"),
    "small operands": (set_field("frame", "operands", "size", to=8), "operands of 8 bytes"),
    "small attributes": (set_field("frame", "attributes", "size", to=8), "attributes of 8 bytes"),
    "small array": (set_field("operands", 1, "size", to=47), "operand 1: an array of 47 bytes"),
    "negative count": (set_field("frame", "operands", "count", to=-1), "-1 operands"),
    "huge count": (set_field("frame", "results", "count", to=2**62), "4611686018427387904 results"),
    "fewer operands": (set_field("frame", "operands", "count", to=3), "no operand 3"),
    "fewer results": (set_field("frame", "results", "count", to=1), "no result 1"),
    "no items": (set_field("frame", "operands", "items", to=None), "operands at the address 0x0"),
    "no kinds": (set_field("frame", "results", "kinds", to=None), "results at the address 0x0"),
    "unaligned items": (set_field("frame", "operands", "items", to=4097), "operands at the address 0x1001"),
    "no attributes": (set_field("frame", "attributes", "count", to=0), "attribute call is missing"),
    "other name": (set_field("name", "length", to=3), "attribute call is missing"),
    "no text": (set_field("value", "data", to=None), "a string at the address 0x0"),
    "cut text": (set_field("value", "length", to=30), "line"),
    "no data": (set_field("operands", 1, "data", to=None), "null pointer"),
    "unaligned data": (set_field("operands", 2, "data", to=4097), "not aligned"),
    "dtype of an operand": (set_field("operands", 3, "dtype", to=15), "has the dtype 15"),
    "integers": (set_field("operands", 1, "dtype", to=4), "an array of int32"),
    "dtype of a result": (set_field("results", 0, "dtype", to=12), "a result of 6 elements of float64"),
    "negative rank": (set_field("operands", 1, "rank", to=-2), "-2 dimensions"),
    "other rank": (set_field("operands", 2, "rank", to=1), "a result of 6 elements"),
    "no dimensions": (set_field("operands", 1, "dimensions", to=None), "dimensions at the address 0x0"),
    "a scalar that is an array": (set_field("operands", 0, "rank", to=2), "operand 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_an_error_and_changes_nothing(name: str) -> None:
    frame, arrays = call()
    # The learning rate is followed by what would be its dimensions.
    frame.operands[0].dimensions = ctypes.addressof(frame.keep((WORD * 2)(2, 3)))
    change, message = WRONG[name]
    change(frame)
    before = [array.copy() for array in arrays]
    found = frame.run()
    assert found is not None and found.startswith("oxigrad: ") and message in found, found
    assert all((array == old).all() for array, old in zip(arrays, before, strict=True))


@pytest.mark.parametrize("name", ["size", "api"])
def test_without_a_table_of_functions_nothing_is_done(name: str) -> None:
    frame, arrays = call()
    setattr(frame.frame, name, 0)
    assert frame.run() is None
    assert (arrays[2] == 2.0).all()


def test_arrays_that_overlap_are_an_error() -> None:
    memory = np.zeros(12, np.float32)
    _, (rate, g, p, m) = call()
    parts = [memory[:6].reshape(2, 3), memory[3:9].reshape(2, 3)]
    assert "shares memory" in str(Call(text(), [rate, g, parts[0], parts[1]], parts).run())
    assert "outputs 0 and 1 share memory" in str(Call(text(), [rate, g, p, m], [p, p]).run())
    assert not memory.any()


@pytest.mark.slow
def test_random_changes_of_the_text_are_errors_or_calls() -> None:
    generator, right = random.Random(5), text()
    lines = right.splitlines()
    for _ in range(3000):
        changed = [*lines]
        at = generator.randrange(len(changed))
        words = changed[at].split(" ")
        words[generator.randrange(len(words))] = generator.choice(
            [
                "0",
                "1",
                "2",
                "9",
                "-1",
                "x",
                "",
                "99999999999999999999",
                "18446744073709551615",
                "traced",
                "leaf",
                "flat",
            ]
        )
        changed[at] = " ".join(words)
        if generator.random() < 0.2:
            del changed[generator.randrange(len(changed))]
        _, arrays = call()
        frame = Call("\n".join(changed), arrays, arrays[2:])
        before = [array.copy() for array in arrays]
        if frame.run() is not None:
            assert frame.errors[0][0] == 3, frame.errors
            assert all((array == old).all() for array, old in zip(arrays, before, strict=True))


@pytest.mark.slow
def test_random_changes_of_the_frame_are_errors_or_calls() -> None:
    """Sizes, counts and codes; addresses only to null, since any other would have to be believed."""
    generator = random.Random(6)
    for _ in range(2000):
        frame, arrays = call()
        parts = [frame.frame.operands, frame.frame.results, frame.frame.attributes, *frame.operands, *frame.results]
        part = generator.choice(parts)
        name, kind = generator.choice(part._fields_)
        if name == "extensions":
            continue
        small = generator.choice([0, 1, 2, 3, -1, 12])
        setattr(part, name, None if kind is POINTER else small % 2**64 if kind is SIZE else small)
        before = [array.copy() for array in arrays]
        if frame.run() is not None:
            assert frame.errors[0][0] == 3, frame.errors
            assert all((array == old).all() for array, old in zip(arrays, before, strict=True))


def test_a_call_that_no_handler_runs_is_refused_when_it_is_written() -> None:
    program = trace(rule.read(descent), {})
    for programs, leaves, message in [
        ([(program, 2, 2, 0)], [(0, 0, 0, False)], "of 2 arrays"),
        ([(program, 2, 3, 1)], [(0, 0, 0, False)], "0 results, for 1 numbers"),
        ([(program, 2, 3, 0)], [(1, 0, 0, False)], "of the program 1"),
        ([(program, 2, 3, 0)], [(0, 1, 0, False)], "2 scalars from 1 on"),
    ]:
        with pytest.raises(ValueError, match=message):
            _core.xla_call(programs, leaves, [1.0, 0.5], [], seed=0)
    with pytest.raises(ValueError, match="no scalar 2"):
        _core.xla_call([(program, 2, 3, 0)], [(0, 0, 0, False)], [1.0, 0.5], [(2, 0)], seed=0)


def test_programs_are_written_as_text() -> None:
    program = optim.SGD(0.1).program
    assert "\n subtract " in _core.xla_call([(program, 9, 2, 0)], [(0, 0, 0, False)], [0.0] * 9, [], seed=0)
