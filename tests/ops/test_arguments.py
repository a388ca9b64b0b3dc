"""Arguments: each keyword of NumPy's functions does on variables what it does on arrays, or is refused by name; wrong
arguments raise our errors."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.ops.core import primitives, products, sets, standard
from oxigrad.ops.numpy import extras as numpy_extras

A = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]])
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
V = np.array([3.0, -1.0, 2.0])
MASK = A > 0.0
PLACES = np.array([[0, 1, 2], [2, 1, 0]])

# --- keywords ----------------------------------------------------------------------------------------------------------

# Values of each keyword, of which one at a time is passed.
KEYWORDS: dict[str, list[Any]] = {
    "axis": [None, 0, 1, -1, (0, 1)],
    "axes": [(1, 0), 1, ((1,), (1,)), (0,), (-1,)],
    "axis1": [1],
    "axis2": [0],
    "base": [2.0],
    "casting": ["unsafe"],
    "constant_values": [2.0, (1.0, 2.0)],
    "copy": [True, False],
    "correction": [1, 0.5],
    "ddof": [1],
    "decimals": [1],
    "deg": [True],
    "descending": [True],
    "device": ["cpu", "elsewhere"],
    "dtype": [np.float32, np.float64, np.int64],
    "edge_order": [2],
    "endpoint": [False],
    "full_matrices": [False],
    "hermitian": [True],
    "include_initial": [True],
    "indexing": ["ij"],
    "initial": [2.0],
    "k": [1, -1],
    "keepdims": [True],
    "max": [1.0],
    "mean": [1.0],
    "min": [0.0],
    "mode": ["valid", "same", "wrap", "clip", "edge", "reflect", "symmetric", "linear_ramp", "raise", "complete", "r"],
    "n": [1, 2, 4, 5],
    "nan": [1.0],
    "norm": ["ortho", "forward"],
    "offset": [1, -1],
    "optimize": [True, "greedy"],
    "ord": [1, 2, "fro", "nuc", np.inf],
    "order": ["C", "F", "A", "K"],
    "posinf": [1.0],
    "prepend": [0.0, A[:, :1]],
    "rcond": [1e-3, 0.3],
    "reflect_type": ["odd"],
    "retstep": [True],
    "rtol": [1e-3, 0.3],
    "s": [(2, 2), (4, 5)],
    "sparse": [True],
    "stable": [True],
    "start": [1],
    "subok": [False, True],
    "upper": [True],
    "where": [MASK],
}

CALLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        "sum prod mean std var max min amax amin cumsum cumprod sort ravel copy transpose flip diff argmax argsort all any cumulative_prod cumulative_sum nan_to_num angle round trace diagonal triu tril rot90 real imag unstack sinc matrix_transpose gradient ones_like zeros_like unique_values count_nonzero diag squeeze".split(),
        (A,),
    ),
    **{name: ([A, A + 1.0],) for name in "stack concat concatenate vstack hstack column_stack dstack".split()},
    "array_split": (A, 2),
    "astype": (A, np.float32),
    "broadcast_to": (A, (2, 2, 3)),
    "clip": (A, -1.0, 2.0),
    "convolve": (V, V),
    "cross": (A, A),
    "dot": (A, S),
    "einsum": ("ij,jk,kl", A, S, S),
    "expand_dims": (A, 0),
    "full_like": (A, 2.0),
    "inner": (A, A),
    "kron": (A, A),
    "linspace": (V, 2.0 * V, 5),
    "matmul": (A, S),
    "meshgrid": (V, V),
    "moveaxis": (A, 0, 1),
    "outer": (V, V),
    "pad": (A, 1),
    "partition": (A, 1),
    "repeat": (A, 2),
    "reshape": (A, (3, 2)),
    "roll": (A, 1),
    "split": (A, 1),
    "swapaxes": (A, 0, 1),
    "take": (A, [0, 1]),
    "take_along_axis": (A, PLACES),
    "tensordot": (A, A),
    "tile": (A, 2),
    "vdot": (A, A),
    "vecdot": (A, A),
    "where": (MASK, A, 0.0),
    **{f"linalg.{name}": (S,) for name in "inv det slogdet cholesky svd svdvals eigh eigvalsh trace diagonal".split()},
    **{f"linalg.{name}": (A,) for name in "qr pinv norm matrix_norm vector_norm matrix_transpose".split()},
    "linalg.cross": (A, A),
    "linalg.matrix_power": (S, 2),
    "linalg.outer": (V, V),
    "linalg.solve": (S, V),
    "linalg.tensordot": (A, A),
    "linalg.vecdot": (A, A),
    **{
        f"fft.{name}": (A,)
        for name in (
            "fft ifft rfft irfft hfft ihfft fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn fftshift ifftshift".split()
        )
    },
}


def of_numpy(name: str) -> Callable[..., Any]:
    part, _, last = name.rpartition(".")
    return getattr(getattr(np, part) if part else np, last)


def of_ours(name: str) -> Callable[..., Any] | None:
    part, _, last = name.rpartition(".")
    return getattr(getattr(xp, part) if part else xp, last, None)


def keywords(name: str) -> Iterator[dict[str, Any]]:
    yield {}
    for parameter in inspect.signature(of_numpy(name)).parameters:
        yield from ({parameter: value} for value in KEYWORDS.get(parameter, []))


def leaves(result: Any) -> list[np.ndarray]:
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(ox.stop_gradient(result))]


def on_variables(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    with ox.Tape() as tape:

        def watched(arg: Any) -> Any:
            if isinstance(arg, list):
                return [watched(item) for item in arg]
            return tape.watch(arg) if isinstance(arg, np.ndarray) and arg.dtype.kind == "f" else arg

        return function(*map(watched, args), **named)


ERRORS = (TypeError, ValueError, IndexError, NotImplementedError)


def outcome(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The result of the function, or the type or value error that it raises."""
    try:
        return function(*args, **named)
    except ERRORS as error:
        return error


