"""A step as a pure function: rules on arrays, or kernels from a compiled function. Nothing is written."""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from oxigrad import _core, tree, xp
from oxigrad._core import StateError
from oxigrad._names import nearest, path_name
from oxigrad.ops.backends import is_array, on_host
from oxigrad.step.arrays.alignment import align, check_order
from oxigrad.step.arrays.gradient_check import nonfinite_error
from oxigrad.step.arrays.precision import SLOT_DTYPES
from oxigrad.step.arrays.quantized import CODECS, Quantized
from oxigrad.step.arrays.sparse_rows import LAST_STEP
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.step.parameters.presence import accumulated
from oxigrad.step.parameters.rule_executors import CalledLeaf
from oxigrad.step.parameters.rule_group import slot_dtype
from oxigrad.step.plan.gradients import aligned_gradients
from oxigrad.step.plan.plan import Plan
from oxigrad.step.plan.step_program import checked_loss, refused_accumulation
from oxigrad.step.pure.fused import run_rules, select
from oxigrad.step.pure.on_copies import known_number
from oxigrad.step.pure.pure_step import PureStep
from oxigrad.step.slots.initial import misshapen, new_slots
from oxigrad.step.state.step_count import check_step_count
from oxigrad.step.writes import called_leaves

_NONE: Mapping[str, Any] = MappingProxyType({})
# The keys of a state.
_KEYS = ("step", "slots", "micro", "missed_steps", "hyperparameters")


def _no_group(path: str, array: Any) -> Mapping[str, Any]:
    return _NONE


def init(
    options: SteppingOptions,
    params: Any,
    hyperparameters: Mapping[str, Any] = _NONE,
    group_of: Callable[[str, Any], Mapping[str, Any]] = _no_group,
) -> dict[str, Any]:
    """See `Optimizer.init`."""
    leaves, structure = tree.flatten(params)
    plan = Plan(leaves, structure, options)
    leaves = plan.detach(leaves)
    _refuse_codes(plan, leaves)
    _check_names("init", plan.groups, hyperparameters)
    of_groups = [group.checked(hyperparameters) for group in plan.groups]
    values = _own_values("init", plan, [group_of(p.text, leaves[p.index]) for p in plan.parameters], of_groups)
    slots = {
        p.text: new_slots(
            plan.groups[p.group], p.text, leaves[p.index], on_host=False, coded=False, values=of_parameter
        )
        for p, of_parameter in zip(plan.parameters, values, strict=True)
    }
    return {"step": 0, "slots": slots, **({"micro": 0} if options.accumulate > 1 else {})}


