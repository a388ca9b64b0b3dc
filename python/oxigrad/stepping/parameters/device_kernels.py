"""The choice of kernels on a CUDA device for a parameter, and the reason where the rule is called on arrays instead."""

from typing import Any

from oxigrad._core import DtypeError, RuleError, ShapeError
from oxigrad.cuda import launch
from oxigrad.cuda.availability import unavailable
from oxigrad.ops.backends import device_number, memory_of
from oxigrad.stepping.parameters.parameter_group import ParameterGroup

# How the reason begins where an elementwise rule has no kernel, of which a warning tells.
INEXPRESSIBLE = "no kernel has the rule"
FLOATING = ("float32", "float64", "float16", "bfloat16")


def why_not(array: Any) -> str:
    """The reason why no kernel on a device updates an array; empty if one can, given a rule that it can express."""
    memory = memory_of(array)
    if memory is None:
        number = device_number(array)
        return (
            "it is not in memory of a CUDA device"
            if number is None
            else "its library tells no address that may be written"
        )
    if memory.dtype not in FLOATING:
        return f"it has dtype {memory.dtype}"
    if not memory.is_dense:
        return "its elements do not lie one after the other" if memory.is_writable else "it is read-only"
    return unavailable(memory.device)


def is_launchable(array: Any) -> bool:
    """Whether kernels on a device can update an array: see `why_not`."""
    memory = memory_of(array)
    return memory is not None and memory.is_dense and memory.dtype in FLOATING and not unavailable(memory.device)


def is_permuted(array: Any) -> bool:
    """Whether an array on a device has an order of axes other than row-major, as a channels-last tensor has."""
    memory = memory_of(array)
    return memory is not None and memory.strides is not None


def why_not_rule(group: ParameterGroup, dtype: str, numbers: int, *, permuted: bool = False) -> str:
    """The reason why the rule of a group has no kernel for parameters of a dtype; empty if it has one.

    ``numbers`` is the number of scalars of a step. Kernels read the elements of ``permuted`` parameters in the order in
    which they lie in memory.
    """
    rule = group.rule()
    program = group.program(rule)
    if program is None:
        return f"the rule {rule.name} is not elementwise"
    if group.catches_up:
        return "slots of rows catch up (sparse='catch_up')"
    slots = sum(slot.is_number for slot in rule.slots)
    arrays = 2 + len(rule.slots) - slots
    draws = program.draws or group.precision.rounding == "stochastic"
    try:
        source = launch.text_of(program, (dtype,) * arrays, numbers, slots, False)
    except RuleError as error:
        return f"{INEXPRESSIBLE} {rule.name}: {error}"
    except (DtypeError, ShapeError) as error:
        return str(error)
    # The sum by which gradients are checked does not depend on the order.
    if permuted and (draws or source.sums > group.checks):
        return "its elements do not lie in row-major order, in which the rule sums them or draws random numbers"
    return ""
