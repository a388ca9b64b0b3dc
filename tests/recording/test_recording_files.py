"""Recordings as files: what another process replays, and what a damaged or hostile file does: `StateError`, and nothing else."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_record import Model, equal

import oxigrad as ox
from oxigrad import tree, xp
from oxigrad.recording import targets
from oxigrad.step.state import safetensors_io

X = np.linspace(0.1, 0.9, 6)
WEIGHT = np.arange(6.0)
COMPLEX = WEIGHT + 1j * np.cos(WEIGHT)
MATRIX = np.outer(COMPLEX, COMPLEX[::-1]).T


def net(x: Any, params: dict[str, Any], c: float) -> Any:
    hidden = xp.tanh(xp.reshape(x, (2, 3)) @ params["w"])[:, ::-1]
    return {"loss": xp.sum(hidden * c) + xp.sum(x * WEIGHT), "hidden": (hidden, 3)}


ARGS = (X, {"w": np.full((3, 2), 0.3)}, 1.5)

FUNCTIONS = {
    "function": net,
    "gradient": ox.grad(lambda x, params, c: net(x, params, c)["loss"], argnums=(0, 1)),
    "numpy": lambda x, params, c: np.linalg.norm(np.where(x > 0.5, x, c)) + x.std() + params["w"].T.sum(axis=0),
    "constants": lambda x, params, c: [np.ones(3), x.astype(np.float32), xp.stack([x, x], axis=-1)[..., 0] * c],
    "kinds": lambda x, params, c: (x > c, xp.argsort(x), (x * 2j), None, "text", x.shape),
    "complex": lambda x, params, c: [
        x * COMPLEX * (2 - 1j),
        x[:2] * COMPLEX.astype(np.complex64)[1:3] * np.complex64(1j),
        np.abs(x * COMPLEX[::-1]) + xp.real(np.conj(MATRIX) @ MATRIX.T @ x),
        xp.zeros((0, 2), dtype=np.complex128) + MATRIX[:0, :2],
    ],
    "gradient of complex": ox.grad(lambda x, params, c: xp.sum(xp.abs(xp.fft.fft(x) * COMPLEX - c) ** 2)),
    "branch": lambda x, params, c: x if c > 1 else -x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loaded_recording_gives_the_bits_of_the_function(name, tmp_path):
    f = FUNCTIONS[name]
    g = ox.record(f)
    g(*ARGS)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    for at in range(3):
        args = (X + at / 8, {"w": np.full((3, 2), 0.3 - at)}, 1.5 + at)
        assert equal(loaded(*args), f(*args))


def test_a_recording_is_bytes_too():
    g = ox.record(net)
    g(*ARGS)
    file = io.BytesIO()
    g.save(file)
    file.seek(0)
    assert equal(ox.load_recording(file)(*ARGS), net(*ARGS))
    with pytest.raises(ox.StateError, match="bytes that are no state"):
        ox.load_recording(io.BytesIO(file.getvalue()[:-9]))


def test_another_process_needs_no_source(tmp_path):
    g = ox.record(FUNCTIONS["gradient"])
    expected = g(*ARGS)
    g.save(tmp_path / "file")
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np, oxigrad as ox; g = ox.load_recording(sys.argv[1]); x = np.load(sys.argv[2]);"
        "result = g(x, {'w': np.full((3, 2), 0.3)}, 1.5); print(result[0].tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file"), str(tmp_path / "x.npy")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.strip() == expected[0].tobytes().hex()


def _windows(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, 7)


WIDE = np.random.default_rng(1).standard_normal((9, 14)).astype(np.float32)
LAYOUTS: dict[str, Any] = {
    "whole": WIDE,
    "one backwards": WIDE[0, ::-1],
    "one with gaps": WIDE[0, ::2],
    "one with large gaps": WIDE[:, 3],
    "rows backwards": WIDE[::-1],
    "rows and columns backwards": WIDE[::-1, ::-1],
    "columns": WIDE.T,
    "columns backwards": WIDE[:, ::-1].T,
    "every second column": WIDE[:, ::2],
    "every third row backwards": WIDE[::-3],
    "padded rows": WIDE[:, :11],
    "three axes": np.reshape(WIDE, (7, 9, 2)).transpose(1, 2, 0)[:, :, ::-2],
    "repeated rows": np.broadcast_to(WIDE[0], (5, 14)),
    "repeated columns": np.broadcast_to(WIDE[:, :1], (9, 6)),
    "windows": _windows(WIDE[0]),
    "a field": np.rec.fromarrays([np.zeros(9, np.int8), WIDE[:, 0]]).f1,
    "no elements": WIDE[:0, ::-1],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_captured_arrays_of_every_layout_give_the_bits_of_the_function(name, tmp_path):
    held = LAYOUTS[name]

    def f(x: Any) -> Any:
        return {
            "sums": [xp.sum(held), xp.sum(xp.tanh(held) * x), held.sum(axis=0), held.sum(axis=-1)],
            "products": np.tanh(held * x) @ np.cos(held.reshape(-1)[: held.shape[-1]]) if held.size else None,
            "held": held,
        }

    g = ox.record(f)
    for x in (0.3, 0.7):
        g(x)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    for x in (0.3, 0.7, 1.9):
        found, expected = loaded(x), f(x)
        assert equal(found, expected)
        assert found["held"] is not held and found["held"].flags.writeable


def test_the_memory_of_strided_arrays_is_bounded(tmp_path):
    memory = np.zeros((40, 50_000))
    memory[:, 0] = np.arange(40.0)
    held = memory[:, 0]
    g = ox.record(lambda x: held * x)
    g(2.0)
    g.save(tmp_path / "file")
    assert (tmp_path / "file").stat().st_size < 10_000
    assert equal(ox.load_recording(tmp_path / "file")(3.0), held * 3.0)


def test_integers_that_are_constants_are_compared_by_value_and_class(tmp_path):
    def f(n: Any, x: Any) -> Any:
        json.dumps(n)  # which takes no traced integers
        return xp.sin(x) * n

    g = ox.record(f)
    with pytest.warns(UserWarning, match="ran twice"):
        g(1, X)
    for n in (1, 2, 1):
        g(n, X)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    for n in (1, 2):
        assert equal(loaded(n, 2.0 * X), f(n, 2.0 * X))
    for other in (6, True, 2.0, np.int64(2)):
        with pytest.raises(ox.RuleError, match="argument 0: found .*, expected"):
            loaded(other, X)


def test_a_loaded_recording_is_differentiable(tmp_path):
    def f(x: Any) -> Any:
        return xp.sum(xp.exp(x) * WEIGHT)

    g = ox.record(f)
    g(X)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    assert equal(ox.grad(loaded)(X), ox.grad(f)(X))
    assert equal(ox.jvp(loaded, (X,), (X,)), ox.jvp(f, (X,), (X,)))


def test_a_loaded_recording_refuses_what_was_not_recorded(tmp_path):
    g = ox.record(FUNCTIONS["branch"])
    g(*ARGS)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    with pytest.raises(ox.RuleError, match="a branch that was not recorded"):
        loaded(X, ARGS[1], 0.5)
    with pytest.raises(ox.RuleError, match=r"argument 0: found float64\[5\], expected float64\[6\]"):
        loaded(X[:5], ARGS[1], 1.5)


def test_what_no_file_holds_is_refused_and_nothing_is_written(tmp_path):
    g = ox.record(lambda model: model(X))
    with pytest.raises(ox.StateError, match="no recording: call it once"):
        g.save(tmp_path / "file")
    g(Model(WEIGHT))
    with pytest.raises(ox.StateError, match="of Model; a file holds"):
        g.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The arrays and the text of a file."""
    tmp_path = tmp_path_factory.mktemp("whole")
    g = ox.record(FUNCTIONS["numpy"])
    g(*ARGS)
    g.save(tmp_path / "whole")
    arrays, text = safetensors_io.read(tmp_path / "whole")
    return arrays, text["recording"]


