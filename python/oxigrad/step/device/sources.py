"""The texts of the kernels that a step of a model launches on a device, and the reasons where it launches none."""

from collections.abc import Iterator
from typing import Any

from oxigrad import tree
from oxigrad.cuda.availability import why_not
from oxigrad.cuda.launch import text_of
from oxigrad.ops.backends import dtype_name, is_array
from oxigrad.step.arrays.quantized import CODECS
from oxigrad.step.parameters.device_kernels import accepts, dtypes_of, is_permuted
from oxigrad.step.parameters.executor import DEVICE
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.step.parameters.rule_group import slot_dtype
from oxigrad.step.plan.plan import Plan

_NONE = "// The rule is called on arrays"


def source(options: SteppingOptions, model: Any) -> str:
    """See `oxigrad.cuda.source`."""
    return "\n".join(f"// {', '.join(paths)}\n{text}" for text, paths in _paths_by_text(options, model).items())


def why(options: SteppingOptions, model: Any) -> str:
    """See `oxigrad.cuda.why`."""
    leaves, structure = tree.flatten(model)
    plan = Plan(leaves, structure, options)
    by_reason: dict[str, list[str]] = {}
    for p in plan.parameters:
        group, array = plan.groups[p.group], leaves[p.index]
        dtypes = dtypes_of(group.rule(), dtype_name(p.dtype))
        reason = accepts(group, dtypes, permuted=is_permuted(array)) or (
            why_not(array) if is_array(array) else "it is no array"
        )
        if not reason and p.executor is not DEVICE:
            reason = "the rule needs a value over all parameters, and others have no kernel or are on another device"
        if reason:
            by_reason.setdefault(reason, []).append(p.text)
    return "\n".join(f"{', '.join(paths)}: {reason}" for reason, paths in by_reason.items())


def texts(options: SteppingOptions, model: Any) -> list[str]:
    """The distinct texts, without those of rules that have no kernel."""
    return [text for text in _paths_by_text(options, model) if not text.startswith(_NONE)]


def _paths_by_text(options: SteppingOptions, model: Any) -> dict[str, list[str]]:
    """The texts, each with the key paths of its parameters."""
    leaves, structure = tree.flatten(model)
    plan = Plan(leaves, structure, options)
    by_text: dict[str, list[str]] = {}
    for p in plan.parameters:
        for text in _texts(plan.groups[p.group], p, leaves[p.index], is_dense=plan.options.sparse == "dense"):
            by_text.setdefault(text, []).append(p.text)
    return by_text


def _texts(group: ParameterGroup, p: Parameter, array: Any, *, is_dense: bool) -> Iterator[str]:
    """The text for a parameter, as if it were on a device, or a comment with the reason why there is none."""
    rule = group.rule()
    if why := accepts(group, dtypes_of(rule, dtype_name(p.dtype))):
        yield f"{_NONE}: {why}\n"
        return
    slots = [slot for slot in rule.slots if not slot.is_number]
    slot_dtypes = [slot_dtype(group, slot, array, coded=is_dense) for slot in slots]
    stored = [CODECS[dtype].stored if isinstance(dtype, str) else dtype_name(dtype) for dtype in slot_dtypes]
    dtype_of_parameter = dtype_name(p.dtype)
    stochastic = group.precision.rounding == "stochastic"
    numbers = len(rule.slots) - len(slots)
    yield text_of(
        group.program(rule), (dtype_of_parameter, dtype_of_parameter, *stored), len(rule.numbers), numbers, stochastic
    ).text
