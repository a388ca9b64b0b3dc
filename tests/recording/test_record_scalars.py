"""Calls on scalars in recordings: one run of numbers, with the bits, classes and errors of the functions."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal

import oxigrad as ox
from oxigrad import _core, tree, xp

KINDS = {
    "float": float,
    "float64": np.float64,
    "float32": np.float32,
    "float64 of no dimensions": lambda x: np.array(x),
    "float32 of no dimensions": lambda x: np.array(x, dtype="f4"),
}


def pendulum(angle: Any, length: Any, steps: int = 30) -> Any:
    """The energy that a pendulum's angles add up to, by steps of 0.01 seconds."""
    speed = total = 0.0
    for _ in range(steps):
        speed = speed - 0.01 * 9.81 / length * xp.sin(angle)
        angle = angle + 0.01 * speed
        total = total + angle * angle / 2 - speed * -0.0
    return total


FUNCTIONS = {
    "pendulum": pendulum,
    "operators": lambda a, b: (a + b) * (a - b) / (b * 3) + -a + abs(b) + 2 * a - 1 / b,
    "powers": lambda a, b: a**2 + b**-1.5 * xp.sqrt(b) + 2.0**a,
    "functions": lambda a, b: xp.exp(a) * xp.log(b) + xp.tanh(a * b) + xp.where(a > b, a, b) + xp.maximum(a, 0.3),
    "comparisons": lambda a, b: (a * b if a < b else a / b) + (a > 0.25) * b,
    "NumPy": lambda a, b: np.multiply(a, b) + np.negative(a) * np.sin(b),
    "an array among them": lambda a, b: xp.sum(np.arange(3.0) * a) * b + a * b,
    "steps": lambda a, b: xp.floor(a * 10) * b + xp.sign(a) * a + a // 0.5,
}


def is_alike(g: Any, f: Any, *args: Any) -> bool:
    """Whether a recorded function gives the result or the error of the function; a NaN may have another sign."""
    try:
        expected = tree.leaves(f(*args))
    except OverflowError:
        with pytest.raises(OverflowError):
            g(*args)
        return True
    pairs = zip(tree.leaves(g(*args)), expected, strict=True)
    return all(equal(a, b) or (type(a) is type(b) and np.isnan(a) and np.isnan(b)) for a, b in pairs)


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_and_classes_are_those_of_the_function(name, one, other):
    f = FUNCTIONS[name]
    for function in (f, ox.value_and_grad(f, argnums=(0, 1))):
        g = ox.record(function)
        with np.errstate(all="ignore"):
            for a, b in [*[(0.3, 1.7)] * 2, (-1.1, 0.1), (2.0, 1.5), (1e-300, 1e-20), (0.7, np.inf), (0.1, np.nan)]:
                assert is_alike(g, function, KINDS[one](a), KINDS[other](b))
        assert g._refusal is None
        assert not g._refused


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_is_one_run_after_common_entries_are_computed_once(kind):
    g = ox.record(ox.value_and_grad(pendulum, argnums=(0, 1)))
    args = [KINDS[kind](x) for x in (1.0, 2.0)]
    assert g.why is None
    for _ in range(3):
        assert equal(g(*args), ox.value_and_grad(pendulum, argnums=(0, 1))(*args))
    assert g.why is None
    recorded, replayed, runs, in_runs, constants = g.recordings[0].sizes()
    assert replayed < recorded  # 0.01 * 9.81 / length, and its derivative
    assert (runs, in_runs) == (1, replayed)
    assert constants < 8