def _with_loop(count: Any, *entries: Any) -> Any:
    return lambda stated: stated["cases"][0]["entries"].append(["loop", count, [*entries]])


def _with_call(kind: str, name: str, *entries: int, **named: int) -> Any:
    args = {"tuple": [{"entry": entry} for entry in entries]}
    by_name = [[key, {"int": str(value)}] for key, value in named.items()]
    return lambda stated: stated["cases"][0]["entries"].append(["call", kind, name, args, by_name, None, False])


def _with_strides(changed: Any) -> Any:
    """A constant with other strides than those of its array, which is the first one of the file."""
    return lambda stated: stated["cases"][0]["entries"].append(["constant", {"strided": ["strided", changed([1, 3])]}])


DAMAGES: dict[str, Any] = {
    "a loop too long": _with_loop(1 << 40, ["check", 0, True]),
    "a loop of no repetitions": _with_loop(0, ["check", 0, True]),
    "a loop of a truth value": _with_loop(True, ["check", 0, True]),
    "a loop of a later id": _with_loop(2, ["check", {"steps": [0, 10**6]}, True]),
    "a loop of a negative id": _with_loop(2, ["check", {"steps": [0, -1]}, True]),
    "no argument of a method": _with_call("method", "sum"),
    "no argument of an attribute": _with_call("attribute", "T"),
    "two arguments of an attribute": _with_call("attribute", "T", 0, 0),
    "no argument of an operator": _with_call("operator", "add"),
    "one argument of an operator of two": _with_call("operator", "mul", 0),
    "two arguments of an operator of one": _with_call("operator", "neg", 0, 0),
    "an argument by name of an operator": _with_call("operator", "neg", 0, axis=0),
    "one argument of a product of matrices": _with_call("operator", "matmul", 0),
    "one argument of an op of two": _with_call("op", "multiply", 2),
    "three arguments of an op of two": _with_call("op", "multiply", 2, 2, 2),
    "two arguments of an op of one": _with_call("rule", "exp", 2, 2),
    "no argument of a reduction": _with_call("op", "sum", axis=0),
    "two arguments of a reduction": _with_call("op", "sum", 0, 0, axis=0),
    "no argument of any number": _with_call("op", "stack", axis=0),
    "strides out of bounds": _with_strides(lambda strides: [10**9] * len(strides)),
    "strides that are none": _with_strides(lambda strides: [0.5] * len(strides)),
    "too few strides": _with_strides(lambda strides: []),
    "kinds that are none": lambda stated: stated["cases"][0].update(kinds={"list": [None] * 3}),
    "a loop of half steps": _with_loop(2, ["check", {"steps": [0, 0.5]}, True]),
    "a loop of too few values": _with_loop(2, ["constant", {"each": [True]}]),
    "a loop in a loop": _with_loop(2, ["loop", 2, [["constant", True]]]),
    "a step outside of a loop": lambda stated: stated["cases"][0]["entries"].append(["check", {"steps": [0, 0]}, True]),
    "the format": lambda stated: stated.update(format="other"),
    "the version": lambda stated: stated.update(version=5),
    "a complex array that is missing": lambda stated: stated.update(complex=["missing"]),
    "a complex array without pairs": lambda stated: stated.update(complex=["constant.0"]),
    "complex arrays that are none": lambda stated: stated.update(complex=3),
    "no entries": lambda stated: stated["cases"][0].pop("entries"),
    "an unknown op": lambda stated: stated["cases"][0]["entries"].append(
        ["call", "op", "evil", {"tuple": []}, [], None, False]
    ),
    "a function of Python": lambda stated: stated["cases"][0]["entries"].append(
        ["call", "python", "eval", {"tuple": ["1"]}, [], None, False]
    ),
    "a module": lambda stated: stated["cases"][0]["entries"].append(
        ["call", "os", "system", {"tuple": ["true"]}, [], None, False]
    ),
    "a file": lambda stated: stated["cases"][0]["entries"].append(
        ["call", "numpy", "save", {"tuple": ["x", {"entry": 0}]}, [], None, False]
    ),
    "a later id": lambda stated: stated["cases"][0]["entries"].insert(0, ["check", 10**6, True]),
    "a negative id": lambda stated: stated["cases"][0]["outputs"].__setitem__(0, -1),
    "an output": lambda stated: stated["cases"][0]["outputs"].__setitem__(0, 10**6),
    "an input": lambda stated: stated["cases"][0]["entries"].append(["input"]),
    "a shape": lambda stated: stated["cases"][0]["entries"].append(
        ["call", "op", "exp", {"tuple": [{"entry": 0}]}, [], [[-1], "<f8"], False]
    ),
    "an array": lambda stated: stated["cases"][0]["entries"].append(["constant", {"array": ["missing", False]}]),
    "objects": lambda stated: stated["cases"][0]["entries"].append(["constant", {"dtype": ["O", False]}]),
    "an output argument": lambda stated: stated["cases"][0]["entries"].append(
        ["call", "numpy", "add", {"tuple": [{"entry": 0}, {"entry": 0}]}, [["out", {"entry": 0}]], None, False]
    ),
}


