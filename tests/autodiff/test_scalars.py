"""NumPy scalars and 0-d arrays on a tape: value, type, dtype and warnings are NumPy's, derivatives have the primal's dtype."""

import itertools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, xp

KINDS: dict[str, Callable[[float], Any]] = {
    "float": float,
    "float64": np.float64,
    "float32": np.float32,
    "0-d float64": lambda number: np.array(number),
    "0-d float32": lambda number: np.array(number, np.float32),
    "int": round,
    "bool": lambda number: number > 1.0,
    "int64": lambda number: np.int64(round(number)),
    "float16": np.float16,
    "1-d float32": lambda number: np.array([number, 0.1], np.float32),
    "1-d float64": lambda number: np.array([number, 0.1]),
}
SCALARS = list(KINDS)[1:5]
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]
UNARY = {
    "negative": (operator.neg, operator.neg),
    "square": (lambda x: x**2, np.square),
    "sqrt": (xp.sqrt, np.sqrt),
    "reciprocal": (lambda x: 1.0 / x, lambda x: 1.0 / x),
    "exp": (xp.exp, np.exp),
    "log": (xp.log, np.log),
    "sin": (xp.sin, np.sin),
    "tanh": (xp.tanh, np.tanh),
    "sinh": (xp.sinh, np.sinh),
    "cbrt": (xp.cbrt, np.cbrt),
    "abs": (abs, abs),
    "cube": (lambda x: x**3, lambda x: x**3),
    "maximum": (lambda x: xp.maximum(x, 1.0), lambda x: np.maximum(x, 1.0)),
}
EXACT = {"negative", "square", "sqrt", "reciprocal", "sinh", "cbrt", "abs", "cube", "maximum"}


def assert_same(found: Any, expected: Any, *, rtol: float = 0.0) -> None:
    assert type(found) is type(expected)
    assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=0.0)


def recorded(f: Callable[..., Any], *args: Any) -> Any:
    """The value of ``f`` on a tape that watches the first argument."""
    with ox.Tape() as tape:
        return f(tape.watch(args[0]), *args[1:]).value


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(SCALARS, KINDS)))
def test_a_binary_op_is_numpy_s(op: Any, left: str, right: str) -> None:
    a, b = KINDS[left](1.7), KINDS[right](0.3 if "int" not in right else 3.0)
    if right == "bool":
        b = True
    assert_same(recorded(op, a, b), op(a, b))
    assert_same(recorded(lambda x, y: op(y, x), a, b), op(b, a))


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(list(KINDS)[:5], repeat=2)))
def test_cotangents_have_the_type_and_dtype_of_their_argument(op: Any, left: str, right: str) -> None:
    a, b = KINDS[left](1.7), KINDS[right](0.3)
    gradients = ox.grad(op, argnums=(0, 1))(a, b)
    expected = {"add": (1.0, 1.0), "sub": (1.0, -1.0), "mul": (b, a), "truediv": (1.0 / b, -a / b / b)}[op.__name__]
    for g, primal, want in zip(gradients, (a, b), expected, strict=True):
        assert type(g) is (float if isinstance(primal, float) and type(primal) is float else primal.dtype.type)
        np.testing.assert_allclose(g, want, rtol=1e-6)


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("name", UNARY)
def test_a_unary_op_is_numpy_s(name: str, kind: str) -> None:
    (ours, theirs), x = UNARY[name], KINDS[kind](1.3)
    tolerance = 0.0 if name in EXACT else 4.0 * float(np.finfo(x.dtype).eps)
    assert_same(recorded(ours, x), theirs(x), rtol=tolerance)
    assert_same(ours(x), theirs(x), rtol=tolerance)


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("name", UNARY)
def test_a_scalar_equals_an_array_of_one_element(name: str, kind: str) -> None:
    """To the bit, values and derivatives: the same rules in the same precision."""
    ours, x = UNARY[name][0], KINDS[kind](1.3)
    value, g = ox.value_and_grad(ours)(x)
    values, pullback = ox.vjp(ours, np.asarray(x)[None])
    assert value == values[0]
    assert g == pullback(np.ones_like(values))[0][0]
    assert g.dtype == values.dtype == x.dtype


@pytest.mark.parametrize("kind", [*SCALARS, "float"])
@pytest.mark.parametrize("name", UNARY)
def test_second_derivatives_and_forward_mode(name: str, kind: str) -> None:
    ours, x = UNARY[name][0], KINDS[kind](1.3)
    rtol = 1e-12 if getattr(x, "dtype", "float64") == np.float64 else 1e-5
    first, second = ox.grad(ours)(1.3), ox.grad(ox.grad(ours))(1.3)
    one = KINDS[kind](1.0)
    value, tangent = ox.jvp(ours, (x,), (one,))
    assert type(tangent) is type(value)
    np.testing.assert_allclose(tangent, first, rtol=rtol)
    np.testing.assert_allclose(ox.grad(ox.grad(ours))(x), second, rtol=rtol)
    np.testing.assert_allclose(ox.jvp(ox.grad(ours), (x,), (one,))[1], second, rtol=rtol)
    np.testing.assert_allclose(ox.jacobian(ox.jacobian(ours))(x), second, rtol=rtol)


