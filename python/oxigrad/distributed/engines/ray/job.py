"""Jobs whose workers are processes of Ray."""

import contextlib
import dataclasses
import math
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

import oxigrad
from oxigrad.distributed.communicator import TIMEOUT, WORKERS, Communicator, Place, work_of
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.hub import check_accepts, results_of_ends
from oxigrad.distributed.engines.ray.library import (
    GetTimeoutError,
    RayActorError,
    RayError,
    RayTaskError,
    connect,
    ray,
)
from oxigrad.distributed.engines.ray.transport import POLL, HubActor, RayCommunicator, call, retried
from oxigrad.distributed.errors import Excluded, TimedOut, WorkerLost


@dataclasses.dataclass
class _Raised:
    """An exception that is no `Exception`, such as `SystemExit`: Ray would end the process without its cause."""

    error: BaseException


class _Worker:
    """A worker as an actor: one process, in which the worker function is called once."""

    def pid(self) -> int:
        """The process of the worker."""
        return os.getpid()

    def run(self, worker: Callable[[Communicator], Any], coordinator: Any, uid: str, job: bytes, timeout: float) -> Any:
        """Calls the worker function with a communicator.

        Returns its result, None where the others have ended before.
        """

        def enter(left: float) -> Any:
            return call(coordinator, "enter", uid, job, oxigrad.__version__, left, what="enter", timeout=left)

        place = retried(enter, timeout)
        if place is None:
            return None
        try:
            return work_of(worker, RayCommunicator(coordinator, uid, Place(*place), job, timeout))
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - raised by `RayJob.wait`
            return _Raised(error)


