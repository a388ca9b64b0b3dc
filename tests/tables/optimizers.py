"""The tables of optimizers that drive the tests."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from oxigrad import optim
from oxigrad.optim import (
    ADOPT,
    ASGD,
    FTRL,
    LAMB,
    LARS,
    MADGRAD,
    SGD,
    AdaBelief,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    AdEMAMix,
    Lion,
    NAdam,
    NovoGrad,
    Prodigy,
    RAdam,
    RMSprop,
    Rprop,
    ScheduleFreeSGD,
    Yogi,
)
from oxigrad.optim.table.row import TABLE
from oxigrad.step.pure import functional, fused

Make = Callable[[], Any]


def variants(*, elementwise: bool) -> dict[str, Make]:
    """Of each optimizer whose rule is elementwise, or is not, one for each flag that gives it another kernel."""
    return {
        name: functools.partial(row.optimizer, **{"learning_rate": 0.1, **values})
        for row in TABLE.values()
        for name, values in row.variants.items()
        if row.optimizer._rule.elementwise is elementwise
    }


# Every test of executors runs over all of these.
OPTIMIZERS = variants(elementwise=True)
# The optimizers of elementwise rules that reproduce PyTorch's.
IN_TORCH = [name for name, row in TABLE.items() if "torch" in row.presets and row.optimizer._rule.elementwise]
# Rules that are called on whole arrays; Muon, for matrices alone, is not among them.
WHOLE = variants(elementwise=False)


def slot_dtype_for(opt: Any, kind: str) -> str | None:
    """The dtype of moments as an option; None for an optimizer that has none, and refuses it, or that reads no codes."""
    rule, absent = (opt._rule, ()) if isinstance(opt, type) else opt._rules_and_absent()[0]
    keeps = any(slot.is_moment and slot.name not in absent for slot in rule.slots)
    return kind if keeps and (rule.elementwise or not kind.endswith("bit")) else None


# The optimizer of each trajectory in tests/golden/measured_trajectories.json, which notes settings other than defaults.
FOLLOWERS: dict[str, Make] = {
    "optax_adam": lambda: Adam(0.1, compat="optax"),
    "optax_amsgrad": lambda: Adam(0.1, compat="optax", amsgrad="corrected"),
    "optax_adagrad": lambda: Adagrad(0.1, compat="optax"),
    "optax_rmsprop": lambda: RMSprop(0.1, compat="optax"),
    "optax_nadam": lambda: NAdam(0.1, compat="optax"),
    "optax_radam": lambda: RAdam(0.1, compat="optax"),
    "optax_adabelief": lambda: AdaBelief(0.1, compat="optax"),
    "optax_lion": lambda: Lion(0.1, compat="optax"),
    "optax_adamw": lambda: AdamW(0.1, compat="optax"),
    "optax_adamax": lambda: Adamax(0.1, compat="optax"),
    "optax_lamb": lambda: LAMB(0.1, compat="optax", weight_decay=0.1),
    "optax_lars": lambda: LARS(0.1, compat="optax", weight_decay=0.1, trust_coefficient=0.1),
    "optax_yogi": lambda: Yogi(0.1, compat="optax"),
    "optax_novograd": lambda: NovoGrad(0.1, compat="optax"),
    "optax_rprop": lambda: Rprop(0.1, compat="optax"),
    "optax_adadelta": lambda: Adadelta(0.1, compat="optax"),
    "optax_sf_sgd": lambda: ScheduleFreeSGD(0.1, compat="optax"),
    "optax_ademamix": lambda: AdEMAMix(0.1, compat="optax"),
    "optax_adopt": lambda: ADOPT(0.1, compat="optax"),
    "optax_madgrad": lambda: MADGRAD(0.1, compat="optax"),
    "optax_prodigy": lambda: Prodigy(compat="optax"),
    "keras_adam": lambda: Adam(0.1, compat="keras"),
    "keras_amsgrad": lambda: Adam(0.1, compat="keras", amsgrad="raw"),
    "keras_adagrad": lambda: Adagrad(0.1, compat="keras"),
    "keras_rmsprop": lambda: RMSprop(0.1, compat="keras"),
    "keras_nadam": lambda: NAdam(0.1, compat="keras"),
    "keras_adamax": lambda: Adamax(0.1, compat="keras"),
    "keras_adadelta": lambda: Adadelta(0.1, compat="keras"),
    "keras_ftrl": lambda: FTRL(0.1, compat="keras"),
    "keras_lion": lambda: Lion(0.1, compat="keras"),
    "keras_lamb": lambda: LAMB(0.1, compat="keras"),
    "torch_sgd_nesterov": lambda: SGD(0.1, 0.9, compat="torch", nesterov=True, weight_decay=0.1),
    "torch_sgd_damp": lambda: SGD(0.1, 0.9, compat="torch", dampening=0.5),
    "torch_adam": lambda: Adam(0.1, compat="torch"),
    "torch_adam_l2": lambda: optim.chain(optim.Regularize(l2=0.1), Adam(0.1, compat="torch")),
    "torch_adamw": lambda: AdamW(0.1, compat="torch"),
    "torch_amsgrad": lambda: Adam(0.1, compat="torch", amsgrad="raw"),
    "torch_adagrad": lambda: Adagrad(0.1, compat="torch", rate_decay=0.1),
    "torch_adadelta": lambda: Adadelta(0.1, compat="torch"),
    "torch_adamax": lambda: Adamax(0.1, compat="torch"),
    "torch_nadam": lambda: NAdam(0.1, compat="torch"),
    "torch_radam": lambda: RAdam(0.1, compat="torch"),
    "torch_rmsprop": lambda: RMSprop(0.1, compat="torch"),
    "torch_rmsprop_cm": lambda: RMSprop(0.1, compat="torch", centered=True, momentum=0.9),
    "torch_rprop": lambda: Rprop(0.1, compat="torch"),
    "torch_asgd": lambda: ASGD(0.1, compat="torch", t0=1),
}

# The optimizers of the cases in tests/golden/golden_cases.json with one parameter.
CASES: dict[str, Make] = {
    "keras_adamw": lambda: AdamW(1.0, compat="keras", weight_decay=0.5, epsilon=2),
    "keras_adam_amsgrad": lambda: Adam(1e-3, compat="keras", amsgrad="raw"),
    "keras_adagrad": lambda: Adagrad(0.2, compat="keras", initial_accumulator=0.3, epsilon=1e-6),
    "keras_adamax": lambda: Adamax(0.2, 0.85, 0.95, 1e-6, compat="keras"),
    "keras_rmsprop_centered": lambda: RMSprop(1e-3, compat="keras", centered=True),
    "keras_adadelta": lambda: Adadelta(1.0, compat="keras", rho=0.8, epsilon=1e-6),
    "swift_adam_1000": lambda: Adam(1e-3, epsilon=1e-7),
    "swift_rmsprop_1000": lambda: RMSprop(1e-3, 0.9, 1e-7),
    "swift_adagrad_1000": lambda: Adagrad(1e-3, initial_accumulator=0.1, epsilon=1e-7),
    "swift_adadelta_1000": lambda: Adadelta(1e-3, 0.95, 1e-7),
    "swift_adamax_1000": lambda: Adamax(1e-3, epsilon=1e-7),
    "swift_sgd_1000": lambda: SGD(1e-3),
    "lars_paper": lambda: LARS(0.1, weight_decay=0.1, trust_coefficient=0.1, norms="separate"),
}

# Torch's names for hyperparameters, in our words.
WORDS = {
    "lr": "learning_rate",
    "eps": "epsilon",
    "lr_decay": "rate_decay",
    "initial_accumulator_value": "initial_accumulator",
    "betas": ("beta1", "beta2"),
    "etas": ("eta_minus", "eta_plus"),
    "step_sizes": ("min_size", "max_size"),
}
WORDS_OF = {"RMSprop": {"alpha": "rho"}, "Adafactor": {"eps": ("epsilon1", "epsilon2"), "d": "clipping"}}


def like_torch(name: str, given: dict[str, Any]) -> Any:
    """Our optimizer for the arguments of torch's."""
    found: dict[str, Any] = {}
    for word, value in given.items():
        ours = WORDS_OF.get(name, {}).get(word) or WORDS.get(word, word)
        values = value if isinstance(ours, tuple) else (value,)
        found |= {
            n: v if isinstance(v, bool) else float(v)
            for n, v in zip(ours if isinstance(ours, tuple) else (ours,), values, strict=True)
        }
    before, after = [optim.Maximize()] if found.pop("maximize", False) else [], []
    made = getattr(optim, name)
    is_decoupled = found.pop("decoupled_weight_decay", False)
    if "weight_decay" in found and "weight_decay" not in made._declared:
        decay = found.pop("weight_decay")
        after = [optim.WeightDecay(decay)] if is_decoupled else []
        before += [] if is_decoupled else [optim.Regularize(l2=decay)]
    return optim.chain(*before, made(**found, compat="torch"), *after)


# --- steps of each ------------------------------------------------------------------------------------------------------

LENGTHS = [0, 1, 7, 8, 15, 16, 17, 1023, 1024, 1025, 5000]


def problem(dtype: Any, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model of leaves of many lengths and shapes, and its gradient."""
    generator = np.random.default_rng(seed)
    shapes = [(n,) for n in LENGTHS] + [(), (3, 5), (2, 0, 3), (4, 3, 2)]
    draw = lambda: {f"p{i}": np.asarray(generator.standard_normal(s)).astype(dtype) for i, s in enumerate(shapes)}  # noqa: E731
    return draw(), draw()


def run(name: str, model: Any, grads: Any, steps: int = 3) -> tuple[Any, Any]:
    opt = OPTIMIZERS[name]()
    for _ in range(steps):
        model = opt.update(model, grads)
    return model, opt


def by_rules(opt: Any, params: Any, grads: Any, state: Any, **given: Any) -> tuple[Any, Any]:
    """`Optimizer.apply` by rules called on arrays: the formulas, which kernels are compared with."""
    with mock.patch.object(functional, "run_rules", lambda leaves, _, seed: fused._called(leaves, seed)):
        return opt.apply(params, grads, state, **given)
