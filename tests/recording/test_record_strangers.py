"""Files of strangers: each crafted file is refused with `StateError`, or does no more than to compute its results."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad.recording.encoding import Encoder
from oxigrad.stepping.state import safetensors_io

X = np.linspace(-1.0, 1.0, 6)
E0 = {"entry": 0}


def encoded(value: Any) -> Any:
    return Encoder().encoded(value)


def call(kind: str, name: str, *args: Any, **named: Any) -> list[Any]:
    """An entry that calls a function of entries, which are dicts, and of plain values."""
    parts = [arg if isinstance(arg, dict) else encoded(arg) for arg in args]
    by_name = [[key, value if isinstance(value, dict) else encoded(value)] for key, value in named.items()]
    return ["call", kind, name, {"tuple": parts}, by_name, None, False]


def write(file: Any, entries: list[Any], outputs: list[int], *, cases: int = 1, arrays: Any = None) -> Any:
    """A file of one input, in six elements, and these entries after it."""
    case = {
        "arguments": {"tuple": [{"tuple": [encoded(0)]}, {"dict": []}]},
        "kinds": encoded([{"shape": (6,), "dtype": "<f8", "scalar": False}]),
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


def test_constants_are_folded_for_a_bounded_time(tmp_path):
    count = 20_000
    entries = [["constant", {"array": ["a", False]}]]
    entries += [call("numpy", "matmul", {"entry": at + 1}, {"entry": 1}) for at in range(count)]
    file = write(tmp_path / "file", entries, [count + 1], arrays={"a": np.eye(200) * 0.5})
    begin = time.process_time()
    loaded = ox.load_recording(file)
    assert time.process_time() - begin < 30.0  # of minutes
    assert loaded.recordings[0].sizes()[1] > 0  # the others are left to replays


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
