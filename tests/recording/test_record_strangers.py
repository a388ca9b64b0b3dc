"""Files of strangers: each crafted file is refused with `StateError`, or does no more than to compute its results."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad.recording.program.encoding import Encoder
from oxigrad.step.state import safetensors_io

X = np.linspace(-1.0, 1.0, 6)
E0 = {"entry": 0}
_KIND = {"shape": (6,), "dtype": "<f8", "scalar": False}


def encoded(value: Any) -> Any:
    return Encoder().encoded(value)


def call(kind: str, name: str, *args: Any, **named: Any) -> list[Any]:
    """An entry that calls a function of entries, which are dicts, and of plain values."""
    parts = [arg if isinstance(arg, dict) else encoded(arg) for arg in args]
    by_name = [[key, value if isinstance(value, dict) else encoded(value)] for key, value in named.items()]
    return ["call", kind, name, {"tuple": parts}, by_name, None, False]


def write(
    file: Any, entries: list[Any], outputs: list[int], *, cases: int = 1, arrays: Any = None, kind: Any = _KIND
) -> Any:
    """A file of one input, in six elements, and these entries after it."""
    case = {
        "arguments": {"tuple": [{"tuple": [encoded(0)]}, {"dict": []}]},
        "kinds": encoded([kind]),
        "entries": [["input"], *entries],
        "permuted": [],
        "outputs": outputs,
        "result": encoded(0),
    }
    stated = {"format": "oxigrad.recording", "version": 1, "name": "f", "cases": [case] * cases, "complex": []}
    safetensors_io.write(file, arrays or {}, {"recording": json.dumps(stated)})
    return file


# Calls that write to the input where functions are let to.
WRITES: dict[str, list[Any]] = {
    "a ufunc with an array to write to by position": call("numpy", "add", E0, 1.0, E0),
    "one of a single argument": call("numpy", "exp", E0, E0),
    "of SciPy": call("scipy.special", "expit", E0, E0),
    "by name": call("numpy", "add", E0, 1.0, out=E0),
    "clip": call("numpy", "clip", E0, 0.0, 0.5, E0),
    "cumsum": call("numpy", "cumsum", E0, 0, None, E0),
    "cumprod": call("numpy", "cumprod", E0, 0, None, E0),
    "take": call("numpy", "take", E0, [0, 1, 2, 3, 4, 5], 0, E0),
    "dot": call("numpy", "dot", E0, 2.0, E0),
    "round": call("numpy", "round", E0, 0, E0),
    "accumulate": call("numpy", "add.accumulate", E0, 0, None, E0),
    "reduce": call("numpy", "add.reduce", E0, 0, None, E0),
    "the method clip": call("method", "clip", E0, 0.0, 0.5, E0),
    "the method round": call("method", "round", E0, 0, E0),
    "the method cumsum": call("method", "cumsum", E0, 0, None, E0),
    "the method take": call("method", "take", E0, [0, 1, 2, 3, 4, 5], 0, E0),
    "the method sort": call("method", "sort", E0),
    "a median": call("numpy", "median", E0, overwrite_input=True),
    "a median by position": call("numpy", "median", E0, None, None, True),
    "a quantile": call("numpy", "quantile", E0, 0.5, None, None, True),
    "numbers for NaN": call("numpy", "nan_to_num", E0, copy=False),
    "numbers for NaN by position": call("numpy", "nan_to_num", E0, False, 7.0, 7.0, 7.0),
    "putmask": call("numpy", "putmask", E0, True, 0.0),
    "copyto": call("numpy", "copyto", E0, 0.0),
    "scattered": call("core", "scatter_into", E0, 1.0, 0, (6,)),
}


@pytest.mark.parametrize("name", WRITES)
def test_no_file_writes_to_the_arrays_of_its_caller(name, tmp_path):
    file, x = write(tmp_path / "file", [WRITES[name]], [1]), np.r_[X[:5], np.nan]
    before = x.copy()
    try:
        loaded = ox.load_recording(file)
    except ox.StateError:
        return
    with contextlib.suppress(ValueError, TypeError, RuntimeError):  # of an array that a function cannot write to
        loaded(x)
    np.testing.assert_array_equal(x, before)
    assert x.flags.writeable


def test_results_of_a_file_are_writable_and_no_part_of_an_input_is_shared(tmp_path):
    loaded = ox.load_recording(write(tmp_path / "file", [call("operator", "getitem", E0, slice(1, 3))], [1]))
    x = X.copy()
    part = loaded(x)
    part[...] = 7.0
    np.testing.assert_array_equal(x, X)
    assert ox.load_recording(write(tmp_path / "file", [], [0]))(x) is x


def reading(entry: list[Any], at: int, shape: list[int], dtype: str = "<f8") -> list[list[Any]]:
    """A call number ``at`` with the type of its result, and the sum that is the result of the program: it is not folded itself."""
    of = {"entry": at}
    return [[*entry[:5], [shape, dtype], False], [*call("op", "add", of, of)[:5], [shape, dtype], False]]


def test_constants_are_folded_within_a_bound_of_bytes(tmp_path):
    count = 20_000
    entries = [["constant", {"array": ["a", False]}]]
    entries += [call("numpy", "multiply", {"entry": at + 1}, {"entry": 1}) for at in range(count)]
    entries[-1:] = reading(entries[-1], count + 1, [30, 30])
    loaded = ox.load_recording(write(tmp_path / "file", entries, [count + 2], arrays={"a": np.eye(30)}))
    assert count / 2 < loaded.recordings[0].sizes()[1] < count


def test_the_cases_of_a_file_share_the_bound_of_bytes(tmp_path):
    count, cases = 60, 16
    entries = [["constant", {"array": ["a", False]}]]
    entries += [call("numpy", "multiply", {"entry": at + 1}, {"entry": 1}) for at in range(count)]
    entries[-1:] = reading(entries[-1], count + 1, [300, 300])
    arrays = {"a": np.eye(300)}
    file = write(tmp_path / "file", entries, [count + 2], arrays=arrays, cases=cases)
    left = [replay.sizes()[1] for replay in ox.load_recording(file).recordings]
    folded = sum(count + 1 - each for each in left)
    assert len(left) == cases
    assert 0 < folded * arrays["a"].nbytes <= (1 << 26) + cases * arrays["a"].nbytes


# Calls of constants, an entry each before them, that take minutes or more memory than there is.
E1, E2, E3 = ({"entry": at} for at in (1, 2, 3))
HUGE: dict[str, tuple[Any, Any, list[Any]]] = {
    "a power of integers": (10**9, 10**9, call("operator", "pow", E1, E2)),
    "a power of an integer of many digits": (7**400, 2, call("operator", "pow", E1, E2)),
    "a shift": (1, 1 << 40, call("operator", "lshift", E1, E2)),
    "a repeated text": ("text", 1 << 40, call("operator", "mul", E1, E2)),
    "a repeated list": ([1, 2], 1 << 40, call("operator", "mul", E1, E2)),
    "a broadcast sum": (np.zeros((1 << 17, 1)), np.zeros(1 << 17), call("op", "add", E1, E2)),
    "a broadcast sum of NumPy's": (np.zeros((1 << 17, 1)), np.zeros(1 << 17), call("numpy", "add", E1, E2)),
    "an outer product": (np.zeros(1 << 17), np.zeros(1 << 17), call("numpy", "multiply.outer", E1, E2)),
    "a product of matrices": (np.zeros((1 << 17, 2)), np.zeros((2, 1 << 17)), call("op", "matmul", E1, E2)),
    "a range": (0.0, 1e15, call("numpy", "arange", E1, E2)),
    "ones": (1 << 20, 1 << 20, call("numpy", "ones", {"tuple": [E1, E2]})),
    "repeated elements": (np.zeros(2), np.full(2, 1 << 40), call("numpy", "repeat", E1, E2)),
    "repeated elements by the method": (np.zeros(2), np.full(2, 1 << 40), call("method", "repeat", E1, E2)),
    "an index": (np.zeros((2, 1 << 18)), np.zeros(1 << 18, int), call("operator", "getitem", E1, E2)),
    "a decomposition": (np.zeros((1100, 1100)), 0, call("op", "svd", E1, full_matrices=True)),
    "scattered": (np.zeros(2), 0, call("core", "scatter_into", None, E1, slice(0, 2), (1 << 40,))),
}


@pytest.mark.parametrize("name", HUGE)
def test_one_huge_call_of_constants_is_left_to_replays(name, tmp_path):
    one, other, huge = HUGE[name]
    encoder = Encoder()
    constants = [["constant", encoder.encoded(value)] for value in (one, other)]
    file = write(tmp_path / "file", [*constants, *reading(huge, 3, [6])], [4], arrays=encoder.arrays)
    try:
        loaded = ox.load_recording(file)
    except ox.StateError:
        return
    assert loaded.recordings[0].sizes()[1] == 2


def doubled(kind: str, name: str) -> list[Any]:
    """A loop of calls, each of which takes the entry before it twice."""
    before = {"entry": {"steps": [1, 1]}}
    return ["loop", 60, [call(kind, name, before, before)]]


LARGE = 10**299
# Programs that would take more time or memory than there is at a call, where nothing can interrupt one of their calls.
ENDLESS: dict[str, tuple[list[Any], list[Any]]] = {
    "a power of large integers": ([LARGE, LARGE], [call("operator", "pow", E1, E2)]),
    "a power of small integers": ([2, 1 << 40], [call("operator", "pow", E1, E2)]),
    "a negative power": ([3, -(1 << 40)], [call("operator", "pow", E1, E2)]),
    "the op of a power": ([LARGE, LARGE], [call("op", "pow", E1, E2)]),
    "the rule of a power": ([LARGE, LARGE], [call("rule", "pow", E1, E2)]),
    "the power of NumPy": ([LARGE, LARGE], [call("numpy", "power", E1, E2)]),
    "a power of a scalar": ([np.int64(3), LARGE], [call("operator", "pow", E1, E2)]),
    "a power of an array": ([np.array([3]), LARGE], [call("operator", "pow", E1, E2)]),
    "a power of objects": ([np.full(3, 1 << 62)], [call("numpy", "power", E1, E1, dtype="O")]),
    "a power of a copy": (
        [np.full(3, 1 << 62), ">O"],
        [call("method", "astype", E1, E2), call("numpy", "power", E3, E3)],
    ),
    "a product of objects": ([np.full(1 << 20, 1 << 62)], [call("numpy", "prod", E1, None, "object")]),
    "large integers as objects": ([LARGE], [call("numpy", "full", (3,), E1)]),
    "a shift": ([1, 1 << 40], [call("operator", "lshift", E1, E2)]),
    "a number rounded to many digits": ([5, -(1 << 40)], [call("python", "round", E1, E2)]),
    "squares of squares": ([LARGE], [doubled("operator", "mul")]),
    "squares of squares by the op": ([LARGE], [doubled("op", "multiply")]),
    "text and text": (["text"], [doubled("operator", "add")]),
    "a list and a list": ([[1, 2]], [doubled("operator", "add")]),
    "a tuple and a tuple by the op": ([(1, 2)], [doubled("op", "add")]),
    "arrays of text": ([["text"]], [doubled("numpy", "add")]),
    "a repeated list": ([[1, 2], 1 << 40], [call("operator", "mul", E1, E2)]),
    "a list that a scalar repeats": ([[1, 2], np.int64(1 << 40)], [call("operator", "mul", E1, E2)]),
    "a list that is repeated by a number": ([1 << 40, [1, 2]], [call("operator", "mul", E1, E2)]),
    "text with a width": (["%999999999999d", 5], [call("operator", "mod", E1, E2)]),
    "a sum of a repeated element": (
        [np.ones(1)],
        [call("numpy", "broadcast_to", E1, (1 << 50,)), call("numpy", "sum", E2)],
    ),
    "a sum of a repeated element by ops": (
        [np.ones(1)],
        [call("op", "broadcast_to", E1, shape=(1 << 50,)), call("op", "sum", E2, axis=None, keepdims=False)],
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_call_of_a_program_from_a_file_is_endless(name, tmp_path):
    constants, calls = ENDLESS[name]
    encoder = Encoder()
    entries = [*(["constant", encoder.encoded(value)] for value in constants), *calls]
    count = len(constants) + sum(entry[1] if entry[0] == "loop" else 1 for entry in calls)
    loaded = ox.load_recording(write(tmp_path / "file", entries, [count], arrays=encoder.arrays))
    with pytest.raises(ox.StateError, match=r"found .*, expected (at most|numbers|one of numbers)"):
        loaded(X)


@pytest.mark.parametrize("shape", [(1 << 42,), (1 << 21, 1 << 21), (1 << 62, 1 << 62)])
@pytest.mark.parametrize("kind", ["numpy", "core", "op"])
def test_memory_that_is_not_there_is_an_error_of_the_call(kind, shape, tmp_path):
    calls = {
        "numpy": call("numpy", "ones", shape),
        "core": call("core", "scatter_into", None, E0, slice(0, 6), shape),
        "op": call("op", "scatter_add", E0, key=slice(0, 6), shape=shape),
    }
    loaded = ox.load_recording(write(tmp_path / "file", [calls[kind]], [1]))
    with pytest.raises((MemoryError, ValueError)):
        loaded(X)


def test_integers_of_a_program_from_a_file_are_exact(tmp_path):
    g = ox.record(lambda n: (n**7 << 40, divmod(-n, 7**30), n**-2, round(n, -5), "text" == "text"))
    g(12345678)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    for n in (98765432, -11, 1):
        assert loaded(n) == (n**7 << 40, divmod(-n, 7**30), n**-2, round(n, -5), True)


@pytest.mark.parametrize(
    ("entry", "shape", "dtype"),
    [
        (call("op", "multiply", E1, E1), [30, 30], "<f8"),
        (call("numpy", "exp", E1), [30, 30], "<f8"),
        (call("attribute", "T", E1), [30, 30], "<f8"),
        (call("op", "sum", E1, axis=None, keepdims=False), [], "<f8"),
        (call("op", "matmul", E1, E1), [30, 30], "<f8"),
        (call("operator", "getitem", E1, 2), [30], "<f8"),
        (call("method", "astype", E1, "f4"), [30, 30], "<f4"),
    ],
    ids=str,
)
def test_calls_of_constants_of_some_elements_are_folded(entry, shape, dtype, tmp_path):
    entries = [["constant", {"array": ["a", False]}], *reading(entry, 2, shape, dtype)]
    file = write(tmp_path / "file", entries, [3], arrays={"a": np.eye(30)})
    assert ox.load_recording(file).recordings[0].sizes()[1] == 1


def test_entries_are_counted_over_all_cases(tmp_path, monkeypatch):
    monkeypatch.setattr("oxigrad.recording.files.MOST_ENTRIES", 100)
    file = write(tmp_path / "file", [["loop", 30, [call("numpy", "exp", E0)]]], [1], cases=4)
    with pytest.raises(ox.StateError, match="more than"):
        ox.load_recording(file)


def test_a_file_has_a_bounded_number_of_cases(tmp_path):
    with pytest.raises(ox.StateError, match="at most 64"):
        ox.load_recording(write(tmp_path / "file", [call("numpy", "exp", E0)], [1], cases=65))


@pytest.mark.parametrize(
    "entries",
    [
        [call("builtins", "eval", E0)],
        [call("errstate", "raise:warn:ignore:warn:builtins:eval", E0)],
        [call("errstate", "raise:warn:ignore:warn:numpy:add", E0)],
        [call("errstate", "raise:warn:ignore:call:numpy:exp", E0)],
        [call("errstate", "raise:warn:ignore:warn:errstate:raise", E0)],
        [call("errstate", "numpy:exp", E0)],
        [call("numpy", "load", E0)],
        [call("numpy", "fromfile", E0)],
        [call("numpy", "__import__", E0)],
        [call("numpy", "frompyfunc", E0)],
        [call("scipy.special", "mathieu_cem", 1 << 40, 0.5, E0)],
        [call("scipy.special", "obl_cv", 1 << 40, 0.5, E0)],
        [call("scipy.special", "pro_ang1_cv", 0, 1 << 40, 0.5, 0.5, E0)],
        [call("scipy.special", "pbdv", 1e12, E0)],
        [call("numpy", "add.at", E0, 0, 1.0)],
        [call("numpy", "add")],
        [call("operator", "setitem", E0, 0)],
        [call("method", "tofile", E0, "x")],
        [call("method", "__class__", E0)],
        [call("attribute", "__dict__", E0)],
        [call("attribute", "base", E0)],
        [["call", "numpy", "exp", {"tuple": [{"entry": 10**6}]}, [], None, False]],
        [["call", "numpy", "exp", {"tuple": [{"float": "0x1p99999"}]}, [], None, False]],
        [["call", "numpy", "exp", {"tuple": [E0]}, [], [[-1], "<f8"], False]],
        [["call", "numpy", "exp", {"tuple": [E0]}, [], [[1], "O"], False]],
        [["check", 0, {"int": "9" * 500}]],
        [["constant", {"array": ["missing", False]}]],
        [["loop", 10**12, [call("numpy", "exp", E0)]]],
        [["unknown"]],
        [[]],
    ],
    ids=str,
)
def test_what_no_recording_has_is_refused(entries, tmp_path):
    with pytest.raises(ox.StateError):
        ox.load_recording(write(tmp_path / "file", entries, [len(entries)]))


def test_recordings_of_one_function_in_both_orders_are_told_apart(tmp_path):
    def f(x: Any) -> Any:
        return np.sum(x.T * 1.1) + np.sum(x, axis=0)

    g, rng = ox.record(f), np.random.default_rng(0)
    x = rng.normal(size=(40, 30)).astype(np.float32)
    for each in (x, np.asfortranarray(x)):
        g(each)
        g(each)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    y = rng.normal(size=(40, 30)).astype(np.float32)
    for each in (y, np.asfortranarray(y)):
        np.testing.assert_array_equal(loaded(each), f(each))


@pytest.mark.parametrize(
    "kind",
    [
        *({key: its for key, its in _KIND.items() if key != name} for name in _KIND),
        *(_KIND | changed for changed in ({"shape": (-6,)}, {"shape": 6}, {"dtype": "nothing"}, {"scalar": 1})),
        {"class": bool},
        {"class": "float"},
        _KIND | {"value": 1.0},
        [],
    ],
    ids=str,
)
def test_a_file_with_another_kind_of_argument_is_refused(kind, tmp_path):
    file = write(tmp_path / "file", [call("operator", "add", E0, E0)], [1], kind=kind)
    with pytest.raises(ox.StateError):
        ox.load_recording(file)
