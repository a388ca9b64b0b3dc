"""Special functions at special places, against mpmath: values, and derivatives by every float argument.

Special places are zeros, kinks, edges of domains, tails, and arguments where an inner function overflows or underflows, or where terms
cancel. Distributions of vectors are rows too: functions of the vector's numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import oxigrad as ox
import places_bessel
import places_hypergeometric
import places_incomplete
import places_special
from oxigrad import xp
from places import EXACT, Point, Row
from places_counts import VECTORS
from places_special import EDGES
from reference import TOLERANCE, Note, close, nearest, partials, value_and_derivatives

TABLES = (places_special, places_bessel, places_hypergeometric, places_incomplete)
ROWS: dict[str, Row] = {name: row for table in TABLES for name, row in table.ROWS.items()}


def _reference(row: Row, point: Point) -> list[float]:
    """The value and the derivatives, without those that are refused."""
    with mp.workprec(320 + 2 * max(abs(math.frexp(each)[1]) for each in point)):
        fine = mpf(2) ** -100
        steps = [fine * (abs(mpf(each)) if each else 1) for each in point]
        steps = [mpf(0) if at in row.without else step for at, step in enumerate(steps)]
        return list(map(nearest, partials(row.f, tuple(map(mpf, point)), steps)))


def special_function(name: str, note: Note) -> None:
    """Notes what is wrong with a row of special functions."""
    row = ROWS.get(name) or VECTORS[name]
    call = row.call or (lambda xp, *args: getattr(xp.special, name.split("-")[0])(*args))
    columns = [np.array(column) for column in zip(*row.points, strict=True)]
    args = tuple(column.astype(np.int64) if at in row.whole else column for at, column in enumerate(columns))
    expected = [_reference(row, point) for point in row.points]
    for results in value_and_derivatives(lambda *args: call(xp, *args), args):
        refused = tuple(k for k, part in enumerate(results[1:]) if part is None)
        if refused != row.without:
            note(f"{name}: refuses derivatives by {refused}, expected {row.without}")
        for at, (point, reference) in enumerate(zip(row.points, expected, strict=True)):
            for k, (part, other) in enumerate(zip(results, reference, strict=True)):
                size = 1e-306 if k == 0 else 1e-14 * abs(reference[0]) / max(1.0, abs(point[k - 1])) + 1e-306
                if part is not None and not close(float(part[at]), other, size, row.error):
                    what = "value" if k == 0 else f"derivative {k - 1}"
                    note(
                        f"{name}{point}: {what} is {part[at]}, expected {other}, {abs(float(part[at]) / other - 1.0) if other else math.inf:.1e} apart"
                    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ROWS, *VECTORS])
def test_a_special_function_at_special_places(name: str) -> None:
    wrong: list[str] = []
    special_function(name, wrong.append)
    assert not wrong, "\n".join(wrong[:20])


def test_the_tables_are_complete() -> None:
    # Those of `tests/ops/test_special.py`, which are composed of functions of the table.
    combinatorial = {"comb", "factorial", "perm"}
    assert {name.split("-")[0] for name in ROWS} == set(xp.special.__all__) - combinatorial
    assert len(ROWS) == sum(len(table.ROWS) for table in TABLES)


def test_a_bound_that_is_not_tight_has_its_reason() -> None:
    assert [name for name, row in ROWS.items() if (row.error > EXACT) != bool(row.why)] == []


NARROW: list[tuple[str, Point]] = [
    *(("rgamma", (x,)) for x in (10.0, 36.0, 40.0, -20.0, -40.0)),
    *(("zeta", point) for point in ((200.0, 1.5), (200.0, 10.0), (1e-10, 1.5))),
    *(("poch", point) for point in ((0.5, 1e-10), (2.0, 30.0), (1e20, 1.0))),
    *((name, point) for name in ("struve", "modstruve") for point in ((35.0, 35.0), (10.0, 1e4), (3.0, 0.1))),
    *((name, point) for name in ("beta", "betaln") for point in ((1e-3, 1e-10), (0.5, 1e-10), (1e-10, 2.0))),
    ("agm", (1e-10, 1.0)),
    ("gammaincinv", (1e5, 0.3)),
    ("voigt_profile", (1.0, 1.0, 1e-9)),
    ("stdtrit", (2.0, 1e-10)),
    ("log_ndtr", (-1e18,)),
    ("log_ndtr", (6.0,)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "point"), NARROW)
def test_derivatives_in_float32_have_the_digits_of_their_dtype(name: str, point: Point) -> None:
    function = getattr(xp.special, name)
    narrow = tuple(np.array([x], np.float32) for x in point)
    wide = tuple(x.astype(np.float64) for x in narrow)
    for at in range(len(point)):
        of = lambda *args, at=at: ox.grad(lambda *args: xp.sum(function(*args)), at)(*args)  # noqa: E731
        twice = lambda *args, at=at, of=of: ox.grad(lambda *args: xp.sum(of(*args)), at)(*args)  # noqa: E731
        for derivative in (of, twice):
            try:
                expected = derivative(*wide)
            except ox.DerivativeError:
                continue
            found = derivative(*narrow)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected.astype(np.float32), rtol=1e-3, atol=1e-37, err_msg=f"{at}")


def test_integer_orders_stay_integers_in_derivatives() -> None:
    n, x = np.array([2, 3], np.int32), np.array([0.5, 0.7], np.float32)
    found = ox.grad(lambda x: xp.sum(xp.special.eval_legendre(n, x)))(x)
    np.testing.assert_allclose(found, [1.5, 0.5 * (15.0 * 0.49 - 3.0)], rtol=1e-6)


def test_the_curvature_of_log_ndtr_in_the_upper_tail() -> None:
    x = np.array([10.0, 30.0, 40.0, 1e30])
    curvature = ox.grad(lambda x: xp.sum(ox.grad(lambda x: xp.sum(xp.special.log_ndtr(x)))(x)))(x)
    np.testing.assert_allclose(curvature, -x * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_special_functions_at_the_edges_of_their_domains() -> None:
    wrong: list[str] = []
    for name, point, expected in EDGES:
        for results in value_and_derivatives(getattr(xp.special, name), tuple(np.array([x]) for x in point)):
            for k, (part, other) in enumerate(zip(results, expected, strict=True)):
                if other is not None and not close(float(part[0]), other, 1e-14, TOLERANCE):
                    wrong.append(
                        f"{name}{point}: {'value' if k == 0 else f'derivative {k - 1}'} is {part}, expected {other}"
                    )
    assert not wrong, "\n".join(wrong)


def _expansion(v: float, x: Any, sign: int) -> Any:
    """A scaled modified Bessel function of a large number (DLMF 10.40.1, 10.40.2)."""
    term = total = mpf(1)
    for k in range(1, 30):
        term *= sign * (4 * mpf(v) ** 2 - (2 * k - 1) ** 2) / (8 * k * x)
        total += term
    return total * (mp.sqrt(mp.pi / (2 * x)) if sign > 0 else 1 / mp.sqrt(2 * mp.pi * x))


@pytest.mark.parametrize("x", [690.0, 697.5, 698.0, 702.0, 705.0])
@pytest.mark.parametrize("v", [0.0, 1.0, 2.0, 2.5, 10.0])
def test_derivatives_where_the_function_of_the_second_kind_is_tiny(v: float, x: float) -> None:
    """SciPy's own values are zero from 698, and the derivatives are not."""
    first, second = (float(mp.diff(lambda t: mp.besselk(v, t), mpf(x), n)) for n in (1, 2))
    names = ["kv", *(["kn"] if v.is_integer() else []), *(["k1"] if v == 1.0 else [])]
    for name in names:
        of = getattr(xp.special, name)
        f = of if name == "k1" else lambda x, of=of, name=name: of(int(v) if name == "kn" else v, x)
        np.testing.assert_allclose(ox.grad(f)(x), first, rtol=1e-12)
        np.testing.assert_allclose(ox.grad(ox.grad(f))(x), second, rtol=1e-12)


