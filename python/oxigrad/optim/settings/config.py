"""Configurations: optimizers as plain data, and back."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad._names import Registry
from oxigrad._typing import Config
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.hyperparameters import from_plain
from oxigrad.optim.settings.loss_scale import LossScale

# The classes of optimizers and transforms by their names in configurations; weak, so that unused classes are freed.
REGISTRY: Registry[Callable[..., Any]] = Registry()


def _rule_name(name: str) -> str:
    """The name of the rule of a class."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


# Names in configurations of earlier versions: of classes, and of hyperparameters by class.
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
# Defaults of earlier versions that differ from those of the classes that replace them.
EARLIER_DEFAULTS = {"Momentum": {"momentum": 0.9}}
RENAMED_HYPERPARAMETERS = {
    "LARS": {"trust": "trust_coefficient"},
    "Lookahead": {"every": "sync_period", "share": "slow_step_size"},
}

# Names of rules in the states of chains of earlier versions: those of the classes, in small letters.
RENAMED_RULES = {_rule_name(before): _rule_name(name) for before, name in RENAMED.items()}

# The defaults of the options of optimizers.
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
    "record_norms": (),
    "state_device": None,
    "groups": None,
    "dtype": None,
}


def from_config(config: Config) -> Any:
    """The optimizer of a configuration by `get_config`. Raises `ValueError` where its class is not defined, `TypeError` for anything but a dict.

    >>> from oxigrad import schedules
    >>> from oxigrad.optim import SGD
    >>> from_config(SGD(learning_rate=schedules.linear(0.1, 0.0, 10)).get_config())
    SGD(learning_rate=linear(initial=0.1, final=0.0, steps=10), momentum=0.0, nesterov=False, weight_decay=0.0, dampening=0.0, rate_before_momentum=False)
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"the configuration is {type(config).__name__}: expected a dict, the result of get_config")
    values = dict(config)
    name = values.pop("optimizer", None) or values.pop("part", None)
    values = {**EARLIER_DEFAULTS.get(name or "", {}), **values}
    name = RENAMED.get(name, name)
    values = {RENAMED_HYPERPARAMETERS.get(name or "", {}).get(key, key): value for key, value in values.items()}
    parts = values.pop("parts", ())
    if plain := values.get("groups"):
        values["groups"] = {param_groups.from_plain(pattern): group and _read(group) for pattern, group in plain}
    if plain := values.get("loss_scale"):
        values["loss_scale"] = LossScale(**plain)
    if (make := REGISTRY.get(name)) is None:
        raise ValueError(f"optimizer is {name!r}: expected one of {', '.join(sorted(REGISTRY))}")
    return construct(make, *map(_part, parts), **_read(values))


def construct(make: Callable[..., Any], *args: Any, **values: Any) -> Any:
    """The optimizer or transform by these arguments. Raises `TypeError` for a subclass whose own constructor does not take them."""
    try:
        return make(*args, **values)
    except TypeError:
        try:
            inspect.signature(make.__init__).bind(make, *args, **values)
        except TypeError as error:
            raise TypeError(
                f"{make.__name__}: {error}: expected a constructor that takes hyperparameters and options by keyword, as "
                "from_config, pickle and copies of parts give them"
            ) from None
        raise


def register_subclass(cls: Any) -> None:
    """Registers a subclass of an optimizer or a transform that has its rule."""
    if cls._declared and "_declared" not in vars(cls):
        REGISTRY[cls.__name__] = cls


def is_importable(cls: type) -> bool:
    """Whether a class can be imported by its module and name, as pickle requires."""
    return getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


def restored(config: Config, state: Mapping[str, Any], *classes: type) -> Any:
    """The unpickled optimizer. Its ``classes`` are arguments so that the modules that register them are imported."""
    optimizer = from_config(config)
    optimizer.load_state_dict(state)
    return optimizer


def with_present_names(state: Any, expected: str) -> Any:
    """A state of the optimizer ``expected`` by an earlier version, with current names; any other state unchanged."""
    name = state.get("optimizer") if isinstance(state, Mapping) else None
    if not isinstance(name, str) or name == expected:
        return state
    rules = [RENAMED_RULES.get(rule, rule) for rule in name.split(" then ")]
    present = " then ".join(rules) if len(rules) > 1 else RENAMED.get(name, name)
    if name == "Momentum" and isinstance(state.get("slots"), Mapping):
        state = {**state, "slots": {path: _with_momentum(state, path, slots) for path, slots in state["slots"].items()}}
    return {**state, "optimizer": present}


def _with_momentum(state: Mapping[str, Any], path: str, slots: Any) -> Any:
    """The slots of a parameter, without the slot ``m`` that Momentum had where its momentum was 0, and `SGD` does not have."""
    config = state.get("config")
    if not (isinstance(config, Mapping) and isinstance(slots, Mapping) and "m" in slots):
        return slots
    groups = {param_groups.from_plain(pattern): values for pattern, values in config.get("groups") or ()}
    at = param_groups.first_match(groups, path, slots["m"])
    values = {"momentum": 0.9, **config, **((at is not None and [*groups.values()][at]) or {})}
    return slots if values["momentum"] else {name: array for name, array in slots.items() if name != "m"}


def _part(part: Any) -> Any:
    """A part of a chain, or a pattern of a partition with its optimizer."""
    if isinstance(part, Mapping):
        return from_config(dict(part))
    pattern, config = part
    return param_groups.from_plain(pattern), config and from_config(config)


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if name in OPTIONS else from_plain(value) for name, value in values.items()}
