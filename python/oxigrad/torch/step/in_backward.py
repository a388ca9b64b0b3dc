"""Steps inside of a backward: a hook updates each parameter, and frees its gradient, as soon as it is final.

The step of a parameter is that of the optimizer, resolved for this parameter alone, with the same numbers. The
optimizer's ``step()`` finishes the step: it updates the parameters with gradients that no hook has updated, and counts.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oxigrad import _core
from oxigrad.stepping.plan.announcements import UNFINISHED, OpenStep, updated
from oxigrad.torch.library import torch, untraced, without_grad
from oxigrad.torch.state import conversion
from oxigrad.torch.step.hooks import Hooks
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.plan import TensorPlace, clips, noise_step, places_of, reads_all, refuse_shared_memory
from oxigrad.torch.step.resolved import all_parameters, holds, is_recorded, lists_of, values_of


def _announce(opt: Any, p: Any) -> None:
    """Uses a gradient that is final, or at the end of a backward the gradients that wait."""
    opt._backward.flush(opt) if p is None else opt._backward.use(opt, p)


class InBackward:
    """The step of an optimizer whose gradients hooks announce, open until ``step()``: some parameters are ahead."""

    def __init__(self, opt: Any) -> None:
        self._hooks = Hooks(opt, _announce)
        self._places: dict[int, TensorPlace] = {}
        #: The parameters that are ahead, by identity; gradients wait with their places.
        self.step: OpenStep = OpenStep("step() before the state is read")
        # The groups, and the parameters with their memory, that the places are of.
        self._signature = _core.Signature([], {})
        # The values of the groups that were checked.
        self._values: _core.Signature | None = None
        self._has_begun = self._has_drawn = self._clips = self._reads_all = False
        # The blocks in which gradients are accumulated.
        self._pauses = set[object]()
        #: The norm of the gradients that were measured.
        self.norm: MeasuredNorm = MeasuredNorm()
        # Threads of several devices run hooks.
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A block in which gradients are accumulated: an interrupt ends it too."""
        block = object()
        try:
            self._pauses.add(block)
            yield
        finally:
            self._pauses.discard(block)
            self._let_change()

    @contextlib.contextmanager
    def measuring(self, opt: Any) -> Iterator[None]:
        """A block with a backward that measures gradients, and drops them."""
        try:
            with self.norm.block(opt, self.step):
                yield
        finally:
            self._let_change()

    def _let_change(self) -> None:
        """Lets options change before the next backward, unless a step is under way."""
        self._has_begun &= bool(self._pauses or self.norm.is_measuring or self.norm or self.step.updated)

    def attach(self, opt: Any, params: Iterable[Any]) -> None:
        """Puts hooks on parameters. Raises `ValueError` for an optimizer whose steps are recorded."""
        _check(opt)
        self._hooks.attach(params)

    def reset(self, opt: Any) -> None:
        """Begins anew with another state."""
        self._end()
        self.attach(opt, all_parameters(opt))

    # --- gradients that are final -------------------------------------------------------------------------------------

    def use(self, opt: Any, p: Any) -> None:
        """Uses a gradient: for the update of its parameter, the norm of all, or the sum of micro-batches."""
        if self._pauses and opt._host is None:
            return
        with self._lock:
            if not self._has_begun:
                self._begin(opt)
            place = self._places.get(id(p))
            if place is None or not self._is_due(opt, place):
                return
            if conversion.is_distributed(p):
                self._take(opt, [place], streams=self._streams(opt, place))
            elif due := self.step.due(id(p), (place, p.grad), p.grad.nbytes):
                self._flush(opt, due)
            else:  # until others join it, or the backward ends
                self._hooks.call_at_end()

    def _is_due(self, opt: Any, place: TensorPlace) -> bool:
        """Whether a gradient is for the update of its parameter, or a sum, now; measures it in `measuring`.

        Other gradients are left to ``step()``.
        """
        p, is_norm = place.tensor, self.norm.is_measuring or bool(self.norm)
        if self._pauses:
            is_left = conversion.is_distributed(p) or not self._streams(opt, place)
        else:  # step() measures the norm of all: to measure each gradient here, while it is in the cache, takes longer.
            is_left = self._reads_all or (self._clips and not (is_norm or self._streams(opt, place)))
        if is_left:
            return False
        self._check_gradient(place.path, p)
        is_taken = p.grad.layout is torch.strided and self._hooks.is_last(p)
        if is_norm and self.norm.measures(place.path, p, is_taken=is_taken):
            self.norm.add(opt, place)
            p.grad = None
            return False
        if self._pauses and not is_taken and p in opt._host.sums:
            raise RuntimeError(
                f"{place.path}: micro-batches before have a sum in host memory, and this gradient is sparse, or "
                "another hook was registered since: expected step() or zero_grad() before"
            )
        return is_taken

    def flush(self, opt: Any) -> None:
        """Uses the small gradients that have waited for others, at the end of a backward."""
        with self._lock:
            self._flush(opt, self.step.drain())

    def _flush(self, opt: Any, items: Iterable[tuple[TensorPlace, Any]]) -> None:
        ways: dict[bool, list[TensorPlace]] = {False: [], True: []}
        for place, g in items:
            if place.tensor.grad is g:
                ways[self._streams(opt, place)].append(place)
        for streams, places in ways.items():
            if places:
                self._take(opt, places, streams=streams, accumulates=bool(self._pauses))

    def _streams(self, opt: Any, place: TensorPlace) -> bool:
        return opt._pieces is not None and opt._pieces.streams(opt, place.tensor)

    def _take(self, opt: Any, places: Sequence[TensorPlace], *, streams: bool, accumulates: bool = False) -> None:
        """Uses gradients, by pieces or for an update in one dispatch, and drops them."""
        marks = self.step.marks({id(place.tensor): place.path for place in places})
        if accumulates:
            untraced(without_grad, opt._host.accumulate, places)
        elif streams:
            untraced(without_grad, opt._pieces.stream, opt, places, marks)
        else:
            self._has_drawn |= bool(untraced(opt._take, None, None, places, marks))
        for place in places:
            place.tensor.grad = None
        if streams:
            untraced(opt._pieces.advance)

    def _begin(self, opt: Any) -> None:
        """Begins a step: checks what concerns more than one parameter."""
        if not holds(self._values, opt.param_groups):
            _check(opt)
            opt.check_groups()  # of all, before the first parameter is updated
            self._clips, self._reads_all = clips(opt), reads_all(opt)
            self._values = values_of(opt.param_groups)
        lists = lists_of(opt)
        if not self._signature.holds(lists, {}):
            places = [*places_of(opt)]
            refuse_shared_memory(places)
            self._places = {id(place.tensor): place for place in places}
            opt._resolved.clear()
            self._signature = _core.Signature(lists, {}, all_parameters(opt), conversion.described)
        self._has_begun = True

    def _check_gradient(self, path: str, p: Any) -> None:
        """Raises `RuntimeError` for a gradient that is not the step's, or not final, but for sums of them."""
        waiting = None if self._pauses else self.step.waiting.get(id(p))
        if id(p) in self.step.updated or (waiting is not None and waiting[1] is p.grad):
            raise RuntimeError(
                f"{path}: a second gradient before step(), and {updated(self.step.ahead)} "
                f"{UNFINISHED}: expected step() after each backward, and `with opt.no_step():` around backwards of "
                "micro-batches but the last; with use_reentrant=True, parameters of a checkpoint may be used once"
            )
        self._hooks.check_final(path, p)

    # --- the end of a step --------------------------------------------------------------------------------------------

    def finish(self, opt: Any, loss: Any = None) -> None:
        """Finishes a step: updates the parameters that have gradients, drops these, and begins the next step.

        A rule that reads totals over all parameters, or the ``loss``, updates all of them here.
        """
        if getattr(opt, "grad_scale", None) is not None:
            raise RuntimeError(
                "torch.amp.GradScaler is not supported with in_backward=True, since the gradients of the scaled loss "
                f"were used in the backward: {updated(self.step.ahead)}; expected "
                "bfloat16, or in_backward=False"
            )
        again = [path for key, path in self.step.updated.items() if self._places[key].tensor.grad is not None]
        if again:
            raise RuntimeError(
                f"{updated(again)} {UNFINISHED}, with a gradient again, as DistributedDataParallel leaves one: "
                "expected zero_grad() before step()"
            )
        count, params = noise_step(opt), all_parameters(opt)
        for p in [p for p in (opt._host.sums if opt._host else ()) if p.grad is None]:
            # The gradient of micro-batches alone: -0, to which the sum adds without a change of bits, as of its own -0.
            p.grad = torch.zeros_like(p.detach()).neg_()
            self._take(opt, [self._places[id(p)]], streams=True)
        if self.norm:
            self.norm.check_used(self._places.values(), self.step)
        if any(p.grad is not None for p in params) or (opt._pieces is not None and opt._pieces.is_under_way):
            untraced(opt._take, None, loss)
            for p in params:
                p.grad = None
        if self._has_drawn:
            opt.param_groups[0]["noise_step"] = count + 1
        self._end()
        self._hooks.attach(params)

    def _end(self) -> None:
        self.step.end()
        self.norm.clear()
        self._has_begun = self._has_drawn = False


def _check(opt: Any) -> None:
    """Raises `ValueError` for an optimizer whose steps are recorded."""
    if is_recorded(opt.param_groups):
        raise ValueError(f"{type(opt).__name__}: in_backward=True excludes differentiable=True and capturable=True")
