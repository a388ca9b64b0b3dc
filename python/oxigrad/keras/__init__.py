"""Optimizers of `oxigrad.optim` for models of Keras, over its backends of PyTorch and JAX.

``model.compile(optimizer=oxigrad.keras.AdamW(1e-3))``. Each has the hyperparameters and defaults of the optimizer of
`oxigrad.optim` of its name, with ``compat="keras"`` if that exists, and the arguments of `keras.optimizers.Optimizer`.
The state is in variables of Keras, so that ``model.save`` and ``load_model`` keep it. `Muon` updates matrices, and
AdamW the other variables. Optimizers that read the loss, or whose average is the result, are not among them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from oxigrad import optim, schedules, tree
from oxigrad._core import StateError
from oxigrad._names import library, without
from oxigrad.optim.settings.attributes import hint
from oxigrad.optim.settings.hyperparameters import made_as_by

try:
    keras: Any = library("keras", "oxigrad.keras needs Keras: python -m pip install keras")
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "tensorflow":
        raise
    raise ModuleNotFoundError(
        "Keras has the backend of TensorFlow, which is not installed: set the environment variable KERAS_BACKEND to "
        "torch or jax, before Keras is imported",
        name=error.name,
    ) from error

_NAMES = """ADOPT ASGD Adafactor AdaBelief Adadelta Adagrad Adam AdamC AdamW Adamax AdEMAMix Adan DAdaptAdamW DAdaptSGD
    DoG DoWG FTRL Fromage LAMB LARS LaProp Lion MADGRAD NAdam NovoGrad Prodigy RAdam RMSprop Rprop SGD SM3 SOAP Shampoo
    Signum SimplifiedAdEMAMix StableAdamW Yogi"""
__all__: list[str] = []
__all__.extend(sorted(["Muon", *_NAMES.split()]))  # pyright: ignore[reportUnsupportedDunderAll]

# The arguments of `keras.optimizers.Optimizer`, but for those that an optimizer may have too.
_OF_KERAS = """name clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps""".split()

_DOC = """`oxigrad.optim.{name}` as an optimizer of Keras.

    ``no_weight_decay`` has regular expressions of the paths of variables that have no weight decay, beside the
    variables of Keras' method ``exclude_from_weight_decay``. Other arguments are the hyperparameters of
    `oxigrad.optim.{name}`, and the arguments of `keras.optimizers.Optimizer`. Hyperparameters are attributes, which can
    be changed. As in Keras, a train function that is compiled keeps their values: call ``model.compile`` again.

    >>> import keras
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(optimizer={name}(1e-3), loss="mse")
    """


def _of_optim(name: str, **settings: Any) -> Any:
    """An optimizer with Keras' numbers, if it has them."""
    return made_as_by(getattr(optim, name), "keras", **settings)


@keras.saving.register_keras_serializable("oxigrad")
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of `oxigrad.schedules` as a schedule of Keras."""

    def __init__(self, schedule: Any) -> None:
        self.schedule = schedules.from_config(schedule) if isinstance(schedule, dict) else schedule

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step."""
        return self.schedule(keras.ops.cast(step, keras.backend.floatx()))

    def get_config(self) -> dict[str, Any]:
        """The arguments, from which `from_config` makes the same schedule."""
        return {"schedule": self.schedule.get_config()}


def _hyperparameter(name: str) -> property:
    """A hyperparameter of the optimizer of `oxigrad.optim`, which checks the values that are set."""

    def get(self: Any) -> Any:
        return getattr(self._tuned, name)

    def change(self: Any, value: Any) -> None:
        if "_tuned" in vars(self):  # else Keras sets its own
            before = get(self)
            setattr(self._tuned, name, value)
            if self.built and self._initial()[1] != self._structure:
                setattr(self._tuned, name, before)
                raise AttributeError(
                    f"{type(self).__name__}: {name}={value!r} has another state than the one that is built: make a new "
                    "optimizer"
                )
            self.settings[name] = value

    return property(get, change, doc=f"Hyperparameter of the optimizer of `oxigrad.optim`: {name}.")


