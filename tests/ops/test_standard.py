"""Coverage of the Array API standard, and NumPy's functions of variables."""

import functools
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import libraries
import oxigrad as ox
import standard
from cases import apart
from cases_numpy import NUMPY
from libraries import host
from oxigrad import tree, xp
from oxigrad._core import Variable
from oxigrad.testing import check_grads

X = apart(3, 4)


# --- the closed table --------------------------------------------------------------------------------------------------


def test_every_function_of_the_standard_is_differentiable_or_plain_for_a_reason(library) -> None:
    found = standard.names(library("array_api_strict"))
    assert len(found) > 150
    left = {name for name in found if name not in standard.PLAIN}
    assert {name for name in left if not standard.is_ours(name)} == set()
    assert {name for name in left if not standard.cases_of(name)} == set()
    assert set(standard.PLAIN) <= set(found)


@pytest.mark.parametrize("name", standard.PLAIN)
def test_plain_functions_give_plain_values(name: str) -> None:
    with ox.Tape() as tape:
        result = standard.PLAIN[name].call(tape.watch(X))
    parts = result if isinstance(result, (list, tuple)) else [result]
    # A made array is a variable that takes assignments: without one, it has no entry.
    assert not any(isinstance(part, Variable) and isinstance(xp.sum(part), Variable) for part in parts)


def test_the_tour_shows_what_is_printed(library) -> None:
    for name in ("torch", "jax"):
        library(name)
    strict = library("array_api_strict")
    orders = standard.orders(strict, libraries.LIBRARIES)
    for row in ox.support(origin="Array API", order=1):
        found = orders[row.function]
        assert {name: found[name] for name in row.libraries.keys() & found.keys()}.items() <= row.libraries.items()
    printed = standard.summary(orders, len(standard.names(strict)))
    assert "\n".join(["```", *printed, "```"]) in (Path(__file__).parents[2] / "docs/guide/tour.md").read_text()


# Functions that take more than the standard's: arguments by position, as in NumPy, and further arguments that have defaults.
AS_IN_NUMPY = {
    *"linspace concat sum min mean max stack flip take_along_axis expand_dims permute_dims reshape squeeze tensordot linalg.tensordot linalg.eigh linalg.eigvalsh".split(),
    *(
        f"fft.{name}"
        for name in "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift".split()
    ),
}
_WIDER = {
    inspect.Parameter.KEYWORD_ONLY: inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY: inspect.Parameter.POSITIONAL_OR_KEYWORD,
}


def _of(module: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), module)


def test_signatures_are_the_standard_s(library) -> None:
    strict = library("array_api_strict")
    for name in standard.names(strict):
        own, theirs = (list(inspect.signature(_of(module, name)).parameters.values()) for module in (xp, strict))
        defaults = [None if "Undef" in repr(p.default) else p.default for p in theirs]
        if name not in AS_IN_NUMPY:
            stated = [(p.name, p.kind, default) for p, default in zip(theirs, defaults, strict=True)]
            found = [(p.name, p.kind, p.default) for p in own]
            variadic = {inspect.Parameter.VAR_POSITIONAL}
            assert [(n if k not in variadic else "*", k, d) for n, k, d in found] == [
                (n if k not in variadic else "*", k, d) for n, k, d in stated
            ], name
            continue
        for at, (parameter, default) in enumerate(zip(theirs, defaults, strict=True)):
            same = next(p for p in own if p.name == parameter.name)
            assert same.kind in (parameter.kind, _WIDER.get(parameter.kind)), name
            assert same.default == default or default is parameter.empty, name
            assert parameter.kind is parameter.KEYWORD_ONLY or own[at] is same, name
        further = [p for p in own if p.name not in {q.name for q in theirs}]
        assert all(p.default is not p.empty for p in further), name


def test_functions_have_docstrings_of_their_own(library) -> None:
    found: dict[str, str] = {}
    for name in standard.names(library("array_api_strict")):
        text = inspect.getdoc(_of(xp, name))
        assert text and text.splitlines()[0].rstrip().endswith((".", ":", "``")), (name, text)
        other = found.setdefault(text, name.rpartition(".")[2])
        assert other == name.rpartition(".")[2], (name, other)


# --- NumPy's functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_s_functions_take_variables(name: str) -> None:
    f = NUMPY[name]
    value, _ = ox.vjp(f, X)
    for own, expected in zip(tree.leaves(value), tree.leaves(f(X)), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-12, atol=1e-14)
    check_grads(f, (X,), order=1)


