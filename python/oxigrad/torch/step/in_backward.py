"""Steps inside of a backward: a hook updates each parameter, and frees its gradient, as soon as it is final.

The step of a parameter is that of the optimizer, resolved for this parameter alone, with the same numbers. The
optimizer's ``step()`` finishes the step: it updates the parameters with gradients that no hook has updated, and counts.
"""

import contextlib
import functools
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from oxigrad import _core
from oxigrad.stepping.plan.announcements import UNFINISHED, OpenStep, named
from oxigrad.torch.library import torch, untraced, without_grad
from oxigrad.torch.state import conversion
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.steps import reads_all
from oxigrad.torch.step.plan import TensorPlace, clips, noise_step, places_of, refuse_shared_memory
from oxigrad.torch.step.resolved import all_parameters, holds, is_recorded, lists_of, values_of


def _run(steps: "weakref.ref[InBackward]", p: Any = None) -> None:
    """The hook of a parameter, and the callback at the end of a backward, which has none.

    It keeps the optimizer's memory alive no longer than the optimizer lives.
    """
    of = steps()
    opt = None if of is None else of.optimizer()
    if of is not None and opt is not None:
        of.flush(opt) if p is None else of.update(opt, p)


class InBackward:
    """The hooks of the parameters of an optimizer, and which of these are ahead: updated since the last ``step()``."""

    def __init__(self, opt: Any) -> None:
        self.optimizer: weakref.ref[Any] = weakref.ref(opt)
        # The parameters that have the hook, by identity, and the handles of the hooks.
        self._handles: dict[int, tuple[weakref.ref[Any], Any]] = {}
        weakref.finalize(opt, _remove, self._handles)
        self._places: dict[int, TensorPlace] = {}
        # The key of a parameter is its identity. Gradients wait with their places.
        self._step = OpenStep("step() before the state is read")
        # The groups, and the parameters with their memory, that the places are of.
        self._signature = _core.Signature([], {})
        # The values of the groups that were checked.
        self._values: _core.Signature | None = None
        self._has_begun = self._clips = self._has_drawn = False
        # The blocks in which hooks do nothing, and those in which they measure gradients.
        self._pauses, self._measures = set[object](), set[object]()
        # Whether a backward in which hooks did nothing has accumulated gradients since the last step.
        self._has_accumulated = False
        #: The norm of the gradients that were measured.
        self.norm: MeasuredNorm = MeasuredNorm()
        # Threads of several devices run hooks.
        self._lock = threading.RLock()

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that were updated since the last step."""
        return self._step.ahead

    @property
    def measured_norm(self) -> MeasuredNorm | None:
        """The norm of all gradients, after the block `measuring`, until the step ends; None otherwise."""
        return self.norm if self.norm and not self._measures else None

    def check_whole(self) -> None:
        """Raises `StateError` while parameters are ahead."""
        self._step.check_none()

    def paused(self) -> AbstractContextManager[None]:
        """A block in which hooks do nothing."""
        return self._block(self._pauses)

    @contextlib.contextmanager
    def _block(self, entered: set[object]) -> Iterator[None]:
        """A block of ``paused`` or ``measuring``, among those ``entered``: an interrupt ends it too."""
        block = object()
        try:
            entered.add(block)
            yield
        except BaseException:
            if entered is self._measures:
                self.norm.clear()
            raise
        finally:
            entered.discard(block)
            if not (self._pauses or self._measures or self.norm or self._step.updated):
                self._has_begun = False  # Options may change before the next backward.

    def measuring(self, opt: Any) -> AbstractContextManager[None]:
        """A block with a backward that measures gradients, and drops them."""
        if any(group.get("max_norm") is None for group in opt.param_groups):
            raise ValueError(f"{type(opt).__name__}: norm_pass() is for max_norm, which is None")
        if reads_all(opt):
            raise ValueError(
                f"{type(opt).__name__}: norm_pass() is for rules that need one gradient at a time, and this one sums "
                "over all parameters"
            )
        if opt._host is not None:
            raise ValueError(
                f"{type(opt).__name__}: norm_pass() excludes state_device='host', which clips exactly without it: "
                "gradients wait in "
                "host memory"
            )
        has_gradients = any(place.tensor.grad is not None for place in self._places.values())
        if self._step.updated or self.norm or self._has_accumulated or has_gradients:
            raise RuntimeError(
                "norm_pass() begins a step, and gradients are there already, accumulated, measured or used: expected "
                "step(), and "
                "the gradient of the whole batch in one backward"
            )
        return self._block(self._measures)

    def reset(self, opt: Any) -> None:
        """Begins anew with another state."""
        self._places, self._signature = {}, _core.Signature([], {})
        self._end()
        self.attach(opt, all_parameters(opt))

    # --- hooks --------------------------------------------------------------------------------------------------------

    def attach(self, opt: Any, params: Iterable[Any]) -> None:
        """Puts hooks on the parameters that have none, and are trainable, after all other hooks.

        Raises `ValueError` for an optimizer whose steps are recorded.
        """
        _check(opt)
        for p in params:
            handle = self._handle(p)
            if p.requires_grad and p.is_leaf and not self._is_last(p):
                if handle is not None:
                    handle.remove()
                handle = p.register_post_accumulate_grad_hook(functools.partial(_run, weakref.ref(self)))
                self._handles[id(p)] = weakref.ref(p), handle

    def _handle(self, p: Any) -> Any:
        """The handle of the hook that was put on a parameter, if any."""
        parameter, handle = self._handles.get(id(p), (None, None))
        return handle if parameter is not None and parameter() is p else None

    def _is_last(self, p: Any) -> bool:
        """Whether the hook of this optimizer is the last one of a parameter: later ones would find no gradient."""
        handle = self._handle(p)
        return handle is not None and next(reversed(p._post_accumulate_grad_hooks), None) == handle.id

    def update(self, opt: Any, p: Any) -> None:
        """Updates a parameter whose gradient is final."""
        if self._pauses:
            self._has_accumulated = True
            if opt._host is None:
                return
        with self._lock:
            if not self._has_begun:
                self._begin(opt)
            place = self._places.get(id(p))
            if place is not None:
                (self._accumulate if self._pauses else self._use)(opt, place)

    def _accumulate(self, opt: Any, place: TensorPlace) -> None:
        """Takes the gradient of a micro-batch down, for the sum in host memory.

        On the device it remains where the update is there.
        """
        p = place.tensor
        if not opt._host.streams(opt, p) or conversion.is_distributed(p):
            return
        self._check_gradient(place.path, p, accumulates=True)
        if p.grad.layout is torch.strided and self._is_last(p):
            self._queue(opt, place)
        elif p in opt._host.sums:
            raise RuntimeError(
                f"{place.path}: micro-batches before have a sum in host memory, and this gradient is sparse, or "
                "another hook was registered since: "
                "expected step() or zero_grad() before"
            )

    def _use(self, opt: Any, place: TensorPlace) -> None:
        """Uses a gradient that is final: for the update of its parameter, or for the norm of all."""
        p = place.tensor
        is_streamed = self._is_streamed(opt, place)
        if reads_all(opt) or (self._clips and not (self._measures or self.norm or is_streamed)):
            return  # step() clips by the norm of all: to measure each here, while it is in the cache, takes longer.
        self._check_gradient(place.path, p)
        if self._clips and (self._measures or self.norm) and self._is_measured(place.path, p):
            self.norm.add(opt, place)
            p.grad = None
            return
        if p.grad.layout is not torch.strided or not self._is_last(p):
            return  # step() takes it.
        if conversion.is_distributed(p):
            self._take(opt, [place], is_streamed=is_streamed)
        else:
            self._queue(opt, place)

    def _queue(self, opt: Any, place: TensorPlace) -> None:
        """Uses a gradient: now, if it is large.

        A small one with others, once they are enough, or at the end of the backward.
        """
        p = place.tensor
        if due := self._step.due(id(p), (place, p.grad), p.grad.nbytes):
            self._flush(opt, due)
        else:  # A callback of a backward that an error ends is not called.
            torch.autograd.Variable._execution_engine.queue_callback(functools.partial(_run, weakref.ref(self)))

    def flush(self, opt: Any) -> None:
        """Updates the small parameters that have waited for others, at the end of a backward."""
        with self._lock:
            self._flush(opt, self._step.drain())

    def _flush(self, opt: Any, items: Iterable[tuple[TensorPlace, Any]]) -> None:
        places = [place for place, g in items if place.tensor.grad is g]
        if self._pauses:
            if places:
                untraced(without_grad, _accumulate, opt, places)
            return
        streamed = [self._is_streamed(opt, place) for place in places]
        for is_streamed in (False, True):
            if together := [place for place, each in zip(places, streamed, strict=True) if each is is_streamed]:
                self._take(opt, together, is_streamed=is_streamed)

    def _is_streamed(self, opt: Any, place: TensorPlace) -> bool:
        return opt._pieces is not None and opt._pieces.streams(opt, place.tensor)

    def _take(self, opt: Any, places: Sequence[TensorPlace], *, is_streamed: bool) -> None:
        """Updates parameters, by pieces or in one dispatch, and drops their gradients."""
        names = {id(place.tensor): place.path for place in places}
        marks = self._step.marks(names)
        if is_streamed:
            untraced(without_grad, opt._pieces.stream, opt, places, marks)
        else:
            self._has_drawn |= bool(untraced(opt._take, None, None, places, marks))
        for place in places:
            place.tensor.grad = None
        if is_streamed:
            untraced(opt._pieces.advance)

    def _is_measured(self, path: str, p: Any) -> bool:
        """Whether the gradient is to be measured, rather than used with the norm that was measured.

        Raises `RuntimeError` for neither.
        """
        if p.grad.layout is not torch.strided or not self._is_last(p):
            raise RuntimeError(
                f"{path}: norm_pass() is not supported for sparse gradients, nor where another hook was registered "
                "after the "
                "last step()"
            )
        if bool(self._measures) is (p in self.norm):
            where = (
                "a second gradient in norm_pass()" if self._measures else "a gradient that norm_pass() has not measured"
            )
            raise RuntimeError(f"{path}: {where}: expected the same backward once in norm_pass(), and once after it")
        return bool(self._measures)

    def _begin(self, opt: Any) -> None:
        """Begins a step: checks what concerns more than one parameter."""
        _check(opt)
        if not holds(self._values, opt.param_groups):
            opt.check_groups()  # of all, before the first parameter is updated
            self._values = values_of(opt.param_groups)
        lists = lists_of(opt)
        if not self._signature.holds(lists, {}):
            places = [*places_of(opt)]
            refuse_shared_memory(places)
            self._places = {id(place.tensor): place for place in places}
            opt._resolved.clear()
            self._signature = _core.Signature(lists, {}, all_parameters(opt), conversion.described)
        self._clips = clips(opt)
        self._has_begun = True

    def _check_gradient(self, path: str, p: Any, *, accumulates: bool = False) -> None:
        """Raises `RuntimeError` for a gradient that is not the step's, or not final, unless it ``accumulates``."""
        waiting = None if accumulates else self._step.waiting.get(id(p))
        if id(p) in self._step.updated or (waiting is not None and waiting[1] is p.grad):
            raise RuntimeError(
                f"{path}: a second gradient before step(), and {named(self.ahead) or 'no parameter'} {UNFINISHED}: "
                "expected step() after each backward, "
                "and `with opt.no_step():` around backwards of micro-batches but the last; with use_reentrant=True, "
                "parameters of "
                "a checkpoint may be used once"
            )
        hooks = p._post_accumulate_grad_hooks.values()
        steps = [hook.args[0]() for hook in hooks if getattr(hook, "func", None) is _run]
        if p.grad is None or not {*steps} <= {None, self}:
            raise RuntimeError(f"{path}: another hook, or another optimizer with in_backward=True, takes the gradient")
        if not conversion.is_distributed(p) and (workers := _count_workers()) > 1:
            raise RuntimeError(
                f"{path}: the gradient is that of one of {workers} workers, such as DistributedDataParallel reduces "
                "after the hooks of "
                "parameters: expected a DTensor, as fully_shard makes it, or in_backward=False"
            )

    # --- the end of a step --------------------------------------------------------------------------------------------

    def finish(self, opt: Any, loss: Any = None) -> None:
        """Finishes a step: updates the parameters that have gradients, drops these, and begins the next step.

        A rule that reads totals over all parameters, or the ``loss``, updates all of them here.
        """
        if getattr(opt, "grad_scale", None) is not None:
            raise RuntimeError(
                "torch.amp.GradScaler is not supported with in_backward=True, since the gradients of the scaled loss "
                "were used in the "
                f"backward: {named(self.ahead) or 'no parameter'} was updated; expected bfloat16, or in_backward=False"
            )
        again = [path for key, path in self._step.updated.items() if self._places[key].tensor.grad is not None]
        if again:
            raise RuntimeError(
                f"{named(again)} {UNFINISHED}, and has a gradient again, as DistributedDataParallel leaves one: "
                "expected zero_grad() before "
                "step()"
            )
        count, params = noise_step(opt), all_parameters(opt)
        self._take_sums(opt)
        if self.norm:
            self._check_norm(params)
        if any(p.grad is not None for p in params) or (opt._pieces is not None and opt._pieces.is_under_way):
            untraced(opt._take, None, loss)
            for p in params:
                p.grad = None
        if self._has_drawn:
            opt.param_groups[0]["noise_step"] = count + 1
        self._end()
        self.attach(opt, params)

    def _take_sums(self, opt: Any) -> None:
        """Updates the parameters whose gradients are those of micro-batches alone."""
        if opt._host is None:
            return
        for place in self._places.values():
            p = place.tensor
            if p.grad is None and p in opt._host.sums:
                p.grad = torch.zeros_like(
                    p.detach()
                ).neg_()  # -0, to which the sum adds without a change of bits, as of its own -0
                self._take(opt, [place], is_streamed=True)

    def _end(self) -> None:
        self._step.end()
        self.norm.clear()
        self._has_begun = self._has_accumulated = self._has_drawn = False

    def _check_norm(self, params: Sequence[Any]) -> None:
        """Raises `RuntimeError` where the gradients that were measured are not those that were used."""
        odd = [p for p in params if (p in self.norm) is not (id(p) in self._step.updated) or p.grad is not None]
        if odd:
            paths = [self._places[id(p)].path for p in odd]
            self.norm.clear()
            raise RuntimeError(
                f"{named(paths)}: the gradient was measured in norm_pass() and not used, or was not measured; "
                f"{named(self.ahead) or 'no parameter'} was updated"
            )


def _accumulate(opt: Any, places: Sequence[TensorPlace]) -> None:
    """Adds gradients to their sums in host memory, and gives those of the device back."""
    opt._host.accumulate(opt, places)
    for place in places:
        place.tensor.grad = None
    opt._host.advance()


def _check(opt: Any) -> None:
    """Raises `ValueError` for an optimizer whose steps are recorded."""
    if is_recorded(opt.param_groups):
        raise ValueError(f"{type(opt).__name__}: in_backward=True excludes differentiable=True and capturable=True")


def _remove(handles: dict[int, tuple[Any, Any]]) -> None:
    for _, handle in handles.values():
        handle.remove()


def _count_workers() -> int:
    """The number of processes of the default process group; 1 without one."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
