"""The communicator of a worker whose membership, mailbox and collective operations are with a `Hub`."""

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np

from oxigrad.distributed.communicator import Buffer, Communicator, Place
from oxigrad.distributed.decisions.training import Trainings, number_of_exchange
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.mailbox import Message
from oxigrad.distributed.errors import Aborted
from oxigrad.distributed.messages.reduction import Op


class HubCommunicator(Communicator):
    """Base class of the communicators of members of a hub; see `Communicator`.

    An engine implements `_call`.

    Args:
        hub: the hub, or what calls it.
        uid: the name of the worker there.
        place, job, timeout, trainings: see `Communicator`.
    """

    def __init__(
        self, hub: Any, uid: str, place: Place, job: bytes, timeout: float, trainings: Trainings | None = None
    ) -> None:
        super().__init__(place, job, timeout, trainings)
        self._hub, self._uid, self._calls = hub, uid, 0

    def _call(self, method: str, *args: Any, what: str, seconds: float | None = None) -> Any:
        """The value of the outcome of a method of the hub, which may wait for so many seconds.

        Raises the error for a failure.
        """
        raise NotImplementedError

    def _tell(self, method: str, *args: Any) -> None:
        """Calls a method of the hub at the end of the work, where the hub may have ended."""
        self._call(method, *args, what=method)

    # --- operations on all workers ------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        layout = [(buffer.dtype.str, buffer.size) for buffer in bufs]
        reduced = self._collect("all_reduce", (op, *layout), list(bufs), seconds)
        for target, source in zip(bufs, reduced, strict=True):
            np.copyto(target, source)

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        return self._collect("all_gather_v", (buf.dtype.str,), [buf], seconds)

    def _collect(self, name: str, detail: tuple[Any, ...], contribution: list[Buffer], seconds: float) -> Any:
        """The result of an operation of all workers."""
        self._calls += 1
        arguments = self._calls, (name, *detail, number_of_exchange()), contribution, seconds
        return self._call("collect", self._uid, self.generation, *arguments, what=name, seconds=seconds)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _post(self, dest: int, message: np.ndarray) -> None:
        self._call("post", self._uid, self.generation, dest, message, what="send")

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        arguments = self._uid, self.generation, tag, source, (seconds := wait.remaining())
        return self._call("take", *arguments, what="recv_any", seconds=seconds)

    # --- membership ---------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        return frozenset(self._call("alive", self._uid, self.generation, what="alive"))

    def _exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._call("exclude", self._uid, self.generation, rank, what="exclude")

    def _following(self, seconds: float) -> Self:
        """See `Communicator._following`."""
        return type(self)(self._hub, self._uid, Place(*self._next_place(seconds)), self.job, self.timeout)

    def _next_place(self, seconds: float) -> Any:
        """The place of this worker in the next generation."""
        place = self._uid, self.rank, self.generation
        return self._call("reform", *place, seconds, what="reform", seconds=seconds)

    def leave(self) -> None:
        """See `Communicator.leave`."""
        self._tell("leave", self._uid, self.trainings.unfinished)

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`."""
        self._tell("abort", reason)
        raise Aborted(reason)
