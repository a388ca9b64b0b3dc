"""Base class of wrappers whose workers all call the same collective operations."""

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad._typing import Tree
from oxigrad.distributed import agreement, transfer
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.errors import WorkerLost
from oxigrad.distributed.wrapper import Wrapper
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.sam import SAM

__all__ = ["CollectiveWrapper"]


class CollectiveWrapper(Wrapper):
    """Base class of wrappers whose workers all call the same collective operations.

    All workers call `start`, or their first `update` does it: they then have the parameters and the state of the worker of
    rank 0. Where a worker is lost in a step, the survivors reform and repeat the operation. A worker that joins receives
    parameters, slots and the state of the wrapper from a survivor before its first step. If it has not called `start`, the gradient
    of its first `update` is of other parameters: it is dropped, and counted so in the report.
    """

    def __init__(
        self, optimizer: Optimizer, *, communicator: Communicator | None = None, timeout: float | None = None
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        refuse_inside(self, type(self))
        # The number of collective operations completed; -1 before the start. Survivors that differ are brought up to date.
        self._done = -1

    def start(self, model: Tree) -> Tree:
        """Starts this worker, and returns ``model`` with the parameters that all workers start from.

        All workers call it. Raises `Refused` on all of them where their models or optimizers differ.
        """
        with self._lock.stepping():
            return self._agree(model)[0] if self._done < 0 else model

    def reform(self, model: Tree) -> Tree:
        """Admits the workers that wait to join, and returns ``model``; all workers call it, those that join call `start`."""
        with self._lock.stepping():
            self._reform()
            return self._agree(model)[0]

    # --- for subclasses ------------------------------------------------------------------------------------------------

    def _begin(self, model: Tree) -> None:
        """Makes the worker's own state for the parameters of the start, where none was loaded."""

    def _receive(self, model: Tree) -> None:
        """Adapts the state that was received from another worker: by default, it is the own one as well."""

    def _given_state(self) -> dict[str, Any]:
        """The state that a worker which joins receives."""
        return self._whole_state(copy=False)

    # --- agreement -----------------------------------------------------------------------------------------------------

    def _agree(self, model: Tree) -> tuple[Tree, bool]:
        """Brings workers that are new, or behind, up to date; returns the model, and whether this worker was one of several.

        The workers tell each other the operations that they have completed. The first of those with the most gives its
        parameters and its state to those with fewer.
        """
        while True:
            try:
                known = self._known(model)
                root = known.index(max(known))
                data = self._broadcast_state(model, root) if len(set(known)) > 1 or known[root] < 0 else None
                break
            except WorkerLost:
                self._reform()
        late = self._done < known[root]
        if data is not None and (late or known[root] < 0) and self.communicator.rank != root:
            parameters, state = transfer.unpack(data)
            self._load(state, strict=True)
            model = self._parameters.write(model, parameters)
            if late:
                self._receive(model)
        self._done = max(known[root], 0)
        self._begin(model)
        return model, late

    def _known(self, model: Tree) -> list[int]:
        """The number of operations that each worker has completed. Raises `Refused` on all of them where their models differ."""
        own = agreement.described(self._parameters.read(model), self.name)
        digest = int.from_bytes(hashlib.sha256(own.tobytes()).digest()[:8], "little", signed=True)
        told = self.communicator.all_gather_v(np.array([self._done, digest], np.int64), timeout=self._seconds)
        if any(each[1] != told[0][1] for each in told):
            first, *others = self.communicator.all_gather_v(own, timeout=self._seconds)
            found = (agreement.difference(first, each, f"rank {rank}") for rank, each in enumerate(others, 1))
            raise next(error for error in found if error is not None)
        return [int(each[0]) for each in told]

    def _broadcast_state(self, model: Tree, root: int) -> np.ndarray:
        """Parameters and state of the worker ``root``, as bytes."""
        own = self.communicator.rank == root
        data = transfer.pack(self._parameters.read(model), self._given_state()) if own else np.empty(0, np.uint8)
        size = np.array([data.size], np.int64)
        self.communicator.broadcast([size], root, timeout=self._seconds)
        data = data.copy() if own else np.empty(int(size[0]), np.uint8)
        self.communicator.broadcast([data], root, timeout=self._seconds)
        return data

    def _count_gradient(self, *, late: bool) -> None:
        """Counts the gradient of a step in the report: that of a worker that is late is dropped."""
        self._report.dropped += late
        self._report.accepted += not late

    def _recover(self, model: Tree) -> tuple[Tree, bool]:
        """Continues with the survivors after a `WorkerLost`: as `_agree`."""
        self._reform()
        return self._agree(model)


def refuse_inside(wrapper: Wrapper, *kinds: type) -> None:
    """Raises `TypeError` where the optimizer of a wrapper is, or has inside, one of these kinds."""
    inner: Any = wrapper.optimizer
    while inner is not None:
        if isinstance(inner, kinds):
            label = type(wrapper).__name__
            raise TypeError(f"{label}: found {type(inner).__name__} inside, which cannot be combined with {label}")
        inner = inner.optimizer if isinstance(inner, (Wrapper, SAM)) else None


@contextlib.contextmanager
def expecting(what: str) -> Any:
    """A context in which errors of malformed plain data are raised as `ValueError`."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{what}: {error}") from error


def by_name(arrays: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, np.ndarray]:
    """The arrays of one name by key path, as copies in host memory."""
    return {path: np.array(own[name]) for path, own in arrays.items() if name in own}
