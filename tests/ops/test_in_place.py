"""NumPy's functions that write to an argument: assignments with derivatives, or refused, and never to the caller's array."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import _callbacks, xp
from oxigrad.testing import check_grads

X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 3))
Z = np.random.default_rng(1).uniform(0.5, 2.0, (3, 3))
MASK = X > 1.0

Write = Callable[[Any, Any, Any], Any]  # of x, of 2 x as what is written, and of the array that is written to

# --- assignments -------------------------------------------------------------------------------------------------------

WRITES: dict[str, Write] = {
    "put": lambda x, z, y: np.put(y, [0, 4, 8], z[0]),
    "put of numbers": lambda x, z, y: np.put(y, [0, 4, 8], [1.0, 2.0, 3.0]),
    "put twice": lambda x, z, y: np.put(y, [4, 0, 4], z[0]),
    "put too few": lambda x, z, y: np.put(y, [0, 4, 5], z[0, :2]),
    "put one": lambda x, z, y: np.put(y, 4, z[0, 0]),
    "put wrapped": lambda x, z, y: np.put(y, [-1, 12], z[0], mode="wrap"),
    "put clipped": lambda x, z, y: np.put(y, [-1, 12], z[0, 1], mode="clip"),
    "put into a variable of nothing": lambda x, z, y: np.put(y, [], z[0]),
    "place": lambda x, z, y: np.place(y, MASK, z[0]),
    "place by a comparison": lambda x, z, y: np.place(y, y > 1.0, z[0]),
    "putmask": lambda x, z, y: np.putmask(y, MASK, z),
    "putmask too few": lambda x, z, y: np.putmask(y, MASK, z[0, :2]),
    "copyto": lambda x, z, y: np.copyto(y, z),
    "copyto of a row": lambda x, z, y: np.copyto(y, z[0]),
    "copyto of a number": lambda x, z, y: np.copyto(y, 2.0),
    "copyto where": lambda x, z, y: np.copyto(y, z, where=MASK),
    "copyto of a list": lambda x, z, y: np.copyto(y, [1.0, 2.0, 3.0]),
    "fill_diagonal": lambda x, z, y: np.fill_diagonal(y, z[0]),
    "fill_diagonal of a number": lambda x, z, y: np.fill_diagonal(y, z[0, 0]),
    "put_along_axis": lambda x, z, y: np.put_along_axis(y, np.array([[0], [-1], [2]]), z[:, :1], 1),
    "put_along_axis broadcast": lambda x, z, y: np.put_along_axis(y, np.array([[0, 1, 0]]), z[0], 0),
    "put_along_axis flat": lambda x, z, y: np.put_along_axis(y, np.array([0, -1, 0]), z[0], None),
    "nan_to_num": lambda x, z, y: np.nan_to_num(y, copy=False),
    "add.at": lambda x, z, y: np.add.at(y, [0, 0, 1], z),
    "add.at of pairs": lambda x, z, y: np.add.at(y, ([0, 0, 1], [1, 1, 1]), z[0]),
    "subtract.at": lambda x, z, y: np.subtract.at(y, [0, 0, 1], 2.0),
    "multiply.at": lambda x, z, y: np.multiply.at(y, [0, 0, 1], z),
    "multiply.at of a slice": lambda x, z, y: np.multiply.at(y, slice(1, None), z[0]),
    "negative.at": lambda x, z, y: np.negative.at(y, [0, 0, 1]),
    "power.at": lambda x, z, y: np.power.at(y, MASK, z[0, 0]),
    "iadd of a view": lambda x, z, y: y.__setitem__(0, np.add(y[0], z[0], out=y[0])),
    "ufunc": lambda x, z, y: np.add(x, z, out=y),
    "ufunc by position": lambda x, z, y: np.sin(x, y),
    "ufunc of itself": lambda x, z, y: np.multiply(y, y, out=y),
    "ufunc of a row": lambda x, z, y: np.multiply(x[0], 2.0, out=y),
    "ufunc of plain arrays": lambda x, z, y: np.add(X, Z, out=y),
    "ufunc where": lambda x, z, y: np.log(x, out=y, where=MASK),
    "ufunc of two where": lambda x, z, y: np.multiply(x, z[0], out=y, where=MASK[0]),
    "ufunc without a derivative": lambda x, z, y: np.floor(x, out=y),
    "matmul": lambda x, z, y: np.matmul(x, z, out=y),
    "accumulate": lambda x, z, y: np.add.accumulate(x, axis=0, out=y),
    "reduce": lambda x, z, y: np.add.reduce(x[None], out=y),
    "cumsum": lambda x, z, y: np.cumsum(x, axis=0, out=y),
    "cumsum by position": lambda x, z, y: np.cumsum(x, 1, None, y),
    "dot": lambda x, z, y: np.dot(x, z, out=y),
    "dot by position": lambda x, z, y: np.dot(x, z, y),
    "concatenate": lambda x, z, y: np.concatenate([x[:1], z[1:]], out=y),
    "concatenate by position": lambda x, z, y: np.concatenate([x[:1], z[1:]], 0, y),
    "stack": lambda x, z, y: np.stack([x[0], x[1], z[2]], out=y),
    "take": lambda x, z, y: np.take(x, [0, 2, 1], axis=0, out=y),
    "einsum": lambda x, z, y: np.einsum("ij,jk->ik", x, z, out=y),
    "clip": lambda x, z, y: np.clip(x, 0.7, 1.2, out=y),
    "clip by position": lambda x, z, y: np.clip(x, 0.7, 1.2, y),
    "outer": lambda x, z, y: np.outer(x[0], z[1], out=y),
    "sum": lambda x, z, y: np.sum(x[None], axis=0, out=y),
    "mean": lambda x, z, y: np.mean(x[None] * z, 0, None, y),
    "max": lambda x, z, y: np.max(np.stack([x, z]), axis=0, out=y),
}


def program(write: Write) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * 3.0
        write(x, x * 2.0, y)
        return y * y

    return f


@pytest.mark.parametrize("name", WRITES)
def test_written_elements_have_numpy_values_and_derivatives(name: str) -> None:
    f, given = program(WRITES[name]), X.copy()
    value, _ = ox.vjp(f, given)
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-14)
    check_grads(f, (given,), order=2)
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("name", WRITES)
def test_the_caller_s_array_is_never_written(name: str) -> None:
    given = X.copy()
    with ox.Tape() as tape:
        x = tape.watch(given)
        WRITES[name](X, Z, x)
        y = xp.sum(x * x)
    np.testing.assert_array_equal(given, X)
    expected = X.copy()
    WRITES[name](X, Z, expected)
    np.testing.assert_allclose(x.value, expected)
    assert tape.gradient(y, [x])[0].shape == X.shape


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (7, 3), (3, 3, 3)], ids=repr)
def test_fill_diagonal_of_any_shape(shape: tuple[int, ...], wrap: bool) -> None:
    expected = np.zeros(shape)
    np.fill_diagonal(expected, [1.0, 2.0], wrap=wrap)

    def f(x: Any) -> Any:
        y = xp.broadcast_to(x[0] * 0.0, shape) * 1.0
        np.fill_diagonal(y, x, wrap=wrap)
        return y

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(ox.vjp(f, x)[0], expected)
    counts = [np.sum(expected == 1.0), np.sum(expected == 2.0)]
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(f(x)))(x), counts)


def test_in_place_on_itself_returns_the_variable() -> None:
    def f(x: Any) -> Any:
        same = np.add(x, 1.0, out=x)
        assert same is x
        assert np.cumsum(x, axis=0, out=x) is x
        assert np.nan_to_num(x, copy=False) is x
        return x

    np.testing.assert_allclose(ox.vjp(f, X)[0], np.cumsum(X + 1.0, axis=0))
    check_grads(f, (X,), order=2)


def test_every_array_library(asarray) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        np.put(y, [0, 4], x[0, :2] * 3.0)
        np.multiply.at(y, [0, 0], x[:2, ...])
        np.add(y, x, out=y)
        return xp.sum(y * y)

    np.testing.assert_allclose(host(ox.grad(f)(asarray(X))), ox.grad(f)(X), rtol=1e-6)


def test_single_precision_stays() -> None:
    def f(x: Any) -> Any:
        y = x * np.float32(1.0)
        np.add(x, Z, out=y)
        np.put(y, [0], Z[0])
        assert y.dtype == np.float32
        return xp.sum(y)

    assert ox.grad(f)(X.astype(np.float32)).dtype == np.float32


def test_a_masked_ufunc_has_no_derivative_at_masked_elements() -> None:
    x = np.array([0.0, 1.0, 4.0])
    gradient = ox.grad(lambda x: xp.sum(np.sqrt(x, out=x * 0.0, where=x > 0.5)))(x)
    np.testing.assert_allclose(gradient, [0.0, 0.5, 0.25])


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 3), ()], ids=str)
@pytest.mark.parametrize("name", "copysign deg2rad rad2deg exp2 fabs float_power fmax fmin sin hypot".split())
def test_elements_of_out_that_a_mask_leaves_are_not_written(name: str, shape: tuple[int, ...]) -> None:
    """Those of functions that are composed became what was in memory."""
    x = np.random.default_rng(8).uniform(0.5, 1.0, shape)
    args, where = (x, 2.0 * x)[: getattr(np, name).nin], x > 0.7
    expected = getattr(np, name)(*args, out=np.full(shape, 7.0), where=where)
    out = np.full(shape, 7.0)
    assert getattr(xp, name)(*args, out=out, where=where) is out
    np.testing.assert_array_equal(out, expected)
    y, pull = ox.vjp(lambda x: getattr(xp, name)(x, *args[1:], out=x * 0.0 + 7.0, where=where), x)
    np.testing.assert_allclose(y, expected, rtol=1e-15)
    whole = ox.grad(lambda x: xp.sum(getattr(xp, name)(x, *args[1:])))(x)
    np.testing.assert_allclose(pull(np.ones(shape))[0], np.where(where, whole, 0.0), rtol=1e-15)


@pytest.mark.parametrize("other", [[3.0, 4.0, 5.0], [[3.0], [4.0]], ([3.0, 4.0, 5.0],)], ids=repr)
def test_a_masked_ufunc_takes_lists(other: Any) -> None:
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    where = np.array([[True, False, True], [False, False, True]])
    y, pull = ox.vjp(lambda x: np.multiply(x, other, out=x * 0.0, where=where), x)
    np.testing.assert_array_equal(y, np.multiply(x, other, out=x * 0.0, where=where))
    np.testing.assert_array_equal(pull(np.ones_like(x))[0], np.where(where, np.broadcast_to(other, x.shape), 0.0))


def test_a_stale_view_is_refused() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        row = y[0]
        np.put(y, [0], 5.0)
        return xp.sum(row)

    with pytest.raises(ox.ArrayMemoryError, match="may share memory"):
        ox.grad(f)(X)


# --- refusals ----------------------------------------------------------------------------------------------------------

TO_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "put": lambda a, x: np.put(a, [0], x[0]),
    "place": lambda a, x: np.place(a, MASK, x[0]),
    "putmask": lambda a, x: np.putmask(a, MASK, x),
    "copyto": lambda a, x: np.copyto(a, x),
    "copyto where": lambda a, x: np.copyto(a, x, where=MASK),
    "put_along_axis": lambda a, x: np.put_along_axis(a, np.array([[0]]), x[:1, :1], 0),
    "full_like": lambda a, x: np.full_like(a, x[0, 0]),
    "add.at": lambda a, x: np.add.at(a, [0], x[0]),
    "+=": lambda a, x: a.__iadd__(x),
    "@=": lambda a, x: a.__imatmul__(x),
    "ufunc": lambda a, x: np.sin(x, out=a),
    "ufunc where": lambda a, x: np.sin(x, out=a, where=MASK),
    "reduce": lambda a, x: np.add.reduce(x, out=a[0]),
    "sum": lambda a, x: np.sum(x, axis=0, out=a[0]),
    "dot": lambda a, x: np.dot(x, x, a),
    "clip": lambda a, x: np.clip(x, 0.0, 1.0, a),
    "concatenate": lambda a, x: np.concatenate([x[:1], x[1:]], out=a),
}


@pytest.mark.parametrize("name", TO_PLAIN)
def test_a_plain_array_cannot_take_a_variable(name: str) -> None:
    plain = Z.copy()
    with ox.Tape() as tape:
        x = tape.watch(X)
        with pytest.raises(ox.DerivativeError, match=r"xp\.at\(array\)\[key\]\.set"):
            TO_PLAIN[name](plain, x)
    np.testing.assert_array_equal(plain, Z)


def test_the_suggested_fix_works() -> None:
    assert ox.grad(lambda x: xp.sum(xp.at(Z)[0].set(x[1])))(X).sum() == 3.0


def test_plain_results_go_to_plain_arrays() -> None:
    with ox.Tape() as tape:
        x = tape.watch(X)
        larger, where, rounded = np.zeros((3, 3), bool), np.zeros(3, np.intp), np.zeros((3, 3))
        assert np.greater(x, 1.0, out=larger) is larger
        assert np.argmax(x, axis=0, out=where) is where
        assert np.floor(x, out=rounded) is rounded
    np.testing.assert_array_equal(larger, MASK)
    np.testing.assert_array_equal(where, X.argmax(axis=0))
    np.testing.assert_array_equal(rounded, np.floor(X))


@pytest.mark.parametrize(
    ("write", "error", "says"),
    [
        (lambda x: np.put(x, [9], 1.0), IndexError, "out of bounds"),
        (lambda x: np.put(x, [0], 1j), ox.DtypeError, "real part"),
        (lambda x: np.place(x, MASK[:2], 1.0), ox.ShapeError, "found a mask of shape"),
        (lambda x: np.place(x, MASK, []), ValueError, "no values"),
        (lambda x: np.putmask(x, MASK[0], 1.0), ox.ShapeError, "found a mask of shape"),
        (lambda x: np.copyto(x, np.ones(7)), ValueError, "broadcast"),
        (lambda x: np.copyto(x, np.ones(3) * 1j), ox.DtypeError, "complex128"),
        (lambda x: np.copyto(x, X.astype(np.float32), casting="no"), ox.DtypeError, "casting='no'"),
        (lambda x: np.fill_diagonal(x[0], 1.0), ox.ShapeError, "matrix"),
        (lambda x: np.put_along_axis(x, np.array([0]), 1.0, 1), ox.ShapeError, "dimensions"),
        (lambda x: np.put_along_axis(x, np.array([[3]]), 1.0, 1), IndexError, "axis 1 of size 3"),
        (lambda x: np.sin(x[0], out=x[:2, :2] * 1.0), ValueError, "shape"),
        (lambda x: np.sum(x, out=x), ox.ShapeError, r"found out of shape \(3, 3\), expected \(\)"),
        (lambda x: np.add(x, 1j, out=x), ox.DtypeError, "complex128"),
        (lambda x: np.sin(x, where=MASK), ox.DerivativeError, "where"),
    ],
)
def test_a_mistake_changes_nothing(write: Any, error: type[Exception], says: str) -> None:
    given = X.copy()
    with ox.Tape() as tape:
        x = tape.watch(given)
        with pytest.raises(error, match=says):
            write(x)
        np.testing.assert_array_equal(x.value, X)
    np.testing.assert_array_equal(given, X)


def test_user_ufuncs_are_not_taken_for_ops() -> None:
    """A ufunc is known by what it is, and not by its name; objects that come out of one may hide numbers."""
    with ox.Tape() as tape:
        x = tape.watch(X)
        for ufunc in (np.frompyfunc(lambda x: x * 5.0, 1, 1), np.frompyfunc(np.sin, 1, 1)):
            with pytest.raises(ox.DerivativeError, match="no derivative"):
                ufunc(x)
        ufunc = np.frompyfunc(lambda x: x, 1, 1)
        with pytest.raises(ox.DerivativeError, match="no derivative"):
            _callbacks.array_ufunc(Named("sin", ufunc), "__call__", (x,), {})


class Named:
    """A ufunc under another's name, as compiled functions of users have."""

    def __init__(self, name: str, ufunc: Any) -> None:
        self.__name__, self.ufunc = name, ufunc

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.ufunc(*args, **named)