def compare(found: Callable[[], Any], name: str, named: dict[str, Any]) -> None:
    """Asserts NumPy's result and dtype, or an error, which names the argument if NumPy accepts it."""
    own, theirs = outcome(found), outcome(of_numpy(name), *CALLS[name], **named)
    if isinstance(own, Exception):
        by_name = type(own).__module__ == "oxigrad" or any(word in str(own) for word in (*named, "expected"))
        assert by_name or isinstance(theirs, Exception), (named, own)
        return
    assert not isinstance(theirs, Exception), (named, theirs)
    for mine, expected in zip(leaves(own), leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-9, err_msg=str(named))
        assert mine.dtype == expected.dtype, named


# Extensions of the standard that are left to the array library: a tuple of sizes, axes counted from the end.
EXTENDED = {
    ("linalg.vecdot", "axis"),
    ("linalg.cross", "axis"),
    ("vecdot", "axis"),
    ("cross", "axis"),
    ("linspace", "axis"),
    ("matmul", "axis"),
}
# Of other signatures or meanings in the standard.
OTHER = {"unique_values", "count_nonzero", "linalg.trace", "linalg.diagonal", "linalg.cross", "linalg.qr"}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_keywords_of_numpy_s_functions_are_honoured_or_refused(name: str) -> None:
    for named in keywords(name):
        if not any((name, key) in EXTENDED for key in named):
            compare(lambda named=named: on_variables(of_numpy(name), CALLS[name], named), name, named)


@pytest.mark.parametrize("name", [name for name in CALLS if of_ours(name) and name not in OTHER])
@pytest.mark.filterwarnings("ignore")
def test_keywords_of_our_functions_are_honoured_or_refused(name: str) -> None:
    for named in keywords(name):
        if not any((name, key) in EXTENDED for key in named):
            compare(lambda named=named: of_ours(name)(*CALLS[name], **named), name, named)
            compare(lambda named=named: on_variables(of_ours(name), CALLS[name], named), name, named)


@pytest.mark.parametrize("order", ["C", "F"])
def test_order_of_reshaped_elements(order: Any) -> None:
    weights = np.arange(6.0)
    for function in (
        lambda x: np.reshape(x, (6,), order=order),
        lambda x: np.ravel(x, order=order),
        lambda x: xp.reshape(x, (6,), order=order),
        lambda x: xp.reshape(xp.reshape(x, (3, 2), order=order), (-1,), order=order),
    ):
        np.testing.assert_array_equal(function(A), A.ravel(order))
        gradient = ox.grad(lambda x, function=function: xp.sum(function(x) * weights))(A)
        np.testing.assert_array_equal(gradient, weights.reshape(A.shape, order=order))


