"""The processes of an MPI job: workers, spares, processes that left or died, and how the next generation forms.

Every process is in one of four states. Workers exchange messages over ``channels``; all living processes form ``base``,
over which notices are sent that change the states. A worker that has left, and a spare process, stand by: they take
part in the operations by which the others form the next generation, since MPI needs all living processes for these.
"""

import contextlib
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from oxigrad.distributed.engines.background import in_time
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.mpi.library import MPI
from oxigrad.distributed.engines.peers import FORMS, NOTICE_WORDS, Peers, notice
from oxigrad.distributed.errors import NotSupported, TimedOut

_TAG = 1
_WORKER, _SPARE, _GONE = 0, 1, 2

_Result = TypeVar("_Result")

_LOST = {MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED}


def _is_loss(error: Any) -> bool:
    return error.Get_error_class() in _LOST


def _next_states(table: list[list[int]]) -> list[int]:
    """The states in the next generation, from a row a process: state, whether it left, generation, workers."""
    newest = max(row[2] for row in table)
    workers = next(row[3] for row in table if row[2] == newest)
    states = [_GONE if has_left else state for state, has_left, _, _ in table]
    wanted = workers - sum(state == _WORKER and has_left for state, has_left, _, _ in table)
    for process, state in enumerate(states):
        if state == _SPARE and states.count(_WORKER) < wanted:
            states[process] = _WORKER
    return states


