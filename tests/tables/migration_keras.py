"""The claims of each row of from_keras.md, run with Keras over JAX and with ours: numbers that must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from migration import Pair
from migration_steps import GRADS, START, STEPS, at_steps, moved, trained
from oxigrad import optim, schedules

Q = optim.chain
COMPAT: dict[str, Any] = {"compat": "keras"}
METRICS = [3.0, 2.0, 2.5, 2.4, 1.99995, 2.3, 1.0, 1.5, 1.5, 1.5, 0.9]
SINGLE = 1e-5
BETA = 0.9


def of_keras() -> dict[str, Callable[[], Iterator[Pair]]]:
    """The rows of from_keras.md by their first name, or by their first cell."""
    return {**of_optimizers(), **of_methods(), **of_schedules(), **of_arguments(), **of_differences()}


def variable(value: np.ndarray, name: str | None = None) -> Any:
    import keras

    return keras.Variable(value, dtype="float64", name=name)


def followed(opt: Any, grads: list[np.ndarray] = GRADS) -> np.ndarray:
    """The variable after steps of an optimizer of Keras with the gradients."""
    import keras

    moving = variable(START)
    for g in grads:
        opt.apply([keras.ops.convert_to_tensor(g)], [moving])
    return np.asarray(moving)


def each(*both: tuple[Any, Any], rtol: float = 1e-9) -> Callable[[], Iterator[Pair]]:
    """Trajectories of optimizers of Keras, and of ours."""
    return lambda: ((*moved(followed(their), trained(own)), rtol) for their, own in both)


def of_optimizers() -> dict[str, Callable[[], Iterator[Pair]]]:
    import keras

    k = keras.optimizers

    def muon() -> Iterator[Pair]:
        """A matrix by Muon, and a vector by Adam with a decay of its own."""
        their = k.Muon(0.1, adam_weight_decay=0.02, exclude_embeddings=False)
        matrix, vector = variable(START), variable(START[0])
        own = optim.muon_with_adamw(0.1, muon=COMPAT | {"weight_decay": 0.004}, adamw=COMPAT | {"weight_decay": 0.02})
        model = {"w": START.copy(), "b": START[0].copy()}
        for g in GRADS:
            their.apply([keras.ops.convert_to_tensor(each) for each in (g, g[0])], [matrix, vector])
            own.update(model, {"w": g, "b": g[0]})
        yield np.asarray(matrix), model["w"], SINGLE
        yield np.asarray(vector), model["b"]

    def multiple() -> Iterator[Pair]:
        first, second = variable(START, "first"), variable(START, "second")
        adam, sgd = k.Adam(0.1), k.SGD(0.2)
        their = k.MultiOptimizer(lambda v: sgd if v.path == second.path else adam)
        own = optim.partition({"second": optim.SGD(0.2), "*": optim.Adam(0.1, **COMPAT)})
        model = {"first": START.copy(), "second": START.copy()}
        for g in GRADS:
            their.apply([keras.ops.convert_to_tensor(g)] * 2, [first, second])
            own.update(model, {"first": g, "second": g})
        yield moved(np.asarray(first), model["first"])
        yield moved(np.asarray(second), model["second"])

    return {
        "keras.optimizers.SGD": each(
            (k.SGD(), optim.SGD(**COMPAT)),
            (k.SGD(0.1, 0.9, nesterov=True), optim.SGD(0.1, 0.9, nesterov=True, **COMPAT)),
        ),
        "keras.optimizers.Adam": each(
            (k.Adam(), optim.Adam(**COMPAT)), (k.Adam(0.1, amsgrad=True), optim.Adam(0.1, amsgrad=True, **COMPAT))
        ),
        "keras.optimizers.AdamW": each((k.AdamW(), optim.AdamW(**COMPAT))),
        "keras.optimizers.Nadam": each((k.Nadam(), optim.NAdam(**COMPAT))),
        "keras.optimizers.RMSprop": each(
            (k.RMSprop(), optim.RMSprop(**COMPAT)),
            (k.RMSprop(0.1, momentum=0.9, centered=True), optim.RMSprop(0.1, momentum=0.9, centered=True, **COMPAT)),
        ),
        "keras.optimizers.Ftrl": each((k.Ftrl(), optim.FTRL(**COMPAT))),
        "keras.optimizers.Lamb": each((k.Lamb(), optim.LAMB(**COMPAT))),
        "keras.optimizers.Lion": each((k.Lion(), optim.Lion(**COMPAT))),
        "keras.optimizers.Adafactor": each((k.Adafactor(), optim.Adafactor(**COMPAT)), rtol=SINGLE),
        "keras.optimizers.Muon": muon,
        "keras.optimizers.MultiOptimizer": multiple,
    }


def of_methods() -> dict[str, Callable[[], Iterator[Pair]]]:
    import keras

    k = keras.optimizers

    def scaled() -> Iterator[Pair]:
        """The third gradient overflows; the scale doubles every two finite steps, in both."""
        their = k.LossScaleOptimizer(k.SGD(0.1), initial_scale=2.0**10, dynamic_growth_steps=2)
        own = optim.SGD(0.1, loss_scale=optim.LossScale(2.0**10, interval=2))
        moving, model = variable(START), {"w": START.copy()}
        their.build([moving])
        values, state = [moving.value], [v.value for v in their.variables]
        (at,) = [index for index, v in enumerate(their.variables) if v is their.dynamic_scale]
        for step, g in enumerate(GRADS):
            given = np.full_like(g, np.inf) if step == 2 else g
            scaled = keras.ops.convert_to_tensor(given * float(state[at]))
            values, state = their.stateless_apply(state, [scaled], values)
            own.update(model, {"w": given * own.loss_scale.value})
            yield float(state[at]), own.loss_scale.value
        yield moved(np.asarray(values[0]), model["w"])

    def applied() -> Iterator[Pair]:
        moving, model, their, own = variable(START), {"w": START.copy()}, k.Adam(0.1), optim.Adam(0.1, **COMPAT)
        for g in GRADS:
            their.apply_gradients([(keras.ops.convert_to_tensor(g), moving)])
            model = own.update(model, {"w": g})
        yield moved(np.asarray(moving), model["w"])

    def built() -> Iterator[Pair]:
        """Before the first step; Keras builds once, `rebuild` accepts another model."""
        moving, model, their, own = variable(START), {"w": START.copy()}, k.Adam(0.1), optim.Adam(0.1, **COMPAT)
        their.build([moving])
        own.build(model)
        yield moving.shape, own.slots["w"]["m"].shape
        own.rebuild({**model, "b": np.zeros(2)})
        yield 2, own.slots["b"]["m"].size

    def configured() -> Iterator[Pair]:
        their, own = k.AdamW(0.2, epsilon=1e-3), optim.AdamW(0.2, epsilon=1e-3, **COMPAT)
        again = optim.from_config(own.get_config())
        yield moved(followed(k.AdamW.from_config(their.get_config())), trained(again))

    return {
        "keras.optimizers.LossScaleOptimizer": scaled,
        "keras.optimizers.Optimizer.apply_gradients": applied,
        "keras.optimizers.Optimizer.build": built,
        "keras.optimizers.Optimizer.from_config": configured,
    }


def of_schedules() -> dict[str, Callable[[], Iterator[Pair]]]:
    import keras

    k = keras.optimizers.schedules

    def cosine() -> Iterator[Pair]:
        yield from single(k.CosineDecay(0.7, 9, 0.1), schedules.cosine(0.7, 9, 0.07))
        their = k.CosineDecay(0.1, 14, 0.1, warmup_target=0.7, warmup_steps=6)
        yield from single(their, schedules.warmup_cosine(0.7, 6, 20, final=0.07, initial=0.1))

    def single(their: Any, own: Any) -> Iterator[Pair]:
        return ((*pair, SINGLE) for pair in at_steps(their, own, (0, 1, 4, 5, 6, 8, 9, 10, 13, 20, 22)))

    def plateau() -> Iterator[Pair]:
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        their = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2)
        own = schedules.plateau(0.1, factor=0.5, patience=1, rtol=0.0, atol=1e-4, epsilon=0.0)
        their.set_model(model)
        their.on_train_begin()
        for epoch, metric in enumerate(METRICS):
            their.on_epoch_end(epoch, {"loss": metric})
            yield float(model.optimizer.learning_rate), own.observe(metric), SINGLE

    return {
        "keras.optimizers.schedules.CosineDecay": cosine,
        "keras.optimizers.schedules.ExponentialDecay": lambda: single(
            k.ExponentialDecay(0.7, 9, 0.4), schedules.exponential(0.7, 0.4, 9)
        ),
        "keras.optimizers.schedules.PiecewiseConstantDecay": lambda: single(
            k.PiecewiseConstantDecay([4, 9], [0.7, 0.3, 0.1]), schedules.piecewise((0.7, 0.3, 0.1), (4 + 1, 9 + 1))
        ),
        "keras.optimizers.schedules.PolynomialDecay": lambda: single(
            k.PolynomialDecay(0.7, 9), schedules.polynomial(0.7, 9, final=1e-4)
        ),
        "keras.callbacks.ReduceLROnPlateau": plateau,
    }


def of_arguments() -> dict[str, Callable[[], Iterator[Pair]]]:
    import keras

    k = keras.optimizers

    def decays() -> Iterator[Pair]:
        adam, rate = optim.Adam(0.1, **COMPAT), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        yield moved(followed(k.Adam(0.1, weight_decay=0.2)), trained(Q(adam, optim.WeightDecay(0.2))))
        yield moved(followed(k.Lamb(0.1, weight_decay=0.2)), trained(optim.LAMB(0.1, weight_decay=0.2, **COMPAT)))
        linear = k.schedules.PolynomialDecay(rate[0], 5, rate[-1])  # the decay is multiplied by the rate of the step
        own = Q(optim.SGD(schedules.linear(rate[0], rate[-1], 5)), optim.WeightDecay(0.2))
        yield *moved(followed(k.SGD(linear, weight_decay=0.2)), trained(own)), SINGLE

    def averaged() -> Iterator[Pair]:
        moving, model = variable(START), {"w": START.copy()}
        their, own = k.SGD(0.1, use_ema=True), Q(optim.SGD(0.1), optim.EMA(**COMPAT))
        for g in GRADS:
            their.apply([keras.ops.convert_to_tensor(g)], [moving])
            own.update(model, {"w": g})
        yield moved(np.asarray(their._model_variables_moving_average[0]), own.averaged_parameters()["w"])
        their.finalize_variable_values([moving])  # overwrites
        yield moved(np.asarray(moving), own.swap_in(model)["w"])

    def accumulated() -> Iterator[Pair]:
        own = optim.Adam(0.1, accumulate=2, **COMPAT)
        yield moved(followed(k.Adam(0.1, gradient_accumulation_steps=2), GRADS[:4]), trained(own, GRADS[:4]))
        their = k.SGD(k.schedules.PolynomialDecay(1.0, 6, 0.0), gradient_accumulation_steps=2)
        own = optim.SGD(schedules.linear(1.0, 0.0, 6), accumulate=2)
        followed(their, GRADS[:2])
        trained(own, GRADS[:2])
        yield float(their.learning_rate), 1.0 - 2 / 6
        yield 1.0 - 1 / 6, own.current("learning_rate")

    def scaled() -> Iterator[Pair]:
        scale = optim.LossScale(8.0, interval=10**6)
        grads = [8.0 * g for g in GRADS]
        own = optim.Adam(0.1, loss_scale=scale, **COMPAT)
        yield moved(followed(k.Adam(0.1, loss_scale_factor=8.0), grads), trained(own, grads))
        yield 8.0, scale.value

    def global_norm() -> Iterator[Pair]:
        first, second = variable(START), variable(START)
        their, own = k.Adam(0.1, global_clipnorm=0.5), Q(optim.ClipByGlobalNorm(0.5), optim.Adam(0.1, **COMPAT))
        model = {"a": START.copy(), "b": START.copy()}
        for g in GRADS:
            their.apply([keras.ops.convert_to_tensor(each) for each in (g, 2 * g)], [first, second])
            own.update(model, {"a": g, "b": 2 * g})
        yield moved(np.asarray(first), model["a"])
        yield moved(np.asarray(second), model["b"])

    return {
        "weight_decay": decays,
        "clipnorm": each((k.Adam(0.1, clipnorm=0.5), Q(optim.ClipByNorm(0.5), optim.Adam(0.1, **COMPAT)))),
        "clipvalue": each((k.Adam(0.1, clipvalue=0.5), Q(optim.ClipByValue(0.5), optim.Adam(0.1, **COMPAT)))),
        "global_clipnorm": global_norm,
        "use_ema, ema_momentum": averaged,
        "gradient_accumulation_steps": accumulated,
        "loss_scale_factor": scaled,
    }


def of_differences() -> dict[str, Callable[[], Iterator[Pair]]]:
    """The rows of the table of numbers that differ: Keras' and ours, each beside its formula."""
    import keras

    k = keras.optimizers
    rates = np.linspace(0.1, 0.6, STEPS)

    def by_formula(step: Callable[[int, np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """The parameter after steps by a function of the count from 1, the gradient, and the mean of squares."""
        value, v = START.copy(), np.zeros_like(START)
        for t, g in enumerate(GRADS, 1):
            v = BETA * v + (1 - BETA) * g * g
            value = value - step(t, g, v)
        return value

    def adam() -> Iterator[Pair]:
        """Without a mean of gradients."""

        def their(t: int, g: np.ndarray, v: np.ndarray) -> np.ndarray:
            return 0.1 * np.sqrt(1 - BETA**t) * g / (np.sqrt(v) + 1e-7)

        def own(t: int, g: np.ndarray, v: np.ndarray) -> np.ndarray:
            return 0.1 * g / (np.sqrt(v / (1 - BETA**t)) + 1e-8)

        yield moved(by_formula(their), followed(k.Adam(0.1, 0.0, BETA)))
        yield moved(by_formula(their), trained(optim.Adam(0.1, 0.0, BETA, 1e-7, epsilon_mode="hat")))
        yield moved(by_formula(own), trained(optim.Adam(0.1, 0.0, BETA)))

    def rmsprop() -> Iterator[Pair]:
        def their(t: int, g: np.ndarray, v: np.ndarray) -> np.ndarray:
            return 0.1 * g / np.sqrt(v + 1e-7)

        def own(t: int, g: np.ndarray, v: np.ndarray) -> np.ndarray:
            return 0.1 * g / (np.sqrt(v) + 1e-8)

        yield moved(by_formula(their), followed(k.RMSprop(0.1, BETA)))
        yield moved(by_formula(their), trained(optim.RMSprop(0.1, BETA, 1e-7, epsilon_mode="inside")))
        yield moved(by_formula(own), trained(optim.RMSprop(0.1, BETA)))
        grads, v = np.array(GRADS), np.cumsum(np.square(GRADS), axis=0)
        yield moved(START - np.sum(0.1 * grads / np.sqrt(v + 0.1 + 1e-7), axis=0), followed(k.Adagrad(0.1)))
        yield moved(START - np.sum(0.1 * grads / (np.sqrt(v) + 1e-10), axis=0), trained(optim.Adagrad(0.1)))

    def momentum() -> Iterator[Pair]:
        theirs, ours = START.copy(), START.copy()
        velocity = mean = np.zeros_like(START)
        for rate, g in zip(rates, GRADS, strict=True):
            velocity, mean = 0.9 * velocity - rate * g, 0.9 * mean + g
            theirs, ours = theirs + velocity, ours - rate * mean
        linear = schedules.linear(rates[0], rates[-1], STEPS - 1)
        their = k.SGD(k.schedules.PolynomialDecay(rates[0], STEPS - 1, rates[-1]), 0.9)
        yield *moved(theirs, followed(their)), SINGLE
        yield moved(theirs, trained(optim.SGD(linear, 0.9, rate_before_momentum=True)))
        yield moved(ours, trained(optim.SGD(linear, 0.9)))

    def rate_defaults() -> Iterator[Pair]:
        for name in ("Adam", "AdamW", "Nadam", "RMSprop", "Ftrl", "Lamb", "Lion", "Adafactor", "Muon", "Adamax"):
            yield 1e-3, float(getattr(k, name)().learning_rate), SINGLE
        yield 1e-2, float(k.SGD().learning_rate), SINGLE
        yield [2e-3, 1e-2, 1e-3], [made().learning_rate for made in (optim.NAdam, optim.RMSprop, optim.SGD)]

    def decayed() -> Iterator[Pair]:
        """The first step: theirs from the decayed parameter, ours the step from the parameter, and the decay."""
        decayed, grads = START * (1 - 0.1 * 0.2), GRADS[:1]
        their, own = followed(k.Ftrl(0.1, weight_decay=0.2), grads), Q(optim.FTRL(0.1), optim.WeightDecay(0.2))
        from_decayed = optim.FTRL(0.1).update({"w": decayed.copy()}, {"w": grads[0]})["w"]
        yield from_decayed, their
        yield trained(optim.FTRL(0.1), grads) - 0.1 * 0.2 * START, trained(own, grads)

    def averaged() -> Iterator[Pair]:
        """Four batches of gradients of 1, in two steps."""
        moving, average = variable(np.zeros(1)), 0.0
        their = k.SGD(1.0, use_ema=True, ema_momentum=0.9, gradient_accumulation_steps=2)
        own = Q(optim.SGD(1.0), optim.EMA(0.9, **COMPAT), accumulate=2)
        model = {"w": np.zeros(1)}
        for batch in range(4):
            their.apply([keras.ops.convert_to_tensor(np.ones(1))], [moving])
            own.update(model, {"w": np.ones(1)})
            now = np.asarray(moving)[0]
            average = 0.9 * average + 0.1 * now if batch >= 2 else now
        yield average, np.asarray(their._model_variables_moving_average[0])[0]
        yield 0.9 * -1.0 + 0.1 * -2.0, own.averaged_parameters()["w"][0]

    return {
        "epsilon of Adam and AdamW": adam,
        "epsilon of RMSprop and Adagrad": rmsprop,
        "momentum of SGD and RMSprop": momentum,
        "default learning rates": rate_defaults,
        "weight_decay of Ftrl": decayed,
        "use_ema with gradient_accumulation_steps": averaged,
    }