@pytest.mark.parametrize("optimize", [True, "greedy", "optimal", ["einsum_path", (1, 2), (0, 1)]])
def test_einsum_contracts_in_the_order_that_is_asked_for(optimize: Any) -> None:
    f = "ij,jk,kl->il"
    gradient = ox.grad(lambda x: xp.sum(np.einsum(f, x, S, S, optimize=optimize) * A))(A)
    np.testing.assert_allclose(gradient, A @ S @ S, rtol=1e-12)
    with pytest.raises(ValueError, match="optimize is 'best'"):
        ox.grad(lambda x: xp.sum(np.einsum(f, x, S, S, optimize="best")))(A)


def test_a_contraction_order_saves_the_work_that_it_is_asked_for() -> None:
    """The product of two long matrices first takes a thousand times the work of the product with the vector first."""
    tall, wide = np.ones((1000, 2)), np.ones((2, 1000))

    def sizes(optimize: Any) -> list[int]:
        with ox.Tape() as tape:
            xp.einsum("ij,jk,kl->il", tape.watch(tall), wide, tall, optimize=optimize)
        return [int(size) for line in str(tape).splitlines() for size in re.findall(r"\((1000), 1000\)", line)]

    assert sizes(False)
    assert not sizes(True)


CREATING = {
    "asarray": lambda x, **named: xp.asarray(x, **named),
    "full": lambda x, **named: xp.full((2,), x, **named),
    "full_like": lambda x, **named: xp.full_like(np.ones(2), x, **named),
    "linspace": lambda x, **named: xp.linspace(0.0, x, 3, **named),
}


@pytest.mark.parametrize("name", CREATING)
@pytest.mark.parametrize("value", [2.0, np.array(2.0)], ids=["number", "array"])
def test_a_device_is_the_variable_s_or_is_refused(name: str, value: Any) -> None:
    create = CREATING[name]
    expected = ox.grad(lambda x: xp.sum(create(x)))(value)
    for device in (None, "cpu"):
        np.testing.assert_array_equal(ox.grad(lambda x, d=device: xp.sum(create(x, device=d)))(value), expected)
    with pytest.raises(ValueError, match=f"{name}: device is 'elsewhere'"):
        ox.grad(lambda x: xp.sum(create(x, device="elsewhere")))(value)


@pytest.mark.parametrize("obj", [lambda x: [x, x], lambda x: xp.astype(x, np.float32)], ids=["list", "dtype"])
def test_a_copy_that_is_needed_and_forbidden_is_refused(obj: Callable[[Any], Any]) -> None:
    assert ox.grad(lambda x: xp.sum(xp.asarray(x, copy=False)))(2.0) == 1.0
    with pytest.raises(ValueError, match="copy=False"):
        ox.grad(lambda x: xp.sum(xp.asarray(obj(x), dtype=np.float64, copy=False)))(np.array(2.0))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_constant_values_are_refused_in_other_modes(mode: str) -> None:
    for named in ({"constant_values": 2.0}, {"constant_values": (1.0, 2.0)}):
        with pytest.raises(ValueError, match="constant_values"):
            ox.grad(lambda x, named=named: xp.sum(xp.pad(x, 1, mode=mode, **named)))(A)


@pytest.mark.parametrize("keyword", [{"where": MASK}, {"casting": "unsafe"}, {"order": "F"}])
def test_ufuncs_refuse_their_keywords(keyword: dict[str, Any]) -> None:
    for ufunc in (np.sin, np.hypot):
        with pytest.raises(
            ox.DerivativeError, match=f"np.{ufunc.__name__} of a variable does not take {next(iter(keyword))}"
        ):
            on_variables(ufunc, (A,) * ufunc.nin, keyword)


