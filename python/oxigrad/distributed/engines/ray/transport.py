"""The communicator of a worker that is a process of Ray, and the actor that keeps what the workers share."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.hub import Hub, Round
from oxigrad.distributed.engines.hub_communicator import HubCommunicator
from oxigrad.distributed.engines.ray.library import GetTimeoutError, OwnerDiedError, RayActorError, ray
from oxigrad.distributed.errors import CommunicationError, TimedOut, WorkerLost
from oxigrad.distributed.messages.message import size_of

_INLINE = 1 << 16
"""Bytes up to which a result is part of each answer; larger ones are put into Ray's shared memory once."""

_GRACE = 10.0
"""Seconds that an answer may come later than its time-out."""

POLL = 0.1
"""Seconds between two looks at the processes."""


class HubActor(Hub):
    """The hub as an actor."""

    def __init__(self, expected: Sequence[str], job: bytes, version: str) -> None:
        super().__init__(expected, job, version)
        self._was_restarted = bool(ray.get_runtime_context().was_current_actor_reconstructed)

    def ask(self, method: str, *args: Any) -> Any:
        """The result of a method of the hub, or its error of communication: Ray would wrap one that is raised."""
        try:
            return getattr(self, method)(*args)
        except CommunicationError as error:
            return error

    def was_admitted(self, uid: str) -> bool:
        """See `Hub.was_admitted`; an actor that was restarted does not know, and takes it for granted."""
        return self._was_restarted or super().was_admitted(uid)

    def pid(self) -> int:
        """The process of the actor."""
        return os.getpid()

    def _result_of(self, entered: Round) -> Any:
        result = super()._result_of(entered)
        return result if size_of(result) <= _INLINE else ray.put(result)


class RayCommunicator(HubCommunicator):
    """The communicator of a worker that is a process of Ray; see `oxigrad.distributed.communicator.Communicator`.

    Sums are always taken in the order of ranks.
    """

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        try:
            return super().alive()
        except WorkerLost:  # the coordinator
            return frozenset({self.rank})

    def _next_place(self, seconds: float) -> Any:
        """See `HubCommunicator._next_place`. A restarted coordinator is waited for."""
        return retried(super()._next_place, seconds)

    def _call(self, method: str, *args: Any, what: str, seconds: float | None = None) -> Any:
        """See `HubCommunicator._call`. A lost coordinator counts as a lost generation."""
        limit = self._limit(seconds)
        answer = call(self._hub, method, *args, what=what, timeout=limit)
        if isinstance(answer, ray.ObjectRef):
            try:
                return ray.get(answer, timeout=limit + _GRACE)
            except (OwnerDiedError, RayActorError) as error:
                raise WorkerLost((), what) from error
        return answer

    def _tell(self, method: str, *args: Any) -> None:
        with contextlib.suppress(RayActorError, GetTimeoutError):
            ray.get(getattr(self._hub, method).remote(*args), timeout=self.timeout)


def call(coordinator: Any, method: str, *args: Any, what: str, timeout: float) -> Any:
    """The result of a method of the hub. Raises its error."""
    try:
        answer = ray.get(coordinator.ask.remote(method, *args), timeout=timeout + _GRACE)
    except GetTimeoutError as error:
        raise TimedOut(f"{what}: the coordinator does not answer within {timeout + _GRACE:g} s") from error
    except (RayActorError, OwnerDiedError) as error:
        raise WorkerLost((), what) from error
    if isinstance(answer, CommunicationError):
        raise answer
    return answer


def retried(ask: Callable[[float], Any], seconds: float) -> Any:
    """The answer of a coordinator that may be about to be restarted, by ``ask`` with the seconds that are left."""
    wait = Backoff(seconds, longest=POLL)
    while True:
        try:
            return ask(wait.remaining())
        except WorkerLost:
            if wait.is_over():
                raise
            wait.pause()
