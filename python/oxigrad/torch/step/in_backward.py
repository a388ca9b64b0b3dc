"""Steps inside of a backward: a hook updates each parameter, and frees its gradient, as soon as it is final.

The step of a parameter is that of the optimizer, resolved for this parameter alone, with the same numbers. The
optimizer's ``step()`` finishes the step: it updates the parameters with gradients that no hook has updated, and counts.
"""

import contextlib
import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oxigrad import _core
from oxigrad.step.placement.slices import Measures
from oxigrad.step.plan.announcements import BUCKET, UNFINISHED, OpenStep, named, updated
from oxigrad.step.plan.gradient_hooks import GradientHooks
from oxigrad.torch.library import torch, untraced, without_grad
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import (
    TensorPlace,
    clips,
    measuring_norm,
    noise_step,
    places_of,
    reads_all,
    refuse_shared_memory,
)
from oxigrad.torch.step.resolved import all_parameters, holds, is_recorded, lists_of, values_of

_GRADIENT = operator.attrgetter("grad")


class InBackward:
    """The step of an optimizer whose gradients hooks announce, open until ``step()``: some parameters are ahead."""

    def __init__(self, opt: Any) -> None:
        # An optimizer has its step, which would keep it alive.
        self._opt = weakref.ref(opt)
        self._hooks = GradientHooks(self, InBackward.use)
        self._places: dict[int, TensorPlace] = {}
        #: The parameters that are ahead, by identity; gradients wait with their places.
        self.step: OpenStep = OpenStep("step() before the state is read")
        # The groups, and the parameters with their memory, that the places are of.
        self._signature = _core.Signature([], {})
        # The values of the groups that were checked.
        self._values: _core.Signature | None = None
        self._has_begun = self._has_drawn = self._clips = self._reads_all = False
        # The blocks in which gradients are accumulated, and those in which their norm is measured.
        self._pauses: dict[object, None] = {}
        self._passes: dict[object, Callable[[TensorPlace], None]] = {}
        #: The sums of squares of the gradients that were measured.
        self.norm: Measures = Measures()
        # Threads of several devices run hooks.
        self._lock = threading.RLock()

    # --- blocks -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _within(self, blocks: dict[object, Any], measure: Any = None) -> Iterator[None]:
        """A block, which an interrupt ends too. After it options may change, unless a step is under way."""
        block = object()
        try:
            blocks[block] = measure
            yield
        finally:
            blocks.pop(block, None)
            self._has_begun &= bool(self._pauses or self._passes or self.norm.parameters or self.step.updated)

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """A block in which gradients are accumulated."""
        return self._within(self._pauses)

    @contextlib.contextmanager
    def measuring(self, opt: Any) -> Iterator[None]:
        """A block that begins a step, and measures and drops gradients. An error or an interrupt drops the norm.

        Raises `ValueError` for an optimizer without ``max_norm``, or one that needs other gradients than one at a time;
        and `RuntimeError` in the middle of a step.
        """
        refusal = ""
        if any(group.get("max_norm") is None for group in opt.param_groups):
            refusal = "is for max_norm, which is None"
        elif reads_all(opt):
            refusal = "is for rules that need one gradient at a time, and this one sums over all parameters"
        elif opt._host is not None:
            refusal = "excludes state_device='host', which clips exactly without it: gradients wait in host memory"
        if refusal:
            raise ValueError(f"{type(opt).__name__}: norm_pass() {refusal}")
        if self.step.updated or self.norm.parameters or _have_gradients(all_parameters(opt)):
            raise RuntimeError(
                "norm_pass() begins a step, and gradients are there already, accumulated, measured or used: expected "
                "step(), and the gradient of the whole batch in one backward"
            )
        with self._within(self._passes, measuring_norm(opt, self.norm)):
            try:
                yield
            except BaseException:
                self.norm.clear()
                raise

    @property
    def measured(self) -> Measures | None:
        """The sums of squares of all gradients, after a block that measures them until the step ends; else None."""
        return self.norm if self.norm.parameters and not self._passes else None

    def attach(self, opt: Any, params: Iterable[Any]) -> None:
        """Puts hooks on parameters. Raises `ValueError` for an optimizer whose steps are recorded."""
        _check(opt)
        self._hooks.attach(params)

    def reset(self, opt: Any) -> None:
        """Begins anew with another state."""
        self._end()
        self.attach(opt, all_parameters(opt))

    # --- gradients that are final -------------------------------------------------------------------------------------

    def use(self, *final: Any) -> None:
        """Uses the gradient of a parameter: for its update, the norm of all, or the sum of micro-batches.

        Small gradients wait until others join them. Without a parameter, at the end of a backward, it uses these.
        """
        opt: Any = self._opt()
        if opt is None or (self._pauses and opt._host is None):
            return
        with self._lock:
            due = [] if final else self.step.drain()
            for p in final:
                if not self._has_begun:
                    self._begin(opt)
                place, is_distributed = self._places.get(id(p)), conversion.is_distributed(p)
                if place is not None and self._is_due(opt, place, is_distributed=is_distributed):
                    due = self.step.due(id(p), (place, p.grad), BUCKET if is_distributed else p.grad.nbytes)
                    if not due:
                        torch.autograd.Variable._execution_engine.queue_callback(self._hooks.run)
            if due:
                self._apply(opt, due, accumulates=bool(self._pauses))

    def _is_due(self, opt: Any, place: TensorPlace, *, is_distributed: bool) -> bool:
        """Whether a gradient is for the update of its parameter, or a sum, now; measures it in `measuring`.

        Other gradients are left to ``step()``.
        """
        p, path, norm = place.tensor, place.path, self.norm
        is_norm = bool(self._passes or norm.parameters)
        if self._pauses:
            is_left = is_distributed or not self._streams(opt, place)
        else:  # step() measures the norm of all: to measure each gradient here, while it is in the cache, takes longer.
            is_left = self._reads_all or (self._clips and not (is_norm or self._streams(opt, place)))
        if is_left:
            return False
        self._check_gradient(path, p, is_distributed=is_distributed)
        is_taken = p.grad.layout is torch.strided and self._hooks.is_last(p)
        if is_norm and not is_taken:
            raise RuntimeError(
                f"{path}: norm_pass() is not supported for sparse gradients, nor where another hook was registered "
                "after the last step()"
            )
        if is_norm and bool(self._passes) is (place.position in norm):
            which = "a second gradient in" if self._passes else "a gradient that is not measured in"
            raise RuntimeError(f"{path}: {which} norm_pass(): expected the same backward once in it, and once after it")
        if (measure := next(iter(self._passes.values()), None)) is not None:
            measure(place)
            p.grad = None
            return False
        if self._pauses and not is_taken and p in opt._host.sums:
            raise RuntimeError(
                f"{path}: micro-batches before have a sum in host memory, and this gradient is sparse, or "
                "another hook was registered since: expected step() or zero_grad() before"
            )
        return is_taken

    def _streams(self, opt: Any, place: TensorPlace) -> bool:
        return opt._pieces is not None and opt._pieces.streams(opt, place.tensor)

    def _apply(self, opt: Any, final: Iterable[tuple[TensorPlace, Any]], *, accumulates: bool = False) -> None:
        """Uses gradients, by pieces or for an update in one dispatch, and drops them."""
        by_way: dict[bool, list[TensorPlace]] = {}
        for place, g in final:
            if place.tensor.grad is g:
                by_way.setdefault(self._streams(opt, place), []).append(place)
        for streams, places in sorted(by_way.items()):
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

    def _check_gradient(self, path: str, p: Any, *, is_distributed: bool) -> None:
        """Raises `RuntimeError` for a gradient that is not the step's, or not final, but for sums of them."""
        waiting = None if self._pauses else self.step.waiting.get(id(p))
        if id(p) in self.step.updated or (waiting is not None and waiting[1] is p.grad):
            raise RuntimeError(
                f"{path}: a second gradient before step(), and {updated(self.step.ahead)} "
                f"{UNFINISHED}: expected step() after each backward, and `with opt.no_step():` around backwards of "
                "micro-batches but the last; with use_reentrant=True, parameters of a checkpoint may be used once"
            )
        if p.grad is None or self._hooks.has_others(p):
            raise RuntimeError(f"{path}: another hook, or another optimizer with in_backward=True, takes the gradient")
        if not is_distributed and (workers := _count_workers()) > 1:
            raise RuntimeError(
                f"{path}: the gradient is that of one of {workers} workers, such as DistributedDataParallel reduces "
                "after the hooks of parameters: expected a DTensor, as fully_shard makes it, or in_backward=False"
            )

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
            if self._streams(opt, place := self._places[id(p)]):
                self._apply(opt, [(place, p.grad)])
        if self.norm.parameters:
            self._check_used()
        if _have_gradients(params) or (opt._pieces is not None and opt._pieces.is_under_way):
            untraced(opt._take, None, loss)
            for p in params:
                p.grad = None
        if self._has_drawn:
            opt.param_groups[0]["noise_step"] = count + 1
        self._end()
        self._hooks.attach(params)

    def _check_used(self) -> None:
        """Raises `RuntimeError` where the gradients that were measured are not those that the step has used."""
        odd = [
            place.path
            for key, place in self._places.items()
            if (place.position in self.norm) is not (key in self.step.updated) or place.tensor.grad is not None
        ]
        if odd:
            self.norm.clear()
            raise RuntimeError(
                f"{named(odd)}: the gradient was measured in norm_pass() and not used, or was not measured; "
                + updated(self.step.ahead)
            )

    def _end(self) -> None:
        self.step.end()
        if self.norm.parameters:
            self.norm.clear()
        self._has_begun = self._has_drawn = False


def _check(opt: Any) -> None:
    """Raises `ValueError` for an optimizer whose steps are recorded."""
    if is_recorded(opt.param_groups):
        raise ValueError(f"{type(opt).__name__}: in_backward=True excludes differentiable=True and capturable=True")


def _have_gradients(params: Iterable[Any]) -> bool:
    return any(map(operator.is_not, map(_GRADIENT, params), itertools.repeat(None)))


def _count_workers() -> int:
    """The number of processes of the default process group; 1 without one."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
