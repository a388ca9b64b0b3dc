"""Random configurations of optimizers: ours, and the equivalent one of another library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import optim

STEPS = 5

# Deliberate differences and errors of other libraries, which no configuration here has; listed in docs/optimizers.md.
DELIBERATE = {
    "optax: schedule-free schedules": "optax weights a schedule-free step by the learning rate of the next step",
    "optax: Adafactor's weight decay": "optax does not multiply Adafactor's weight decay by the learning rate",
    "keras: decay before the step": "Keras decays the parameter before FTRL and Adafactor look at it, ours after it",
    "keras: schedules count batches": "Keras' schedules count batches, ours steps, which differ where gradients accumulate",
    "muon: norm": "optax and Keras add Muon's epsilon to the norm, which it bounds in ours and in torch",
    "optax: Prodigy without gradients": "optax's Prodigy divides zero by zero while all gradients are zero, ours stays",
    "all: variances below zero": "others bound no variance of a centered RMSprop that rounding made negative",
    "torch: Muon in bfloat16": "torch iterates in bfloat16, ours in the dtype of the parameter",
}

# Tolerances for libraries that compute a part of a step in single precision, or with another epsilon.
TOLERANCES = {
    "optax madgrad": 1e-6,  # the root of the step is single
    "optax adafactor": 1e-6,  # so is its decay
    "keras Adafactor": 1e-6,  # so are means
    "keras Muon": 1e-4,  # "muon: norm", with an epsilon of 1e-7 that cannot be changed
}


class Draw:
    """Random hyperparameters of one configuration, within their ranges."""

    def __init__(self, seed: int, schedule: Callable[[list[float]], Any] = list) -> None:
        self.random = np.random.default_rng(seed)
        self.schedule = schedule
        self.zeros = True  # whether gradients may have zeros
        self.values = [self.log(1e-3, 0.3) for _ in range(STEPS)] if self.flag() else [self.log(1e-3, 0.3)] * STEPS

    def flag(self) -> bool:
        return bool(self.random.integers(2))

    def one_of(self, *values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def log(self, low: float, high: float) -> float:
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return float(self.random.uniform(low, high))

    def beta(self) -> float:
        return self.one_of(0.0, self.uniform(0.1, 0.95), 1 - self.log(1e-4, 0.1))

    def epsilon(self) -> float:
        return self.log(1e-8, 1e-1)

    def decay(self) -> float:
        return self.one_of(0.0, self.log(1e-3, 1.0))

    def constant(self, why: str = "", *, where: bool = True) -> None:
        """Has no schedule, since the libraries differ there."""
        assert not why or why in DELIBERATE
        if where:
            self.values = self.values[:1] * STEPS

    @property
    def changes(self) -> bool:
        """Whether the learning rate does."""
        return len(set(self.values)) > 1

    @property
    def rate(self) -> Any:
        """Our learning rate: a number, or a function of the step."""
        return (lambda step: self.values[int(step)]) if self.changes else self.values[0]

    @property
    def theirs(self) -> Any:
        """The learning rate for the other library: a number, or its schedule."""
        return self.schedule(self.values) if self.changes else self.values[0]


Parts = list[Any]


# --- torch ---------------------------------------------------------------------------------------------------------------


def _betas(d: Draw) -> dict[str, Any]:
    return {"betas": (d.beta(), d.beta()), "eps": d.epsilon()}


def _decay(d: Draw) -> dict[str, Any]:
    return {"weight_decay": d.decay(), "maximize": d.flag()}


def _sgd(d: Draw) -> dict[str, Any]:
    momentum, nesterov = d.one_of(0.0, d.uniform(0.1, 0.99)), d.flag()
    nesterov = nesterov and momentum > 0
    return {
        "momentum": momentum,
        "dampening": 0.0 if nesterov else d.one_of(0.0, d.uniform()),
        "nesterov": nesterov,
        **_decay(d),
    }


def _adam(d: Draw) -> dict[str, Any]:
    return {**_betas(d), **_decay(d), "amsgrad": d.flag()}


# The arguments of torch's optimizers but the learning d.theirs, and how they may be computed.
IN_TORCH: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "SGD": _sgd,
    "Adam": lambda d: {**_adam(d), "decoupled_weight_decay": d.flag()},
    "AdamW": _adam,
    "Adamax": lambda d: {**_betas(d), **_decay(d)},
    "NAdam": lambda d: {
        **_betas(d),
        **_decay(d),
        "momentum_decay": d.log(1e-4, 1.0),
        "decoupled_weight_decay": d.flag(),
    },
    "RAdam": lambda d: {**_betas(d), **_decay(d), "decoupled_weight_decay": d.flag()},
    "Adagrad": lambda d: {
        "lr_decay": d.decay(),
        "initial_accumulator_value": d.decay(),
        "eps": d.epsilon(),
        **_decay(d),
    },
    "Adadelta": lambda d: {"rho": d.beta(), "eps": d.epsilon(), **_decay(d)},
    "ASGD": lambda d: {"lambd": d.decay(), "alpha": d.uniform(), "t0": float(d.one_of(0, 1, 2, 1e6)), **_decay(d)},
    "RMSprop": lambda d: {
        "alpha": d.uniform(0.3, 0.99),  # "all: variances below zero"
        "eps": d.epsilon(),
        "momentum": d.one_of(0.0, d.uniform()),
        "centered": d.flag(),
        **_decay(d),
    },
    "Rprop": lambda d: {
        "etas": (d.uniform(0.1, 0.9), d.uniform(1.1, 2.0)),
        "step_sizes": (d.log(1e-6, 0.05), d.log(0.05, 1.0)),
        "maximize": d.flag(),
    },
    "Adafactor": lambda d: {
        "beta2_decay": -d.uniform(0.3, 1.0),
        "eps": (d.epsilon(), d.log(1e-4, 1e-1)),
        "d": d.log(1.0, 3.0),
        **_decay(d),
    },
}
FUSED = ["SGD", "Adam", "AdamW", "Adagrad"]

# --- optax ---------------------------------------------------------------------------------------------------------------


def adam_words(d: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """Adam's betas and epsilon, in our words and in optax's."""
    b1, b2, epsilon = d.beta(), d.beta(), d.epsilon()
    return {"beta1": b1, "beta2": b2, "epsilon": epsilon}, {"b1": b1, "b2": b2, "eps": epsilon}


def adam_roots(d: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """As `adam_words`, with epsilon outside or inside the root."""
    ours, theirs = adam_words(d)
    if d.flag():
        return {**ours, "epsilon_mode": "inside"}, {**theirs, "eps": 0.0, "eps_root": ours["epsilon"]}
    return {**ours, "epsilon_mode": "outside"}, theirs


def o_sgd(d: Draw, o: Any) -> Any:
    momentum, nesterov = d.one_of(None, d.uniform()), d.flag()
    if momentum is None:
        return [optim.SGD(d.rate, compat="optax")], o.sgd(d.theirs)
    ours = optim.SGD(d.rate, momentum, nesterov=nesterov, compat="optax")
    return [ours], o.sgd(d.theirs, momentum, nesterov=nesterov)


def o_signum(d: Draw, o: Any) -> Any:
    beta = d.beta()
    return [optim.Signum(d.rate, beta)], o.signum(d.theirs, beta)


def o_adam(d: Draw, o: Any) -> Any:
    ours, theirs = adam_roots(d)
    return [optim.Adam(d.rate, compat="optax", **ours)], o.adam(d.theirs, **theirs)


def o_adamw(d: Draw, o: Any) -> Any:
    (ours, theirs), decay = adam_roots(d), d.decay()
    made = optim.AdamW(d.rate, compat="optax", weight_decay=decay, **ours)
    return [made], o.adamw(d.theirs, weight_decay=decay, **theirs)


def o_amsgrad(d: Draw, o: Any) -> Any:
    ours, theirs = adam_roots(d)
    return [optim.Adam(d.rate, compat="optax", amsgrad="corrected", **ours)], o.amsgrad(d.theirs, **theirs)


def o_adamax(d: Draw, o: Any) -> Any:
    (ours, theirs), decay = adam_words(d), d.decay()
    parts = [optim.Adamax(d.rate, compat="optax", **ours)]
    if d.flag():
        return [*parts, optim.WeightDecay(decay)], o.adamaxw(d.theirs, weight_decay=decay, **theirs)
    return parts, o.adamax(d.theirs, **theirs)


def o_nadam(d: Draw, o: Any) -> Any:
    (ours, theirs), decay = adam_words(d), d.decay()
    parts = [optim.NAdam(d.rate, compat="optax", **ours)]
    if d.flag():
        return [*parts, optim.WeightDecay(decay)], o.nadamw(d.theirs, weight_decay=decay, **theirs)
    return parts, o.nadam(d.theirs, **theirs)


def o_radam(d: Draw, o: Any) -> Any:
    (ours, theirs), threshold = adam_words(d), d.uniform(4.5, 6.0)
    made = optim.RAdam(d.rate, compat="optax", threshold=threshold, **ours)
    return [made], o.radam(d.theirs, threshold=threshold, **theirs)


def o_adabelief(d: Draw, o: Any) -> Any:
    (ours, theirs), root = adam_words(d), d.log(1e-12, 1e-3)
    return [optim.AdaBelief(d.rate, epsilon_root=root, **ours)], o.adabelief(d.theirs, eps_root=root, **theirs)


def o_yogi(d: Draw, o: Any) -> Any:
    ours, theirs = adam_words(d)
    return [optim.Yogi(d.rate, compat="optax", **ours)], o.yogi(d.theirs, **theirs)


def o_lamb(d: Draw, o: Any) -> Any:
    (ours, theirs), decay = adam_roots(d), d.decay()
    return [optim.LAMB(d.rate, weight_decay=decay, **ours)], o.lamb(d.theirs, weight_decay=decay, **theirs)


def o_novograd(d: Draw, o: Any) -> Any:
    (ours, theirs), decay = adam_words(d), d.decay()
    return [optim.NovoGrad(d.rate, weight_decay=decay, **ours)], o.novograd(d.theirs, weight_decay=decay, **theirs)


def o_lars(d: Draw, o: Any) -> Any:
    decay, trust, epsilon, momentum, nesterov = d.decay(), d.log(1e-3, 1.0), d.decay(), d.uniform(), d.flag()
    made = optim.LARS(d.rate, momentum, decay, trust, epsilon, nesterov)
    return [made], o.lars(d.theirs, decay, trust_coefficient=trust, eps=epsilon, momentum=momentum, nesterov=nesterov)


def o_fromage(d: Draw, o: Any) -> Any:
    least = d.decay()
    return [optim.Fromage(d.rate, least)], o.fromage(d.theirs, least)


def o_optimistic_sgd(d: Draw, o: Any) -> Any:
    alpha, beta = d.uniform(), d.decay()
    return [optim.OptimisticSGD(d.rate, alpha, beta)], o.optimistic_gradient_descent(d.theirs, alpha, beta)


def o_optimistic_adam(d: Draw, o: Any) -> Any:
    (ours, theirs), own = adam_words(d), {"alpha": d.uniform(), "beta": d.decay(), "nesterov": d.flag()}
    return [optim.OptimisticAdam(d.rate, **ours, **own)], o.optimistic_adam_v2(d.theirs, **theirs, **own)


def o_lion(d: Draw, o: Any) -> Any:
    b1, b2, decay = d.beta(), d.beta(), d.decay()
    return [optim.Lion(d.rate, b1, b2, decay)], o.lion(d.theirs, b1, b2, weight_decay=decay)


def o_adagrad(d: Draw, o: Any) -> Any:
    first, epsilon = d.decay(), d.epsilon()
    made = optim.Adagrad(d.rate, initial_accumulator=first, epsilon=epsilon, compat="optax")
    return [made], o.adagrad(d.theirs, first, epsilon)


def o_adadelta(d: Draw, o: Any) -> Any:
    rho, epsilon, decay = d.beta(), d.epsilon(), d.decay()
    parts = [optim.Regularize(l2=decay), optim.Adadelta(d.rate, rho, epsilon)]
    return parts, o.adadelta(d.theirs, rho, epsilon, weight_decay=decay)


def o_rmsprop(d: Draw, o: Any) -> Any:
    rho, epsilon, first, momentum = d.uniform(0.3, 0.99), d.epsilon(), d.decay(), d.one_of(None, d.uniform(0.1, 0.99))
    centered, nesterov, inside = d.flag(), d.flag(), d.flag()
    corrected = d.flag()
    made = optim.RMSprop(
        d.rate, rho, epsilon, momentum or 0.0, first,
        centered=centered, nesterov=nesterov, bias_correction=corrected,
        epsilon_mode="inside" if inside else "outside", rate_before_momentum=True,
    )  # fmt: skip
    return [made], o.rmsprop(
        d.theirs, rho, epsilon, first, inside, centered, momentum, nesterov, bias_correction=corrected
    )


def o_rprop(d: Draw, o: Any) -> Any:
    d.constant()  # it is a first step size
    minus, plus, low, high = d.uniform(0.1, 0.9), d.uniform(1.1, 2.0), d.log(1e-6, 0.1), d.log(0.1, 1.0)
    return [optim.Rprop(d.rate, minus, plus, low, high, compat="optax")], o.rprop(d.theirs, minus, plus, low, high)


def o_adan(d: Draw, o: Any) -> Any:
    betas, epsilon, root, decay = [d.beta() for _ in range(3)], d.epsilon(), d.one_of(0.0, d.epsilon()), d.decay()
    made = optim.Adan(d.rate, *betas, epsilon, root, decay, compat="optax")
    return [made], o.adan(d.theirs, *betas, epsilon, root, decay)


def o_ademamix(d: Draw, o: Any) -> Any:
    (ours, theirs), b3, alpha, decay = adam_words(d), d.beta(), d.uniform(0, 10), d.decay()
    made = optim.AdEMAMix(d.rate, beta3=b3, alpha=alpha, weight_decay=decay, **ours)
    return [made], o.contrib.ademamix(d.theirs, b3=b3, alpha=alpha, weight_decay=decay, **theirs)


def o_adopt(d: Draw, o: Any) -> Any:
    (ours, theirs), clipped = adam_words(d), d.flag()
    return [optim.ADOPT(d.rate, clipped=clipped, **ours)], o.contrib.adopt(d.theirs, use_clipping=clipped, **theirs)


def o_madgrad(d: Draw, o: Any) -> Any:
    momentum, epsilon, decay = d.uniform(), d.log(1e-6, 1e-2), d.decay()
    parts = [optim.Regularize(l2=decay), optim.MADGRAD(d.rate, momentum, epsilon)]
    return parts, o.contrib.madgrad(d.theirs, momentum, decay, epsilon)


def o_prodigy(d: Draw, o: Any) -> Any:
    assert not d.zeros, DELIBERATE["optax: Prodigy without gradients"]
    betas, beta3, epsilon = (d.beta(), d.beta() or 0.5), d.one_of(None, d.uniform(0.1, 0.99)), d.epsilon()
    d0, coefficient, decay, safe = d.log(1e-4, 1e-1), d.log(0.3, 3.0), d.decay(), d.flag()
    made = optim.Prodigy(d.rate, *betas, beta3 or 0.0, epsilon, decay, d0, coefficient, safe)
    return [made], o.contrib.prodigy(
        d.theirs, betas, beta3, epsilon, d0, coefficient, weight_decay=decay, safeguard_warmup=safe
    )


def o_dog(d: Draw, o: Any) -> Any:
    initial, value = d.one_of("heuristic", "distance", "learning_rate"), d.log(1e-4, 1e-1)
    epsilon, decay = d.epsilon(), d.decay()
    made = optim.DoG(d.rate, epsilon=epsilon, weight_decay=decay, initial=initial, initial_value=value)
    return [made], o.contrib.dog(d.theirs, (initial, value), epsilon, decay)


def o_dowg(d: Draw, o: Any) -> Any:
    distance, epsilon, decay = d.one_of(None, d.log(1e-4, 1e-1)), d.epsilon(), d.decay()
    made = optim.DoWG(d.rate, initial_distance=distance, epsilon=epsilon, weight_decay=decay)
    return [made], o.contrib.dowg(d.theirs, distance, epsilon, decay)


def o_dadapt_adamw(d: Draw, o: Any) -> Any:
    betas, epsilon, d0, decay = (d.beta(), d.beta() or 0.5), d.epsilon(), d.log(1e-4, 1e-1), d.decay()
    made = optim.DAdaptAdamW(d.rate, *betas, epsilon=epsilon, weight_decay=decay, d0=d0)
    return [made], o.contrib.dadapt_adamw(d.theirs, betas, epsilon, d0, decay)


def o_cocob(d: Draw, o: Any) -> Any:
    alpha, epsilon, decay = d.log(1.0, 200.0), d.epsilon(), d.decay()
    made = optim.COCOB(d.rate, alpha=alpha, epsilon=epsilon, weight_decay=decay)
    return [made], o.contrib.cocob(d.theirs, alpha, epsilon, decay)


def o_sophia(d: Draw, o: Any) -> Any:
    (ours, theirs), decay, gamma, limit, every = adam_words(d), d.decay(), d.log(1e-3, 1.0), d.uniform(0.1, 2.0), 2
    made = optim.Sophia(d.rate, weight_decay=decay, gamma=gamma, limit=limit, every=every, **ours)
    return [made], o.contrib.sophia(
        d.theirs, weight_decay=decay, gamma=gamma, clip_threshold=limit, update_interval=every,
        hessian_diagonal_fn=squared(o), **theirs,
    )  # fmt: skip


def squared(o: Any) -> Any:
    """The square of the gradient, where optax's Sophia asks for the diagonal of the Hessian."""
    return o.GradientTransformation(
        lambda params: o.EmptyState(), lambda g, state, params=None: ({k: v * v for k, v in g.items()}, state)
    )


