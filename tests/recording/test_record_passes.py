"""Passes over programs, as they print, and the proof that a recording gives the bits of its function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import X, agrees, equal

import oxigrad as ox
from oxigrad import xp
from oxigrad.recording import cases
from oxigrad.recording.program.replay import replay_of

WEIGHT = np.linspace(1.0, 2.0, 5)
LARGE = np.linspace(1.0, 2.0, 300)


def scaled(x: Any) -> Any:
    return x * xp.exp(WEIGHT * 2.0) + xp.sin(WEIGHT) + 0.0 * xp.exp(x)


# --- passes --------------------------------------------------------------------------------------------------------------


def test_each_pass_prints_before_and_after():
    def f(x: Any) -> Any:
        xp.tan(x)  # which nothing needs
        return xp.exp(x) * xp.exp(x)

    g = ox.record(f)
    g(X)
    (program,) = g.recordings

    def counts(after: bool, by: str) -> tuple[int, int]:
        text = program.printed(after, by)
        return text.count("= exp("), text.count("= tan(")

    assert counts(False, "common") == (2, 1)
    assert counts(True, "common") == (1, 1)
    assert counts(False, "dead") == (1, 1)
    assert counts(True, "dead") == (1, 0)
    assert program.printed(False, "identities") == program.printed(False)
    assert program.printed(True, "identities") == program.printed(False, "common")
    assert program.printed(True, "dead") == program.printed(True)
    assert program.printed(False, "constants") == program.printed(True, "common")
    assert program.printed(True, "constants") == program.printed(False, "dead")
    assert program.printed(False, "loops") == program.printed(True, "dead") == program.printed(True, "loops")
    with pytest.raises(ValueError, match=r"the pass .fusion., expected one of"):
        program.printed(True, "fusion")


COLUMN, ROW = np.linspace(-1.0, 1.0, 3)[:, None], np.linspace(1.0, 2.0, 4)
# A function of a column and a row, and the number of calls that repeat an array, as recorded and as replayed.
REPEATED = {
    "read by a product": (lambda x, y: xp.broadcast_to(x * 2.0, (3, 4)) * y, 1, 0),
    "read by several": (lambda x, y: (t := xp.broadcast_to(xp.sin(x), (3, 4))) * y - t / (y + 9.0), 1, 0),
    "read by a product with a column": (lambda x, y: (xp.broadcast_to(x * 2.0, (3, 4)) * x) @ y, 1, 1),
    "both of a product": (lambda x, y: xp.broadcast_to(x * 2.0, (2, 3, 4)) * xp.broadcast_to(y, (2, 3, 4)), 2, 2),
    "read by another function": (lambda x, y: xp.exp(xp.broadcast_to(x * 2.0, (3, 4))) * y, 1, 1),
    "read by a sum too": (lambda x, y: (t := xp.broadcast_to(x * 2.0, (3, 4))) * y + xp.sum(t), 1, 1),
    "of another dtype": (lambda x, y: xp.broadcast_to(xp.astype(x, xp.float32), (3, 4)) * y, 1, 1),
    "beside an array in another order": (
        lambda x, y: xp.sum(
            xp.broadcast_to(x * 2.0, (3, 4)) * xp.permute_dims(xp.reshape(x * y, (4, 3)), (1, 0)), axis=1
        ),
        1,
        1,
    ),
    "a result": (lambda x, y: (t := xp.broadcast_to(x * 2.0, (3, 4)), t * y), 1, 1),
    "a result of a product": (lambda x, y: xp.broadcast_to(x * 2.0, (3, 4)) + y, 1, 0),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 300], ids=["short", "long"])
def test_arrays_are_not_repeated_for_calls_that_repeat_them(name, dtype, count):
    own, before, after = REPEATED[name]
    if name == "of another dtype" and dtype == np.float32:
        before, after = 1, 0

    def f(x: Any, y: Any) -> Any:
        for _ in range(count):
            x = x + 0.0
        return own(x, y)

    g = ox.record(f)
    for x, y in ((COLUMN, ROW), (COLUMN, ROW), (2.0 * COLUMN, -ROW), (0.0 * COLUMN, np.inf * ROW)):
        with np.errstate(invalid="ignore"):
            assert agrees(g, f, x.astype(dtype), y.astype(dtype))
    (program,) = g.recordings
    assert g.why is None
    found = [program.printed(is_after, "identities").count("broadcast_to") for is_after in (False, True)]
    assert found == [before, after]


SHAPED = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
IDENTITIES = {
    "a shape as it is": (lambda x: xp.exp(xp.reshape(x, (2, 3))) * 2.0, 1, 0),
    "a shape twice": (lambda x: xp.exp(xp.reshape(xp.reshape(x * 2.0, (3, 2)), (3, 2))), 2, 1),
    "there and back": (lambda x: xp.exp(xp.reshape(xp.reshape(x * 2.0, (3, 2)), (2, 3))), 2, 2),
    "repeated to itself": (lambda x: xp.exp(xp.broadcast_to(x * 2.0, (2, 3))), 1, 0),
    "a result": (lambda x: xp.reshape(xp.reshape(x, (2, 3)), (2, 3)), 2, 1),
    "two results": (lambda x: (xp.reshape(x, (2, 3)), xp.reshape(x, (2, 3))), 2, 2),
    "of other layout": (lambda x: xp.sum(xp.reshape(xp.permute_dims(x * 2.0, (1, 0)), (3, 2)) @ x), 1, 0),
    "a branch": (lambda x: x * 2.0 if xp.sum(xp.reshape(x, (2, 3))) > 0 else -x, 1, 0),
    "two shapes, one result": (lambda x: xp.reshape(x, (3, 2)) + xp.reshape(xp.reshape(x, (3, 2)), (3, 2)), 3, 2),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_calls_that_give_their_argument_are_dropped_but_for_results(name):
    f, recorded, replayed = IDENTITIES[name]
    g = ox.record(f)
    for scale in (1.0, 1.0, 2.0):
        assert agrees(g, f, SHAPED * scale)

    def count(text: str) -> int:
        return text.count("= reshape(") + text.count("= broadcast_to(")

    program = g.recordings[0]
    assert (count(program.printed(False)), count(program.printed(True))) == (recorded, replayed)
    results = g(SHAPED)
    for one, other in ((results[0], results[1]),) if isinstance(results, tuple) else ((results, SHAPED),):
        assert one is not other


def test_calls_of_constants_are_computed_once_in_a_loaded_recording(tmp_path):
    g = ox.record(scaled)
    g(X)
    assert "sin(" in g.recordings[0].printed(True)
    g.save(tmp_path / "scaled.safetensors")
    loaded = ox.load_recording(tmp_path / "scaled.safetensors")
    (program,) = loaded.recordings
    assert "sin(" in program.printed(False, "constants")
    assert "sin(" not in program.printed(True)
    for x in (X, X + 1.0):
        assert agrees(loaded, scaled, x)


def test_results_are_no_shared_constants(tmp_path):
    """A caller may write to a result, and to what it is a view of."""

    def f(x: Any) -> Any:
        return xp.exp(WEIGHT), xp.reshape(xp.exp(WEIGHT * 2.0), (5, 1)), x

    g = ox.record(f)
    g(X)
    g.save(tmp_path / "f.safetensors")
    loaded = ox.load_recording(tmp_path / "f.safetensors")
    for _ in range(3):
        result = loaded(X)
        assert equal(result, f(X))
        for leaf in result[:2]:
            leaf[...] = 0.0


def test_a_constant_that_takes_more_memory_is_not_folded(tmp_path):
    def f(x: Any) -> Any:
        return x * xp.sum(xp.reshape(LARGE, (300, 1)) * LARGE)

    g = ox.record(f)
    g(X)
    g.save(tmp_path / "f.safetensors")
    loaded = ox.load_recording(tmp_path / "f.safetensors")
    assert "multiply" in loaded.recordings[0].printed(True) or "mul" in loaded.recordings[0].printed(True)
    assert agrees(loaded, f, X)


# --- the proof -------------------------------------------------------------------------------------------------------------


def wrong(entries: Any, outputs: Any) -> Any:
    """A program in which a constant has another value."""
    changed = []
    for entry in entries:
        is_number = entry.kind == "constant" and isinstance(entry.value, float)
        names = ("target", "function", "args", "named", "line", "type", "is_float")
        named = {name: getattr(entry, name) for name in names}
        copy = cases.Entry(entry.kind, value=entry.value + 1.0 if is_number else entry.value, **named)
        changed.append(copy)
    return replay_of(changed, outputs)


@pytest.mark.parametrize("size", [5, 1 << 17])
def test_a_wrong_replay_is_never_returned(size, monkeypatch, tmp_path):
    def f(x: Any) -> Any:
        return x * 3.0 + x

    monkeypatch.setattr(cases, "replay_of", wrong)
    g, x = ox.record(f), np.linspace(0.0, 1.0, size)
    for at in range(3):
        assert agrees(g, f, x + at)
    assert g.recordings == []
    assert g.replays == 1
    assert g.why is not None
    assert "the same bits" in str(g.why)
    with pytest.raises(ox.StateError, match="no recording"):
        g.save(tmp_path / "f.safetensors")


def test_a_wrong_replay_is_never_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(cases, "replay_of", wrong)
    g = ox.record(lambda x: x * 3.0)
    g(X)
    with pytest.raises(ox.StateError, match="the same bits"):
        g.save(tmp_path / "f.safetensors")
    assert g.recordings == []


def test_the_proof_is_of_the_first_call_whatever_became_of_its_arrays():
    x, y = X.copy(), X[::-1]
    g = ox.record(lambda x, y: (x * 2.0, xp.exp(y)))
    first = g(x, y)
    x[...] = 100.0
    first[0][...] = -1.0
    assert equal(g(X, y), (X * 2.0, first[1]))
    assert g.why is None
    assert g.replays == 1
