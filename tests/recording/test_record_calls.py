"""Recorded functions that raise, are interrupted, called by threads, differentiated, nested, and shown."""

from __future__ import annotations

import concurrent.futures
import contextlib
import inspect
import os
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import WEIGHT, X, agrees, equal

import oxigrad as ox
from oxigrad import xp

# --- calls that do not return -------------------------------------------------------------------------------------------


def test_an_exception_midway_is_the_functions():
    def f(x: Any) -> Any:
        y = xp.exp(x)
        if float(x[0]) > 1:
            raise KeyError("midway")
        return xp.linalg.inv(xp.reshape(y, (2, 2)))

    g, a = ox.record(f), np.array([0.0, 1.0, 2.0, 0.5])
    assert agrees(g, f, a)
    with pytest.raises(KeyError, match="midway"):
        g(a + 2)
    with pytest.raises(np.linalg.LinAlgError):
        g(np.zeros(4))
    assert agrees(g, f, a)


class Counter:
    """An object without arrays."""

    def __init__(self) -> None:
        self.count, self.name = 0, "name"


def test_a_first_call_that_raises_only_when_traced_runs_again_on_its_inputs_as_they_were():
    """The second run is the function's own, and sees nothing of the first one in what it reads by name or is given."""
    scale, seen, calls = np.ones(5), {"calls": [0]}, []
    names, nested, table, counter = list[str](), {"a": [{"b": ["text"]}]}, {"k": "v"}, Counter()

    def f(x: Any, state: list[Any]) -> Any:
        calls.append(1)
        scale[0] += 1.0
        state.append(x)
        seen["calls"].append(len(state))
        names.append("text")
        nested["a"][0]["b"].append("text")
        table.update(k="w", z="new")
        counter.count, counter.name = counter.count + 1, counter.name + "!"
        return np.frombuffer(memoryview(x)) * scale  # which takes no traced value

    def expected(x: Any) -> Any:
        return x * np.array([2.0, 1.0, 1.0, 1.0, 1.0])

    g, state = ox.record(f), []
    with pytest.warns(UserWarning, match="ran twice"):
        assert equal(g(X, state), expected(X))
    assert (names, nested, table) == (["text"], {"a": [{"b": ["text"] * 2}]}, {"k": "w", "z": "new"})
    assert (counter.count, counter.name) == (1, "name!")
    assert len(state) == 1
    assert state[0] is X
    assert seen == {"calls": [0, 1]}
    assert len(calls) == 1
    assert g.why is not None
    g(X, state)
    assert len(calls) == 2


class Weighted:
    def __init__(self, weight: Any) -> None:
        self.weight, self.calls = weight, 0


@ox.tree.register(fields=("weight",))
class Registered(Weighted):
    pass


def test_objects_of_a_users_class_as_arguments_are_refused_with_advice_or_registered():
    def f(model: Any, x: Any) -> Any:
        return model.weight * x

    g, one = ox.record(f), Weighted(np.ones(5))
    for at in range(3):
        one.weight = np.full(5, float(at))
        assert agrees(g, f, one, X)
    assert "argument 0 is a Weighted" in str(g.why)
    assert "ox.tree.register" in str(g.why)
    h = ox.record(f, audit="always")
    for at in range(3):
        assert agrees(h, f, Registered(np.full(5, float(at))), X)
        assert h.why is None
    by_name = ox.record(lambda x: one.weight * x, audit="always")
    for at in range(3):
        one.weight = np.full(5, float(at))
        assert equal(by_name(X), float(at) * X)
        assert by_name.why is None


