"""Optimizers that are not elementwise, compared with torch, optax, and NumPy programs of the papers' algorithms."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from optimizers import WHOLE
from oxigrad import optim

STEPS = 25
# Matrices tall, wide and square, more axes, one and none.
SHAPES = {"tall": (6, 4), "wide": (3, 5), "square": (4, 4), "cube": (3, 4, 5), "vector": (7,), "number": ()}
MATRICES = {name: shape for name, shape in SHAPES.items() if len(shape) == 2}


def draws(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A model, and a gradient for each step."""
    generator = np.random.default_rng(seed)
    draw = lambda: {name: np.asarray(generator.standard_normal(shape)) for name, shape in shapes.items()}  # noqa: E731
    return draw(), [draw() for _ in range(STEPS)]


def follow(opt: Any, step: Callable[[int, Any], Any], shapes: Any = SHAPES, rtol: float = 1e-10) -> None:
    """Takes the same steps with an optimizer and with a reference, which is given gradients and returns parameters."""
    model, gradients = draws(shapes)
    for t, grads in enumerate(gradients, 1):
        opt.update(model, grads)
        for name, value in step(t, grads).items():
            scale = np.max(np.abs(value))
            np.testing.assert_allclose(model[name], value, rtol=rtol, atol=rtol * scale, err_msg=f"{name}, step {t}")


def torch_stepper(torch: Any, make: Callable[[Any], Any], shapes: Any = SHAPES) -> Callable[[int, Any], Any]:
    params = {name: torch.tensor(value, requires_grad=True) for name, value in draws(shapes)[0].items()}
    opt = make(list(params.values()))

    def step(t: int, grads: Any) -> Any:
        for name, g in grads.items():
            params[name].grad = torch.tensor(g)
        opt.step()
        return {name: p.detach().numpy() for name, p in params.items()}

    return step


def optax_stepper(jax: Any, optax: Any, transformation: Any, shapes: Any = SHAPES) -> Callable[[int, Any], Any]:
    jax.config.update("jax_enable_x64", True)
    params = jax.tree.map(jax.numpy.asarray, draws(shapes)[0])
    state, update = transformation.init(params), jax.jit(transformation.update)

    def step(t: int, grads: Any) -> Any:
        nonlocal params, state
        updates, state = update(jax.tree.map(jax.numpy.asarray, grads), state, params)
        params = optax.apply_updates(params, updates)
        return jax.tree.map(np.asarray, params)

    return step


def loop(rule: Callable[..., Any], shapes: Any = SHAPES) -> Callable[[int, Any], Any]:
    """A reference in NumPy: ``rule(t, p, g, state)`` returns the new parameter and keeps what it likes in ``state``."""
    params = draws(shapes)[0]
    states: dict[str, dict[str, Any]] = {name: {} for name in params}

    def step(t: int, grads: Any) -> Any:
        for name, g in grads.items():
            params[name] = rule(t, params[name], g, states[name])
        return params

    return step


