"""Optimizers as gradient transformations of optax: the state is a pytree, and a step is a pure function."""

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from oxigrad import tree, xp
from oxigrad._core import StateError, StructureError, is_inexact
from oxigrad.ops.backends import dtype_name, is_array, is_complex
from oxigrad.optax.displacement import displacement
from oxigrad.optim import LBFGS, SAM, Optimizer, ParameterGroup, Partition, RuleOptimizer
from oxigrad.rules.core.rule import Rule
from oxigrad.stepping.arrays.precision import half
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.pure import functional
from oxigrad.stepping.slots.averages import Averages, some
from oxigrad.stepping.state.step_count import check_step_count

try:
    jax: Any = importlib.import_module("jax")
    optax: Any = importlib.import_module("optax")
except ModuleNotFoundError as error:
    message = "oxigrad.optax needs JAX and optax: python -m pip install optax"
    raise ModuleNotFoundError(message, name=error.name) from error

# A function that makes the optimizer for the parameters.
Make = Callable[[Any], Optimizer]

# Options that optax provides by other means, with the values that disable them.
_OPTIONS = {"accumulate": 1, "nonfinite": "propagate", "loss_scale": None, "sparse": "dense", "zero_gradients": False}


class State(NamedTuple):
    """The state of a transformation: the steps taken, and the slots by name, each a tree like the parameters.

    A slot of one number has an array without axes for each parameter. A parameter without the slot has None there.
    """

    count: Any
    slots: dict[str, Any]


class Transformation(optax.GradientTransformationExtraArgs):
    """An ``optax.GradientTransformationExtraArgs``, whose third function takes the whole step.

    ``init(params)`` and ``update(updates, state, params)`` are optax's. ``apply(updates, state, params)`` is ``update``
    followed by ``optax.apply_updates``, and returns the new parameters and the new state. ``averaged_parameters(state, params)``
    is the average that optimizers such as the schedule-free ones keep; it raises `StateError` where there is none.
    """

    apply: Callable[[Any, State, Any], tuple[Any, State]]
    averaged_parameters: Callable[[State, Any], Any]
    steps: "Steps"