def apply(
    options: SteppingOptions,
    params: Any,
    grads: Any,
    state: dict[str, Any],
    hyperparameters: Mapping[str, Any] = _NONE,
    group_of: Callable[[str, Any], Mapping[str, Any]] = _no_group,
    adapt: Callable[[ParameterGroup], ParameterGroup] | None = None,
    loss: Any = None,
    resolved: dict[str, PureStep] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """See `Optimizer.apply`: nothing is written. ``group_of`` gives the hyperparameters of a path and an array.

    ``adapt`` is that of `Plan`. ``resolved`` holds the ``step`` that the last call resolved.
    """
    is_plain = not hyperparameters and group_of is _no_group and adapt is None
    reused = resolved if is_plain else None
    # Taken out of the dict meanwhile: another thread resolves a step of its own.
    step = None if reused is None else reused.pop("step", None)
    taken = None if step is None else step.take(params, grads, state, options, loss)
    if taken is not None and reused is not None and step is not None:
        reused["step"] = step
        return taken
    _check_state(options, state)
    plan, leaves, gradients = _planned(options, params, grads, state, adapt)
    _refuse_codes(plan, leaves)
    last = state["micro"] + 1 == options.accumulate if options.accumulate > 1 else True
    of_groups = _numbers(plan, state, hyperparameters, loss)
    values = _own_values("apply", plan, [group_of(p.text, leaves[p.index]) for p in plan.parameters], of_groups)
    begun = {p.text: _with_new_slots(plan, p, leaves[p.index], state["slots"][p.text]) for p in plan.parameters}
    missed = state.get("missed_steps", {})
    for at, p in enumerate(plan.parameters):
        if p.text in missed:
            step = values[at]["step"]
            values[at] = {**values[at], "step": step - known_number(missed[p.text]), "drawn_at": step}

    def called_on(holds: bool) -> list[CalledLeaf]:
        rules = [group.rule(holds) for group in plan.groups]
        return called_leaves(plan, plan.parameters, leaves, gradients, begun, rules, values)

    def results_of(called: list[CalledLeaf]) -> tuple[list[list[Any]], Any]:
        groups = [plan.groups[parameter.group] for parameter in plan.parameters]
        kernels = [functools.partial(group.traced, leaf.rule) for group, leaf in zip(groups, called, strict=True)]
        results, keep = run_rules(called, kernels, options.seed)
        return results, known_number(keep)

    called = called_on(holds=False)
    results, keep = results_of(called)
    if keep is False and options.nonfinite == "raise":
        raise nonfinite_error({p.text: gradients[p.index] for p in plan.parameters})
    if options.accumulate > 1:
        held, _ = results_of(called_on(holds=True))
        results = [select(last, new, old) for new, old in zip(results, held, strict=True)]
    slots = {}
    for parameter, leaf, (new, *after) in zip(plan.parameters, called, results, strict=True):
        for i in parameter.indices:
            leaves[i] = new
        slots[parameter.text] = _slots_after(leaf, after, keep)
    changed = _state_after(state, slots, keep, last)
    if reused is not None and (pure := PureStep.of(plan, changed)) is not None:
        reused["step"] = pure
    if options.accumulate > 1:
        changed["micro"] = xp.where(keep, xp.where(last, 0, state["micro"] + 1), state["micro"])
    return tree.unflatten(plan.structure, leaves), changed


def _planned(
    options: SteppingOptions,
    params: Any,
    grads: Any,
    state: Mapping[str, Any],
    adapt: Callable[[ParameterGroup], ParameterGroup] | None,
) -> tuple[Plan, list[Any], list[Any]]:
    """The plan for a step from a state, the leaves, and their gradients. Raises for parameters not in the state."""
    leaves, structure = tree.flatten(params)
    aligned = align(structure, grads)
    check_order(structure, leaves, aligned)
    if options.accumulate > 1:
        # As zeros, since whether the others of the mean are None is not known in a traced program.
        accumulated(structure, leaves, aligned.leaves, set(), first=False, last=False)
    present = None if aligned.is_complete else aligned.present()
    plan = Plan(leaves, structure, options, present=present, adapt=adapt)
    leaves, gradients = plan.detach(leaves), aligned_gradients(plan, aligned, called=True)
    plan.check_parameters(leaves)
    plan.check_known(state["slots"])
    if missing := [p.text for p in plan.parameters if p.text not in state["slots"]]:
        raise StateError(
            f"{missing[0]}: the state has no slots: expected the state that init or the last apply returned"
        )
    if isinstance(state["step"], int) and state["step"] >= _core.MOST_STEPS:
        raise StateError(f"{state['step']} steps have been taken: the step count cannot exceed this")
    return plan, leaves, gradients


def _refuse_codes(plan: Plan, leaves: Sequence[Any]) -> None:
    """Raises `ValueError` for a parameter whose slots would be codes, which no pure step reads."""
    dtypes = [group.precision.slot_dtype for group in plan.groups]
    for p in plan.parameters if any(dtype in CODECS for dtype in dtypes) else ():
        group = plan.groups[p.group]
        for slot in group.rule().slots:
            if not slot.is_number and isinstance(slot_dtype(group, slot, leaves[p.index], coded=True), str):
                others = ", ".join(map(repr, (each for each in SLOT_DTYPES[1:] if each not in CODECS)))
                raise ValueError(
                    f"{path_name(p.text)}: slot_dtype={dtypes[p.group]!r} would have no effect, since a pure step "
                    f"reads no codes: expected {others} or None"
                )


def _numbers(
    plan: Plan, state: Mapping[str, Any], hyperparameters: Mapping[str, Any], loss: Any
) -> list[dict[str, Any]]:
    """The flags and numbers of a step from a state, for each group."""
    count, micro = known_number(state["step"]), known_number(state.get("micro", 0))
    now = {"step": count + 1, "micro": micro + 1, "inverse_scale": 1.0 / plan.options.scale}
    now["loss"] = loss_of(plan, loss)
    numbers = {**state.get("hyperparameters", {}), **hyperparameters}
    _check_names("apply", plan.groups, numbers)
    return [{**now, **group.flags, **group.numbers(count), **group.checked(numbers)} for group in plan.groups]


def _slots_after(leaf: CalledLeaf, after: Sequence[Any], keep: Any) -> dict[str, Any]:
    """The slots of a parameter after a step, where it is to ``keep`` the results."""
    slots = {slot.name: value for slot, value in zip(leaf.rule.slots, after, strict=True) if value is not None}
    if LAST_STEP in leaf.slots:
        slots[LAST_STEP] = select(keep, [leaf.stamped()], [leaf.slots[LAST_STEP]])[0]
    return slots


def _state_after(state: Mapping[str, Any], slots: Mapping[str, Any], keep: Any, last: Any) -> dict[str, Any]:
    """The state after a step with new ``slots``.

    The step counts if it is to ``keep`` the results, and has the ``last`` of its gradients.
    """
    counted = xp.where(xp.logical_and(keep, last), 1, 0) if keep is not True or last is not True else 1
    missed = state.get("missed_steps", {})
    inactive = {path: untouched for path, untouched in state["slots"].items() if path not in slots}
    changed = {"step": state["step"] + counted, "slots": {path: {**slots, **inactive}[path] for path in state["slots"]}}
    if inactive or missed:
        changed["missed_steps"] = {**missed, **{path: missed.get(path, 0) + counted for path in inactive}}
    if "hyperparameters" in state:
        changed["hyperparameters"] = state["hyperparameters"]
    return changed


def loss_of(plan: Plan, loss: Any) -> Any:
    """The loss, where a rule reads it; else None."""
    name = next((rule.name for group in plan.groups if "loss" in (rule := group.rule()).supplied), None)
    if name is None:
        return None
    if plan.options.accumulate > 1:
        raise refused_accumulation(name, plan.options.accumulate)
    return checked_loss(loss, name)


def _check_state(options: SteppingOptions, state: Any) -> None:
    """Raises `StateError` for what is not a state by `init` or `apply`."""
    expected = "expected the state that init or the last apply returned"
    if not isinstance(state, Mapping):
        raise StateError(f"the state is {type(state).__name__}: {expected}")
    for name in ("step", "slots", *(["micro"] if options.accumulate > 1 else [])):
        if name not in state:
            raise StateError(f"the state has no {name}: {expected}")
    if unknown := [name for name in state if name not in _KEYS]:
        raise StateError(
            f"the state has {', '.join(map(str, unknown))}: expected {', '.join(_KEYS)}; values of hyperparameters are "
            "keywords of apply, or a dict under 'hyperparameters'"
        )
    if not isinstance(state["slots"], Mapping):
        raise StateError(f"the slots of the state are {type(state['slots']).__name__}: {expected}")
    for name in ("step", "micro"):
        count = state.get(name, 0)
        if not is_array(count) or on_host(count):  # a step does not wait for a device
            check_step_count(count, f"the state has {name}")
    for path, by_name in state["slots"].items():
        if not isinstance(by_name, Mapping):
            raise StateError(
                f"{path_name(path)}: the slots of the state are {type(by_name).__name__}: expected arrays by name"
            )
        for slot, array in by_name.items():
            if not (is_array(array) or isinstance(array, (_core.Variable, Quantized))):
                raise StateError(f"{path_name(path)}: the slot {slot} is {type(array).__name__}: expected an array")


def _own_values(
    call: str, plan: Plan, hyperparameters: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The values of each parameter: those of its group, which are one object, with its own ``hyperparameters``."""
    merged: dict[tuple[int, int], Mapping[str, Any]] = {}
    for p, of_parameter in zip(plan.parameters, hyperparameters, strict=True):
        if (p.group, id(of_parameter)) not in merged:
            group = plan.groups[p.group]
            _check_names(call, [group], of_parameter)
            merged[p.group, id(of_parameter)] = (
                {**values[p.group], **group.checked(of_parameter)} if of_parameter else values[p.group]
            )
    return [merged[p.group, id(of_parameter)] for p, of_parameter in zip(plan.parameters, hyperparameters, strict=True)]


def _check_names(call: str, groups: Sequence[ParameterGroup], hyperparameters: Mapping[str, Any]) -> None:
    """Raises `TypeError`, with the name of the ``call``, for a name that is no numeric hyperparameter of a group."""
    numeric = {name: None for group in groups for name in group.numeric}
    if unknown := [name for name in hyperparameters if name not in numeric]:
        meant = nearest(str(unknown[0]), numeric)
        hint = f" (did you mean {meant}?)" if meant else ""
        names = ", ".join(map(str, unknown))
        raise TypeError(f"{call}: found {names}{hint}, expected numeric hyperparameters: {', '.join(numeric)}")


def _with_new_slots(plan: Plan, p: Parameter, array: Any, slots: dict[str, Any]) -> dict[str, Any]:
    """The slots of a parameter, with new ones if flags that changed since `init` require them."""
    group = plan.groups[p.group]
    if name := misshapen(group, p.text, array, slots, on_host=False, coded=False):
        raise StateError(
            f"{path_name(p.text)}: the slot {name} has shape {tuple(slots[name].shape)}: expected the slots of a "
            f"parameter of shape {p.shape}"
        )
    new = new_slots(group, p.text, array, on_host=False, coded=False, existing=slots)
    group.check_slots(p.text, slots, new)
    return {**slots, **new}
