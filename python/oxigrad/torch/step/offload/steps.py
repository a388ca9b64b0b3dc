"""Steps that are taken piece by piece: after an error they tell which parameters are ahead, and are completed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad import _core
from oxigrad.stepping.placement.ring import Ring
from oxigrad.stepping.plan.announcements import Assignments, named
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.pieces import TensorPiece, Totals
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.plan import TensorPlace, clips, places_of, refuse_shared_memory
from oxigrad.torch.step.resolved import TensorStep, all_parameters


class PieceSteps:
    """The steps of an optimizer whose parameters are updated piece by piece, by a ``ring``.

    A subclass tells which parameters, and cuts them.
    """

    def __init__(self, ring: Ring[Any]) -> None:
        self._lock, self._ring = _core.Lock(), ring
        #: The norm of all gradients, in a step that scales them by it.
        self._measured = MeasuredNorm()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._ring.begin(None)
        self._is_begun = False
        #: The gradients that a step has begun with, where all were added; None before.
        self._taken: dict[int, Any] | None = None
        #: The step of the parameters that are not updated piece by piece, and the scale of the loss.
        self._resident: TensorStep | None = None
        self._scale: float | None = None

    # --- of a subclass ------------------------------------------------------------------------------------------------

    def _begin(self, opt: Any) -> None:
        """Begins a step."""
        raise NotImplementedError

    def _accepts(self, opt: Any) -> bool:
        """Whether a step with gradients none of which has been used is to be taken by pieces."""
        raise NotImplementedError

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

    def _measure(self, opt: Any, here: Sequence[TensorPlace], others: Sequence[TensorPlace]) -> None:
        """Measures the gradients that are not measured by pieces."""
        raise NotImplementedError

    def _norm(self, opt: Any) -> MeasuredNorm | None:
        """The norm by which gradients are scaled, if they are."""
        raise NotImplementedError

    def _totals(self, places: Sequence[TensorPlace]) -> Totals:
        """The sums of gradients of micro-batches before."""
        return {}

    def _cut(self, batch: HostBatch, totals: Totals, *, is_called: bool) -> list[Any]:
        """The parameters of a batch in pieces. With ``is_called``, rules are called on them."""
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
            pieces = self._pieces(opt, places, None, None)
            self._prepare(pieces)
            _core.Stepper().write(None, _core.Writes(assignments=[*self._ring.additions(pieces), *marks]))
        self._added(places)

    def advance(self, opt: Any) -> None:
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
        self._measure(opt, here, others)
        norm = self._norm(opt)
        square = None if norm is None else norm.square
        with conversion.kept_on_error(opt.state):
            resident = TensorStep(opt, scaled=scale is not None, places=others, square=square) if others else None
            pieces = self._pieces(opt, here, scale, loss)
        self._prepare(pieces)

        def add() -> None:
            self._ring.add(pieces)
            self._added(here)
            self._resident, self._scale = resident, scale
            self._taken = {id(place.tensor): place.tensor.grad for place in places}

        return add

    def _pieces(self, opt: Any, places: Sequence[TensorPlace], scale: float | None, loss: Any) -> list[TensorPiece]:
        """The pieces of parameters."""
        norm, totals = self._norm(opt), self._totals(places)
        square = None if norm is None else norm.square
        is_together, is_elementwise = needs_all(opt), opt.entry.rule.elementwise
        parts = [places] if is_together or is_elementwise else [[place] for place in places]
        batches = [HostBatch(opt, part, scale=scale, loss=loss, square=square) for part in parts]
        is_called = is_together or not is_elementwise
        return [piece for batch in batches for piece in self._cut(batch, totals, is_called=is_called)]

    def _prepare(self, pieces: Sequence[TensorPiece]) -> None:
        """Lets the copies of pieces begin after the work that their devices were given so far.

        The versions of their parameters are raised: a backward does not read what the update will have changed.
        """
        tensors = {id(each.leaf): each.leaf.tensor for piece in pieces for each in piece.slices}
        for p in tensors.values():
            torch.autograd.graph.increment_version(p)
        self._ring.prepare(pieces)

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
                f"the step before was ended by an error, with {named(self.ahead) or 'no parameter'} updated, and there "
                "are other gradients: expected synchronize() first, which completes it"
            )

    def synchronize(self, opt: Any) -> None:
        """Completes a step that an error has ended."""
        with self._lock.stepping():
            if self._is_begun and self._taken is not None:
                self._ring.join()
                self._ring.worker.run(lambda: self._finish(opt, None))


def reads_all(opt: Any) -> bool:
    """Whether the rule reads totals over parameters, or the loss, so that none is updated in the backward."""
    return bool(opt.entry.rule.supplied & {"total", "guard", "loss"})


def needs_all(opt: Any) -> bool:
    """Whether a step needs all gradients and parameters at once, rather than a norm that is measured first."""
    is_scaled = getattr(opt, "grad_scale", None) is not None
    return reads_all(opt) or (clips(opt) and (is_scaled or not opt.entry.rule.elementwise))
