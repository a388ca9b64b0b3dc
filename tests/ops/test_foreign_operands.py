"""Operands of no array library beside variables: converted, or refused at the first operation, by one rule."""

import array
import ctypes
import decimal
import fractions
import operator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.array([1.5, -0.5, 2.0])
OTHER = np.array([1.0, 2.0, 4.0])

BUFFERS = {
    "array": lambda: array.array("d", OTHER),
    "ctypes": lambda: (ctypes.c_double * 3)(*OTHER),
    "ctypes of integers": lambda: (ctypes.c_int * 3)(1, 2, 4),
    "list": OTHER.tolist,
    "memoryview": lambda: memoryview(OTHER),
    "tuple": lambda: tuple(OTHER.tolist()),
}
PANDAS = {
    "Series": lambda pandas: pandas.Series(OTHER, index=["c", "b", "a"]),
    "Series of integers": lambda pandas: pandas.Series([1, 2, 4]),
    "Series of Float64": lambda pandas: pandas.Series(OTHER, dtype="Float64"),
    "Index": lambda pandas: pandas.Index(OTHER),
    "ExtensionArray": lambda pandas: pandas.array(OTHER, dtype="Float64"),
    "DataFrame": lambda pandas: pandas.DataFrame([OTHER.tolist()] * 3),
}
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod]
FUNCTIONS = [xp.add, np.subtract, xp.maximum, np.hypot, np.multiply, xp.atan2]


def _value(f, *args):
    return ox.vjp(f, *args)[0]


def _check(other, plain) -> None:
    """Operators and functions of a variable and an operand, on both sides, beside those of the plain array."""
    base = np.abs(X)
    for function in OPERATORS + FUNCTIONS:
        for f, expected in (
            (lambda x, function=function: function(x, other), lambda x, function=function: function(x, plain)),
            (lambda x, function=function: function(other, x), lambda x, function=function: function(plain, x)),
        ):
            assert type(_value(f, base)) is np.ndarray
            np.testing.assert_allclose(_value(f, base), expected(base))
            total = lambda g: lambda x: xp.sum(g(x))  # noqa: E731
            np.testing.assert_allclose(ox.grad(total(f))(base), ox.grad(total(expected))(base))
    for function in (operator.lt, operator.ge, operator.eq, operator.ne):
        np.testing.assert_array_equal(
            _value(lambda x, function=function: function(x, other), base), function(base, plain)
        )


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_is_converted(name: str) -> None:
    _check(BUFFERS[name](), OTHER)