def o_adafactor(d: Draw, o: Any) -> Any:
    clipping, momentum, scaled, factored = d.log(0.3, 3.0), d.one_of(None, d.uniform()), d.flag(), d.flag()
    d.constant("optax: Adafactor's weight decay", where=False)
    least = d.one_of(0, 3)
    made = optim.Adafactor(
        d.rate, compat="optax", clipping=clipping, momentum=momentum or 0.0, scale_parameter=scaled,
        min_factored=least, factored="largest" if factored else None,
    )  # fmt: skip
    return [made], o.adafactor(
        d.theirs, min_dim_size_to_factor=least, clipping_threshold=clipping, momentum=momentum or None,
        dtype_momentum=np.float64, multiply_by_parameter_scale=scaled, factored=factored,
    )  # fmt: skip


def o_sm3(d: Draw, o: Any) -> Any:
    momentum, beta2, epsilon = d.uniform(), d.one_of(1.0, d.uniform(0.1, 0.99)), d.epsilon()
    made = optim.SM3(d.rate, momentum, beta2, epsilon)
    return [made], o.chain(o.scale_by_sm3(momentum, beta2, epsilon), o.scale_by_learning_rate(d.theirs))


def o_muon(d: Draw, o: Any) -> Any:
    d.constant("muon: norm", where=False)
    beta, decay, nesterov = d.beta(), d.decay(), d.flag()
    made = optim.Muon(d.rate, beta, decay, 1e-30, nesterov=nesterov, compat="optax")
    return [made], o.contrib.muon(d.theirs, beta=beta, eps=1e-30, weight_decay=decay, nesterov=nesterov)


