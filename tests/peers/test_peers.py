"""Optimizers against those of other libraries, over random steps in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from optimizers import IN_TORCH, like_torch
from oxigrad import optim
from oxigrad.optim import chain

STEPS = 30
SHAPES = {"w": (4, 5), "b": (7,), "s": ()}


def start_and_gradients(seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A model, and the gradients of all steps; some gradients are zero."""
    generator = np.random.default_rng(seed)
    draw = lambda: {name: np.array(generator.standard_normal(shape)) for name, shape in SHAPES.items()}  # noqa: E731
    start, grads = draw(), [draw() for _ in range(STEPS)]
    for g in grads[3::7]:
        g["w"][1] = 0.0
    return start, grads


# --- torch ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_double(library: Callable[[str], Any]) -> Iterator[Any]:
    """PyTorch, with the numbers that it keeps beside arrays (NAdam's product, ASGD's rate) in double precision."""
    torch = library("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(before)


@pytest.mark.parametrize("name", IN_TORCH)
def test_all_configurations_of_torch(name: str, in_double: Any, library: Callable[[str], Any]) -> None:
    torch = in_double
    library("expecttest")  # what torch's own tests need to be imported
    from torch.testing._internal.common_optimizers import optim_db

    (info,) = [info for info in optim_db if info.optim_cls.__name__ == name]
    configurations = [given.kwargs for given in info.optim_inputs_func("cpu")]
    assert len(configurations) >= 5
    for given in configurations:
        model, grads = start_and_gradients()
        theirs = {key: torch.tensor(value, requires_grad=True) for key, value in model.items()}
        peer, ours = info.optim_cls(list(theirs.values()), **given), like_torch(name, given)
        for g in grads:
            model = ours.update(model, g)
            for key, value in g.items():
                theirs[key].grad = torch.tensor(value)
            peer.step()
            for key, value in model.items():
                expected = theirs[key].detach().numpy()
                np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-13, err_msg=f"{given}")


@pytest.mark.parametrize(
    ("make", "reference"),
    [
        (
            lambda: optim.ASGD(0.1, lambd=0.1, t0=5, alpha=0.6, weight_decay=0.1, compat="torch"),
            lambda torch, p: torch.optim.ASGD(p, 0.1, lambd=0.1, t0=5, alpha=0.6, weight_decay=0.1),
        ),
        (
            lambda: optim.SGD(0.1, 0.8, dampening=0.3, weight_decay=0.1, compat="torch"),
            lambda torch, p: torch.optim.SGD(p, 0.1, 0.8, 0.3, weight_decay=0.1),
        ),
        (
            lambda: optim.RMSprop(0.1, compat="torch", momentum=0.9, centered=True),
            lambda torch, p: torch.optim.RMSprop(p, 0.1, momentum=0.9, centered=True),
        ),
        (lambda: optim.NAdam(0.1, compat="torch"), lambda torch, p: torch.optim.NAdam(p, 0.1)),
        (lambda: optim.RAdam(0.1, beta2=0.9), lambda torch, p: torch.optim.RAdam(p, 0.1, (0.9, 0.9))),
    ],
    ids=["asgd", "momentum", "rmsprop", "nadam", "radam"],
)
def test_a_learning_rate_that_changes_as_in_torch(make: Any, reference: Any, in_double: Any) -> None:
    torch = in_double
    model, grads = start_and_gradients()
    theirs = {key: torch.tensor(value, requires_grad=True) for key, value in model.items()}
    ours, peer = make(), reference(torch, list(theirs.values()))
    for number, g in enumerate(grads):
        ours.learning_rate = peer.param_groups[0]["lr"] = 0.1 / (1 + number)
        ours.update(model, g)
        for key, value in g.items():
            theirs[key].grad = torch.tensor(value)
        peer.step()
    for key, value in model.items():
        np.testing.assert_allclose(value, theirs[key].detach().numpy(), rtol=1e-10)
        if "average" in ours.slots[key]:
            np.testing.assert_allclose(ours.slots[key]["average"], peer.state[theirs[key]]["ax"].numpy(), rtol=1e-10)


