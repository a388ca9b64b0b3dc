"""The communicator of a worker that is a process of Ray, and the actor that keeps what the workers share."""

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.communicator import Buffer, succeed
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.base import Arrival, EngineCommunicator, Place
from oxigrad.distributed.engines.hub import Hub, Outcome
from oxigrad.distributed.engines.ray.library import GetTimeoutError, OwnerDiedError, RayActorError, ray
from oxigrad.distributed.errors import Aborted, TimedOut, WorkerLost
from oxigrad.distributed.messages.reduction import Op

_INLINE = 1 << 16
"""Bytes up to which a result is part of each answer; larger ones are put into Ray's shared memory once."""

_GRACE = 10.0
"""Seconds that an answer may come later than its time-out."""

POLL = 0.1
"""Seconds between two looks at the processes."""


class HubActor(Hub):
    """The hub as an actor."""

    def __init__(self, expected: Sequence[str], job: bytes, version: str) -> None:
        super().__init__(expected, _stored, job=job, version=version)
        self._was_restarted = bool(ray.get_runtime_context().was_current_actor_reconstructed)

    async def was_admitted(self, uid: str) -> bool:
        """See `Hub.was_admitted`; an actor that was restarted does not know, and takes it for granted."""
        return self._was_restarted or await super().was_admitted(uid)

    async def pid(self) -> int:
        """The process of the actor."""
        return os.getpid()

    async def count(self) -> int:
        """The number of workers of this generation that live."""
        return len(set(self._members) - self._gone)


def _stored(result: list[np.ndarray]) -> Any:
    return result if sum(buffer.nbytes for buffer in result) <= _INLINE else ray.put(result)


class RayCommunicator(EngineCommunicator):
    """The communicator of a worker that is a process of Ray; see `oxigrad.distributed.communicator.Communicator`.

    Sums are always taken in the order of ranks.
    """

    def __init__(self, coordinator: Any, uid: str, job: bytes, place: Place, timeout: float) -> None:
        super().__init__(place, job, timeout)
        self._coordinator, self._uid, self._place = coordinator, uid, place
        self._calls = 0

    # --- operations on all workers -------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        self._copy(self._collect(("all_reduce", op, *_layout(bufs)), list(bufs), seconds), bufs)

    def _broadcast(self, bufs: Sequence[Buffer], root: int, seconds: float) -> None:
        contribution = list(bufs) if self.rank == root else []
        self._copy(self._collect(("broadcast", root, *_layout(bufs)), contribution, seconds), bufs)

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        return self._collect(("all_gather_v", buf.dtype.str), [buf], seconds)

    def _collect(self, kind: tuple[Any, ...], contribution: list[Buffer], seconds: float) -> list[Buffer]:
        self._calls += 1
        return self._ask("collect", self._place, self._calls, kind, contribution, timeout=seconds, what=kind[0])

    @staticmethod
    def _copy(sources: Sequence[Buffer], targets: Sequence[Buffer]) -> None:
        for target, source in zip(targets, sources, strict=True):
            np.copyto(target, source)

    # --- messages ------------------------------------------------------------------------------------------------------

    def _post(self, dest: int, message: np.ndarray) -> None:
        self._ask("post", dest, self.generation, message, what="send", is_wait=False)

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Arrival | None:
        message = self._ask("take", self._place, tag, source, timeout=wait.remaining(), what="recv_any")
        return None if message is None else Arrival.of(message)

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        try:
            return frozenset(self._ask("alive", self._uid, self.generation, what="alive", is_wait=False))
        except WorkerLost:
            return frozenset({self.rank})

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_rank(rank, "the rank")
        self._ask("exclude", self._place, rank, what="exclude", is_wait=False)

    def reform(self, *, timeout: float | None = None) -> "RayCommunicator":
        """See `Communicator.reform`. Workers that were started meanwhile are admitted; a restarted coordinator is waited for."""
        end = time.monotonic() + self._limit(timeout)
        place = retried(lambda left: self._ask("reform", self._uid, self._place, timeout=left, what="reform"), end)
        following = type(self)(self._coordinator, self._uid, self.job, Place(*place), self.timeout)
        succeed(self, following)
        return following

    def leave(self) -> None:
        """See `Communicator.leave`."""
        with contextlib.suppress(RayActorError, GetTimeoutError):
            ray.get(self._coordinator.leave.remote(self._uid), timeout=self.timeout)

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`."""
        with contextlib.suppress(RayActorError, GetTimeoutError):
            ray.get(self._coordinator.abort.remote(reason), timeout=self.timeout)
        raise Aborted(reason)

    def _ask(self, method: str, *args: Any, what: str, timeout: float | None = None, is_wait: bool = True) -> Any:
        """Calls the coordinator and raises what it answers. A lost coordinator counts as a lost generation."""
        seconds = self._limit(timeout)
        arguments = [*args, *([seconds] if is_wait else [])]
        answer = call(self._coordinator, method, *arguments, what=what, timeout=seconds, place=self._place)
        if isinstance(answer, ray.ObjectRef):
            try:
                return ray.get(answer, timeout=seconds + _GRACE)
            except (OwnerDiedError, RayActorError) as error:
                raise WorkerLost((), what) from error
        return answer


def _layout(bufs: Sequence[Buffer]) -> list[tuple[str, int]]:
    return [(buffer.dtype.str, buffer.size) for buffer in bufs]


def call(coordinator: Any, method: str, *args: Any, what: str, timeout: float, place: Place | None = None) -> Any:
    """The value that a method of the hub answers with. Raises the error for any other outcome."""
    try:
        answer = Outcome(*ray.get(getattr(coordinator, method).remote(*args), timeout=timeout + _GRACE))
    except GetTimeoutError as error:
        raise TimedOut(f"{what}: the coordinator does not answer within {timeout + _GRACE:g} s") from error
    except (RayActorError, OwnerDiedError) as error:
        raise WorkerLost((), what) from error
    return answer.read(what, place)


def retried(ask: Callable[[float], Any], end: float) -> Any:
    """The answer of a coordinator that may be about to be restarted."""
    while True:
        try:
            return ask(max(0.0, end - time.monotonic()))
        except WorkerLost:
            if time.monotonic() >= end:
                raise
            time.sleep(POLL)
