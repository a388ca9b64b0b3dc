"""The communicator of a worker that is a thread."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import StructureError
from oxigrad.distributed.communicator import Buffer, Place
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.hub_communicator import HubCommunicator
from oxigrad.distributed.engines.threads.hub import SMALL, ThreadHub
from oxigrad.distributed.messages.message import size_of
from oxigrad.distributed.messages.reduction import Op, reduce_in_order

_LAYOUT = operator.attrgetter("dtype", "size")


class ThreadCommunicator(HubCommunicator):
    """The communicator of the worker ``uid``, which is a thread: see `Communicator`."""

    def __init__(self, hub: ThreadHub, uid: str, place: Place, job: bytes, timeout: float) -> None:
        is_first = place.generation == hub.restarts[0, place.rank] == 0
        super().__init__(hub, uid, place, job, timeout, Trainings(is_known=is_first))

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        is_small = size_of(bufs) <= SMALL
        detail = (op, is_small, *map(_LAYOUT, bufs))
        contribution = [*map(np.ndarray.copy, bufs)] if is_small else [*bufs]
        contributions, reduced = super()._collect("all_reduce", detail, contribution, seconds)
        if is_small:
            for buffer, *by_rank in zip(bufs, *contributions, strict=True):
                reduce_in_order(by_rank, op, buffer)
            return
        for result, *by_rank in zip(reduced, *contributions, strict=True):
            part = slice(*(result.size * rank // self.size for rank in (self.rank, self.rank + 1)))
            reduce_in_order([buffer[part] for buffer in by_rank], op, result[part])
        super()._collect("all_reduce", ("slices", True), [], seconds)  # all have reduced theirs
        for target, source in zip(bufs, reduced, strict=True):
            np.copyto(target, source)

    def _collect(self, name: str, detail: tuple[Any, ...], contribution: list[Buffer], seconds: float) -> Any:
        """See `HubCommunicator._collect`: the others read copies."""
        copies = [buffer.copy() for buffer in contribution]
        for each in copies:
            each.flags.writeable = False
        return super()._collect(name, detail, copies, seconds)

    def _call(self, method: str, *args: Any, what: str, seconds: float | None = None) -> Any:
        return getattr(self._hub, method)(*args)

    def claim(self, name: str, thing: Any) -> None:
        """See `Communicator.claim`."""
        if (rank := self._hub.claim(self._uid, thing)) is not None:
            raise StructureError(
                f"{name}: the workers of rank {rank} and {self.rank} share one object: expected one for each worker, "
                "made by the function that run calls"
            )