def test_a_division_by_zero_raises_as_the_function_does():
    def f(a: Any, b: Any) -> Any:
        return a / b + a * 2

    g = ox.record(f)
    assert g(1.0, 2.0) == g(1.0, 2.0) == 2.5
    with pytest.raises(ZeroDivisionError):
        g(1.0, 0.0)
    assert g.why is not None
    assert isinstance(g.why.new, ZeroDivisionError)
    h = ox.record(f)
    assert h(np.float64(1.0), 2.0) == h(np.float64(1.0), 2.0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        h(np.float64(1.0), np.float64(0.0))


def test_integers_are_exact_where_floats_are_not():
    def f(n: Any, x: Any) -> Any:
        return n * 3 + 1, x * n

    g = ox.record(f)
    for n in (1, 2, 2**53 + 1, 10**30):
        assert agrees(g, f, n, 0.5)


def test_equal_floats_are_one_constant_but_for_the_sign_of_zero():
    def f(x: Any) -> Any:
        return x * float("0.5") + float("0.5") * x + x * 0.0 + x * -0.0, 0.0, -0.0

    g = ox.record(f)
    for x in (1.0, 1.0, -2.0):
        assert agrees(g, f, x)
    assert g.recordings[0].sizes()[-1] == 3


def test_scalars_of_two_precisions_have_runs_of_their_own_bits():
    def f(x: Any, y: Any) -> Any:
        return x * 0.1 + x, y * 0.1 + y, x * y + 0.1

    g, args = ox.record(f), (np.float32(0.3), np.float64(0.7))
    for scale in (1.0, 1.0, 3.0):
        assert agrees(g, f, np.float32(args[0] * scale), args[1] * scale)
    assert g.why is None
    _, replayed, runs, in_runs, _ = g.recordings[0].sizes()
    assert (runs, in_runs) == (1, replayed)


BESIDE_FLOATS = {
    "atan2": xp.atan2,
    "pow": lambda a, b: a**b,
    "hypot": xp.hypot,
    "logaddexp": xp.logaddexp,
    "gammainc": lambda a, b: xp.special.gammainc(b, a),
    "gammaincc": lambda a, b: xp.special.gammaincc(b, a),
    "betainc": lambda a, b: xp.special.betainc(b, 2.5, a / (a + b)),
}


@pytest.mark.parametrize("shape", [None, (), (1,)])
@pytest.mark.parametrize("name", BESIDE_FLOATS)
def test_derivatives_beside_floats_have_the_bits_of_the_function(name, shape):
    draw, f = np.random.default_rng(0), ox.grad(lambda a, b: xp.sum(BESIDE_FLOATS[name](a, b)), argnums=(0, 1))
    g = ox.record(f, audit="never")
    for _ in range(40):
        a, b = np.float32(draw.random() + 0.1), float(draw.random() * 3 + 0.1)
        a = a if shape is None else np.full(shape, a)
        assert equal(g(a, b), f(a, b))
        if shape is not None and name != "pow":  # a number has the gradient of an array of one element
            assert np.ravel(f(a, b)[0]) == f(np.float32(np.ravel(a)[0]), b)[0]
    assert g.why is None


POWERS = {
    "a class": lambda s, t: s * 2 if type(s**t) is float else s * 3,
    "a constant exponent": lambda s, t: s * 2 if isinstance(s**0.5, complex) else s * t,
    "a constant base": lambda s, t: s * 2 if isinstance((-2.0) ** t, float) else s * 3,
    "an attribute": lambda s, t: s * 2 if hasattr(pow(s, t), "is_integer") else s * 3,
    "a complex object": lambda s, t: s * 2 if np.iscomplexobj(s**t) else s * 3,
    "a real part": lambda s, t: (s**t).real,
    "a value": lambda s, t: s**t,
    "a power of the namespace": lambda s, t: s * 2 if type(xp.pow(s, t)) is float else s * 3,
}
NUMBERS = [(4.0, 2.5), (-4.0, 2.5), (-4.0, 2.0), (4.0, -2.5), (-4.0, 0.3), (2.0, 3.0), (float("nan"), 0.5)]


@pytest.mark.parametrize("first", range(len(NUMBERS)))
@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("name", POWERS)
def test_powers_that_are_complex_or_real_are_told_apart_where_nothing_reads_them(name, kind, first):
    f = POWERS[name]
    g = ox.record(f, audit="never")
    for pair in (*NUMBERS[first:], *NUMBERS[:first]):
        with np.errstate(invalid="ignore"):
            numbers = [*map(kind, pair)]
            result, expected = g(*numbers), f(*numbers)
        assert type(result) is type(expected)
        assert np.asarray(result).tobytes() == np.asarray(expected).tobytes() or np.isnan(result)


# Numbers of Python beside scalars and arrays of NumPy, each of which promotes otherwise.
PROMOTED = {
    "complex": 1.5 + 2j,
    "float": 1.25,
    "int": 2,
    "bool": True,
    "float32": np.float32(1.5),
    "complex64": np.complex64(1 + 1j),
    "int64": np.int64(3),
    "array": np.array([0.25, 0.5]),
}
# Functions of numbers, with the number of their arguments: elementwise ones, and those that compose others.
OF_NUMBERS = [
    *((function.__name__, dict(_core.ops())[function.__name__]) for function in _core.elementwise_functions()),
    *(("where", 3), ("clip", 3), ("copysign", 2), ("sum", 1), ("stack", 1)),
]


@pytest.mark.parametrize(("name", "arity"), OF_NUMBERS)
def test_numbers_promote_as_in_the_function(name, arity):
    """The first call, which traces, and the replay give classes, dtypes and bits of the plain call."""
    function = getattr(xp, name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Of three arguments the last is the first again.
        pairs = itertools.product(PROMOTED.values(), repeat=min(arity, 2))
        cases = [(args, _attempt(function, args)) for args in ((*pair, *pair[: arity - 2]) for pair in pairs)]
        taken = [(args, expected) for args, expected in cases if expected is not None]
        assert taken
        for args, expected in taken:
            g = ox.record(function, audit="never")
            assert [is_alike_result(g(*args), expected) for _ in range(2)] == [True, True], (args, g)


def _attempt(function: Any, args: Any) -> Any:
    """The result; None for arguments that the function does not take."""
    try:
        return function(*args)
    except (AttributeError, IndexError, TypeError, ValueError):
        return None


def is_alike_result(result: Any, expected: Any) -> bool:
    pairs = zip(tree.leaves(result), tree.leaves(expected), strict=True)
    return all(type(a) is type(b) and repr(a) == repr(b) for a, b in pairs)


OF_COMPLEX = {
    "product": lambda z, s: xp.real(z * z * s),
    "constant": lambda z, s: xp.real(xp.add(z, 2j) * z * s),
    "modulus": lambda z, s: xp.abs(xp.exp(z) * z + s),
    "itself": lambda z, s: xp.real(z),
}


@pytest.mark.parametrize("f", OF_COMPLEX.values(), ids=OF_COMPLEX)
def test_derivatives_by_complex_numbers_of_python_are_those_of_the_function(f):
    for transform in (ox.grad, ox.value_and_grad):
        g = ox.record(transform(f), audit="never")
        for z in (2j, 1 + 2j, 0.5 - 1j):
            assert agrees(g, transform(f), z, 1.5)
        assert g.why is None


BENEATH = {
    "interp": lambda x: xp.sum(xp.interp(x, np.arange(3, dtype="f4"), x[:3] * x[:3])),
    "percentile": lambda x: xp.sum(xp.percentile(x, [30, 60.0])),
    "quantile": lambda x: xp.quantile(x, 0.3),
    "bincount": lambda x: xp.sum(xp.bincount(np.array([0, 1, 2, 2, 1]), x) ** 2),
    "eigenvalues": lambda x: xp.sum(xp.abs(xp.linalg.eigvals(xp.outer(x, x) + xp.diag(x)))),
}


@pytest.mark.parametrize("f", BENEATH.values(), ids=BENEATH)
def test_derivatives_of_functions_that_compute_in_double_precision(f):
    x = np.array([0.5, 1.5, 0.25, 2.0, 1.0], "f4")
    g = ox.record(ox.value_and_grad(f), audit="never")
    for at in range(3):
        assert agrees(g, ox.value_and_grad(f), x + np.float32(at / 16))


@pytest.mark.parametrize("kind", [bool, int, float, np.bool_, np.float64, np.array])
@pytest.mark.parametrize("name", ["all", "any", "argmax", "argmin", "sum", "isfinite", "signbit"])
def test_questions_about_numbers_have_the_class_that_eager_calls_give(name: str, kind: Any) -> None:
    function = getattr(xp, name)
    for f in (lambda x: function(x > 0.5), lambda x: function(x) * 2):
        try:
            f(kind(2.0))
        except TypeError:  # of truth values
            continue
        g = ox.record(f)
        for x in (2.0, 0.0, 1.0):
            assert agrees(g, f, kind(x)), g
        assert not g._refused, g