@pytest.mark.parametrize("name", PANDAS)
def test_an_object_of_pandas_is_converted(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    other = PANDAS[name](pandas)
    _check(other, np.asarray(other.to_numpy(), dtype=float))


def test_functions_take_objects_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    series, frame = pandas.Series(OTHER), pandas.DataFrame([OTHER.tolist()] * 2)
    for f, expected in (
        (lambda x: xp.dot(series, x), lambda x: np.dot(OTHER, x)),
        (lambda x: xp.dot(x, series), lambda x: np.dot(OTHER, x)),
        (lambda x: x @ frame.T, lambda x: x @ np.stack([OTHER, OTHER], axis=1)),
        (lambda x: xp.matmul(frame, x), lambda x: np.stack([OTHER, OTHER]) @ x),
        (lambda x: xp.where(series > 1.5, x, series), lambda x: np.where(OTHER > 1.5, x, OTHER)),
        (lambda x: xp.concat([x, series]), lambda x: np.concatenate([x, OTHER])),
        (lambda x: xp.stack([series, x]), lambda x: np.stack([OTHER, x])),
        (lambda x: xp.outer(x, series), lambda x: np.outer(x, OTHER)),
        (lambda x: xp.sum((x - series) ** 2), lambda x: np.sum((x - OTHER) ** 2)),
        (lambda x: np.interp(x, series, series**2), lambda x: np.interp(x, OTHER, OTHER**2)),
    ):
        np.testing.assert_allclose(_value(f, X), expected(X))
    np.testing.assert_allclose(
        ox.grad(lambda w: xp.mean((w * OTHER - series) ** 2))(X), 2 * (X * OTHER - OTHER) * OTHER / 3
    )
    np.testing.assert_allclose(ox.vmap(lambda x: xp.sum(series - x))(np.stack([X, X])), [np.sum(OTHER - X)] * 2)
    with pytest.raises(TypeError, match=r"x\.to_numpy\(\)"):
        ox.grad(lambda x: xp.sum(frame @ x))(X)


def test_numbers_of_other_classes_are_numbers() -> None:
    for number in (fractions.Fraction(1, 2), decimal.Decimal("0.5"), np.float64(0.5), np.int64(2)):
        np.testing.assert_allclose(
            _value(lambda x, number=number: number * x - number, X), float(number) * X - float(number)
        )


class _Scale:
    """A class with operators of its own."""

    def __mul__(self, other):
        return 2.0 * other

    __rmul__ = __mul__


def test_a_class_with_operators_of_its_own_keeps_them() -> None:
    for f in (lambda x: xp.sum(x * _Scale()), lambda x: xp.sum(_Scale() * x)):
        np.testing.assert_array_equal(ox.grad(f)(X), [2.0, 2.0, 2.0])


REFUSED = {
    "objects": (lambda: np.array(["a", 1, None], dtype=object), "object"),
    "set": (lambda: {1.0}, "set"),
    "bytes": (lambda: b"abc", "bytes"),
    "dict": (lambda: {"a": 1.0}, "dict"),
    "masked": (
        lambda: np.ma.masked_array(OTHER, [True, False, False]),
        r"x\.data\[~x\.mask\]",
    ),
    "matrix": (lambda: OTHER.view(np.matrix), r"numpy\.asarray\(x\)"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("function", [operator.add, xp.multiply, np.subtract], ids=lambda function: function.__name__)
def test_what_is_no_array_of_numbers_is_refused_at_the_first_operation(name: str, function) -> None:
    make, text = REFUSED[name]
    with pytest.raises(TypeError, match=text):
        ox.grad(lambda x: xp.sum(function(x, make())))(X)


def test_objects_of_pandas_without_numbers_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    for other in (pandas.Series(["a", "b", "c"]), pandas.Series(pandas.to_datetime(["2020-01-01"] * 3))):
        for f in (lambda x, other=other: x - other, lambda x, other=other: other - x):
            with pytest.raises(ox.DtypeError, match="found a Series of dtype"):
                ox.grad(lambda x, f=f: xp.sum(f(x)))(X)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (
            lambda x: np.array([x[0], x[1]]),
            r"np\.array\(\[x\[0\], x\[1\]\], like=x\), or xp\.asarray\(\[x\[0\], x\[1\]\]\),",
        ),
        (
            lambda x: np.array([v * v for v in x], dtype=float),
            r"np\.array\(\[v \* v for v in x\], dtype=float, like=x\)",
        ),
        (lambda x: np.array(object=[x[0]]), r"np\.array\(\[v, w\], like=v\)"),
        (lambda x: np.float64(x[0]), r"np\.float64\(v\) is v"),
        (lambda x: np.int64(x[0]), r"int\(v\)"),
        (lambda x: np.vectorize(lambda a: a * a)(x), r"np\.vectorize\(f\)\(x\) takes none: f\(x\) does"),
        (lambda x: np.stack([[x[0], x[1]], [x[1], x[0]]]), r"np\.stack takes none in nested lists: xp\.stack does"),
        (lambda x: np.vstack([[x[0], x[1]], [x[1], x[0]]]), r"np\.vstack takes none in nested lists: xp\.vstack does"),
        (lambda x: next(np.ndenumerate(x)), r"derivative: np\.array\(\[v, w\], like=v\)"),
        (lambda x: float(x[0]), r"np\.zeros\(n, like=x\)"),
    ],
)
def test_what_numpy_does_not_dispatch_names_the_line_that_works(f, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        ox.grad(lambda x: xp.sum(f(x)))(X)


def test_lines_that_the_errors_name_work() -> None:
    a, b = X[:2]
    for f, expected in (
        (lambda x: np.array([x[0], x[1]], like=x), [a, b]),
        (lambda x: xp.asarray([[x[0], x[1]], [x[1], 1.0]]), [[a, b], [b, 1.0]]),
        (lambda x: xp.stack([[x[0], x[1]], [x[1], x[0]]]), [[a, b], [b, a]]),
        (lambda x: xp.vstack([[x[0], x[1]], [x[1], x[0]]]), [[a, b], [b, a]]),
        (lambda x: xp.array([[x[0], 2.0], [x[1], x[0]]]), [[a, 2.0], [b, a]]),
        (lambda x: xp.stack([v * v for v in x[:2]]), [a * a, b * b]),
    ):
        np.testing.assert_allclose(_value(f, X), expected)


def test_arrays_of_shared_memory_are_updated_in_place() -> None:
    import multiprocessing

    makers = {
        "ctypes": lambda: np.ctypeslib.as_array((ctypes.c_double * 3)(*OTHER)),
        "RawArray": lambda: np.ctypeslib.as_array(multiprocessing.RawArray("d", OTHER.tolist())),
        "Array": lambda: np.ctypeslib.as_array(multiprocessing.Array("d", OTHER.tolist()).get_obj()),
        "single": lambda: np.ctypeslib.as_array((ctypes.c_float * 3)(*OTHER)),
        "array": lambda: np.asarray(array.array("d", OTHER)),
        "buffer": lambda: np.frombuffer(array.array("d", OTHER)),
        "memoryview": lambda: np.asarray(memoryview(bytearray(OTHER.tobytes())).cast("d")),
    }
    for name, make in makers.items():
        shared, opt = make(), ox.optim.Adam(0.1)
        for _ in range(3):
            opt.update({"w": shared}, {"w": np.ones(3, shared.dtype)})
        np.testing.assert_allclose(shared, OTHER - 0.3, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(
            ox.grad(lambda x: xp.sum(xp.exp(x) * x))(shared), np.exp(shared) * (1 + shared), rtol=1e-6
        )


def test_assignments_to_parts_of_a_variable_name_the_expression() -> None:
    for name, instead in (("real", r"z = v \+ 1j \* xp\.imag\(z\)"), ("imag", r"z = xp\.real\(z\) \+ 1j \* v")):

        def f(x: Any, name: str = name) -> Any:
            setattr(z := x + 1j * x, name, x)
            return z

        with pytest.raises(AttributeError, match=rf"z\.{name} = v .* is not recorded: expected {instead}"):
            ox.grad(f)(np.ones(2))
    values: Any = (1.0 + 2.0j, np.array([1.0 + 2.0j]))
    for x in values:
        assert ox.vjp(lambda z: z.real + 3.0 * z.imag, x)[0] == 7.0