@pytest.mark.parametrize("keyword", [{"where": True}, {"casting": "same_kind"}, {"order": "K"}, {"subok": True}])
def test_ufuncs_take_the_defaults_of_their_keywords(keyword: dict[str, Any]) -> None:
    for ufunc in (np.sin, np.hypot):
        y = ox.vjp(lambda x, ufunc=ufunc: ufunc(*(x,) * ufunc.nin, **keyword), A)[0]
        np.testing.assert_array_equal(y, ufunc(*(A,) * ufunc.nin))
        gradient = ox.grad(lambda x, ufunc=ufunc: xp.sum(ufunc(*(x,) * ufunc.nin, out=x * 0.0, **keyword)))(A)
        np.testing.assert_array_equal(gradient, ox.grad(lambda x, ufunc=ufunc: xp.sum(ufunc(*(x,) * ufunc.nin)))(A))


def test_an_argument_given_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="np.clip: found min twice"):
        on_variables(np.clip, (A, -1.0, 2.0), {"min": 0.0})
    with ox.Tape() as tape, pytest.raises(TypeError, match="third argument"):
        pow(tape.watch(2.0), 2, 3)  # type: ignore[misc]


# --- dtypes, and numbers at the ends of their range ---------------------------------------------------------------------

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod", "trace"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_reductions_give_the_dtype_that_is_asked_for(name: str, dtype: str, library: Callable[..., Any]) -> None:
    array = np.ones((2, 2) if name == "trace" else 3, dtype)
    strict = library("array_api_strict")
    for asked in (None, *DTYPES):
        if asked is not None and not np.can_cast(dtype, asked, "same_kind"):
            continue
        found, expected = (getattr(module, name)(array, dtype=asked and np.dtype(asked)) for module in (xp, np))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        if "float16" not in (dtype, asked) and name not in ("trace",) and dtype != "bool":
            own = strict.asarray(array)
            asked_of = asked and getattr(strict, asked)
            assert getattr(xp, name)(own, dtype=asked_of).dtype == getattr(strict, name)(own, dtype=asked_of).dtype


REAL = np.array([-np.inf, -2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 1.0, 2.0, np.inf, np.nan])
UNARY = (
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log log1p log2 log10 "
    "negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc angle cbrt copy deg2rad exp2 "
    "fabs nan_to_num rad2deg real_if_close"  # sinc is exact at its roots, where NumPy's is not: see test_accuracy
).split()
BINARY = (
    "add atan2 copysign divide equal floor_divide greater hypot logaddexp maximum minimum multiply nextafter not_equal pow "
    "remainder subtract fmax fmin float_power"
).split()


