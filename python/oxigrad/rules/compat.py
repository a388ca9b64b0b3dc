"""Presets: the hyperparameters with which optimizers give the numbers of PyTorch, optax and Keras."""

from collections.abc import Iterable, Mapping
from typing import Any

# By optimizer and library, the hyperparameters that differ from our defaults. An empty row means that none does; a missing row,
# that the library has no such optimizer. Learning rates are given where a library has a default.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "SGD": {"torch": {}, "optax": {}, "keras": {"learning_rate": 0.01, "rate_before_momentum": True}},
    "ASGD": {"torch": {"lambd": 1e-4, "t0": 1_000_000, "lag": True}},
    "OptimisticSGD": {"optax": {}},
    "Rprop": {"torch": {}, "optax": {"late": True}},
    "Signum": {"optax": {}},
    "Lion": {"optax": {"weight_decay": 1e-3}, "keras": {"learning_rate": 1e-3}},
    "LARS": {"optax": {}},
    "Fromage": {"optax": {}},
    "Adagrad": {
        "torch": {},
        "optax": {"initial_accumulator": 0.1, "epsilon": 1e-7, "epsilon_mode": "inside"},
        "keras": {"learning_rate": 1e-3, "initial_accumulator": 0.1, "epsilon": 1e-7, "epsilon_mode": "inside"},
    },
    "Adadelta": {"torch": {}, "optax": {}, "keras": {"learning_rate": 1e-3, "rho": 0.95, "epsilon": 1e-7}},
    "RMSprop": {
        "torch": {},
        "optax": {"rho": 0.9, "epsilon_mode": "inside", "rate_before_momentum": True},
        "keras": {
            "learning_rate": 1e-3,
            "rho": 0.9,
            "epsilon": 1e-7,
            "epsilon_mode": "inside",
            "rate_before_momentum": True,
        },
    },
    "FTRL": {"keras": {}},
    "MADGRAD": {"optax": {}},
    "Adam": {"torch": {}, "optax": {}, "keras": {"epsilon": 1e-7, "epsilon_mode": "hat"}},
    "AdamW": {
        "torch": {},
        "optax": {"weight_decay": 1e-4},
        "keras": {"weight_decay": 4e-3, "epsilon": 1e-7, "epsilon_mode": "hat"},
    },
    "Adamax": {
        "torch": {},
        "optax": {},
        "keras": {"learning_rate": 1e-3, "epsilon": 1e-7, "epsilon_mode": "outside"},
    },
    "NAdam": {
        "torch": {},
        "optax": {"constant_momentum": True},
        "keras": {"learning_rate": 1e-3, "momentum_decay": 1.0, "epsilon": 1e-7},
    },
    "RAdam": {"torch": {}, "optax": {"epsilon_mode": "outside"}},
    "OptimisticAdam": {"optax": {}},
    "AdaBelief": {"optax": {}},
    "AdEMAMix": {"optax": {}},
    "ADOPT": {"optax": {}},
    "Adan": {"optax": {"epsilon_root": 1e-8, "proximal": False, "change_weight": "1 - beta2"}},
    "Yogi": {"optax": {"initial_moment": 1e-6}},
    "LAMB": {"optax": {}, "keras": {"epsilon": 1e-7, "decoupled": True}},
    "NovoGrad": {"optax": {}},
    "Sophia": {"optax": {"weight_decay": 1e-4}},
    "Prodigy": {"optax": {}},
    "Adafactor": {
        "torch": {},
        "optax": {
            "learning_rate": 1.0,
            "epsilon1": 1e-30,
            "add_epsilon": True,
            "factored": "largest",
            "min_factored": 128,
            "relative_step": False,
        },
        "keras": {"learning_rate": 1e-3, "epsilon1": 1e-30, "add_epsilon": True},
    },
    "SM3": {"optax": {}},
    "Muon": {
        "torch": {},
        "optax": {"weight_decay": 0.0, "epsilon": 1e-8, "adjust": "transposed", "debias": True},
        "keras": {"weight_decay": 4e-3, "adjust": "match_rms_adamw"},
    },
    "LBFGS": {"torch": {"history": 100, "line_search": None}},
    "ScheduleFreeSGD": {"optax": {}},
    "ScheduleFreeAdamW": {"optax": {}, "keras": {"weight_power": 0.0, "decoupled": True}},
    "EMA": {
        "torch": {"average_from": "first_step"},
        "optax": {"average_from": "zeros"},
        "keras": {"average_from": "first_step", "decay": 0.99},
    },
    "SWA": {"torch": {}},
    "WeightDecay": {"optax": {"weight_decay": 1e-4}},
}


def filled_in(name: str, library: str | None, positional: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters ``given``, and those of the preset that are neither among them nor among the ``positional``."""
    values = preset(name, library) if library is not None else {}
    return {**{n: v for n, v in values.items() if n not in positional}, **given}


def preset(name: str, library: str) -> dict[str, Any]:
    """The default hyperparameters of a library's optimizer that differ from ours.

    Raises `ValueError` where the library has no such optimizer.

    >>> preset("RMSprop", "optax")
    {'rho': 0.9, 'epsilon_mode': 'inside', 'rate_before_momentum': True}
    """
    found = PRESETS.get(name, {})
    if library not in found:
        known = ", ".join(repr(each) for each in found) or "None"
        raise ValueError(f"{name}: compat is {library!r}: expected {known}")
    return dict(found[library])
