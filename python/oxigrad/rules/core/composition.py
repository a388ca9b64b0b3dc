"""Composition of the rules of a chain into one rule, in which each part has its own hyperparameters and slots.

Each part reads the results of the parts before it. Before the first update rule, a gradient transform changes the
gradient. After it, the step ``p - new`` takes the role of the gradient, as ``optax.chain`` passes updates on: a
gradient transform changes the step, and a further update rule reads it as its gradient. A parameter transform changes
the new parameter, so it must come after an update rule. A transform that names `GRADIENT` receives the gradient that
the first update rule received.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from oxigrad._typing import Array, Namespace
from oxigrad.rules.core.rule import Rule, Stages
from oxigrad.rules.core.slots import Formula

# The argument of a transform, after ``*``, that receives the gradient of the loss.
GRADIENT = "gradient"

# Maps the names of slots and hyperparameters in one part to their names in the composed rule.
Names = dict[str, str]


def compose(parts: Sequence[Rule], *, until: int | None = None, labels: Sequence[str] | None = None) -> Rule:
    """The rule that applies the parts in order; with ``until``, only the first ``until`` parts.

    Errors name the parts by ``labels``, by default the names of the rules.

    If several parts have a hyperparameter or slot of the same name, it is prefixed by the number of its part, as in
    ``1.average``. The others keep their names. Raises `ValueError` without an update rule, or with none before a
    parameter transform.
    """
    _check(parts, labels or [part.name for part in parts])
    if len(parts) == 1:
        return parts[0]
    values, slots = hyperparameter_names(parts), slot_names(parts)
    for number, part in enumerate(parts):
        values[number] |= {name: _shared(parts, number, name, values) for name in part.shared - {GRADIENT}}
    ends = [sum(len(part.slots) for part in parts[: k + 1]) for k in range(len(parts))]

    def call(xp: Namespace, p: Array, g: Array, *all_slots: Array, **named: Any) -> Stages:
        new, after = None, []
        for number, part in enumerate(parts):
            part_slots = all_slots[ends[number] - len(part.slots) : ends[number]]
            if until is not None and number >= until:
                after += part_slots
                continue
            taken = {name: named[name] for name in part.supplied if name in named}
            taken |= {name: named[whole] for name, whole in values[number].items()}
            taken[GRADIENT] = g
            acted_on = new if part.kind == "after" else g if new is None else p - new
            first, *rest = yield from part.stages(xp, p, acted_on, part_slots, taken)
            if part.kind != "gradient":
                new = first
            elif new is None:
                g = first
            else:
                new = p - first
            after += rest
        return [p if new is None else new, *after]

    renamed = [values[k] | slots[k] for k in range(len(parts))]
    return Rule(
        " then ".join(part.name for part in parts),
        call,
        "update",
        tuple(
            dataclasses.replace(slot.renamed(values[k]), name=slots[k][slot.name])
            for k, part in enumerate(parts)
            for slot in part.slots
        ),
        {values[k][name]: default for k, part in enumerate(parts) for name, default in part.defaults.items()},
        frozenset().union(*(part.supplied for part in parts)),
        elementwise=all(part.elementwise for part in parts),
        average=_average(parts, renamed),
        domains={values[k][name]: domain for k, part in enumerate(parts) for name, domain in part.domains.items()},
        is_staged=True,
        totals=tuple(function for part in parts[:until] for function in part.totals),
    )


def hyperparameter_names(parts: Sequence[Rule]) -> list[Names]:
    """The composed names of the hyperparameters of each part."""
    return _unique([list(part.defaults) for part in parts])


def slot_names(parts: Sequence[Rule]) -> list[Names]:
    """The composed names of the slots of each part."""
    return _unique([[slot.name for slot in part.slots] for part in parts])


def _unique(names: Sequence[Sequence[str]]) -> list[Names]:
    """The names, with the number of the part as a prefix where several parts have the same name."""
    counts = collections.Counter(name for part_names in names for name in part_names)
    return [
        {name: name if counts[name] == 1 else f"{k}.{name}" for name in part_names}
        for k, part_names in enumerate(names)
    ]


def _shared(parts: Sequence[Rule], number: int, name: str, values: Sequence[Names]) -> str:
    """The composed name of a shared hyperparameter, from the nearest part before or after this part that has it."""
    order = [*reversed(range(number)), *range(number + 1, len(parts))]
    nearest = next((k for k in order if name in parts[k].defaults), None)
    if nearest is None:
        raise ValueError(f"{parts[number].name} needs {name}, which no other part has")
    return values[nearest][name]


def _average(parts: Sequence[Rule], names: Sequence[Names]) -> Formula | None:
    """The function that computes the average of the last part that has one; None if a slot holds that average."""
    for part, part_names in zip(reversed(parts), reversed(names), strict=True):
        if part.average is not None:
            return part.average.renamed(part_names)
        if part.average_slot is not None:
            return None
    return None


def _check(parts: Sequence[Rule], labels: Sequence[str]) -> None:
    kinds = [part.kind for part in parts]
    if "update" not in kinds:
        raise ValueError(f"a chain needs an optimizer: found {', '.join(labels) or 'nothing'}")
    if "after" in kinds[: kinds.index("update")]:
        raise ValueError(
            f"{labels[kinds.index('after')]} changes the new parameter, and the chain has no optimizer before it: "
            f"expected it after {labels[kinds.index('update')]}"
        )