def test_numpy_functions_refuse_unsupported_arguments() -> None:
    with ox.Tape() as tape:
        x = tape.watch(X)
        with pytest.raises(ox.DerivativeError, match=r"np\.sin of a variable does not take .*where"):
            np.sin(x, where=X > 0.0)
        with pytest.raises(ox.DerivativeError, match=r"np\.logaddexp\.reduce of a variable does not take where"):
            np.logaddexp.reduce(x, where=X > 0.0)
        with pytest.raises(ox.DerivativeError, match=r"np\.nextafter has no derivative"):
            np.nextafter(x, 0.0)
        with pytest.raises(ValueError, match=r"where= requires initial="):
            np.max(x, where=X > 0.0)


# --- edges -------------------------------------------------------------------------------------------------------------


def test_clip_shares_the_gradient_with_its_bounds() -> None:
    gradient = ox.grad(lambda x: xp.sum(xp.clip(x, 0.0, 1.0)))(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [0.0, 0.5, 1.0, 0.5, 0.0])


def test_standard_deviation_of_equal_numbers_has_gradient_zero() -> None:
    np.testing.assert_array_equal(ox.grad(xp.std)(np.ones(3)), 0.0)


def test_sort_keeps_the_gradients_of_equal_elements_apart() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    gradient = ox.grad(lambda x: xp.sum(xp.sort(x) * weights))(np.array([2.0, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [2.0, 1.0, 3.0])


def test_linspace_keeps_the_dtype_and_the_device(arrays) -> None:
    ends = arrays.asarray(np.array([1.0, 2.0], np.float32))
    value, pullback = ox.vjp(lambda x: xp.linspace(x[0], x[1], 3), ends)
    assert (value.dtype, value.device) == (ends.dtype, ends.device)
    np.testing.assert_array_equal(host(value), [1.0, 1.5, 2.0])
    np.testing.assert_array_equal(host(pullback(xp.ones_like(value))[0]), [1.5, 1.5])


def test_unique_values_give_the_gradient_to_the_first() -> None:
    gradient = ox.grad(lambda x: xp.sum(xp.unique_values(x)))(np.array([2.0, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [1.0, 1.0, 0.0])


def test_product_with_zeros() -> None:
    np.testing.assert_array_equal(ox.grad(xp.prod)(np.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])
    np.testing.assert_array_equal(ox.grad(xp.prod)(np.array([0.0, 0.0, 3.0])), 0.0)
    hessian_row = ox.grad(lambda x: ox.grad(xp.prod)(x)[0])(np.array([0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(hessian_row, [0.0, 3.0, 0.0])


def test_distance_at_the_origin_has_gradient_zero() -> None:
    assert ox.grad(xp.hypot, argnums=(0, 1))(0.0, 0.0) == (0.0, 0.0)


def test_logaddexp_of_infinities() -> None:
    inf = math.inf
    assert ox.grad(xp.logaddexp, argnums=(0, 1))(-inf, -inf) == (0.5, 0.5)
    assert ox.grad(xp.logaddexp, argnums=(0, 1))(-inf, 1.0) == (0.0, 1.0)
    assert ox.grad(ox.grad(xp.logaddexp))(1.0, 1.0) == 0.25


def test_logsumexp_and_softmax_do_not_overflow() -> None:
    x = np.array([1000.0, 1000.0, -np.inf])
    np.testing.assert_allclose(xp.special.logsumexp(x), 1000.0 + math.log(2.0))
    np.testing.assert_array_equal(ox.grad(xp.special.logsumexp)(x), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(xp.special.softmax(x), [0.5, 0.5, 0.0])


def test_xlogy_and_entr_at_zero() -> None:
    assert xp.special.xlogy(0.0, 0.0) == 0.0
    assert ox.grad(xp.special.xlogy)(0.0, 2.0) == math.log(2.0)
    assert xp.special.entr(0.0) == 0.0


def test_sinc_at_zero_has_all_derivatives() -> None:
    f = xp.sinc
    for expected in (1.0, 0.0, -(math.pi**2) / 3.0, 0.0, math.pi**4 / 5.0):
        assert f(0.0) == pytest.approx(expected, abs=1e-12)
        f = ox.grad(f)


def test_fmax_goes_past_nan() -> None:
    x = np.array([np.nan, 1.0])
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(xp.fmax(x, 0.5)))(x), [0.0, 1.0])


def test_nan_to_num_has_gradient_zero_where_it_replaces() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 2.0])
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(xp.nan_to_num(x)))(x), [0.0, 0.0, 0.0, 1.0])


def test_special_functions_agree_with_scipy(library) -> None:
    scipy = library("scipy.special")
    x = np.concatenate([np.linspace(-4.9, 5.3, 203), np.geomspace(1e-8, 60.0, 50)])
    fraction = np.linspace(-0.999999, 0.999999, 101)
    for name in "erf erfc expit gammaln digamma gamma entr j0 j1 y0 i0 i1".split():
        with np.errstate(all="ignore"):
            expected = getattr(scipy, name)(x)
        np.testing.assert_allclose(getattr(xp.special, name)(x), expected, rtol=3e-13, atol=3e-15, err_msg=name)
    np.testing.assert_allclose(xp.special.erfinv(fraction), scipy.erfinv(fraction), rtol=3e-15)
    for n in (0, 1, 2, 5):
        np.testing.assert_allclose(
            xp.special.polygamma(n, x[x > 0]), scipy.polygamma(n, x[x > 0]), rtol=3e-13, atol=3e-15
        )
        np.testing.assert_allclose(xp.special.jn(n, x), scipy.jn(n, x), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(xp.special.iv(n, x), scipy.iv(n, x), rtol=1e-13)


def test_incomplete_functions_agree_with_scipy(library) -> None:
    scipy, rng = library("scipy.special"), np.random.default_rng(0)
    a, b = 10.0 ** rng.uniform(-3, 3, (2, 400))
    x = np.abs(a * (1.0 + rng.standard_normal(400) / np.sqrt(a + 0.1)))
    for name in ("gammainc", "gammaincc"):
        np.testing.assert_allclose(getattr(xp.special, name)(a, x), getattr(scipy, name)(a, x), rtol=1e-11)
    fraction = np.clip(a / (a + b) * (1.0 + 0.2 * rng.standard_normal(400)), 0.0, 1.0)
    np.testing.assert_allclose(xp.special.betainc(a, b, fraction), scipy.betainc(a, b, fraction), rtol=1e-11)


def test_the_incomplete_gamma_function_is_differentiated_in_both_arguments_once() -> None:
    a, x = np.array([0.3, 2.0, 7.0, 40.0, 40.0]), np.array([0.7, 1.5, 9.0, 30.0, 55.0])
    for f in (xp.special.gammainc, xp.special.gammaincc):
        check_grads(f, (a, x), order=1)
        check_grads(lambda x, f=f: ox.grad(lambda a: xp.sum(f(a, x)))(a), (x,), order=2)
        with pytest.raises(
            ox.DerivativeError,
            match="shape parameter a: derivatives of gammainc and gammaincc by a end at first order",
        ):
            ox.grad(lambda a, f=f: xp.sum(ox.grad(lambda a: xp.sum(f(a, x)))(a)))(a)


def test_the_incomplete_beta_function_is_differentiated_in_its_parameters_twice() -> None:
    a, b, x = np.array([0.3, 2.0, 7.0, 40.0, 40.0]), np.array([0.7, 1.5, 9.0, 30.0, 2.0]), np.full(5, 0.6)
    for f in (xp.special.betainc, xp.special.betaincc, lambda a, b, x: xp.stats.beta.cdf(x, a, b)):
        check_grads(f, (a, b, x), order=2)
    for f in (xp.special.betaincinv, xp.special.betainccinv):
        check_grads(f, (a, b, x), order=1)
    third = lambda a: ox.grad(ox.grad(lambda a: xp.special.betainc(a, 2.0, 0.3)))(a)  # noqa: E731
    message = (
        "^betainc_aa is not differentiable with respect to its parameter a: derivatives of betainc and betaincc by "
        "parameters end at second order"
    )
    with pytest.raises(ox.DerivativeError, match=message):
        ox.grad(third)(2.0)


BETA_PLACES = [
    (0.5, 0.5, 0.3), (2.0, 3.0, 0.5), (1e-3, 2.0, 0.4), (30.0, 50.0, 0.36), (30.0, 50.0, 0.5), (3.0, 1e3, 1e-3), (200.0, 300.0, 0.41),
    (2.0, 3.0, 1e-12), (0.3, 0.2, 0.999999), (5.0, 5.0, 0.9),
]  # fmt: skip


def test_derivatives_of_the_incomplete_beta_function_agree_with_mpmath(library) -> None:
    mpmath = library("mpmath")
    orders = {"a": (1, 0), "b": (0, 1), "aa": (2, 0), "ab": (1, 1), "bb": (0, 2)}
    with mpmath.workdps(50):
        for name, order in orders.items():
            expected = [
                float(mpmath.diff(lambda a, b, x=x: mpmath.betainc(a, b, 0, x, regularized=True), (a, b), order))
                for a, b, x in map(functools.partial(map, mpmath.mpf), BETA_PLACES)
            ]
            ours = getattr(xp, f"betainc_{name}")(*np.array(BETA_PLACES).T)
            np.testing.assert_allclose(ours, expected, rtol=1e-12, err_msg=name)
    for name in orders:
        for x in (0.0, 1.0):
            assert getattr(xp, f"betainc_{name}")(2.0, 3.0, x) == 0.0
        for args in ((0.0, 1.0, 0.5), (1.0, 0.0, 0.5), (-1.0, 1.0, 0.5), (1.0, 1.0, 1.5), (np.nan, 1.0, 0.5)):
            assert np.isnan(getattr(xp, f"betainc_{name}")(*args))


@pytest.mark.parametrize(
    ("f", "args", "parameter"),
    [
        (xp.special.iv, (0.5, 2.0), "order: the derivative has no closed form"),
        (xp.special.jn, (1.0, 2.0), "integer order"),
        (xp.special.yn, (1.0, 2.0), "integer order"),
        (xp.special.polygamma, (1.0, 2.0), "integer order"),
    ],
)
def test_parameters_without_a_derivative_say_why(f: Any, args: tuple[float, ...], parameter: str) -> None:
    ox.grad(f, argnums=len(args) - 1)(*args)
    message = f"^{f.__name__} is not differentiable with respect to its {parameter}$"
    for mode in (lambda: ox.grad(f)(*args), lambda: ox.jvp(f, args, (1.0,) + (0.0,) * (len(args) - 1))):
        with pytest.raises(ox.DerivativeError, match=message):
            mode()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_special_functions_keep_the_dtype(dtype) -> None:
    result = xp.special.erf(np.ones((2, 3), dtype))
    assert (result.dtype, result.shape) == (np.dtype(dtype), (2, 3))
    np.testing.assert_allclose(result, math.erf(1.0), rtol=1e-3)
    assert ox.grad(lambda x: xp.sum(xp.special.erf(x)))(np.ones(3, dtype)).dtype == dtype


def test_repeated_indices_add_up_with_any_library(asarray) -> None:
    where = asarray(np.array([3, 0, 3, 3, 1, 0, 3]))
    weights = asarray(np.arange(1.0, 8.0))
    gradient = ox.grad(lambda x: xp.sum(xp.take(x, where) * weights))(asarray(np.zeros(5)))
    np.testing.assert_array_equal(host(gradient), [8.0, 5.0, 0.0, 15.0, 0.0])


def test_unique_elements_and_where_they_are(arrays) -> None:
    values = np.array([[3.0, 1.0, np.nan], [1.0, np.nan, 3.0]])
    for x in (values, values[:0]):
        with ox.Tape() as tape:
            found = xp.unique_all(tape.watch(arrays.asarray(x)))
            counts = xp.unique_counts(tape.watch(arrays.asarray(x))).counts
            inverse = xp.unique_inverse(tape.watch(arrays.asarray(x))).inverse_indices
        expected = np.unique_all(x)
        for name in ("values", "indices", "inverse_indices", "counts"):
            part = getattr(found, name)
            np.testing.assert_array_equal(host(ox.stop_gradient(part)), getattr(expected, name), err_msg=name)
        np.testing.assert_array_equal(host(counts), expected.counts)
        np.testing.assert_array_equal(host(inverse), expected.inverse_indices)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "cumsum", "cumprod", "repeat"])
def test_numbers_have_the_axes_that_numpy_gives_them(name: str) -> None:
    function = getattr(np, name)
    args = (2,) if name == "repeat" else ()
    x = np.array([0.5, 2.0])
    found, _ = ox.vjp(lambda x: function(x[1], *args, axis=0), x)
    np.testing.assert_allclose(found, function(x[1], *args, axis=0))


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_a_vector_is_a_matrix_of_equal_rows_to_tril_and_triu(name: str) -> None:
    x, function = np.array([1.0, 2.0, 3.0]), getattr(np, name)
    np.testing.assert_array_equal(ox.vjp(lambda x: function(x, k=1), x)[0], function(x, k=1))
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(function(x)))(x), np.sum(function(np.ones(3)), axis=0))


def test_the_mean_of_no_elements_has_an_empty_gradient() -> None:
    gradient = ox.grad(lambda x: xp.sum(xp.mean(x[1:1], axis=-1)) + x[0, 0])(np.ones((3, 4)))
    np.testing.assert_array_equal(gradient, np.eye(3, 4) * np.array([[1.0], [0.0], [0.0]]))
