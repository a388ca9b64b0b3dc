"""Workers as processes of Ray, on one machine or a cluster of it.

One asynchronous actor keeps what the workers share, a `Hub`: mailboxes, membership, and the sums in the order of ranks. Ray restarts
it where its process dies, and the workers then form the next generation there, as they do where one of them dies. Ray itself
serializes the worker function and its result with cloudpickle; the workers exchange buffers only.
"""

import contextlib
import dataclasses
import importlib
import ipaddress
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from oxigrad import _core
from oxigrad.distributed.background import InOrder
from oxigrad.distributed.communicator import TIMEOUT, Buffer, Communicator, Memory, Op, current, serving, succeed
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.hub import Answer, Hub, Place
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, Refused, TimedOut, WorkerLost
from oxigrad.distributed.message import Guard, Header, scatter
from oxigrad.distributed.refusals import Refusals

ray: Any = importlib.import_module("ray")  # and not this module, which has the name too
_exceptions: Any = importlib.import_module("ray.exceptions")
GetTimeoutError, OwnerDiedError = _exceptions.GetTimeoutError, _exceptions.OwnerDiedError
RayActorError, RayError, RayTaskError = _exceptions.RayActorError, _exceptions.RayError, _exceptions.RayTaskError

__all__ = ["RayCommunicator", "RayJob", "run"]

__dir__ = __all__.copy

_INLINE = 1 << 16
"""Bytes up to which a result is part of each answer; larger ones are put into Ray's shared memory once."""

_GRACE = 10.0
"""Seconds that an answer may come later than its time-out."""

_POLL = 0.1
"""Seconds between two looks at the processes."""


class _Coordinator(Hub):
    """The hub as an actor."""

    def __init__(self, expected: Sequence[str], job: bytes, version: str) -> None:
        super().__init__(expected, _kept, job=job, version=version)
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


def _kept(result: list[np.ndarray]) -> Any:
    return result if sum(buffer.nbytes for buffer in result) <= _INLINE else ray.put(result)