class _Optimizer(keras.optimizers.Optimizer):
    """Optimizer of Keras that steps all variables together, by the optimizer of `oxigrad.optim` of its name."""

    _hyperparameters: list[str]
    _fixed: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        # Keras' decay of SGD is decoupled, `oxigrad.optim` adds it to the gradient.
        others = {"optimizer", "learning_rate", *(["weight_decay"] if cls.__name__ == "SGD" else [])}
        cls._hyperparameters = [key for key in _of_optim(cls.__name__).get_config() if key not in others]
        for key in {*cls._hyperparameters} - {*dir(keras.optimizers.Optimizer)}:  # Keras' iterations are steps
            setattr(cls, key, _hyperparameter(key))
        keras.saving.register_keras_serializable("oxigrad")(cls)

    def __init__(self, learning_rate: Any = None, *, no_weight_decay: Iterable[str] = (), **settings: Any) -> None:
        name, decays = type(self).__name__, "weight_decay" in self._hyperparameters
        of_keras = {key: settings.pop(key) for key in _OF_KERAS if key in settings}
        if not decays:
            of_keras["weight_decay"] = settings.pop("weight_decay", None)
        if unknown := settings.keys() - {*self._hyperparameters}:
            arguments = ["learning_rate", *self._hyperparameters, "no_weight_decay", *_OF_KERAS]
            raise TypeError(
                f"{name}: unknown: {', '.join(sorted(unknown))}{hint(min(unknown), arguments)}; its arguments are "
                f"{', '.join(arguments)}"
            )
        optimizer: Any = _of_optim(name, **settings)
        rate = optimizer.learning_rate if learning_rate is None else learning_rate
        if callable(rate) and not isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            rate = Schedule(rate)
        super().__init__(learning_rate=rate, **of_keras)
        self.optimizer: Any = optimizer
        self.settings = settings
        self.no_weight_decay: Any = no_weight_decay
        self._groups: dict[Any, dict[str, float]] = {}
        if decays:
            self._groups[lambda index, _: not self._use_weight_decay(self._trainable_variables[int(index)])] = {
                "weight_decay": 0.0
            }
        self._tuned = optimizer

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and name in vars(self):
            raise AttributeError(f"{type(self).__name__}: {name} is fixed at construction: make a new optimizer")
        if "_tuned" in vars(self) and not name.startswith("_"):
            getattr(self, name)
        super().__setattr__(name, _expressions(name, value) if name == "no_weight_decay" else value)

    def __getattr__(self, name: str) -> Any:
        names = () if name.startswith("_") else [each for each in (*vars(self), *dir(type(self))) if each[0] != "_"]
        raise AttributeError(f"{type(self).__name__} has no attribute {name}{hint(name, names)}")

    def _apply_weight_decay(self, variables: Any) -> None:
        if "weight_decay" not in self._hyperparameters:
            super()._apply_weight_decay(variables)

    # Keras asks this method too, for its own decay; it answers for the variables of `exclude_from_weight_decay`.
    def _use_weight_decay(self, variable: Any) -> bool:
        return super()._use_weight_decay(variable) and not _matches(self.no_weight_decay, variable)

    def build(self, variables: Any) -> None:
        """Creates the variables of the state."""
        if self.built:
            return
        super().build(variables)
        leaves, self._structure = self._initial()
        self._slots = [self._slot(number, keras.ops.convert_to_tensor(leaf)) for number, leaf in enumerate(leaves)]

    def _initial(self) -> tuple[list[Any], tree.Structure]:
        """The leaves of a new state of all variables, and their structure."""
        return tree.flatten(self.optimizer.init([variable.value for variable in self._trainable_variables]))

    def _slot(self, number: int, value: Any) -> Any:
        """A variable of the state with this initial value."""
        dtype = keras.backend.standardize_dtype(value.dtype)
        slot = self.add_variable(tuple(value.shape), "zeros", dtype, name=f"slot_{number}")
        slot.assign(value)
        return slot

    # Keras' public method steps one variable, but a rule may read sums over all variables.
    def _backend_update_step(self, grads: Any, trainable_variables: Any, learning_rate: Any) -> None:
        """Steps all variables; one without a gradient stays."""
        values = [variable.value for variable in self._trainable_variables]
        gradients: list[Any] = [None] * len(values)
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            gradients[self._get_variable_index(variable)] = gradient
        state = tree.unflatten(self._structure, [slot.value for slot in self._slots])
        rate = keras.ops.cast(learning_rate, keras.backend.floatx())
        values, state = self.optimizer.apply(values, gradients, state, learning_rate=rate, groups=self._groups)
        for variable in trainable_variables:
            variable.assign(values[self._get_variable_index(variable)])
        for slot, leaf in zip(self._slots, tree.leaves(state), strict=True):
            slot.assign(keras.ops.cast(leaf, slot.dtype))

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables of a state; raises `StateError`, with nothing changed, for one of another shape."""
        if self.built and len(store.keys()) == len(self.variables):  # Keras warns of other numbers, and loads nothing.
            paths = {slot.path: f" ({self._structure.path(number)})" for number, slot in enumerate(self._slots)}
            for number, variable in enumerate(self.variables):
                shape, expected = tuple(store[str(number)].shape), tuple(variable.shape)
                if shape != expected:
                    name = variable.path + paths.get(variable.path, "")
                    raise StateError(f"{name}: the state has shape {shape}: expected {expected}")
        super().load_own_variables(store)

    def get_config(self) -> dict[str, Any]:
        """The arguments, from which `from_config` makes the same optimizer."""
        config = super().get_config()
        if "weight_decay" in self._hyperparameters:
            del config["weight_decay"]
        return {**config, **self.settings, "no_weight_decay": [*self.no_weight_decay]}


def _matches(expressions: Iterable[str], variable: Any) -> bool:
    """Whether a regular expression matches the path of a variable."""
    return any(re.search(each, variable.path) for each in expressions)


def _expressions(argument: str, expressions: Iterable[str]) -> list[str]:
    """The regular expressions in an argument as a list; one may stand alone.

    Raises `TypeError` for anything but texts, and `ValueError` for a text that is no regular expression.
    """
    listed = [expressions] if isinstance(expressions, str) else expressions
    if not isinstance(listed, Iterable) or not all(isinstance(each, str) for each in listed):
        raise TypeError(f"{argument} is {expressions!r}: expected regular expressions")
    for each in listed:
        try:
            re.compile(each)
        except re.error as error:
            raise ValueError(f"{argument} has {each!r}: expected a regular expression: {error}") from None
    return [*listed]


class Muon(_Optimizer):
    """`oxigrad.optim.Muon` as an optimizer of Keras for matrices, and `oxigrad.optim.AdamW` for all other variables.

    ``excluded`` has regular expressions of the paths of matrices for AdamW, by default of embeddings; add the output
    layer. ``adamw`` has hyperparameters of AdamW; the learning rate serves both, as does ``no_weight_decay``. Other
    arguments are the hyperparameters of `oxigrad.optim.Muon`, and the arguments of `keras.optimizers.Optimizer`.

    >>> import keras
    >>> model = keras.Sequential(
    ...     [keras.Input((2,)), keras.layers.Dense(2), keras.layers.Dense(1, name="output")]
    ... )
    >>> model.compile(optimizer=Muon(1e-3, excluded=("embedding", "output")), loss="mse")
    """

    _fixed = frozenset({"excluded", "adamw"})
    excluded: Any = ("embedding",)
    adamw: Any = None

    def __init__(
        self,
        learning_rate: Any = None,
        *,
        excluded: Iterable[str] = ("embedding",),
        adamw: Mapping[str, Any] | None = None,
        no_weight_decay: Iterable[str] = (),
        **settings: Any,
    ) -> None:
        if "learning_rate" in (adamw or {}):
            raise TypeError("Muon: found learning_rate in adamw: expected it as the learning rate of both optimizers")
        super().__init__(learning_rate, no_weight_decay=no_weight_decay, **settings)
        self.excluded, self.adamw = _expressions("excluded", excluded), dict(adamw or {})
        many_axes = self.optimizer.matrices is not None

        def is_matrix(index: str, array: Any) -> bool:
            axes, variable = len(array.shape), self._trainable_variables[int(index)]
            return (axes >= 2 if many_axes else axes == 2) and not _matches(self.excluded, variable)

        self.optimizer = optim.partition({is_matrix: self.optimizer, "*": _of_optim("AdamW", **self.adamw)})

    def get_config(self) -> dict[str, Any]:
        """The arguments, from which `from_config` makes the same optimizer."""
        return {**super().get_config(), "excluded": [*self.excluded], "adamw": dict(self.adamw)}


globals().update(
    {
        name: type(name, (_Optimizer,), {"__doc__": _DOC.format(name=name), "__module__": __name__})
        for name in _NAMES.split()
    }
)

__dir__, __getattr__ = without(__name__, __all__)
