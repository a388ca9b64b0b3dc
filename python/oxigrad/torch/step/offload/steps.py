"""Steps that are taken piece by piece: after an error they tell which parameters are ahead, and are completed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad import _core
from oxigrad.stepping.placement.ring import Ring
from oxigrad.stepping.plan.announcements import Assignments, updated
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.pieces import TensorPiece
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import TensorPlace, clips, needs_all, places_of, refuse_shared_memory
from oxigrad.torch.step.resolved import TensorStep, all_parameters


class PieceSteps:
    """The steps of an optimizer whose parameters are updated piece by piece, by a ``ring``.

    A subclass tells which parameters, and cuts them. With ``collects``, pieces measure the norm that clips gradients:
    none of them is used before all have landed.
    """

    def __init__(self, ring: Ring[Any], *, collects: bool) -> None:
        self._lock, self._ring, self._collects = _core.Lock(), ring, collects
        self._measured = MeasuredNorm()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._ring.begin(None)
        self._is_begun = False
        self._measured.clear()
        #: The norm of all gradients, in a step that scales them by it once it is measured.
        self._norm: MeasuredNorm | None = None
        #: The gradients that a step has begun with, where all were added; None before.
        self._taken: dict[int, Any] | None = None
        #: The step of the parameters that are not updated piece by piece, and the scale of the loss.
        self._resident: TensorStep | None = None
        self._scale: float | None = None

    # --- of a subclass ------------------------------------------------------------------------------------------------

    def _begin(self, opt: Any) -> None:
        """Begins a step."""
        self._is_begun = True
        is_clipped = clips(opt) and not needs_all(opt)
        self._norm = ((opt._backward and opt._backward.norm.whole) or self._measured) if is_clipped else None

    def _accepts(self, opt: Any) -> bool:
        """Whether a step with gradients none of which has been used is to be taken by pieces."""
        return True

    def _is_here(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces."""
        raise NotImplementedError

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces, and its gradient can be used before all gradients are final."""
        raise NotImplementedError

    def _check(self, opt: Any, places: Sequence[TensorPlace]) -> None:
        """Raises for parameters that a step cannot take."""
        for place in places:
            opt.check_gradient(place.path, place.tensor)
        refuse_shared_memory(places, gradients=True)

    def _cut(self, batch: HostBatch, *, is_whole: bool) -> list[Any]:
        """The parameters of a batch in pieces; all of them in one where their step needs all at once."""
        raise NotImplementedError

    def _added(self, places: Sequence[TensorPlace]) -> None:
        """Takes note of parameters whose gradients a step has."""

    # --- steps --------------------------------------------------------------------------------------------------------

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that are a step ahead of the others, after an error in a step."""
        return self._ring.ahead if self._is_begun else []

    @property
    def is_under_way(self) -> bool:
        """Whether a step was begun and is not finished."""
        return self._is_begun and bool(self._ring.pieces)

    def reset(self) -> None:
        """Begins anew with another state; an update that is under way ends first, and has no effect."""
        if self._is_begun:
            self._ring.abandon()
            self._begin_anew()

    def stream(self, opt: Any, places: Sequence[TensorPlace], marks: Assignments) -> None:
        """Adds parameters whose gradients are final, to be updated before ``step()`` ends, and makes ``marks``.

        No interrupt comes between. `advance` begins the copies.
        """
        if not self.is_under_way:
            self._begin(opt)
        with conversion.kept_on_error(opt.state, [place.tensor for place in places]):
            pieces = self._pieces(opt, places)
            _core.Stepper().write(None, _core.Writes(assignments=[*self._ring.additions(pieces), *marks]))
        self._added(places)

    def advance(self) -> None:
        """Lets copies and updates go on beside the backward."""
        if self._ring.pieces:
            self._ring.advance_beside()

    def take(self, opt: Any, scale: float | None, loss: Any) -> bool:
        """Takes a step, or completes one that an error has ended.

        False, with nothing done, where it is not to be taken by pieces.

        No key stops it: an interrupt comes before the step, or is raised when it has ended. It is taken in a `turn`.
        """
        if not self.is_under_way:
            if not self._accepts(opt):
                return False
            self._begin(opt)
        self._ring.join()
        add: Callable[[], None] = lambda: None  # noqa: E731
        if self._taken is not None:
            self._check_same(opt)
        else:
            try:
                add = self._prepared(opt, scale, loss)
            except Exception:
                if not self._ring.pieces:
                    self._begin_anew()
                raise
        self._ring.worker.run(lambda: (add(), self._finish(opt, loss)))
        return True

    def turn(self) -> AbstractContextManager[None]:
        """A block with a step. Threads take steps one after the other."""
        return self._lock.stepping()

    def _prepared(self, opt: Any, scale: float | None, loss: Any) -> Callable[[], None]:
        """The function that adds all gradients that are there, and the parameters that are not updated by pieces.

        Nothing of it can fail.
        """
        places = [place for place in places_of(opt) if place.tensor.grad is not None]
        self._check(opt, places)
        here, others = list[TensorPlace](), list[TensorPlace]()
        for place in places:
            (here if self._is_here(opt, place.tensor) else others).append(place)
        if (norm := self._norm) is not None:
            for place in others if self._collects else here:
                norm.add(opt, place, *(conversion.local(t).cpu() for t in (place.tensor.grad, place.tensor)))
        with conversion.kept_on_error(opt.state):
            resident = None
            if others:
                resident = TensorStep(opt, scaled=scale is not None, places=others, square=self._square)
            pieces = self._pieces(opt, here, scale, loss)

        def add() -> None:
            self._ring.add(pieces)
            self._added(here)
            self._resident, self._scale = resident, scale
            self._taken = {id(place.tensor): place.tensor.grad for place in places}

        return add

    @property
    def _square(self) -> Callable[[Any], float] | None:
        """The square of the norm that clips gradients, if it is measured before the update."""
        return None if self._norm is None else self._norm.square

    def _pieces(
        self, opt: Any, places: Sequence[TensorPlace], scale: float | None = None, loss: Any = None
    ) -> list[TensorPiece]:
        """The pieces of parameters, whose copies begin after the work that their devices were given so far.

        The versions of the parameters are raised: a backward does not read what the update will have changed.
        """
        batch = HostBatch(opt, places, scale=scale, loss=loss, square=self._square)
        pieces = self._cut(batch, is_whole=needs_all(opt))
        for p in batch.plan.parameters:
            torch.autograd.graph.increment_version(p.tensor)
        self._ring.prepare(pieces)
        return pieces

    def _finish(self, opt: Any, loss: Any) -> None:
        """Finishes the step that is under way, in the thread of the worker."""
        if not self._is_begun:  # a step that an interrupt of the wait for it has not stopped
            return
        self._ring.close()
        self._ring.advance()
        if self._resident is not None:
            with torch.no_grad():
                self._resident.take(opt, 1.0 if self._scale is None else self._scale, loss)
            self._resident = None
        self._ring.join_devices()
        for batch in {id(piece.batch): piece.batch for piece in self._ring.pieces.values()}.values():
            batch.count()
        self._begin_anew()

    def _check_same(self, opt: Any) -> None:
        """Raises `RuntimeError` for other gradients than those of the step that an error has ended."""
        taken = self._taken or {}
        if any(p.grad is not None and taken.get(id(p)) is not p.grad for p in all_parameters(opt)):
            raise RuntimeError(
                f"the step before was ended by an error, {updated(self.ahead)}, and there are other "
                "gradients: expected synchronize() first, which completes it"
            )

    def synchronize(self, opt: Any) -> None:
        """Completes a step that an error has ended."""
        with self._lock.stepping():
            if self._is_begun and self._taken is not None:
                self._ring.join()
                self._ring.worker.run(lambda: self._finish(opt, None))
