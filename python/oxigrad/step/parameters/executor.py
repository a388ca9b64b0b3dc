"""The executors: the ways in which a step updates a parameter."""

import dataclasses
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.cuda.availability import is_launchable


@dataclasses.dataclass(frozen=True, eq=False)
class Executor:
    """A way to update a parameter: one of `HOST`, `COPY`, `DEVICE`, `RULE`, `RULE_INTO` and `RULE_ASSIGNED`.

    Args:
        name: the name in messages.
        is_core: whether the core computes the update.
        calls_rule: whether the rule is called on the arrays.
        replaces: whether the parameter's container is given another array.
        writes_host: whether the host memory of the parameter is written.
    """

    name: str
    is_core: bool = False
    calls_rule: bool = False
    replaces: bool = False
    writes_host: bool = False

    def __repr__(self) -> str:
        return self.name


#: The core updates the parameter in place.
HOST = Executor("host", is_core=True, writes_host=True)
#: The core updates a copy, which replaces the parameter.
COPY = Executor("copy", is_core=True, replaces=True)
#: A kernel updates the parameter in place on its device.
DEVICE = Executor("device")
#: The rule is called on the parameter, and the result replaces it.
RULE = Executor("rule", calls_rule=True, replaces=True)
#: The rule is called on the parameter, and the result is copied into its memory.
RULE_INTO = Executor("into", calls_rule=True, writes_host=True)
#: The rule is called on the parameter, and its library copies the result into its memory.
RULE_ASSIGNED = Executor("assigned", calls_rule=True)


def executor_of(array: Any, elementwise: bool = True) -> Executor:
    """The executor of a parameter, for a rule that is ``elementwise`` or one that is called on whole arrays."""
    if not _core.is_floating(array):
        return DEVICE if elementwise and is_launchable(array) else RULE
    if _core.is_writable(array):
        return HOST if elementwise else RULE_INTO
    return COPY if elementwise and isinstance(array, (np.ndarray, np.generic)) else RULE
