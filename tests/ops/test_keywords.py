"""Each keyword of NumPy's functions, at other values than its default: the value is NumPy's, and so is the derivative by every
float argument, or the keyword is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import forms
import forms_numpy
import keywords
import oxigrad as ox
from forms import Form
from keywords import Made
from oxigrad import xp
from oxigrad._core import Variable
from oxigrad.testing import check_grads

SECTIONS = [section for section in forms_numpy.SECTIONS if "xp.*" in section.spaces]
# Of which no value is determined.
UNDETERMINED = {"empty", "empty_like"}
# Complex in the standard, for a real matrix too, and so under the name of `xp`.
COMPLEX = {"linalg.eig", "linalg.eigvals"}
# Read one triangle, while their derivatives are those of symmetric matrices.
SYMMETRIC = {"linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"}
# Whose shape depends on the values, so that the point may not be moved, and steps near a point.
JUMPS = {"unique", "unique_values", "union1d", "intersect1d", "setdiff1d", "setxor1d", "trim_zeros", "around", "round"}
# Badly conditioned, so that central differences have fewer digits.
ROUGH = {"roots"}


FORMS = [
    form for section in SECTIONS for form in section.forms if not form.refused and form.name not in UNDETERMINED | JUMPS
]


def calls(form: Form) -> dict[str, Made]:
    """A form's own calls by their texts, of which the first with each further keyword."""
    found: list[Made] = []
    for at, made in enumerate(keywords.recorded(form, {"np": np}, "np")):
        found += keywords.with_keywords(made, made.of(np)) if at == 0 else [made]
    return {str(made): made for made in found}