def test_an_interrupt_leaves_the_recording_whole():
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # which a process started in the background ignores
    calls = []

    def f(x: Any) -> Any:
        return xp.exp(x) * 2

    def interrupted(x: Any) -> Any:
        if not calls:
            calls.append(1)
            signal.raise_signal(signal.SIGINT)
        return f(x)

    g = ox.record(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            g(X)
    finally:
        signal.signal(signal.SIGINT, before)
    assert agrees(g, f, X)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_replays():
    g = ox.record(lambda x: xp.exp(x) * WEIGHT)
    expected = g(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork while threads run
        child = os.fork()
    if child == 0:
        os._exit(0 if equal(g(X), expected) and g.why is None else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_two_threads_replay_and_record_at_once():
    f = ox.value_and_grad(lambda x, c: xp.sum(xp.exp(x) * c))
    g: Any = ox.record(f, limit=3)
    failed: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for at in range(100):
            x = rng.normal(size=2 + at % 3)
            if not agrees(g, f, x, float(at)):
                failed.append((seed, at))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (len(g.recordings), g._count) == (3, 3), g  # one for each length


def test_threads_that_call_first_at_once_record_each_kind_and_branch_once():
    start, wrong, threads = threading.Barrier(4), [], []

    def f(x: Any) -> Any:
        time.sleep(0.01)
        return xp.exp(x) if x[0] > 0 else x * WEIGHT[0]

    g: Any = ox.record(f, limit=4)

    def work() -> None:
        for at in range(24):
            x = np.full(2 + at // 2 % 2, 1.0 - at % 2 * 2.0)
            start.wait()
            if not agrees(g, f, x):
                wrong.append(at)

    for _ in range(4):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(g.recordings) == g._count == 4, g
    assert g.replays > 0


def test_a_function_that_waits_for_its_own_call_in_another_thread_goes_on():
    def f(x: Any, depth: Any) -> Any:
        if depth == "inner":
            return x * 2.0
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(g, X, "inner").result() + x

    g: Any = ox.record(f)
    for at in range(4):
        assert equal(g(X + at, "outer"), X * 2.0 + (X + at))


# --- composition ---------------------------------------------------------------------------------------------------------


def loss(x: Any, c: Any = 2.0) -> Any:
    return xp.sum(xp.tanh(x * c) ** 2) + xp.max(x) * c


TRANSFORMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "grad": ox.grad,
    "value_and_grad": ox.value_and_grad,
    "both arguments": lambda f: ox.value_and_grad(f, argnums=(0, 1)),
    "hessian": ox.hessian,
    "jvp": lambda f: lambda x, c: ox.jvp(f, (x, c), (xp.ones_like(x), 1.0)),
    "vjp": lambda f: lambda x, c: ox.vjp(f, x, c)[1](1.5),
    "vmap": lambda f: lambda x, c: ox.vmap(f, in_axes=(0, None))(xp.stack([x, x * 2]), c),
    "vmap grad": lambda f: lambda x, c: ox.vmap(ox.grad(f), in_axes=(0, None))(xp.stack([x, x * 2]), c),
    "jacobian": lambda f: ox.jacobian(lambda x, c: xp.exp(x) * f(x, c)),
    "checkpoint": lambda f: ox.grad(ox.checkpoint(f)),
    "hvp": lambda f: lambda x, c: ox.hvp(lambda x: f(x, c), (x,), (x,)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_recordings_of_transforms_give_their_bits(name):
    f = TRANSFORMS[name](loss)
    g = ox.record(f)
    for at in range(3):
        assert agrees(g, f, X + at, 2.0 + at)
    assert g.why is None, g.why
    assert len(g.recordings) == 1


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_recordings_give_their_bits(name):
    g = ox.record(loss)
    g(X, 2.0)
    f, h = TRANSFORMS[name](loss), TRANSFORMS[name](g)
    for at in range(2):
        assert agrees(h, f, X + at, 2.0 + at)
    assert g(X, 2.0) == loss(X, 2.0)


def test_a_recording_inside_of_a_recording_is_part_of_it():
    inner = ox.record(loss)
    f, g = (lambda x: loss(x) * 2), ox.record(lambda x: inner(x) * 2)
    for at in range(3):
        assert agrees(g, f, X + at)
    assert g.why is None, g.why


def test_recursion():
    def power(x: Any, n: int) -> Any:
        return x if n == 0 else power(x, n - 1) * x

    g = ox.record(power)
    for n in (3, 3, 4, 3):
        assert agrees(g, power, X, n)


def test_recursion_by_its_own_recorded_name():
    namespace: dict[str, Any] = {}

    def factorial(x: Any, n: int) -> Any:
        return x if n == 0 else namespace["g"](x, n - 1) * n

    namespace["g"] = ox.record(factorial)
    for _ in range(3):
        assert np.array_equal(namespace["g"](X, 4), X * 24)


def test_the_end_of_the_stack_leaves_recording_on():
    """An error may be raised at any call, those of the recording itself included: functions are recorded after it as before."""

    def descend(depth: int) -> None:
        if depth:
            descend(depth - 1)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a call may run twice
                ox.record(lambda x: xp.exp(x) * 2)(X)

    limit, here, before = sys.getrecursionlimit(), len(inspect.stack(0)), sys.gettrace()
    for left in range(80):  # frames that are left for the call
        sys.setrecursionlimit(here + 100)
        try:
            with contextlib.suppress(RecursionError):
                descend(max(0, 100 - left))
        finally:
            sys.setrecursionlimit(limit)
    assert sys.gettrace() is before
    g = ox.record(lambda x: xp.exp(x) * 2)
    for _ in range(2):
        g(X)
    assert len(g.recordings) == g.replays == 1


def test_scalars():
    def f(x: float, y: float) -> float:
        return xp.sin(x) * y + x**3 / y - xp.exp(-x)

    h = ox.value_and_grad(f, argnums=(0, 1))
    g = ox.record(h)
    for at in range(4):
        assert agrees(g, h, 0.3 + at, 1.5 - at)
    assert g.why is None, g.why


def test_a_division_by_zero_raises_as_pythons_does():
    g = ox.record(lambda x, y: x / y)
    assert g(1.0, 2.0) == 0.5
    assert g(3.0, 2.0) == 1.5
    with pytest.raises(ZeroDivisionError):
        g(1.0, 0.0)


# --- what it shows -------------------------------------------------------------------------------------------------------


def test_repr_and_the_printed_program():
    g = ox.record(lambda x: xp.exp(x) * xp.exp(x) + xp.sin(x) * 0.0 * 2)
    g(X)
    g(X)
    text = repr(g)
    assert "1 recording, 1 replay" in text
    assert "float64[5]" in text
    (program,) = g.recordings
    assert program.printed(False).count("exp(") == 2
    assert program.printed(True).count("exp(") == 1
    assert program.printed(True).endswith(f"return v{program.printed(True).count(chr(10)) - 1}")


def test_a_recorded_function_looks_like_the_function():
    def f(x: Any) -> Any:
        """Doubles."""
        return x * 2

    g = ox.record(f)
    named: Any = g
    assert (named.__name__, g.__doc__, g.__wrapped__) == ("f", "Doubles.", f)
    assert ox.record(g) is g

    class Layer:
        call = g

    assert isinstance(Layer().call, types.MethodType)


@pytest.mark.parametrize(("given", "error"), [((3,), TypeError), ((abs, -1), ValueError)])
def test_bad_arguments_are_refused(given, error):
    with pytest.raises(error, match="record: "):
        ox.record(given[0], limit=given[1] if len(given) > 1 else 8)


@pytest.mark.parametrize("f", [(_ for _ in ()).__class__], ids=["generator"])
def test_generators_are_refused(f):
    def generator(x: Any) -> Any:
        yield x

    with pytest.raises(TypeError, match="generator"):
        ox.record(generator)


def test_floating_point_errors_that_raise_do():
    g = ox.record(lambda x: x / (x - 1))
    assert np.isfinite(g(X)).all()
    g(X)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        g(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))


def test_nan_is_searched_for_where_that_is_asked():
    g = ox.record(ox.grad(lambda x: xp.sum(xp.sqrt(x))))
    g(X)
    with ox.debug_nans(), np.errstate(all="ignore"), pytest.raises(ox.NonFiniteError):
        g(-X)
    assert np.isfinite(g(X)).all()


@pytest.mark.parametrize("name", ["dawsn", "airy", "ber", "ellipkm1", "exp1", "fresnel", "spence"])
def test_ufuncs_of_scipy_are_recorded(name: str) -> None:
    special = pytest.importorskip("scipy.special")
    if not isinstance(getattr(special, name), np.ufunc):
        pytest.skip("with SCIPY_ARRAY_API=1 it is a function that converts arrays")
    of_scipy, x = getattr(xp.special, name), np.array([0.1, 0.5, 0.9])

    def function(x: Any) -> Any:
        result = of_scipy(x)
        return result[0] if isinstance(result, tuple) else result

    for f, points in (
        (lambda x: function(x) * 2.0, (x, 0.9 * x, 0.8 * x)),
        (ox.grad(lambda x: xp.sum(x * function(x))), (x, 0.9 * x, 0.8 * x)),
        (lambda x: function(x) * 2.0, (0.5, 0.25, 0.75)),
    ):
        g = ox.record(f)
        assert all(agrees(g, f, point) for point in points)
        assert g.why is None


def test_a_function_of_whole_arrays_in_host_memory_is_refused_with_its_reason() -> None:
    pytest.importorskip("scipy")
    g = ox.record(lambda x: xp.ndimage.gaussian_filter(x, 1.0))
    with pytest.warns(UserWarning, match="ran twice"):
        assert agrees(g, xp_filter, X) and agrees(g, xp_filter, 2.0 * X)
    assert "SciPy computes it" in str(g.why)


def xp_filter(x: Any) -> Any:
    return xp.ndimage.gaussian_filter(x, 1.0)


# --- audits --------------------------------------------------------------------------------------------------------------


def test_other_threads_replay_while_one_audits():
    waits, goes_on = threading.Event(), threading.Event()

    class Switch:
        is_on = False

    def f(x: Any) -> Any:
        if Switch.is_on:
            waits.set()
            assert goes_on.wait(60.0)
        return xp.sum(x * WEIGHT)

    g: Any = ox.record(f)
    g(X)
    Switch.is_on, results = True, []
    thread = threading.Thread(target=lambda: results.append(g(X + 1.0)))
    thread.start()
    assert waits.wait(60.0)  # in the function, at the second call
    other = g(X + 2.0)
    assert g.why is None
    Switch.is_on = False
    goes_on.set()
    thread.join()
    assert equal(other, f(X + 2.0))
    assert equal(results, [f(X + 1.0)])
    assert (len(g.recordings), g.replays) == (1, 2), g


def test_arguments_of_the_first_call_are_audited_by_the_schedule_and_the_first_others_at_once(monkeypatch: Any):
    calls, audited = 0, list[int]()
    g = ox.record(lambda x: xp.sum(xp.exp(x) * x))
    itself = type(g)._itself

    def noted(*args: Any) -> Any:
        audited.append(calls)
        return itself(*args)

    monkeypatch.setattr(type(g), "_itself", noted)
    for _ in range(40):
        calls += 1
        g(X)
    assert audited == [2, 4, 8, 16, 32]
    for _ in range(29):
        calls += 1
        g(X + 1.0)
    assert audited == [2, 4, 8, 16, 32, 41, 64]
