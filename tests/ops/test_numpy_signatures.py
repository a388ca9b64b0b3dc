"""Functions under NumPy's and SciPy's names have their parameters: what differs is in a table, with the reason."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

NONE: Any = np._NoValue
NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
A = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]])
S = np.array([[4.0, 1.0], [1.0, 3.0]])
V = np.array([3.0, 1.0, 2.0])


def functions() -> Iterator[tuple[str, Any, Any]]:
    """Each function of `xp` with NumPy's of its name."""
    for part, theirs in (("", np), ("linalg", np.linalg), ("fft", np.fft)):
        space = getattr(xp, part) if part else xp
        for name in sorted(space.__all__):
            own, numpys = getattr(space, name), getattr(theirs, name, None)
            if callable(numpys) and not isinstance(numpys, type) and not isinstance(own, type):
                yield (f"{part}.{name}" if part else name), own, numpys


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def has_signature(function: Any) -> bool:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        return False
    return True


def required(given: dict[str, inspect.Parameter]) -> list[str]:
    """The parameters by position without a default: the standard gives them other names."""
    return [p.name for p in given.values() if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]


def differences(own: Any, numpys: Any) -> Iterator[tuple[str, str]]:
    """Differences of a signature from NumPy's, but for names of required parameters, and whether others are by keyword alone."""
    ours, theirs = parameters(own), parameters(numpys)
    first, second = required(ours), required(theirs)
    if len(first) != len(second):
        yield "required", f"{len(first)}"
    rest = {n: p for n, p in ours.items() if n not in first and p.kind is not p.VAR_POSITIONAL}
    expected = {n: p for n, p in theirs.items() if n not in second and p.kind is not p.VAR_POSITIONAL}
    yield from (("missing", name) for name in expected.keys() - ours.keys())
    yield from (("further", name) for name in rest.keys() - theirs.keys())
    for name in rest.keys() & expected.keys():
        values = [
            None if p.default in (NONE, False) or p.default is NONE else p.default for p in (rest[name], expected[name])
        ]
        if values[0] != values[1]:
            yield "default", name


FUNCTIONS = {name: (own, numpys) for name, own, numpys in functions()}
COMPARED = {
    name: pair
    for name, pair in FUNCTIONS.items()
    if not isinstance(pair[1], np.ufunc) and all(map(has_signature, pair))
}

