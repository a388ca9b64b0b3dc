"""Steps that are taken piece by piece: after an error they tell which parameters are ahead, and are completed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends.memory.worker import Worker
from oxigrad.stepping.plan.announcements import Assignments, named
from oxigrad.torch.step.offload.run import Added, HostRun
from oxigrad.torch.step.plan import TensorPlace, clips
from oxigrad.torch.step.resolved import TensorStep, all_parameters


class PieceSteps:
    """The steps of an optimizer whose parameters are updated piece by piece."""

    def __init__(self) -> None:
        self._lock, self._worker = _core.Lock(), Worker()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._run: HostRun | None = None
        #: Whether the updates of a step run beside the next forward and backward.
        self._is_delayed = False
        #: The gradients that a step has begun with, where all were added; None before.
        self._taken: dict[int, Any] | None = None
        #: The step of the parameters that are not updated piece by piece.
        self._resident: TensorStep | None = None

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that are a step ahead of the others, after an error in a step."""
        return [] if self._run is None or self._is_delayed else self._run.ahead

    @property
    def is_under_way(self) -> bool:
        """Whether a step was begun and is not finished."""
        return self._run is not None and bool(self._run.added)

    def reset(self) -> None:
        """Begins anew with another state; an update that is under way ends first, and has no effect."""
        if self._run is not None:
            self._run.abandon()
        self._begin_anew()

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated by pieces, and its gradient can be used before all gradients are final."""
        raise NotImplementedError

    def stream(self, opt: Any, places: Sequence[TensorPlace], marks: Assignments) -> None:
        """Adds parameters whose gradients are final, to be updated before ``step()`` ends, and makes ``marks``.

        `advance` begins the copies.
        """
        raise NotImplementedError

    def _add_marked(self, run: HostRun, added: Sequence[Added], marks: Assignments) -> None:
        """Adds pieces, and makes assignments; no interrupt comes between."""
        run.prepare(added)
        _core.Stepper().write(None, _core.Writes(assignments=[*run.additions(added), *marks]))

    def advance(self, opt: Any) -> None:
        """Lets copies and updates go on beside the backward."""
        if self._run is not None:
            self._run.advance_beside(opt)

    def take(self, opt: Any, scale: float | None, loss: Any) -> bool:
        """Takes a step, or completes one that an error has ended.

        False, with nothing done, where it is not to be taken by pieces.

        No key stops it: an interrupt comes before the step, or is raised when it has ended. It is taken in a `turn`.
        """
        raise NotImplementedError

    def turn(self) -> AbstractContextManager[None]:
        """A block with a step. Threads take steps one after the other."""
        return self._lock.stepping()

    def _finish(self, opt: Any, loss: Any) -> None:
        """Finishes the step that is under way, in the thread of the worker."""
        raise NotImplementedError

    def _check_same(self, opt: Any) -> None:
        """Raises `RuntimeError` for other gradients than those of the step that an error has ended."""
        taken = self._taken or {}
        if any(p.grad is not None and taken.get(id(p)) is not p.grad for p in all_parameters(opt)):
            raise RuntimeError(
                f"the step before was ended by an error, with {named(self.ahead) or 'no parameter'} updated, and there "
                "are other "
                "gradients: expected synchronize() first, which completes it"
            )

    def synchronize(self, opt: Any) -> None:
        """Waits for an update that is under way, or completes a step that an error has ended."""
        with self._lock.stepping():
            self._complete(opt)

    def _complete(self, opt: Any) -> None:
        if self._run is None or self._taken is None:
            return
        self._is_delayed = False  # After an error the step is as one without a delay.
        self._run.join()
        self._worker.run(lambda: self._finish(opt, None))


def reads_all(opt: Any) -> bool:
    """Whether the rule reads totals over parameters, or the loss, so that none is updated in the backward."""
    return bool(opt.entry.rule.supplied & {"total", "guard", "loss"})


def is_together(opt: Any) -> bool:
    """Whether a step needs all gradients and parameters at once, rather than a norm that is measured first."""
    is_scaled = getattr(opt, "grad_scale", None) is not None
    return reads_all(opt) or (clips(opt) and (is_scaled or not opt.entry.rule.elementwise))