# --- Adafactor -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"weight_decay": 0.1}, {"lr": 0.5, "d": 1.5, "beta2_decay": -0.6, "eps": (1e-3, 1e-2)}]
)
def test_adafactor_as_torch(options: dict[str, Any], library: Any) -> None:
    torch = library("torch")
    names = {"lr": "learning_rate", "d": "clipping"}
    given = {names.get(name, name): value for name, value in options.items() if name != "eps"}
    if "eps" in options:
        given |= dict(zip(("epsilon1", "epsilon2"), options["eps"], strict=True))
    follow(optim.Adafactor(**given), torch_stepper(torch, lambda p: torch.optim.Adafactor(p, **options)))


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"learning_rate": 0.1, "momentum": 0.9}, {"learning_rate": 0.1, "momentum": 0.9}),
        (
            {"learning_rate": 0.1, "weight_decay": 0.2, "clipping": 0.5, "scale_parameter": False},
            {
                "learning_rate": 0.1,
                "weight_decay_rate": 0.02,
                "clipping_threshold": 0.5,
                "multiply_by_parameter_scale": False,
            },
        ),
        ({"learning_rate": 0.1, "min_factored": 4}, {"learning_rate": 0.1, "min_dim_size_to_factor": 4}),
        ({"learning_rate": 0.1, "factored": None}, {"learning_rate": 0.1, "factored": False}),
    ],
)
def test_adafactor_as_optax(options: dict[str, Any], theirs: dict[str, Any], library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    opt = optim.Adafactor(compat="optax", **{"min_factored": 0, **options})
    reference = optax.adafactor(**{"min_dim_size_to_factor": 0, "dtype_momentum": np.float64, **theirs})
    follow(opt, optax_stepper(jax, optax, reference), rtol=1e-6)  # optax computes the decay in float32


def test_adafactor_as_keras() -> None:
    def rule(t: int, p: Any, g: Any, state: dict[str, Any]) -> Any:
        square, beta2 = g * g + 1e-30, 1 - t**-0.8
        if p.ndim < 2:
            v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * square
        else:
            r = state["r"] = beta2 * state.get("r", 0) + (1 - beta2) * square.mean(-1)
            c = state["c"] = beta2 * state.get("c", 0) + (1 - beta2) * square.mean(-2)
            v = (r / r.mean(-1, keepdims=True))[..., None] * c[..., None, :]
        u = g / np.sqrt(v)
        u = u / max(1.0, np.sqrt(np.mean(u * u)))
        return p - max(1e-3, np.sqrt(np.mean(p * p))) * min(1e-3, 1 / np.sqrt(t)) * u

    follow(optim.Adafactor(compat="keras"), loop(rule))


def test_adafactor_keeps_rows_and_columns_only() -> None:
    opt = optim.Adafactor()
    opt.build({"w": np.ones((6, 4)), "kernel": np.ones((3, 3, 8, 9)), "bias": np.ones(4)})
    shapes = {path: {name: slot.shape for name, slot in own.items()} for path, own in opt.slots.items()}
    assert shapes == {
        "w": {"row": (6, 1), "column": (1, 4)},
        "kernel": {"row": (3, 3, 8, 1), "column": (3, 3, 1, 9)},
        "bias": {"v": (4,)},
    }
    with pytest.raises(ValueError, match="factored is 'both': expected 'last', 'largest' or None"):
        optim.Adafactor(factored="both").build({"w": np.ones(2)})


# --- SM3 -----------------------------------------------------------------------------------------------------------------


def test_sm3_as_optax(library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    shapes = {name: shape for name, shape in SHAPES.items() if shape}  # optax has none for numbers
    follow(optim.SM3(0.1), optax_stepper(jax, optax, optax.sm3(0.1), shapes), shapes)
    decaying = optax.chain(optax.scale_by_sm3(0.8, 0.9, 1e-3), optax.scale(-0.1))
    follow(optim.SM3(0.1, 0.8, beta2=0.9, epsilon=1e-3), optax_stepper(jax, optax, decaying, shapes), shapes)


def test_sm3_of_zero_gradients_stays() -> None:
    model = {"w": np.ones((2, 3)), "b": np.array(1.0)}
    optim.SM3().update(model, ox.tree.map(np.zeros_like, model))
    np.testing.assert_array_equal(model["w"], 1.0)
    np.testing.assert_array_equal(model["b"], 1.0)


# --- Muon ----------------------------------------------------------------------------------------------------------------

ADJUSTMENTS = ["original", "match_rms_adamw", "spectral_unclamped"]


def in_float64(torch: Any) -> Any:
    """The module torch, in which bfloat16 is float64."""
    module = types.ModuleType("torch")
    module.__dict__.update(torch.__dict__)
    module.bfloat16 = torch.float64
    return module


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("of_parts", [False, True], ids=["one rule", "parts"])
def test_muon_as_torch_in_float64(adjust: str, nesterov: bool, of_parts: bool, library: Any, monkeypatch: Any) -> None:
    torch = library("torch")
    monkeypatch.setattr("torch.optim._muon.torch", in_float64(torch))
    make = lambda p: torch.optim.Muon(p, 0.1, 0.2, 0.9, nesterov, ns_steps=4, adjust_lr_fn=adjust)  # noqa: E731
    opt = optim.Muon(0.1, 0.9, 0.2, iterations=4, adjust=adjust, nesterov=nesterov)
    if of_parts:
        momentum = optim.SGD(0.1, 0.9, nesterov=nesterov)
        opt = optim.chain(momentum, optim.Orthogonalize(iterations=4, adjust=adjust), optim.WeightDecay(0.2))
    follow(opt, torch_stepper(torch, make, MATRICES), MATRICES)


def test_muon_as_torch_in_bfloat16(library: Any) -> None:
    torch = library("torch")
    follow(optim.Muon(), torch_stepper(torch, torch.optim.Muon, MATRICES), MATRICES, rtol=1e-3)


def test_muon_without_iterations_reads_no_coefficients() -> None:
    model, gradients = {"w": np.eye(3)}, {"w": np.arange(9.0).reshape(3, 3)}
    plain, dion = (optim.Muon(iterations=0, coefficients=name).apply for name in (None, "dion"))
    state = optim.Muon().init(model)
    np.testing.assert_array_equal(plain(model, gradients, state)[0]["w"], dion(model, gradients, state)[0]["w"])


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"nesterov": False, "weight_decay": 0.1}, {"nesterov": False, "weight_decay": 0.1}),
        ({"a": 3.0, "b": -3.2, "c": 1.2, "iterations": 7}, {"ns_coeffs": (3.0, -3.2, 1.2), "ns_steps": 7}),
        ({"coefficients": "dion"}, {"ns_coeffs": "dion"}),
        (
            {"coefficients": "dion", "iterations": 5, "adjust": "match_rms_adamw"},
            {"ns_coeffs": "dion", "consistent_rms": 0.2},
        ),
    ],
)
def test_muon_as_optax(options: dict[str, Any], theirs: dict[str, Any], library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    opt = optim.Muon(0.1, compat="optax", **{"epsilon": 1e-30, **options})
    reference = optax.contrib.muon(0.1, eps=1e-30, **theirs)
    follow(opt, optax_stepper(jax, optax, reference, MATRICES), MATRICES)


def test_muon_with_a_momentum_of_one_is_as_undefined_as_in_optax(library: Any) -> None:
    jnp, optax = library("jax.numpy"), pytest.importorskip("optax")
    matrix = np.ones((2, 2), np.float32)
    opt, reference = optim.Muon(0.1, momentum=1.0, compat="optax"), optax.contrib.muon(0.1, beta=1.0)
    model = {"w": matrix}
    found = opt.apply(model, model, opt.init(model))[0]["w"]
    theirs = {"w": jnp.asarray(matrix)}
    expected = reference.update(theirs, reference.init(theirs), theirs)[0]["w"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(np.asarray(expected)))


def test_muon_as_keras() -> None:
    def rule(t: int, p: Any, g: Any, state: dict[str, Any]) -> Any:
        p = p - 4e-3 * 1e-3 * p
        m = state["m"] = 0.95 * state.get("m", 0) + g
        x = g + 0.95 * m
        x = x.T if x.shape[0] > x.shape[1] else x
        x = x / (np.linalg.norm(x) + 1e-7)
        for _ in range(5):
            x = 3.4445 * x + (-4.7750 * (x @ x.T) + 2.0315 * (x @ x.T @ x @ x.T)) @ x
        x = x.T if x.shape != p.shape else x
        return p - 1e-3 * x * 0.2 * max(p.shape) ** 0.5

    follow(optim.Muon(compat="keras"), loop(rule, MATRICES), MATRICES, rtol=1e-8)  # epsilon: added there, a bound here


def test_muon_turns_singular_values_to_one() -> None:
    g = np.random.default_rng(0).standard_normal((30, 20))
    model = optim.Muon(1.0, 0.0, 0.0, iterations=10, adjust=None).update({"w": np.zeros((30, 20))}, {"w": g})
    singular = np.linalg.svdvals(model["w"])
    assert np.all((singular > 0.6) & (singular < 1.3))
    u, _, vh = np.linalg.svd(g, full_matrices=False)
    assert np.linalg.norm(model["w"] + u @ vh) < 0.35 * np.linalg.norm(model["w"])


@pytest.mark.parametrize("shape", [(3,), (), (2, 3, 4)])
def test_muon_is_for_matrices(shape: tuple[int, ...]) -> None:
    model = {"w": np.ones((2, 2)), "head": {"b": np.ones(shape)}}
    opt = optim.Muon()
    for call in (lambda: opt.update(model, model), lambda: opt.build(model), lambda: opt.init(model)):
        with pytest.raises(ox.ShapeError, match=r"^head\.b: Muon: found shape .* expected a matrix.*partition"):
            call()
    assert opt.step == 0 and not opt.slots
    np.testing.assert_array_equal(model["w"], 1.0)
    mixed = optim.partition({lambda path, array: array.ndim == 2: optim.Muon(), "*": optim.AdamW()})
    mixed.update(model, ox.tree.map(np.ones_like, model))
    assert set(mixed.slots["w"]) == {"m"} and set(mixed.slots["head.b"]) == {"m", "v"}
    with pytest.raises(ValueError, match="adjust is 'up': expected 'original'"):
        optim.Muon(adjust="up").update({"w": np.ones((2, 2))}, {"w": np.ones((2, 2))})


# --- Shampoo -------------------------------------------------------------------------------------------------------------


def inverse_root(matrix: Any, exponent: float) -> Any:
    """By singular values: those of a matrix that is symmetric and positive are its eigenvalues."""
    u, s, vh = np.linalg.svd(matrix)
    return u * s**-exponent @ vh


def shampoo_loop(
    *,
    rate: float = 0.1,
    epsilon: float = 1e-4,
    interval: int = 1,
    momentum: float = 0.0,
    beta: float = 1.0,
    grafting: str | None = None,
    longest: int = 1200,
) -> Callable[..., Any]:
    """Algorithms 1 and 2 of the paper, with einsum for the contractions."""
    share = 1.0 if beta == 1.0 else 1 - beta

    def rule(t: int, p: Any, g: Any, state: dict[str, Any]) -> Any:
        g = np.atleast_1d(g)
        order = g.ndim
        update = state["m"] = momentum * state.get("m", 0) + g
        for axis, n in enumerate(g.shape):
            rest = [a for a in range(order) if a != axis]
            covariance = np.tensordot(g, g, axes=(rest, rest))
            if n > longest:
                covariance = np.diag(np.diag(covariance))
            key = f"sum{axis}"
            state[key] = beta * state.get(key, 0) + share * covariance
            if (t - 1) % interval == 0:
                state[f"root{axis}"] = inverse_root(epsilon * np.eye(n) + state[key], 1 / (2 * order))
            update = np.moveaxis(np.tensordot(state[f"root{axis}"], update, axes=(1, axis)), 0, axis)
        if grafting:
            state["v"] = beta * state.get("v", 0) + share * g * g
            other = state["m"] / (np.sqrt(state["v"]) + 1e-10) if grafting == "adagrad" else state["m"]
            update *= np.linalg.norm(other) / np.linalg.norm(update)
        return p - rate * update.reshape(p.shape)

    return rule


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"interval": 4, "momentum": 0.9}, {"interval": 4, "momentum": 0.9}),
        ({"learning_rate": 0.01, "beta2": 0.9, "epsilon": 1e-2}, {"rate": 0.01, "beta": 0.9, "epsilon": 1e-2}),
        ({"max_size": 4}, {"longest": 4}),
        ({"grafting": "sgd", "momentum": 0.5}, {"grafting": "sgd", "momentum": 0.5}),
        ({"grafting": "adagrad", "beta2": 0.99}, {"grafting": "adagrad", "beta": 0.99}),
    ],
)
def test_shampoo_as_in_the_paper(options: dict[str, Any], theirs: dict[str, Any]) -> None:
    follow(optim.Shampoo(**options), loop(shampoo_loop(**theirs)), rtol=1e-9)


