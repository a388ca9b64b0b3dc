"""`vmap` beside a loop over the examples, for every function of the table, and its composition with other transforms."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from cases import CASES as ELEMENTARY
from cases import Case, apart, normal
from cases_linalg import CASES as LINALG
from libraries import host
from oxigrad import _core, tree, xp
from oxigrad.autodiff.rules import batching_rules
from oxigrad.autodiff.rules.jvp_rules import LINEAR

ON_HOST: list[tuple[str, Any, Any]] = []
with contextlib.suppress(ImportError):  # of SciPy, which machines with a GPU may lack
    from cases_scipy import ON_HOST

# Variants of a case that are no other op.
VARIANTS = ("-scalar", "-scalars", "-0d", "-empty", "-strided", "-number-right", "-number-left", "-scalar-array")
CASES = {case.name: case for case in (*ELEMENTARY, *LINALG) if not case.name.endswith(VARIANTS)}
CASES |= {name: Case(name, f, args) for name, f, args in ON_HOST}
WEIGHTS = (1.0, 0.9, 0.95)


def examples(case: Case) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The arguments of a case scaled by each weight: as batches, and one by one."""
    apart_ = [tuple(np.asarray(x) * weight for x in case.args) for weight in WEIGHTS]
    return tuple(np.stack(each) for each in zip(*apart_, strict=True)), apart_


def stacked(results: list[Any]) -> Any:
    return tree.map(lambda *parts: np.stack([np.asarray(part) for part in parts]), *results)


def agree(own: Any, expected: Any, rtol: float = 1e-9) -> None:
    own, expected = tree.leaves(own), tree.leaves(expected)
    assert len(own) == len(expected)
    for one, other in zip(own, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-2 * rtol)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """A real number of the results of a function."""

    def function(*args: Any) -> Any:
        leaves = [leaf for leaf in tree.leaves(f(*args)) if leaf is not None]
        return sum(xp.sum(xp.real(leaf * (1.0 + 0.5j)) if _is_complex(leaf) else xp.sin(leaf)) for leaf in leaves)

    return function


def _is_complex(leaf: Any) -> bool:
    return np.dtype(leaf.dtype).kind == "c"


@pytest.mark.parametrize("name", CASES)
def test_a_function_of_the_table_is_that_of_each_example(name: str) -> None:
    f, (batch, each) = CASES[name].function, examples(CASES[name])
    agree(ox.vmap(f)(*batch), stacked([f(*args) for args in each]))
    everything = tuple(range(len(batch)))
    if not everything:
        return
    gradient = ox.grad(total(f), everything)
    expected = stacked([gradient(*args) for args in each])
    agree(ox.vmap(gradient)(*batch), expected)
    agree(ox.grad(lambda *args: xp.sum(ox.vmap(total(f))(*args)), everything)(*batch), expected)


def test_every_op_has_a_batching_rule_or_none_for_a_reason() -> None:
    elementwise = {function.__name__ for function in _core.elementwise_functions()}
    without = {name for name, _ in _core.ops()} - elementwise - set(batching_rules.RULES) - set(LINEAR)
    assert without == {"call", "item"}  # whole functions, and one of an op's results


# --- composition -------------------------------------------------------------------------------------------------------

X, W = apart(3, 4), normal(4)


