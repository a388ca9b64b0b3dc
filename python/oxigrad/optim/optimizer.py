"""What an optimizer is: a rule, its hyperparameters, its slots by key path, and the steps taken; chains and partitions."""

import copy
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oxigrad import around, groups, presets, rule, step, tree
from oxigrad._core import StructureError
from oxigrad.executors import trace
from oxigrad.hyperparameters import Part, declare, from_plain, plain
from oxigrad.libraries import dtype_name
from oxigrad.loss_scale import LossScale
from oxigrad.precision import Precision, half
from oxigrad.rule import Rule, Slot
from oxigrad.schedules.base import number_at
from oxigrad.sparse import FAMILIES, decays
from oxigrad.state import Report, collect, read, resume, write
from oxigrad.transforms import value_and_grad

# What makes an optimizer or a part of a chain of its configuration, by name.
REGISTRY: dict[str, Callable[..., Any]] = {}
_NONFINITE = ("propagate", "skip", "raise")


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


class Optimizer:
    """What takes steps. Every optimizer has the options here, given by keyword.

    ``seed`` of the rule's noise; ``accumulate``: a step is taken with the mean of so many gradients; ``nonfinite``: what
    becomes of a step whose gradients have infinities or NaN: "propagate" (as arithmetic has it), "skip" (nothing changes, and
    `skipped` counts it) or "raise" (`NonFiniteError` with the key paths, nothing changes); ``loss_scale``: a `LossScale` for
    `minimize`, with which such steps are skipped at least; ``zero_gradients``: each step leaves zeros in the gradients, which must
    lie in host memory and be writable; ``sparse``: what a gradient that is `SparseRows` does to the rows that it does not have,
    "dense" (what zeros do), "lazy" (nothing) or "catch_up" (see `oxigrad.sparse`); the last two do not ``accumulate``.

    Parameters of float16 and bfloat16 are computed in float32, and by default have slots of float32. ``slot_dtype`` keeps the slots
    of the update that begin as zeros in another dtype ("float32", "bfloat16", "float16"), or as codes of "8bit" (`Quantized`)
    where the core updates the parameter in host memory and it has 4096 elements or more. Of half precision: ``master`` adds a
    slot of float32 weights, which are what is updated; ``rounding`` is to "nearest", "stochastic" (up or down at random, so that
    small updates are not lost on average), or "kahan", which carries what rounding took over to the next step, in a slot
    ``compensation``.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        accumulate: int = 1,
        nonfinite: str = "propagate",
        loss_scale: LossScale | None = None,
        zero_gradients: bool = False,
        sparse: str = "dense",
        slot_dtype: str | None = None,
        master: bool = False,
        rounding: str = "nearest",
    ) -> None:
        if nonfinite not in _NONFINITE:
            raise ValueError(f"nonfinite is {nonfinite!r}: expected one of {', '.join(_NONFINITE)}")
        if isinstance(accumulate, bool) or int(accumulate) != accumulate or accumulate < 1:
            raise ValueError(f"accumulate is {accumulate!r}: expected how many gradients make a step, at least 1")
        if sparse not in FAMILIES:
            raise ValueError(f"sparse is {sparse!r}: expected one of {', '.join(FAMILIES)}")
        if sparse != "dense" and accumulate > 1:
            raise ValueError(
                f"sparse={sparse!r} does not accumulate: add up SparseRows before the step, or use 'dense'"
            )
        self.seed = int(seed)
        self.sparse = sparse
        self.accumulate = int(accumulate)
        self.loss_scale = loss_scale
        self.zero_gradients = bool(zero_gradients)
        self.precision = Precision(slot_dtype, bool(master), rounding)
        self.nonfinite = "skip" if loss_scale and nonfinite == "propagate" else nonfinite
        self._stepper = step.Stepper(self)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What it is called."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The optimizer as plain data (JSON), for `from_config`; raises `TypeError` for a schedule that is no `Schedule`.

        >>> from oxigrad.optim import Adam
        >>> Adam(learning_rate=0.1).get_config()["learning_rate"]
        0.1
        """
        raise NotImplementedError

    # --- what a step asks of it ----------------------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """What the loss is multiplied by before it is differentiated, and gradients are divided by."""
        return self.loss_scale.value if self.loss_scale else 1.0

    def observe(self, *, finite: bool) -> None:
        """Is told after each step whether its gradients were finite."""
        if self.loss_scale:
            self.loss_scale.observe(finite=finite)

    def prefix(self) -> tuple[Rule, ...]:
        """What is done to each gradient before the rule sees it."""
        wanted = (
            (self.loss_scale is not None, _UNSCALE),
            (self.nonfinite != "propagate", _FINITE),
            (self.accumulate > 1, _ACCUMULATE),
        )
        return tuple(part for is_wanted, part in wanted if is_wanted)

    def assign(self, path: str, array: Any) -> "Choice | None":
        """Whose rule updates a parameter, with which group of hyperparameters; None where it is frozen."""
        return self.choice(self, path, array)

    def choice(self, owner: "Optimizer", path: str, array: Any) -> "Choice | None":
        """As `assign`, where another optimizer, the ``owner``, takes the steps."""
        raise NotImplementedError

    # --- steps ---------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """How many steps have been taken."""
        return self._stepper.count

    @property
    def skipped(self) -> int:
        """How many steps were skipped since their gradients were not finite."""
        return self._stepper.skipped

    @property
    def slots(self) -> Slots:
        """The auxiliary variables, by key path and name: ``opt.slots["l1.weight"]["m"]``."""
        return Slots(self._stepper.slots)

    def build(self, model: Any) -> None:
        """Makes the slots for the parameters of ``model`` now, rather than in the first step."""
        with self._lock:
            self._stepper.build(model)

    def update(self, model: Any, grads: Any) -> Any:
        """Takes one step: updates the parameters of ``model``, in place where its arrays are writable.

        ``grads`` has the structure of ``model``; only parameters are looked at. Returns the model: the same object,
        unless a parameter had to be replaced (an array of JAX, a read-only one) where no container can be changed.
        Raises an error that names the key path, with nothing changed: `StructureError`, `ShapeError`, `DtypeError`,
        `AliasError`, `ArrayMemoryError`, `NonFiniteError`.
        """
        with self._lock:
            return self._stepper.update(model, grads)

    def compute_gradients(self, loss: Callable[[Any], Any], model: Any) -> tuple[Any, Any]:
        """The value of ``loss(model)`` and its gradient, with the structure of ``model``.

        With a ``loss_scale``, the gradient is that of the scaled loss, as `update` expects it.
        """
        if self.loss_scale is None:
            return value_and_grad(loss)(model)
        scale = self.scale
        value, grads = value_and_grad(lambda model: scale * loss(model))(model)
        return value / scale, grads

    def minimize(self, loss: Callable[[Any], Any], model: Any) -> Any:
        """`compute_gradients`, then `update` in place; returns the value of the loss before the step.

        Raises `StructureError`, before anything is changed, where a parameter can neither be written nor replaced in
        ``model`` itself: then use `update`, which returns the new tree.
        """
        value, grads = self.compute_gradients(loss, model)
        with self._lock:
            self._stepper.update(model, grads, keep_root=True)
        return value

    def averaged_parameters(self, model: Any = None) -> dict[str, Any]:
        """The averages of the parameters, by key path, as ASGD, `Average`, `StochasticAverage` and the like keep them.

        Schedule-free optimizers compute theirs from slots and parameters, and have to be given the ``model``. Raises
        `StateError` where there are no averages.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, Average
        >>> opt = chain(SGD(1.0), Average(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.averaged_parameters()
        {'w': array([-0.5])}
        """
        with self._lock:
            return self._stepper.averages(model)

    def copied_parameters(self) -> dict[str, Any]:
        """The copies of the parameters in another dtype, by key path, as `Copy` keeps them.

        Where parameters are updated in host memory, so are the copies: the arrays stay the same from step to step. Raises
        `StateError` where there are no copies.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, Copy
        >>> opt = chain(SGD(1.0), Copy("float16"))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.copied_parameters()
        {'w': array([-1.], dtype=float16)}
        """
        with self._lock:
            return self._stepper.copies()

    def swap_in(self, model: Any) -> Any:
        """Puts the averages in the place of the parameters, in place as `update` does; `swap_out` puts these back.

        Returns the model. Until then there are no steps. Raises `StateError` where there are no averages.
        """
        with self._lock:
            return self._stepper.swap_in(model)

    def swap_out(self, model: Any) -> Any:
        """Puts the parameters back that `swap_in` replaced, to the bit, and returns the model.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, Average
        >>> opt = chain(SGD(1.0), Average(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.swap_in(model), opt.swap_out({"w": model["w"].copy()})
        ({'w': array([-0.5])}, {'w': array([-1.])})
        """
        with self._lock:
            return self._stepper.swap_out(model)

    # --- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """All that the next steps depend on but the model, as plain data and arrays: slots by key path, counts, its config.

        The arrays are those of the slots, of the same library and dtype; with ``copy=False`` they are the slots
        themselves, which later steps may write to. ``config`` is None where it cannot be written down (see `get_config`).
        Raises `StateError` between `swap_in` and `swap_out`.
        """
        with self._lock:
            return collect(self, copy=copy)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Report:
        """Goes on from what `state_dict` gave. Hyperparameters stay as they are (`from_config` makes an optimizer of a config).

        Arrays are copied, to the library and device of the parameter; the dtype must be the same. All is done or
        nothing: `StateError` lists what is missing, unexpected or of another shape or dtype. With ``strict=False``, what
        fits is loaded, and the report lists the rest. Where no model was seen yet, slots are compared when it comes, in
        `build` or the first `update`, which then raise the error, or fill the report.
        """
        with self._lock:
            return resume(self, state, strict=strict)

    def save(self, file: Any) -> None:
        """Writes `state_dict` to a safetensors file, which is replaced whole or not at all, whatever happens.

        Raises `OSError` where it cannot be written, and `StateError` for a dtype that the format does not have.
        """
        with self._lock:
            write(file, collect(self, copy=False))

    def load(self, file: Any, strict: bool = True) -> Report:
        """Loads what `save` wrote, as `load_state_dict`. Raises `StateError` also where the file has no state or is damaged."""
        return self.load_state_dict(read(file), strict)

    def _remembering(self) -> dict[str, Any]:
        """The parts that have a state of their own, by name."""
        found = {name: part for name, part in self._parts() if hasattr(part, "state_dict")}
        return {name: part for name, part in found.items() if part.state_dict()}

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield "loss_scale", self.loss_scale

    def __reduce__(self) -> Any:
        """As plain data: `TypeError` says where a function of the user's is a part of it."""
        return _restored, (self.get_config(), self.state_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = object.__new__(type(self))
        with self._lock:
            own = {name: value for name, value in vars(self).items() if name not in ("_lock", "_stepper")}
            vars(made).update(copy.deepcopy(own, memo), _lock=threading.Lock(), _stepper=self._stepper.copied(made))
        return made

    # --- as a pure function --------------------------------------------------------------------------------------------

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step, for `apply`: the step, and the slots by key path.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> sorted(Adam().init({"w": np.ones(2)})["slots"]["w"])
        ['m', 'v']
        """
        return step.init(self, params)

    def apply(self, params: Any, grads: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The same step as `update`, as a pure function: returns new parameters and a new state, and changes nothing.

        It may be traced (``jax.jit``) and differentiated.
        """
        return step.apply(self, params, grads, state)

    def table(self, model: Any) -> str:
        """Which parameter of ``model`` is updated by what, as a table to be printed.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD
        >>> opt = SGD(0.1, groups={"*bias": {"weight_decay": 0.0}, "head.*": None})
        >>> print(opt.table({"w": np.ones((2, 3)), "bias": np.ones(3), "head": {"w": np.ones(2)}}))
        parameter  shape   dtype    optimizer  hyperparameters
        w          (2, 3)  float64  SGD        learning_rate=0.1, weight_decay=0.0
        bias       (3,)    float64  SGD        learning_rate=0.1, weight_decay=0.0
        head.w     (2,)    float64  frozen
        """

        def row(path: Any, array: Any) -> tuple[str, ...]:
            choice = self.assign(str(path), array)
            what = (choice.optimizer.name, choice.text) if choice else ("frozen", "")
            return (str(path), str(tuple(array.shape)), str(array.dtype).removeprefix("torch."), *what)

        rows = (row(path, array) for path, array in tree.parameters(model).items())
        return groups.table(rows, ("parameter", "shape", "dtype", "optimizer", "hyperparameters"))

    def stepping_options(self) -> list[str]:
        """Which options it was given of those that belong to what takes the steps."""
        return [name for name, value in Optimizer._given_options(self).items() if value != _OPTIONS[name]]

    def _options(self) -> dict[str, Any]:
        """The options that are not as they are by default, as plain data."""
        return {name: value for name, value in self._given_options().items() if value != _OPTIONS[name]}

    def _given_options(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "accumulate": self.accumulate,
            "nonfinite": "propagate" if self.loss_scale and self.nonfinite == "skip" else self.nonfinite,
            "loss_scale": self.loss_scale and self.loss_scale.get_config(),
            "zero_gradients": self.zero_gradients,
            "sparse": self.sparse,
            **dataclasses.asdict(self.precision),
        }


class Choice:
    """A rule with one group of hyperparameters, as some parameters of a model have it.

    ``storage`` is the name of their dtype, where that is half precision.
    """

    def __init__(
        self, owner: Optimizer, optimizer: "RuleOptimizer", overrides: Mapping[str, Any], storage: str | None = None
    ) -> None:
        self._owner = owner
        self._storage = storage
        self.optimizer = optimizer
        self._overrides = overrides
        self._optional = [pair for part in optimizer.parts for pair in part.optional]

    def rule(self, holds: bool = False) -> Rule:
        """What is done to a parameter: all of it, or (where gradients are accumulated) all before the step itself."""
        prefix = self._owner.prefix()
        composed = _composed((*prefix, *self.optimizer.parts), holds and len(prefix), self.absent)
        return self.precision.around(composed, self._storage)

    @property
    def precision(self) -> Precision:
        """How many bits."""
        return self._owner.precision

    def kept_in(self, slot: Slot, p: Any, *, on_host: bool) -> Any:
        """The dtype of a slot of the parameter ``p``; "8bit" for codes."""
        if slot.dtype_by:
            slot = dataclasses.replace(slot, dtype=self.value(slot.dtype_by))
        return self.precision.kept_in(slot, p, on_host=on_host)

    @property
    def absent(self) -> tuple[str, ...]:
        """The optional slots that nothing asks for."""
        if not self._optional:
            return ()
        own, given = self.optimizer.hyperparameters, self._overrides
        return tuple([slot for slot, asks in self._optional if not given.get(asks, own[asks])])

    @property
    def _values(self) -> dict[str, Any]:
        return {**self.optimizer.hyperparameters, **self._overrides}

    @property
    def text(self) -> str:
        """The hyperparameters, to be read."""
        return ", ".join(f"{name}={value!r}" for name, value in self._values.items())

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        declared = self.optimizer.declared
        return {name: value for name, value in self._values.items() if declared[name].is_flag}

    def numbers(self, at: Any) -> dict[str, Any]:
        """The numeric hyperparameters at step ``at``, counted from 0: schedules called, their values read as numbers."""
        declared = self.optimizer.declared
        numeric = {name: value for name, value in self._values.items() if not declared[name].is_flag}
        return {name: number_at(value, at, name) if callable(value) else value for name, value in numeric.items()}

    def value(self, name: str) -> Any:
        """A hyperparameter as it is in the first step."""
        value = self._values[name]
        return number_at(value, 0, name) if callable(value) else value

    def program(self, rule: Rule) -> Any:
        """The kernel that `rule` becomes with the present flags; None for one that is not elementwise."""
        if not rule.elementwise:
            return None
        return _traced(rule, tuple(self.flags.items()), self._owner.zero_gradients, self.catches_up)

    @property
    def catches_up(self) -> bool:
        """Whether slots of rows that steps skipped catch up with them."""
        return self._owner.sparse == "catch_up" and self.rule().elementwise

    def decays(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """By how much a zero gradient multiplies each slot, if slots catch up: see `oxigrad.sparse.decays`."""
        if not self.catches_up:
            return {}
        first = self.numbers(0)
        return decays(self.rule(), self.flags, first, {name: values[name] for name in first})


@functools.cache
def _composed(parts: tuple[Rule, ...], until: int, absent: tuple[str, ...]) -> Rule:
    composed = rule.compose(parts, until=until or None)
    return composed.without(absent) if composed.optional else composed


@functools.cache
def _traced(composed: Rule, flags: tuple[tuple[str, Any], ...], zero_gradients: bool, catches_up: bool) -> Any:
    return trace(composed, dict(flags), zero_gradients=zero_gradients, catches_up=catches_up)


class RuleOptimizer(Part, Optimizer):
    """What `define` makes of a rule. Hyperparameters are attributes: constants, or schedules (functions of the step).

    ``groups`` gives some parameters other hyperparameters, by pattern: a dict from globs, compiled regular expressions or
    predicates ``(path, array)`` to dicts of hyperparameters, or to None for parameters that are frozen (no slots, no decay, no
    update, and their gradients may be missing). The first match wins. ``dtype`` limits it to parameters of one dtype. ``compat``
    is "torch", "optax" or "keras": what is not given is as the optimizer of this name has it there (see `oxigrad.presets`).
    """

    def __init__(
        self, *args: Any, groups: Any = None, dtype: Any = None, compat: str | None = None, **keywords: Any
    ) -> None:
        if compat is not None:
            positional = list(self.declared)[: len(args)]
            preset = presets.preset(type(self).__name__, compat)
            keywords = {n: v for n, v in preset.items() if n not in positional} | keywords
        options = {name: keywords.pop(name) for name in (*_OPTIONS,) if name in keywords}
        Part.__init__(self, *args, **keywords)
        Optimizer.__init__(self, **options)
        self.dtype = dtype
        self.groups = groups or {}

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return type(self).__name__

    @property
    def parts(self) -> tuple[Rule, ...]:
        """The rules that it is composed of."""
        return (self.rule,)

    @property
    def groups(self) -> Mapping[Any, Mapping[str, Any] | None]:
        """Hyperparameters by pattern; set it as a whole."""
        return self._groups

    @groups.setter
    def groups(self, given: Mapping[Any, Mapping[str, Any] | None]) -> None:
        groups.check(given)
        self._groups = {pattern: self._checked(pattern, values) for pattern, values in given.items()}
        self._choices: dict[tuple[Optimizer, int | None, str | None], Choice] = {}
        self._stepper.reset()

    def _checked(self, pattern: Any, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if values is None:
            return None
        unknown = sorted(values.keys() - self.declared.keys())
        if unknown:
            known = ", ".join(self.declared)
            raise TypeError(
                f"the group {pattern!r} has hyperparameters unknown: {', '.join(unknown)}; there are {known}"
            )
        return {name: self.declared[name].check(value) for name, value in values.items()}

    def choice(self, owner: Optimizer, path: str, array: Any) -> Choice | None:
        """See `Optimizer.choice`."""
        if self.dtype is not None and not _has(array, self.dtype):
            return None
        at = groups.first_match(self._groups, path, array)
        overrides = {} if at is None else list(self._groups.values())[at]
        if overrides is None:
            return None
        storage = half(array)
        return self._choices.setdefault((owner, at, storage), Choice(owner, self, overrides, storage))

    @property
    def program(self) -> Any:
        """The kernel that the rule becomes with the present flags, which prints as a listing; None where it is called."""
        choice = Choice(self, self, {})
        return choice.program(choice.rule())

    def get_config(self) -> dict[str, Any]:
        """See `Optimizer.get_config`."""
        values = {name: plain(name, value) for name, value in self.hyperparameters.items()}
        return {"optimizer": self.name, **values, **self._options()}

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield from super()._parts()
        yield from self.hyperparameters.items()
        for number, values in enumerate(self._groups.values()):
            yield from ((f"groups.{number}.{name}", value) for name, value in (values or {}).items())

    def _given_options(self) -> dict[str, Any]:
        def group(values: Mapping[str, Any] | None) -> Any:
            return None if values is None else {name: plain(name, value) for name, value in values.items()}

        found = [[groups.plain(pattern), group(values)] for pattern, values in self._groups.items()]
        dtype = None if self.dtype is None else str(self.dtype)
        return {**super()._given_options(), "groups": found or None, "dtype": dtype}


_OPTIONS = {
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


class Transform(Part):
    """A part of a chain that is no optimizer: it changes gradients before the update, or parameters after it."""


class Chain(RuleOptimizer):
    """What `chain` makes: parts that are one rule."""

    chained: tuple[Part, ...]

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return self.rule.name

    def get_config(self) -> dict[str, Any]:
        """See `Optimizer.get_config`."""
        return {"optimizer": "chain", "parts": [part.get_config() for part in self._present()], **self._options()}

    def _present(self) -> list[Part]:
        """The parts, with the hyperparameters as they are now."""
        return [type(part)(**{n: self.hyperparameters[n] for n in part.declared}) for part in self.chained]

    def __repr__(self) -> str:
        return f"chain({', '.join(map(repr, self._present()))})"


class Partition(Optimizer):
    """What `partition` makes: several optimizers, each for some of the parameters."""

    def __init__(self, optimizers: Mapping[Any, RuleOptimizer | None], **options: Any) -> None:
        super().__init__(**options)
        groups.check(optimizers)
        for pattern, optimizer in optimizers.items():
            if not (optimizer is None or isinstance(optimizer, RuleOptimizer)):
                raise TypeError(f"the pattern {pattern!r} has {optimizer!r}: expected an optimizer, or None to freeze")
            if given := optimizer.stepping_options() if optimizer else []:
                raise ValueError(f"the pattern {pattern!r}: {', '.join(given)} belong to the partition")
        self.optimizers = dict(optimizers)

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return "partition"

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield from super()._parts()
        for number, optimizer in enumerate(self.optimizers.values()):
            found = optimizer._parts() if optimizer else ()
            yield from ((f"parts.{number}.{name}", part) for name, part in found)

    def choice(self, owner: Optimizer, path: str, array: Any) -> Choice | None:
        """See `Optimizer.choice`."""
        at = groups.first_match(self.optimizers, path, array)
        if at is None:
            raise StructureError(f"{path}: no pattern of the partition matches; None as an optimizer freezes")
        optimizer = list(self.optimizers.values())[at]
        return optimizer and optimizer.choice(owner, path, array)

    def get_config(self) -> dict[str, Any]:
        """See `Optimizer.get_config`."""
        found = [
            [groups.plain(pattern), optimizer and optimizer.get_config()]
            for pattern, optimizer in self.optimizers.items()
        ]
        return {"optimizer": "partition", "parts": found, **self._options()}

    def __repr__(self) -> str:
        return f"partition({self.optimizers!r})"


def define(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    elementwise: bool = True,
    average: Callable[..., Any] | None = None,
) -> type[RuleOptimizer]:
    """A new optimizer from its rule: a subclass of `RuleOptimizer`, its constructor taken from the rule's signature.

    The rule is traced into a kernel, which runs fused wherever the arrays live; with ``elementwise=False`` it is called
    on arrays instead, leaf by leaf, and may do anything that they can. See `oxigrad.rules` for what a rule looks like.
    ``average`` computes the average that ``averaged_parameters(model)`` gives, where no slot ``average`` holds it: a function
    ``(xp, p, ...)`` of the parameter and of those slots and hyperparameters that it names, such as
    `oxigrad.rules.schedule_free_average`. Raises `TypeError` where the signature is not that of a rule; what no kernel can do raises `RuleError` at once.

    >>> def sign_descent(xp, p, g, *, learning_rate=0.01):
    ...     return p - learning_rate * xp.sign(g)
    >>> SignDescent = define(sign_descent)
    >>> SignDescent(learning_rate=0.1)
    SignDescent(learning_rate=0.1)
    """
    read = rule.read(function, elementwise=elementwise, average=average)
    made = register(read, name, RuleOptimizer, _OPTIONS)
    made().program  # noqa: B018 - traces the rule, so that it is refused here and not at the first step
    return made


def transform(function: Callable[..., Any], name: str | None = None, *, elementwise: bool = True) -> type[Transform]:
    """A new part for a `chain`, from a rule that changes gradients or new parameters.

    The rule is ``(xp, p, g, *slots, ...)`` and returns another gradient, or ``(xp, p, new, *slots, ...)`` and returns the
    new parameter changed; each followed by its slots.

    >>> from oxigrad.optim import SGD
    >>> Halve = transform(lambda xp, p, g, *, share=0.5: share * g, "Halve")
    >>> chain(Halve(share=0.1), SGD(1.0))
    chain(Halve(share=0.1), SGD(learning_rate=1.0, weight_decay=0.0))
    """
    return register(rule.read(function, changes_gradient=True, elementwise=elementwise), name, Transform)


def register(read: Rule, name: str | None, base: type, options: Mapping[str, Any] = {}) -> Any:
    """A subclass of ``base`` for a rule, known to `from_config` by its name; ``options`` are named in its signature."""
    title = name or "".join(part.capitalize() for part in read.name.split("_"))
    made = declare(read, title, base, options)
    REGISTRY[title] = made
    return made


def chain(*parts: Part, **options: Any) -> Chain:
    """One optimizer of several parts: what changes gradients, an optimizer, what changes parameters after it, in this order.

    It is one rule, in one pass over memory where the formula allows. The hyperparameters of the parts are its attributes;
    ``options`` are those of every optimizer. Raises `ValueError` where parts do not fit.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, ClipGlobalNorm
    >>> opt = chain(ClipGlobalNorm(1.0), SGD(learning_rate=1.0))
    >>> opt.update({"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.array([3.0]), "b": np.array([4.0])})
    {'a': array([-0.6]), 'b': array([-0.8])}
    """
    flat = [one for part in parts for one in (part._present() if isinstance(part, Chain) else [part])]
    for part in flat:
        if not isinstance(part, Part):
            raise TypeError(f"{part!r} is no part of a chain: expected optimizers and transforms")
        if isinstance(part, Optimizer) and part._options():
            raise ValueError(f"{type(part).__name__}: {', '.join(part._options())} belong to the chain")
    made = declare(rule.compose([part.rule for part in flat]), "Chain", Chain, _OPTIONS)
    values = {name: value for part in flat for name, value in part.hyperparameters.items()}
    chained = made(**values, **options)
    chained.chained = tuple(flat)
    return chained


def partition(optimizers: Mapping[Any, RuleOptimizer | None], **options: Any) -> Partition:
    """One optimizer that gives each parameter to the first of ``optimizers`` whose pattern it matches; None freezes.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, Adam
    >>> opt = partition({"*bias": SGD(1.0), "*": Adam(0.1)})
    >>> opt.update({"w": np.zeros(1), "bias": np.zeros(1)}, {"w": np.ones(1), "bias": np.ones(1)})
    {'w': array([-0.1]), 'bias': array([-1.])}
    """
    return Partition(optimizers, **options)


def from_config(config: Mapping[str, Any]) -> Any:
    """The optimizer that `get_config` wrote down; user-defined ones must have been defined before.

    >>> from oxigrad import schedules
    >>> from oxigrad.optim import SGD
    >>> from_config(SGD(learning_rate=schedules.linear(0.1, 0.0, 10)).get_config())
    SGD(learning_rate=linear(initial=0.1, final=0.0, steps=10), weight_decay=0.0)
    """
    values = dict(config)
    name = values.pop("optimizer", None) or values.pop("part", None)
    parts = values.pop("parts", ())
    if found := values.get("groups"):
        values["groups"] = {groups.from_plain(pattern): group and _read(group) for pattern, group in found}
    if found := values.get("loss_scale"):
        values["loss_scale"] = LossScale(**found)
    if name == "partition":
        read = {groups.from_plain(pattern): inner and from_config(inner) for pattern, inner in parts}
        return partition(read, **values)
    if name not in REGISTRY:
        raise ValueError(f"optimizer is {name!r}: expected one of {', '.join(sorted(REGISTRY))}")
    return REGISTRY[name](*map(from_config, parts), **_read(values))


def _restored(config: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """The optimizer that was taken apart by pickle."""
    made = from_config(config)
    made.load_state_dict(state)
    return made


def _read(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if name in _OPTIONS else from_plain(value) for name, value in values.items()}


def _has(array: Any, dtype: Any) -> bool:
    """Whether an array has a dtype, or the dtype of a name."""
    return dtype_name(array.dtype) == dtype if isinstance(dtype, str) else bool(array.dtype == dtype)


REGISTRY["chain"] = chain

_UNSCALE = rule.read(around.unscale, changes_gradient=True)
_FINITE = rule.read(around.finite, changes_gradient=True)
_ACCUMULATE = rule.read(around.accumulate, changes_gradient=True)