# --- the memory of a variable ------------------------------------------------------------------------------------------

GRABS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "array": np.array,
    "array of objects": lambda x: np.array(x, dtype=object),
    "array of variables": lambda x: np.array([x[0], x[1]]),
    "ascontiguousarray": np.ascontiguousarray,
    "asmatrix": np.asmatrix,
    "require": lambda x: np.require(x, requirements="W"),
    "masked": np.ma.array,
    "memoryview": memoryview,
    "frombuffer": np.frombuffer,
    "ndarray of a buffer": lambda x: np.ndarray(x.shape, buffer=x),
    "from_dlpack": np.from_dlpack,
    "__dlpack__": lambda x: x.__dlpack__(),
    "__array_interface__": lambda x: x.__array_interface__,
    "__array_struct__": lambda x: x.__array_struct__,
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (9,), (8,)),
    "nditer": np.nditer,
    "nditer to write": lambda x: np.nditer(x, op_flags=["readwrite"]),
    "ndenumerate": np.ndenumerate,
    "broadcast": lambda x: np.broadcast(x, 1.0),
    "vectorize": lambda x: np.vectorize(lambda x: x * 2.0)(x),
    "permutation": lambda x: np.random.default_rng(0).permutation(x),
    "permuted": lambda x: np.random.default_rng(0).permuted(x, out=x),
    "random": lambda x: np.random.default_rng(0).random(out=x),
    "shuffle of rows": lambda x: np.random.default_rng(0).shuffle(x),
    "normal": lambda x: np.random.default_rng(0).normal(x),
    "method of an array": lambda x: Z.dot(x),
    "put method": lambda x: Z.copy().put([0], x[0]),
    "fill method": lambda x: Z.copy().fill(x[0, 0]),
    "flat": lambda x: Z.copy().flat.__setitem__(slice(None), x),
    "assignment to an array": lambda x: Z.copy().__setitem__(0, x[0]),
    "item of an array": lambda x: Z.copy().__setitem__((0, 0), x[0, 0]),
    "NumPy's scalar": lambda x: np.float64(x[0, 0]),
    "float": lambda x: float(x[0, 0]),
    "complex": lambda x: complex(x[0, 0]),
    "full": lambda x: np.full(3, x[0, 0]),
    "fromiter": lambda x: np.fromiter(x[0], float),
    "list": lambda x: x.tolist(),
    "resize method": lambda x: x.resize((9,)),
    "byteswap method": lambda x: x.byteswap(inplace=True),
    "setfield method": lambda x: x.setfield(1.0, np.float64),
    "shape": lambda x: setattr(x, "shape", (9,)),
    "dtype": lambda x: setattr(x, "dtype", np.int64),
    "data": lambda x: x.data,
    "ctypes": lambda x: x.ctypes,
    "pickle": lambda x: x.__reduce_ex__(5),
}


