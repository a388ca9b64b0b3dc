"""One step in host memory: its gradients' pieces, by the schedule of `oxigrad.stepping.device.transfers`."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad.ops.backends.memory.worker import Worker
from oxigrad.stepping.device.piece_run import PieceRun
from oxigrad.stepping.device.transfers import Action, Schedule
from oxigrad.stepping.plan.announcements import Assignments, named
from oxigrad.torch.library import torch
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.devices import Device, Event, device_of
from oxigrad.torch.step.offload.pieces import Piece, SumPiece
from oxigrad.torch.step.offload.plan import HostBatch

# A piece of a step: it is copied from a device into a place of ``size`` bytes, used there, and copied up again.
HostPiece = Piece | SumPiece
# Pieces, and their batch, if it is counted with the step.
Added = tuple[Sequence[HostPiece], HostBatch | None]


class Ring:
    """Host memory of places, each of at least ``size`` bytes after a piece, and devices of copies, or ``only`` one."""

    def __init__(self, size: int, only: Device | None = None) -> None:
        self._size, self._only = size, only
        self._places: dict[tuple[Any, int], Any] = {}
        self._devices: dict[Any, Device] = {}

    def device(self, of: Any) -> Device:
        """The copies of a device."""
        if of not in self._devices:
            self._devices[of] = self._only or device_of(of)
        return self._devices[of]

    def place(self, number: int, piece: HostPiece, *, exact: bool) -> Any:
        """The memory of a place, for a piece."""
        key, size = (piece.device, number), piece.size if exact else max(piece.size, self._size)
        memory = self._places.get(key)
        if memory is None or memory.numel() < size:
            try:
                memory = self._places[key] = self.device(piece.device).memory(size)
            except RuntimeError as error:
                raise MemoryError(f"{piece.paths[0]}: no host memory of {size:,} bytes for copies: {error}") from error
        return memory

    def mark(self) -> None:
        """Lets later copies begin after the work that devices were given so far."""
        for device in self._devices.values():
            device.mark()

    def join(self) -> None:
        """Lets work that devices are given from now on begin after the copies up."""
        for device in self._devices.values():
            device.join()


class HostRun(PieceRun):
    """A step in host memory that is on its way, of pieces that are added as their gradients become final.

    Args:
        ring: the memory of the places.
        places: their number; None for one for each piece.
        norm: collects the norm of all gradients, where they are scaled by it.
        worker: the worker of all steps of an optimizer.
        measures: whether no update begins before all pieces have landed.
        holds: whether copies up wait for `finish`.
        threads: the number of threads that updates use at most; None for that of all steps.
    """

    def __init__(
        self,
        ring: Ring,
        places: int | None,
        norm: MeasuredNorm | None,
        worker: Worker,
        *,
        measures: bool = False,
        holds: bool = False,
        threads: int | None = None,
    ) -> None:
        super().__init__(Schedule(places, measures=measures or norm is not None, holds=holds), threads, worker)
        self._ring, self._norm = ring, norm
        self._is_exact = places is None
        #: All that was added, by number: pieces, and their batch, if it is counted with the step.
        self.added: dict[int, Added] = {}
        self._taken_in = 0
        self._pieces: list[HostPiece] = []

    def prepare(self, added: Sequence[Added]) -> None:
        """Lets the copies of pieces, which are added later, begin after the work that their devices were given so far.

        The versions of their parameters are raised: a backward does not read what the update will have changed.
        """
        for pieces, batch in added:
            for piece in pieces:
                self._ring.device(piece.device)
            for p in () if batch is None else batch.plan.tensors:
                torch.autograd.graph.increment_version(p)
        self._ring.mark()

    def additions(self, added: Sequence[Added]) -> Assignments:
        """The assignments that add pieces whose gradients are final, after `prepare`, in one thread at a time."""
        return [(self.added, number, each) for number, each in enumerate(added, len(self.added))]

    def add(self, added: Sequence[Added]) -> None:
        """Adds pieces whose gradients are final, after `prepare`, in one thread at a time."""
        self.added |= dict(enumerate(added, len(self.added)))

    def _take_in(self) -> None:
        while self._taken_in in self.added:
            pieces = self.added[self._taken_in][0]
            self._taken_in += 1
            self._pieces += pieces
            for _ in pieces:
                self.schedule.add()

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters with elements that were updated."""
        paths = [path for number in self.schedule.ahead for path in self._pieces[number].paths]
        return [*dict.fromkeys(paths)]

    def _within(self) -> AbstractContextManager[Any]:
        return torch.no_grad()

    def _begin(self, opt: Any, action: Action) -> Sequence[Event] | None:
        piece = self._pieces[action.piece]
        memory = self._memory(action)
        device = self._ring.device(piece.device)
        if action.kind == "down":
            return [device.copy_down(*pair) for pair in piece.down(memory)]
        piece.check()
        if action.kind == "up":
            return [device.copy_up(*pair) for pair in piece.up(memory)]
        if action.kind == "update":
            piece.update(memory)
        elif self._norm is not None:
            piece.measure(opt, memory, self._norm)
        return None

    def _land(self, action: Action) -> None:
        self._pieces[action.piece].landed(self._memory(action))

    def _memory(self, action: Action) -> Any:
        """The memory of the place of an action."""
        return self._ring.place(action.place, self._pieces[action.piece], exact=self._is_exact)

    def _complete(self, opt: Any) -> None:
        self.advance(opt)
        if not self.schedule.is_finished:
            paths = [path for piece in self._pieces for path in piece.paths]
            raise RuntimeError(
                f"an update of {named(self.ahead or paths)} was interrupted: expected a state that was saved before"
            )
        self._ring.join()
        for _, batch in self.added.values():
            if batch is not None:
                batch.count(opt)
