"""Optimizers as plain data: configurations, and optimizers made from them."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad._registry import Registry
from oxigrad.optim import param_groups
from oxigrad.optim.hyperparameters import from_plain
from oxigrad.optim.loss_scale import LossScale

# The constructors of optimizers and parts of chains, by the names in configurations. Classes that are dropped are removed.
REGISTRY: Registry[Callable[..., Any]] = Registry()

# Names that earlier versions wrote into configurations: of classes, and of hyperparameters by their class.
RENAMED = {
    "Average": "EMA",
    "Clip": "ClipByValue",
    "ClipAdaptive": "AdaptiveGradientClip",
    "ClipGlobalNorm": "ClipByGlobalNorm",
    "ClipNorm": "ClipByNorm",
    "Decay": "WeightDecay",
    "Momentum": "SGD",
    "StochasticAverage": "SWA",
}
# Hyperparameters that classes of earlier versions had by default, where those that took their place have others.
EARLIER_DEFAULTS = {"Momentum": {"momentum": 0.9}}
RENAMED_HYPERPARAMETERS = {
    "LARS": {"trust": "trust_coefficient"},
    "Lookahead": {"every": "sync_period", "share": "slow_step_size"},
}

# The options that optimizers have by keyword, as they are by default.
OPTIONS = {
    "seed": 0,
    "accumulate": 1,
    "nonfinite": "propagate",
    "loss_scale": None,
    "zero_gradients": False,
    "sparse": "dense",
    "slot_dtype": None,
    "master": False,
    "rounding": "nearest",
    "groups": None,
    "dtype": None,
}


def from_config(config: Mapping[str, Any]) -> Any:
    """The optimizer that `get_config` wrote down; user-defined ones must have been defined before, and be there still.

    >>> from oxigrad import schedules
    >>> from oxigrad.optim import SGD
    >>> from_config(SGD(learning_rate=schedules.linear(0.1, 0.0, 10)).get_config())
    SGD(learning_rate=linear(initial=0.1, final=0.0, steps=10), momentum=0.0, nesterov=False, weight_decay=0.0, dampening=0.0)
    """
    values = dict(config)
    name = values.pop("optimizer", None) or values.pop("part", None)
    values = {**EARLIER_DEFAULTS.get(name, {}), **values}
    name = RENAMED.get(name, name)
    values = {RENAMED_HYPERPARAMETERS.get(name, {}).get(key, key): value for key, value in values.items()}
    parts = values.pop("parts", ())
    if found := values.get("groups"):
        values["groups"] = {param_groups.from_plain(pattern): group and _read(group) for pattern, group in found}
    if found := values.get("loss_scale"):
        values["loss_scale"] = LossScale(**found)
    if (make := REGISTRY.get(name)) is None:
        raise ValueError(f"optimizer is {name!r}: expected one of {', '.join(sorted(REGISTRY))}")
    return make(*map(_part, parts), **_read(values))


def is_importable(cls: type) -> bool:
    """Whether a class is what its module has under its name, so that pickle finds it there."""
    return getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


def restored(config: Mapping[str, Any], state: Mapping[str, Any], *classes: type) -> Any:
    """The optimizer that was taken apart by pickle; its classes, once they are imported, are known by name."""
    made = from_config(config)
    made.load_state_dict(state)
    return made


def _part(part: Any) -> Any:
    """A part of a chain; of a partition, a pattern and its optimizer."""
    if isinstance(part, Mapping):
        return from_config(part)
    pattern, config = part
    return param_groups.from_plain(pattern), config and from_config(config)


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if name in OPTIONS else from_plain(value) for name, value in values.items()}