@pytest.mark.parametrize("name", GRABS)
def test_a_variable_exports_no_memory_and_no_numbers(name: str) -> None:
    given = X.copy()
    with ox.Tape() as tape:
        x = tape.watch(given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises((TypeError, ValueError, AttributeError, ox.DerivativeError, ox.ArrayMemoryError)):
                GRABS[name](x)
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("function", [np.median, lambda x, **named: np.percentile(x, 50, **named)])
def test_an_input_that_may_be_overwritten_is_not(function: Any) -> None:
    given = X.copy()
    np.testing.assert_array_equal(ox.vjp(lambda x: function(x, overwrite_input=True), given)[0], function(X.copy()))
    np.testing.assert_array_equal(given, X)


def test_a_vector_is_shuffled_by_assignments() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is no sequence
            np.random.default_rng(0).shuffle(y)
        return y * np.array([1.0, 2.0, 3.0])

    np.testing.assert_allclose(ox.vjp(f, X[0])[0], f(X[0].copy()))
    check_grads(f, (X[0],))


# --- every function ----------------------------------------------------------------------------------------------------

# Those of a derivative of zero, or that do not look at the numbers: they give plain arrays.
CONSTANT = set(
    """
    around ceil divmod empty_like fix floor floor_divide full_like heaviside histogram2d histogramdd matrix_power modf nextafter
    ones_like piecewise rint round sign spacing trunc zeros_like
""".split()
)
# Those that give back arguments which are no variables, too.
GIVING_BACK = {f"numpy.{name}" for name in "atleast_1d atleast_2d atleast_3d broadcast_arrays extract meshgrid".split()}
LEFT_OUT = set("test info show_config show_runtime save savez savez_compressed savetxt load loadtxt genfromtxt".split())
TAILS: list[tuple[Any, ...]] = [
    (),
    (Z,),
    (0,),
    (1, Z[0]),
    (np.array([0, 1]), Z[0]),
    (MASK, Z[0]),
    (MASK, Z),
    (np.array([[0, 1, 2]]), 5.0, 0),
    ([1], 0),
    (5.0,),
]


def functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    every = {name: getattr(module, name) for name in dir(module) if not name.startswith("_") and name not in LEFT_OUT}
    return {name: found for name, found in every.items() if callable(found) and not isinstance(found, type)}


EVERY = {
    f"{module.__name__}.{name}": function
    for module in (np, np.linalg, np.fft)
    for name, function in functions(module).items()
}


def called(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The result of a function, or the exception that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **named)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            return error


def leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, (tuple, list)) else [result]