def assert_same_numbers(found: Any, expected: Any, tolerance: float) -> None:
    """The dtype, the values, infinities and NaNs, and the signs of zeros."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    if expected.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("name", UNARY + BINARY)
@pytest.mark.filterwarnings("ignore")
def test_elementwise_functions_give_numpy_s_numbers_and_dtypes(name: str, dtype: str) -> None:
    function, theirs = getattr(xp, name), getattr(np, name)
    values = REAL.astype(dtype) if "float" in dtype else np.array([0, 1, 2, 3]).astype(dtype)
    args = (values,) if name in UNARY else tuple(np.meshgrid(values, values))
    tolerance = {"float32": 3e-6, "float16": 2e-3}.get(dtype, 1e-13)
    try:
        expected = theirs(*args)
    except TypeError:  # not of this dtype
        return
    with np.errstate(all="ignore"):
        assert_same_numbers(function(*args), expected, tolerance)
        if "float" in dtype and name != "nextafter":
            assert_same_numbers(leaves(on_variables(function, args, {}))[0], expected, tolerance)


# --- lists, and objects that are not arrays -----------------------------------------------------------------------------


def test_lists_among_variables_are_arrays() -> None:
    gradient = ox.grad(lambda x: x @ [1.0, 2.0, 3.0])(V)
    np.testing.assert_array_equal(gradient, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ox.grad(lambda x: [1.0, 2.0, 3.0] @ x)(V), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ox.grad(lambda x: xp.mean([x, 2.0 * x]))(V), np.full(3, 0.5))
    np.testing.assert_array_equal(ox.grad(lambda x: xp.var([x[0], x[1]]))(V), [2.0, -2.0, 0.0])
    np.testing.assert_array_equal(ox.grad(lambda x: np.dot(x, [1.0, 2.0, 3.0]))(V), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(x * [x[0], x[1], 1.0]))(V), [6.0, -2.0, 1.0])
    for join in (np.hstack, xp.hstack):
        np.testing.assert_array_equal(ox.grad(lambda x, join=join: xp.sum(join([x[0], 1.0, x])))(V), [2.0, 1.0, 1.0])
    for columns in ([V, V], [V[0], V[1]], [A, V[:2]]):
        value = on_variables(np.column_stack, (columns,), {})
        np.testing.assert_array_equal(leaves(value)[0], np.column_stack(columns))
    with pytest.raises(ox.ShapeError, match=r"one shape, found the shapes \[\(\), \(3,\)\]"):
        ox.grad(lambda x: xp.sum(xp.mean([x, x[0]])))(V)


def test_the_sum_of_weights_beside_an_average_that_is_nan() -> None:
    x, weights = np.array([[1.0, math.nan], [2.0, math.inf]]), np.array([1.0, 3.0])
    mean, total = ox.vjp(lambda x: np.average(x, 0, weights, returned=True), x)[0]
    np.testing.assert_array_equal(mean, np.average(x, 0, weights))
    np.testing.assert_array_equal(total, [4.0, 4.0])
    gradient = ox.grad(lambda weights: xp.sum(np.average(x, 0, weights, returned=True)[1]))(weights)
    np.testing.assert_array_equal(gradient, [2.0, 2.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variances_of_complex_numbers_with_a_dtype(name: str, dtype: Any) -> None:
    """A real dtype is that of the result: the imaginary parts count."""
    z = np.array([1.0 + 2.0j, 3.0 - 1.0j, 0.5j])
    y = ox.vjp(lambda z: getattr(np, name)(z, dtype=dtype), z)[0]
    assert y.dtype == dtype
    np.testing.assert_allclose(y, getattr(np, name)(z), rtol=1e-6)


def test_mismatched_shapes_are_named() -> None:
    for call, message in {
        lambda x: np.dot(x, np.ones(4)): r"dot: found shapes \(3,\) and \(4,\), expected sizes 3 and 4",
        lambda x: np.vecdot(x, np.ones(1)): "found sizes 3 and 1 along axis -1",
        lambda x: xp.concat([x[0], x[1]]): "concat: axis is 0: expected an axis of an array of 0 dimensions",
        lambda x: xp.concat([x, x[None, :]]): r"concat: found shapes \(3,\), \(1, 3\)",
        lambda x: xp.stack([x, x[:2]]): r"stack: found shapes \(3,\), \(2,\), expected arrays of one shape",
        lambda x: xp.stack([x, x], axis=2): "stack: axis is 2: expected an axis of an array of 2 dimensions",
        lambda x: xp.permute_dims(x, (0, 0)): "expected a permutation of the 1 dimensions",
        lambda x: np.tensordot(x, x, axes=2): "axes is 2",
        lambda x: xp.fft.fft(x[0]): "axis is -1: expected an axis of an array of 0 dimensions",
        lambda x: np.gradient(x, np.ones(2)): r"found coordinates of shape \(2,\), expected \(3,\)",
        lambda x: xp.tile(x, -1): "negative count",
        lambda x: xp.full((-1,), x[0]): "negative size",
    }.items():
        with pytest.raises(ox.ShapeError, match=message):
            ox.grad(lambda x, call=call: xp.sum(call(x)))(V)


def test_a_name_that_is_not_there_brings_the_nearest() -> None:
    with pytest.raises(AttributeError, match="module 'oxigrad.xp' has no attribute 'snh' .did you mean sinh"):
        xp.snh  # noqa: B018
    assert not hasattr(xp, "no_such_function")


def wrong(tape: Any) -> list[Any]:
    array, number = tape.watch(V), tape.watch(2.0)
    mixed: list[Any] = [
        array,
        tape.watch(A),
        number,
        tape.watch(np.zeros((0,))),
        tape.watch(np.array(1.0)),
        V,
        PLACES,
        MASK,
    ]
    return [
        *mixed,
        [1.0, 2.0],
        [array, number],
        [],
        None,
        "text",
        3,
        -7,
        2.5,
        1 + 2j,
        (1, 2),
        {},
        len,
        np.array(["a"], object),
    ]


NAMES = [
    *sorted(
        set(standard.__all__ + numpy_extras.__all__ + primitives.__all__ + products.__all__ + sets.__all__) - {"item"}
    ),
    *(function.__name__ for function in ox._core.elementwise_functions()),
    *(f"linalg.{name}" for name in xp.linalg.__all__ if not name.endswith("Result")),
    *(f"fft.{name}" for name in xp.fft.__all__),
    *(f"special.{name}" for name in xp.special.__all__),
]


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_in(8)
def test_wrong_arguments_raise_errors_of_types_or_values(name: str) -> None:
    function = of_ours(name)
    assert function is not None
    with ox.Tape() as tape, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        args = wrong(tape)
        for chosen in (*((arg,) for arg in args), *itertools.product(args, args)):
            found = outcome(function, *chosen)
            if isinstance(found, Exception):
                assert str(found), chosen
                assert "has no attribute" not in str(found), chosen
    np.testing.assert_array_equal(V, [3.0, -1.0, 2.0])  # no argument is written to


# --- where a derivative could be lost -----------------------------------------------------------------------------------

LOSSY: dict[str, Callable[[Any], Any]] = {
    "np.float64": lambda x: np.float64(x[0]),
    "np.array": lambda x: np.array(x),
    "np.array of a list": lambda x: np.array([x[0], x[1]]),
    "np.asarray": lambda x: np.asarray([x[0], x[1]]),
    "np.full": lambda x: np.full(3, x[0]),
    "np.arange": lambda x: np.arange(x[0]),
    "np.fromiter": lambda x: np.fromiter(x, float),
    "np.vectorize": lambda x: np.vectorize(lambda y: y * y)(x),
    "np.random": lambda x: np.random.default_rng(0).normal(loc=x[0]),
    "np.nextafter": lambda x: np.nextafter(x, 2.0),
    "xp.nextafter": lambda x: xp.nextafter(x, 2.0),
    "np.pad": lambda x: np.pad(V, 1, constant_values=x[0]),
    "math.sin": lambda x: __import__("math").sin(x[0]),
    "complex": lambda x: complex(x[0]),
    "an assignment": lambda x: np.zeros(3).__setitem__(0, x[0]),
    "an assignment of all": lambda x: np.zeros(3).__setitem__(slice(None), x),
}


@pytest.mark.parametrize("name", LOSSY)
def test_writing_that_would_lose_a_derivative_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"stop_gradient|does not take|has no derivative"):
        ox.grad(lambda x: xp.sum(LOSSY[name](x)))(V)


KEPT: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "pad": (lambda x: xp.pad(V, 1, constant_values=x[0]), [2.0, 0.0, 0.0]),
    "prepend": (lambda x: np.diff(V, prepend=x[0]), [-1.0, 0.0, 0.0]),
    "full": (lambda x: xp.full(3, x[0]), [3.0, 0.0, 0.0]),
    "full_like": (lambda x: xp.full_like(V, x[0]), [3.0, 0.0, 0.0]),
    "linspace": (lambda x: np.linspace(x[0], x[1], 5), [2.5, 2.5, 0.0]),
    "linspace of arrays": (lambda x: np.linspace(x, 2.0 * x, 3), [4.5, 4.5, 4.5]),
    "clip": (lambda x: np.clip(V, x[1] + 0.5, x[2] + 0.5), [0.0, 1.0, 1.0]),
    "asarray": (lambda x: xp.asarray([x[0], x[1]]), [1.0, 1.0, 0.0]),
    "reversed": (lambda x: next(reversed(x)), [0.0, 0.0, 1.0]),
    "sort": (lambda x: np.sort(xp.stack([x, x]), axis=None), [2.0, 2.0, 2.0]),
}


@pytest.mark.parametrize("name", KEPT)
def test_derivatives_of_arguments_by_keyword_are_kept(name: str) -> None:
    function, expected = KEPT[name]
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(function(x)))(V), expected)


def test_differences_of_unevenly_spaced_elements() -> None:
    places = np.array([0.0, 1.0, 3.0])
    ox.testing.check_grads(lambda x, at: np.gradient(x, at, axis=1), (A, places))
    value = on_variables(lambda x: np.gradient(x, 0.5, places)[1], (A,), {})
    np.testing.assert_allclose(leaves(value)[0], np.gradient(A, 0.5, places)[1])
