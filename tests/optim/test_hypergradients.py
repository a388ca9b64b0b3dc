"""Derivatives of steps with respect to hyperparameters: every numeric one of every optimizer, beside differences of the steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from optimizers import OPTIMIZERS, WHOLE
from oxigrad import optim, xp
from oxigrad._core import ShapeError, StateError, StructureError
from oxigrad.rules import preconditioned

GENERATOR = np.random.default_rng(5)
MODEL = {"w": GENERATOR.normal(size=(4, 3)), "v": GENERATOR.normal(size=(3, 2))}
INPUTS, TARGETS = GENERATOR.normal(size=(5, 4)), GENERATOR.normal(size=(5, 2))

WHOLE_ARRAY: dict[str, Callable[[], Any]] = {
    "muon": lambda: optim.Muon(0.1, weight_decay=0.1),
    "adafactor": lambda: optim.Adafactor(0.1, weight_decay=0.1),
    "adafactor-momentum": lambda: optim.Adafactor(0.1, momentum=0.9),
    "shampoo": lambda: optim.Shampoo(0.1, weight_decay=0.1, beta2=0.9),
    "soap": lambda: optim.SOAP(0.1, weight_decay=0.1, epsilon=0.01),
    "sm3": lambda: optim.SM3(0.1, momentum=0.9, beta2=0.9),
    "galore": lambda: optim.GaLore(0.1, rank=2, interval=2, weight_decay=0.1),
}
# Rules that read the loss, which depends on the hyperparameters too.
READERS: dict[str, Callable[[], Any]] = {
    "momo": lambda: optim.MoMo(0.1, weight_decay=0.1, bias_correction=True, adapt_lower_bound=True),
    "momo-adam": lambda: optim.MoMoAdam(0.1, weight_decay=0.1),
    "polyak-sgd": lambda: optim.PolyakSGD(0.5, max_size=0.1),
}
CHAINS: dict[str, Callable[[], Any]] = {
    "clipped": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.1), optim.EMA(0.9)),
    "regularized": lambda: optim.chain(optim.Regularize(l1=0.1, l2=0.1), optim.SGD(0.1, 0.9), optim.WeightDecay(0.1)),
    "orthogonalized": lambda: optim.chain(optim.SGD(0.1, 0.9), optim.Orthogonalize(), optim.WeightDecay(0.1)),
    "accumulated": lambda: optim.SGD(0.1, 0.9, accumulate=2),
}
# A value in the interior of the interval, where a row's own is an end of it or a scale too small to see.
INSIDE = {
    "beta1": 0.8,
    "beta2": 0.9,
    "beta3": 0.7,
    "epsilon": 0.01,
    "epsilon_root": 0.01,
    "dampening": 0.3,
    "growth_rate": 1.5,
}


def loss(model: dict[str, Any]) -> Any:
    """A function of all parameters with large gradients."""
    return xp.sum((xp.tanh(INPUTS @ model["w"]) @ model["v"] - TARGETS) ** 2)


def trained(opt: Any, steps: int = 3, start: Any = None, **hyperparameters: Any) -> Any:
    """The loss after some steps by `apply`."""
    model, state = MODEL if start is None else start, opt.init(MODEL, **hyperparameters)
    for _ in range(steps):
        value, gradient = ox.value_and_grad(loss)(model)
        model, state = opt.apply(model, gradient, state, loss=value, **hyperparameters)
    return loss(model)


def variables(opt: Any) -> Iterator[tuple[str, float]]:
    """The hyperparameters that can vary, and a value of each in the interior of its interval."""
    group = opt._assign("w", MODEL["w"])
    for name, value in group.numeric.items():
        domain, own = group._declared[name].domain, name.rpartition(".")[2]
        if domain is not None and domain.is_whole:
            continue
        needs = {asks for slot, asks in group._optional if slot in group.absent}
        if name in needs:
            continue
        is_inside = 1e-4 < abs(value) < 0.9985 or abs(value) > 1
        yield name, value if is_inside and own not in INSIDE else INSIDE.get(own, 0.05)


def difference(f: Callable[[float], Any], at: float, h: float) -> float:
    """The central difference, extrapolated (Richardson): its error falls with the fourth power of ``h``."""
    near, far = (float(f(at + k * h) - f(at - k * h)) / (2 * k * h) for k in (1, 2))
    return near + (near - far) / 3


@pytest.mark.parametrize("name", [*OPTIMIZERS, *WHOLE_ARRAY, *READERS, *CHAINS])
@pytest.mark.one_in(8)
def test_every_hyperparameter_has_its_derivative_in_both_modes(name: str) -> None:
    opt = (OPTIMIZERS | WHOLE_ARRAY | READERS | CHAINS)[name]()
    checked = 0
    for variable, value in variables(opt):

        def of(h: Any, variable: str = variable) -> Any:
            return trained(opt, **{variable: h})

        total, gradient = ox.value_and_grad(of)(value)
        same, tangent = ox.jvp(of, (value,), (1.0,))
        np.testing.assert_allclose([total, same], [of(value)] * 2, rtol=1e-12, err_msg=variable)
        np.testing.assert_allclose(tangent, gradient, rtol=1e-7, atol=1e-9, err_msg=variable)
        expected = difference(of, value, 1e-6 * abs(value))
        np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=1e-6, err_msg=variable)
        checked += 1
    assert checked


# Parameters, gradients and norms of zero, whose roots have no derivative by themselves: biases begin so, and unused parameters stay so.
AT_ZERO = {
    **MODEL,
    "bias": np.zeros(2),
    "unused": np.zeros(3),
    "dead": GENERATOR.normal(size=(2, 2)),
    "scale": np.array(0.0),
}


def loss_at_zero(model: dict[str, Any]) -> Any:
    """As `loss`, of a model with a bias, where two parameters have a gradient of zero."""
    outputs = xp.tanh(INPUTS @ model["w"]) @ model["v"] + model["bias"]
    return (
        xp.sum((outputs - TARGETS) ** 2) + 0.0 * xp.sum(model["unused"]) + 0.0 * xp.sum(model["dead"]) + model["scale"]
    )


CLIPS: dict[str, Callable[[], Any]] = {
    "clip-by-norm": lambda: optim.chain(optim.ClipByNorm(0.5), optim.SGD(0.1)),
    "mars": lambda: optim.chain(optim.MARS(max_norm=0.5), optim.AdamW(0.1)),
    "adaptive-clip": lambda: optim.chain(optim.AdaptiveGradientClip(0.1), optim.SGD(0.1)),
}


# SOAP divides elements that are rounding errors, in bases of statistics of low rank, by their roots.
@pytest.mark.parametrize("name", [*OPTIMIZERS, *sorted(WHOLE.keys() - {"soap"}), *CLIPS])
@pytest.mark.one_in(8)
def test_zeros_of_parameters_and_gradients_leave_derivatives(name: str) -> None:
    opt = (OPTIMIZERS | WHOLE | CLIPS)[name]()

    def of(hyperparameters: Any) -> Any:
        model, state = AT_ZERO, opt.init(AT_ZERO)
        for _ in range(3):
            value, gradient = ox.value_and_grad(loss_at_zero)(model)
            model, state = opt.apply(model, gradient, state, loss=value, **hyperparameters)
        return loss_at_zero(model)

    for variable, value in variables(opt):
        if variable.endswith("min_size"):  # the bound that steps of a zero gradient are at
            continue
        gradient = ox.grad(lambda h, variable=variable: of({variable: h}))(value)
        _, tangent = ox.jvp(lambda h, variable=variable: of({variable: h}), (value,), (1.0,))
        expected = difference(lambda h, variable=variable: of({variable: h}), value, 1e-6 * abs(value))
        np.testing.assert_allclose(tangent, gradient, rtol=1e-7, atol=1e-9, err_msg=variable)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5, err_msg=variable)


@pytest.mark.parametrize("name", [*OPTIMIZERS, *WHOLE, *CLIPS, *CHAINS])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.one_in(8)
def test_steps_whose_gradients_are_all_zero_have_derivatives(name: str, steps: int) -> None:
    opt = (OPTIMIZERS | WHOLE | CLIPS | CHAINS)[name]()
    zeros = {key: np.zeros_like(value) for key, value in MODEL.items()}

    def of(hyperparameters: Any, factor: Any = 1.0) -> Any:
        model, state = MODEL, opt.init(MODEL)
        grads = {key: factor * value for key, value in zeros.items()}
        for _ in range(steps):
            model, state = opt.apply(model, grads, state, loss=0.5, **hyperparameters)
        return xp.sum(xp.sin(model["w"])) + xp.sum(xp.sin(model["v"]))

    for variable, value in variables(opt):
        gradient = ox.grad(lambda h, variable=variable: of({variable: h}))(value)
        _, tangent = ox.jvp(lambda h, variable=variable: of({variable: h}), (value,), (1.0,))
        expected = difference(lambda h, variable=variable: of({variable: h}), value, 1e-6 * abs(value))
        np.testing.assert_allclose([gradient, tangent], [expected] * 2, rtol=1e-4, atol=1e-5, err_msg=variable)
    assert ox.grad(lambda factor: of({}, factor))(1.0) == 0.0
    assert ox.jvp(lambda factor: of({}, factor), (1.0,), (1.0,))[1] == 0.0


# Of the statistic of each axis, the eigenvalues: equal ones, and zeros.
SPECTRA = {"distinct": (0.5, 1.0, 2.0), "equal": (1.0, 1.0, 1.0), "two": (1.0, 1.0, 2.0), "low rank": (0.0, 0.0, 2.0)}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("degree", [2, 4, 6])
def test_inverse_roots_have_derivatives_of_all_orders_at_equal_eigenvalues(spectrum: str, degree: int) -> None:
    generator = np.random.default_rng(3)
    basis = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    statistic, weights = basis @ np.diag(SPECTRA[spectrum]) @ basis.T, generator.normal(size=(3, 3))
    factor = generator.normal(size=(3, 3))
    change = statistic if spectrum == "low rank" else factor + factor.T

    def of(t: Any, epsilon: Any = 0.3) -> Any:
        return xp.sum(weights * preconditioned._inverse_root(xp, statistic + t * change, degree, epsilon))

    derivatives = [of, ox.grad(of), ox.grad(ox.grad(of)), ox.grad(ox.grad(ox.grad(of)))]
    for below, derivative in itertools.pairwise(derivatives):
        np.testing.assert_allclose(derivative(0.0), difference(below, 0.0, 1e-4), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ox.jvp(below, (0.0,), (1.0,))[1], derivative(0.0), rtol=1e-9)
    by_epsilon = ox.grad(lambda epsilon: of(0.0, epsilon))(0.3)
    np.testing.assert_allclose(by_epsilon, difference(lambda epsilon: of(0.0, epsilon), 0.3, 1e-4), rtol=1e-7)
    batch = np.array([0.0, 0.1])
    np.testing.assert_allclose(ox.vmap(ox.grad(of))(batch), [ox.grad(of)(t) for t in batch.tolist()], rtol=1e-10)


@pytest.mark.parametrize("spectrum", ["distinct", "two"])
def test_eigenvectors_have_derivatives_of_all_orders_but_within_equal_eigenvalues(spectrum: str) -> None:
    generator = np.random.default_rng(3)
    basis = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    statistic, weights = basis @ np.diag(SPECTRA[spectrum]) @ basis.T, generator.normal(size=(3, 3))
    change = generator.normal(size=(3, 3))
    change = change + change.T
    unique = 3 if spectrum == "distinct" else 1

    def of(t: Any) -> Any:
        vectors = preconditioned._eigenvectors(xp, statistic + t * change)[:, :unique]
        return xp.sum(weights[:, :unique] * vectors)

    derivatives = [of, ox.grad(of), ox.grad(ox.grad(of)), ox.grad(ox.grad(ox.grad(of)))]
    for below, derivative in itertools.pairwise(derivatives):
        np.testing.assert_allclose(derivative(0.0), difference(below, 0.0, 1e-4), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ox.jvp(below, (0.0,), (1.0,))[1], derivative(0.0), rtol=1e-9)


@pytest.mark.parametrize("name", ["momentum", "adamw", "lamb", "prodigy", "radam", "shampoo", "clipped", "accumulated"])
def test_batches_of_hyperparameters_second_derivatives_and_checkpoints(name: str) -> None:
    opt = (OPTIMIZERS | WHOLE_ARRAY | CHAINS)[name]()
    rates = np.array([0.02, 0.05, 0.1])

    def of(rate: Any) -> Any:
        return trained(opt, learning_rate=rate)

    each = [ox.grad(of)(rate) for rate in rates.tolist()]
    np.testing.assert_allclose(ox.vmap(of)(rates), [of(rate) for rate in rates.tolist()], rtol=1e-10)
    np.testing.assert_allclose(ox.vmap(ox.grad(of))(rates), each, rtol=1e-8)
    second = ox.grad(ox.grad(of))(0.05)
    np.testing.assert_allclose(second, difference(ox.grad(of), 0.05, 1e-5), rtol=1e-4, atol=1e-4)

    def step(model: Any, state: Any, rate: Any) -> Any:
        return opt.apply(model, ox.grad(loss)(model), state, learning_rate=rate)

    def saved(rate: Any) -> Any:
        model, state = MODEL, opt.init(MODEL)
        for _ in range(3):
            model, state = ox.checkpoint(step)(model, state, rate)
        return loss(model)

    np.testing.assert_allclose(ox.grad(saved)(0.05), each[1], rtol=1e-10)


# JAX and MLX compute in float32.
@pytest.mark.parametrize(
    ("module", "tolerance"),
    [("torch", 1e-9), ("array_api_strict", 1e-9), ("jax.numpy", 1e-4), ("mlx.core", 1e-3)],
)
@pytest.mark.parametrize(
    "name", ["momentum", "adagrad", "lamb", "shampoo", "soap", "clipped", "asgd", "lion", "adam-lrd"]
)
def test_steps_on_arrays_of_other_libraries_have_those_derivatives(
    name: str, module: str, tolerance: float, library: Any
) -> None:
    """By a hyperparameter, given to `init` too, by the gradients of all steps, by the slots, and for a batch of hyperparameters."""
    opt, space = (OPTIMIZERS | WHOLE_ARRAY | CHAINS)[name](), library(module)
    rate, scale = next(iter(variables(opt)))[0], np.array([0.5, -1.5, 0.25, 1.0]).reshape(2, 2)

    def at(asarray: Callable[[Any], Any]) -> tuple[Any, ...]:
        model, grads = {"w": asarray(np.eye(2) + 0.5)}, {"w": asarray(scale)}

        def of(h: Any, g: Any, factor: Any = 1.0) -> Any:
            params, state = model, opt.init(model, **{rate: h})
            scaled = {"m", "v", "average"}
            slots = {k: xp.multiply(v, factor) if k in scaled else v for k, v in state["slots"]["w"].items()}
            state = {**state, "slots": {"w": slots}}
            for _ in range(3):
                params, state = opt.apply(params, g, state, **{rate: h})
            return xp.sum(params["w"] ** 2)

        by_rate, by_gradient, by_factor = ox.grad(of, argnums=(0, 1, 2))(0.05, grads, 1.5)
        tangent = ox.jvp(lambda h: of(h, grads), (0.05,), (1.0,))[1]
        batch = ox.vmap(lambda h: of(h, grads))(asarray(np.array([0.05, 0.1])))
        return tuple(np.asarray(each) for each in (by_rate, by_gradient["w"], by_factor, tangent, batch))

    expected = at(np.asarray)
    np.testing.assert_allclose(expected[0], expected[3], rtol=1e-9)
    asarray = space.asarray if hasattr(space, "asarray") else space.array
    for found, same in zip(at(asarray), expected, strict=True):
        np.testing.assert_allclose(found, same, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("x64", [False, True])
def test_derivatives_of_norms_in_both_modes_of_jax(x64: bool, library: Any) -> None:
    """Norms are computed in float64, which JAX has in one mode alone, and warns of in the other."""
    jax = library("jax")

    def derivatives(asarray: Callable[[Any], Any]) -> Any:
        model, opt = {"w": asarray([[1.5, 0.5], [0.25, 1.0]])}, optim.LAMB(0.1)

        def of(h: Any) -> Any:
            params, state = model, opt.init(model)
            for _ in range(2):
                params, state = opt.apply(params, {"w": 2.0 * params["w"]}, state, learning_rate=h)
            return xp.sum(params["w"] ** 2)

        second = ox.grad(ox.grad(of))(0.05), ox.hessian(of)(0.05), ox.jvp(ox.grad(of), (0.05,), (1.0,))[1]
        batch = np.asarray(ox.vmap(ox.grad(of))(asarray([0.05, 0.1])))
        return [of(0.05), ox.grad(of)(0.05), ox.jvp(of, (0.05,), (1.0,))[1], *second, *batch]

    expected = derivatives(np.array)
    with jax.enable_x64(x64):
        values = derivatives(jax.numpy.asarray)
    np.testing.assert_allclose(np.array(values, float), expected, rtol=1e-12 if x64 else 1e-5)


def test_a_schedule_and_a_decay_by_group_have_derivatives() -> None:
    opt = optim.AdamW(0.1)

    def of(rates: Any, decays: Any) -> Any:
        model, state = MODEL, opt.init(MODEL)
        for at in range(4):
            groups = {"w": {"weight_decay": decays[0]}, "v": {"weight_decay": decays[1]}}
            model, state = opt.apply(model, ox.grad(loss)(model), state, learning_rate=rates[at], groups=groups)
        return loss(model)

    ox.testing.check_grads(of, (np.array([0.1, 0.05, 0.02, 0.01]), np.array([0.1, 0.3])), order=1)
    same = of(np.full(4, 0.1), np.array([0.2, 0.2]))
    assert same == trained(opt, steps=4, weight_decay=0.2)
    assert same != of(np.full(4, 0.1), np.array([0.2, 0.3]))


def test_a_pure_step_equals_the_step_of_an_optimizer_with_these_groups() -> None:
    groups = {"v": {"learning_rate": 0.5, "momentum": 0.3}}
    opt, other = optim.SGD(0.1, 0.9), optim.SGD(0.1, 0.9, groups=groups)
    gradient = ox.grad(loss)(MODEL)
    ours, expected = (MODEL, opt.init(MODEL)), (MODEL, other.init(MODEL))
    for _ in range(3):
        ours = opt.apply(ours[0], gradient, ours[1], groups=groups)
        expected = other.apply(expected[0], gradient, expected[1])
    for name in MODEL:
        np.testing.assert_array_equal(ours[0][name], expected[0][name])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"momentum": 0.9}, StateError, "momentum is 0.9: SGD keeps no slot m, since its own momentum is 0.0"),
        ({"learning_rate": -1.0}, ValueError, "learning_rate is -1.0: expected a number in"),
        ({"learning_rate": lambda step: 0.1}, TypeError, "expected a number or an array without axes"),
        ({"rate": 1.0}, TypeError, "found rate, expected numeric hyperparameters: learning_rate"),
        ({"groups": {"w": {"rate": 1.0}}}, TypeError, "found rate, expected numeric hyperparameters: learning_rate"),
        ({"groups": {"u": {"learning_rate": 1.0}}}, StructureError, "the pattern 'u' matches no parameter"),
        ({"groups": {"w": None}}, TypeError, "the group 'w': found None, expected a dict of hyperparameters"),
    ],
)
def test_what_a_pure_step_cannot_take_is_named(given: Any, error: type[Exception], message: str) -> None:
    opt = optim.SGD(0.1)
    with pytest.raises(error, match=message):
        opt.apply(MODEL, MODEL, opt.init(MODEL), **given)


def test_variables_are_checked_as_numbers_are() -> None:
    opt = optim.Sophia(0.1)
    for wrong, error, message in (
        (lambda h: {"learning_rate": -h}, ValueError, r"learning_rate is -1.0: expected a number in \[0, inf"),
        (lambda h: {"learning_rate": xp.stack([h, h])}, ShapeError, r"learning_rate has shape \(2,\)"),
        (lambda h: {"every": h}, TypeError, "every is a variable: expected a whole number"),
    ):
        with pytest.raises(error, match=message):
            ox.grad(lambda h, wrong=wrong: trained(opt, steps=1, **wrong(h)))(1.0)
    with pytest.raises(ValueError, match="learning_rate is -0.1"):
        ox.vmap(lambda h: trained(opt, steps=1, learning_rate=h))(np.array([0.1, -0.1]))