def o_free_sgd(d: Draw, o: Any) -> Any:
    d.constant("optax: schedule-free schedules")
    beta, decay, power = d.uniform(0.1, 0.99), d.decay(), d.one_of(0.0, 2.0)
    made = optim.ScheduleFreeSGD(d.rate, beta, decay, power, compat="optax")
    return [made], o.contrib.schedule_free_sgd(d.theirs, None, beta, decay, weight_lr_power=power)


def o_free_adamw(d: Draw, o: Any) -> Any:
    d.constant("optax: schedule-free schedules")
    ours, theirs = adam_words(d)
    ours["beta1"] = theirs["b1"] = d.uniform(0.1, 0.99)
    decay, power = d.decay(), d.one_of(0.0, 2.0)
    made = optim.ScheduleFreeAdamW(d.rate, weight_decay=decay, weight_power=power, compat="optax", **ours)
    return [made], o.contrib.schedule_free_adamw(d.theirs, weight_decay=decay, weight_lr_power=power, **theirs)


# Ours, and what optax has.
IN_OPTAX: dict[str, Callable[[Draw, Any], Any]] = {
    "sgd": o_sgd,
    "signum": o_signum,
    "adam": o_adam,
    "adamw": o_adamw,
    "amsgrad": o_amsgrad,
    "adamax": o_adamax,
    "nadam": o_nadam,
    "radam": o_radam,
    "adabelief": o_adabelief,
    "yogi": o_yogi,
    "lamb": o_lamb,
    "novograd": o_novograd,
    "lars": o_lars,
    "fromage": o_fromage,
    "optimistic sgd": o_optimistic_sgd,
    "optimistic adam": o_optimistic_adam,
    "lion": o_lion,
    "adagrad": o_adagrad,
    "adadelta": o_adadelta,
    "rmsprop": o_rmsprop,
    "rprop": o_rprop,
    "adan": o_adan,
    "ademamix": o_ademamix,
    "adopt": o_adopt,
    "madgrad": o_madgrad,
    "prodigy": o_prodigy,
    "dog": o_dog,
    "dowg": o_dowg,
    "dadapt-adamw": o_dadapt_adamw,
    "cocob": o_cocob,
    "sophia": o_sophia,
    "adafactor": o_adafactor,
    "sm3": o_sm3,
    "muon": o_muon,
    "schedule-free sgd": o_free_sgd,
    "schedule-free adamw": o_free_adamw,
}