def test_shampoo_s_slots_are_the_sums_of_the_paper() -> None:
    model, gradients = draws({"w": (6, 4)})
    opt = optim.Shampoo(weight_decay=0.5, learning_rate=0.0)
    for grads in gradients:
        opt.update(model, grads)
    statistics = np.asarray(opt.slots["w"]["statistics"])
    left, right = statistics[:36].reshape(6, 6), statistics[36:].reshape(4, 4)
    np.testing.assert_allclose(left, sum(g["w"] @ g["w"].T for g in gradients))
    np.testing.assert_allclose(right, sum(g["w"].T @ g["w"] for g in gradients))
    with pytest.raises(ValueError, match="grafting is 'adam': expected 'sgd', 'adagrad' or None"):
        optim.Shampoo(grafting="adam").update(model, gradients[0])


# --- SOAP ----------------------------------------------------------------------------------------------------------------


def soap_loop(
    *,
    rate: float = 3e-3,
    beta: float = 0.95,
    epsilon: float = 1e-8,
    decay: float = 0.01,
    interval: int = 10,
    longest: int = 10000,
    vectors: bool = False,
) -> Callable[..., Any]:
    """Algorithm 3 of the paper, with the first step of the authors' code, for any number of axes."""

    def rotate(x: Any, bases: dict[int, Any], back: bool = False) -> Any:
        for axis, basis in bases.items():
            x = np.moveaxis(np.tensordot(basis if back else basis.T, x, axes=(1, axis)), 0, axis)
        return x

    def rule(t: int, p: Any, g: Any, state: dict[str, Any]) -> Any:
        axes = [a for a, n in enumerate(p.shape) if n <= longest and (p.ndim > 1 or vectors)]
        covariances = {}
        for axis in axes:
            rest = [a for a in range(p.ndim) if a != axis]
            covariances[axis] = np.tensordot(g, g, axes=(rest, rest))
        if t == 1:
            state["kept"] = {axis: (1 - beta) * c for axis, c in covariances.items()}
            state["bases"] = {axis: np.linalg.eigh(c)[1][:, ::-1] for axis, c in state["kept"].items()}
            state["m"] = state["v"] = np.zeros_like(p)
            return p
        t -= 1
        rotated = rotate(g, state["bases"])
        state["m"] = beta * state["m"] + (1 - beta) * g
        state["v"] = beta * state["v"] + (1 - beta) * rotated**2
        m, v = rotate(state["m"], state["bases"]) / (1 - beta**t), state["v"] / (1 - beta**t)
        update = rotate(m / (np.sqrt(v) + epsilon), state["bases"], back=True)
        for axis, c in covariances.items():
            state["kept"][axis] = beta * state["kept"][axis] + (1 - beta) * c
            if t % interval == 0:
                state["bases"][axis] = np.linalg.qr(state["kept"][axis] @ state["bases"][axis])[0]
        return (1 - rate * decay) * p - rate * update

    return rule


