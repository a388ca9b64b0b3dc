"""Optimizers of `oxigrad.optim` for models of Keras, over its backends of PyTorch and JAX: ``model.compile(optimizer=oxigrad.keras.AdamW(1e-3))``.

Each has the hyperparameters and defaults of the optimizer of `oxigrad.optim` of its name with ``compat="keras"``, where
there is that, and the arguments of `keras.optimizers.Optimizer`. The state is in variables of Keras, so that
``model.save`` and ``load_model`` keep it. Optimizers that see several variables, such as `Prodigy`, and `Muon`, which
takes matrices alone, are not among them.
"""

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from oxigrad import optim, schedules, tree
from oxigrad._names import library, unknown_name

keras: Any = library("keras", "oxigrad.keras needs Keras: python -m pip install keras")

# Optimizers that step each variable by itself, from its gradient alone.
_NAMES = """ADOPT ASGD Adafactor AdaBelief Adadelta Adagrad Adam AdamW Adamax AdEMAMix Adan FTRL Fromage LAMB LARS Lion MADGRAD NAdam NovoGrad
    RAdam RMSprop Rprop SGD SM3 SOAP Shampoo Signum Yogi"""
__all__: list[str] = []
__all__.extend(sorted(_NAMES.split()))  # pyright: ignore[reportUnsupportedDunderAll]
__dir__: Callable[[], list[str]] = __all__.copy

# The arguments of `keras.optimizers.Optimizer`, but for those that an optimizer may have too.
_OF_KERAS = "name clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps"


_DOC = """`oxigrad.optim.{name}` as an optimizer of Keras.

    ``no_weight_decay`` has regular expressions of the paths of variables that have no weight decay. Other arguments are the
    hyperparameters of `oxigrad.optim.{name}`, and the arguments of `keras.optimizers.Optimizer`.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(optimizer={name}(1e-3), loss="mse")
    """


def __getattr__(name: str) -> Any:
    """The optimizer of a name, a class."""
    if name not in __all__:
        raise unknown_name("oxigrad.keras", name, __all__, {})
    return _optimizer(name)


def _of_optim(name: str, **settings: Any) -> Any:
    """An optimizer with Keras' numbers, where it has them."""
    make = getattr(optim, name)
    try:
        return make(**settings, compat="keras")
    except ValueError as error:
        if "compat" not in str(error):
            raise
        return make(**settings)


@functools.cache
def _optimizer(name: str) -> Any:
    """The class of the optimizers of a name, a subclass of `keras.optimizers.Optimizer`."""
    defaults = _of_optim(name)
    # Keras' decay of SGD is decoupled, that of `oxigrad.optim` a part of the gradient.
    others = {"optimizer", "learning_rate", *(["weight_decay"] if name == "SGD" else [])}
    hyperparameters = [key for key in defaults.get_config() if key not in others]
    decays = "weight_decay" in hyperparameters

    def __init__(self: Any, learning_rate: Any = None, *, no_weight_decay: Iterable[str] = (), **settings: Any) -> None:
        of_keras = {key: settings.pop(key) for key in _OF_KERAS.split() if key in settings}
        if not decays:
            of_keras["weight_decay"] = settings.pop("weight_decay", None)
        unknown = settings.keys() - {*hyperparameters}
        if unknown:
            arguments = ["learning_rate", *hyperparameters, "no_weight_decay", *_OF_KERAS.split()]
            raise TypeError(f"{name}: unknown: {', '.join(sorted(unknown))}; its arguments are {', '.join(arguments)}")
        optimizer = _of_optim(name, **settings)
        rate = defaults.learning_rate if learning_rate is None else learning_rate
        keras.optimizers.Optimizer.__init__(self, learning_rate=_rate(rate), **of_keras)
        self.optimizer = optimizer
        self.settings = settings
        self.no_weight_decay = [no_weight_decay] if isinstance(no_weight_decay, str) else [*no_weight_decay]
        if self.no_weight_decay and not decays:
            self.exclude_from_weight_decay(var_names=self.no_weight_decay)

    def build(self: Any, variables: Any) -> None:
        """Creates the variables of the state."""
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)
        self._slots, self._structures = [], []
        for variable in variables:
            leaves, structure = tree.flatten(self.optimizer.init([variable.value]))
            self._structures.append(structure)
            self._slots.append([self._slot(variable, k, leaf) for k, leaf in enumerate(leaves)])

    def _slot(self: Any, variable: Any, number: int, leaf: Any) -> Any:
        value = keras.ops.convert_to_tensor(leaf)
        slot = self.add_variable(
            tuple(value.shape), "zeros", keras.backend.standardize_dtype(value.dtype), name=f"{variable.name}_{number}"
        )
        slot.assign(value)
        return slot

    def update_step(self: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Steps one variable."""
        at = self._get_variable_index(variable)
        slots = self._slots[at]
        state = tree.unflatten(self._structures[at], [slot.value for slot in slots])
        named = {"learning_rate": keras.ops.cast(learning_rate, variable.dtype)}
        if decays and any(re.search(pattern, variable.path) for pattern in self.no_weight_decay):
            named["weight_decay"] = 0.0
        params, state = self.optimizer.apply([variable.value], [gradient], state, **named)
        variable.assign(params[0])
        for slot, leaf in zip(slots, tree.leaves(state), strict=True):
            slot.assign(keras.ops.cast(leaf, slot.dtype))

    def get_config(self: Any) -> dict[str, Any]:
        """The arguments, from which `from_config` makes the same optimizer."""
        config = keras.optimizers.Optimizer.get_config(self)
        if decays:
            del config["weight_decay"]
        return {**config, **self.settings, "no_weight_decay": [*self.no_weight_decay]}

    body = {
        "__init__": __init__,
        "__doc__": _DOC.format(name=name),
        "__module__": __name__,
        "build": build,
        "_slot": _slot,
        "update_step": update_step,
        "get_config": get_config,
    }
    optimizer_class = type(name, (keras.optimizers.Optimizer,), body)
    return keras.saving.register_keras_serializable("oxigrad")(optimizer_class)


def _rate(rate: Any) -> Any:
    """A learning rate for Keras: a schedule of `oxigrad.schedules` becomes one of Keras."""
    if not callable(rate) or isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return rate
    return _schedule()(rate)


@functools.cache
def _schedule() -> Any:
    """The class of schedules of Keras that have the values of one of `oxigrad.schedules`."""

    def __init__(self: Any, schedule: Any) -> None:
        self.schedule = schedules.from_config(schedule) if isinstance(schedule, dict) else schedule

    def __call__(self: Any, step: Any) -> Any:
        return self.schedule(keras.ops.cast(step, keras.backend.floatx()))

    def get_config(self: Any) -> dict[str, Any]:
        return {"schedule": self.schedule.get_config()}

    body = {"__init__": __init__, "__call__": __call__, "get_config": get_config, "__module__": __name__}
    schedule_class = type("Schedule", (keras.optimizers.schedules.LearningRateSchedule,), body)
    return keras.saving.register_keras_serializable("oxigrad")(schedule_class)
