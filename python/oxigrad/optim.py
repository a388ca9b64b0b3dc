"""Optimizers: a rule from `oxigrad.rules`, its hyperparameters, its slots by key path, and the steps taken.

>>> import numpy as np
>>> import oxigrad as ox
>>> model = {"w": np.array([1.0, 2.0])}
>>> opt = ox.optim.SGD(learning_rate=0.5)
>>> value = opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
>>> model["w"]
array([0., 0.])
"""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oxigrad import rules, schedules, step, tree
from oxigrad.transforms import value_and_grad

Rule = Callable[..., Any]

_SUPPLIED = ("step", "noise")
_REGISTRY: dict[str, type["Optimizer"]] = {}


class Slots(Mapping[Any, Mapping[str, Any]]):
    """Auxiliary variables by key path (a `KeyPath` or its text) and name."""

    def __init__(self, by_path: dict[str, dict[str, Any]]) -> None:
        self._by_path = by_path

    def __getitem__(self, path: Any) -> Mapping[str, Any]:
        if str(path) not in self._by_path:
            known = ", ".join(self._by_path) or "nothing yet: the first update makes the slots"
            raise KeyError(f"there are no slots for {path}; there are for {known}")
        return self._by_path[str(path)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __repr__(self) -> str:
        return f"Slots({self._by_path!r})"


class _Hyperparameter:
    """An attribute that is checked when it is set, and takes effect on the next step."""

    def __init__(self, default: Any) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        return self if optimizer is None else optimizer._hyperparameters[self.name]

    def __set__(self, optimizer: Any, value: Any) -> None:
        optimizer._hyperparameters[self.name] = self.check(value)

    @property
    def is_flag(self) -> bool:
        """Whether the rule may branch on it: its value becomes a part of the kernel."""
        return self.default is None or isinstance(self.default, (bool, str))

    def check(self, value: Any) -> Any:
        """The value, or `TypeError` where it is not of the kind of the default."""
        if self.is_flag:
            if not (value is None or isinstance(value, (bool, str))):
                raise TypeError(f"{self.name} is {value!r}: expected a flag like {self.default!r}")
            return value
        if callable(value):
            return value
        if isinstance(value, (bool, str)) or value is None:
            raise TypeError(f"{self.name} is {value!r}: expected a number or a schedule, a function of the step")
        return value if isinstance(value, int) else float(value)


class Optimizer:
    """What `define` makes of a rule. Hyperparameters are attributes: constants, or schedules (functions of the step)."""

    rule: Rule
    slot_names: tuple[str, ...] = ()
    elementwise: bool = True
    _supplied: frozenset[str] = frozenset()
    _declared: Mapping[str, _Hyperparameter] = {}

    def __init__(self, *args: Any, seed: int = 0, **hyperparameters: Any) -> None:
        names = list(self._declared)
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes at most {len(names)} positional arguments: {', '.join(names)}")
        given = dict(zip(names, args, strict=False))
        twice = sorted(given.keys() & hyperparameters.keys())
        unknown = sorted(hyperparameters.keys() - set(names))
        if twice or unknown:
            what = f"given twice: {', '.join(twice)}" if twice else f"unknown: {', '.join(unknown)}"
            raise TypeError(f"{type(self).__name__}: hyperparameters {what}; it has {', '.join(names)}")
        given |= hyperparameters
        self._hyperparameters: dict[str, Any] = {}
        for name, declared in self._declared.items():
            setattr(self, name, given.get(name, declared.default))
        self.seed = int(seed)
        self._stepper = step.Stepper(self)
        self._lock = threading.Lock()

    # --- hyperparameters -----------------------------------------------------------------------------------------------

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        return {name: self._hyperparameters[name] for name, declared in self._declared.items() if declared.is_flag}

    @property
    def number_names(self) -> list[str]:
        """The hyperparameters that are numbers, in the order in which a kernel takes them."""
        return [name for name, declared in self._declared.items() if not declared.is_flag]

    def numbers(self, at: Any) -> dict[str, Any]:
        """The numeric hyperparameters at step ``at``, counted from 0: schedules called."""
        numeric = {name: self._hyperparameters[name] for name in self.number_names}
        return {name: value(at) if callable(value) else value for name, value in numeric.items()}

    def get_config(self) -> dict[str, Any]:
        """The optimizer as plain data (JSON), for `from_config`; raises `TypeError` for a schedule that is no `Schedule`.

        >>> Adam(learning_rate=0.1).get_config()["learning_rate"]
        0.1
        """

        def plain(name: str, value: Any) -> Any:
            if callable(value) and not isinstance(value, schedules.Schedule):
                raise TypeError(f"{name} is {value!r}: only the schedules of oxigrad.schedules can be written down")
            return value.get_config() if isinstance(value, schedules.Schedule) else value

        values = {name: plain(name, value) for name, value in self._hyperparameters.items()}
        return {"optimizer": type(self).__name__, **values, "seed": self.seed}

    # --- steps ---------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """How many steps have been taken."""
        return self._stepper.count

    @property
    def program(self) -> Any:
        """The kernel that the rule becomes with the present flags, which prints as a listing; None where it is called."""
        return self._stepper.program()

    @property
    def slots(self) -> Slots:
        """The auxiliary variables, by key path and name: ``opt.slots["l1.weight"]["m"]``."""
        return Slots(self._stepper.slots)

    def update(self, model: Any, grads: Any) -> Any:
        """Takes one step: updates the parameters of ``model``, in place where its arrays are writable.

        ``grads`` has the structure of ``model``; only parameters are looked at. Returns the model: the same object,
        unless a parameter had to be replaced (an array of JAX, a read-only one) where no container can be changed.
        Raises an error that names the key path, with nothing changed: `StructureError`, `ShapeError`, `DtypeError`,
        `AliasError`, `ArrayMemoryError`.
        """
        with self._lock:
            return self._stepper.update(model, grads)

    def compute_gradients(self, loss: Callable[[Any], Any], model: Any) -> tuple[Any, Any]:
        """The value of ``loss(model)`` and its gradient, with the structure of ``model``."""
        return value_and_grad(loss)(model)

    def minimize(self, loss: Callable[[Any], Any], model: Any) -> Any:
        """`compute_gradients`, then `update` in place; returns the value of the loss before the step.

        Raises `StructureError`, before anything is changed, where a parameter can neither be written nor replaced in
        ``model`` itself: then use `update`, which returns the new tree.
        """
        value, grads = self.compute_gradients(loss, model)
        with self._lock:
            self._stepper.update(model, grads, keep_root=True)
        return value

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step, for `apply`: the step, and zeros for each slot by key path.

        >>> import numpy as np
        >>> sorted(Adam().init({"w": np.ones(2)})["slots"]["w"])
        ['m', 'v']
        """
        return {"step": 0, "slots": step.new_slots(tree.parameters(params), self.slot_names)}

    def apply(self, params: Any, grads: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The same step as `update`, as a pure function: returns new parameters and a new state, and changes nothing.

        It may be traced (``jax.jit``) and differentiated.
        """
        return step.apply(self, params, grads, state)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._hyperparameters.items())
        return f"{type(self).__name__}({values})"