def is_plain_number(value: Any) -> bool:
    return isinstance(value, (float, complex, np.inexact)) or (
        isinstance(value, np.ndarray) and (np.issubdtype(value.dtype, np.inexact) or value.dtype.hasobject)
    )


@pytest.mark.parametrize("name", EVERY)
def test_every_function_leaves_the_caller_s_array_and_loses_no_derivative(name: str) -> None:
    function, variables = EVERY[name], 0
    for tail in TAILS:
        given, tail = X.copy(), tuple(part.copy() if isinstance(part, np.ndarray) else part for part in tail)
        with ox.Tape() as tape:
            found = called(function, tape.watch(given), *tail)
        np.testing.assert_array_equal(given, X)
        if isinstance(found, Exception):
            continue
        mine = [leaf for leaf in leaves(found) if isinstance(leaf, ox.Variable)]
        variables += len(mine)
        lost = [leaf for leaf in leaves(found) if is_plain_number(leaf) and not any(leaf is part for part in tail)]
        is_of_tail = name in GIVING_BACK
        assert not lost or is_of_tail or name.rpartition(".")[2] in CONSTANT, f"{tail}: {lost}"
        expected = called(function, X.copy(), *tail)
        if len(mine) == 1 and found is mine[0] and isinstance(expected, (np.ndarray, np.generic)):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            if name != "numpy.empty_like":  # whose elements are not initialized
                np.testing.assert_allclose(mine[0].value, expected, rtol=1e-12, atol=1e-14)
    if name.rpartition(".")[2] in ("sin", "sum", "sort", "ravel", "inv", "fft"):
        assert variables


