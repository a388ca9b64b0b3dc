"""Axes out of range and shapes that do not fit, of variables: an error of ours that NumPy's `except` catches, for every function."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

A = np.arange(1.0, 13.0).reshape(3, 4)
V = np.array([3.0, 1.0, 2.0])
PARTS = ("", "linalg", "fft", "special", "stats", "integrate", "ndimage", "signal", "spatial.distance")
PARAMETERS = ("axis", "axes", "axis1", "axis2", "source", "destination")

# Arguments of functions that take more than a matrix.
SOS, AB = [[1.0, 0.0, 0.0, 1.0, 0.5, 0.0]], ([1.0], [1.0, 0.5])
CALLS: dict[str, tuple[Any, ...]] = {
    **{name: ([A, A],) for name in "concat concatenate stack".split()},
    **dict.fromkeys("append tensordot vecdot linalg.tensordot linalg.vecdot".split(), (A, A)),
    **dict.fromkeys("geomspace logspace".split(), (V, V + 1.0, 3)),
    **dict.fromkeys("cross linalg.cross".split(), (A[:, :3], A[:, :3])),
    **dict.fromkeys("argpartition delete partition repeat roll".split(), (A, 1)),
    **dict.fromkeys("percentile nanpercentile quantile nanquantile".split(), (A, 0.5)),
    **dict.fromkeys("array_split split".split(), (A, 2)),
    **{f"ndimage.{name}": (A, A[:2, :2]) for name in "convolve correlate".split()},
    **{f"ndimage.{name}": (A, V) for name in "convolve1d correlate1d".split()},
    **{
        f"ndimage.{name}": (A, 3)
        for name in """fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform gaussian_filter gaussian_filter1d
        gaussian_gradient_magnitude gaussian_laplace rotate uniform_filter1d""".split()
    },
    **{
        f"ndimage.{name}": (A, 3)
        for name in """black_tophat grey_closing grey_dilation grey_erosion grey_opening maximum_filter maximum_filter1d
        median_filter minimum_filter minimum_filter1d morphological_gradient morphological_laplace white_tophat""".split()
    },
    **dict.fromkeys("ndimage.percentile_filter ndimage.rank_filter".split(), (A, 2, 3)),
    **{f"signal.{name}": (A, A) for name in "fftconvolve oaconvolve".split()},
    "apply_along_axis": (np.sum, 0, A),
    "apply_over_axes": (np.sum, A, 0),
    "compress": (np.array([True, False]), A),
    "insert": (A, 1, 2.0),
    "linalg.tensorsolve": (np.ones((2, 2, 4)), np.ones((2, 2))),
    "put_along_axis": (A, np.zeros((3, 4), int), 1.0, 0),
    "signal.filtfilt": (*AB, np.ones((9, 9))),
    "signal.lfilter": (*AB, A),
    "signal.resample": (A, 6),
    "signal.savgol_filter": (A, 3, 1),
    "signal.sosfilt": (SOS, A),
    "signal.upfirdn": (V.tolist(), A),
    "take": (A, np.array([0, 1])),
    "take_along_axis": (A, np.zeros((3, 4), int)),
}
# Functions whose axes are no axes of an argument, or that refuse the argument by name.
OTHER = {
    "matvec": "does not take ax",
    "vecmat": "does not take ax",
    "nested_iters": "is of indices",
    "packbits": "takes whole numbers only",
    "unpackbits": "takes whole numbers only",
}


def of_ours(name: str) -> Any:
    return operator.attrgetter(name)(xp)


def of_numpy(name: str) -> Any:
    """NumPy's function of a name; None where it is SciPy's, or of the standard alone."""
    part, _, last = name.rpartition(".")
    space = {"": np, "linalg": np.linalg, "fft": np.fft}.get(part)
    return getattr(space, last, None)


def with_axes() -> Iterator[tuple[str, str]]:
    """Each function of `xp` with each of its parameters that is an axis."""
    for part in PARTS:
        space = operator.attrgetter(part)(xp) if part else xp
        for name in sorted(space.__all__):
            function = getattr(space, name)
            if isinstance(function, type) or not callable(function):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            path = f"{part}.{name}" if part else name
            yield from ((path, parameter) for parameter in PARAMETERS if parameter in parameters)


AXES = [*with_axes()]


def named_axes(name: str, parameter: str, bad: int) -> Iterator[dict[str, Any]]:
    """Keywords with an axis out of range, alone and, where several are taken, among others."""
    last = name.rpartition(".")[2]
    if last == "tensordot":
        yield from ({"axes": ([0], [bad])}, {"axes": ([bad], [0])})
    elif parameter in ("source", "destination"):
        yield {"source": 0, "destination": 0, parameter: bad}
    elif parameter == "axis1" or parameter == "axis2":
        yield {"axis1": 0, "axis2": 1, parameter: bad}
    elif parameter == "axes":
        yield {"axes": (bad, 0)}
    else:
        yield {parameter: bad}


def raised(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], watch: bool = True) -> Any:
    """The error of a function of variables, or of the arrays themselves; None where there is none."""
    with ox.Tape() as tape:

        def watched(arg: Any) -> Any:
            if isinstance(arg, list) and isinstance(arg[0], np.ndarray):
                return [watched(item) for item in arg]
            return tape.watch(arg) if watch and isinstance(arg, np.ndarray) and arg.dtype.kind == "f" else arg

        try:
            function(*map(watched, args), **named)
        except Exception as error:  # noqa: BLE001 - which one is what the test asks
            return error
    return None


def test_the_table_is_of_functions_with_axes() -> None:
    assert len(AXES) > 140
    names = dict(AXES)
    assert {*CALLS, *OTHER} <= names.keys(), {*CALLS, *OTHER} - names.keys()
    for name, reason in OTHER.items():
        assert raised(of_ours(name), (A, A[0]), {"axis": 0}) is not None, reason


@pytest.mark.parametrize(("name", "parameter"), [case for case in AXES if case[0] not in OTHER])
@pytest.mark.filterwarnings("ignore")
def test_an_axis_out_of_range_is_named(name: str, parameter: str) -> None:
    args = CALLS.get(name, (A,))
    for function in filter(None, (of_ours(name), of_numpy(name))):
        for bad in (7, -8):
            for named in named_axes(name, parameter, bad):
                given = args
                if name in ("apply_along_axis", "apply_over_axes", "put_along_axis"):  # by position only, in part
                    given, named = tuple(bad if isinstance(arg, int) else arg for arg in args), {}
                error = raised(function, given, named)
                assert isinstance(error, ox.ShapeError), (named, error)
                assert isinstance(error, IndexError), (named, error)
                assert f"{bad}" in str(error), (named, error)
                assert "axis" in str(error), (named, error)
                assert "expected" in str(error), (named, error)


# --- shapes ------------------------------------------------------------------------------------------------------------


def ones(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) for shape in shapes)


# Arguments that do not fit, for each contraction and each function of matrices.
PRODUCTS = [ones((3,), (4,)), ones((2, 3), (4,)), ones((2, 3), (2, 4)), ones((3,), (4, 2)), ones((2, 2, 3), (3, 4, 2))]
VECTOR, WIDE, STACK, NUMBER = ones((3,)), ones((2, 3)), ones((4, 2, 3)), ones(())
SQUARE = ones((3, 3))[0]
SHAPES: dict[str, list[tuple[Any, ...]]] = {
    **dict.fromkeys("matmul linalg.matmul dot inner tensordot linalg.tensordot".split(), PRODUCTS),
    **dict.fromkeys("vecdot linalg.vecdot".split(), PRODUCTS[:1]),
    **{key: [ones((3,), (4,)), ones((2, 4), (2, 4))] for key in "cross linalg.cross".split()},
    "vdot": PRODUCTS[:3],
    "matvec": [ones((2, 3), (4,)), ones((3,), (3,)), ones((2, 2, 3), (3, 3))],
    "vecmat": [ones((4,), (2, 3)), ones((3,), (3,)), ones((3, 2), (2, 2, 3))],
    "linalg.multi_dot": [(list(arrays),) for arrays in (ones((2, 3), (2, 3)), ones((2, 3), (3, 4), (2, 4)))],
    **{key: [ones((2, 3), (3,)), ones((3,), (2, 3))] for key in "convolve correlate".split()},
    **{
        key: [(SQUARE, *ones((4,))), (SQUARE, *ones((4, 2))), ones((2, 3), (2,)), ones((3,), (3,))]
        for key in [f"linalg.{name}" for name in "solve solve_triangular".split()]
    },
    "linalg.lstsq": [ones((3, 2), (4,)), ones((3,), (3,))],
    "linalg.tensorsolve": [ones((3,), (4,)), ones((2, 3), (2,))],
    "linalg.tensorinv": [VECTOR, WIDE],
    **{
        key: [VECTOR, WIDE, NUMBER]
        for key in [
            f"linalg.{name}"
            for name in """cho_factor cholesky coshm cosm det eig eigh eigvals eigvalsh expm inv logm lu lu_factor sinhm sinm slogdet\n            sqrtm""".split()
        ]
    },
    "linalg.matrix_power": [(*WIDE, 2), (*VECTOR, 2)],
    "linalg.fractional_matrix_power": [(*WIDE, 0.5), (*VECTOR, 0.5)],
    **{f"linalg.{name}": [VECTOR, NUMBER] for name in "matrix_norm matrix_transpose pinv qr svd svdvals".split()},
    **{f"linalg.{name}": [WIDE, NUMBER] for name in "circulant hankel toeplitz".split()},
    "linalg.expm_frechet": [(SQUARE, *ones((4, 4))), ones((2, 3), (2, 3))],
    "linalg.solve_continuous_lyapunov": [(SQUARE, *ones((4, 4)))],
    "linalg.solve_discrete_lyapunov": [(SQUARE, *ones((4, 4))), ones((3,), (3,))],
    "linalg.solve_sylvester": [(SQUARE, SQUARE, *ones((4, 4)))],
    "linalg.solve_toeplitz": [ones((3,), (4,))],
    "linalg.solveh_banded": [ones((2, 3), (4,)), ones((3,), (3,))],
    "linalg.khatri_rao": [ones((2, 3), (2, 4))],
    "linalg.cond": [VECTOR],
    "linalg.trace": [VECTOR],
    "linalg.diagonal": [VECTOR],
    "trace": [VECTOR],
    "diagonal": [VECTOR],
}
SUBSCRIPTS = {
    "ij,jk": ones((2, 3), (4, 2)),
    "i,i": ones((3,), (4,)),
    "...i,...i": ones((2, 3), (4, 3)),
    "ii": WIDE,
    "ij": VECTOR,
}


def assert_named(function: Callable[..., Any], args: tuple[Any, ...], theirs: Callable[..., Any] | None = None) -> None:
    """Asserts our error, of the class that NumPy raises."""
    error = raised(function, args, {})
    assert isinstance(error, ox.ShapeError), (args, error)
    assert "expected" in str(error), (args, error)
    expected = raised(theirs or function, args, {}, watch=False)
    if isinstance(expected, ValueError):
        assert isinstance(error, (np.linalg.LinAlgError if isinstance(expected, np.linalg.LinAlgError) else ValueError))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.filterwarnings("ignore")
def test_shapes_that_do_not_fit_are_named(name: str) -> None:
    numpys = of_numpy(name)
    for args in SHAPES[name]:
        assert_named(of_ours(name), args, of_numpy(name))
        if numpys is not None:
            assert_named(numpys, args)


@pytest.mark.parametrize("args", PRODUCTS)
def test_the_operator_of_products_names_shapes(args: tuple[Any, ...]) -> None:
    assert_named(operator.matmul, args)
    assert_named(lambda *args: ox.vmap(operator.matmul)(*(np.stack([arg, arg]) for arg in args)), args, operator.matmul)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_operands_of_other_shapes_than_the_subscripts_say(subscripts: str) -> None:
    for space in (np, xp):
        assert_named(lambda *args, space=space: space.einsum(subscripts, *args), SUBSCRIPTS[subscripts])


def test_every_function_of_matrices_is_in_the_table() -> None:
    """Completeness of the table; functions left out take any shape, or have no argument that is a matrix alone."""
    others = {
        "block_diag", "cho_solve", "kron", "lu_solve", "matrix_rank", "norm", "outer", "polar", "solve_banded", "vector_norm",
    }  # fmt: skip
    functions = {name for name in xp.linalg.__all__ if not isinstance(getattr(xp.linalg, name), type)}
    listed = {name.removeprefix("linalg.") for name in SHAPES if name.startswith("linalg.")}
    assert functions == listed | others
    assert not listed & others


@pytest.mark.parametrize("shape", [(3,), (1, 3), ()], ids=str)
@pytest.mark.parametrize("name", "sum prod mean var std max min nansum nanprod nanmean nanvar nanmax nanmin".split())
def test_a_mask_that_is_larger_than_the_array_is_refused(name: str, shape: tuple[int, ...]) -> None:
    """It was broadcast with the array, whose elements were repeated."""
    x, named = np.ones(shape), {"initial": 0.0} if name[-3:] in ("max", "min") else {}
    for where in (np.ones((2, 3), bool), [[True], [False]]):
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's texts differ
            getattr(np, name)(x, where=where, **named)
        with pytest.raises(ox.ShapeError, match=r"found where of shape \(2, \d\), expected one that broadcasts to"):
            ox.vjp(lambda x, where=where: getattr(np, name)(x, where=where, **named), x)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_more_sizes_than_dimensions_are_refused(name: str) -> None:
    for x, s in ((V, (3, 4)), (A, (2, 3, 4))):
        with pytest.raises(np.exceptions.AxisError), pytest.warns(DeprecationWarning, match="axes"):
            getattr(np.fft, name)(x, s)
        with pytest.raises(
            np.exceptions.AxisError, match=f"^{name}: found {len(s)} sizes s, expected at most {x.ndim}"
        ):
            ox.vjp(lambda x, s=s: getattr(xp.fft, name)(x, s), x)


def test_errors_that_are_not_of_shapes_stay() -> None:
    for call in (
        lambda x: xp.linalg.cholesky(-x),
        lambda x: np.linalg.inv(0.0 * x),
        lambda x: xp.argmax(x, axis="first"),
        lambda x: xp.ndimage.convolve(x, x, mode="other"),
        lambda x: xp.vecmat(x, x, axis=0),
    ):
        error = raised(call, (np.eye(3),), {})
        assert isinstance(error, (ValueError, TypeError)), error
        assert not isinstance(error, ox.ShapeError), error


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative_functions_take_arrays_with_dimensions(name: str, axis: Any, initial: bool) -> None:
    """The standard's have one or more, and an axis from -N to N - 1. Of none, array_api_strict's product raises, and results of libraries differ."""
    f = lambda x: getattr(xp, name)(x, axis=axis, include_initial=initial)  # noqa: E731
    x = np.array(2.0)
    for call in (
        lambda: f(x),
        lambda: ox.grad(lambda x: xp.sum(f(x)))(x),
        lambda: ox.jvp(f, (x,), (x,)),
        lambda: ox.vmap(f)(np.array([2.0, 3.0])),
        lambda: ox.vmap(ox.grad(lambda x: xp.sum(f(x))))(np.array([2.0, 3.0])),
    ):
        with pytest.raises(ox.ShapeError, match=f"^{name}: found an array of no dimensions, expected one or more$"):
            call()
    each = np.array([[2.0], [3.0]])
    np.testing.assert_array_equal(
        ox.vmap(f)(each), [getattr(np, name)(x, axis=axis, include_initial=initial) for x in each]
    )


@pytest.mark.parametrize("bad", [7, -8])
@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("pad", lambda x, axis: xp.pad(x, {axis: 1})),
        ("CubicSpline", lambda x, axis: xp.interpolate.CubicSpline(np.arange(4.0), x, axis=axis)(0.5)),
        ("PchipInterpolator", lambda x, axis: xp.interpolate.PchipInterpolator(np.arange(4.0), x, axis=axis)(0.5)),
        ("make_interp_spline", lambda x, axis: xp.interpolate.make_interp_spline(np.arange(4.0), x, axis=axis)(0.5)),
    ],
)
def test_axes_of_keys_and_of_points_are_in_range(name: str, of: Any, bad: int) -> None:
    with pytest.raises(ox.ShapeError, match=f"^{name}: axis is {bad}: expected an axis of an array of 2 dimensions"):
        ox.grad(lambda x: xp.sum(of(x, bad)))(np.ones((4, 4)))