@pytest.mark.parametrize("x", [0.9e9, 1.1e9, 2.0e9, 2.2e9, 1e12, 1e100])
@pytest.mark.parametrize("v", [0.0, 1.0, 2.5])
@pytest.mark.parametrize(("name", "sign"), [("kve", 1), ("ive", -1)])
def test_derivatives_of_scaled_functions_of_large_numbers(name: str, sign: int, v: float, x: float) -> None:
    """SciPy's own values are NaN from 2**31, and the derivatives are not."""
    with mp.workdps(60):
        step = mpf(x) * mpf(10) ** -20
        first, second = (float(mp.diff(lambda t: _expansion(v, t, sign), mpf(x), n, h=step)) for n in (1, 2))
    f = lambda x: getattr(xp.special, name)(v, x)  # noqa: E731
    np.testing.assert_allclose(ox.grad(f)(x), first, rtol=1e-13)
    np.testing.assert_allclose(ox.grad(ox.grad(f))(x), second, rtol=1e-12, atol=0)


@pytest.mark.parametrize("b", [1e-200, 1e-3, 0.5, 50.0])
@pytest.mark.parametrize("a", [1e-150, 1e-100, 1e-20])
def test_derivatives_of_beta_near_its_pole(a: float, b: float) -> None:
    with mp.workdps(450):
        x, y = mpf(a), mpf(b)
        of_log = mp.psi(0, x) - mp.psi(0, x + y)
        expected = float(mp.beta(x, y) * of_log), float(of_log)
    np.testing.assert_allclose(ox.grad(xp.special.beta)(a, b), expected[0], rtol=1e-12)
    np.testing.assert_allclose(ox.grad(xp.special.betaln)(a, b), expected[1], rtol=1e-12)


@pytest.mark.parametrize("x", [1e-200, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("a", [1e-200, 1e-100, 1e-30])
def test_derivatives_of_gammainc_by_a_tiny_parameter(a: float, x: float) -> None:
    """``gammainc`` is ``1 - a * E1(x)`` there."""
    expected = -float(mp.e1(mpf(x)))
    np.testing.assert_allclose(ox.grad(xp.special.gammainc)(a, x), expected, rtol=1e-12)
    np.testing.assert_allclose(ox.grad(xp.special.gammaincc)(a, x), -expected, rtol=1e-12)
