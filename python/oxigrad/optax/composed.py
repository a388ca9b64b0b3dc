"""Functions under optax's names that need more than the hyperparameters of a rule: parts by shape, or a random key."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad import optim, xp
from oxigrad._core import is_inexact
from oxigrad.ops.backends import is_complex
from oxigrad.optax.aliases import ALIASES, function, meaning, number, optimizer_of, parts_of, with_known_names
from oxigrad.optax.library import jax
from oxigrad.optax.pytrees import State
from oxigrad.optax.transformation import Steps, Transformation, made_of, transformation
from oxigrad.rules import gradient_transforms
from oxigrad.step.arrays.precision import half


def _with_suggestions(*parts: Any) -> Callable[[Callable[..., Transformation]], Any]:
    """A decorator for a function of these parts, whose errors for unknown arguments suggest optax's."""
    return lambda function: with_known_names(
        function, function.__name__, inspect.signature(function), functools.partial(meaning, parts=parts)
    )


@_with_suggestions(optim.Muon, optim.AdamW)
def muon(
    learning_rate: Any,
    ns_coeffs: tuple[float, float, float] | str = (3.4445, -4.7750, 2.0315),
    ns_steps: int = 5,
    beta: Any = 0.95,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    *,
    nesterov: bool = True,
    adam_b1: Any = 0.9,
    adam_b2: Any = 0.999,
    adam_weight_decay: Any = 0.0,
    adam_learning_rate: Any = None,
) -> Transformation:
    """Muon for matrices, and AdamW for all else, with Nesterov's momentum where ``nesterov`` says so.

    Args:
        learning_rate: step size of the matrices, a number or a schedule.
        ns_coeffs: three coefficients of an iteration, or "dion".
        ns_steps: number of Newton-Schulz iterations.
        beta: decay of the moving mean of gradients of matrices.
        eps: lower bound of the norm, and epsilon of AdamW.
        weight_decay: strength of the decay of matrices.
        nesterov: whether updates look one momentum step ahead.
        adam_b1: decay of AdamW's moving mean of gradients.
        adam_b2: decay of AdamW's moving mean of squared gradients.
        adam_weight_decay: strength of AdamW's decay of the other parameters.
        adam_learning_rate: step size of the other parameters; None is ``learning_rate``.

    The arguments are as in ``optax.contrib.muon``; the rules are `oxigrad.optim.Muon`, `oxigrad.optim.AdamW` and
    `oxigrad.optim.NAdam`. ``ns_coeffs`` are three numbers or "dion".
    """
    coefficients = (
        {"coefficients": ns_coeffs} if isinstance(ns_coeffs, str) else dict(zip("abc", ns_coeffs, strict=True))
    )
    values = {"learning_rate": learning_rate, "momentum": beta, "epsilon": eps, "weight_decay": weight_decay}
    matrices = optimizer_of(
        (optim.Muon,),
        {name: number(name, value) for name, value in values.items()}
        | {"iterations": ns_steps, "nesterov": nesterov, **coefficients},
    )
    rate = learning_rate if adam_learning_rate is None else adam_learning_rate
    values = {
        "learning_rate": rate,
        "beta1": adam_b1,
        "beta2": adam_b2,
        "epsilon": eps,
        "weight_decay": adam_weight_decay,
    }
    others = optimizer_of(
        parts_of(ALIASES["adamw"].nesterov) if nesterov else (optim.AdamW,),
        {name: number(name, value) for name, value in values.items()},
    )
    return transformation(optim.partition({(lambda path, array: len(array.shape) == 2): matrices, "*": others}))


@_with_suggestions(optim.OptimisticAdam)
def optimistic_adam(
    learning_rate: Any,
    optimism: Any = None,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
) -> Transformation:
    """Optimistic Adam, whose ``optimism``, the learning rate by default, weighs the change of Adam's direction.

    Args:
        learning_rate: step size, a number or a schedule.
        optimism: weight of the change of direction; None is the learning rate.
        b1: decay of the moving mean of gradients.
        b2: decay of the moving mean of squared gradients.
        eps: small number added to the root of the second moment.
        eps_root: small number added to the second moment inside the root.
        mu_dtype: dtype in which the first moment is stored; None keeps the parameter's.
        nesterov: whether the update looks one momentum step ahead.

    The arguments are as in ``optax.optimistic_adam``, which optax deprecates; the rule is
    `oxigrad.optim.OptimisticAdam`.
    """
    optimism = learning_rate if optimism is None else optimism
    values = {"alpha": learning_rate, "beta": optimism, "b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root}
    return function("optimistic_adam_v2")(1.0, **values, mu_dtype=mu_dtype, nesterov=nesterov)


# --- noise ------------------------------------------------------------------------------------------------------------


@_with_suggestions(optim.GradientNoise, optim.SGD)
def noisy_sgd(learning_rate: Any, eta: Any = 0.01, gamma: Any = 0.55, key: Any = 0) -> Transformation:
    """SGD with normal noise of variance ``eta / step**gamma`` added to gradients.

    Args:
        learning_rate: step size, a number or a schedule.
        eta: variance of the noise in the first step.
        gamma: exponent by which the variance falls with the step.
        key: whole number or key of JAX from which the noise is drawn.

    The arguments are as in ``optax.noisy_sgd``; the rules are `oxigrad.optim.GradientNoise` and
    `oxigrad.optim.SGD`. JAX draws the numbers, from ``key``, a whole number or a key of JAX, and the count of steps.
    """
    noise = {"eta": number("eta", eta), "gamma": number("gamma", gamma)}
    optim.GradientNoise(**noise)  # checks them
    opt = optimizer_of((optim.SGD,), {"learning_rate": number("learning_rate", learning_rate)})
    is_key = hasattr(key, "dtype") and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
    is_whole = isinstance(key, int) or (hasattr(key, "dtype") and jax.dtypes.issubdtype(key.dtype, jax.numpy.integer))
    if not is_key and not is_whole:
        raise TypeError(f"key is {key!r}: expected a whole number or a key of JAX")
    return made_of(Steps(opt, {}, {}, functools.partial(_noisy, key if is_key else jax.random.key(key), noise)))


def _noisy(key: Any, noise: Mapping[str, Any], updates: Any, state: State) -> Any:
    """The gradients of a step with noise."""
    values = {name: value(state.count) if callable(value) else value for name, value in noise.items()}
    step = jax.random.fold_in(key, state.count)
    leaves, structure = jax.tree.flatten(updates)
    noisy = [_with_noise(g, jax.random.fold_in(step, at), state.count + 1, values) for at, g in enumerate(leaves)]
    return structure.unflatten(noisy)


def _with_noise(g: Any, key: Any, step: Any, values: dict[str, Any]) -> Any:
    """A gradient with noise, computed in float32 where it has half precision; of another dtype, itself."""
    if not is_inexact(g) or is_complex(g):
        return g
    wide = xp.astype(g, "float32") if half(g) else g
    keys = iter(jax.random.split(key))

    def noise() -> Any:
        return jax.random.uniform(next(keys), wide.shape, wide.dtype)

    return xp.astype(gradient_transforms.gradient_noise(xp, None, wide, step=step, noise=noise, **values), g.dtype)
