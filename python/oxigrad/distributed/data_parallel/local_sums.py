"""Sums of the gradients of several batches on each worker, before the workers exchange them."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad import SparseRows, StateError
from oxigrad.distributed.fields import Arrays, Field, Plain, integer
from oxigrad.distributed.parameters import promoted
from oxigrad.extend import COUNT, to_host

# A sum of gradients of rows has its values in the first array, and their indices in the second.
_SUM, _ROWS = "local-sum", "local-sum-rows"


def _read_pending(wrapper: Any, plain: Plain, arrays: Arrays) -> int:
    pending = plain.get("pending")
    if not isinstance(pending, int) or not 0 <= pending < wrapper.local_batches:
        raise StateError(f"{pending!r} batches are added up: expected less than local_batches, {wrapper.local_batches}")
    return pending


def _write_sums(wrapper: Any, sums: Mapping[str, Any]) -> tuple[Plain, Arrays]:
    rows = {path: list(total.shape) for path, total in sums.items() if isinstance(total, SparseRows)}
    return {"rows": rows}, {
        path: {_SUM: total.values, _ROWS: total.indices} if path in rows else {_SUM: to_host(total)}
        for path, total in sums.items()
    }


def _read_sums(wrapper: Any, plain: Plain, arrays: Arrays) -> dict[str, Any]:
    rows: Mapping[str, Any] = plain["rows"]
    sums = {
        path: SparseRows(np.array(named[_ROWS]), np.array(named[_SUM]), tuple(rows[path]))
        if path in rows
        else np.array(named[_SUM])
        for path, named in arrays.items()
    }
    count, pending = plain["count"], plain["pending"]
    if count > pending or bool(count) != bool(sums):
        raise StateError(f"{count!r} of {pending} batches are added up in {len(sums)} sums")
    return sums


def counted(wrapper: Any, value: Any) -> int:
    """The value of ``local_batches``, which cannot change between steps."""
    count = COUNT.check("local_batches", value)
    if wrapper.pending:
        raise ValueError(
            f"local_batches cannot change between steps: {wrapper.pending} of {wrapper.local_batches} batches are "
            "added up"
        )
    return count


FIELDS = (
    Field("_pending", lambda wrapper, value: ({"pending": value}, {}), _read_pending),
    integer("_count", "count", joined=int),
    Field("_sums", _write_sums, _read_sums, lambda wrapper: (_SUM, _ROWS), dict),
)
"""The fields of a wrapper that adds up the gradients of ``local_batches`` batches before a step."""


def added(total: Any, gradient: Any) -> Any:
    """A sum of gradients in memory of its own; gradients of half precision are added up in float32."""
    wide = promoted(gradient)
    return copy.deepcopy(wide) if total is None else total + wide
