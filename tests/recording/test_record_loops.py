"""Loops of a function that were recorded as the calls that it made: found, printed and saved once, with the bits of each repetition."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_record import agrees, equal

import oxigrad as ox
from oxigrad import xp
from oxigrad.recording.program.encoding import rolled, unrolled
from oxigrad.step.state import safetensors_io

INPUTS = np.linspace(-1.0, 1.0, 240).reshape(60, 4)


def pendulum(steps: int) -> Any:
    def f(angle: Any, length: Any) -> Any:
        speed = total = 0.0
        for _ in range(steps):
            speed = speed - 0.01 * 9.81 / length * xp.sin(angle)
            angle = angle + 0.01 * speed
            total = total + angle * angle
        return total

    return ox.value_and_grad(f, argnums=(0, 1))


def recurrent(steps: int) -> Any:
    def f(state: Any, inner: Any, outer: Any) -> Any:
        for step in range(steps):
            state = xp.tanh(state @ inner + INPUTS[step] @ outer)
        return xp.sum(state * state)

    return ox.value_and_grad(f, argnums=(0, 1, 2))


def branching(steps: int) -> Any:
    def f(x: Any) -> Any:
        for step in range(steps):
            x = x * 0.5 if x > 0.5**step else x * 1.5 + float(step)
        return x

    return f


def args(name: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    arrays = (rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(4, 3)))
    return {"pendulum": (0.3, 2.0), "recurrent": arrays, "branching": (0.7,)}[name]


FUNCTIONS = {"pendulum": pendulum, "recurrent": recurrent, "branching": branching}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_longer_loop_prints_as_many_lines(name):
    def lines(steps: int) -> list[str]:
        g = ox.record(FUNCTIONS[name](steps))
        g(*args(name))
        (program,) = g.recordings
        assert program.printed(False, "loops") == program.printed(True, "dead")
        return program.printed(True, "loops").splitlines()

    short, long = lines(20), lines(60)
    assert len(short) == len(long)
    assert sum(line.startswith("for k in range(") for line in long) >= 1
    assert "loop" not in repr(ox.record(np.sin))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_loops_has_its_bits_from_a_file_too(name, tmp_path):
    def saved(steps: int) -> tuple[Any, str]:
        f = FUNCTIONS[name](steps)
        g = ox.record(f)
        for _ in range(3):
            assert agrees(g, f, *args(name))
        assert g.why is None
        assert "loop" in repr(g)
        g.save(tmp_path / "file")
        loaded = ox.load_recording(tmp_path / "file")
        assert equal(loaded(*args(name)), f(*args(name)))
        assert loaded.recordings[0].printed(True, "loops").count("\n") <= g.recordings[0].printed(True, "loops").count(
            "\n"
        )
        return f, safetensors_io.read(tmp_path / "file")[1]["recording"]

    (_, short), (_, long) = saved(20), saved(60)
    assert len(json.loads(long)["cases"][0]["entries"]) == len(json.loads(short)["cases"][0]["entries"])
    assert len(long) < 2 * len(short)


def test_a_file_without_loops_loads(tmp_path):
    """Files of version 1 state each repetition."""
    f = pendulum(20)
    g = ox.record(f)
    g(*args("pendulum"))
    g.save(tmp_path / "file")
    arrays, text = safetensors_io.read(tmp_path / "file")
    stated = json.loads(text["recording"])
    stated["version"] = 1
    for case in stated["cases"]:
        case["entries"] = unrolled(case["entries"], 1 << 20)
        assert not any(entry[0] == "loop" for entry in case["entries"])
    safetensors_io.write(tmp_path / "file", arrays or {"empty": np.zeros(1)}, {"recording": json.dumps(stated)})
    assert equal(ox.load_recording(tmp_path / "file")(*args("pendulum")), f(*args("pendulum")))


OPS = {
    "sum": lambda x, y: x + y,
    "product": lambda x, y: x * y,
    "difference": lambda x, y: x - 0.5 * y,
    "sine": lambda x, _: xp.sin(x),
    "larger": lambda x, y: x if x > y else y + 1.0,
}
BODIES = st.lists(st.tuples(st.sampled_from(sorted(OPS)), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6)


@settings(deadline=None)
@given(body=BODIES, steps=st.integers(1, 24), numbers=st.tuples(st.floats(-1, 1), st.floats(-1, 1)))
@pytest.mark.slow
def test_any_loop_has_its_bits(body, steps, numbers, tmp_path_factory):
    def f(x: Any, y: Any) -> Any:
        values = [x, y]
        for _ in range(steps):
            for name, one, other in body:
                values.append(OPS[name](values[-1 - one % len(values)], values[-1 - other % len(values)]))
        return values[-1]

    file = tmp_path_factory.mktemp("loops") / "file"
    g = ox.record(f)
    assert agrees(g, f, *numbers)
    g.save(file)
    assert equal(ox.load_recording(file)(*numbers), f(*numbers))


# --- replays of loops ------------------------------------------------------------------------------------------------------


def nested(steps: int) -> Any:
    """A loop in a loop: oscillators of which each is coupled to the one before."""

    def f(x: Any, rate: Any) -> Any:
        states = [x, x * 0.5, x * 0.25]
        for _ in range(steps):
            for at in range(3):
                states[at] = states[at] + 0.1 * xp.sin(states[at - 1]) - rate * states[at]
        return states[0] * states[1] + states[2]

    return ox.value_and_grad(f, argnums=(0, 1))


def accumulated(steps: int) -> Any:
    """Gradients of a weight that each step reads are added up from the last step to the first."""

    def f(x: Any, weight: Any) -> Any:
        total = 0.0
        for step in range(steps):
            x = xp.tanh(x * weight) + float(step % 3)
            total = total + x * weight
        return total

    return ox.value_and_grad(f, argnums=(0, 1))


def guarded(steps: int) -> Any:
    """A guard in each step, on a value that the next one reads."""

    def f(x: Any, rate: Any) -> Any:
        for _ in range(steps):
            x = x + rate * xp.sin(x) if x < 3.0 else x - rate
        return x

    return f


REPLAYED = {"pendulum": pendulum, "nested": nested, "accumulated": accumulated, "guarded": guarded}
# Lengths around those of repetitions that are put together, and with a rest.
LENGTHS = [3, 4, 7, 31, 64, 65, 100]


@pytest.mark.parametrize("steps", LENGTHS)
@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array])
@pytest.mark.parametrize("name", REPLAYED)
def test_a_replay_of_a_loop_has_the_bits_of_each_step(name, kind, steps):
    f = REPLAYED[name](steps)
    g = ox.record(f)
    for x, y in [(0.3, 0.2), (0.3, 0.2), (-0.7, 0.11), (1e-9, 0.9)]:
        assert agrees(g, f, kind(x), kind(y))
    if name != "guarded":  # where steps come out otherwise
        assert g.why is None
        assert len(g.recordings) == 1


@pytest.mark.parametrize("name", [*REPLAYED, "recurrent"])
def test_a_replay_holds_the_steps_of_a_loop_once(name):
    def steps_of(count: int) -> tuple[int, int]:
        f = (FUNCTIONS | REPLAYED)[name](count)
        g = ox.record(f)
        given = args("recurrent") if name == "recurrent" else (0.3, 0.2)
        for _ in range(3):
            assert agrees(g, f, *given)
        (program,) = g.recordings
        return program.steps()

    (short, few), (long, many) = steps_of(30), steps_of(60)
    if name == "guarded":
        assert long > short + 29
    else:
        # A run of all calls, whose loops are stated once in the core; arrays that the function captures are made first.
        assert long == short == (2 if name == "recurrent" else 1)
    assert many <= few + 1


def test_a_guard_that_fails_in_a_late_step_is_seen():
    f = guarded(50)
    g = ox.record(f)
    for x in (0.1, 0.1, 0.1001, 1.5, 1.5, 1.6, 0.1, 2.9):
        assert agrees(g, f, x, 0.05)
    assert len(g.recordings) > 1


def test_a_late_step_raises_or_warns_as_that_of_the_function():
    def f(x: Any) -> Any:
        total = 0.0
        for step in range(100):
            total = total + x / (x - float(step))
        return total

    for kind in (float, np.float64):
        g = ox.record(f)
        for x in (0.5, 0.5, 99.5):
            assert agrees(g, f, kind(x))
        if kind is float:
            with pytest.raises(ZeroDivisionError):
                g(97.0)
        else:
            with np.errstate(divide="ignore"):
                assert agrees(g, f, kind(97.0))
            with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
                g(kind(97.0))
        assert agrees(g, f, kind(0.25))
        assert g.why is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from("abc"), parts, max_size=2),
    max_leaves=5,
)


@example(before=[], body=[[[True], [1], [True]]])
@given(
    before=st.lists(JSON.map(lambda value: ["a", value]), max_size=3),
    body=st.lists(st.lists(JSON, min_size=3, max_size=3), min_size=1, max_size=3),
)
@pytest.mark.slow
def test_rolling_a_file_is_undone(before, body):
    """Each entry of a body is a list of its values in three repetitions."""
    repetitions = [["b", values[at]] for at in range(3) for values in body]
    stated = [*before, *repetitions, ["c"]]
    items = rolled(stated, [(len(before), len(body), 3)])
    assert len(items) == len(before) + 2
    again = unrolled(items, len(stated))
    assert json.dumps(again, sort_keys=True) == json.dumps(stated, sort_keys=True)  # which tells True from 1
    with pytest.raises(ValueError, match="more than"):
        unrolled(items, len(before) + 3 * len(body) - 1)