# What differs, by (kind, parameter): the functions, and the reason. Where NumPy's functions take a parameter that is missing, it is
# taken here too (the call is NumPy's), or refused by name: `test_parameters_of_numpy_that_are_not_in_the_signature`.
_FFT = "fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn"
_CREATED = "empty_like full_like ones_like zeros_like"
DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {
    ("missing", "out"): (
        f"""all any argmax argmin clip concat cumprod cumsum cumulative_prod cumulative_sum dot einsum max mean min outer prod round
        stack std sum take trace var {_FFT}""",
        "the standard has no out: a variable is written to by an assignment",
    ),
    ("missing", "where"): ("all any prod std var", "the standard has no mask"),
    ("missing", "deg"): ("angle", "one unit: rad2deg converts"),
    ("missing", "like"): ("arange asarray empty eye full ones zeros", "NumPy's protocol for creation"),
    ("missing", "kind"): ("argsort isin partition sort", "the algorithm is the library's"),
    ("missing", "order"): (
        f"argsort asarray copy empty eye full ones partition sort zeros {_CREATED}", "the memory order is the library's",
    ),
    ("missing", "subok"): (f"broadcast_arrays broadcast_to copy {_CREATED}", "subclasses are NumPy's"),
    ("missing", "shape"): (_CREATED, "the standard has the function without _like for that"),
    ("missing", "casting"): ("can_cast concat stack", "the standard promotes"),
    ("missing", "dtype"): ("concat std var", "the standard has astype for that"),
    ("missing", "a_min"): ("clip", "the standard's name is min"),
    ("missing", "a_max"): ("clip", "the standard's name is max"),
    ("missing", "kwargs"): ("clip einsum pad", "keywords of ufuncs and modes, here by their names"),
    ("missing", "axisa"): ("cross", "the standard has one axis"),
    ("missing", "axisb"): ("cross", "the standard has one axis"),
    ("missing", "axisc"): ("cross", "the standard has one axis"),
    ("missing", "M"): ("eye", "the standard's name is n_cols"),
    ("missing", "assume_unique"): ("isin", "the algorithm is the library's"),
    ("missing", "retstep"): ("linspace", "the standard returns the numbers alone"),
    ("missing", "axis"): ("linspace", "the standard's numbers are along a new first axis"),
    ("missing", "copy"): ("meshgrid", "the standard's arrays have memory of their own or not"),
    ("missing", "sparse"): ("meshgrid", "the standard's arrays are dense"),
    ("missing", "initial"): ("prod", "the standard has no initial value"),
    ("missing", "tol"): ("linalg.matrix_rank", "the standard's name is rtol"),
    ("missing", "decimals"): ("round", "the standard rounds to whole numbers"),
    ("missing", "ddof"): ("std var", "the standard's name is correction"),
    ("missing", "mean"): ("std var", "the standard computes it"),
    ("missing", "mode"): ("take", "the standard refuses indices out of range"),
    ("missing", "x"): ("where", "the standard's where has three arguments"),
    ("missing", "y"): ("where", "the standard's where has three arguments"),
    ("missing", "UPLO"): ("linalg.eigh linalg.eigvalsh", "the standard's matrices are Hermitian"),
    ("missing", "hermitian"): ("linalg.matrix_rank linalg.pinv linalg.svd", "the standard has no such shortcut"),
    ("missing", "rcond"): ("linalg.pinv", "the standard's name is rtol"),
    ("missing", "compute_uv"): ("linalg.svd", "the standard has svdvals for that"),
    **({} if NUMPY >= (2, 5) else {("further", "descending"): ("argsort sort", "the standard's parameter")}),
    ("further", "b"): ("linalg.eigh linalg.eigvalsh", "SciPy's second matrix"),
    ("further", "n_cols"): ("eye", "the standard's name of M"),
    ("further", "constant_values"): ("pad", "a keyword of NumPy's modes"),
    ("further", "end_values"): ("pad", "a keyword of NumPy's modes"),
    ("further", "reflect_type"): ("pad", "a keyword of NumPy's modes"),
    ("further", "stat_length"): ("pad", "a keyword of NumPy's modes"),
    ("further", "dtype"): ("fft.fftfreq fft.rfftfreq", "the standard's parameter"),
    ("default", "stable"): ("argsort sort", "the standard's sort is stable"),
    ("default", "axis"): ("cross", "the standard's vectors are along the last axis"),
    ("default", "dtype"): ("eye", "the standard's default is that of the library, float64 in NumPy"),
    ("default", "norm"): (_FFT, "the standard's name of NumPy's None"),
    ("required", "1"): ("einsum expand_dims", "subscripts are always given; the standard's axis has a default"),
    ("required", "3"): ("where", "the standard's where has three arguments"),
}  # fmt: skip


def test_signatures_are_numpy_s() -> None:
    """But for the differences in the table, each of which exists."""
    assert len(COMPARED) > 250
    found: dict[tuple[str, str], set[str]] = {}
    for name, (own, numpys) in COMPARED.items():
        for kind in differences(own, numpys):
            found.setdefault(kind, set()).add(name)
    allowed = {kind: set(names.split()) for kind, (names, _) in DIFFERENCES.items()}
    assert {
        kind: names - allowed.get(kind, set()) for kind, names in found.items() if names - allowed.get(kind, set())
    } == {}
    assert {
        kind: names - found.get(kind, set()) for kind, names in allowed.items() if names - found.get(kind, set())
    } == {}


# --- calls with NumPy's arguments ------------------------------------------------------------------------------------------

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("concat stack vstack hstack dstack column_stack".split(), ([A, A],)),
    **dict.fromkeys("append cross dot inner outer kron tensordot vdot isin linalg.tensordot".split(), (S[0], S[1])),
    **dict.fromkeys("convolve correlate".split(), (V, V)),
    **dict.fromkeys("array_split split hsplit repeat roll partition rollaxis".split(), (A, 1)),
    **dict.fromkeys("det eig eigh eigvals eigvalsh inv cholesky slogdet cond tensorinv".split(), (S,)),
    **{f"linalg.{name}": (S,) for name in "det eig eigh eigvals eigvalsh inv cholesky slogdet cond svd".split()},
    "cross": (A, A),
    "diagonal": (A,),
    "linspace": (1.0, 2.0),
    "linalg.solve": (S, V[:2]),
    "reshape": (A, (3, 2)),
    "searchsorted": (np.sort(V), V),
    "take": (A, np.array([0, 1])),
    "take_along_axis": (A, np.zeros((2, 3), int)),
}
# Those that set something, print, or make what is no array.
UNCALLED = """asmatrix bmat einsum info matrix set_printoptions setbufsize seterr seterrcall show_config show_runtime
    test where can_cast""".split()


