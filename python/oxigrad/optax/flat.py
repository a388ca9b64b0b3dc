"""Transformations with flat slots: one array each for all parameters."""

import functools
import itertools
from typing import Any

from oxigrad import tree, xp
from oxigrad._core import DtypeError, RuleError
from oxigrad.ops.backends import size_of
from oxigrad.optax.library import optax
from oxigrad.optax.pytrees import Named, State, given_parameters
from oxigrad.optax.transformation import Steps, Transformation, count_of, made_of
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.pure.functional import loss_of
from oxigrad.stepping.pure.fused import run_flat
from oxigrad.stepping.writes import called_leaves


def flat(tx: Transformation) -> Transformation:
    """The transformation with one array for each slot, which has the elements of all parameters one after the other.

    A compiled program of JAX has a cost for each array that it takes and returns, which for many small arrays exceeds that of the
    step; here only gradients and parameters are many. A slot of one number is a vector with a number for each parameter.
    ``update`` returns the rounded new parameters minus the old ones.

    ``tx`` is a transformation of `oxigrad.optax`, of one rule with the same hyperparameters for all parameters. ``init`` raises
    `RuleError` where the rule is called on whole arrays or parameters have groups, and `DtypeError` where they differ in dtype.

    >>> import jax.numpy as jnp
    >>> import oxigrad.optax
    >>> tx = flat(oxigrad.optax.adamw(1e-3))
    >>> {
    ...     name: slot.shape
    ...     for name, slot in tx.init({"a": jnp.zeros((2, 3)), "b": jnp.zeros(4)}).slots.items()
    ... }
    {'m': (10,), 'v': (10,)}
    """
    if not isinstance(tx, Transformation):
        raise TypeError(f"found {tx!r}: expected a transformation of oxigrad.optax")
    if type(tx.steps) is not Steps:
        raise TypeError(
            "found a transformation that is flat or draws noise: expected one whose steps are those of its rule alone"
        )
    if tx.steps.flags:
        raise TypeError("eps_root is traced: expected a number for a flat transformation")
    return made_of(_FlatSteps(tx.steps))


class _FlatSteps(Steps):
    """The functions of a transformation with flat slots."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(*steps.arguments)
        self._steps = steps

    def init(self, params: Any) -> State:
        """The state before the first step."""
        named = Named(params)
        if not named.leaves:
            return self._steps.init(params)
        plan = self._plan(named)[0]
        of_parameters = self._steps.init(params)
        are_numbers = {slot.name: slot.is_number for slot in plan.groups[0].rule().slots}
        slots = {
            name: xp.concat([xp.reshape(each, (-1,)) for each in named.like(slot, "slots")])
            for name, slot in of_parameters.slots.items()
            if name in are_numbers
        }
        return State(of_parameters.count, slots)

    def averaged_parameters(self, state: State, params: Any) -> Any:
        """The averages of the parameters; see `Transformation`."""
        named = given_parameters(params)
        ends = [*itertools.accumulate((size_of(leaf.shape) for leaf in named.leaves), initial=0)]
        (rule,) = [group.rule() for group in self._plan(named)[0].groups]
        numbers = {slot.name for slot in rule.slots if slot.is_number}
        slots = {
            name: named.structure.unflatten(
                [
                    flat[at] if name in numbers else xp.reshape(flat[ends[at] : ends[at + 1]], leaf.shape)
                    for at, leaf in enumerate(named.leaves)
                ]
            )
            for name, flat in state.slots.items()
        }
        return self._steps.averaged_parameters(State(state.count, slots), params)

    def _plan(self, named: Named) -> tuple[Plan, list[Any], Any]:
        """The plan of a step, the leaves, and the optimizer, which the plan refers to weakly."""
        leaves, structure = tree.flatten(named.tree)
        opt = self.optimizer(named)
        plan = Plan(leaves, structure, opt)
        for p in plan.parameters:
            if p.dtype != leaves[0].dtype:
                raise DtypeError(
                    f"{p.text}: the parameter has dtype {p.dtype}, the first {leaves[0].dtype}: expected one dtype"
                )
        if len(plan.groups) > 1 or len(plan.parameters) < len(leaves) or not plan.groups[0].rule().elementwise:
            raise RuleError(
                "a flat transformation requires one elementwise rule, with the same hyperparameters for all parameters"
            )
        return plan, leaves, opt

    def take(
        self, updates: Any, state: State, params: Any = None, *, displaced: bool, value: Any = None, **extra: Any
    ) -> tuple[Any, State]:
        """See `Steps.take`."""
        named = given_parameters(params)
        count = count_of(state)
        named_gradients = named.gradients(updates)
        if not named.leaves:
            return named.structure.unflatten([]), State(optax.safe_increment(state.count), state.slots)
        plan, leaves, opt = self._plan(named)
        group = plan.groups[0]
        rule = group.rule()
        values = {
            "step": count + 1,
            "micro": 1,
            "inverse_scale": 1.0,
            "loss": loss_of(plan, value, opt),
            **group.flags,
            **group.numbers(count),
        }
        gradients = plan.gradients.read(named_gradients, called=True)
        nothing: dict[str, Any] = {p.text: {} for p in plan.parameters}
        called = called_leaves(plan, plan.parameters, leaves, gradients, nothing, [rule], [values])
        kernels = functools.partial(group.traced, rule)
        new, slots, _ = run_flat(called, kernels, state.slots, opt.seed, writes_change=displaced)
        return named.structure.unflatten(new), State(optax.safe_increment(state.count), slots)