# Of a statistic that begins with less than full rank, eigenvectors are not determined: here each has full rank from the start.
REGULAR = {"square": (4, 4), "cube": (3, 4, 5), "vector": (7,), "number": ()}


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"interval": 1, "learning_rate": 0.1}, {"interval": 1, "rate": 0.1}),
        ({"interval": 3, "max_size": 4, "weight_decay": 0.5}, {"interval": 3, "longest": 4, "decay": 0.5}),
        ({"beta1": 0.9, "beta2": 0.9, "epsilon": 1e-3}, {"beta": 0.9, "epsilon": 1e-3}),
    ],
)
def test_soap_as_in_the_paper(options: dict[str, Any], theirs: dict[str, Any]) -> None:
    follow(optim.SOAP(**options), loop(soap_loop(**theirs), REGULAR), REGULAR, rtol=1e-9)


def test_soap_of_vectors_and_numbers_is_adam_one_step_late() -> None:
    shapes = {"vector": (7,), "number": ()}
    model, gradients = draws(shapes)
    expected = ox.tree.map(np.copy, model)
    soap, adam = optim.SOAP(0.1, weight_decay=0.1), optim.AdamW(0.1, 0.95, 0.95, weight_decay=0.1)
    soap.update(model, gradients[0])
    for grads in gradients[1:]:
        soap.update(model, grads)
        adam.update(expected, grads)
    for name, value in expected.items():
        np.testing.assert_allclose(model[name], value, rtol=1e-12)