def called(function: Any, args: tuple[Any, ...], named: dict[str, Any], *, watch: bool) -> Any:
    """The plain results, or the error, of arrays or of variables."""
    with ox.Tape() as tape, warnings.catch_warnings():

        def watched(arg: Any) -> Any:
            if isinstance(arg, list):
                return [watched(item) for item in arg]
            return tape.watch(arg) if watch and isinstance(arg, np.ndarray) and arg.dtype.kind == "f" else arg

        try:
            warnings.simplefilter("ignore")
            return ox.tree.map(ox.stop_gradient, function(*map(watched, args), **named))
        except (TypeError, ValueError, NotImplementedError, IndexError) as error:
            return error


def assert_same(found: Any, expected: Any, what: Any) -> None:
    for mine, other in zip(ox.tree.leaves(found), ox.tree.leaves(expected), strict=True):
        check = np.testing.assert_allclose if np.asarray(other).dtype.kind in "biufc" else np.testing.assert_array_equal
        check(np.asarray(mine), np.asarray(other), err_msg=str(what))


def is_called(name: str) -> bool:
    """Whether NumPy's function takes the arguments."""
    try:
        return not isinstance(called(COMPARED[name][1], ARGUMENTS.get(name, (A,)), {}, watch=False), Exception)
    except (AttributeError, OSError):  # of functions of files
        return False


CALLED = [name for name in COMPARED if name not in UNCALLED and is_called(name)]


def test_most_functions_are_called() -> None:
    assert len(CALLED) > 150


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("watch", [False, True], ids=["arrays", "variables"])
@pytest.mark.filterwarnings("ignore")
def test_defaults_of_numpy_change_nothing_or_are_refused_by_name(name: str, watch: bool) -> None:
    own, numpys = COMPARED[name]
    args = ARGUMENTS.get(name, (A,))
    expected = called(own, args, {}, watch=watch)
    theirs = list(parameters(numpys).values())
    for at, parameter in enumerate(theirs):
        if (
            parameter.default in (parameter.empty, NONE)
            or parameter.kind is parameter.VAR_KEYWORD
            or name.startswith("empty")
        ):
            continue
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [(args, {parameter.name: parameter.default})]
        before = theirs[len(args) : at + 1]
        if (
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            and at >= len(args)
            and all(p.default is not NONE for p in before)
        ):
            calls.append(((*args, *(p.default for p in before)), {}))
        for given, named in calls:
            found = called(own, given, named, watch=watch)
            if isinstance(found, Exception) and not isinstance(expected, Exception):
                by_name = parameter.name in str(found) and "'xp'" not in str(found)
                assert by_name or "expected" in str(found) or "positional argument" in str(found), (named, given, found)
            elif not isinstance(expected, Exception):
                assert_same(found, expected, (named, given))


@pytest.mark.parametrize("name", [name for name, (_, numpys) in FUNCTIONS.items() if isinstance(numpys, np.ufunc)])
@pytest.mark.filterwarnings("ignore")
def test_ufuncs_take_numpy_s_arguments(name: str) -> None:
    own, numpys = FUNCTIONS[name]
    if has_signature(own):
        assert len(required(parameters(own))) == numpys.nin
    x = [np.array([[0.5, 0.25], [0.75, 0.125]])] * numpys.nin
    x = (
        x
        if not isinstance(called(numpys, tuple(x), {}, watch=False), Exception)
        else [np.array([[1, 2], [3, 1]])] * numpys.nin
    )
    expected = called(numpys, tuple(x), {}, watch=False)
    if isinstance(expected, (Exception, tuple)) or expected.ndim < 2 or numpys.signature is not None:
        return
    assert_same(called(own, tuple(x), {}, watch=False), expected, name)
    for watch in (False, True):
        for named in ({"where": np.array([True, False])}, {"dtype": expected.dtype}, {"casting": "unsafe"}):
            found = called(own, tuple(x), named, watch=watch)
            if isinstance(found, Exception):
                assert next(iter(named)) in str(found) or isinstance(found, ox.DerivativeError), found
            elif "where" not in named:
                assert_same(found, expected, named)
    out = np.zeros_like(expected)
    found = called(own, tuple(x), {"out": out}, watch=False)
    if isinstance(found, Exception):
        assert "out" in str(found)
    else:
        np.testing.assert_array_equal(out, expected)
    with pytest.raises((TypeError, ValueError)):
        own(*x, *x, *x)