def _has_out(function: Callable[..., Any]) -> bool:
    if isinstance(function, np.ufunc):
        return True
    try:
        return "out" in inspect.signature(function).parameters
    except ValueError:
        return function in (np.dot, np.concatenate, np.einsum)


ARGUMENTS = [(), (Z,), (0,), (Z, 0), ([0, 1], 0), (0.7, 1.2), (Z[0] > 1.0, 0), (2,), (50.0, 0)]


def outs(function: Callable[..., Any], *args: Any) -> list[np.ndarray]:
    """Valid arguments ``out`` of the function: some wrong shapes crash NumPy."""
    result = called(function, *args)
    if not isinstance(result, (np.ndarray, np.generic)):
        return []
    dtypes = {np.result_type(result.dtype, np.float32), np.dtype(complex), np.dtype(np.float32)}
    shapes = {result.shape, (2, *result.shape)} if isinstance(function, np.ufunc) else {result.shape}
    return [np.zeros(shape, dtype) for shape in shapes for dtype in dtypes]


@pytest.mark.parametrize("name", [name for name, function in EVERY.items() if _has_out(function)])
def test_every_out_is_an_assignment_or_refused(name: str) -> None:
    """``out=`` of a variable: what NumPy writes to a plain array; of a plain array: no derivative is lost."""
    function = EVERY[name]
    for arguments in ARGUMENTS:
        for shaped in outs(function, X, *arguments):
            expected = shaped.copy()
            theirs = called(function, X, *arguments, out=expected)
            if isinstance(theirs, Exception):
                continue
            given, out, plain = X.copy(), shaped.copy(), shaped.copy()
            with ox.Tape() as tape:
                x, y = tape.watch(given), tape.watch(out)
                found = called(function, x, *arguments, out=y)
                if isinstance(found, Exception):
                    assert isinstance(found, (TypeError, ValueError)), repr(found)
                    np.testing.assert_array_equal(y.value, out)
                elif np.array_equal(theirs, expected):  # NumPy's transforms may leave out as it was
                    single = shaped.dtype == np.float32
                    np.testing.assert_allclose(y.value, expected, rtol=1e-6 if single else 1e-12, atol=1e-14)
                refused, alone = called(function, x, *arguments, out=plain), called(function, x, *arguments)
            if isinstance(refused, Exception):
                np.testing.assert_array_equal(plain, shaped)
            else:
                assert not isinstance(alone, (ox.Variable, Exception)), name
            np.testing.assert_array_equal(given, X)
            np.testing.assert_array_equal(out, shaped)
