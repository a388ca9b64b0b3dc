"""A summary of an optimizer: the slots of each parameter, their dtypes and bytes."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from oxigrad._tables import Table
from oxigrad.ops.backends import dtype_name, size_of
from oxigrad.stepping.arrays.quantized import Quantized
from oxigrad.stepping.plan.plan import Plan

HEAD = ("parameter", "shape", "dtype", "optimizer", "slots", "dtypes", "bytes")


@dataclasses.dataclass(frozen=True)
class SummaryRow:
    """The slots of one parameter; its shape and dtype are empty where the last step did not update it."""

    parameter: str
    shape: str
    dtype: str
    optimizer: str
    slots: str
    dtypes: str
    bytes: int

    def cells(self) -> tuple[str, ...]:
        """The fields as text."""
        return tuple([f"{value:,}" if isinstance(value, int) else str(value) for value in vars(self).values()])


def rows(plan: Plan | None, slots: Mapping[str, Mapping[str, Any]]) -> Iterator[SummaryRow]:
    """A row for each parameter that a plan updates, then for those that only have slots."""
    parameters = {p.text: p for p in plan.parameters} if plan else {}
    for path in [*parameters, *(path for path in slots if path not in parameters)]:
        by_name = slots.get(path, {})
        total = sum(map(bytes_of, by_name.values()))
        names, dtypes = (
            ", ".join(by_name),
            ", ".join(dict.fromkeys(dtype_name(slot.dtype) for slot in by_name.values())),
        )
        if plan is not None and path in parameters:
            p = parameters[path]
            name = plan.groups[p.group].optimizer.name
            yield SummaryRow(path, str(p.shape), dtype_name(p.dtype), name, names, dtypes, total)
        else:
            yield SummaryRow(path, "", "", "not updated", names, dtypes, total)


def bytes_of(slot: Any) -> int:
    """The number of bytes of a slot."""
    if isinstance(slot, Quantized):
        return sum(map(bytes_of, slot.arrays.values()))
    bits = re.search(r"\d+", dtype_name(slot.dtype))
    return size_of(slot.shape) * (int(bits.group()) // 8 if bits else 1)


def table(caption: str, step: int, lines: list[SummaryRow]) -> Table:
    """The rows as a table with the sum of bytes in its last line."""
    total = f"{sum(row.bytes for row in lines):,}"
    cells = [row.cells() for row in lines]
    return Table(
        HEAD, [*cells, ("all", *[""] * (len(HEAD) - 2), total)], f"{caption}\n{total} bytes of slots, step {step:,}"
    )