def outcome(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return function(*args, **named)
    except (TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError) as error:
        return error


def differs(found: Any, expected: Any) -> str:
    """The difference of results: in number, shape, kind of dtype, precision or value."""
    mine, theirs = (
        [np.asarray(ox.stop_gradient(part)) for part in forms.parts(result)] for result in (found, expected)
    )
    if len(mine) != len(theirs):
        return f"{len(mine)} results, expected {len(theirs)}"
    for one, other in zip(mine, theirs, strict=True):
        if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
            return f"{one.dtype} {one.shape}, expected {other.dtype} {other.shape}"
        is_single = np.dtype(np.float32) in (one.dtype, other.dtype) or one.dtype == np.complex64
        if other.dtype.kind in "fc" and one.dtype != other.dtype:
            return f"{one.dtype}, expected {other.dtype}"
        if not np.allclose(
            one, other, rtol=3e-5 if is_single else 1e-9, atol=3e-5 if is_single else 1e-9, equal_nan=True
        ):
            return f"{one}, expected {other}"
    return ""


def of_argument(function: Callable[..., Any], made: Made, at: int) -> Callable[[Any], Any]:
    """The call as a function of one of its float arguments."""

    def called(value: Any) -> Any:
        given = [
            value if place == at else _copied(leaf)
            for place, leaf in enumerate(keywords.floats([made.args, made.named]))
        ]
        args, named = keywords.replaced([made.args, dict(made.named)], iter(given))
        return function(*args, **named)

    return called


def _copied(leaf: Any) -> Any:
    return leaf.copy("K") if isinstance(leaf, np.ndarray) else leaf


def called(function: Callable[..., Any], made: Made) -> Any:
    """The outcome for copies of the arguments, which ``overwrite_input`` writes to."""
    leaves = map(_copied, keywords.floats([made.args, made.named]))
    args, named = keywords.replaced([made.args, dict(made.named)], leaves)
    return outcome(function, *args, **named)


def is_refused(error: Exception, made: Made, function: Any) -> bool:
    """Whether an error is one of ours, or names a keyword, or NumPy does not dispatch on the argument."""
    given = keywords.parameters(function).keys() & set(str(error).replace("'", " ").replace("=", " ").split())
    is_ours = isinstance(error, ox.DerivativeError) or type(error).__module__ == "oxigrad"
    return is_ours or bool(given) or any(key in str(error) for key in made.named) or "does not turn into" in str(error)


def is_smooth(function: Callable[[Any], Any], x: Any) -> bool:
    """Whether differences on both sides agree: no element is at a step or a kink."""
    h = 1e-4
    parts = [forms.parts(outcome(function, _copied(x) + shift)) for shift in (-h, 0.0, h)]
    if any(isinstance(part[0], Exception) for part in parts) or len({tuple(map(np.shape, part)) for part in parts}) > 1:
        return False
    below, here, above = (np.concatenate([np.ravel(each).astype(complex) for each in part]) for part in parts)
    return bool(
        np.isfinite([below, here, above]).all()
        and np.max(np.abs(above - 2 * here + below), initial=0.0) < 100 * h * h * 10
    )


def faults(made: Made, space: Any) -> Iterator[str]:
    """The faults of a call under NumPy's name or under ours: of plain arrays, and by each float argument."""
    theirs = made.of(np)
    is_ufunc_where = isinstance(theirs, np.ufunc) and "where" in made.named  # elements that are not written
    expected = called(theirs, made)
    results = [] if isinstance(expected, Exception) else forms.parts(expected)
    if space is xp and made.path in COMPLEX and results:
        expected = [np.asarray(part, complex) for part in results]
    is_written = any(part is None or isinstance(part, (type, np.dtype)) for part in results)  # or no number
    is_undetermined = is_ufunc_where or "empty" in map(str, [*made.args[2:3], made.named.get("mode")])
    if isinstance(expected, Exception) or is_written or is_undetermined:
        return
    function = made.of(space)
    if space is xp:
        plain = called(function, made)
        if isinstance(plain, Exception):
            if not is_refused(plain, made, theirs):
                yield f"xp.{made}: {type(plain).__name__}: {plain}"
            return
        if different := differs(plain, expected):
            yield f"xp.{made} of arrays: {different}"
    leaves = keywords.floats([made.args, made.named])
    for at, leaf in enumerate(leaves):
        # most of xp leads to the same functions
        if at > 0 and (space is xp or (made.has_further and at < len(leaves) - 1)):
            continue
        yield from _faults_by(of_argument(function, made, at), made, leaf, expected, f"{space.__name__}.{made} by {at}")


def _faults_by(f: Callable[[Any], Any], made: Made, leaf: Any, expected: Any, where: str) -> Iterator[str]:
    with ox.Tape() as tape:
        found = outcome(f, tape.watch(_copied(leaf)))
    if isinstance(found, Exception):
        if not is_refused(found, made, made.of(np)):
            yield f"{where}: {type(found).__name__}: {found}"
        return
    if different := differs(found, expected):
        yield f"{where}: {different}"
        return
    singles = (np.dtype(np.float32), np.dtype(np.complex64))
    if any(np.asarray(ox.stop_gradient(part)).dtype in singles for part in forms.parts(expected)):
        return
    if (
        made.path in SYMMETRIC
        or made.named.get("hermitian")
        or made.named.get("order") in ("A", "K")
        or not is_smooth(f, leaf)
    ):
        return
    if not any(isinstance(part, Variable) for part in forms.parts(found)):
        if differs(outcome(f, leaf + 1e-4), expected) and np.asarray(forms.parts(expected)[0]).dtype.kind in "fc":
            yield f"{where}: a derivative is lost"
        return
    try:
        check_grads(lambda x: f(_copied(x)), (leaf,), order=1, tolerance=1e-3 if made.path in ROUGH else 1e-5)
    except AssertionError as error:
        yield f"{where}: {error}"
    except ox.DerivativeError:
        return


@pytest.mark.filterwarnings("ignore")  # as those of NumPy's functions of NaN
@pytest.mark.parametrize("space", [np, xp], ids=["np", "xp"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_keywords_are_honoured_and_differentiated_or_refused(form: Form, space: Any) -> None:
    with np.errstate(all="ignore"):
        found = [fault for made in calls(form).values() for fault in faults(made, space)]
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore")
def test_calls_are_many() -> None:
    assert len({text for form in FORMS for text in calls(form)}) > 2000


def test_a_lost_keyword_and_a_lost_derivative_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    var = xp.var
    monkeypatch.setattr(xp, "var", lambda x, **named: var(x), raising=False)
    assert [*faults(Made("var", (np.arange(4.0),), {"ddof": 1}), xp)]
    monkeypatch.setattr(xp, "multiply", lambda x, y: ox.stop_gradient(x) * y, raising=False)
    assert [*faults(Made("multiply", (np.arange(4.0), 2.0), {}), xp)]


# --- dtypes, and special numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtypes_of_floating_point_arguments_are_kept(dtype: Any) -> None:
    """A Python number among them does not widen the result, as in NumPy."""
    x = np.array([0.5, -1.5, 2.5], dtype)
    for name, call in {
        "var": lambda x: np.var(x, where=np.array([True, True, False])),
        "nanvar": lambda x: np.nanvar(x),
        "nanstd": lambda x: np.nanstd(x),
        "select": lambda x: np.select([np.array([True, False, True])], [x], 2.0),
        "linspace": lambda x: np.linspace(x, 2.0, 3),
        "ediff1d": lambda x: np.ediff1d(x, 0.5),
        "pad": lambda x: np.pad(x, 1, mode="linear_ramp", end_values=0.5),
        "fmod": lambda x: np.fmod(x, 0.7),
        "ldexp": lambda x: np.ldexp(x, 3),
        "heaviside": lambda x: np.heaviside(x, 0.5),
        "quantile": lambda x: np.quantile(x, 0.3),
        "add": lambda x: np.add(x, 2.0, dtype=np.complex64),
    }.items():
        expected = outcome(call, x)
        if isinstance(expected, Exception):  # not of complex numbers
            continue
        found = ox.vjp(call, x)[0]
        assert found.dtype == expected.dtype, name
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_dtype_of_a_variance_is_the_one_that_is_asked_for() -> None:
    x = np.array([1.0, np.nan, 3.0])
    for dtype in (np.float32, np.complex128):
        for name in ("var", "std", "nanvar", "nanstd"):
            found = ox.vjp(lambda x, name=name, dtype=dtype: getattr(np, name)(x, dtype=dtype), x[::2])[0]
            assert found.dtype == dtype


@pytest.mark.filterwarnings("ignore")
def test_infinite_elements_have_numpy_s_medians() -> None:
    x = np.array([[1.0, -np.inf, np.inf], [2.0, np.inf, np.inf], [np.nan, 0.5, np.inf]])
    for function in (np.median, np.nanmedian):
        for axis in (0, 1):
            np.testing.assert_array_equal(ox.vjp(lambda x, f=function, axis=axis: f(x, axis), x)[0], function(x, axis))
    np.testing.assert_array_equal(ox.vjp(np.modf, np.array([np.inf, 1.5]))[0][0], [0.0, 0.5])
    np.testing.assert_array_equal(ox.vjp(np.gradient, x[0])[0], np.gradient(x[0]))


def test_powers_of_two_beyond_the_range_of_one_factor() -> None:
    for x, n in ((1e-300, 2000), (1.5 * 2.0**1000, -2074), (2.0**1023, -2090), (5e-324, 2097), (1.0, 3), (1.7, -1075)):
        for value, power in ((x, n), (np.array([x, 1.0]), np.array([n, 2]))):
            np.testing.assert_array_equal(
                ox.vjp(lambda x, power=power: np.ldexp(x, power), value)[0], np.ldexp(value, power)
            )
    assert ox.grad(lambda x: np.ldexp(x, 5))(np.array(0.3)) == 32.0
    assert ox.vjp(lambda x: np.ldexp(x, -150), np.array(1e30, np.float32))[0] == np.ldexp(np.float32(1e30), -150)


def test_the_inverse_without_small_singular_values_has_the_derivative_of_what_is_left() -> None:
    a = np.random.default_rng(0).normal(size=(5, 3))
    for x in (a, a.T, a + 0.3j * a[::-1]):
        check_grads(lambda x: xp.linalg.pinv(x, rtol=0.5), (x,), order=1)
    b, c = np.eye(3)[:2], np.eye(3)
    c[2, 2] = 1e-17  # noise, which counts as zero: the rank is kept
    for x in (b, c):
        assert np.isfinite(ox.jacobian(lambda x: xp.linalg.pinv(x, rtol=1e-10))(x)).all()
