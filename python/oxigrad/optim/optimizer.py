"""Base class of optimizers: options, steps, state, and slots by key path."""

import copy
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from oxigrad import _core, tree
from oxigrad._typing import Array, Config, Tree
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.ops.backends import dtype_name, fetched
from oxigrad.optim import summary
from oxigrad.optim.losses import dependent, warn_of_floats
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.config import is_importable, restored, with_present_names
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.optim.settings.options import Options, checked_precision
from oxigrad.rules import gradient_transforms
from oxigrad.rules.core import norms, rule
from oxigrad.rules.core.rule import Rule
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.parameters.presence import Changes
from oxigrad.stepping.pure import functional
from oxigrad.stepping.slots import averages
from oxigrad.stepping.state.state_dict import Report, collect, read, resume, write
from oxigrad.stepping.stepper import Stepper
from oxigrad.stepping.version import Version


class Slots(Mapping[Any, Mapping[str, Any]]):
    """Slots by key path and name. A key is a `KeyPath`, its text, or its text without quotes where that is unambiguous."""

    def __init__(self, by_path: Mapping[str, dict[str, Any]]) -> None:
        self._by_path = by_path

    def __getitem__(self, path: Any) -> Mapping[str, Any]:
        if str(path) not in self._by_path:
            alike = [text for text in self._by_path if '"' in text and _core.tree_unquoted(text) == path]
            if len(alike) == 1:
                return self._by_path[alike[0]]
            known = ", ".join(self._by_path) or "no parameter: build or the first update makes them"
            raise KeyError(f"{path}: no slots; there are slots for {known}")
        return self._by_path[str(path)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __repr__(self) -> str:
        return f"Slots({self._by_path!r})"


class StepCount(int):
    """A number of steps. Calling it, as PyTorch's ``step()``, raises `TypeError`."""

    __slots__ = ()

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        """Raises `TypeError`, and says what takes a step."""
        raise TypeError(
            f"step is the number of steps taken, {int(self)}: expected opt.update(model, grads), or opt.minimize(loss, model), "
            "to take one"
        )


class Optimizer(Options):
    """Base class of all optimizers. Every optimizer has these options, given by keyword.

    Args:
        seed: the seed of the rule's noise.
        accumulate: the number of gradients whose mean each step uses; it is kept in a slot ``accumulated-mean``.
        nonfinite: the treatment of gradients with infinities or NaN: "propagate" (as in arithmetic), "skip" (the step changes
            nothing, and `skipped` counts it) or "raise" (`NonFiniteError` with the key paths; nothing is changed).
        loss_scale: a `LossScale` for `minimize`. With it, "propagate" becomes "skip".
        zero_gradients: whether each step sets the gradients to zero, which must be in host memory and writable.
        sparse: the effect of a `SparseRows` gradient on other rows: "dense" (that of zeros), "lazy" (none) or "catch_up" (see
            `oxigrad.stepping.arrays.sparse_rows`); the last two exclude ``accumulate``.
        slot_dtype: the dtype of the slots of the update rule that are initialized with zeros: "float32", "bfloat16", "float16",
            or "8bit" (`Quantized`, for parameters of at least 4096 elements in host memory, or that kernels update on a CUDA device).
        master: whether parameters of half precision have a slot ``master-weights`` of float32, to which updates are applied.
        rounding: the rounding of parameters of half precision: "nearest", "stochastic" (up or down at random, so that small
            updates are kept on average) or "kahan" (the rounding error of a step is added to the next; it is kept in a slot
            ``kahan-compensation``).
        record_norms: the norms that each step records, "gradient", "update" and "parameter", or some of them; see `recorded_norms`.

    Updates of float16 and bfloat16 parameters are computed in float32, and their slots are float32 by default.

    Options are attributes. ``seed``, ``accumulate``, ``nonfinite``, ``loss_scale``, ``zero_gradients`` and ``record_norms`` may be set, and
    take effect on the next step; the others are fixed. Setting a fixed option or an unknown attribute raises `AttributeError`.
    """

    _has_seen_floats = False

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
        record_norms: str | Iterable[str] = (),
    ) -> None:
        self._version = Version()
        self.sparse = sparse
        self.seed = seed
        self.accumulate = accumulate
        self.loss_scale = loss_scale
        self.zero_gradients = zero_gradients
        self.record_norms = tuple([record_norms] if isinstance(record_norms, str) else record_norms)
        self._precision = checked_precision(slot_dtype, master, rounding)
        self.nonfinite = nonfinite
        self._stepper = Stepper(self)
        self._lock = _core.Lock()

    @property
    def name(self) -> str:
        """The name of the optimizer in configurations and states."""
        raise NotImplementedError

    def get_config(self) -> Config:
        """The optimizer as plain data (JSON), for `from_config`; raises `TypeError` for a function that is not a `Schedule`.

        >>> from oxigrad.optim import Adam
        >>> Adam(learning_rate=0.1).get_config()["learning_rate"]
        0.1
        """
        raise NotImplementedError

    # --- called by the stepper -----------------------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """The factor of the loss in `compute_gradients`, by which the step divides the gradients."""
        return self.loss_scale.value if self.loss_scale else 1.0

    def _observe(self, *, finite: bool) -> None:
        """Updates the loss scale after a step; ``finite`` is whether all gradients were."""
        if self.loss_scale:
            self.loss_scale.observe(finite=finite)

    def _resume(self, stepper: Stepper) -> None:
        """Replaces the stepper by that of a loaded state."""
        self._stepper = stepper

    def _gradient_parts(self) -> tuple[Rule, ...]:
        """The gradient transforms, by options, before the optimizer's own rule."""
        scales, checks = self.loss_scale is not None, self.nonfinite != "propagate"
        parts = (_UNSCALE,) if scales else ()
        parts = (*parts, _FINITE) if checks else parts
        return (*parts, _ACCUMULATE) if self.accumulate > 1 else parts

    def _norm_parts(self) -> tuple[Rule, ...]:
        """The transforms that record norms."""
        return tuple([_NORMS[name] for name in self.record_norms]) if self.record_norms else ()

    def _assign(self, path: str, array: Array) -> ParameterGroup | None:
        """The parameter group of a parameter, given by key path and array; None where it is frozen."""
        return self._group_for(self, path, array)

    def _group_for(self, owner: "Optimizer", path: str, array: Array) -> ParameterGroup | None:
        """As `_assign`, where ``owner`` takes the steps: the partition or `SAM` around this optimizer, or itself."""
        raise NotImplementedError

    def _versions(self) -> Iterator[Version]:
        """The versions of its settings and of those of its inner optimizers: a plan is valid until one changes."""
        yield self._version

    def _check_patterns(self, parameters: list[tuple[str, Array]]) -> None:
        """Raises `StructureError` where a pattern matches no parameter of a model, given as paths and arrays."""

    # --- steps ---------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The number of steps taken."""
        return StepCount(self._stepper.counts.taken)

    @property
    def skipped(self) -> int:
        """The number of steps that were skipped because their gradients were not finite."""
        return self._stepper.counts.skipped

    @property
    def slots(self) -> Slots:
        """The slots by key path and name: ``opt.slots["l1.weight"]["m"]``.

        An array of the same shape and dtype may be assigned to a slot, and is copied into it for the next step. The array of a
        slot may also be changed in place. If its memory was replaced since the last step, as by torch's ``set_`` or NumPy's
        ``resize``, the step uses the new memory, or raises the error that such a parameter would raise.
        """
        return Slots(self._stepper.slots)

    def current(self, name: str, path: Any = None) -> Any:
        """The value of a hyperparameter in the next step, that of a schedule included; with ``path``, for the parameter there.

        Parameters in groups, and those of the optimizers of a partition, have values of their own. Raises `AttributeError` for an
        unknown name, `KeyError` for a path that no built model has, and `ValueError` for a partition without ``path``.

        >>> from oxigrad import schedules
        >>> from oxigrad.optim import SGD
        >>> opt = SGD(schedules.linear(1.0, 0.0, 4), groups={"b": {"learning_rate": 0.25}})
        >>> opt.current("learning_rate")
        1.0
        >>> import numpy as np
        >>> model = {"w": np.zeros(1), "b": np.zeros(1)}
        >>> model = opt.update(model, {"w": np.ones(1), "b": np.ones(1)})
        >>> opt.current("learning_rate"), opt.current("learning_rate", "b")
        (0.75, 0.25)
        """
        if path is None:
            return self._current(name, self.step)
        return self._stepper.group_of(str(path)).current(name, self.step)

    def _current(self, name: str, step: int) -> Any:
        """The value of a hyperparameter at a step, of parameters in no group."""
        raise ValueError(f"{self.name}: expected the key path of a parameter, whose optimizer has {name}")

    @property
    def recorded_norms(self) -> dict[str, dict[str, float]]:
        """The norms that the last step recorded, by kind and key path: ``opt.recorded_norms["gradient"]["l1.weight"]``.

        The option ``record_norms`` chooses kinds. They are computed in the pass over memory that updates the parameters, and summed in float64:
        "gradient" before clipping and other transforms, of the mean where gradients are accumulated; "update" of the
        change of the parameter; "parameter" of its new value. A parameter that the last step did not update has those of the
        last one that did. Reading them waits for steps on devices. `global_norm` is over all parameters.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD
        >>> opt = SGD(0.5, record_norms=("gradient", "update"))
        >>> model = opt.update(
        ...     {"w": np.zeros(2), "b": np.zeros(1)}, {"w": np.array([3.0, 4.0]), "b": np.array([12.0])}
        ... )
        >>> opt.recorded_norms
        {'gradient': {'w': 5.0, 'b': 12.0}, 'update': {'w': 2.5, 'b': 6.0}}
        >>> opt.global_norm("gradient")
        13.0
        """
        with self._lock.reading():
            slots = self._stepper.own_slots
            return {
                kind: {
                    path: float(fetched(own[name])) for path, own in slots.items() if (name := norms.SLOTS[kind]) in own
                }
                for kind in self.record_norms
            }

    def global_norm(self, kind: str) -> float:
        """The norm of the ``kind`` "gradient", "update" or "parameter" over all parameters; raises `ValueError` if it is not recorded."""
        if kind not in self.record_norms:
            recorded = ", ".join(map(repr, self.record_norms)) or "none"
            raise ValueError(f"the norm {kind!r} is not recorded: expected one of record_norms, {recorded}")
        return math.hypot(*self.recorded_norms[kind].values())

    def build(self, model: Tree) -> None:
        """Makes the slots for the parameters of ``model``, which otherwise the first step does."""
        with self._lock:
            self._stepper.build(model)

    def rebuild(self, model: Tree, *, remove: bool = False) -> Changes:
        """Makes slots for a model with other parameters than before, which `update` would refuse, and reports the changes.

        Slots begin for parameters that were added, and for those that have another shape than before; the others keep theirs. Slots
        of parameters that ``model`` lacks are kept for a later model that has them again, or dropped with ``remove=True``. The step
        that a rule reads, as in Adam's bias correction, counts from 1 for parameters that begin; schedules read `step`.

        Freezing needs no call: a parameter is not updated while its group is None, its field or ``requires_grad`` is not trainable, or its
        gradient is None. Raises `StateError` while gradients are accumulated; see `flush`.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> opt, model = Adam(0.1), {"body": np.zeros(2)}
        >>> model = opt.update(model, {"body": np.ones(2)})
        >>> model["head"] = np.zeros(1)
        >>> opt.rebuild(model)
        Changes(added=['head'], unfrozen=[], frozen=[], reset=[], kept=[], removed=[])
        >>> del model["body"]
        >>> opt.rebuild(model, remove=True).removed, list(opt.slots)
        (['body'], ['head'])
        """
        with self._lock:
            return self._stepper.rebuild(model, remove=remove)

    def flush(self, model: Tree) -> Tree:
        """Takes a step with the mean of the gradients accumulated so far, as at the end of an epoch; returns the model.

        Without accumulated gradients it does nothing. Errors are those of `update`.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD
        >>> opt, model = SGD(1.0, accumulate=4), {"w": np.zeros(1)}
        >>> for g in (1.0, 3.0):
        ...     model = opt.update(model, {"w": np.array([g])})
        >>> opt.flush(model), opt.step
        ({'w': array([-2.])}, 1)
        """
        with self._lock.stepping():
            return self._stepper.flush(model)

    def update(self, model: Tree, grads: Tree | None = None) -> Tree:
        """Takes one step: updates the parameters of ``model``, in place where its arrays are writable.

        ``grads`` has the structure of ``model``; leaves that are not parameters are ignored. Without ``grads``, the parameters
        hold their gradients, as those of a ``torch.nn.Module`` do in the attribute ``grad``. A parameter whose gradient is None, or
        that is in a subtree of ``model`` for which ``grads`` has None, is not updated: its slots stay as they are, and the step that
        its rule reads, as in Adam's bias correction, does not count this one, as in PyTorch. While gradients are accumulated, None
        counts as zeros unless all are None. A model without any gradient raises `StructureError`. An array with several key paths is
        one parameter: its gradients at these paths are summed, and an array among them that occurs twice counts once. Returns
        the model: the same object, unless a parameter had to be replaced (a JAX array, a read-only array) in an immutable
        container. Raises, with nothing changed and the key path in the message, `StructureError`, `ShapeError`, `DtypeError`,
        `AliasError`, `ArrayMemoryError` or `NonFiniteError`. Concurrent steps are serialized. A function that a step calls (a
        schedule, a rule, a signal handler) may save the optimizer; any other use of it raises `StateError`.
        """
        with self._lock.stepping():
            return self._stepper.update(model, grads)

    def compute_gradients(self, loss: Callable[[Tree], Array], model: Tree) -> tuple[Any, Any]:
        """The value of ``loss(model)`` and its gradient, with the structure of ``model``.

        With a ``loss_scale``, the gradient is that of the scaled loss, as `update` expects it. Raises `DerivativeError` for a loss
        that is a constant, as one that is computed from values of the parameters. Python floats are no parameters: the first call warns
        of those that the loss depends on, with their key paths.
        """
        factors: list[Any] = []

        def scaled(model: Tree) -> Array:
            found = dependent(loss(model))
            if self.loss_scale is None:
                return found
            factors.append(self._scale_for(found))
            return factors[-1] * found

        value, grads = value_and_grad_of(scaled, model)
        self._tell_of_floats(model, grads)
        return (value / factors[-1] if factors else value), grads

    def _tell_of_floats(self, model: Tree, grads: Tree) -> None:
        """Warns, the first time, of Python floats in the model that the loss depends on."""
        if not self._has_seen_floats:
            warn_of_floats(model, grads)
            self._has_seen_floats = True

    def scale_loss(self, loss: Array) -> Array:
        """The ``loss`` times `scale`, whose gradient `update` expects.

        Where a CUDA device keeps the scale, it is multiplied there, without waiting, as reading `scale` would.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, LossScale
        >>> float(SGD(0.1, loss_scale=LossScale(8.0)).scale_loss(np.array(0.5)))
        4.0
        """
        return loss if self.loss_scale is None else self._scale_for(loss) * loss

    def _scale_for(self, loss: Array) -> Any:
        """The factor of a loss: an array on its device where that keeps the scale."""
        found = self._stepper.counts.scale_like(loss)
        return self.scale if found is None else found

    def minimize(self, loss: Callable[[Tree], Array], model: Tree) -> Array:
        """`compute_gradients`, then `update` in place; returns the value of the loss before the step.

        Raises `StructureError`, before anything is changed, where a parameter can neither be written nor replaced in
        ``model`` itself; use `update`, which returns the new tree.
        """
        value, grads = self.compute_gradients(loss, model)
        with self._lock.stepping():
            self._stepper.update(model, grads, keep_root=True)
        return value

    def averaged_parameters(self, model: Tree = None) -> dict[str, Any]:
        """The averages of the parameters by key path, as computed by ASGD, `EMA`, `SWA` or a schedule-free optimizer.

        A chain returns those of its last part with averages. Schedule-free optimizers compute them from slots and parameters,
        and require ``model``. Raises `StateError` where there are no averages.

        >>> import numpy as np
        >>> from oxigrad.optim import EMA, SGD, chain
        >>> opt = chain(SGD(1.0), EMA(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.averaged_parameters()
        {'w': array([-0.5])}
        """
        with self._lock.reading() if model is None else self._lock:
            return averages.averaged(self._stepper, model)

    def copied_parameters(self) -> dict[str, Any]:
        """The copies of the parameters in another dtype, by key path, as computed by `Copy`.

        Where parameters are updated in place in host memory, so are the copies: each step writes to the same arrays. Raises
        `StateError` where there are no copies.

        >>> import numpy as np
        >>> from oxigrad.optim import SGD, Copy, chain
        >>> opt = chain(SGD(1.0), Copy("float16"))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.copied_parameters()
        {'w': array([-1.], dtype=float16)}
        """
        with self._lock.reading():
            return averages.copies(self._stepper)

    def swap_in(self, model: Tree) -> Tree:
        """Replaces the parameters by their averages, in place as `update` does; `swap_out` restores the parameters.

        Returns the model. Steps raise `StateError` until `swap_out`. Raises `StateError` where there are no averages.
        """
        with self._lock:
            return averages.swap_in(self._stepper, model)

    def swap_out(self, model: Tree) -> Tree:
        """Restores the parameters that `swap_in` replaced, to the bit, and returns the model.

        >>> import numpy as np
        >>> from oxigrad.optim import EMA, SGD, chain
        >>> opt = chain(SGD(1.0), EMA(decay=0.5))
        >>> model = opt.update({"w": np.zeros(1)}, {"w": np.ones(1)})
        >>> opt.swap_in(model), opt.swap_out({"w": model["w"].copy()})
        ({'w': array([-0.5])}, {'w': array([-1.])})
        """
        with self._lock:
            return averages.swap_out(self._stepper, model)

    # --- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self, *, copy: bool = True) -> dict[str, Any]:
        """The state as plain data and arrays: slots by key path, counts, states of schedules and loss scale, and the configuration.

        The arrays are copies of the slots, of the same library and dtype; with ``copy=False`` they are the slots themselves,
        which later steps may write to. ``config`` is None where `get_config` raises. Raises `StateError` between `swap_in` and
        `swap_out`.
        """
        with self._lock.reading():
            return collect(self, copy=copy)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Report:
        """Loads the result of `state_dict`. Hyperparameters are not changed (see `from_config`).

        Arrays are copied to the library and device of the parameter; their dtype must be equal. The state is loaded whole or
        not at all: `StateError` lists missing and unexpected entries, and those of another shape or dtype. With
        ``strict=False``, matching entries are loaded, and the report lists the others. Before the first `build` or `update` the
        parameters are unknown: slots are then compared in it, and it raises the error or completes the report.
        """
        with self._lock:
            return resume(self, with_present_names(state, self.name), strict=strict)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes `state_dict` to a safetensors file. An existing file is replaced atomically.

        Raises `OSError` where the file cannot be written, and `StateError` for a dtype that the format lacks, or where there is
        a device or a pipe.
        """
        with self._lock.reading():
            write(file, collect(self, copy=False, to_file=True))

    def load(self, file: str | os.PathLike[str], strict: bool = True) -> Report:
        """Loads a file written by `save`, as `load_state_dict`.

        Raises `StateError` also where the file is damaged, has no state, or is no regular file, such as a pipe.
        """
        return self.load_state_dict(read(file), strict)

    def _remembering(self) -> dict[str, Any]:
        """The schedules and loss scales with a state, by name."""
        found = {name: part for name, part in self._parts() if hasattr(part, "state_dict")}
        return {name: part for name, part in found.items() if part.state_dict()}

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield "loss_scale", self.loss_scale

    def __reduce__(self) -> Any:
        """Pickles the configuration and the state; raises `TypeError` for an optimizer without a configuration.

        Its classes are pickled by name, so that the modules that define them are imported.
        """
        return restored, (self.get_config(), self.state_dict(), *filter(is_importable, self._classes()))

    def _classes(self) -> Iterator[type]:
        """The classes of the parts."""
        yield type(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = object.__new__(type(self))
        with self._lock.reading():
            self._stepper.check_whole()
            own = {
                name: value
                for name, value in vars(self).items()
                if name not in ("_lock", "_stepper", "_pure_step", "_parameter_groups")
            }
            vars(made).update(copy.deepcopy(own, memo), _lock=_core.Lock(), _stepper=self._stepper.copied(made))
        return made

    # --- as a pure function --------------------------------------------------------------------------------------------

    def init(self, params: Tree) -> dict[str, Any]:
        """The state before the first step, for `apply`: the step, and the slots by key path.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> sorted(Adam().init({"w": np.ones(2)})["slots"]["w"])
        ['m', 'v']
        """
        return functional.init(self, params)

    def apply(
        self,
        params: Tree,
        grads: Tree,
        state: dict[str, Any],
        *,
        groups: Mapping[Any, Mapping[str, Any]] | None = None,
        **hyperparameters: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """The step of `update` as a pure function: returns the new parameters and the new state.

        It can be traced (``jax.jit``), and differentiated with respect to parameters, gradients, state and hyperparameters. On arrays in
        host memory it runs the kernels of `update`, on copies, and gives the same bits. Where it is differentiated, or the arrays are
        elsewhere, rules are called on them, and last bits may differ: libraries sum in other orders, and compute powers and float64
        numbers beside float32 arrays in other ways.

        Numeric ``hyperparameters`` given by keyword, or by name as ``state["hyperparameters"]``, take the place of those of the optimizer,
        in all of its groups; those of ``groups``, a dict from patterns of key paths as in the constructor, take the place of
        these for the parameters that match. They are numbers, variables or arrays without axes, which may be traced.

        Raises `TypeError` for an unknown name, for a function of the step, and for a variable in place of a whole number;
        `ValueError` for a number out of range; `StructureError` for a pattern that matches no parameter; and `StateError` for a
        hyperparameter that needs a slot which the optimizer does not keep, such as ``momentum`` of ``SGD(momentum=0)``.

        >>> import numpy as np
        >>> from oxigrad import grad
        >>> from oxigrad.optim import SGD
        >>> opt, w = SGD(0.1), {"w": np.zeros(1), "b": np.zeros(1)}
        >>> g = {"w": np.ones(1), "b": np.ones(1)}
        >>> opt.apply(w, g, opt.init(w), learning_rate=0.5, groups={"b": {"learning_rate": 2.0}})[0]
        {'w': array([-0.5]), 'b': array([-2.])}
        >>> grad(lambda rate: opt.apply(w, g, opt.init(w), learning_rate=rate)[0]["w"][0])(0.5)
        -1.0
        """
        if groups is None:
            return functional.apply(self, params, grads, state, hyperparameters)
        return functional.apply(self, params, grads, state, hyperparameters, param_groups.chosen(groups, params))

    def table(self, model: Tree) -> str:
        """A table, as text, of the parameters of ``model``, each with its optimizer and hyperparameters.

        >>> import numpy as np
        >>> from oxigrad.optim import Signum
        >>> opt = Signum(0.1, groups={"*bias": {"beta": 0.0}, "head.*": None})
        >>> print(opt.table({"w": np.ones((2, 3)), "bias": np.ones(3), "head": {"w": np.ones(2)}}))
        parameter  shape   dtype    optimizer  hyperparameters
        w          (2, 3)  float64  Signum     learning_rate=0.1, beta=0.9
        bias       (3,)    float64  Signum     learning_rate=0.1, beta=0.0
        head.w     (2,)    float64  frozen
        """

        def row(path: Any, array: Array) -> tuple[str, ...]:
            choice = self._assign(str(path), array)
            what = (choice.optimizer.name, choice.text) if choice else ("frozen", "")
            return (str(path), str(tuple(array.shape)), dtype_name(array.dtype), *what)

        parameters = tree.parameters(model)
        self._check_patterns([(str(path), array) for path, array in parameters.items()])
        rows = (row(path, array) for path, array in parameters.items())
        return param_groups.table(rows, ("parameter", "shape", "dtype", "optimizer", "hyperparameters"))

    def summary(self) -> str:
        """A table, as text, of the slots of each parameter: names, dtypes and bytes, with the sum of bytes in the last line.

        Parameters that the last step did not update come last. Notebooks show the same table in HTML.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> opt = Adam(0.1, groups={"b": None})
        >>> opt.build({"w": np.ones((2, 3)), "b": np.ones(3)})
        >>> print(opt.summary())
        parameter  shape   dtype    optimizer  slots  dtypes   bytes
        w          (2, 3)  float64  Adam       m, v   float64  96
        all                                                    96
        """
        with self._lock.reading():
            found = [*summary.rows(self._stepper.plan, self._stepper.own_slots)]
        cells = [row.cells() for row in found]
        total = ("all", *[""] * (len(summary.HEAD) - 2), f"{sum(row.bytes for row in found):,}")
        return param_groups.table(iter([*cells, total]), summary.HEAD)

    def _repr_html_(self) -> str:
        with self._lock.reading():
            found = [*summary.rows(self._stepper.plan, self._stepper.own_slots)]
        return summary.as_html(repr(self), self.step, found)


_NORMS = {
    "gradient": rule.read(norms.gradient_norm, "gradient"),
    "update": rule.read(norms.update_norm, "after"),
    "parameter": rule.read(norms.parameter_norm, "after"),
}
_UNSCALE = rule.read(gradient_transforms.unscale, "gradient")
_FINITE = rule.read(gradient_transforms.finite, "gradient")
_ACCUMULATE = rule.read(gradient_transforms.accumulate, "gradient")