def test_soap_s_bases_are_orthonormal_and_diagonalize() -> None:
    generator = np.random.default_rng(3)
    mix, scales = generator.standard_normal((5, 5)), np.array([9.0, 5.0, 3.0, 1.0, 0.2])
    opt, model = optim.SOAP(interval=1, beta2=0.99), {"w": np.zeros((5, 40))}
    for _ in range(300):
        opt.update(model, {"w": mix @ (scales[:, None] * generator.standard_normal((5, 40)))})
    basis = np.asarray(opt.slots["w"]["bases"])[:25].reshape(5, 5)
    statistic = np.asarray(opt.slots["w"]["statistics"])[:25].reshape(5, 5)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)
    diagonal = basis.T @ statistic @ basis
    np.testing.assert_allclose(np.diag(diagonal), np.linalg.eigvalsh(statistic)[::-1], rtol=0.01)


# --- parts of chains -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [SHAPES, {"kernel": (3, 3, 4, 5), "row": (1, 6), "video": (2, 2, 2, 3, 4)}])
def test_adaptive_clipping_as_optax(shapes: Any, library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    reference = optax.chain(optax.adaptive_grad_clip(0.5, 1e-2), optax.adam(0.1))
    opt = optim.chain(optim.AdaptiveGradientClip(0.5, 1e-2), optim.Adam(0.1))
    follow(opt, optax_stepper(jax, optax, reference, shapes), shapes)


def test_adaptive_clipping_by_units_that_come_first() -> None:
    model, grads = {"w": np.array([[3.0, 4.0], [0.0, 0.0]])}, {"w": np.array([[0.3, 0.4], [6.0, 8.0]])}
    optim.chain(optim.AdaptiveGradientClip(0.05, 1.0, "first"), optim.SGD(1.0)).update(model, grads)
    np.testing.assert_allclose(model["w"], [[3.0 - 0.15, 4.0 - 0.2], [-0.03, -0.04]])
    with pytest.raises(ValueError, match="units is 'middle': expected 'last' or 'first'"):
        optim.chain(optim.AdaptiveGradientClip(units="middle"), optim.SGD()).update(model, grads)


def test_centralisation_as_optax(library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    reference = optax.chain(optax.centralize(), optax.adam(0.1))
    follow(optim.chain(optim.Centralize(), optim.Adam(0.1)), optax_stepper(jax, optax, reference))


def test_centralisation_of_the_last_axis() -> None:
    g = np.random.default_rng(0).standard_normal((3, 4, 5))
    model = optim.chain(optim.Centralize("last"), optim.SGD(1.0)).update({"w": np.zeros(g.shape)}, {"w": g})
    np.testing.assert_allclose(model["w"], g.mean((0, 1)) - g)
    with pytest.raises(ValueError, match="kept is 'none': expected 'first' or 'last'"):
        optim.chain(optim.Centralize("none"), optim.SGD()).update(model, {"w": g})


# --- GaLore: tests/peers/test_authors.py has its numbers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("projection", "tall", "wide"),
    [
        ("std", {"m": (6, 2), "right": (2, 4)}, {"m": (2, 5), "left": (3, 2)}),
        ("reverse_std", {"m": (2, 4), "left": (6, 2)}, {"m": (3, 2), "right": (2, 5)}),
        ("left", {"m": (2, 4), "left": (6, 2)}, {"m": (2, 5), "left": (3, 2)}),
        ("right", {"m": (6, 2), "right": (2, 4)}, {"m": (3, 2), "right": (2, 5)}),
        ("full", {"m": (2, 2), "left": (6, 2), "right": (2, 4)}, {"m": (2, 2), "left": (3, 2), "right": (2, 5)}),
    ],
)
def test_galore_keeps_projected_moments_only(projection: str, tall: Any, wide: Any) -> None:
    opt, (model, gradients) = optim.GaLore(rank=2, projection=projection), draws(SHAPES)
    opt.update(model, gradients[0])
    shapes = {path: {name: slot.shape for name, slot in own.items()} for path, own in opt.slots.items()}
    assert shapes["tall"] == {**tall, "v": tall["m"]} and shapes["wide"] == {**wide, "v": wide["m"]}
    assert shapes["cube"] == {"m": (3, 4, 5), "v": (3, 4, 5)}
    for own in opt.slots.values():
        for basis in (own.get("left"), np.transpose(own.get("right", np.eye(1)))):
            if basis is not None:
                np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-14)
                assert np.all(basis.max(axis=0) >= -basis.min(axis=0))