@pytest.mark.parametrize("kind", SCALARS)
def test_a_long_chain_of_mixed_operations_is_numpy_s_to_the_bit(kind: str) -> None:
    def chain(x: Any) -> Any:
        y = x
        for k in range(50):
            y = ((y * 0.999 + x) / np.float32(1.5) - k) * y / (2 + y * y)
        return y

    x = KINDS[kind](1.1)
    assert_same(recorded(chain, x), chain(x))
    step = 1e-6
    slope = (chain(np.float64(x) + step) - chain(np.float64(x) - step)) / (2 * step)
    np.testing.assert_allclose(ox.grad(chain)(x), slope, rtol=1e-2 if x.dtype == np.float32 else 1e-5)


RAISING = {
    "division by zero": (lambda x: x / 0.0, 1.0, "divide"),
    "division by a zero": (lambda x: 1.0 / x, 0.0, "divide"),
    "reciprocal": (np.reciprocal, 0.0, "divide"),
    "zero by zero": (lambda x: x / 0.0, 0.0, "invalid"),
    "root": (xp.sqrt, -1.0, "invalid"),
    "inf minus inf": (lambda x: x - x, float("inf"), "invalid"),
    "overflow of a product": (lambda x: x * x, 3e38, "over"),
    "overflow of a square": (lambda x: x**2, 3e38, "over"),
    "overflow of a sum": (lambda x: x + x, 3e38, "over"),
    "underflow": (lambda x: x * x, 1e-30, "under"),
    "underflow of a quotient": (lambda x: x / 1e30, 1e-30, "under"),
}


@pytest.mark.parametrize("kind", ["float32", "0-d float32", "float64", "0-d float64"])
@pytest.mark.parametrize("name", RAISING)
def test_errstate_and_warnings_are_numpy_s(name: str, kind: str) -> None:
    f, number, flag = RAISING[name]
    if "64" in kind and np.isfinite(number) and flag in ("over", "under"):
        number, f = (1e300 if flag == "over" else 1e-300), (lambda x: x + x * 1e9) if "sum" in name else f
        f = (lambda x: x / 1e300) if "quotient" in name else f
    x = KINDS[kind](number)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        recorded(f, x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(recorded(f, x), f(x))
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning):
        recorded(f, x)


@pytest.mark.parametrize("kind", SCALARS)
def test_no_warning_without_a_cause(kind: str) -> None:
    quiet = [lambda x: x * 0.0, lambda x: 0.0 / x, lambda x: x - x, lambda x: -x + x, lambda x: (x * 0.0) ** 2]
    with np.errstate(all="raise"):
        for f in quiet:
            x = KINDS[kind](1.5)
            assert_same(recorded(f, x), f(x))
    with np.errstate(all="raise"):
        assert np.isposinf(recorded(lambda x: x + 1.0, KINDS[kind](float("inf"))))
        assert np.isnan(recorded(lambda x: x + 1.0, KINDS[kind](float("nan"))))


def test_a_weak_number_out_of_the_range_of_float32_is_an_overflow() -> None:
    with np.errstate(all="ignore"):
        assert_same(recorded(lambda x: x * 1e300, np.float32(1.0)), np.float32(1.0) * 1e300)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        recorded(lambda x: x * 1e300, np.float32(1.0))


def test_the_replay_raises_no_flags() -> None:
    """As for arrays: what a derivative has of infinities and NaN goes into the gradient, whatever `errstate` says."""
    with np.errstate(all="raise"):
        assert np.isposinf(ox.grad(xp.sqrt)(np.float64(0.0)))
        assert np.isposinf(ox.grad(xp.sqrt)(np.array(0.0, np.float32)))


@pytest.mark.parametrize("kind", ["0-d float64", "0-d float32"])
def test_a_0d_array_stays_the_array_that_was_watched(kind: str) -> None:
    x = KINDS[kind](3.0)
    with ox.Tape() as tape:
        v = tape.watch(x)
        y = v * v
    assert v.value is x
    assert_same(y.value, x * x)
    x[...] = 5.0  # without `check`, the derivative is that of the changed program
    assert tape.gradient(y, [v]) == [10.0]