class RayCommunicator(InOrder):
    """The communicator of a worker that is a process of Ray; see `oxigrad.distributed.communicator.Communicator`."""

    def __init__(self, coordinator: Any, uid: str, job: bytes, place: Place, timeout: float) -> None:
        self._coordinator, self._uid, self._place = coordinator, uid, place
        self.rank, self.size, self.generation = place
        self.job, self.timeout = job, timeout
        self.bytes_sent = 0
        self.refused, self.trainings = Refusals(), Trainings(is_known=self.generation == 0)
        self._guard = Guard(job, self.generation, self.size)
        self._calls = 0
        self._sent: Counter[int] = Counter()
        self._lock = threading.Lock()

    # --- operations on all workers -------------------------------------------------------------------------------------

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """See `Communicator.all_reduce`; sums are always taken in the order of ranks."""
        if op not in ("sum", "mean", "max"):
            raise ValueError(f"op is {op!r}: expected 'sum', 'mean' or 'max'")
        layout = [(buffer.dtype.str, buffer.size) for buffer in bufs]
        self._collect(("all_reduce", op, *layout), list(bufs), bufs, timeout)
        self._count(sum(buffer.nbytes for buffer in bufs))

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """See `Communicator.broadcast`."""
        if not 0 <= root < self.size:
            raise ValueError(f"root is {root}: expected 0 to {self.size - 1}")
        own = list(bufs) if self.rank == root else []
        layout = [(buffer.dtype.str, buffer.size) for buffer in bufs]
        self._collect(("broadcast", root, *layout), own, bufs, timeout)
        self._count(sum(buffer.nbytes for buffer in own))

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """See `Communicator.all_gather_v`."""
        found = self._collect(("all_gather_v", buf.dtype.str), [buf], (), timeout)
        self._count(buf.nbytes)
        return found

    def _count(self, nbytes: int) -> None:
        with self._lock:
            self.bytes_sent += nbytes

    def _collect(
        self, kind: tuple[Any, ...], own: list[Buffer], into: Sequence[Buffer], timeout: float | None
    ) -> list[Buffer]:
        self._await_turn()
        self._calls += 1
        found = self._ask("collect", self._place, self._calls, kind, own, timeout=timeout, what=kind[0])
        for target, source in zip(into, found if into else (), strict=True):
            np.copyto(target, source)
        return found

    # --- messages ------------------------------------------------------------------------------------------------------

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """See `Communicator.send`."""
        if not 0 <= dest < self.size:
            raise ValueError(f"the rank is {dest}: expected 0 to {self.size - 1}")
        with self._lock:  # the messages to one worker arrive in the order of their sequence numbers
            sealed = head.sealed(
                bufs, job=self.job, generation=self.generation, rank=self.rank, sequence=self._sent[dest]
            )
            self._sent[dest] += 1
            self._post(dest, sealed.pack(), list(bufs))
            self.bytes_sent += sealed.payload_bytes

    def _post(self, dest: int, header: bytes, bufs: list[Buffer]) -> None:
        self._ask("post", dest, self.generation, header, bufs, what="send", is_wait=False)

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """See `Communicator.recv_any`."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            left = max(0.0, end - time.monotonic())
            found = self._ask("take", self._place, tag, source, timeout=left, what="recv_any")
            if found is None:
                return None
            try:
                header = Header.unpack(found[0])
                self._guard.check(header)
                self._guard.check(header, found[1])
                scatter(found[1], bufs(header) if callable(bufs) else bufs)
                return header
            except Refused as error:
                self.refused.add(error)

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        try:
            return frozenset(self._ask("alive", self._uid, self.generation, what="alive", is_wait=False))
        except WorkerLost:
            return frozenset({self.rank})

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._ask("exclude", self._place, rank, what="exclude", is_wait=False)

    def reform(self, *, timeout: float | None = None) -> "RayCommunicator":
        """See `Communicator.reform`. Workers that were started meanwhile are admitted; a restarted coordinator is waited for."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        place = _retried(lambda left: self._ask("reform", self._uid, self._place, timeout=left, what="reform"), end)
        made = type(self)(self._coordinator, self._uid, self.job, Place(*place), self.timeout)
        succeed(self, made)
        return made

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
        seconds = self.timeout if timeout is None else timeout
        given = [*args, *([seconds] if is_wait else [])]
        answer = _call(self._coordinator, method, *given, what=what, timeout=seconds, place=self._place)
        if isinstance(answer, ray.ObjectRef):
            try:
                return ray.get(answer, timeout=seconds + _GRACE)
            except (OwnerDiedError, RayActorError) as error:
                raise WorkerLost((), what) from error
        return answer


def _call(coordinator: Any, method: str, *args: Any, what: str, timeout: float, place: Place | None = None) -> Any:
    try:
        answer = Answer(*ray.get(getattr(coordinator, method).remote(*args), timeout=timeout + _GRACE))
    except GetTimeoutError as error:
        raise TimedOut(f"{what}: the coordinator does not answer within {timeout + _GRACE:g} s") from error
    except (RayActorError, OwnerDiedError) as error:
        raise WorkerLost((), what) from error
    if answer.kind == "lost":
        raise WorkerLost(answer.value, what)
    if answer.kind == "excluded":
        rank, _, generation = place or Place(0, 0, 0)
        raise Excluded(rank, generation)
    if answer.kind == "timed out":
        raise TimedOut(answer.value)
    if answer.kind == "aborted":
        raise Aborted(answer.value)
    if answer.kind == "refused":
        raise Refused(*answer.value)
    return answer.value


def _retried(ask: Callable[[float], Any], end: float) -> Any:
    """The answer of a coordinator that may be about to be restarted."""
    while True:
        try:
            return ask(max(0.0, end - time.monotonic()))
        except WorkerLost:
            if time.monotonic() >= end:
                raise
            time.sleep(_POLL)