def test_transforms_compose_in_any_order() -> None:
    def f(x: Any, w: Any) -> Any:
        return xp.sum(xp.sin(x * w) * xp.exp(-x))

    gradient = ox.grad(f, (0, 1))
    agree(ox.vmap(gradient, (0, None))(X, W), stacked([gradient(x, W) for x in X]))
    whole = ox.grad(lambda x, w: xp.sum(ox.vmap(f, (0, None))(x, w)), (0, 1))(X, W)
    by_example = [gradient(x, W) for x in X]
    agree(whole, (np.stack([g for g, _ in by_example]), sum(g for _, g in by_example)))
    agree(ox.vmap(ox.hessian(f), (0, None))(X, W), stacked([ox.hessian(f)(x, W) for x in X]))
    agree(ox.hessian(lambda w: xp.sum(ox.vmap(f, (0, None))(X, w)))(W), sum(ox.hessian(f, 1)(x, W) for x in X))
    agree(ox.jvp(ox.vmap(f, (0, None)), (X, W), (X, W)), stacked([ox.jvp(f, (x, W), (x, W)) for x in X]))
    tangent = ox.vmap(lambda x, t: ox.jvp(lambda x: f(x, W), (x,), (t,))[1])
    agree(tangent(X, X), stacked([ox.jvp(lambda x: f(x, W), (x,), (x,))[1] for x in X]))
    agree(ox.vmap(ox.vmap(lambda a, b: a * xp.sin(b), (None, 0)), (0, None))(W, W), W[:, None] * np.sin(W))
    mixed = ox.vmap(lambda x: ox.grad(lambda w: ox.grad(f)(x, w)[0])(W))  # a batched constant of two tapes
    agree(mixed(X), stacked([ox.grad(lambda w, x=x: ox.grad(f)(x, w)[0])(W) for x in X]))


def test_a_variable_of_an_enclosing_tape_and_batched_values() -> None:
    weights = ox.grad(lambda w: xp.sum(ox.vmap(lambda x: xp.maximum(w, x) * xp.take(w, xp.argmax(x)))(X)))(W)
    expected = ox.grad(lambda w: sum(xp.sum(xp.maximum(w, x) * w[int(np.argmax(x))]) for x in X))(W)
    agree(weights, expected)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, scale: xp.sum(xp.sin(scale * x)),
        lambda x, scale: xp.sum(xp.stats.norm.logpdf(x, 0.3, scale)),
        lambda x, scale: ox.custom_vjp(
            lambda x, c: xp.sum(x) * c, lambda g, y, x, c: (g * c * xp.ones_like(x), g * xp.sum(x))
        )(x, scale),
    ],
)
def test_derivatives_by_numbers_of_python(f: Callable[..., Any]) -> None:
    for transform in (ox.grad, ox.jacrev, ox.hessian, lambda f, at: lambda *args: ox.vjp(f, *args)[1](1.0)[at]):
        for at in (0, 1):
            derivative = transform(f, at)
            expected = stacked([derivative(x, 1.4) for x in X])
            agree(ox.vmap(derivative, (0, None))(X, 1.4), expected)
            agree(ox.vmap(ox.vmap(derivative, (0, None)), (0, None))(X[:, None], 1.4), expected[:, None])


def test_singular_values_that_are_cut_turn_with_the_matrices() -> None:
    def f(x: Any) -> Any:
        return xp.sum(xp.sin(xp.linalg.pinv(x, rtol=0.6)))

    batch = normal(2, 5, 3)
    expected = stacked([ox.grad(f)(x) for x in batch])
    agree(ox.grad(lambda batch: xp.sum(ox.vmap(f)(batch)))(batch), expected)
    agree(ox.vmap(ox.grad(f))(batch), expected)
    agree(ox.grad(lambda b: xp.sum(ox.vmap(ox.vmap(f))(b[:, None])))(batch), expected)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: xp.signal.convolve(x, x),
        lambda x: x[xp.argmax(x)],
        ox.custom_vjp(lambda x: x * x, lambda g, y, x: 2.0 * g * x),
    ],
)
def test_no_examples_of_what_is_called_for_each(f: Callable[..., Any]) -> None:
    for call in (ox.vmap(f), ox.vmap(ox.grad(lambda x: xp.sum(f(x)))), ox.grad(lambda z: xp.sum(ox.vmap(f)(z)))):
        with pytest.raises(ox.ShapeError, match="vmap: found no examples, expected at least one"):
            call(np.ones((0, 3)))
    assert ox.vmap(xp.special.erfcx)(np.ones((0, 3))).shape == (0, 3)
    assert ox.vmap(xp.argmax)(np.ones((0, 3))).shape == (0,)


