"""A summary of an optimizer: the slots of each parameter, their dtypes and bytes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from oxigrad._tables import Table
from oxigrad.ops.backends import dtype_name, size_of
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.plan.plan import Plan

HEAD = ("parameter", "shape", "dtype", "optimizer", "slots", "dtypes", "bytes")


def rows(plan: Plan | None, slots: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """The values of `HEAD` for each parameter that a plan updates, then for those that only have slots."""
    parameters = {p.text: p for p in plan.parameters} if plan else {}
    for path in [*parameters, *(path for path in slots if path not in parameters)]:
        by_name, description = slots.get(path, {}), ("", "", "not updated")
        if plan is not None and path in parameters:
            p = parameters[path]
            description = str(p.shape), dtype_name(p.dtype), plan.groups[p.group].name
        dtypes = dict.fromkeys(dtype_name(slot.dtype) for slot in by_name.values())
        yield path, *description, ", ".join(by_name), ", ".join(dtypes), sum(map(bytes_of, by_name.values()))


def bytes_of(slot: Any) -> int:
    """The number of bytes of a slot."""
    if isinstance(slot, Quantized):
        return slot.nbytes
    bits = re.search(r"\d+", dtype_name(slot.dtype))
    return size_of(slot.shape) * (int(bits.group()) // 8 if bits else 1)


def table(caption: str, step: int, lines: list[tuple[Any, ...]]) -> Table:
    """The rows as a table with the sum of bytes in its last line."""
    total = f"{sum(line[-1] for line in lines):,}"
    cells = [(*texts, f"{count:,}") for *texts, count in lines]
    return Table(
        HEAD, [*cells, ("all", *[""] * (len(HEAD) - 2), total)], f"{caption}\n{total} bytes of slots, step {step:,}"
    )