def _write(path: Any, arrays: dict[str, Any], stated: Any) -> None:
    safetensors_io.write(path, arrays or {"empty": np.zeros(1)}, {"recording": json.dumps(stated)})


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_refused(name, whole, tmp_path):
    arrays, stated = {**whole[0], "strided": np.zeros((3, 2))}, json.loads(whole[1])
    DAMAGES[name](stated)
    _write(tmp_path / "file", arrays, stated)
    with pytest.raises(ox.StateError, match="file: "):
        ox.load_recording(tmp_path / "file")


def test_a_file_without_a_recording_is_refused(tmp_path):
    safetensors_io.write(tmp_path / "file", {"w": X}, {})
    with pytest.raises(ox.StateError, match="no recording"):
        ox.load_recording(tmp_path / "file")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.floats(allow_nan=False)
    | st.sampled_from(["entry", "op", "add", "numpy", "<f8"]),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from(["entry", "tuple", "int", "array", "dtype"]), part, max_size=2)
    ),
    max_leaves=6,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Each item of nested lists and dicts, with what holds it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in ((value, key), *_places(part))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_of_a_file_is_refused_or_replayed(data, whole, tmp_path):
    arrays, stated = whole[0], json.loads(whole[1])
    places = _places(stated)
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        holder[key] = data.draw(JSON)
    _write(tmp_path / "file", arrays, stated)
    try:
        loaded = ox.load_recording(tmp_path / "file")
    except ox.StateError:
        return
    try:
        tree.leaves(loaded(*ARGS))
        repr(loaded)
        [program.printed(True) for program in loaded.recordings]
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError):
        return  # as the called functions raise


def test_targets_name_functions_that_compute_their_result_alone():
    for kind, name in [
        ("op", "add"),
        ("operator", "mul"),
        ("numpy", "sin"),
        ("numpy.linalg", "norm"),
        ("method", "sum"),
    ]:
        assert callable(targets.function_of(targets.Target(kind, name)))
    for kind, name in [
        ("numpy", "save"), ("numpy", "load"), ("numpy", "test"), ("numpy", "fromfile"), ("numpy", "__loader__"), ("numpy", "add.at"),
        ("numpy", "ndarray"), ("builtins", "eval"), ("python", "exec"), ("method", "tofile"), ("attribute", "base"), ("op", "call"),
        ("numpy", "vectorize"), ("numpy", "apply_along_axis"), ("numpy", "put"), ("numpy", "copyto"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match="expected one that a recording may call"):
            targets.function_of(targets.Target(kind, name))