class RayJob:
    """Workers as actors of Ray, which may be joined by others and are replaced where they die.

    Args:
        worker: called in each process with its communicator.
        workers: the number of processes at the start.
        timeout: seconds that a wait of a worker takes at most.
        restarts: how many processes are started, in all, in place of those that die; a new one enters with
            `Communicator.reform` of the others.
        accept_newcomers: whether `join` may start further workers, which show the identity of the job, as those that
            ``restarts`` lets start.
        address: of a Ray cluster; by default one is started on this machine, unless the program is connected to one.
        allow_insecure: use a cluster that other machines can reach although it does not authenticate by token. Whoever
            reaches the ports of such a cluster runs code in it.

    Raises `PermissionError` for a cluster at another address than this machine's loopback that does not authenticate by
    token.
    """

    coordinator: Any

    def __init__(
        self,
        worker: Callable[[Communicator], Any],
        workers: int,
        *,
        timeout: float = TIMEOUT,
        restarts: int = 0,
        accept_newcomers: bool = False,
        address: str | None = None,
        allow_insecure: bool = False,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: expected at least 1")
        connect(address, workers, allow_insecure=allow_insecure)
        self._worker, self._timeout, self._restarts = worker, timeout, restarts
        self._accepts_newcomers = accept_newcomers
        self._job = secrets.token_bytes(16)
        self._actors: dict[str, Any] = {}
        self._pending: dict[Any, str] = {}
        self._results: dict[str, tuple[Any, BaseException | None]] = {}
        #: The errors for the workers whose processes died.
        self._deaths: list[WorkerLost] = []
        self._not_begun: BaseException | None = None
        self._last_report, self._reports = 0.0, 0
        self._asked: Any = None
        names = [self._name(number) for number in range(workers)]
        remote: Any = ray.remote
        hub_class = remote(num_cpus=0, max_restarts=-1, max_concurrency=1000)(HubActor)
        self.coordinator = hub_class.remote(names, self._job, oxigrad.__version__)
        for name in names:
            self._start(name)

    def _name(self, number: int) -> str:
        return f"{number:06}-{secrets.token_hex(4)}"

    def _start(self, uid: str) -> None:
        remote: Any = ray.remote
        actor = remote(num_cpus=0, max_restarts=0, max_concurrency=2)(_Worker).remote()
        self._actors[uid] = actor
        self._pending[actor.run.remote(self._worker, self.coordinator, uid, self._job, self._timeout)] = uid

    def join(self) -> None:
        """Starts a further worker, which is admitted when the present ones next call `Communicator.reform`.

        Raises `NotSupported` where the job does not accept newcomers.
        """
        check_accepts("a job of Ray", accept_newcomers=self._accepts_newcomers)
        self._start_further()

    def _start_further(self) -> None:
        self._start(self._name(len(self._actors)))

    def pids(self) -> dict[str, int]:
        """The processes on this machine: of the coordinator, and of each running worker, in order of start."""
        names = list(self._pending.values())
        pids = ray.get([self._actors[uid].pid.remote() for uid in names], timeout=self._timeout)
        return {
            "coordinator": ray.get(self.coordinator.pid.remote(), timeout=self._timeout),
            **dict(zip(names, pids, strict=True)),
        }

    def poll(self, seconds: float = POLL) -> bool:
        """Waits up to so many seconds for a worker to end, and tells the coordinator who lives.

        Whether all have ended.
        """
        if self._pending:
            done, _ = ray.wait(list(self._pending), num_returns=1, timeout=seconds)
            for ref in done:
                self._end(ref)
            if done or time.monotonic() - self._last_report > 5 * POLL:
                self._last_report = time.monotonic()
                self._reports += 1
                # Not waited for: a coordinator that is being restarted is told again. Ray may change the order of the
                # calls.
                self.coordinator.supervise.remote(list(self._pending.values()), self._reports)
                self._give_up_excluded()
        return not self._pending

    def _give_up_excluded(self) -> None:
        """Waits no more, once those that others have excluded are the only ones that have not ended."""
        if self._asked is not None and ray.wait([self._asked], timeout=0)[0]:
            with contextlib.suppress(RayActorError):
                if set(self._pending.values()) <= set(ray.get(self._asked)):
                    self._results |= {uid: (None, Excluded(-1, -1)) for uid in self._pending.values()}
                    self._pending.clear()
            self._asked = None
        if self._asked is None:
            self._asked = self.coordinator.excluded.remote()

    def _end(self, ref: Any) -> None:
        uid = self._pending.pop(ref)
        try:
            result = ray.get(ref)
            self._results[uid] = (None, result.error) if isinstance(result, _Raised) else (result, None)
        except RayActorError as error:
            self._results[uid] = None, None
            self._deaths.append(_lost(uid, error))
            if self._restarts > 0:
                self._restarts -= 1
                self._start_further()
            elif not self._has_begun(uid):
                self._not_begun = self._deaths[-1]
        except RayTaskError as error:
            self._results[uid] = None, error.as_instanceof_cause()
            if not self._has_begun(uid):
                self._not_begun = self._results[uid][1]
        except RayError as error:  # the worker's error or its result cannot be transferred
            self._results[uid] = None, error

    def _has_begun(self, uid: str) -> bool:
        """Whether a worker that has ended took part in the job, as far as its coordinator can tell."""
        try:
            return bool(ray.get(self.coordinator.was_admitted.remote(uid), timeout=self._timeout))
        except (GetTimeoutError, RayActorError):  # it is being restarted
            return True

    def wait(self, timeout: float | None = None) -> list[Any]:
        """Waits until all workers have ended.

        Returns what they returned, in the order of their start, None for those that died or were excluded.

        Raises the error of the first worker that raised one, `WorkerLost` where all have died, and `TimedOut` after
        ``timeout`` seconds. Where a worker ends before it takes part in the job, and is not replaced, its error, or
        `WorkerLost` with its cause, is raised at once.
        """
        end = Backoff(math.inf if timeout is None else timeout)
        try:
            while not self.poll():
                if self._not_begun is not None:
                    raise self._not_begun
                if end.is_over():
                    raise TimedOut(f"the workers did not end within {timeout:g} s")
        finally:
            self._kill()
        if self._not_begun is not None:
            raise self._not_begun
        results = results_of_ends(self._results[uid] for uid in self._actors)
        if len(self._deaths) == len(self._results):
            raise self._deaths[0]
        return results

    def _kill(self) -> None:
        for actor in (self.coordinator, *self._actors.values()):
            with contextlib.suppress(RayActorError):
                ray.kill(actor)


def _lost(uid: str, error: BaseException) -> WorkerLost:
    """The error for a worker whose process died, with the cause that Ray knows."""
    number = int(uid.split("-")[0])
    lost = WorkerLost((), f"the work of worker {number}", f"its process died; {' '.join(str(error).split())}")
    lost.__cause__ = error
    return lost


def run(worker: Callable[[Communicator], Any], workers: int | None = None, **options: Any) -> list[Any]:
    """Runs ``worker(communicator)`` in processes of Ray; returns the results by rank.

    The options are those of `RayJob`.

    See `oxigrad.distributed.run`.
    """
    return RayJob(worker, WORKERS if workers is None else workers, **options).wait()
