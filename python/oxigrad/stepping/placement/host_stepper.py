"""Steps in host memory for parameters on devices, ``state_device="host"``."""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from oxigrad import _core
from oxigrad.ops.backends.memory.transfers import Copies
from oxigrad.stepping.arrays.precision import MASTER, half
from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.parameters.parameter_group import SteppingOptions
from oxigrad.stepping.parameters.presence import Changes
from oxigrad.stepping.placement.host_model import HostModel
from oxigrad.stepping.placement.ring import HostArray, Piece, Ring, packed, piece_size
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.stepper import Stepper


class HostStepper(Stepper):
    """A `Stepper` of a model in host memory, whose gradients are copied there and parameters back.

    All of the optimizer's state is in host memory. So a step is that of a model in host memory, with its bits, for
    every rule and option. After an error of a copy to a device, the next use of the optimizer completes the step.
    """

    def __init__(self, options: SteppingOptions) -> None:
        super().__init__(options)
        self._host = HostModel()
        # What a step that an error has ended still has to copy to devices.
        self._behind: list[HostArray] = []

    @contextlib.contextmanager
    def _entered(self, model: Any) -> Iterator[Any]:
        """A block with the model in host memory. The values of its parameters are not copied yet."""
        self._complete()
        try:
            yield self._host.enter(model, lambda path, array: self.options.group_of(path, array) is not None)
        finally:
            self._host.leave()

    def _is_entered(self, model: Any) -> bool:
        """Whether a model is that of the step under way."""
        return model is self._host.model and model is not None

    def _complete(self) -> None:
        """Completes the copies of a step that an error has ended."""
        if self._behind:
            self._host.up(self._behind)
            self._behind = []

    @contextlib.contextmanager
    def _finishing(self) -> Iterator[None]:
        """A block with a step. Once it is counted, its parameters are copied to their devices, even on interrupts."""
        count, micro = self._core.count, self._core.micro
        try:
            yield
        finally:
            if self._core.count != count and self._plan is not None:
                self._finish(self._plan.parameters)
            elif self._core.micro != micro:
                self._finish([])

    def _finish(self, parameters: Sequence[Parameter]) -> None:
        """Copies parameters, and gradients that are zeros now, to their devices."""
        self._behind = self._host.behind([p.text for p in parameters])
        self._complete()

    def _reads(self, path: str) -> bool:
        """Whether a step reads a parameter, rather than its master weights alone."""
        slots, pair = self._table.by_path.get(path), self._host.arrays[path]
        return slots is None or MASTER not in slots or not half(pair.here)

    def update(self, model: Any, grads: Any, *, loss: Any = None, keep_root: bool = False) -> Any:
        """See `Stepper.update`. The model is the same object."""
        if self._is_entered(model):
            return super().update(model, grads, loss=loss, keep_root=keep_root)
        with self._entered(model) as in_memory:
            grads = self._host.down(grads, self._reads, zeroes=self.options.zero_gradients)
            if (gradients := self._gradients_of_pieces(in_memory, grads)) is not None:
                self._take_pieces(in_memory, gradients, loss)
                return model
            self._host.wait()
            with self._finishing():
                super().update(in_memory, grads, loss=loss, keep_root=True)
        return model

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _gradients_of_pieces(self, model: Any, grads: Any) -> list[Any] | None:
        """The gradients of a step that can be taken by pieces, as the checked one before; else None.

        Rules that sum over all parameters, and guards, need them all at once.
        """
        step = self._resolved.get(False)
        if step is None or not self._host.is_steady or self._accumulate > 1 or self._process != _core.forks():
            return None
        plan = step.plan
        is_whole = plan.needs_all or plan.on_devices or plan.tied or plan.idle or plan.takes_rows
        if (
            is_whole
            or not step.is_in_place
            or step.observes
            or step.raises
            or step.zeroes
            or self._parts.updated
            or self.presence.without
        ):
            return None
        if not (step.is_current() or step.refresh()) or (leaves := plan.leaves(model)) is None:
            return None
        nbytes = sum(int(leaves[p.index].nbytes) for p in plan.parameters)
        is_small = nbytes <= piece_size(nbytes)
        return None if is_small else plan.gradients_of_step(leaves, grads)

    def _take_pieces(self, model: Any, gradients: list[Any], loss: Any) -> None:
        """Takes a step by pieces: parameters that are updated go up to their devices while others are updated.

        No update begins before all copies down are done: an error of one changes nothing. No key stops the step: an
        interrupt comes before it, or is raised when it has ended.
        """
        step, leaves = self.resolve_whole(model, loss)
        plan = step.plan
        if plan.recorded:
            plan.detach(leaves, for_core=True)
        plan.check_parameters(leaves)
        sized = [(p, int(leaves[p.index].nbytes)) for p in plan.parameters]
        ring, arrays = Ring(lambda _: Copies()), self._host.arrays
        for parameters in packed(sized, piece_size(sum(size for _, size in sized)), lambda _: None):
            update = functools.partial(self.take_part, step, parameters, model, leaves, gradients)
            paths = [p.text for p in parameters]
            ring.add([Piece(paths, update, [arrays[path] for path in paths if path in arrays])])

        def take() -> None:
            self._host.wait()
            try:
                ring.advance()
            finally:
                if ring.is_used:
                    self.count_parts()
                    self._host.join()

        try:
            ring.worker.run(take)
        finally:
            behind = {*self._parts.ahead, *(path for piece in ring.failed for path in piece.paths)}
            self._behind = [array for path, array in arrays.items() if path in behind]

    def flush(self, model: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.flush`."""
        with self._read(model) as in_memory, self._finishing():
            super().flush(in_memory, keep_root=True)
        return model

    @contextlib.contextmanager
    def _read(self, model: Any) -> Iterator[Any]:
        """A block with the model in host memory, with the values of its parameters."""
        if self._is_entered(model):
            yield model
            return
        with self._entered(model) as in_memory:
            self._host.down({})
            self._host.wait()
            yield in_memory

    def planned(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model, and its leaves, in host memory."""
        with self._read(model) as in_memory:
            return super().planned(in_memory)

    def rebuild(self, model: Any, *, remove: bool) -> Changes:
        """See `Optimizer.rebuild`."""
        with self._read(model) as in_memory:
            return super().rebuild(in_memory, remove=remove)

    def write_parameters(
        self, plan: Plan, leaves: list[Any], model: Any, values: dict[str, Any], swapped: dict[str, Any] | None
    ) -> Any:
        """See `Stepper.write_parameters`."""
        with self._read(model) as in_memory:
            super().write_parameters(plan, leaves, in_memory, values, swapped)
            self._finish(plan.parameters)
        return model

    def check_whole(self) -> None:
        """Completes a step whose copies an error has ended, then as `Stepper.check_whole`."""
        self._complete()
        super().check_whole()