# --- optax ---------------------------------------------------------------------------------------------------------------


def squared(optax: Any) -> Any:
    """The square of the gradient, where optax's Sophia asks for the diagonal of the Hessian."""
    return optax.GradientTransformation(
        lambda params: optax.EmptyState(), lambda g, state, params=None: ({k: v * v for k, v in g.items()}, state)
    )


# Our optimizer, optax's, and how close they are.
IN_OPTAX: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "sgd": (lambda: optim.SGD(0.1), lambda optax: optax.sgd(0.1)),
    "sgd momentum": (lambda: optim.SGD(0.1, 0.8), lambda optax: optax.sgd(0.1, 0.8)),
    "sgd nesterov": (lambda: optim.SGD(0.1, 0.9, nesterov=True), lambda optax: optax.sgd(0.1, 0.9, nesterov=True)),
    "sign_sgd": (lambda: optim.Signum(0.1, beta=0.0), lambda optax: optax.sign_sgd(0.1)),
    "signum": (lambda: optim.Signum(0.1), lambda optax: optax.signum(0.1)),
    "optimistic sgd": (
        lambda: optim.OptimisticSGD(0.1, alpha=0.7, beta=0.4),
        lambda optax: optax.optimistic_gradient_descent(0.1, 0.7, 0.4),
    ),
    "rprop": (lambda: optim.Rprop(0.1, compat="optax"), lambda optax: optax.rprop(0.1)),
    "rprop below its bounds": (
        lambda: optim.Rprop(1e-3, min_size=0.05, max_size=0.2, compat="optax"),
        lambda optax: optax.rprop(1e-3, min_step_size=0.05, max_step_size=0.2),
    ),
    "rprop above its bounds": (
        lambda: optim.Rprop(1.0, min_size=0.05, max_size=0.2, compat="optax"),
        lambda optax: optax.rprop(1.0, min_step_size=0.05, max_step_size=0.2),
    ),
    "lion": (lambda: optim.Lion(0.1, compat="optax"), lambda optax: optax.lion(0.1)),
    "lars": (
        lambda: optim.LARS(0.1, weight_decay=0.1, trust_coefficient=0.1, epsilon=1e-3),
        lambda optax: optax.lars(0.1, 0.1, trust_coefficient=0.1, eps=1e-3),
    ),
    "lars nesterov": (lambda: optim.LARS(0.1, nesterov=True), lambda optax: optax.lars(0.1, nesterov=True)),
    "fromage": (lambda: optim.Fromage(0.1), lambda optax: optax.fromage(0.1)),
    "adagrad": (lambda: optim.Adagrad(0.1, compat="optax"), lambda optax: optax.adagrad(0.1)),
    "adadelta": (
        lambda: chain(optim.Regularize(l2=0.1), optim.Adadelta(0.1, 0.8, 1e-5)),
        lambda optax: optax.adadelta(0.1, 0.8, 1e-5, weight_decay=0.1),
    ),
    "rmsprop": (lambda: optim.RMSprop(0.1, compat="optax"), lambda optax: optax.rmsprop(0.1)),
    "rmsprop centered": (
        lambda: optim.RMSprop(0.1, compat="optax", centered=True, momentum=0.9, nesterov=True),
        lambda optax: optax.rmsprop(0.1, centered=True, momentum=0.9, nesterov=True),
    ),
    "rmsprop corrected": (
        lambda: optim.RMSprop(0.1, 0.9, bias_correction=True, initial_accumulator=0.3),
        lambda optax: optax.rmsprop(0.1, eps_in_sqrt=False, bias_correction=True, initial_scale=0.3),
    ),
    "rmsprop centered, corrected": (
        lambda: optim.RMSprop(0.1, 0.9, 1e-3, compat="optax", centered=True, bias_correction=True),
        lambda optax: optax.rmsprop(0.1, eps=1e-3, centered=True, bias_correction=True),
    ),
    "adam": (lambda: optim.Adam(0.1, 0.8, 0.99, 1e-6), lambda optax: optax.adam(0.1, 0.8, 0.99, 1e-6)),
    "adam inside": (
        lambda: optim.Adam(0.1, epsilon=0.01, epsilon_mode="inside"),
        lambda optax: optax.adam(0.1, eps=0.0, eps_root=0.01),
    ),
    "adamw": (lambda: optim.AdamW(0.1, compat="optax"), lambda optax: optax.adamw(0.1)),
    "amsgrad": (lambda: optim.Adam(0.1, amsgrad="corrected"), lambda optax: optax.amsgrad(0.1)),
    "adamax": (lambda: optim.Adamax(0.1), lambda optax: optax.adamax(0.1)),
    "adamaxw": (
        lambda: chain(optim.Adamax(0.1), optim.WeightDecay(0.2)),
        lambda optax: optax.adamaxw(0.1, weight_decay=0.2),
    ),
    "nadam": (lambda: optim.NAdam(0.1, compat="optax"), lambda optax: optax.nadam(0.1)),
    "nadamw": (
        lambda: chain(optim.NAdam(0.1, compat="optax"), optim.WeightDecay(0.2)),
        lambda optax: optax.nadamw(0.1, weight_decay=0.2),
    ),
    "radam": (lambda: optim.RAdam(0.1, beta2=0.9, compat="optax"), lambda optax: optax.radam(0.1, b2=0.9)),
    "adabelief": (lambda: optim.AdaBelief(0.1, epsilon_root=1e-6), lambda optax: optax.adabelief(0.1, eps_root=1e-6)),
    "optimistic adam": (
        lambda: optim.OptimisticAdam(0.1, 0.8, 0.99, 1e-6, alpha=0.7, beta=0.4),
        lambda optax: optax.optimistic_adam_v2(0.1, alpha=0.7, beta=0.4, b1=0.8, b2=0.99, eps=1e-6),
    ),
    "optimistic adam without nesterov": (
        lambda: optim.OptimisticAdam(0.1, nesterov=False, epsilon_root=1e-3),
        lambda optax: optax.optimistic_adam_v2(0.1, eps_root=1e-3, nesterov=False),
    ),
    "ademamix": (
        lambda: optim.AdEMAMix(0.1, beta3=lambda step: 0.9 + 0.001 * step, weight_decay=0.1),
        lambda optax: optax.contrib.ademamix(0.1, b3=lambda step: 0.9 + 0.001 * step, weight_decay=0.1),
    ),
    "simplified ademamix": (
        lambda: optim.SimplifiedAdEMAMix(0.1, alpha=2.0, weight_decay=0.1),
        lambda optax: optax.contrib.simplified_ademamix(0.1, alpha=2.0, weight_decay=0.1),
    ),
    "adopt": (lambda: optim.ADOPT(0.1), lambda optax: optax.contrib.adopt(0.1)),
    "adopt unclipped": (
        lambda: optim.ADOPT(0.1, clipped=False),
        lambda optax: optax.contrib.adopt(0.1, use_clipping=False),
    ),
    "adan": (
        lambda: optim.Adan(0.1, weight_decay=0.1, compat="optax"),
        lambda optax: optax.adan(0.1, weight_decay=0.1),
    ),
    "yogi": (lambda: optim.Yogi(0.1, compat="optax"), lambda optax: optax.yogi(0.1)),
    "lamb": (lambda: optim.LAMB(0.1, weight_decay=0.1), lambda optax: optax.lamb(0.1, weight_decay=0.1)),
    "novograd": (lambda: optim.NovoGrad(0.1, weight_decay=0.1), lambda optax: optax.novograd(0.1, weight_decay=0.1)),
    "sophia": (
        lambda: optim.Sophia(0.1, compat="optax", every=3),
        lambda optax: optax.contrib.sophia(0.1, update_interval=3, hessian_diagonal_fn=squared(optax)),
    ),
    "madgrad": (
        lambda: chain(optim.Regularize(l2=0.1), optim.MADGRAD(0.1)),
        lambda optax: optax.contrib.madgrad(0.1, weight_decay=0.1),
    ),
    "prodigy": (
        lambda: optim.Prodigy(weight_decay=0.1, d0=0.01),
        lambda optax: optax.contrib.prodigy(weight_decay=0.1, estim_lr0=0.01),
    ),
    "prodigy warm-up": (
        lambda: optim.Prodigy(beta3=0.9, d_coefficient=2.0, safeguard_warmup=True),
        lambda optax: optax.contrib.prodigy(beta3=0.9, estim_lr_coef=2.0, safeguard_warmup=True),
    ),
    "schedule-free sgd": (
        lambda: optim.ScheduleFreeSGD(0.1, weight_decay=0.1),
        lambda optax: optax.contrib.schedule_free_sgd(0.1, weight_decay=0.1),
    ),
    "schedule-free adamw": (
        lambda: optim.ScheduleFreeAdamW(0.1, beta1=0.8, weight_decay=0.1),
        lambda optax: optax.contrib.schedule_free_adamw(0.1, b1=0.8, weight_decay=0.1),
    ),
    "schedule-free around sgd": (
        lambda: chain(optim.SGD(0.1), optim.ScheduleFree(interpolation=0.8)),
        lambda optax: optax.contrib.schedule_free(optax.sgd(0.1), 0.1, b1=0.8),
    ),
    "schedule-free around adamw": (
        lambda: chain(optim.AdamW(0.1, beta1=0.0, compat="optax"), optim.ScheduleFree(weight_power=1.0)),
        lambda optax: optax.contrib.schedule_free(optax.adamw(0.1, b1=0.0), 0.1, weight_lr_power=1.0),
    ),
    "schedule-free around clipped lion": (
        lambda: chain(optim.ClipByGlobalNorm(1.0), optim.Lion(0.1, beta1=0.0), optim.ScheduleFree()),
        lambda optax: optax.contrib.schedule_free(
            optax.chain(optax.clip_by_global_norm(1.0), optax.lion(0.1, b1=0.0, weight_decay=0.0)), 0.1, b1=0.9
        ),
    ),
    "scheduled": (
        lambda: optim.AdamW(lambda step: 0.1 / (1.0 + step), compat="optax"),
        lambda optax: optax.adamw(lambda step: 0.1 / (1.0 + step)),
    ),
}


@pytest.mark.parametrize("name", IN_OPTAX)
def test_as_in_optax(name: str, library: Callable[[str], Any]) -> None:
    jax, optax = library("jax"), library("optax")
    jax.config.update("jax_enable_x64", True)
    make, reference = IN_OPTAX[name]
    ours, peer = make(), reference(optax)
    model, grads = start_and_gradients(1)
    theirs = jax.tree.map(jax.numpy.asarray, model)
    state, update = peer.init(theirs), jax.jit(peer.update)
    # optax computes the root of MADGRAD's step in single precision; tests/rules/test_rules.py has a loop in double.
    atol = 1e-7 if name == "madgrad" else 1e-13
    for g in grads:
        model = ours.update(model, g)
        updates, state = update(jax.tree.map(jax.numpy.asarray, g), state, theirs)
        theirs = optax.apply_updates(theirs, updates)
        for key, value in model.items():
            np.testing.assert_allclose(value, np.asarray(theirs[key]), rtol=1e-9, atol=atol)
    if name.startswith("schedule-free"):
        expected = optax.contrib.schedule_free_eval_params(state, theirs)
        for key, found in ours.averaged_parameters(model).items():
            np.testing.assert_allclose(found, np.asarray(expected[key]), rtol=1e-9)
