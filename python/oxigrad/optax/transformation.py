"""Optimizers as gradient transformations of optax: the state is a pytree, and a step is a pure function."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

from oxigrad import tree, xp
from oxigrad._core import StateError
from oxigrad.ops.backends import is_array, on_host
from oxigrad.optax import library
from oxigrad.optax.displacement import displacement, displacement_of_kernel
from oxigrad.optax.eager import EagerStep
from oxigrad.optax.library import jax, optax
from oxigrad.optax.pytrees import Named, State, given_parameters
from oxigrad.optim import LBFGS, SAM, Optimizer, ParameterGroup, Partition, RuleOptimizer
from oxigrad.optim.optimizer import LocalOptimizer
from oxigrad.rules.core.rule import Rule
from oxigrad.step.arrays.precision import half
from oxigrad.step.plan.plan import Plan
from oxigrad.step.pure import functional
from oxigrad.step.slots.averages import averages_of, nonempty
from oxigrad.step.state.step_count import check_step_count

# A function that makes the optimizer for the parameters.
Make = Callable[[Any], Optimizer]
# A function that makes the group of a step from the optimizer's group.
Adapt = Callable[[ParameterGroup], ParameterGroup]


class Transformation(library.GradientTransformationExtraArgs):
    """An ``optax.GradientTransformationExtraArgs``, whose third function takes the whole step.

    Args:
        init: function of the parameters that returns the state.
        update: function of updates, state and parameters that returns new updates and state.

    ``init(params)`` and ``update(updates, state, params)`` are optax's. ``apply(updates, state, params)`` is ``update``
    followed by ``optax.apply_updates``, and returns the new parameters and the new state. ``averaged_parameters(state,
    params)`` is the average that optimizers such as the schedule-free ones keep; it raises `StateError` for other
    optimizers.
    """

    #: Its functions, of the optimizer that it shows.
    steps: "Steps"
    apply: Callable[[Any, State, Any], tuple[Any, State]]
    averaged_parameters: Callable[[State, Any], Any]

    def __repr__(self) -> str:
        return f"transformation({getattr(self, 'steps', self.init)!r})"


def transformation(
    opt: Optimizer | Make, *, dtypes: Mapping[str, Any] | None = None, flags: Mapping[str, Any] | None = None
) -> Transformation:
    """Any optimizer of `oxigrad.optim` as a gradient transformation of optax.

    Args:
        opt: the optimizer, whose own state is neither read nor changed; or a function of the parameters that returns
            it.
        dtypes: the dtypes of slots, by the name of the slot; None for the optimizer's own choice.
        flags: traced numbers for hyperparameters that are flags of the rule, such as ``epsilon_root``.

    Parameters are any pytree of JAX. Their key paths, which patterns of ``groups`` match, are the keys, fields and
    indices joined by dots. One array at two key paths is two parameters, as it is under ``jax.jit``. The updates of
    leaves that are frozen, or not of a floating-point dtype, are zeros. Parameters of half precision are updated in
    float32, and have slots of float32.

    Options have the effect that they have in `oxigrad.optim.Optimizer.apply`. With ``accumulate``, the updates are
    zeros until the last gradient of each mean. With ``nonfinite`` or ``loss_scale``, they are zeros for gradients with
    infinities or NaN. Outside of compiled functions, gradients may be `SparseRows`.

    Raises `TypeError` for an optimizer that evaluates the loss (`LBFGS`, `SAM`), and `ValueError` for
    ``zero_gradients``, since arrays of JAX cannot be written. ``update`` raises `ValueError` without ``params``.

    >>> import jax.numpy as jnp
    >>> from oxigrad import optim
    >>> tx = transformation(optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.5)))
    >>> params = {"w": jnp.zeros(2)}
    >>> updates, state = tx.update({"w": jnp.array([3.0, 4.0])}, tx.init(params), params)
    >>> updates["w"], int(state.count)
    (Array([-0.3, -0.4], dtype=float32), 1)
    """
    if isinstance(opt, Optimizer):
        _check(opt)
    elif not callable(opt):
        raise TypeError(f"found {opt!r}: expected an optimizer of oxigrad.optim, or a function that returns one")
    return made_of(Steps(opt, dtypes or {}, flags or {}))


def made_of(steps: "Steps") -> Transformation:
    """The transformation that takes these steps."""
    # optax's types allow for any tree as a state
    new = Transformation(cast("Any", steps.init), cast("Any", functools.partial(steps.take, displaced=True)))
    new.steps = steps
    new.apply = functools.partial(steps.take, displaced=False)
    new.averaged_parameters = steps.averaged_parameters
    return new


def _check(opt: Optimizer) -> None:
    if not isinstance(opt, LocalOptimizer):
        raise TypeError(
            f"{type(opt).__name__} wraps an optimizer: expected the optimizer within, which takes a step itself"
        )
    if isinstance(opt, (LBFGS, SAM)):
        raise TypeError(f"{opt.name} evaluates the loss: expected an optimizer that takes a step from a gradient")
    if opt.zero_gradients:
        raise ValueError(
            "zero_gradients is True: expected False for a transformation of optax, whose gradients cannot be written"
        )


def _changes_some(opt: Optimizer) -> bool:
    """Whether a step may leave parameters, or rows, as they are, so that it computes parameters, not changes."""
    return opt.sparse != "dense" or _may_skip(opt)


def _rounds(opt: Optimizer) -> bool:
    """Whether options round parameters of half precision, which the rounding of their changes cannot replace."""
    return opt.master or opt.rounding != "nearest"


def _may_skip(opt: Optimizer) -> bool:
    """Whether a step may be skipped, or accumulate its gradient."""
    return opt.accumulate > 1 or any("guard" in rule.supplied for rule in _rules(opt))


def _adapted(flags: Mapping[str, Any], around: Callable[[Rule], Rule] | None) -> Adapt | None:
    """The groups of a step with traced ``flags``, and with what ``around`` makes of their rules."""
    if not (flags or around):
        return None
    return functools.cache(lambda group: group.on_arrays(flags, around))


class Steps:
    """The functions of a transformation; ``perturb`` makes the gradients of a step from those given and the state."""

    def __init__(
        self,
        make: Optimizer | Make,
        dtypes: Mapping[str, Any],
        flags: Mapping[str, Any],
        perturb: Callable[[Any, State], Any] | None = None,
    ) -> None:
        self._make, self._dtypes, self._flags, self._perturb = make, dtypes, flags, perturb
        #: The resolved steps that return changes of parameters, or new parameters, and the structures that have none.
        self._eager: dict[bool, EagerStep] = {}
        self._has_none: set[tuple[bool, Any]] = set()

    def __repr__(self) -> str:
        return repr(self._make)

    def init(self, params: Any) -> State:
        """The state before the first step."""
        named = Named(params)
        opt = self.optimizer(named)
        slots_by_path = opt.init(named.tree)["slots"] if named.has_parameters else {}
        slots = named.by_slot(slots_by_path, _slot_names(opt))
        return State(
            jax.numpy.zeros((), jax.numpy.int32),
            {name: self._cast(name, column) for name, column in slots.items()},
            jax.numpy.zeros((), jax.numpy.int32) if opt.accumulate > 1 else None,
        )

    def take(
        self, updates: Any, state: State, params: Any = None, *, displaced: bool, value: Any = None, **extra: Any
    ) -> tuple[Any, State]:
        """The changes of parameters in a step if they are ``displaced``, else the new ones, and the next state.

        ``value`` is the loss; further arguments are ignored.
        """
        if self._perturb is not None:
            updates = self._perturb(updates, state)
        if (taken := self._taken_again(updates, state, params, value, displaced=displaced)) is not None:
            return taken
        named = given_parameters(params)
        opt = self.optimizer(named)
        # Under jit, noise is drawn by the kernels of whole steps.
        is_random = _draws(opt) and not isinstance(count_of(state), int)
        is_new = displaced and (is_random or _changes_some(opt) or (_rounds(opt) and any(map(half, named.leaves))))
        results, after = self._step(named, opt, updates, state, value, displaced=displaced and not is_new)
        if displaced:
            results = [
                xp.zeros_like(leaf) if path not in after["slots"] else new - leaf if is_new else new
                for path, leaf, new in zip(named.paths, named.leaves, results, strict=True)
            ]
        return named.structure.unflatten(results), _next(named, opt, state, after)

    def averaged_parameters(self, state: State, params: Any) -> Any:
        """The averages of the parameters; see `Transformation`."""
        named = given_parameters(params)
        opt, (leaves, structure) = self.optimizer(named), tree.flatten(named.tree)
        plan = Plan(leaves, structure, opt._step_options)
        by_path = nonempty(averages_of(plan, leaves, named.by_path(state.slots, opt), state.count), "averages")
        averages = [
            xp.astype(by_path.get(path, leaf), leaf.dtype, copy=False)
            for path, leaf in zip(named.paths, named.leaves, strict=True)
        ]
        return named.structure.unflatten(averages)

    def _step(
        self, named: Named, opt: Optimizer, updates: Any, state: State, value: Any, *, displaced: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        """The results for the leaves, and the state after the step as `Optimizer.apply` has it.

        ``value`` is the loss.
        """
        gradients, count = named.gradients(updates, opt), count_of(state)
        if not named.has_parameters:
            return named.leaves, {"slots": {}, "step": count}
        before = {"step": count, "slots": named.by_path(state.slots, opt)}
        if opt.accumulate > 1:
            before["micro"] = state.micro
        is_constant = isinstance(count, int) and not self._flags
        displace = displacement_of_kernel if is_constant else displacement
        adapt = _adapted(self._flags, displace if displaced else None)
        results, after = functional.apply(opt._step_options, named.tree, gradients, before, adapt=adapt, loss=value)
        if opt is self._make and not self._flags:
            self._resolve(named, opt, state, after["slots"], displaced=displaced)
        return tree.leaves(results), after

    def _resolve(self, named: Named, opt: Optimizer, state: State, slots: Any, *, displaced: bool) -> None:
        """Resolves the next steps, where kernels of the core take them on arrays that are not traced."""
        arrays = [state.count, *named.leaves]
        if (displaced, named.structure) in self._has_none or any(isinstance(each, jax.core.Tracer) for each in arrays):
            return
        adapt = _adapted({}, displacement_of_kernel if displaced else None)
        eager = EagerStep.of(named, opt, state, slots, adapt)
        if eager is None:
            self._has_none.add((displaced, named.structure))
        else:
            self._eager[displaced] = eager

    def _taken_again(
        self, updates: Any, state: State, params: Any, value: Any, *, displaced: bool
    ) -> tuple[Any, State] | None:
        """The resolved step; None if it is missing or does not fit."""
        # Taken out meanwhile, so another thread resolves another step.
        step, opt = self._eager.pop(displaced, None), self._make
        if step is None or not isinstance(opt, Optimizer):
            return None
        taken = step.take(opt, updates, state, params, value)
        if taken is None:
            return None
        self._eager[displaced] = step
        written, count, slots = taken
        return written, State(count, slots)

    def optimizer(self, named: Named) -> Optimizer:
        """The optimizer for these parameters."""
        opt = self._make if isinstance(self._make, Optimizer) else self._make(named.params)
        _check(opt)
        return opt

    def _cast(self, name: str, slot: Any) -> Any:
        """A slot in the requested dtype."""
        dtype = self._dtypes.get(name)
        return slot if dtype is None else jax.tree.map(lambda array: array.astype(dtype), slot)


def count_of(state: Any) -> Any:
    """The number of steps: an int, or an array if it is traced or on a device, which a step does not wait for.

    Raises `StateError` for what is not the state of a transformation, or has a count that is no whole number.
    """
    count, slots = getattr(state, "count", None), getattr(state, "slots", None)
    if count is None or not isinstance(slots, Mapping):
        raise StateError(f"the state is {type(state).__name__}: expected the State that init or the last step returned")
    array = jax.numpy.asarray(count) if isinstance(count, int) or is_array(count) else None
    if array is None or array.shape or not jax.numpy.issubdtype(array.dtype, jax.numpy.integer):
        raise StateError(f"the state has count {count!r}: expected a whole number of steps, an array without axes")
    check_step_count(array, "the state has count")
    return int(array) if not isinstance(array, jax.core.Tracer) and on_host(array) else array


def _next(named: Named, opt: Optimizer, state: State, after: Mapping[str, Any]) -> State:
    """The state after a step, from the state of `Optimizer.apply`."""
    slots = named.by_slot(after["slots"], state.slots)
    if not _may_skip(opt):
        return State(optax.safe_increment(state.count), slots)
    count, micro = (jax.numpy.asarray(after.get(name, 0), jax.numpy.int32) for name in ("step", "micro"))
    return State(count, slots, micro if opt.accumulate > 1 else None)


def _rules(opt: Optimizer) -> list[Rule]:
    """The rules of an optimizer: one rule, or the rules of a partition."""
    parts = opt.optimizers.values() if isinstance(opt, Partition) else [opt]
    return [each._whole_group().rule() for each in parts if isinstance(each, RuleOptimizer)]


def _slot_names(opt: Optimizer) -> list[str]:
    """The names of all slots that parameters may have."""
    return [*dict.fromkeys(slot.name for rule in _rules(opt) for slot in rule.slots)]


def _draws(opt: Optimizer) -> bool:
    """Whether a rule draws random numbers, or results are rounded by them."""
    return opt.rounding == "stochastic" or any("noise" in rule.supplied for rule in _rules(opt))
