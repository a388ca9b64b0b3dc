"""Functions with plain results under every composition of transforms, and under both names: the results of the same call without.

The first call of each function: `tests/fuzz/test_names_in_transforms.py` draws from all calls of all functions.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import compositions
import forms_numpy
import oxigrad as ox
from forms import Form, Section
from oxigrad import xp

PLAIN = [
    pytest.param(section, form, id=form.name)
    for section in forms_numpy.SECTIONS
    for form in section.forms
    if form.order == 0 and not form.refused
]


@pytest.mark.parametrize(("section", "form"), PLAIN)
def test_plain_results_in_every_composition(section: Section, form: Form) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            f"{title}, {call}, {name}: {what}"
            for title, call, f, args, reference in compositions.calls(section, form, most=1)
            for name in (compositions.COMPOSITIONS if args else ())
            if (what := compositions.fault(name, f, args, reference))
        ]
    assert not found, "\n".join(found)


# --- functions without a batching rule ---------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(3, 4))


def directional(f: Any) -> Any:
    """The derivative of a function along its argument."""
    return lambda x: ox.jvp(f, (x,), (x,))[1]


def test_functions_that_read_values_are_called_for_each_example() -> None:
    for f in (np.median, xp.median, lambda x: xp.percentile(x, 50.0 * np.abs(x[0]) / (1.0 + np.abs(x[0])))):
        np.testing.assert_allclose(ox.vmap(f)(X), [f(x) for x in X])
        for transform in (ox.grad, ox.hessian, directional):
            square = lambda x, f=f: f(x) ** 2  # noqa: E731
            expected = np.stack([transform(square)(x) for x in X])
            np.testing.assert_allclose(ox.vmap(transform(square))(X), expected, atol=1e-12)
        of_all = ox.grad(lambda X, f=f: xp.sum(ox.vmap(f)(X) ** 2))(X)
        np.testing.assert_allclose(of_all, [ox.grad(lambda x, f=f: f(x) ** 2)(x) for x in X], atol=1e-12)


def test_results_that_differ_between_examples_in_their_shapes_are_refused_by_name() -> None:
    for f in (np.nonzero, xp.nonzero, lambda x: x[x > 0.0]):
        with pytest.raises(TypeError, match="vmap: .*differ"):
            ox.vmap(f)(np.array([[1.0, 0.0], [1.0, 2.0]]))
    found = ox.vmap(lambda x: xp.nonzero(x)[0])(np.array([[1.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(found, [[0], [1]])


@pytest.mark.parametrize("write", ["np.put(x, [0], 1.0)", "np.add.at(x, [0], 1.0)", "np.exp(x, out=x)", "x.fill(0.0)"])
def test_what_writes_to_a_batched_value_is_refused(write: str) -> None:
    before = X.copy()
    with pytest.raises(TypeError, match="vmap: .*immutable"):
        ox.vmap(lambda x: eval(write, {"np": np, "x": x}))(X)  # noqa: S307
    np.testing.assert_array_equal(X, before)


def test_a_batched_value_is_not_written_to_an_array_of_all_examples() -> None:
    target = np.zeros(4)
    for write in (lambda x: np.copyto(target, x), lambda x: np.put(target, [0], x), lambda x: np.exp(x, out=target)):
        with pytest.raises(TypeError, match="vmap"):
            ox.vmap(write)(X)
    np.testing.assert_array_equal(target, 0.0)


def test_in_place_operators_of_variables_in_vmap_are_those_of_a_loop() -> None:
    def f(x: Any) -> Any:
        y = x
        x += 1.0
        return np.sum(y * y)

    np.testing.assert_allclose(ox.vmap(ox.grad(f))(X), [ox.grad(f)(x.copy()) for x in X])


def test_types_of_arrays_do_not_stop_a_recording() -> None:
    f = ox.record(lambda x: np.sum(x * np.ones(np.shape(x), np.result_type(x, np.float32))) * np.ndim(x))
    for scale in (1.0, 2.0, 3.0):
        assert f(scale * X[0]) == pytest.approx(scale * np.sum(X[0]))
    assert f.why is None
    trace = ox.record(lambda x: x.trace())
    assert [trace(k * np.eye(3)) for k in (1.0, 2.0)] == [3.0, 6.0] and trace.why is None


# --- constants and choices by values, of batches -----------------------------------------------------------------------


def test_a_detached_tensor_is_a_constant_in_every_composition() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(1.0, 4.0, dtype=torch.float64)
    f = lambda x: x.detach() * x  # noqa: E731
    for gradient in (ox.vmap(ox.grad(f)), ox.grad(lambda x: xp.sum(ox.vmap(f)(x)))):
        np.testing.assert_array_equal(gradient(x), x)
    np.testing.assert_array_equal(ox.vmap(directional(f))(x), x * x)
    np.testing.assert_array_equal(ox.vmap(ox.grad(lambda x: x.sigmoid()))(x), ox.vmap(ox.grad(xp.special.expit))(x))


def test_the_derivative_by_an_angle_is_that_of_a_loop() -> None:
    image, angles = np.random.default_rng(0).normal(size=(3, 4)), np.array([14.0, 12.6, 13.3])
    f = lambda angle: xp.sum(xp.ndimage.rotate(image, angle, reshape=False, mode="mirror") ** 2)  # noqa: E731
    found = ox.grad(lambda angles: xp.sum(ox.vmap(f)(angles)))(angles)
    step = 1e-6
    differences = [(f(angle + step) - f(angle - step)) / (2 * step) for angle in angles]
    np.testing.assert_allclose(found, differences, rtol=1e-6)


def test_the_reciprocal_gamma_function_of_examples_has_the_derivative_of_small_values() -> None:
    x, rgamma = np.array([100.0, 160.0]), xp.special.rgamma
    found = ox.grad(lambda x: xp.sum(ox.vmap(rgamma)(x)))(x)
    np.testing.assert_allclose(found, [-4.92912075225117e-156, -1.721261631139815e-282], rtol=1e-11)  # mpmath's


def test_square_roots_of_examples_are_complex_as_of_a_stack() -> None:
    matrices = np.array([[[4.0, 0.0], [0.0, 9.0]], [[4.0, 0.0], [0.0, -9.0]]])
    roots = np.array([[[2.0, 0.0], [0.0, 3.0]], [[2.0, 0.0], [0.0, 3.0j]]])
    np.testing.assert_allclose(xp.linalg.sqrtm(matrices), roots, atol=1e-15)
    np.testing.assert_allclose(ox.vmap(xp.linalg.sqrtm)(matrices), roots, atol=1e-15)
    trace = lambda x: xp.sum(xp.abs(xp.linalg.sqrtm(x)) ** 2)  # noqa: E731
    expected = [ox.grad(trace)(x) for x in matrices]
    np.testing.assert_allclose(ox.vmap(ox.grad(trace))(matrices), expected, atol=1e-14)
    np.testing.assert_allclose(ox.grad(lambda x: xp.sum(ox.vmap(trace)(x)))(matrices), expected, atol=1e-14)


def test_exponentials_of_examples_of_large_norm() -> None:
    rates = np.array([[-1.0, 1.0], [2.0, -2.0]])
    found = ox.vmap(xp.linalg.expm)(np.stack([1e6 * rates, rates]))
    np.testing.assert_allclose(found[0], [[2 / 3, 1 / 3]] * 2, rtol=1e-9)


def test_wrong_values_of_an_example_are_refused() -> None:
    with pytest.raises(ValueError, match="does not increase"):
        ox.vmap(lambda x: xp.integrate.cumulative_simpson(x, x=x))(np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]))
    with pytest.raises(ValueError, match="negative weight"):
        ox.vmap(lambda w: xp.spatial.distance.pdist(X, "sqeuclidean", w=w))(np.array([[1.0] * 4, [-1.0] * 4]))


@pytest.mark.parametrize("f", [np.asarray, np.array, np.asanyarray])
def test_an_array_made_like_a_batched_value_is_plain_outside(f: Any) -> None:
    batch = X[:, None]
    found = ox.vmap(ox.vmap(lambda x: f([x, 2.0 * x], like=x)))(batch)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, np.stack([batch, 2.0 * batch], axis=2))