def transformation(
    opt: Optimizer | Make, *, dtypes: Mapping[str, Any] | None = None, flags: Mapping[str, Any] | None = None
) -> Transformation:
    """Any optimizer of `oxigrad.optim` as a gradient transformation of optax.

    Args:
        opt: the optimizer, whose own state is neither read nor changed; or a function of the parameters that returns it.
        dtypes: the dtypes of slots, by the name of the slot; None for the optimizer's own choice.
        flags: traced numbers for hyperparameters that are flags of the rule, such as ``epsilon_root``.

    Parameters are any pytree of JAX. Their key paths, which patterns of ``groups`` match, are the keys, fields and indices joined
    by dots. One array at two key paths is two parameters, as it is under ``jax.jit``. The updates of leaves that are frozen, or not of a floating-point dtype,
    are zeros. Parameters of half precision are updated in float32, and have slots of float32.

    Raises `TypeError` for an optimizer that evaluates the loss (`LBFGS`, `SAM`), and `ValueError` where one of the options
    ``accumulate``, ``nonfinite``, ``loss_scale``, ``sparse`` and ``zero_gradients`` is set: `optax.MultiSteps` and
    `optax.apply_if_finite` do that here. ``update`` raises `ValueError` without ``params``.

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
    steps = Steps((lambda params: opt) if isinstance(opt, Optimizer) else opt, dtypes or {}, flags or {})
    return made_of(steps)


def made_of(steps: "Steps") -> Transformation:
    """The transformation that takes these steps."""
    made = Transformation(steps.init, steps.update)
    made.apply, made.averaged_parameters, made.steps = steps.apply, steps.averaged_parameters, steps
    return made


def _check(opt: Optimizer) -> None:
    if isinstance(opt, (LBFGS, SAM)):
        raise TypeError(f"{opt.name} evaluates the loss: expected an optimizer that takes a step from a gradient")
    for name, default in _OPTIONS.items():
        if getattr(opt, name) != default:
            raise ValueError(f"{name} is {getattr(opt, name)!r}: expected {default!r} for a transformation of optax")


class Named:
    """The leaves of a pytree of JAX by key path, as a tree of oxigrad: nested dicts."""

    def __init__(self, params: Any) -> None:
        self.params = params
        found, self.structure = jax.tree_util.tree_flatten_with_path(params)
        self._keys = [tuple(map(_key, path)) for path, _ in found]
        self.leaves = _distinct([jax.numpy.asarray(leaf) for _, leaf in found])
        self.tree = self.nested(self.leaves)
        named, structure = tree.flatten(self.tree)
        self.paths = [str(structure.path(i)) for i in range(len(named))]
        if len(named) != len(self.leaves):
            raise StructureError("the parameters have two leaves of one key path: expected keys that print differently")

    def nested(self, leaves: Sequence[Any]) -> Any:
        """Arrays like the leaves, in nested dicts."""
        if self._keys == [()]:
            return leaves[0]
        root: dict[Any, Any] = {}
        for keys, leaf in zip(self._keys, leaves, strict=True):
            at = root
            for key in keys[:-1]:
                at = at.setdefault(key, {})
            at[keys[-1]] = leaf
        return root

    def like(self, given: Any, what: str) -> list[Any]:
        """The leaves of a pytree of the same structure."""
        try:
            return self.structure.flatten_up_to(given)
        except ValueError as error:
            raise StructureError(f"the {what} have another structure than the parameters: {error}") from None

    @property
    def has_parameters(self) -> bool:
        """Whether there is a leaf that an optimizer may update."""
        return any(map(is_inexact, self.leaves))

    def gradients(self, updates: Any) -> Any:
        """The gradients of the leaves, in nested dicts, in the dtypes of the leaves."""
        given = self.like(updates, "updates")
        return self.nested([_of_dtype(g, leaf) for g, leaf in zip(given, self.leaves, strict=True)])

    def by_slot(self, slots: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> dict[str, Any]:
        """The trees of slots, by name, from the slots of each parameter by key path."""
        every = dict.fromkeys([*names, *(name for own in slots.values() for name in own)])
        return {
            name: self.structure.unflatten([slots.get(path, {}).get(name) for path in self.paths]) for name in every
        }

    def by_path(self, slots: Mapping[str, Any], opt: Optimizer) -> dict[str, dict[str, Any]]:
        """The slots of each parameter that an optimizer updates, by key path, from the trees of slots."""
        columns = {name: self.like(own, f"slots {name}") for name, own in slots.items()}
        found = {}
        rule_of = functools.cache(lambda group: group.rule())
        for i, (path, leaf) in enumerate(zip(self.paths, self.leaves, strict=True)):
            group = opt._assign(path, leaf) if is_inexact(leaf) else None
            if group is not None:
                own = {name: column[i] for name, column in columns.items() if column[i] is not None}
                _check_slots(path, leaf, own, rule_of(group))
                found[path] = {name: jax.numpy.asarray(slot) for name, slot in own.items()}
        return found


def _of_dtype(g: Any, leaf: Any) -> Any:
    """A gradient in the dtype of its parameter, or in float32 for one of half precision; the leaf itself if it is not a parameter."""
    if not is_inexact(leaf):
        return leaf
    if not is_inexact(g) or is_complex(g) or is_complex(leaf):
        return g
    is_wider = half(leaf) is not None and dtype_name(g.dtype) == "float32"
    return g if is_wider else xp.astype(g, leaf.dtype, copy=False)


def key_paths(params: Any) -> list[str]:
    """The key paths of the leaves of a pytree, as groups of hyperparameters match them."""
    return Named(params).paths


def _key(key: Any) -> Any:
    """The key of a nested dict for a key of JAX."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            found = getattr(key, name)
            return found if type(found) in (int, str) else str(found)
    return str(key)


def _distinct(leaves: list[Any]) -> list[Any]:
    """The leaves without repeated arrays: repetitions are copies."""
    seen: set[int] = set()
    for number, leaf in enumerate(leaves):
        if id(leaf) in seen:
            leaves[number] = jax.numpy.array(leaf, copy=True)
        seen.add(id(leaves[number]))
    return leaves


def _adapted(flags: Mapping[str, Any], *, displaced: bool) -> Callable[[ParameterGroup], ParameterGroup] | None:
    """The groups of a step with traced ``flags``; if ``displaced``, their rules return the change of a parameter."""
    if not (flags or displaced):
        return None
    return functools.cache(lambda group: group.on_arrays(flags, displacement if displaced else None))