def define(rule: Rule, name: str | None = None, *, elementwise: bool = True) -> type[Optimizer]:
    """A new optimizer from its rule: a subclass of `Optimizer`, its constructor taken from the rule's signature.

    The rule is traced into a kernel, which runs fused wherever the arrays live; with ``elementwise=False`` it is called
    on arrays instead, leaf by leaf, and may do anything that they can. See `oxigrad.rules` for what a rule looks like.
    Raises `TypeError` where the signature is not that of a rule; what no kernel can do raises `RuleError` at once.

    >>> def sign_descent(xp, p, g, *, learning_rate=0.01):
    ...     return p - learning_rate * xp.sign(g)
    >>> SignDescent = define(sign_descent)
    >>> SignDescent(learning_rate=0.1)
    SignDescent(learning_rate=0.1)
    """
    parameters = list(inspect.signature(rule).parameters.values())
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    label = getattr(rule, "__name__", "rule")
    if positional[:3] != ["xp", "p", "g"] or len(positional) + len(keywords) != len(parameters):
        raise TypeError(f"{label}: a rule has the signature (xp, p, g, *slots, then after *: hyperparameters)")
    without = [p.name for p in keywords if p.default is p.empty and p.name not in _SUPPLIED]
    if without:
        raise TypeError(f"{label}: hyperparameters need a default: {', '.join(without)}")
    declared = {p.name: _Hyperparameter(p.default) for p in keywords if p.name not in _SUPPLIED}
    title = name or "".join(part.capitalize() for part in label.split("_"))
    body = {
        **declared,
        "__doc__": rule.__doc__,
        "__module__": rule.__module__,
        "__signature__": _constructor(keywords),
        "rule": staticmethod(rule),
        "slot_names": tuple(positional[3:]),
        "elementwise": elementwise,
        "_supplied": frozenset(p.name for p in keywords if p.name in _SUPPLIED),
        "_declared": declared,
    }
    made = type(title, (Optimizer,), body)
    made().program  # noqa: B018 - traces the rule, so that it is refused here and not at the first step
    _REGISTRY[title] = made
    return made


def _constructor(keywords: list[inspect.Parameter]) -> inspect.Signature:
    own = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) for p in keywords if p.name not in _SUPPLIED]
    return inspect.Signature([*own, inspect.Parameter("seed", inspect.Parameter.KEYWORD_ONLY, default=0)])


def from_config(config: Mapping[str, Any]) -> Optimizer:
    """The optimizer that `Optimizer.get_config` wrote down; user-defined ones must have been defined before.

    >>> from_config(SGD(learning_rate=schedules.linear(0.1, 0.0, 10)).get_config())
    SGD(learning_rate=linear(initial=0.1, final=0.0, steps=10), weight_decay=0.0)
    """
    values = dict(config)
    name = values.pop("optimizer", None)
    if name not in _REGISTRY:
        raise ValueError(f"optimizer is {name!r}: expected one of {', '.join(sorted(_REGISTRY))}")
    read = {key: schedules.from_config(value) if isinstance(value, dict) else value for key, value in values.items()}
    return _REGISTRY[name](**read)


SGD = define(rules.sgd, "SGD")
Momentum = define(rules.momentum)
Adam = define(rules.adam)
AdamW = define(rules.adamw, "AdamW")