# --- the job ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Raised:
    """An exception that is no `Exception`, such as `SystemExit`, by which Ray would end the process without telling its cause."""

    error: BaseException


class _Worker:
    """A worker as an actor: one process, in which the worker function is called once."""

    def pid(self) -> int:
        """The process of the worker."""
        return os.getpid()

    def run(self, worker: Callable[[Communicator], Any], coordinator: Any, uid: str, job: bytes, timeout: float) -> Any:
        """Calls the worker function with a communicator; returns its result, None where the others have ended before."""
        end = time.monotonic() + timeout

        def enter(left: float) -> Any:
            return _call(coordinator, "enter", uid, job, _core.__version__, left, what="enter", timeout=left)

        place = _retried(enter, end)
        if place is None:
            return None
        last = made = RayCommunicator(coordinator, uid, job, Place(*place), timeout)
        try:
            with serving(made):
                try:
                    return worker(made)
                except Exception:
                    raise
                except BaseException as error:  # noqa: BLE001 - raised by `RayJob.wait`
                    return _Raised(error)
                finally:
                    last = current()
        finally:
            last.leave() if isinstance(last, RayCommunicator) else made.leave()


class RayJob:
    """Workers as actors of Ray, which may be joined by others and are replaced where they die.

    Args:
        worker: called in each process with its communicator.
        workers: the number of processes at the start.
        timeout: seconds that a wait of a worker takes at most.
        restarts: how many processes are started, in all, in place of those that die; a new one enters with `Communicator.reform` of the others.
        address: of a Ray cluster; by default one is started on this machine, unless the program is connected to one.
        allow_insecure: use a cluster that other machines can reach although it does not authenticate by token. Whoever reaches the
            ports of such a cluster runs code in it.

    Raises `PermissionError` for a cluster at another address than this machine's loopback that does not authenticate by token.
    """

    def __init__(
        self,
        worker: Callable[[Communicator], Any],
        workers: int,
        *,
        timeout: float = TIMEOUT,
        restarts: int = 0,
        address: str | None = None,
        allow_insecure: bool = False,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: expected at least 1")
        connect(address, workers, allow_insecure=allow_insecure)
        self._worker, self._timeout, self._restarts = worker, timeout, restarts
        self._job = secrets.token_bytes(16)
        self._actors: dict[str, Any] = {}
        self._pending: dict[Any, str] = {}
        self._results: dict[str, tuple[Any, BaseException | None]] = {}
        self._not_begun: BaseException | None = None
        self._last_told, self._times_told = 0.0, 0
        self._asked: Any = None
        names = [self._name(number) for number in range(workers)]
        remote: Any = ray.remote
        made = remote(num_cpus=0, max_restarts=-1, max_concurrency=1000)(_Coordinator)
        self.coordinator = made.remote(names, self._job, _core.__version__)
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
        """Starts a further worker, which is admitted when the present ones next call `Communicator.reform`."""
        self._start(self._name(len(self._actors)))

    def pids(self) -> dict[str, int]:
        """The processes on this machine: of the coordinator, and of each worker that has not ended, in the order of their start."""
        names = list(self._pending.values())
        found = ray.get([self._actors[uid].pid.remote() for uid in names], timeout=self._timeout)
        return {
            "coordinator": ray.get(self.coordinator.pid.remote(), timeout=self._timeout),
            **dict(zip(names, found, strict=True)),
        }

    def poll(self, seconds: float = _POLL) -> bool:
        """Waits up to so many seconds for a worker to end, and tells the coordinator who lives; whether all have ended."""
        if self._pending:
            done, _ = ray.wait(list(self._pending), num_returns=1, timeout=seconds)
            for ref in done:
                self._end(ref)
            if done or time.monotonic() - self._last_told > 5 * _POLL:
                self._last_told = time.monotonic()
                self._times_told += 1
                # Not waited for: a coordinator that is being restarted is told again. Ray may change the order of the calls.
                self.coordinator.supervise.remote(list(self._pending.values()), self._times_told)
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
            self._results[uid] = None, _lost(uid, error)
            if self._restarts > 0:
                self._restarts -= 1
                self.join()
            elif not self._has_begun(uid):
                self._not_begun = _lost(uid, error)
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
        """Waits until all workers have ended; returns what they returned, in the order of their start, None for those that died or were excluded.

        Raises the error of the first worker that raised one, `WorkerLost` where all have died, and `TimedOut` after ``timeout`` seconds.
        Where a worker ends before it takes part in the job, and is not replaced, its error, or `WorkerLost` with its cause, is raised at once.
        """
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while not self.poll():
                if self._not_begun is not None:
                    raise self._not_begun
                if end is not None and time.monotonic() > end:
                    raise TimedOut(f"the workers did not end within {timeout:g} s")
        finally:
            self._kill()
        errors = [error for _, error in self._results.values() if not (error is None or isinstance(error, Excluded))]
        if self._not_begun is not None:
            raise self._not_begun
        raised = [error for error in errors if not isinstance(error, WorkerLost) or isinstance(error, RayTaskError)]
        causes = [error for error in raised if not isinstance(error, CommunicationError)]
        if raised or len(errors) == len(self._results):
            raise (causes or raised or errors)[0]
        return [self._results[uid][0] for uid in self._actors]

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


def run(worker: Callable[[Communicator], Any], workers: int = 4, **options: Any) -> list[Any]:
    """Runs ``worker(communicator)`` in processes of Ray; returns the results by rank. The options are those of `RayJob`.

    See `oxigrad.distributed.run`.
    """
    return RayJob(worker, workers, **options).wait()


def connect(address: str | None, workers: int, *, allow_insecure: bool) -> None:
    """Connects this program to Ray, unless it is connected.

    Without an address, Ray is started on this machine, where its processes listen on the loopback interface. It authenticates by token,
    unless ``RAY_AUTH_MODE`` says otherwise: every user of the machine can reach that. Raises `PermissionError` for a cluster that other machines may reach and that does not
    authenticate.
    """
    if ray.is_initialized():
        _check_safety(ray.get_runtime_context().gcs_address, allow_insecure=allow_insecure)
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address != "local":
        _check_safety(address, allow_insecure=allow_insecure)
        ray.init(address=address, configure_logging=False)
        return
    if not (allow_insecure or os.environ.get("RAY_AUTH_MODE", "token").lower() == "token"):
        _refuse("Ray that is started here")
    with _on_loopback():
        ray.init(
            address="local",
            num_cpus=max(os.cpu_count() or 1, workers + 1),
            include_dashboard=False,
            configure_logging=False,
        )
    token = Path.home() / ".ray" / "auth_token"
    with contextlib.suppress(OSError):  # Ray may keep it elsewhere
        token.chmod(0o600)


@contextlib.contextmanager
def _on_loopback() -> Iterator[None]:
    """A context in which Ray is started on the loopback interface.

    Ray has no argument for that: it replaces a loopback address that it is given by that of the host, except where it takes no other
    machines into a cluster, as on macOS and Windows.
    """
    constants = importlib.import_module("ray._private.ray_constants")
    name = "ENABLE_RAY_CLUSTER"
    before = getattr(constants, name, None)
    setattr(constants, name, False)
    try:
        yield
    finally:
        setattr(constants, name, before)


def _check_safety(address: str, *, allow_insecure: bool) -> None:
    has_token = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    if not (allow_insecure or has_token or _is_loopback(address)):
        _refuse(f"Ray at {address}")


def _refuse(what: str) -> NoReturn:
    raise PermissionError(
        f"{what} can be reached by other machines, and runs the code of whoever reaches it: expected RAY_AUTH_MODE=token, or "
        "allow_insecure=True on a network that you trust"
    )


def _is_loopback(address: str) -> bool:
    host = address.rpartition("://")[2]
    host = host.rpartition(":")[0].strip("[]") if ":" in host else host
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or "auto"
        return False
