"""Parameters on a device with their state in host memory, ``state_device="host"``: the choice, and their steps."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import _core
from oxigrad.stepping.device.piece_run import SMALLEST, piece_size
from oxigrad.stepping.plan.announcements import Assignments, named
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.pieces import Piece, cut, together, whole
from oxigrad.torch.step.offload.plan import HostBatch
from oxigrad.torch.step.offload.run import Added, HostRun, Ring
from oxigrad.torch.step.offload.steps import PieceSteps, is_together
from oxigrad.torch.step.offload.sums import GradientSums
from oxigrad.torch.step.plan import TensorPlace, clips, places_of, refuse_shared_memory
from oxigrad.torch.step.resolved import TensorStep, all_parameters, is_recorded, lists_of


@dataclasses.dataclass(frozen=True)
class HostMemory:
    """The value of ``state_device`` for a state in the memory of the host; ``"host"`` is ``HostMemory()``.

    Parameters stay on their device. A step copies gradients into host memory, in pieces; the core updates master
    weights and slots there, and the new parameters are copied back.

    Args:
        fraction: the share of the parameters' bytes whose state is in host memory, from 0 to 1: the largest parameters
            first, up to the first with which it is reached. The others are updated on their device.
        delay: 0, or 1 for updates that run while the next forward and backward do. ``step()`` then copies the
            gradients, and gives the parameters the update of the step before: each gradient is that of parameters which
            lack one update. This is another training, with the same bits in every run; ``synchronize()`` applies the
            update that is under way.
        piece: the bytes of a piece in its place, gradients and parameters together; by default a sixteenth of those of
            all parameters, from 32 MiB to 128 MiB, so that few pieces take the host time and many are on their way
            while others are updated.
        places: the number of pieces that are on their way at the same time.
        gradient_dtype: the dtype in which gradients of micro-batches are added in host memory, with
            ``in_backward=True``: by default that of the gradients, in which the sums have the bits of those on the
            device; ``"float32"`` for sums of gradients in half precision that are not rounded to it, neither for the
            update.
        threads: the number of threads that updates use at most, where they shall leave processors to others, as to a
            forward under way or to data loaders; by default that of all steps, `oxigrad.set_num_threads`. No bit
            depends on it.

    Raises `ValueError` for values out of these ranges.

    >>> import torch
    >>> from oxigrad.torch import AdamW, HostMemory
    >>> weight = torch.nn.Parameter(torch.ones(3))  # on a GPU: device="cuda"
    >>> opt = AdamW([weight], lr=0.5, state_device=HostMemory(piece=1 << 20))
    >>> weight.sum().backward()
    >>> opt.step()
    >>> weight.detach(), opt.state[weight]["exp_avg"].device
    (tensor([0.4950, 0.4950, 0.4950]), device(type='cpu'))
    """

    fraction: float = 1.0
    delay: int = 0
    piece: int | None = None
    places: int = 4
    threads: int | None = None
    gradient_dtype: str | None = None

    def __post_init__(self) -> None:
        ranges = {
            "fraction": (0.0, 1.0),
            "delay": (0, 1),
            "piece": (1, 1 << 40),
            "places": (1, 1 << 20),
            "threads": (1, 1024),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is None and name in ("piece", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise ValueError(f"{name} is {value!r}: expected a number from {low} to {high}")
            if name != "fraction" and int(value) != value:
                raise ValueError(f"{name} is {value!r}: expected a whole number")
        if self.gradient_dtype not in (None, "float32"):
            raise ValueError(f"gradient_dtype is {self.gradient_dtype!r}: expected None or 'float32'")


class HostSteps(PieceSteps):
    """The steps of an optimizer whose state is in host memory."""

    def __init__(self, memory: HostMemory) -> None:
        super().__init__()
        self.memory = memory
        self._piece = memory.piece or SMALLEST
        self._ring = Ring(memory.piece or 0)
        #: The gradients of micro-batches.
        self.sums: GradientSums = GradientSums(
            self._ring,
            self._worker,
            size=self._piece,
            places=memory.places,
            threads=memory.threads,
            dtype=memory.gradient_dtype and torch.float32,
        )
        # The groups and their parameters that some were chosen of.
        self._groups = _core.Signature([], {})
        self._chosen: set[int] = set()
        self._measured = MeasuredNorm()

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._norm: MeasuredNorm | None = None
        self._scale: float | None = None

    def holds(self, opt: Any, p: Any) -> bool:
        """Whether the state of a parameter is in host memory."""
        lists = lists_of(opt)
        if not self._groups.holds(lists, {}):
            params, self._groups = all_parameters(opt), _core.Signature(lists, {})
            self._chosen = _chosen(params, self.memory.fraction)
            if self.memory.piece is None:
                self._piece = piece_size(sum(2 * p.nbytes for p in params))
        return id(p) in self._chosen

    def streams(self, opt: Any, p: Any) -> bool:
        """Whether a parameter is updated in host memory, and its gradient can go there before all are final."""
        return self.holds(opt, p) and not is_together(opt)

    # --- micro-batches ------------------------------------------------------------------------------------------------

    def accumulate(self, opt: Any, places: Sequence[TensorPlace]) -> None:
        """Adds gradients of a micro-batch to their sums in host memory. `advance` begins the copies.

        Raises `RuntimeError` in the middle of a step.
        """
        if self.is_under_way:
            raise RuntimeError(
                f"{places[0].path}: a gradient of a micro-batch, and {named(self.ahead) or 'no parameter'} was updated "
                "in a step that is "
                "not finished: expected step()"
            )
        self.sums.add(opt, places)

    # --- steps --------------------------------------------------------------------------------------------------------

    def take(self, opt: Any, scale: float | None, loss: Any) -> bool:
        """See `PieceSteps.take`."""
        if self._is_delayed:
            self._complete(opt)
        run = self._begun(opt)
        run.join()
        if self._taken is None:
            try:
                add = self._prepared(opt, run, scale, loss)
            except Exception:
                if not run.added:
                    self._begin_anew()
                raise
        else:
            self._check_same(opt)
            add = lambda: None  # noqa: E731
        if self.memory.delay:
            self._worker.run(lambda: (add(), self._delay(opt, run)))
            run.advance_beside(opt)
        else:
            self._worker.run(lambda: (add(), self._finish(opt, loss)))
        return True

    def _delay(self, opt: Any, run: HostRun) -> None:
        """Copies all gradients to host memory; the updates follow beside the next forward."""
        run.advance(opt)
        self._is_delayed = True
        run.schedule.close()

    def _begun(self, opt: Any) -> HostRun:
        """The step that is on its way."""
        if self._run is None or not self._run.added:
            self.sums.finish(opt)
            is_whole, is_delayed = is_together(opt), bool(self.memory.delay)
            self._measured.clear()
            self._norm = self._measured if clips(opt) and not is_whole else None
            is_bounded = not (is_delayed or is_whole or self._norm is not None)
            places = self.memory.places if is_bounded else None
            self._run = HostRun(
                self._ring,
                places,
                self._norm,
                self._worker,
                measures=is_delayed,
                holds=is_delayed,
                threads=self.memory.threads,
            )
        return self._run

    def stream(self, opt: Any, places: Sequence[TensorPlace], marks: Assignments) -> None:
        """See `PieceSteps.stream`."""
        with conversion.kept_on_error(opt.state, [place.tensor for place in places]):
            run = self._begun(opt)
            pairs = self._pairs(opt, places, None, None)
            self._add_marked(run, pairs, marks)
            self.sums.drop(places)

    def advance(self, opt: Any) -> None:
        """Lets copies and updates go on beside the backward."""
        super().advance(opt)
        if not self.is_under_way:
            self.sums.advance(opt)

    def _prepared(self, opt: Any, run: HostRun, scale: float | None, loss: Any) -> Callable[[], None]:
        """The function that adds all gradients that are there, and the parameters whose state is on their device.

        Nothing of it can fail.
        """
        places = [place for place in places_of(opt) if place.tensor.grad is not None]
        _check(opt, places)
        on_host = [place for place in places if self.holds(opt, place.tensor)]
        others = [place for place in places if not self.holds(opt, place.tensor)]
        with conversion.kept_on_error(opt.state):
            resident = self._resolve(opt, others, scale) if others else None
            added = self._pairs(opt, on_host, scale, loss)
        if self._norm is not None:
            for place in others:
                self._norm.add(
                    opt, place, *(conversion.local(t.detach()).cpu() for t in (place.tensor.grad, place.tensor))
                )
        run.prepare(added)

        def add() -> None:
            run.add(added)
            self.sums.drop(on_host)
            self._resident, self._scale = resident, scale
            self._taken = {id(place.tensor): place.tensor.grad for place in places}

        return add

    def _resolve(self, opt: Any, places: Sequence[TensorPlace], scale: float | None) -> TensorStep:
        if is_together(opt) or self.memory.delay:
            raise ValueError(
                f"{type(opt).__name__}: fraction is {self.memory.fraction}: expected 1 with delay=1, and for rules "
                "that need all "
                "gradients at once"
            )
        square = None if self._norm is None else self._norm.square
        return TensorStep(opt, scaled=scale is not None, places=places, square=square)

    def _pairs(self, opt: Any, places: Sequence[TensorPlace], scale: float | None, loss: Any) -> list[Added]:
        """The pieces of parameters, with their batches."""
        square = None if self._norm is None else self._norm.square
        is_whole, is_elementwise = is_together(opt), opt.entry.rule.elementwise
        parts = [places] if is_whole or is_elementwise else [[place] for place in places]
        sums = self.sums.of(places)
        batches = [HostBatch(opt, part, scale=scale, loss=loss, square=square, sums=sums) for part in parts]
        return [(self._cut(batch, is_called=is_whole or not is_elementwise), batch) for batch in batches]

    def _cut(self, batch: HostBatch, *, is_called: bool) -> list[Piece]:
        if is_called:
            return together(batch)
        return cut(batch, self._piece) if self._norm is None else whole(batch)

    def _finish(self, opt: Any, loss: Any) -> None:
        run = self._run
        if run is None:  # a step that an interrupt of the wait for it has not stopped
            return
        run.begin_finish(opt)
        if self._resident is not None:
            with torch.no_grad():
                self._resident.take(opt, 1.0 if self._scale is None else self._scale, loss)
            self._resident = None
        run.finish(opt)
        self._begin_anew()


def _chosen(params: Sequence[Any], fraction: float) -> set[int]:
    """The identities of the largest parameters that have a fraction of all bytes."""
    wanted, chosen, total = fraction * sum(p.nbytes for p in params), set(), 0
    for p in sorted(params, key=lambda p: -p.nbytes):
        if total >= wanted and fraction < 1:
            break
        chosen.add(id(p))
        total += p.nbytes
    return chosen


def _check(opt: Any, places: Sequence[TensorPlace]) -> None:
    """Raises for what steps in host memory do not take."""
    if is_recorded(opt.param_groups):
        raise ValueError(f"{type(opt).__name__}: state_device='host' excludes differentiable=True and capturable=True")
    for place in places:
        if conversion.is_distributed(place.tensor):
            raise RuntimeError(f"{place.path}: state_device='host' is not supported for a DTensor")
        opt.check_gradient(place.path, place.tensor)
    refuse_shared_memory(places, gradients=True)