def optax_clips(d: Draw, o: Any) -> tuple[Parts, list[Any]]:
    """Gradient transforms of a chain, ours and optax's."""
    limit = d.log(0.1, 3.0)
    return d.one_of(
        ([optim.Regularize(l2=limit)], [o.add_decayed_weights(limit)]),
        ([], []),
        ([optim.ClipByValue(limit)], [o.clip(limit)]),
        ([optim.ClipByGlobalNorm(limit)], [o.clip_by_global_norm(limit)]),
        ([optim.AdaptiveGradientClip(limit)], [o.adaptive_grad_clip(limit)]),
        ([optim.Centralize()], [o.centralize()]),
        ([optim.ClipByGlobalNorm(limit), optim.ClipByValue(0.2)], [o.clip_by_global_norm(limit), o.clip(0.2)]),
    )


# --- Keras ---------------------------------------------------------------------------------------------------------------


def keras_adam(d: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    b1, b2, epsilon = d.beta(), d.beta(), d.epsilon()
    return {"beta1": b1, "beta2": b2, "epsilon": epsilon}, {"beta_1": b1, "beta_2": b2, "epsilon": epsilon}


def k_sgd(d: Draw) -> Any:
    momentum, nesterov = d.one_of(0.0, d.uniform(0.1, 0.99)), d.flag()
    theirs = {"momentum": momentum, "nesterov": nesterov}
    if momentum:
        return optim.SGD(d.rate, momentum, nesterov=nesterov, compat="keras"), theirs
    decay = d.decay()
    return optim.SGD(d.rate, weight_decay=decay, compat="keras"), {"weight_decay": decay, **theirs}


def k_rmsprop(d: Draw) -> Any:
    rho, epsilon, momentum, centered = d.uniform(0.3, 0.99), d.epsilon(), d.one_of(0.0, d.uniform(0.1, 0.99)), d.flag()
    made = optim.RMSprop(d.rate, rho, epsilon, momentum, centered=centered, compat="keras")
    return made, {"rho": rho, "epsilon": epsilon, "momentum": momentum, "centered": centered}


def k_adam(d: Draw) -> Any:
    (ours, theirs), amsgrad = keras_adam(d), d.flag()
    made = optim.Adam(d.rate, compat="keras", amsgrad="raw" if amsgrad else None, **ours)
    return made, {**theirs, "amsgrad": amsgrad}


def k_adamw(d: Draw) -> Any:
    (ours, theirs), amsgrad, decay = keras_adam(d), d.flag(), d.decay()
    made = optim.AdamW(d.rate, compat="keras", weight_decay=decay, amsgrad=amsgrad, **ours)
    return made, {**theirs, "amsgrad": amsgrad, "weight_decay": decay}


def k_adadelta(d: Draw) -> Any:
    given = {"rho": d.beta(), "epsilon": d.epsilon()}
    return optim.Adadelta(d.rate, **given, compat="keras"), given


def k_adagrad(d: Draw) -> Any:
    first, epsilon = d.decay(), d.epsilon()
    made = optim.Adagrad(d.rate, initial_accumulator=first, epsilon=epsilon, compat="keras")
    return made, {"initial_accumulator_value": first, "epsilon": epsilon}


def k_adamax(d: Draw) -> Any:
    ours, theirs = keras_adam(d)
    return optim.Adamax(d.rate, compat="keras", **ours), theirs


def k_nadam(d: Draw) -> Any:
    ours, theirs = keras_adam(d)
    return optim.NAdam(d.rate, compat="keras", **ours), theirs


def k_ftrl(d: Draw) -> Any:
    power, first, l1, l2, shrinkage, beta = -d.uniform(), d.log(1e-2, 1.0), *(d.decay() for _ in range(4))
    made = optim.FTRL(d.rate, power, first, l1, l2, shrinkage, beta, compat="keras")
    return made, {
        "learning_rate_power": power,
        "initial_accumulator_value": first,
        "l1_regularization_strength": l1,
        "l2_regularization_strength": l2,
        "l2_shrinkage_regularization_strength": shrinkage,
        "beta": beta,
    }


def k_lion(d: Draw) -> Any:
    b1, b2, decay = d.uniform(0.1, 0.99), d.beta(), d.decay()  # Keras refuses a beta_1 of 0
    made = optim.Lion(d.rate, b1, b2, decay, compat="keras")
    return made, {"beta_1": b1, "beta_2": b2, "weight_decay": decay}


def k_lamb(d: Draw) -> Any:
    (ours, theirs), decay = keras_adam(d), d.decay()
    return optim.LAMB(d.rate, compat="keras", weight_decay=decay, **ours), {**theirs, "weight_decay": decay}


def k_adafactor(d: Draw) -> Any:
    decay, epsilon1, epsilon2, clipping = -d.uniform(0.3, 1.0), d.log(1e-30, 1e-3), d.log(1e-4, 1e-1), d.log(0.3, 3.0)
    d.constant("keras: decay before the step", where=False)
    made = optim.Adafactor(d.rate, decay, epsilon1, epsilon2, clipping, compat="keras")
    # Keras bounds the rate by 1 / sqrt(step) whatever relative_step says.
    return made, {
        "beta_2_decay": decay, "epsilon_1": epsilon1, "epsilon_2": epsilon2, "clip_threshold": clipping,
        "relative_step": d.flag(),
    }  # fmt: skip


def k_muon(d: Draw) -> Any:
    momentum, nesterov, steps, decay = d.uniform(0.1, 0.99), d.flag(), int(d.random.integers(1, 7)), d.decay()
    d.constant("muon: norm", where=False)
    made = optim.Muon(d.rate, momentum, decay, epsilon=1e-30, iterations=steps, nesterov=nesterov, compat="keras")
    return made, {"momentum": momentum, "nesterov": nesterov, "ns_steps": steps, "weight_decay": decay}


def k_free(d: Draw) -> Any:
    ours, theirs = keras_adam(d)
    ours["beta1"] = theirs["beta_1"] = d.uniform(0.1, 0.99)
    decay = d.decay()
    made = optim.ScheduleFreeAdamW(d.rate, compat="keras", weight_decay=decay, **ours)
    return made, {**theirs, "weight_decay": decay}


# Keras' optimizers, and whether their weight decay is a part after the optimizer.
IN_KERAS: dict[str, tuple[Callable[[Draw], Any], bool]] = {
    "SGD": (k_sgd, False),
    "RMSprop": (k_rmsprop, True),
    "Adam": (k_adam, True),
    "AdamW": (k_adamw, False),
    "Adadelta": (k_adadelta, True),
    "Adagrad": (k_adagrad, True),
    "Adamax": (k_adamax, True),
    "Nadam": (k_nadam, True),
    "Ftrl": (k_ftrl, False),
    "Lion": (k_lion, False),
    "Lamb": (k_lamb, False),
    "Adafactor": (k_adafactor, False),
    "Muon": (k_muon, False),
    "ScheduleFreeAdamW": (k_free, False),
}


def keras_clips(d: Draw) -> tuple[Parts, dict[str, Any]]:
    limit = d.log(0.1, 3.0)
    return d.one_of(
        ([], {}),
        ([optim.ClipByNorm(limit)], {"clipnorm": limit}),
        ([optim.ClipByGlobalNorm(limit)], {"global_clipnorm": limit}),
        ([optim.ClipByValue(limit)], {"clipvalue": limit}),
    )
