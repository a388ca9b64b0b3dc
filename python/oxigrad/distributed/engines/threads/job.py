"""Jobs whose workers are threads of this process."""

import math
import secrets
import threading
from collections.abc import Callable
from typing import Any

from oxigrad.distributed.communicator import TIMEOUT, WORKERS, Communicator, Place, work_of
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.hub import check_accepts, results_of_ends
from oxigrad.distributed.engines.threads.hub import Killed, ThreadHub
from oxigrad.distributed.engines.threads.transport import ThreadCommunicator
from oxigrad.distributed.errors import TimedOut

# Seconds between two looks at the threads.
_POLL = 0.5


class ThreadJob:
    """Workers as threads of this process, which can be killed, restarted and joined by others, as tests of faults need.

    Args:
        worker: called in each thread with its communicator.
        workers: the number of threads at the start.
        timeout: seconds that a wait of a worker takes at most.
        accept_newcomers: whether further workers may `join`.

    >>> job = ThreadJob(lambda comm: comm.rank * 10, 3)
    >>> job.wait()
    [0, 10, 20]

    The threads start in `start` or `wait`.
    """

    def __init__(
        self,
        worker: Callable[[Communicator], Any],
        workers: int,
        timeout: float = TIMEOUT,
        *,
        accept_newcomers: bool = False,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: expected at least 1")
        self._worker, self._timeout, self._accepts_newcomers = worker, timeout, accept_newcomers
        self._hub = ThreadHub([_name(number) for number in range(workers)], secrets.token_bytes(16))
        self._threads: list[threading.Thread] = []
        self._ends: list[tuple[Any, BaseException | None]] = []

    def start(self) -> None:
        """Starts the threads; `wait` does so as well."""
        if self._threads:
            return
        communicators = [self._communicator(uid, self._hub.place_of(uid)) for uid in self._hub.members]
        for thread in [self._enter(self._worker, lambda each=each: each) for each in communicators]:
            thread.start()

    def _communicator(self, uid: str, place: Place) -> ThreadCommunicator:
        return ThreadCommunicator(self._hub, uid, place, self._hub.job, self._timeout)

    def _enter(
        self, worker: Callable[[Communicator], Any], admitted: Callable[[], ThreadCommunicator]
    ) -> threading.Thread:
        """A thread that is not started yet, in the order of which results are returned."""
        number = len(self._ends)
        self._ends.append((None, None))
        thread = threading.Thread(target=self._main, args=(number, worker, admitted), name=f"worker-{number}")
        thread.daemon = True  # a worker that hangs in the user's code does not keep the process
        self._threads.append(thread)
        return thread

    def _main(
        self, number: int, worker: Callable[[Communicator], Any], admitted: Callable[[], ThreadCommunicator]
    ) -> None:
        try:
            self._ends[number] = work_of(worker, admitted()), None
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised by `wait`
            self._ends[number] = None, error

    def kill(self, rank: int) -> None:
        """Kills the worker of a rank of the latest generation: its thread ends at its next call of the communicator."""
        self._hub.kill(rank)

    def restart(self, rank: int, worker: Callable[[Communicator], Any] | None = None) -> None:
        """Starts another worker with the rank of one that has died or left, in the same generation.

        It exchanges messages; collective operations raise `WorkerLost` until `Communicator.reform`.
        """
        with self._hub.lock:
            self._hub.restart(rank, uid := _name(len(self._ends)))
            communicator = self._communicator(uid, self._hub.place_of(uid))
            thread = self._enter(worker or self._worker, lambda: communicator)
        thread.start()

    def join(self, worker: Callable[[Communicator], Any] | None = None) -> None:
        """Starts a further worker, which is admitted when the present ones next call `Communicator.reform`.

        Raises `NotSupported` where the job does not accept newcomers.
        """
        check_accepts("a job of threads", accept_newcomers=self._accepts_newcomers)
        self.start()  # which does nothing once there is a thread
        with self._hub.lock:
            self._hub.expect(uid := _name(len(self._ends)))
            thread = self._enter(worker or self._worker, lambda: self._communicator(uid, self._hub.admitted(uid)))
        thread.start()

    def wait(self, timeout: float | None = None) -> list[Any]:
        """Waits until all workers have ended.

        Returns what they returned, in the order of their start, None for killed ones.

        Raises the error of the first worker that raised one, and `TimedOut` after ``timeout`` seconds. An interrupt
        aborts the job. A worker that the others have excluded counts as killed, and is not waited for.
        """
        end = Backoff(math.inf if timeout is None else timeout)
        try:
            self.start()
            while running := self._running():
                if end.is_over():
                    raise TimedOut(f"{running[0].name} did not end within {timeout:g} s")
                running[0].join(min(end.remaining(), _POLL))
        except BaseException:
            self._hub.abort("the job was interrupted")
            raise
        return results_of_ends(self._ends)

    def _running(self) -> list[threading.Thread]:
        """The threads that have not ended, and whose workers the others have not excluded."""
        excluded = {int(uid) for uid in self._hub.excluded()}
        return [each for number, each in enumerate(self._threads) if each.is_alive() and number not in excluded]


def _name(number: int) -> str:
    """The name of the worker that is started as this one."""
    return f"{number:06}"


def run(
    worker: Callable[[Communicator], Any],
    workers: int | None = None,
    *,
    timeout: float = TIMEOUT,
    accept_newcomers: bool = False,
) -> list[Any]:
    """Runs ``worker(communicator)`` in threads; returns the results by rank. See `oxigrad.distributed.run`."""
    count = WORKERS if workers is None else workers
    return ThreadJob(worker, count, timeout, accept_newcomers=accept_newcomers).wait()
