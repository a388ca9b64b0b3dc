"""The choice of kernels on a CUDA device for a parameter, and the reason where the rule is called on arrays instead."""

from collections.abc import Sequence
from typing import Any

from oxigrad._core import DtypeError, RuleError, ShapeError
from oxigrad.cuda import launch
from oxigrad.cuda.availability import tell
from oxigrad.ops.backends import memory_of
from oxigrad.rules.core.rule import Rule
from oxigrad.step.parameters.rule_group import RuleGroup

# How the reason begins where an elementwise rule has no kernel, of which a warning tells.
INEXPRESSIBLE = "no kernel has the rule"
# The reason that does not concern a row-major copy.
PERMUTED = "its elements do not lie in row-major order, in which the rule sums them or draws random numbers"


def is_permuted(array: Any) -> bool:
    """Whether an array on a device has an order of axes other than row-major, as a channels-last tensor has."""
    memory = memory_of(array)
    return memory is not None and memory.strides is not None


def accepts(
    group: RuleGroup, dtypes: Sequence[str], number_dtype: str = "float64", *, permuted: bool = False
) -> str | None:
    """The reason why no kernel updates a parameter by the rule of a group; None if one does.

    ``dtypes`` are those of the parameter and of its slots, but for slots of one number, which have ``number_dtype``.
    Kernels read the elements of ``permuted`` parameters in the order in which they lie in memory.
    """
    rule = group.rule()
    program = group.program(rule)
    if program is None:
        return f"the rule {rule.name} is not elementwise"
    if group.catches_up:
        return "slots of rows catch up (sparse='catch_up')"
    numbers, stochastic = sum(slot.is_number for slot in rule.slots), group.precision.rounding == "stochastic"
    try:
        source = launch.text_of(program, (dtypes[0], *dtypes), len(rule.numbers), numbers, stochastic, number_dtype)
    except RuleError as error:
        return f"{INEXPRESSIBLE} {rule.name}: {error}"
    except (DtypeError, ShapeError) as error:
        return str(error)
    # The sum by which gradients are checked does not depend on the order.
    return PERMUTED if permuted and (program.draws or stochastic or source.sums > group.checks) else None


def tell_inexpressible(reason: str) -> None:
    """Warns, once, where the ``reason`` is that no kernel has an elementwise rule."""
    if reason.startswith(INEXPRESSIBLE):
        tell(reason)


def dtypes_of(rule: Rule, dtype: str) -> list[str]:
    """The dtypes of a parameter and its slots, but for slots of one number, where all are of the same ``dtype``."""
    return [dtype, *(dtype for slot in rule.slots if not slot.is_number)]
