"""Base class of optimizers around another optimizer."""

import copy
import inspect
import operator
import os
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar, Never

from oxigrad import _core
from oxigrad._core import RuleError, StateError
from oxigrad._names import in_words
from oxigrad._typing import Array, Config, R, T, Tree
from oxigrad.extend.parameters import Parameters
from oxigrad.optim.in_backward import LateLock
from oxigrad.optim.losses import minimized_with_aux
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.settings.config import OPTIONS, REGISTRY
from oxigrad.optim.settings.hyperparameters import DeclaredAttributes
from oxigrad.optim.settings.spellings import unlike_optax
from oxigrad.schedules.base import Schedule
from oxigrad.step.parameters.parameter_group import ParameterGroup
from oxigrad.step.state import state_dict as states
from oxigrad.step.state.state_dict import Report

_REQUIRED = object()

# The class attributes of base classes that a subclass extends: it lists only its additions.
_JOINED: dict[str, Callable[[list[Any]], Any]] = {
    **dict.fromkeys(
        ("_fixed", "_handled_options", "_shared", "_transient", "_unstated"), lambda sets: frozenset().union(*sets)
    ),
    "_checks": lambda dicts: dict(ChainMap(*reversed(dicts))),
    "_fields": lambda tuples: tuple(dict.fromkeys(chain.from_iterable(tuples))),
}