class Membership:
    """The states of the processes, as this process knows them. The last ``spares`` processes of ``world`` are spare."""

    fault_tolerant: bool
    generation: int
    base: Any
    channels: tuple[Any, ...]
    peers: Peers

    def __init__(self, world: Any, spares: int) -> None:
        if not 0 <= spares < world.size:
            raise ValueError(f"spares is {spares}: expected 0 to {world.size - 1}, less than the processes of the job")
        # Open MPI's launcher tells its processes of user-level failure mitigation.
        self.fault_tolerant = os.environ.get("OMPI_MCA_mpi_ft_enable", "0") not in ("0", "false")  # noqa: SIM112
        self.generation = 0
        self.peers = Peers(0, (), world.rank)
        self._had_lost = False
        #: The process that has this membership: one that it forks has none.
        self.process: int = os.getpid()
        #: Whether an operation of MPI never completed, which a thread of this process still waits in.
        self.is_stuck: bool = False
        #: The communicator of the present generation, and operations that never completed, to whose buffers MPI may
        #: still write.
        self.communicator: Any = None
        self.unfinished: list[Any] = []
        #: Messages of former generations that have not come whole, to whose memory MPI may still write.
        self.received: list[Any] = []
        states = [_WORKER] * (world.size - spares) + [_SPARE] * spares
        base, workers = _split(world, is_worker=states[world.rank] == _WORKER)
        self._enter(_Place(base, _channels(workers), states))

    def _enter(self, place: "_Place") -> None:
        self.base, self.channels, self._states = place
        self._had_lost = self.has_lost
        self._announced = False
        self._notices: list[tuple[Any, np.ndarray]] = []
        workers = [process for process, state in enumerate(self._states) if state == _WORKER]
        self.peers = Peers(self.generation, workers, self.base.rank)

    @property
    def has_lost(self) -> bool:
        """Whether any process has died or was excluded, in any generation."""
        return self._had_lost or bool(self.peers.absent)

    @property
    def is_worker(self) -> bool:
        """Whether this process is a worker that has not left."""
        return self._states[self.base.rank] == _WORKER and self.base.rank not in self.peers.left

    # --- notices ------------------------------------------------------------------------------------------------------

    def heed(self, lock: AbstractContextManager[Any]) -> None:
        """Receives the notices that have come, and asks MPI which processes have died.

        Raises `Excluded` where others have excluded this process.
        """
        with lock:
            status = MPI.Status()
            while (matched := self.probe(self.base, MPI.ANY_SOURCE, _TAG, status)) is not None:
                words = np.zeros(NOTICE_WORDS, np.int64)
                if self.receive(matched, [words, MPI.INT64_T]):
                    self.peers.note(status.source, *words.tolist())
        self.peers.check_fence()

    def tell(self, words: np.ndarray) -> None:
        """Notes a notice, and sends it to all other processes that live, also to excluded ones."""
        if words[0] != FORMS:  # this process waits for the others
            self.peers.note(self.base.rank, *words.tolist())
        for process in set(range(self.base.size)) - {self.base.rank} - self.peers.dead:
            with contextlib.suppress(MPI.Exception):
                self._notices.append((self.base.Isend([words, MPI.INT64_T], process, _TAG), words))

    def probe(self, comm: Any, source: int, tag: int, status: Any) -> Any:
        """The next message of ``comm``, matched, or None. Processes that have died are remembered."""
        try:
            return comm.Improbe(source, tag, status)
        except MPI.Exception as error:
            if not _is_loss(error):
                raise
            self._find_dead()
            if error.Get_error_class() != MPI.ERR_REVOKED:
                comm.Ack_failed()
            return None

    def receive(self, matched: Any, into: list[Any]) -> bool:
        """Receives a matched message; False where its sender has died since, which is remembered."""
        try:
            matched.Recv(into)
        except MPI.Exception as error:
            if not _is_loss(error):
                raise
            self._find_dead()
            return False
        return True

    def _find_dead(self) -> None:
        if not self.fault_tolerant:
            return
        group = self.base.Get_failed()
        self.peers.dead |= set(MPI.Group.Translate_ranks(group, list(range(group.size)), self.base.group))
        self.base.Ack_failed()

    # --- the next generation ------------------------------------------------------------------------------------------

    def revoke(self, *comms: Any) -> None:
        """Makes pending operations of other workers on these communicators fail, where MPI can do that."""
        if self.fault_tolerant:
            for comm in comms:
                if not comm.Is_revoked():
                    comm.Revoke()

    def reform(self, timeout: float) -> None:
        """Forms the next generation out of the workers that are alive, and of as many spares as workers have died."""
        if self.peers.dead and not self.fault_tolerant:
            raise NotSupported("reform after the death of a worker: expected Open MPI with --with-ft ulfm")
        self._form(timeout)

    def stand_by(self) -> bool:
        """Waits until this process is needed as a worker; False where the workers have ended without it."""
        wait = Backoff(math.inf, spin=0.0, longest=0.01)
        while True:
            self.heed(contextlib.nullcontext())
            if self.peers.forming:
                self._form(math.inf)
                if self.is_worker:
                    return True
                wait = Backoff(math.inf, spin=0.0, longest=0.01)
            if not self.peers.alive():
                return False
            wait.pause()

    def _form(self, timeout: float) -> None:
        """Enters the next generation, with all other living processes or none."""
        self._gather(timeout)
        late = TimedOut(f"reform took more than {timeout:g} s: a process is stopped; this job cannot go on")
        try:  # the operations of MPI have no time-out
            place = self._next_place() if timeout == math.inf else in_time(self._next_place, timeout, late)
        except TimedOut:
            self.is_stuck = True
            raise
        self.generation += 1
        self._enter(place)

    def _next_place(self) -> "_Place":
        """The place of this process among all that live: they meet in `Shrink`, and try again if one dies meanwhile."""
        while True:
            comm = (
                self._others()
                if self.peers.excluded
                else self.base.Shrink()
                if self.fault_tolerant
                else self.base.Dup()
            )
            comm.Set_errhandler(MPI.ERRORS_RETURN)
            if (place := self._place_in(comm)) is not None:
                return place

    def _place_in(self, comm: Any) -> "_Place | None":
        """The place of this process in a generation of the processes of ``comm``.

        None for all of them where one has died.
        """
        # Open MPI crashes where a communicator is revoked that another process has not made yet.
        all_have_it = self._together(comm, comm, lambda: True)
        if not all_have_it or (table := self._together(comm, comm, lambda: self._states_of(comm))) is None:
            return None
        states = _next_states(table)
        is_worker = states[comm.rank] == _WORKER
        if (pair := self._together(comm, comm, lambda: _split(comm, is_worker=is_worker))) is None:
            return None
        base, workers = pair
        if (channels := self._together(comm, workers, lambda: _channels(workers))) is None:
            return None
        self.generation = max(row[2] for row in table)
        return _Place(base, channels, states)

    def _together(self, comm: Any, used: Any, operation: Callable[[], _Result]) -> _Result | None:
        """The result of an operation that all processes of ``comm`` call, on ``used``.

        None for all of them where it fails for one.

        A death fails an operation on those alone that exchange messages with the dead process: the one that is told
        revokes the communicator, since others would wait in it for ever for what this one does not send. None goes on
        before all have ended it.
        """
        result = None
        try:
            result = operation()
        except MPI.Exception as error:
            if not (_is_loss(error) and self.fault_tolerant):
                raise
            self.revoke(used)
        return result if not self.fault_tolerant or _all_agree(comm, result is not None) else None

    def _gather(self, timeout: float) -> None:
        """Waits until all living processes form the next generation: `Shrink` has no time-out."""
        if not self._announced:
            self._announced = True
            self.tell(notice(FORMS))
        if not Backoff(timeout).until(lambda: not self._missing()) and (missing := self._missing()):
            raise TimedOut(f"reform: processes that are alive do not call it: {sorted(missing)}")

    def _missing(self) -> set[int]:
        """The other processes that live and do not form the next generation."""
        self.heed(contextlib.nullcontext())
        return set(range(self.base.size)) - self.peers.absent - set(self.peers.forming) - {self.base.rank}

    def _others(self) -> Any:
        """The processes but for those that are excluded, without whom no operation on ``base`` completes."""
        group = self.base.group.Excl(sorted(self.peers.absent))
        return self.base.Create_group(group, _TAG)

    def _states_of(self, comm: Any) -> list[list[int]]:
        """A row for each process: its state, whether it has left, its generation, and the number of workers in that."""
        rank, table = self.base.rank, np.empty((comm.size, 4), np.int64)
        workers = self._states.count(_WORKER)
        row = np.array([self._states[rank], rank in self.peers.left, self.generation, workers], np.int64)
        comm.Allgather(row, table)
        return table.tolist()


class _Place(NamedTuple):
    """The communicators of one generation: of all processes, and two of the workers if this process is one."""

    base: Any
    channels: tuple[Any, ...]
    states: list[int]


def _split(comm: Any, *, is_worker: bool) -> tuple[Any, Any]:
    """A copy of a communicator, and that of its workers, which others do not have."""
    base, workers = comm.Dup(), comm.Split(0 if is_worker else MPI.UNDEFINED, comm.rank)
    for each in (base, *((workers,) if is_worker else ())):
        each.Set_errhandler(MPI.ERRORS_RETURN)
    return base, workers


def _channels(workers: Any) -> tuple[Any, ...]:
    """The communicators of a worker."""
    channels = tuple(workers.Dup() for _ in range(2)) if workers != MPI.COMM_NULL else ()
    for each in channels:
        each.Set_errhandler(MPI.ERRORS_RETURN)
    return channels


def _all_agree(comm: Any, is_well: bool) -> bool:
    """Whether all processes are well; the same for all of them, also where one dies during the call."""
    try:
        return bool(comm.Agree(int(is_well)))
    except MPI.Exception as error:
        if not _is_loss(error):
            raise
        return False
