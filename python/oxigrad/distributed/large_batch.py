"""LargeBatch: steps by the mean gradient of many small batches, some of each worker."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from oxigrad._typing import Config, Tree
from oxigrad.distributed.averaged import Kept, mean_over_workers
from oxigrad.distributed.collective import CollectiveWrapper
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.errors import WorkerLost
from oxigrad.distributed.wrapper import Wrapper, take_step
from oxigrad.optim.config import REGISTRY
from oxigrad.optim.optimizer import Optimizer
from oxigrad.rules.ranges import Domain, Interval
from oxigrad.schedules.base import number
from oxigrad.stepping.sparse_rows import SparseRows

__all__ = ["LargeBatch"]


_COUNT = Domain(interval=Interval("[1, inf)"), is_whole=True)
# A sum of gradients of rows has its values in the first array, and their indices in the second.
_SUM, _ROWS = "local-sum", "local-sum-rows"


class LargeBatch(CollectiveWrapper):
    """Training with large batches: each step is one of the mean gradient of ``local_batches`` batches of each worker.

    Batches that do not complete a step are only added up on their worker: they send nothing, and leave the model unchanged. The
    gradients are then averaged over workers, and all of them take the same step, which is that of one worker with
    all batches as one. Around `oxigrad.optim.LARS` it is the large-batch training of You et al. 2017 (arXiv:1708.03888), whose trust ratio is
    that of the mean gradient; around any other optimizer it is synchronous training.

    Args:
        optimizer: the optimizer that takes the steps.
        local_batches: the number of batches of each worker that a step uses; it can change between steps.
        communicator: see `Wrapper`.
        timeout: see `Wrapper`.

    Where a worker is lost, the others take the step by the mean of their own gradients.

    Batches have equal sizes, or gradients that are weighted accordingly. `pending` is the number of batches since the last step;
    sums are saved with the state.

    >>> from oxigrad import optim
    >>> opt, model = LargeBatch(optim.SGD(1.0), local_batches=2), {"w": np.zeros(1)}
    >>> for gradient in (1.0, 3.0):
    ...     model = opt.update(model, {"w": np.array([gradient])})
    ...     print(model["w"], opt.step, opt.pending)
    [0.] 0 1
    [-2.] 1 0
    """

    _own_slots: ClassVar[frozenset[str]] = frozenset({_SUM, _ROWS})
    _transient = frozenset({"_kept"})
    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        **Wrapper._checks,
        "local_batches": lambda opt, value: opt._counted(value),
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
        self._pending = self._count = 0
        self._sums: dict[str, Any] = {}
        self._set_apart()
        self.local_batches = local_batches

    def _set_apart(self) -> None:
        """See `Wrapper._set_apart`."""
        self._kept = Kept()

    def _counted(self, value: Any) -> int:
        count = int(_COUNT.check("local_batches", number(value)))
        if self._pending:
            raise ValueError(
                f"local_batches cannot change between steps: {self._pending} of {self.local_batches} batches are added up"
            )
        return count

    @property
    def pending(self) -> int:
        """The number of batches since the last step."""
        return self._pending

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        given = self._parameters.gradients(model, grads)
        late = False
        if self._done < 0:
            model, late = self._agree(model)
        if late:
            sums, count = given, 0
            self._report.dropped += 1
        else:
            is_whole = self.local_batches == 1
            sums = {
                path: gradient if is_whole and not _is_half(gradient) else _added(self._sums.get(path), gradient)
                for path, gradient in given.items()
            }
            count = self._count + 1
            self._report.accepted += 1
        if self._pending + 1 < self.local_batches:
            self._sums, self._count, self._pending = sums if count else {}, count, self._pending + 1
            return model
        while True:
            try:
                means = mean_over_workers(sums, self.communicator, count=count, timeout=self._seconds, kept=self._kept)
                break
            except WorkerLost:
                model, behind = self._recover(model)
                if behind:  # the others have completed this step, by the gradients of all, and their state is loaded
                    self._sums, self._count, self._pending = {}, 0, 0
                    return model
        self._done += 1
        stepped = take_step(self.optimizer, model, self._parameters.tree(model, means), keep_root=keep_root)
        self._sums, self._count, self._pending = {}, 0, 0
        return stepped

    def _given_state(self) -> dict[str, Any]:
        """See `CollectiveWrapper._given_state`: without the sums of this worker."""
        kept = self._sums, self._count
        self._sums, self._count = {}, 0
        try:
            return super()._given_state()
        finally:
            self._sums, self._count = kept

    def _own_config(self) -> Config:
        return {"local_batches": self.local_batches}

    def _own_state(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        rows = {path: list(total.shape) for path, total in self._sums.items() if isinstance(total, SparseRows)}
        arrays = {
            path: {_SUM: total.values, _ROWS: total.indices} if path in rows else {_SUM: total}
            for path, total in self._sums.items()
        }
        return {"done": self._done, "pending": self._pending, "count": self._count, "rows": rows}, arrays

    def _check_own_state(self, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> list[str]:
        pending = plain.get("pending")
        if not isinstance(pending, int) or not 0 <= pending < self.local_batches:
            return [
                f"LargeBatch: {pending!r} batches are added up: expected less than local_batches, {self.local_batches}"
            ]
        try:
            found = _restored(plain, arrays)
        except (KeyError, TypeError, ValueError, LookupError) as error:
            return [f"LargeBatch: its sums are damaged: {error}"]
        count = plain.get("count")
        if not isinstance(count, int) or not 0 <= count <= pending or bool(count) != bool(found):
            return [f"LargeBatch: {count!r} of {pending} batches are added up in {len(found)} sums"]
        return [] if isinstance(plain.get("done"), int) else ["LargeBatch: the number of steps is missing"]

    def _set_own_state(self, plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> None:
        self._sums, self._pending, self._count = _restored(plain, arrays), plain["pending"], plain["count"]
        self._done = plain["done"]


def _restored(plain: Mapping[str, Any], arrays: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of a state."""
    rows: Mapping[str, Any] = plain["rows"]
    return {
        path: SparseRows(np.array(own[_ROWS]), np.array(own[_SUM]), tuple(rows[path]))
        if path in rows
        else np.array(own[_SUM])
        for path, own in arrays.items()
    }


def _added(total: Any, gradient: Any) -> Any:
    """A sum of gradients, of float32 for those of half precision, which is no array of the user's."""
    if isinstance(gradient, SparseRows):
        rows = SparseRows(gradient.indices.copy(), _wide(gradient.values), gradient.shape)
        return rows if total is None else total + rows
    return _wide(gradient) if total is None else total + _wide(gradient)


def _is_half(gradient: Any) -> bool:
    array = gradient.values if isinstance(gradient, SparseRows) else gradient
    return array.dtype.itemsize == 2


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32 if _is_half(array) else array.dtype)


REGISTRY["LargeBatch"] = LargeBatch