def test_galore_updates_other_shapes_than_matrices_as_adam_and_matrices_in_the_space_of_the_bases() -> None:
    model, gradients = draws({"cube": (3, 4, 5), "vector": (7,), "number": ()})
    expected, adam = ox.tree.map(np.copy, model), optim.Adam(0.1, epsilon=1e-30)
    opt = optim.GaLore(0.1, epsilon=1e-30, update_scale=0.25)
    for grads in gradients:
        opt.update(model, grads)
        adam.update(expected, grads)
    for name, value in expected.items():
        np.testing.assert_allclose(model[name], value, rtol=1e-12)
    w, g = np.ones((4, 4)), np.diag([4.0, 3.0, 2.0, 1.0])  # whose singular vectors are the axes
    optim.GaLore(0.1, epsilon=1e-12, rank=2).update({"w": w}, {"w": g})
    np.testing.assert_allclose(w, 1 - 0.1 * np.diag([1.0, 1.0, 0.0, 0.0]), rtol=1e-9)


# --- common properties ---------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Any] = {
    **WHOLE,
    "muon": lambda: optim.partition({lambda path, array: array.ndim == 2: optim.Muon(0.1), "*": optim.Adam(0.1)}),
    "centralize and clip": lambda: optim.chain(optim.Centralize(), optim.AdaptiveGradientClip(0.3), optim.Adam(0.1)),
}