def test_batched_values_by_keyword() -> None:
    agree(
        ox.vmap(lambda x, y: xp.diff(W, prepend=x, append=y))(X, X),
        stacked([np.diff(W, prepend=x, append=x) for x in X]),
    )
    agree(ox.vmap(lambda x: xp.linalg.matrix_rank(x))(X[:, None] * W[:, None]), np.ones(3, int))


def test_axes_and_trees() -> None:
    batch = {"a": X, "b": (2.0, np.moveaxis(X, 0, 1))}
    f = ox.vmap(
        lambda d, scale: {"y": d["a"] * d["b"][0] * scale, "z": (d["b"][1], 1.0)},
        ({"a": 0, "b": (None, 1)}, None),
        {"y": 1, "z": (0, None)},
    )
    found = f(batch, 3.0)
    np.testing.assert_allclose(found["y"], 6.0 * X.T)
    np.testing.assert_array_equal(found["z"][0], X)
    assert found["z"][1] == 1.0
    np.testing.assert_array_equal(ox.vmap(lambda x, *, w: x + w)(X, w=X), 2.0 * X)
    np.testing.assert_array_equal(ox.vmap(lambda x: 1.0)(X), np.ones(3))
    np.testing.assert_array_equal(ox.vmap(lambda x: x, -1, -1)(X), X)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ox.vmap(xp.sin, 2)(X), ox.ShapeError, r"argument 0: found shape \(3, 4\), expected an axis 2"),
        (
            lambda: ox.vmap(xp.sin, 0, 2)(X),
            ox.ShapeError,
            r"the result: found shape \(4,\) of one example, expected -2 to 1 in out_axes, found 2",
        ),
        (
            lambda: ox.vmap(lambda row: row)(pytest.importorskip("pandas").DataFrame(X)),
            ox.DtypeError,
            "argument 0: found DataFrame, expected an array, or None in in_axes",
        ),
        (lambda: ox.vmap(xp.add)(X, W), ox.ShapeError, "argument 1: axis 0 has size 4, expected 3, as argument 0 has"),
        (lambda: ox.vmap(lambda d: d["a"])({"a": X, "b": W}), ox.ShapeError, "argument 0, b: axis 0 has size 4"),
        (lambda: ox.vmap(xp.sin, None)(X), ValueError, "no argument is mapped"),
        (lambda: ox.vmap(xp.add, (0,))(X, X), ox.StructureError, "in_axes has 1 items, expected 2"),
        (lambda: ox.vmap(xp.sin, ({"a": 0},))(X), ox.StructureError, "argument 0: found the axes"),
        (lambda: ox.vmap(xp.sin, 0, None)(X), ValueError, "the result differs between examples"),
        (lambda: ox.vmap(lambda x: x if x[0] > 0 else -x)(X), TypeError, "a branch on a batched value: use xp.where"),
        (lambda: ox.vmap(lambda x: W[x])(np.arange(3)), TypeError, "xp.take"),
        (lambda: ox.vmap(lambda x: np.asarray(x))(X), TypeError, "does not turn into an array"),
        (lambda: ox.vmap(lambda x: float(x[0]))(X), TypeError, "not one number"),
        (
            lambda: ox.vmap(np.nonzero)(X > 0.0),
            TypeError,
            "nonzero: the results of the examples differ in their shapes",
        ),
        (
            lambda: ox.vmap(lambda n: xp.fft.idct(X, n=n))(np.arange(1, 4)),
            TypeError,
            "idct: the results .* differ in their shapes",
        ),
        (lambda: ox.vmap(lambda x: x.__setitem__(0, 1.0))(X), TypeError, "immutable"),
        (lambda: ox.vmap(3), TypeError, "vmap: found 3, expected a function"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_and_methods() -> None:
    where = np.array([2, 0, 3])
    agree(ox.vmap(lambda x, i: x[i])(X, where), X[np.arange(3), where])
    agree(ox.vmap(lambda i: xp.take(W, i))(where), W[where])
    agree(
        ox.vmap(ox.grad(lambda x, i: xp.sin(x[i])), 0)(X, where),
        stacked([ox.grad(lambda x, i=i: xp.sin(x[i]))(x) for x, i in zip(X, where, strict=True)]),
    )
    agree(ox.vmap(lambda x: x.at[1].set(0.0))(X), X * np.array([1.0, 0.0, 1.0, 1.0]))
    agree(
        ox.vmap(lambda x: x.reshape(2, 2).T.sum(axis=0) + x.mean())(X),
        stacked([x.reshape(2, 2).T.sum(axis=0) + x.mean() for x in X]),
    )
    agree(ox.vmap(lambda x: 2.0 - np.exp(x) ** 2 / (1.0 + x))(X), 2.0 - np.exp(X) ** 2 / (1.0 + X))
    agree(ox.vmap(lambda x: sum(part * part for part in x))(X), np.sum(X * X, axis=1))
    for name in ("argmax", "argmin", "argsort", "any", "all", "count_nonzero"):
        agree(
            ox.vmap(lambda x, name=name: getattr(xp, name)(x > 0.0 if name in ("any", "all") else x))(X),
            stacked([getattr(np, name)(x > 0.0 if name in ("any", "all") else x) for x in X]),
        )
    agree(
        ox.vmap(lambda x: xp.argmax(x, keepdims=True))(X.reshape(3, 2, 2)),
        stacked([np.argmax(x, keepdims=True) for x in X.reshape(3, 2, 2)]),
    )


def test_rules_of_the_user_and_stopped_gradients() -> None:
    clipped = ox.custom_vjp(lambda x: x * 1.0, lambda g, y, x: xp.minimum(g, 0.5))
    for f in (
        lambda x: xp.sum(3.0 * clipped(x)),
        lambda x: xp.sum(ox.stop_gradient(x) * x),
        lambda x: xp.sum(ox.checkpoint(xp.sin)(x)),
    ):
        expected = stacked([ox.grad(f)(x) for x in X])
        agree(ox.vmap(ox.grad(f))(X), expected)
        agree(ox.grad(lambda x, f=f: xp.sum(ox.vmap(f)(x)))(X), expected)


def test_vmap_beside_jax(library) -> None:
    jax = library("jax")
    jnp = library("jax.numpy")

    def f(library: Any) -> Callable[..., Any]:
        return lambda x, w: library.sum(library.tanh(x @ w) ** 2) + library.max(x)

    a, b = normal(5, 4), normal(4, 2)
    for axes, args in (((0, None), (a, b)), ((1, 0), (a, np.stack([normal(5, seed=i) for i in range(4)])))):
        agree(ox.vmap(f(xp), axes)(*args), jax.vmap(f(jnp), axes)(*args), 1e-4)
        own, theirs = ox.vmap(ox.grad(f(xp), (0, 1)), axes), jax.vmap(jax.grad(f(jnp), (0, 1)), axes)
        agree(own(*args), theirs(*args), 1e-4)


def test_vmap_over_any_library(arrays) -> None:
    def f(x: Any, w: Any) -> Any:
        return xp.sum(xp.sin(x @ w) * xp.exp(-x[0]))

    x, w = arrays.asarray(X), arrays.asarray(normal(4, 2))
    gradient = ox.vmap(ox.grad(f, 1), (0, None))
    own = gradient(x, w)
    assert type(own) is type(x)
    np.testing.assert_allclose(host(own), gradient(X, normal(4, 2)), rtol=1e-12)


ORDERED = np.random.default_rng(3).permutation(48).astype(float).reshape(2, 3, 4, 2)
WITH_NAN = np.where(ORDERED % 7 == 0, np.nan, ORDERED)
RANKED = {
    "median": (),
    "nanmedian": (),
    "quantile": (np.array([[0.1, 0.5], [0.9, 1.0]]),),
    "nanquantile": (np.array([0.0, 0.3]),),
    "percentile": (41.0,),
    "nanpercentile": (np.array([20.0, 99.0]),),
}


@pytest.mark.filterwarnings("ignore:.*All-NaN")
@pytest.mark.parametrize("axis", [None, 1, (0, 1), [-1, 0], (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("name", [*RANKED, "all", "any", "count_nonzero"])
def test_reductions_of_one_or_several_axes_are_those_of_each_example(name: str, axis: Any) -> None:
    arguments, reduced = RANKED.get(name, ()), getattr(np, name)
    axis = tuple(axis) if isinstance(axis, list) else axis
    for keepdims in (False, True):
        f = lambda a, keepdims=keepdims: getattr(xp, name)(a, *arguments, axis=axis, keepdims=keepdims)  # noqa: E731
        for examples in (ORDERED, WITH_NAN, ORDERED > 30.0) if name not in RANKED else (ORDERED, WITH_NAN):
            wanted = np.stack([reduced(a, *arguments, axis=axis, keepdims=keepdims) for a in examples])
            np.testing.assert_allclose(ox.vmap(f)(examples), wanted, rtol=1e-14)
            nested = ox.vmap(ox.vmap(lambda a, f=f: f(a[None])))(examples)
            each = [[reduced(a[None], *arguments, axis=axis, keepdims=keepdims) for a in part] for part in examples]
            np.testing.assert_allclose(nested, np.array(each), rtol=1e-14)


@pytest.mark.parametrize("name", RANKED)
def test_quantiles_of_examples_have_the_derivatives_of_their_elements(name: str) -> None:
    """Of distinct elements, a small change leaves the order, so that a quotient of differences is exact up to rounding."""
    f = lambda a: xp.sum(xp.sin(getattr(xp, name)(a, *RANKED[name], axis=(0, 2)) / 10.0))  # noqa: E731
    plain = lambda a: np.sum(np.sin(getattr(np, name)(a, *RANKED[name], axis=(0, 2)) / 10.0))  # noqa: E731
    change = np.random.default_rng(4).standard_normal(ORDERED.shape)
    slopes = [(plain(a + 1e-5 * d) - plain(a - 1e-5 * d)) / 2e-5 for a, d in zip(ORDERED, change, strict=True)]
    gradients = ox.vmap(ox.grad(f))(ORDERED)
    np.testing.assert_allclose(np.sum(gradients * change, axis=(1, 2, 3)), slopes, atol=1e-8)
    whole = ox.grad(lambda x: xp.sum(ox.vmap(f)(x)))(ORDERED)
    np.testing.assert_allclose(whole, gradients, atol=1e-14)
    tangents = ox.vmap(lambda a, d: ox.jvp(ox.grad(f), (a,), (d,))[1])(ORDERED, change)
    steps = (ox.vmap(ox.grad(f))(ORDERED + 1e-5 * change) - ox.vmap(ox.grad(f))(ORDERED - 1e-5 * change)) / 2e-5
    np.testing.assert_allclose(tangents, steps, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*All-NaN")
def test_nan_quantiles_of_a_matrix_of_probabilities_have_its_dimensions_first() -> None:
    """NumPy 2.4 transposes the result of `numpy.nanquantile` for several axes, where probabilities are a matrix, not a vector."""
    probabilities = np.array([[0.1, 0.5, 0.6], [0.9, 1.0, 0.2]])
    for axis in (0, -1, (0, 2), None):
        found = ox.vmap(lambda a, axis=axis: xp.nanquantile(a, probabilities, axis=axis))(WITH_NAN)
        flat = [np.nanquantile(a, probabilities.ravel(), axis=axis) for a in WITH_NAN]
        np.testing.assert_allclose(found, np.stack([part.reshape(2, 3, *part.shape[1:]) for part in flat]))


def test_weights_of_a_correlation_are_batched() -> None:
    pytest.importorskip("scipy.ndimage")
    rng = np.random.default_rng(5)
    x, weights = rng.normal(size=(5, 5)), rng.normal(size=(4, 3, 3))
    f = lambda w: xp.sum(xp.ndimage.correlate(x, w) ** 2)  # noqa: E731
    expected = np.stack([ox.grad(f)(w) for w in weights])
    np.testing.assert_allclose(ox.vmap(ox.grad(f))(weights), expected, rtol=1e-12)
    np.testing.assert_allclose(ox.grad(lambda w: xp.sum(ox.vmap(f)(w)))(weights), expected, rtol=1e-12)