class WrappingOptimizer(DeclaredAttributes, Optimizer):
    """Base class of optimizers around another one, whose attributes and slots they show.

    Args:
        optimizer: optimizer that takes a step by a gradient: a chain, a partition, one with groups or options of
            precision, `SAM`, or another wrapper.

    A subclass adds to the class attributes `_fixed`, `_shared`, `_transient`, `_unstated` and `_checks` of its base
    classes. It defines ``_step(model, grads, *, keep_root=False)``, which returns the model after one step and takes it
    by `take_step`. ``self._parameters`` are its `Parameters`. Arguments of its constructor are in its configuration.
    Its additional state is in ``_own_state``, ``_own_slots`` and ``_own_values``. Raises `TypeError` for an optimizer
    that evaluates the loss itself, as L-BFGS does, or reads it, as `MoMo` does. Raises `ValueError` for one with
    ``loss_scale``, whose gradients are scaled, or ``accumulate``, unless ``_handled_options`` names the option.

    >>> import numpy as np
    >>> from oxigrad import optim
    >>> class Reversed(WrappingOptimizer):
    ...     def _step(self, model, grads, *, keep_root=False):
    ...         negative = {path: -g for path, g in self._parameters.gradients(model, grads).items()}
    ...         return self.take_step(
    ...             self.optimizer, model, self._parameters.tree(model, negative), keep_root=keep_root
    ...         )
    >>> Reversed(optim.SGD(0.5)).update({"w": np.ones(2)}, {"w": np.ones(2)})
    {'w': array([1.5, 1.5])}
    """

    #: The arguments of a configuration with their defaults, `_REQUIRED` for those that it always has: read off the
    #: constructor.
    _arguments: ClassVar[Mapping[str, Any]] = {}
    #: Arguments that are not among them, and whether a configuration has all others, rather than those that may be
    #: given by position.
    _unstated: ClassVar[frozenset[str]] = frozenset({"self", "optimizer"})
    _states_defaults: ClassVar[bool] = False
    #: Names of attributes that a copy shares, and of those that it does not have, which `_set_apart` makes.
    _shared: ClassVar[frozenset[str]] = frozenset()
    _transient: ClassVar[frozenset[str]] = frozenset()
    #: The function that makes the wrapper of a configuration: parts by position, then arguments; by default the
    #: constructor.
    _of_config: Callable[..., Any]
    #: The options of the optimizer inside that `_step` allows for: with "loss_scale" it gets gradients of the scaled
    #: loss, and with "accumulate" those of parts of a batch.
    _handled_options: ClassVar[frozenset[str]] = frozenset()
    #: The class that reads and writes the parameters.
    _parameters_class: ClassVar[type[Parameters]] = Parameters

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, join in _JOINED.items():
            setattr(cls, name, join([vars(each)[name] for each in reversed(cls.__mro__) if name in vars(each)]))
        parameters: dict[str, inspect.Parameter] = {}
        for each in cls.__mro__:
            if issubclass(each, WrappingOptimizer) and "__init__" in vars(each):
                parameters = {**parameters, **inspect.signature(vars(each)["__init__"]).parameters, **parameters}
        cls._arguments = {
            name: p.default if p.kind is p.KEYWORD_ONLY and not cls._states_defaults else _REQUIRED
            for name, p in parameters.items()
            if name not in cls._unstated and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        cls._fixed |= cls._arguments.keys() - cls._checks.keys()
        REGISTRY[cls.__name__] = cls._of_config if "_of_config" in vars(cls) else cls

    def __init__(self, optimizer: Optimizer) -> None:
        takes_gradients = isinstance(optimizer, Optimizer) and type(optimizer).minimize is Optimizer.minimize
        if not (takes_gradients or isinstance(optimizer, WrappingOptimizer)):
            hint = (
                ""
                if isinstance(optimizer, Optimizer)
                else ", of oxigrad.optim; its optimizers update modules of PyTorch too"
            )
            raise TypeError(
                f"{type(self).__name__}: found {in_words(optimizer)}, expected an optimizer that takes a step by a "
                f"gradient{hint}"
            )
        self._new_state()
        self.optimizer = optimizer
        self._inner = {"optimizer": optimizer}
        if any("loss" in kind._rule.supplied for kind in self._classes() if hasattr(kind, "_rule")):
            raise TypeError(
                f"{type(self).__name__}: found {optimizer!r}, which reads the loss: workers have different ones"
            )
        self._parameters = self._parameters_class(self)
        self._check_options()

    def _check_options(self) -> None:
        """Raises `ValueError` where the optimizer inside has an option by which `_step` gets other gradients."""
        for name in ("loss_scale", "accumulate"):
            value = getattr(self.optimizer, name)
            if name not in self._handled_options and value != OPTIONS[name]:
                raise ValueError(
                    f"{self.name}: found {name}={value!r} inside, by which _step does not get the gradients of the "
                    f"batch: expected {OPTIONS[name]}, or {name!r} in _handled_options of {type(self).__name__}"
                )

    def _check_usable(self) -> None:
        """Raises an error where no step can be taken, before anything is changed."""
        self._check_options()

    # --- for subclasses -----------------------------------------------------------------------------------------------

    @staticmethod
    def take_step(optimizer: Optimizer, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """The model after one step of an optimizer, which may be a wrapper, by a gradient.

        With ``keep_root``, a model that would have to be replaced by another object is refused.
        """
        return optimizer._step(model, grads, keep_root=keep_root)

    @staticmethod
    def hyperparameters_of(optimizer: Optimizer) -> dict[str, Any]:
        """The hyperparameters of an optimizer and of all that it has inside, by name."""
        return dict(optimizer._parts())

    _minimized_with_aux = staticmethod(minimized_with_aux)

    def _late_lock(self) -> LateLock:
        """The lock of a step that begins in the middle of a block."""
        self._check_usable()
        return LateLock(self._lock)

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """See `Optimizer._step`."""
        raise NotImplementedError(f"{type(self).__name__} has no _step(model, grads, *, keep_root=False)")

    def _within_step(self, model: Tree, step: Callable[[], Tree]) -> Tree:
        """The result of a ``step`` on a model, within the context of each step."""
        return step()

    def _own_state(self, *, for_others: bool) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The state of the wrapper itself: plain data, and arrays by key path and name.

        ``for_others`` is for a worker that joins.
        """
        return {}, {}

    def _own_slots(self) -> frozenset[str]:
        """The names of the arrays of the wrapper's own state."""
        return frozenset()

    def _own_values(self, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The values of attributes by what `_own_state` returned.

        Raises `StateError` for anything else; nothing is changed.
        """
        return {}

    def _takes_plain_gradients(self) -> bool:
        """Whether neither this class nor the optimizer inside overrides how gradients of the loss are computed."""
        methods = type(self).compute_gradients, type(self)._gradients
        plain = Optimizer.compute_gradients, WrappingOptimizer._gradients
        return methods == plain and not self.optimizer._has_own_gradients()

    def _version_numbers(self) -> tuple[int, ...]:
        """Numbers that change with the hyperparameters."""
        return tuple(version.number for version in self._step_options.versions)

    def _set_apart(self) -> None:
        """Makes the attributes that a copy of the wrapper begins with."""

    def _own_config(self) -> Config:
        """The wrapper's arguments beside optimizer and communicator, as plain data, without arguments at defaults."""
        values = {
            name: getattr(self, name) for name, default in self._arguments.items() if getattr(self, name) != default
        }
        return {name: each.get_config() if isinstance(each, Schedule) else each for name, each in values.items()}

    # --- steps --------------------------------------------------------------------------------------------------------

    def update(self, model: T, grads: Tree | None = None, *others: Never, loss: Array | None = None) -> T:
        """See `Optimizer.update`. Raises `RuleError` around `SAM`. No rule in a wrapper reads the ``loss``."""
        if others:
            raise unlike_optax(self.name, 2 + len(others))
        self._check_takes_gradients()
        with self._lock.stepping():
            return self._updated(model, grads, lambda model: self._stepped(model, grads))

    def _stepped(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """The model after a step. Raises `TypeError` where a subclass returns none."""
        taken = self._within_step(model, lambda: self._step(model, grads, keep_root=keep_root))
        if taken is None:
            raise TypeError(
                f"{type(self).__name__}._step returned None after the step: expected the model, as take_step returns it"
            )
        return taken

    def _updated(self, model: T, grads: Tree | None, step: Callable[[T], T]) -> T:
        """The model after ``step``, which leaves zeros in the gradients with ``zero_gradients``."""
        if not self._stepper.options.zero_gradients:
            return self._parameters.update(model, step)
        # Gradients that the model holds are lent to the step, which may replace their memory.
        zeros = None if grads is None else self._parameters.zeros(model, grads)
        taken = self._parameters.update(model, step)
        _core.Stepper().write(None, zeros or self._parameters.zeros(taken, None))
        return taken

    def _check_takes_gradients(self) -> None:
        """See `Optimizer._check_takes_gradients`."""
        self._check_usable()
        self.optimizer._check_takes_gradients()

    def _gradients(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """See `Optimizer._gradients`."""
        self._check_usable()
        return self.optimizer._gradients(loss, model, record=record)

    def scale_loss(self, loss: Array) -> Array:
        """See `Optimizer.scale_loss`."""
        return self.optimizer.scale_loss(loss)

    def minimize(
        self,
        loss: Callable[[T], R],
        model: T,
        *,
        record: bool = False,
        in_backward: bool = False,
        has_aux: bool = False,
    ) -> R:
        """See `Optimizer.minimize`. Raises `ValueError` with ``in_backward``."""
        if has_aux:
            return self._minimized_with_aux(self.minimize, loss, model, record=record, in_backward=in_backward)
        if in_backward:
            self._refuse_in_backward(record=record)
        value, grads = self._gradients_of_step(loss, model, record=record)
        with self._lock.stepping():
            self._stepped(model, grads, keep_root=True)
        return value

    def init(self, params: Tree, **hyperparameters: Any) -> dict[str, Any]:
        """Raises `RuleError`: the step of a wrapper is no pure function."""
        raise self._impure()

    def apply(
        self, params: Tree, grads: Tree, state: dict[str, Any], **hyperparameters: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Raises `RuleError`: the step of a wrapper is no pure function."""
        raise self._impure()

    def _impure(self) -> RuleError:
        return RuleError(
            f"{type(self).__name__} has state beside its slots: use update or minimize, not init and apply"
        )

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return f"{type(self).__name__}({self.optimizer.name})"

    def get_config(self) -> Config:
        """See `Optimizer.get_config`."""
        return {"optimizer": type(self).__name__, "parts": [self.optimizer.get_config()], **self._own_config()}

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """See `Optimizer.state_dict`: the state of the optimizer, and of the wrapper."""
        with self._lock.reading():
            return self._whole_state(copy=copy)

    def _whole_state(self, *, copy: bool, for_others: bool = False) -> dict[str, Any]:
        """The state of the optimizer and of the wrapper, within a step too.

        ``for_others`` is what a worker that joins receives.
        """
        plain, arrays = self._own_state(for_others=for_others)
        return self._with_own_state(self._inner_state(copy=copy, for_others=for_others), plain, arrays, copy=copy)

    def _inner_state(self, *, copy: bool, for_others: bool) -> dict[str, Any]:
        """The state of the optimizer inside."""
        return self.optimizer.state_dict(copy=copy)

    def _load_inner(self, state: Mapping[str, Any], *, strict: bool) -> Report:
        """Loads the state of the optimizer inside."""
        return self.optimizer.load_state_dict(state, strict)

    def _with_own_state(
        self, state: dict[str, Any], plain: dict[str, Any], arrays: dict[str, dict[str, Any]], *, copy: bool
    ) -> dict[str, Any]:
        of_wrapper = states.copied_slots(arrays) if copy else arrays
        slots = state["slots"]
        return {
            **state,
            "optimizer": self.name,
            "config": states.config_of(self),
            "remembered": {**state["remembered"], type(self).__name__: {**plain, "parameters": [*slots]}},
            "slots": {path: {**slots.get(path, {}), **of_wrapper.get(path, {})} for path in {**slots, **of_wrapper}},
        }

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Report:
        """See `Optimizer.load_state_dict`: the state of the optimizer, and of the wrapper."""
        with self._lock:
            return self._load(states.checked(state), strict=strict)

    def _load(self, state: Mapping[str, Any], *, strict: bool) -> Report:
        plain, arrays = self._own_parts(state)
        missing = [f"{type(self).__name__}: its state"] if plain is None else []
        values, mismatched = ({}, []) if plain is None else self._restored(plain, arrays)
        if strict:
            Report(missing=missing, mismatched=mismatched).check()
        report = self._load_inner(self._without_own(state), strict=strict)
        report.missing += missing
        report.mismatched += mismatched
        vars(self).update(values)
        return report

    def _own_parts(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, dict[str, Any]]]:
        """The wrapper's own state in a whole one: plain data, or None, and arrays by key path and name."""
        names = self._own_slots()
        arrays = {path: {n: a for n, a in slots.items() if n in names} for path, slots in state["slots"].items()}
        return state["remembered"].get(type(self).__name__), {path: slots for path, slots in arrays.items() if slots}

    def _restored(
        self, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Any], list[str]]:
        """The values of attributes in a state, and its differences from the one expected, as lines.

        Nothing is changed.
        """
        try:
            return self._own_values(plain, arrays), []
        except StateError as error:
            return {}, [f"{type(self).__name__}: {error}"]

    def _without_own(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The state of the optimizer in one of the wrapper."""
        names = self._own_slots()
        slots = {path: {n: a for n, a in of_path.items() if n not in names} for path, of_path in state["slots"].items()}
        # Parameters of an optimizer without slots, which has an empty dict for each once it has taken a step.
        has_begun = any(state[name] for name in ("step", "micro", "skipped"))
        default = [*slots] if has_begun else [path for path, of_path in state["slots"].items() if not of_path]
        paths = (state["remembered"].get(type(self).__name__) or {}).get("parameters", default)
        return {
            **state,
            "optimizer": self.optimizer.name if state["optimizer"] == self.name else state["optimizer"],
            "config": None,
            "remembered": {name: values for name, values in state["remembered"].items() if name != type(self).__name__},
            "slots": {
                path: slots.get(path, {})
                for path in {**slots, **dict.fromkeys(paths)}
                if slots.get(path) or path in paths
            },
        }

    def save(self, file: str | os.PathLike[str]) -> None:
        """See `Optimizer.save`."""
        with self._lock.reading():
            self._write_state(file, self._whole_state(copy=False))

    _write_state = staticmethod(states.write)

    # --- as the optimizer that it wraps -------------------------------------------------------------------------------

    #: The stepper of the optimizer, which has the slots; the load of a state replaces it.
    _stepper: Any = property(operator.attrgetter("optimizer._stepper"))

    def _assign(self, path: str, array: Array, owner: Optimizer | None = None) -> ParameterGroup | None:
        """See `Optimizer._assign`: without an ``owner``, the optimizer takes the steps."""
        return self.optimizer._assign(path, array, owner)

    def _classes(self) -> Iterator[type]:
        yield type(self)
        yield from self.optimizer._classes()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = object.__new__(type(self))
        with self._lock.reading():
            shared = {name: getattr(self, name) for name in self._shared}
            attributes = {
                n: v for n, v in vars(self).items() if n not in ("_lock", "_parameters", *shared, *self._transient)
            }
            vars(copied).update(copy.deepcopy(attributes, memo), **shared, _lock=_core.Lock())
        vars(copied)["_parameters"] = self._parameters_class(copied)
        copied._set_apart()
        return copied

    def _seal(self) -> None:
        """See `Sealed._seal`.

        The public attributes of the optimizer become attributes of the wrapper, unless it has such itself.
        """
        if "_parameters" not in vars(self):
            raise TypeError(f"{type(self).__name__}.__init__ lacks super().__init__(optimizer)")
        self._attributes = frozenset(name for name in {*dir(self.optimizer)} - {*dir(self)} if name[0] != "_")
        super()._seal()

    def _get_attribute(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def _set_attribute(self, name: str, value: Any) -> None:
        setattr(self.optimizer, name, value)

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._own_config().items())
        return f"{type(self).__name__}({self.optimizer!r}{shown})"
