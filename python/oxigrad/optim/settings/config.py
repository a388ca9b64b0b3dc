"""Configurations: optimizers as plain data, and back."""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad._names import Registry, nearest
from oxigrad._typing import Config
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.hyperparameters import from_plain
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.step.state.state_dict import Report

# The classes of optimizers and transforms by their names in configurations; weak, so that unused classes are freed.
REGISTRY: Registry[Callable[..., Any]] = Registry()


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
    """The optimizer of a configuration by `get_config`.

    Raises `ValueError` where its class is not defined, `TypeError` for anything but a dict.

    Args:
        config: dict that ``get_config`` of an optimizer returned.

    >>> from oxigrad import schedules
    >>> from oxigrad.optim import SGD
    >>> from_config(SGD(learning_rate=schedules.linear(0.1, 0.0, 10)).get_config())
    SGD(learning_rate=linear(initial=0.1, final=0.0, steps=10), momentum=0.0, nesterov=False, weight_decay=0.0,
    dampening=0.0, rate_before_momentum=False)
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"the configuration is {type(config).__name__}: expected a dict, the result of get_config")
    values = dict(config)
    name = values.pop("optimizer", None) or values.pop("part", None)
    parts = values.pop("parts", ())
    if plain := values.get("groups"):
        values["groups"] = {param_groups.from_plain(pattern): group and _read(group) for pattern, group in plain}
    if plain := values.get("loss_scale"):
        values["loss_scale"] = LossScale(**plain)
    if (make := REGISTRY.get(name)) is None:
        near = nearest(name, REGISTRY) if isinstance(name, str) else ""
        hint = f" (did you mean {near}?)" if near else ""
        raise ValueError(
            f"optimizer is {name!r}{hint}: expected the name of a class of oxigrad.optim or oxigrad.distributed, or of "
            "one that this program defined before"
        )
    return construct(make, *map(_part, parts), **_read(values))


def other_names(name: str, config: Config | None, state: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of an optimizer and of that of a state, each with the names of its parts, where they differ."""
    if state["optimizer"] != name:
        return name, state["optimizer"]
    if config is None or state["config"] is None:
        return None
    ours, others = _names(config), _names(state["config"])
    return None if ours == others else (", ".join(sorted(ours)), ", ".join(sorted(others)))


def _names(config: Any) -> set[str]:
    """The names of the optimizers and transforms in a configuration."""
    if isinstance(config, Mapping):
        names = {str(config[key]) for key in ("optimizer", "part") if key in config}
        return names.union(*map(_names, config.get("parts", ())))
    return set().union(*map(_names, config)) if isinstance(config, (list, tuple)) else set()


def construct(make: Callable[..., Any], *args: Any, **values: Any) -> Any:
    """The optimizer or transform by these arguments.

    Raises `TypeError` for a subclass whose own constructor does not take them.
    """
    try:
        return make(*args, **values)
    except TypeError:
        try:
            inspect.signature(make.__init__).bind(make, *args, **values)
        except TypeError as error:
            raise TypeError(
                f"{make.__name__}: {error}: expected a constructor that takes hyperparameters and options by "
                "keyword, as from_config, pickle and copies of parts give them"
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


def remind(report: Report, name: str, part: Any, before: Any, remembered: Any) -> None:
    """Loads the state of a part; where the part raises, restores the previous one, and reports the error."""
    try:
        part.load_state_dict(remembered)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        part.load_state_dict(before)
        report.mismatched.append(f"{name}: {error}")


def _part(part: Any) -> Any:
    """A part of a chain, or a pattern of a partition with its optimizer."""
    if isinstance(part, Mapping):
        return from_config(dict(part))
    pattern, config = part
    return param_groups.from_plain(pattern), config and from_config(config)


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if name in OPTIONS else from_plain(value) for name, value in values.items()}