def run(name: str, model: Any, gradients: Any) -> tuple[Any, Any]:
    opt = OPTIMIZERS[name]()
    for grads in gradients:
        model = opt.update(model, grads)
    return model, opt


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_array_library_gives_the_same_numbers(name: str, asarray: Any) -> None:
    model, gradients = draws(REGULAR)
    expected, reference = run(name, ox.tree.map(np.copy, model), gradients[:7])
    given = {key: asarray(value) for key, value in model.items()}
    found, opt = run(name, dict(given), [ox.tree.map(asarray, grads) for grads in gradients[:7]])
    for key, value in expected.items():
        assert type(found[key]) is type(given[key])
        np.testing.assert_allclose(host(found[key]), value, rtol=1e-9, atol=1e-12)
        for slot, array in reference.slots[key].items():
            if slot != "bases":  # the sign of an eigenvector is not determined
                np.testing.assert_allclose(host(opt.slots[key][slot]), array, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_as_a_pure_function_under_jit(name: str, library: Any) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)
    model, gradients = draws(REGULAR)
    expected, _ = run(name, ox.tree.map(np.copy, model), gradients[:5])
    opt = OPTIMIZERS[name]()
    params, step = jax.tree.map(jax.numpy.asarray, model), jax.jit(opt.apply)
    state = opt.init(params)
    for grads in gradients[:5]:
        params, state = step(params, jax.tree.map(jax.numpy.asarray, grads), state)
    for key, value in expected.items():
        np.testing.assert_allclose(np.asarray(params[key]), value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_float32_stays_float32(name: str) -> None:
    model, gradients = draws(REGULAR)
    rounded = [ox.tree.map(np.float32, tree) for tree in (model, *gradients[:2])]
    rounded_up = [ox.tree.map(lambda leaf: np.array(leaf, np.float64), tree) for tree in rounded]
    double, _ = run(name, rounded_up[0], rounded_up[1:])
    found, opt = run(name, rounded[0], rounded[1:])
    for key, value in double.items():
        assert found[key].dtype == np.float32
        assert all(slot.dtype == np.float32 for slot in opt.slots[key].values())
        np.testing.assert_allclose(found[key], value, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_empty_parameters_stay_and_others_do_not_mind(name: str) -> None:
    model = {"a": np.zeros(0), "b": np.zeros((2, 0, 3)), "c": np.zeros((0, 4)), "w": np.ones((3, 3))}
    opt = OPTIMIZERS[name]()
    for _ in range(3):
        opt.update(model, ox.tree.map(np.ones_like, model))
    assert model["b"].shape == (2, 0, 3) and np.all(np.isfinite(model["w"]))


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "muon"])
def test_configuration_round_trips(name: str) -> None:
    opt = OPTIMIZERS[name]()
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_learns(name: str) -> None:
    generator = np.random.default_rng(1)
    x, w = generator.standard_normal((50, 4)), generator.standard_normal((4, 3))
    model, opt = {"w": np.zeros((4, 3)), "b": np.zeros(3)}, OPTIMIZERS[name]()
    loss = lambda model: ox.xp.mean((x @ model["w"] + model["b"] - x @ w - 1.0) ** 2)  # noqa: E731
    first = opt.minimize(loss, model)
    for _ in range(150):
        last = opt.minimize(loss, model)
    assert last < 0.5 * first