class Steps:
    """The functions of a transformation."""

    def __init__(self, make: Make, dtypes: Mapping[str, Any], flags: Mapping[str, Any]) -> None:
        self._make, self._dtypes, self.flags = make, dtypes, flags

    @property
    def arguments(self) -> tuple[Make, Mapping[str, Any], Mapping[str, Any]]:
        """The arguments that these steps were made from."""
        return self._make, self._dtypes, self.flags

    def init(self, params: Any) -> State:
        """The state before the first step."""
        named = Named(params)
        opt = self.optimizer(named)
        found = opt.init(named.tree)["slots"] if named.has_parameters else {}
        slots = named.by_slot(found, _slot_names(opt))
        return State(jax.numpy.zeros((), jax.numpy.int32), {name: self._cast(name, own) for name, own in slots.items()})

    def update(self, updates: Any, state: State, params: Any = None, **extra: Any) -> tuple[Any, State]:
        """The changes of the parameters in a step, and the next state; further arguments are ignored."""
        named = given_parameters(params)
        # Noise is drawn by the kernels that `apply` calls.
        is_random = _draws(self.optimizer(named))
        found, after = self._step(named, updates, state, displaced=not is_random)
        changes = [
            xp.zeros_like(leaf) if path not in after else new - leaf if is_random else new
            for path, leaf, new in zip(named.paths, named.leaves, found, strict=True)
        ]
        return named.structure.unflatten(changes), _next(named, state, after)

    def apply(self, updates: Any, state: State, params: Any = None, **extra: Any) -> tuple[Any, State]:
        """The new parameters, and the next state; further arguments are ignored."""
        named = given_parameters(params)
        found, after = self._step(named, updates, state, displaced=False)
        return named.structure.unflatten(found), _next(named, state, after)

    def averaged_parameters(self, state: State, params: Any) -> Any:
        """The averages of the parameters; see `Transformation`."""
        named = given_parameters(params)
        opt, (leaves, structure) = self.optimizer(named), tree.flatten(named.tree)
        plan = Plan(leaves, structure, opt)
        found = some(Averages().compute(plan, leaves, named.by_path(state.slots, opt), state.count), "averages")
        averages = [
            xp.astype(found.get(path, leaf), leaf.dtype, copy=False)
            for path, leaf in zip(named.paths, named.leaves, strict=True)
        ]
        return named.structure.unflatten(averages)

    def _step(self, named: Named, updates: Any, state: State, *, displaced: bool) -> tuple[list[Any], Any]:
        """The results for the leaves, and the slots of the parameters by key path."""
        given = named.gradients(updates)
        if not named.has_parameters:
            return named.leaves, {}
        opt = self.optimizer(named)
        check_state(state)
        before = {"step": jax.numpy.asarray(state.count), "slots": named.by_path(state.slots, opt)}
        adapt = _adapted(self.flags, displaced=displaced)
        found, after = functional.apply(opt, named.tree, given, before, adapt=adapt)
        return tree.leaves(found), after["slots"]

    def optimizer(self, named: Named) -> Optimizer:
        """The optimizer for these parameters."""
        opt = self._make(named.params)
        _check(opt)
        return opt

    def _cast(self, name: str, slot: Any) -> Any:
        """A slot in the requested dtype."""
        dtype = self._dtypes.get(name)
        return slot if dtype is None else jax.tree.map(lambda array: array.astype(dtype), slot)


def check_state(state: Any) -> None:
    """Raises `StateError` for what is not the state of a transformation, or has a count that is no whole number."""
    count, slots = getattr(state, "count", None), getattr(state, "slots", None)
    if count is None or not isinstance(slots, Mapping):
        raise StateError(f"the state is {type(state).__name__}: expected the State that init or the last step returned")
    found = jax.numpy.asarray(count) if isinstance(count, int) or is_array(count) else None
    if found is None or found.shape or not jax.numpy.issubdtype(found.dtype, jax.numpy.integer):
        raise StateError(f"the state has count {count!r}: expected a whole number of steps, an array without axes")
    check_step_count(found, "the state has count")


def _check_slots(path: str, p: Any, own: Mapping[str, Any], rule: Rule) -> None:
    """Raises `StateError` for slots of a parameter that are missing, or have another dtype or shape than its rule has them in."""
    for slot in rule.slots:
        name, found = slot.name, own.get(slot.name)
        if found is None:
            if not rule.elementwise:  # vectors lack slots of matrices
                continue
            raise StateError(
                f"{path}: the state has no slot {name}: expected the State that init or the last step returned"
            )
        if not is_array(found) or not is_inexact(found):
            kind = dtype_name(found.dtype) if is_array(found) else type(found).__name__
            raise StateError(f"{path}: the slot {name} is {kind}: expected an array of a floating-point dtype")
        shape = () if slot.is_number else tuple(p.shape)
        if tuple(found.shape) != shape and (rule.elementwise or slot.is_number):
            raise StateError(f"{path}: the slot {name} has shape {tuple(found.shape)}: expected {shape}")


def given_parameters(params: Any) -> Named:
    """The parameters of a step; raises `ValueError` for None."""
    if params is None:
        raise ValueError("params is None: expected the parameters, as in update(updates, state, params)")
    return Named(params)


def _next(named: Named, state: State, slots: Mapping[str, Mapping[str, Any]]) -> State:
    """The state after one more step."""
    return State(optax.safe_increment(state.count), named.by_slot(slots, state.slots))


def _rules(opt: Optimizer) -> list[Rule]:
    """The rules of an optimizer: one, or those of a partition."""
    parts = opt.optimizers.values() if isinstance(opt, Partition) else [opt]
    return [ParameterGroup(each, each, {}).rule() for each in parts if isinstance(each, RuleOptimizer)]


def _slot_names(opt: Optimizer) -> list[str]:
    """The names of all slots that parameters may have."""
    return [*dict.fromkeys(slot.name for rule in _rules(opt) for slot in rule.slots)]


def _draws(opt: Optimizer) -> bool:
    """Whether a rule draws random numbers, or results are rounded by them."""
    return opt._precision.rounding == "stochastic" or any("noise" in rule.supplied for rule in _rules(opt))