# --- SciPy -------------------------------------------------------------------------------------------------------------

stats = pytest.importorskip("scipy.stats")
special = pytest.importorskip("scipy.special")
DISTRIBUTIONS = [
    name for name in xp.stats.__all__ if isinstance(getattr(stats, name), (stats.rv_continuous, stats.rv_discrete))
]
METHODS = "pdf logpdf pmf logpmf cdf logcdf sf logsf ppf"


def count_of_inputs(function: Any) -> int | None:
    """The number of inputs of a ufunc of SciPy, which newer releases wrap; None of any other function."""
    if hasattr(function, "nin"):
        return int(function.nin)
    if not inspect.isfunction(function) or "casting" not in parameters(function):
        return None
    return sum(
        p.kind is p.POSITIONAL_ONLY or p.default is p.empty
        for p in parameters(function).values()
        if p.kind < p.VAR_POSITIONAL
    )


def test_special_functions_take_as_many_arguments_as_scipy_s() -> None:
    counts = {name: count_of_inputs(getattr(special, name, None)) for name in xp.special.__all__}
    known = {name: count for name, count in counts.items() if count is not None}
    assert len(known) > 120
    for name, count in known.items():
        own = getattr(xp.special, name)
        if hasattr(own, "names"):
            assert len(own.names) == count, name
        elif has_signature(own):
            given = [p for p in parameters(own).values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
            assert len(required(parameters(own))) <= count <= len(given), name
        with pytest.raises(TypeError):
            own(*[0.5] * (count + 2))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_take_their_parameters_by_position_and_by_name(name: str) -> None:
    own, theirs = getattr(xp.stats, name), getattr(stats, name)
    is_discrete = isinstance(theirs, stats.rv_discrete)
    shapes = [each.strip() for each in theirs.shapes.split(",")] if theirs.shapes else []
    special = {"p": 0.4, "n": 5, "N": 5, "M": 20, "low": 0, "high": 7}
    values = {shape: special.get(shape, 2.5) for shape in shapes}
    places = {"loc": 1} if is_discrete else {"loc": 0.1, "scale": 2.0}
    seen = 0
    for method in [method for method in METHODS.split() if hasattr(own, method)]:
        function, first = getattr(own, method), next(iter(inspect.signature(getattr(theirs, method)).parameters))
        x = 0.3 if method == "ppf" else 2 if is_discrete else 0.7
        expected = getattr(theirs, method)(x, **values, **places)
        for args, named in (
            ((x, *values.values(), *places.values()), {}),
            ((x, *values.values()), places),
            ((x,), {**places, **values}),
            ((), {first: x, **places, **values}),
        ):
            np.testing.assert_allclose(function(*args, **named), expected, rtol=1e-9, err_msg=f"{method} {named}")
        np.testing.assert_allclose(function(x, **values), getattr(theirs, method)(x, **values), rtol=1e-9)
        for args, named in (
            ((x, *values.values(), *places.values()), {"loc": 0.0}),
            ((x, *values.values()), {"shape": 1.0}),
            ((x, *values.values(), *places.values(), 1.0), {}),
            ((), {}),
        ):
            with pytest.raises(TypeError):
                function(*args, **named)
        seen += 1
    assert seen >= 3


BY_POSITION = [
    ("argsort", (0, "stable")),
    ("argsort", (1, "stable", None)),
    ("argmax", (0, None)),
    ("argmin", (1, np.zeros(2, np.int64))),
    ("all", (0, None, True)),
    ("any", (1, np.zeros(2, bool))),
    ("count_nonzero", (0,)),
]


@pytest.mark.parametrize(("name", "args"), BY_POSITION)
def test_arguments_that_the_standard_takes_by_name_alone_are_taken_by_position(
    name: str, args: tuple[Any, ...]
) -> None:
    x = np.array([[3.0, 0.0], [2.0, 5.0]])
    function, expected = getattr(xp, name), getattr(np, name)(x, *args)
    np.testing.assert_array_equal(function(x, *args), expected)
    np.testing.assert_array_equal(function(ox.Tape().watch(x), *args), expected)
    with pytest.raises(TypeError):
        function(x, *args, axis=0)