def test_a_failing_gradient_changes_nothing() -> None:
    opt, model = optim.Shampoo(), {"a": np.ones((2, 2)), "b": np.ones((2, 3))}
    opt.update(model, ox.tree.map(np.ones_like, model))
    before, slots = ox.tree.map(np.copy, model), ox.tree.map(np.copy, {p: dict(opt.slots[p]) for p in opt.slots})
    with pytest.raises(ox.ShapeError, match="b: gradient has shape"):
        opt.update(model, {"a": np.ones((2, 2)), "b": np.ones((3, 2))})
    for path, array in ox.tree.parameters(before).items():
        np.testing.assert_array_equal(path(model), array)
    for path, own in slots.items():
        for name, slot in own.items():
            np.testing.assert_array_equal(opt.slots[path][name], slot)
    assert opt.step == 1


@pytest.mark.on_device
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_leave_the_device_alone(name: str, arrays: Any) -> None:
    if arrays.name == "torch-cuda" and name in ("shampoo", "soap", "galore", "galore-full"):
        pytest.skip("PyTorch's decompositions of matrices ask the device whether they went well")
    model, gradients = draws(REGULAR)
    expected, _ = run(name, ox.tree.map(np.copy, model), gradients[:5])
    found, given = ox.tree.map(arrays.asarray, model), [ox.tree.map(arrays.asarray, grads) for grads in gradients[:5]]
    opt = OPTIMIZERS[name]()
    opt.build(found)
    with arrays.alone():
        for grads in given:
            found = opt.update(found, grads)
    for key, value in expected.items():
        np.testing.assert_allclose(host(found[key]), value, rtol=1e-9, atol=1e-12)