@pytest.mark.parametrize("kind", ["0-d float64", "0-d float32"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_change_in_place_of_a_0d_array_is_found(kind: str, is_constant: bool) -> None:
    x, c = KINDS[kind](3.0), KINDS[kind](2.0)
    with ox.Tape(check=True) as tape:
        v = tape.watch(x)
        y = v * c * v
    (c if is_constant else x)[...] = 5.0
    with pytest.raises(ox.ArrayMemoryError, match="was changed in place after it was recorded"):
        tape.gradient(y, [v])


def test_assignment_to_a_0d_variable() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0 if isinstance(x, float) else xp.asarray(x, copy=True)
        y[()] = x * x
        y += x
        y *= 2.0
        return y * x

    assert ox.grad(f)(np.array(3.0)) == 2 * (3 * 9.0 + 2 * 3.0)


def test_views_of_0d_arrays_and_views_without_dimensions() -> None:
    row = np.array([1.0, 2.0, 3.0])
    view = row[1:2].reshape(())
    value, g = ox.value_and_grad(lambda x: x * x * row[2])(view)
    assert_same(value, np.float64(12.0))
    assert g == 12.0
    swapped = np.array(3.0, ">f8")
    assert ox.grad(lambda x: x * x)(swapped) == 6.0


def test_an_augmented_assignment_makes_a_new_scalar() -> None:
    with ox.Tape() as tape:
        x = before = tape.watch(np.float64(3.0))
        x *= 2.0
    assert before.value == 3.0
    assert x.value == 6.0
    assert tape.gradient(x, [before]) == [2.0]


@pytest.mark.parametrize("kind", SCALARS)
def test_scalars_and_arrays_together(kind: str) -> None:
    a = np.linspace(0.5, 1.5, 7)
    x = KINDS[kind](1.3)

    def f(x: Any, a: Any) -> Any:
        s = xp.sum(a * x) / x
        return xp.sum((a - s) * (x * s)) + s

    value, (g, ga) = ox.value_and_grad(f, argnums=(0, 1))(x, a)
    expected, (want, wanted) = ox.value_and_grad(f, argnums=(0, 1))(float(x), a)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(g, want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ga, wanted, rtol=1e-6, atol=1e-6)
    assert g.dtype == x.dtype
    assert ga.dtype == a.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize(
    "cast", [lambda x, dtype: xp.asarray(x, dtype=dtype), lambda x, dtype: xp.astype(xp.asarray(x), dtype)]
)
def test_a_number_that_becomes_an_array_of_a_dtype(cast: Callable[..., Any], dtype: Any) -> None:
    def f(x: Any) -> Any:
        array = cast(x * x, dtype)
        assert array.dtype == dtype and array.shape == ()
        return xp.sum(xp.real(array) * np.ones(3, np.float32))

    assert ox.value_and_grad(f)(2.0) == (12.0, 12.0) and type(ox.grad(f)(2.0)) is float
    assert ox.jvp(f, (2.0,), (1.0,)) == (12.0, 12.0)
    assert ox.grad(ox.grad(f))(2.0) == ox.hessian(f)(2.0) == 6.0
    assert ox.jvp(ox.grad(f), (2.0,), (1.0,)) == (12.0, 6.0)
    np.testing.assert_array_equal(ox.vmap(ox.grad(f))(np.array([1.0, 2.0])), [6.0, 12.0])
    recorded = ox.record(ox.grad(f))
    assert [recorded(x) for x in (1.0, 2.0, 3.0)] == [6.0, 12.0, 18.0]


def test_one_scalar_in_two_functions_at_once() -> None:
    """Nested tapes: a NumPy scalar of the outer one meets one of the inner."""
    outer = ox.grad(lambda x: ox.grad(lambda y: x * y * y)(np.float32(2.0)) * x)
    assert outer(np.float64(3.0)) == 24.0
    assert outer(np.array(3.0)) == 24.0
    assert outer(3.0) == 24.0


class Reflecting:
    """An operand that computes with variables itself, as NumPy's protocol allows."""

    __array_ufunc__ = None

    def __rmul__(self, other: Any) -> str:
        return "reflected"

    __radd__ = __rsub__ = __rtruediv__ = __rpow__ = __rmul__


@pytest.mark.parametrize("compute", [operator.mul, operator.add, operator.sub, operator.truediv, operator.pow])
def test_operators_leave_operands_that_ask_for_it_to_their_own(compute: Callable[..., Any]) -> None:
    for value in (2.0, np.ones(3)):
        found: list[Any] = []
        ox.grad(lambda x: found.append(compute(x, Reflecting())) or ox.xp.sum(x))(value)  # noqa: B023
        assert found == ["reflected"]
    assert compute(_core.symbols().leaf(), Reflecting()) == "reflected"
    with pytest.raises(TypeError):
        ox.grad(lambda x: compute(x, object()))(2.0)


def test_gradients_of_gradients_over_numbers_are_numbers():
    found = []

    def inner(y):
        value, (by_used, by_unused) = ox.value_and_grad(lambda p: p[0] ** 3 * y)([2.0 * y, 3.0 * y])
        found.append((value, by_unused))
        return value + by_used * y + by_unused

    # (2 y)^3 y + 3 (2 y)^2 y y = 20 y^4
    assert ox.grad(inner)(1.5) == pytest.approx(80.0 * 1.5**3, rel=1e-14)
    assert ox.grad(ox.grad(inner))(1.5) == pytest.approx(240.0 * 1.5**2, rel=1e-14)
    value, by_unused = found[0]
    assert isinstance(value, ox.Variable) and type(by_unused) is float and by_unused == 0.0


def test_a_value_without_a_derivative_inside_of_a_gradient():
    assert ox.grad(lambda y: ox.grad(lambda x: y * 3.0)(2.0) + y * y)(1.5) == 3.0
    array = np.array([1.0, 2.0])
    assert np.array_equal(ox.grad(lambda a: ox.grad(lambda x: x * np.sum(a))(2.0))(array), [1.0, 1.0])
