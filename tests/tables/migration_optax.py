"""The claims of each row of from_optax.md, run with optax and with ours: numbers that must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from migration import Pair
from migration_steps import GRADS, START, at_steps, moved, trained
from oxigrad import optim, schedules

Q = optim.chain


def followed(tx: Any, grads: list[np.ndarray] = GRADS) -> np.ndarray:
    """The parameter after steps of a transformation of optax with the gradients."""
    import jax
    import jax.numpy as jnp

    params, update = {"w": jnp.asarray(START)}, jax.jit(tx.update)
    state = tx.init(params)
    for g in grads:
        updates, state = update({"w": jnp.asarray(g)}, state, params)
        params = {"w": params["w"] + updates["w"]}
    return np.asarray(params["w"])


def of_optax() -> dict[str, Callable[[], Iterator[Pair]]]:
    """The rows of from_optax.md by their first name."""
    return {**of_optimizers(), **of_transformations(), **of_wrappers(), **of_schedules()}


def each(*both: tuple[Any, Any]) -> Callable[[], Iterator[Pair]]:
    """Trajectories of transformations of optax, and of our optimizers."""
    return lambda: (moved(followed(tx), trained(opt)) for tx, opt in both)


def of_optimizers() -> dict[str, Callable[[], Iterator[Pair]]]:
    import optax

    compat: dict[str, Any] = {"compat": "optax"}

    def adafactor() -> Iterator[Pair]:
        """Of leaves that both leave whole; the weight decay is not multiplied by the rate there."""
        their, own = optax.adafactor(0.1), optim.Adafactor(0.1, **compat)
        yield *moved(followed(their), trained(own)), 1e-5
        their = optax.adafactor(0.1, weight_decay_rate=0.02)
        yield *moved(followed(their), trained(Q(optim.Adafactor(0.1, **compat), optim.WeightDecay(0.2)))), 1e-5

    return {
        "optax.sgd": each(
            (optax.sgd(0.1), optim.SGD(0.1)),
            (optax.sgd(0.1, 0.9, nesterov=True), optim.SGD(0.1, 0.9, nesterov=True)),
        ),
        "optax.adam": each((optax.adam(0.1), optim.Adam(0.1))),
        "optax.adamw": each((optax.adamw(0.1), optim.AdamW(0.1, **compat))),
        "optax.amsgrad": each((optax.amsgrad(0.1), optim.Adam(0.1, amsgrad="corrected"))),
        "optax.nadam": each(
            (optax.nadam(0.1), optim.NAdam(0.1, **compat)),
            (optax.nadamw(0.1, weight_decay=0.2), Q(optim.NAdam(0.1, **compat), optim.WeightDecay(0.2))),
        ),
        "optax.rmsprop": each((optax.rmsprop(0.1), optim.RMSprop(0.1, **compat))),
        "optax.adafactor": adafactor,
        "optax.lion": each((optax.lion(0.1), optim.Lion(0.1, **compat))),
        "optax.lamb": each((optax.lamb(0.1), optim.LAMB(0.1)), (optax.lars(0.1), optim.LARS(0.1))),
    }


def of_transformations() -> dict[str, Callable[[], Iterator[Pair]]]:
    import jax
    import jax.numpy as jnp
    import optax

    def noise() -> Iterator[Pair]:
        """Another generator: the variances of the steps agree."""
        their, own = optax.add_noise(0.5, 0.55, jax.random.key(0)), Q(optim.GradientNoise(0.5, 0.55), optim.SGD(1.0))
        params, model, zeros = {"w": jnp.zeros(20000)}, {"w": np.zeros(20000)}, np.zeros(20000)
        state = their.init(params)
        for _ in range(3):
            drawn, state = their.update({"w": jnp.asarray(zeros)}, state, params)
            before = model["w"].copy()
            own.update(model, {"w": zeros})
            yield np.std(drawn["w"]), np.std(model["w"] - before), 0.03

    def decays() -> Iterator[Pair]:
        their = optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(0.2), optax.scale_by_learning_rate(0.1))
        yield moved(followed(their), trained(Q(optim.Adam(0.1), optim.WeightDecay(0.2))))

    def averages() -> Iterator[Pair]:
        """Of updates in optax, of parameters here."""
        their, own = optax.ema(0.9), Q(optim.SGD(0.1), optim.EMA(0.9, compat="optax"))
        model, state = {"w": START.copy()}, their.init({"w": jnp.asarray(START)})
        for g in GRADS:
            own.update(model, {"w": g})
            average, state = their.update({"w": jnp.asarray(model["w"])}, state)
        yield moved(np.asarray(average["w"]), own.averaged_parameters()["w"])

    def global_norm() -> Iterator[Pair]:
        opt, grads = optim.SGD(0.1, record_norms=("gradient", "update")), {"a": GRADS[0], "b": GRADS[1]}
        opt.update({"a": START.copy(), "b": START.copy()}, grads)
        yield optax.tree.norm(grads), opt.global_norm("gradient")
        yield 0.1 * optax.tree.norm(grads), opt.global_norm("update")

    return {
        "optax.chain": each(
            (
                optax.chain(optax.clip_by_global_norm(0.5), optax.trace(0.9), optax.scale_by_learning_rate(0.1)),
                Q(optim.ClipByGlobalNorm(0.5), optim.SGD(0.1, 0.9)),
            )
        ),
        "optax.clip": each((optax.chain(optax.clip(0.3), optax.sgd(0.1)), Q(optim.ClipByValue(0.3), optim.SGD(0.1)))),
        "optax.clip_by_global_norm": each(
            (
                optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.1)),
                Q(optim.ClipByGlobalNorm(0.5), optim.Adam(0.1)),
            )
        ),
        "optax.adaptive_grad_clip": each(
            (
                optax.chain(optax.adaptive_grad_clip(0.02), optax.sgd(0.1)),
                Q(optim.AdaptiveGradientClip(0.02), optim.SGD(0.1)),
            )
        ),
        "optax.centralize": each(
            (optax.chain(optax.centralize(), optax.sgd(0.1)), Q(optim.Centralize(), optim.SGD(0.1)))
        ),
        "optax.add_noise": noise,
        "optax.add_decayed_weights": decays,
        "optax.ema": averages,
        "optax.tree.norm": global_norm,
    }


def of_wrappers() -> dict[str, Callable[[], Iterator[Pair]]]:
    import jax.numpy as jnp
    import optax

    def lookahead() -> Iterator[Pair]:
        start = {"w": jnp.asarray(START)}
        params, tx = optax.LookaheadParams.init_synced(start), optax.lookahead(optax.sgd(0.1), 3, 0.4)
        state = tx.init(params)
        for g in GRADS:
            updates, state = tx.update({"w": jnp.asarray(g)}, state, params)
            params = optax.apply_updates(params, updates)
        own = Q(optim.SGD(0.1), optim.Lookahead(3, 0.4))
        yield moved(np.asarray(params.fast["w"]), trained(own))

    def partitions() -> Iterator[Pair]:
        start = {"a": jnp.asarray(START), "b": jnp.asarray(START)}
        rows: list[tuple[Any, dict[str, Any]]] = [
            (
                optax.multi_transform({"a": optax.adam(0.1), "b": optax.sgd(0.2)}, {"a": "a", "b": "b"}),
                {"a": optim.Adam(0.1), "b": optim.SGD(0.2)},
            ),
            (
                optax.chain(
                    optax.masked(optax.adam(0.1), {"a": True, "b": False}),
                    optax.masked(optax.set_to_zero(), {"a": False, "b": True}),
                ),
                {"a": optim.Adam(0.1), "b": None},
            ),
        ]
        for tx, parts in rows:
            params, state, own = start, tx.init(start), optim.partition(parts)
            model = {name: START.copy() for name in start}
            for g in GRADS:
                updates, state = tx.update(dict.fromkeys(start, jnp.asarray(g)), state, params)
                params = optax.apply_updates(params, updates)
                model = own.update(model, dict.fromkeys(start, g))
            yield from ((np.asarray(params[name]), model[name], 1e-14) for name in start)
            yield moved(np.asarray(params["a"]), model["a"])

    def multiple() -> Iterator[Pair]:
        tx = optax.MultiSteps(optax.adam(0.1), every_k_schedule=3)
        yield *moved(followed(tx), trained(optim.Adam(0.1, accumulate=3))), 1e-6

    def finite() -> Iterator[Pair]:
        grads = [
            np.where(np.arange(12).reshape(4, 3) == at, np.nan, g)
            for at, g in zip((-1, 3, -1, 5, -1, -1), GRADS, strict=True)
        ]
        tx, own = optax.apply_if_finite(optax.adam(0.1), 9), optim.Adam(0.1, nonfinite="skip")
        yield moved(followed(tx, grads), trained(own, grads))
        yield 2, own.skipped

    def injected() -> Iterator[Pair]:
        tx, own = optax.inject_hyperparams(optax.adam)(learning_rate=0.1), optim.Adam(0.1)
        params = by_keyword = by_state = {"w": jnp.asarray(START)}
        state, kept, held = tx.init(params), own.init(params), own.init(params)
        for step, g in enumerate(GRADS):
            grads, rate = {"w": jnp.asarray(g)}, 0.1 / (1 + step)
            state.hyperparams["learning_rate"] = jnp.asarray(rate)
            updates, state = tx.update(grads, state, params)
            params = optax.apply_updates(params, updates)
            by_keyword, kept = own.apply(by_keyword, grads, kept, learning_rate=rate)
            by_state, held = own.apply(by_state, grads, {**held, "hyperparameters": {"learning_rate": rate}})
        expected = np.asarray(params["w"])
        yield from (moved(expected, np.asarray(found["w"])) for found in (by_keyword, by_state))

    def applied() -> Iterator[Pair]:
        params, tx, own = {"w": jnp.asarray(START)}, optax.sgd(0.1), optim.SGD(0.1)
        grads = {"w": jnp.asarray(GRADS[0])}
        expected = optax.apply_updates(params, tx.update(grads, tx.init(params), params)[0])["w"]
        yield expected, own.apply(params, grads, own.init(params))[0]["w"]
        yield expected, own.update({"w": START.copy()}, {"w": GRADS[0]})["w"]

    return {
        "optax.lookahead": lookahead,
        "optax.masked": partitions,
        "optax.MultiSteps": multiple,
        "optax.apply_if_finite": finite,
        "optax.inject_hyperparams": injected,
        "optax.apply_updates": applied,
    }


def of_schedules() -> dict[str, Callable[[], Iterator[Pair]]]:
    import optax

    joined = optax.join_schedules([optax.linear_schedule(0.0, 1.0, 5), optax.exponential_decay(1.0, 4, 0.5)], [5])
    return {
        "optax.cosine_decay_schedule": lambda: at_steps(
            optax.cosine_decay_schedule(0.7, 9, 0.1), schedules.cosine(0.7, 9, 0.07)
        ),
        "optax.warmup_cosine_decay_schedule": lambda: at_steps(
            optax.warmup_cosine_decay_schedule(0.0, 0.7, 6, 20), schedules.warmup_cosine(0.7, 6, 20)
        ),
        "optax.exponential_decay": lambda: at_steps(
            optax.exponential_decay(0.7, 9, 0.4), schedules.exponential(0.7, 0.4, 9)
        ),
        "optax.piecewise_constant_schedule": lambda: at_steps(
            optax.piecewise_constant_schedule(0.7, {4: 0.5, 9: 0.1}), schedules.piecewise((0.7, 0.35, 0.035), (4, 9))
        ),
        "optax.join_schedules": lambda: at_steps(
            joined, schedules.join((schedules.linear(0.0, 1.0, 5), schedules.exponential(1.0, 0.5, 4)), (5,))
        ),
    }
