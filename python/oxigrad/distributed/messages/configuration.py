"""Configurations that the workers of a job compare: of any optimizer, and as plain data."""

from collections.abc import Collection, Iterable
from typing import Any

from oxigrad._typing import Config
from oxigrad.extend import OPTIONS, WrappingOptimizer, config_of, number

# Options that are among the parts of an optimizer.
_PARTS = {"groups", "loss_scale"}


def settings_of(optimizer: Any) -> Any:
    """An optimizer's configuration as plain data, with all options, and the names of the user's functions in it.

    >>> from oxigrad import optim
    >>> settings_of(optim.SGD(lambda step: 0.1))["learning_rate"]
    'the function <lambda>'
    """
    if (config := config_of(optimizer)) is not None:
        return {**{name: plain(value) for name, value in OPTIONS.items()}, **config}
    options = {name: getattr(optimizer, name, value) for name, value in OPTIONS.items() if name not in _PARTS}
    values = {**options, **WrappingOptimizer.hyperparameters_of(optimizer)}
    return {"optimizer": optimizer.name, **{name: plain(value) for name, value in values.items()}}


def options_set(optimizer: Any, names: Collection[str]) -> list[str]:
    """The options among ``names`` that an optimizer has at other values than the defaults, in their order.

    >>> from oxigrad import optim
    >>> options_set(optim.SGD(accumulate=2, seed=1), {"accumulate", "loss_scale"})
    ['accumulate']
    """
    values = {name: getattr(optimizer, name) for name in OPTIONS if name in names}
    if values.get("loss_scale") is not None and values.get("nonfinite") == "skip":  # which the scale implies
        del values["nonfinite"]
    return [name for name, value in values.items() if value != OPTIONS[name]]


def values_of_functions(optimizer: Any, step: int | None = None) -> Config:
    """The values of the user's functions among an optimizer's hyperparameters, whose names do not tell them apart.

    They are those at the ``step``, by default that of the optimizer.

    >>> from oxigrad import optim
    >>> values_of_functions(optim.SGD(lambda step: 0.1))
    {'learning_rate': 0.1}
    """
    values = WrappingOptimizer.hyperparameters_of(optimizer)
    functions = {name: value for name, value in values.items() if callable(value) and plain(value) == _named(value)}
    return {name: number(value(optimizer.step if step is None else step)) for name, value in functions.items()}


def arguments_of(wrapper: Any, names: Iterable[str]) -> Config:
    """Arguments of a wrapper as plain data."""
    return {name: plain(getattr(wrapper, name)) for name in names}


def plain(value: Any) -> Any:
    """An argument or a hyperparameter as plain data, with the names of functions in place of them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if hasattr(value, "get_config") and (config := config_of(value)) is not None:
        return config
    return _named(value) if callable(value) else str(value)


def _named(function: Any) -> str:
    return f"the function {getattr(function, '__qualname__', type(function).__qualname__)}"
