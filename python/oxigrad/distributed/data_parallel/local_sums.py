"""Sums of the gradients of several batches on each worker, before the workers exchange them."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from oxigrad import SparseRows, StateError
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.fields import Arrays, Field, Plain, integer
from oxigrad.distributed.methods.collective import CollectiveWrapper, refuse_inside
from oxigrad.distributed.parameters import promoted
from oxigrad.extend import COUNT, to_host
from oxigrad.optim import Optimizer

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


def _counted(wrapper: Any, value: Any) -> int:
    count = COUNT.check("local_batches", value)
    if wrapper.pending:
        raise ValueError(
            f"local_batches cannot change between steps: {wrapper.pending} of {wrapper.local_batches} batches are "
            "added up"
        )
    return count


class LocalSums(CollectiveWrapper):
    """Base class of wrappers that add up the gradients of ``local_batches`` batches on each worker before a step.

    A subclass reads gradients, adds them up, exchanges the sums, and takes the step.
    """

    _fields = (
        Field("_pending", lambda wrapper, value: ({"pending": value}, {}), _read_pending),
        integer("_count", "count", joined=int),
        Field("_sums", _write_sums, _read_sums, lambda wrapper: (_SUM, _ROWS), dict),
    )
    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        "local_batches": _counted,
    }

    def __init__(
        self,
        optimizer: Optimizer,
        local_batches: int = 1,
        *,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        refuse_inside(self, LocalSums)
        self._pending = self._count = 0
        self._sums: dict[str, Any] = {}
        self._set_apart()
        self.local_batches = local_batches

    @property
    def pending(self) -> int:
        """The number of batches since the last step."""
        return self._pending

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        gradients = self._read(model, grads)
        late = False
        if self._done < 0:
            model, late = self._agree(model)
        sums, count = (gradients, 0) if late else (self._accumulated(gradients), self._count + 1)
        if self._pending + 1 < self.local_batches:
            added_up = {"_sums": sums if count else {}, "_count": count, "_pending": self._pending + 1}
            return self._with_step(lambda: model, added_up, accepted=not late)
        model, means = self._repeated(model, lambda: self._means(sums, count))
        # The batches are in the mean: a step that refuses it is not repeated with them.
        values = {"_sums": {}, "_count": 0, "_pending": 0, "_done": self._done}
        if means is None:  # the others have completed this step, by the gradients of all, or all were late
            return self._with_step(lambda: model, values, accepted=not late)
        values["_done"] += 1
        return self._with_step(lambda: self._take(model, means, keep_root=keep_root), values, accepted=not late)

    def _read(self, model: Tree, grads: Tree | None) -> dict[str, Any]:
        """The gradients of a batch, by key path."""
        raise NotImplementedError

    def _take(self, model: Tree, means: Mapping[str, Any], *, keep_root: bool) -> Tree:
        """The model after a step by the mean gradients of all workers."""
        raise NotImplementedError

    def _accumulated(self, gradients: Mapping[str, Any]) -> dict[str, Any]:
        """The sums of this worker with further gradients."""
        raise NotImplementedError

    def _means(self, sums: Mapping[str, Any], count: int) -> dict[str, Any] | None:
        """The means over all workers of their sums of ``count`` gradients; None where all of them have none."""
        raise NotImplementedError


def added(total: Any, gradient: Any) -> Any:
    """A sum of gradients in memory of its own; gradients of half precision are added up in float32."""
    if isinstance(gradient, SparseRows):
        rows = SparseRows(gradient.indices.copy(), _copied(gradient.values), gradient.shape)
        return rows if total is None else total + rows
    return _copied(gradient) if total is None else total + promoted(gradient)


def _copied(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32 if array.dtype.itemsize == 2 else array.dtype)
