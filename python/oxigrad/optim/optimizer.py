"""Base class of optimizers: options, steps, and steps as pure functions."""

from collections.abc import Callable, Mapping
from typing import Any, Never

from oxigrad import _core, tree
from oxigrad._names import check_callable, check_flags
from oxigrad._tables import Table
from oxigrad._typing import Array, R, T, Tree
from oxigrad.autodiff.transforms import value_and_grad_of
from oxigrad.ops.backends import dtype_name
from oxigrad.optim import in_backward as in_backward_steps
from oxigrad.optim.losses import dependent, minimized_with_aux
from oxigrad.optim.recorded_losses import RecordedLosses
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.config import OPTIONS
from oxigrad.optim.settings.documentation import with_options
from oxigrad.optim.settings.spellings import unlike_optax
from oxigrad.optim.stateful import StatefulOptimizer
from oxigrad.step import changes
from oxigrad.step.arrays.precision import check_slot_dtype
from oxigrad.step.device import sources
from oxigrad.step.parameters.hyperparameter import Version
from oxigrad.step.parameters.presence import Changes
from oxigrad.step.placement.host_placement import HostPlacement
from oxigrad.step.pure import functional
from oxigrad.step.pure.pure_step import PureStep
from oxigrad.step.stepper import Stepper


class Optimizer(StatefulOptimizer):
    """Base class of all optimizers. Every optimizer has the options below, given by keyword.

    Options are attributes. ``seed``, ``accumulate``, ``nonfinite``, ``loss_scale``, ``zero_gradients`` and
    ``record_norms`` may be set, and take effect on the next step; the others are fixed. Setting a fixed option or an
    unknown attribute raises `AttributeError`.

    Updates of float16 and bfloat16 parameters are computed in float32, and their slots are float32 by default.
    ``slot_dtype`` applies to moments and accumulators. Codes need at least 4096 elements, in host memory or on a CUDA
    device whose kernels update them. `ValueError` is raised where ``slot_dtype`` has no effect: for rules without
    moments, and for codes that a rule called on arrays would read. SGD accepts it without momentum too.
    ``sparse="lazy"`` and ``"catch_up"`` exclude ``accumulate``.

    The slots of options are ``accumulated-mean``, ``master-weights`` (float32) and ``kahan-compensation``.
    """

    #: The ``step`` that the last `apply` resolved.
    _resolved_applies: dict[str, PureStep]

    def _new_state(self) -> None:
        """Sets what an optimizer has before its first step."""
        vars(self).update(_lock=_core.Lock(), _resolved_applies={}, _is_pure=False)

    # --- steps --------------------------------------------------------------------------------------------------------

    def current(self, name: str, path: Any = None) -> Any:
        """The value of a hyperparameter in the next step; a schedule is evaluated.

        Args:
            name: name of the hyperparameter.
            path: key path of a parameter, as parameters in groups or partitions may have different values.

        Raises `AttributeError` for an unknown name, `KeyError` for a path that no built model has, and `ValueError` for
        a partition without ``path``.

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
        plan = self._stepper.plan
        group = plan and next((plan.groups[p.group] for p in plan.parameters if p.text == str(path)), None)
        if group is None:
            paths = ", ".join(self._stepper.table.by_path) or "a built model"
            raise KeyError(f"{path}: no parameter that is updated: expected one of {paths}")
        return group.current(name, self.step)

    def _current(self, name: str, step: int) -> Any:
        """The value of a hyperparameter at a step, of parameters in no group."""
        raise ValueError(f"{self.name}: expected the key path of a parameter, whose optimizer has {name}")

    def build(self, model: Tree) -> None:
        """Makes the slots for the parameters of ``model``, before the first step does."""
        with self._lock:
            self._stepper.build(model)

    def rebuild(self, model: Tree, *, remove: bool = False) -> Changes:
        """Makes slots for a model with other parameters, which `update` would refuse, and reports the changes.

        Args:
            model: tree of the new parameters.
            remove: whether to drop the slots of parameters that ``model`` lacks, instead of keeping them for later.

        Slots begin for parameters that are new or have another shape; other slots do not change. The step that a rule
        reads (in Adam's bias correction) counts from 1 for parameters that begin. Schedules read `step`.

        A step with ``master=True`` reads master weights, and not the parameter. After other writes to parameters, as by
        loading, `rebuild` takes each element that is no rounding of its master weight for the master weight.

        Freezing needs no call: a parameter is not updated while its group or gradient is None, or its field or
        ``requires_grad`` is not trainable. Raises `StateError` while gradients are accumulated; see `flush`.

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
        check_flags(remove=remove)
        with self._lock:
            return changes.rebuild(self._stepper, model, remove=remove)

    def flush(self, model: T) -> T:
        """Takes a step with the mean of the gradients accumulated so far, as at the end of an epoch; returns the model.

        Without accumulated gradients it does nothing. A step in the backward that an error has ended is counted; see
        `ahead`. Raises the errors of `update`.

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

    def update(self, model: T, grads: Tree | None = None, *others: Never, loss: Array | None = None) -> T:
        """Takes one step: updates the parameters of ``model``, in place if its arrays are writable.

        Args:
            model: tree of the parameters.
            grads: gradients in the structure of ``model``. None reads them from the parameters, such as the attribute
                ``grad`` in a ``torch.nn.Module``.
            *others: none; a transformation of optax has a third argument.
            loss: value of the loss at the parameters, for rules that read it, such as `MoMo`.

        Returns:
            The same object, unless an immutable container had to replace a parameter (a JAX or read-only array).

        A parameter is not updated if its gradient, or a subtree of gradients with it, is None. Its slots do not change,
        and the step that its rule reads does not count this one, as in PyTorch. While gradients are accumulated, None
        counts as zeros, unless all are None. Gradients of one array at several key paths are summed; one gradient
        array at several of them counts once. A step waits for a ``loss`` on a device.

        The order of arguments is the reverse of optax's. Swapped trees raise an error only if structure, shapes or
        dtypes differ. Otherwise the step changes the gradients along the parameters.

        Raises, with nothing changed and the key path in the message, `StructureError`, `ShapeError`, `DtypeError`,
        `AliasError`, `ArrayMemoryError` or `NonFiniteError`. A `StructureError` is raised too without any gradient, and
        for a gradient other than zero of a leaf that is no parameter; of Python floats the first step warns.
        Concurrent steps are serialized. A function that a step calls (a schedule, a rule, a signal handler) may save
        the optimizer; any other use of it raises `StateError`.
        """
        if not isinstance(self, Optimizer):
            raise TypeError(
                "update is called on a class: expected an optimizer, such as Adam(...).update(model, grads)"
            )
        if others:
            raise unlike_optax(self.name, 2 + len(others))
        with self._lock.stepping():
            return self._stepper.update(model, grads, loss=loss)

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """The step of `update` in one of another optimizer around it; see `oxigrad.extend.WrappingOptimizer`."""
        with self._lock.stepping():
            return self._stepper.update(model, grads, keep_root=keep_root)

    def _check_takes_gradients(self) -> None:
        """Raises `RuleError` where `update` cannot take a step from the gradient at the model."""

    def compute_gradients(self, loss: Callable[[T], Array], model: T) -> tuple[Array, T]:
        """The value of ``loss(model)`` and its gradient, with the structure of ``model``.

        With a ``loss_scale``, it is the gradient of the scaled loss, as `update` expects. Raises `DerivativeError`
        for a loss that is a constant, as one that is computed from values of the parameters.
        """
        return self._gradients(loss, model, record=False)

    def _gradients(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """`compute_gradients`, of a recorded loss if asked. A subclass with other gradients overrides this method."""
        if record and self.loss_scale is None:
            return self._recorded_losses.value_and_grad(loss, model)
        return self._unrecorded_gradients(loss, model)

    def _unrecorded_gradients(
        self, loss: Callable[[Tree], Array], model: Tree, begin: Callable[..., Any] | None = None
    ) -> tuple[Any, Any]:
        """The value of ``loss(model)`` and its gradient; ``begin`` as in `value_and_grad_of`."""
        factors: list[Any] = []

        def scaled(model: Tree) -> Array:
            value = dependent(loss(model))
            if self.loss_scale is None:
                return value
            factors.append(self._scale_for(value))
            return factors[-1] * value

        value, grads = value_and_grad_of(scaled, model, begin)
        return (value / factors[-1] if factors else value), grads

    def _gradients_of_step(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """The value and gradient for `minimize`. If a subclass overrides `compute_gradients`, nothing is recorded."""
        if record and type(self).compute_gradients is Optimizer.compute_gradients:
            return self._gradients(loss, model, record=True)
        return self.compute_gradients(loss, model)

    @property
    def _recorded_losses(self) -> RecordedLosses:
        """The losses that `minimize` has recorded: an optimizer that was copied or restored has none."""
        return RecordedLosses.of(self)

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
        scale = self._stepper.counts.scale_like(loss)
        return self.scale if scale is None else scale

    def minimize(
        self,
        loss: Callable[[T], R],
        model: T,
        *,
        record: bool = False,
        in_backward: bool = False,
        has_aux: bool = False,
    ) -> R:
        """`compute_gradients`, then `update` in place; returns the value of the loss before the step.

        Args:
            loss: function of the model that returns a scalar.
            model: tree of the parameters.
            record: whether later steps replay value and gradient of the first one, with the same bits.
            in_backward: whether parameters are updated during the backward.
            has_aux: whether ``loss`` returns ``(value, aux)``; `minimize` then returns both, from before the step.

        With ``record``, pass the same function in each step, which reads a batch from variables (see `oxigrad.record`).
        With a ``loss_scale``, the loss runs unrecorded.

        With ``in_backward``, each parameter is updated during the backward, as soon as its gradient is final. The
        gradient is then dropped, so memory holds a few gradients at a time. The bits do not change. Some steps need all
        gradients at once, and follow the backward: steps with a rule that sums over all parameters
        (`ClipByGlobalNorm`), of parameters on a device, of `SAM`, and with ``accumulate``, ``loss_scale``,
        ``nonfinite``, ``zero_gradients`` or ``state_device``. Raises `ValueError` together with ``record``, and for
        optimizers with another `minimize`. After an error in the middle, `ahead` names the updated parameters, and
        `flush` finishes the step.

        >>> import numpy as np
        >>> from oxigrad import xp
        >>> from oxigrad.optim import SGD
        >>> model = {"w": np.array([3.0, 4.0])}
        >>> float(SGD(0.25).minimize(lambda m: xp.sum(m["w"] ** 2), model, in_backward=True)), model
        (25.0, {'w': array([1.5, 2. ])})

        Raises `StructureError`, before anything is changed, where a parameter can neither be written nor replaced in
        ``model`` itself; use `update`, which returns the new tree.
        """
        check_callable(loss, "minimize")
        check_flags(record=record, in_backward=in_backward, has_aux=has_aux)
        if has_aux:
            return minimized_with_aux(self.minimize, loss, model, record=record, in_backward=in_backward)
        if in_backward:
            is_own = type(self).minimize is Optimizer.minimize
            in_parts = in_backward_steps.is_in_parts(self, record=record, is_own=is_own)
            if in_parts and not self._has_own_gradients():
                return in_backward_steps.minimize(self, loss, model)
        value, grads = self._gradients_of_step(loss, model, record=record)
        with self._lock.stepping():
            self._stepper.update(model, grads, loss=value, keep_root=True)
        return value

    def _has_own_gradients(self) -> bool:
        """Whether a subclass computes gradients in another way than by one value and gradient of the loss."""
        base, cls = Optimizer, type(self)
        return cls.compute_gradients is not base.compute_gradients or cls._gradients is not base._gradients

    def _refuse_in_backward(self, *, record: bool = False) -> None:
        """Raises `ValueError` for an optimizer with another `minimize`, and for ``record``."""
        in_backward_steps.is_in_parts(self, record=record, is_own=type(self).minimize is Optimizer.minimize)

    @property
    def ahead(self) -> list[str]:
        """The key paths of the parameters that `minimize` with ``in_backward`` updated in a step that an error ended.

        The others are as before the step, whose gradients are lost. `flush` finishes the step: it counts it, for all
        parameters.
        """
        return self._stepper.open.ahead

    # --- as a pure function -------------------------------------------------------------------------------------------

    def init(
        self, params: Tree, *, groups: Mapping[Any, Mapping[str, Any]] | None = None, **hyperparameters: Any
    ) -> dict[str, Any]:
        """The state before the first step, for `apply`: the step, and the slots by key path.

        Hyperparameters by which slots begin, such as ``initial_accumulator``, may be given as to `apply`, and with the
        errors of `apply`: the state is a differentiable function of them. Norms of ``record_norms`` and averages are
        slots of the state, such as "gradient-norm" and "average"; the optimizer's own attributes stay empty.

        >>> import numpy as np
        >>> from oxigrad.optim import Adam
        >>> sorted(Adam().init({"w": np.ones(2)})["slots"]["w"])
        ['m', 'v']
        """
        self._refuse_pure()
        if groups is None:
            return functional.init(self._step_options, params, hyperparameters)
        return functional.init(self._step_options, params, hyperparameters, param_groups.chosen(groups, params))

    def apply(
        self,
        params: T,
        grads: Tree,
        state: dict[str, Any],
        *,
        groups: Mapping[Any, Mapping[str, Any]] | None = None,
        loss: Array | None = None,
        **hyperparameters: Any,
    ) -> tuple[T, dict[str, Any]]:
        """The step of `update` as a pure function: returns the new parameters and the new state.

        Args:
            params: tree of the parameters, which do not change.
            grads: gradients in the structure of ``params``.
            state: state that `init` or `apply` returned.
            groups: dict from patterns of key paths, as in the constructor, to hyperparameters for the matches.
            loss: value of the loss, for rules that read it, such as `MoMo`; it may be traced.
            **hyperparameters: numbers, variables or arrays without axes, which may be traced, for all groups;
                ``state["hyperparameters"]`` may hold them too, by name.

        It can be traced (``jax.jit``), and differentiated with respect to parameters, gradients, state and
        hyperparameters. On arrays in host memory it runs the kernels of `update`, on copies, and gives the same bits.
        If it is differentiated, or the arrays are on a device, rules are called on arrays. Last bits may then differ:
        libraries sum in other orders, and compute powers and float64 numbers beside float32 arrays in other ways.

        With a `LossScale`, gradients are divided by its value, which does not change; a traced function contains it as
        a constant. With ``nonfinite="raise"``, raises `NonFiniteError` as `update` does. A traced function cannot raise
        it, and skips the step. The state is the caller's to save; see `save`.

        Raises `TypeError` for an unknown name, for a function of the step, and for a variable instead of an
        integer; `ValueError` for a number out of range, and for parameters whose slots would be quantized ("8bit",
        "4bit"); `StructureError` for a pattern that matches no parameter; and
        `StateError` for a hyperparameter that needs a slot which the optimizer does not keep, such as ``momentum`` of
        ``SGD(momentum=0)``.

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
        self._refuse_pure()
        if groups is None:
            return functional.apply(
                self._step_options, params, grads, state, hyperparameters, loss=loss, resolved=self._resolved_applies
            )
        chosen = param_groups.chosen(groups, params)
        return functional.apply(self._step_options, params, grads, state, hyperparameters, chosen, loss=loss)

    def _refuse_pure(self) -> None:
        """Raises `ValueError` for a state in host memory, which belongs to the optimizer; notes a pure step."""
        vars(self)["_is_pure"] = True
        if self.state_device is not None:
            raise ValueError(
                f"{self.name}: state_device={self.state_device!r} is for update and minimize: expected None"
            )

    def _kernel_source(self, model: Tree) -> str:
        """See `oxigrad.cuda.source`."""
        return sources.source(self._step_options, model)

    def _why_no_kernel(self, model: Tree) -> str:
        """See `oxigrad.cuda.why`."""
        return sources.why(self._step_options, model)

    def table(self, model: Tree) -> Table:
        """A table of the parameters of ``model`` with optimizers and hyperparameters: text of at most 100 columns.

        Longer key paths are cut in the middle; ``rows`` of the table has them whole. Notebooks show it as HTML.

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
            what = (choice.name, choice.text) if choice else ("frozen", "")
            return (str(path), str(tuple(array.shape)), dtype_name(array.dtype), *what)

        parameters = tree.parameters(model)
        self._check_patterns([(str(path), array) for path, array in parameters.items()])
        rows = (row(path, array) for path, array in parameters.items())
        return Table(("parameter", "shape", "dtype", "optimizer", "hyperparameters"), rows, repr(self))


class LocalOptimizer(Optimizer):
    """Base class of optimizers that take steps themselves, with options: all but `oxigrad.distributed`'s."""

    def __init__(self, **options: Any) -> None:
        self._configure(options)

    def _configure(self, options: Mapping[str, Any]) -> None:
        """Sets the options at construction, after the hyperparameters."""
        self._new_state()
        vars(self).setdefault("_version", Version())  # for a rule, the version of its hyperparameters
        self._set_options(options)
        if self.slot_dtype is not None:
            check_slot_dtype(self.name, "slot_dtype", self.slot_dtype, self._rules_and_absent())
        vars(self)["_stepper"] = Stepper(self._new_options(), HostPlacement() if self.state_device else None)


Optimizer.__doc__ = with_options(Optimizer.__doc__, OPTIONS)  # pyright: ignore[reportAttributeAccessIssue]
