"""Steps in host memory for parameters on devices, ``state_device="host"``."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oxigrad import _core, tree
from oxigrad._core import ArrayMemoryError
from oxigrad._names import path_name
from oxigrad.ops.backends import adapter_of, detached, dtype_name, is_array, is_immutable, on_host
from oxigrad.ops.backends.memory.transfers import Copies, Event
from oxigrad.ops.core.aliasing import refuse_shared
from oxigrad.step.arrays.precision import MASTER, half
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.parameters.executor import executor_of
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parts import resolve_whole, take_part
from oxigrad.step.placement.ring import HostArray, Piece, Ring, packed, piece_size
from oxigrad.step.plan.gradients import checked_gradients, step_gradients
from oxigrad.step.plan.programs import measured
from oxigrad.step.stepper import Stepper


class HostPlacement:
    """A model in host memory, which the steps of a `Stepper` update in place of one on devices.

    Gradients are copied there, and parameters back. All of the optimizer's state is in host memory. So a step is that
    of a model in host memory, with its bits, for every rule and option. After an error of a copy to a device, the next
    use of the optimizer completes the step. Steps share their memory, by key path.
    """

    def __init__(self) -> None:
        #: The model, while a step is under way; None before and after.
        self.model: Any = None
        #: The parameters on devices, by key path.
        self.arrays: dict[str, HostArray] = {}
        # Host memory of the last step: of parameters and of gradients, by key path.
        self._parameters: dict[str, Any] = {}
        self._gradients: dict[str, Any] = {}
        # The gradients on devices that the step leaves zeros in.
        self._zeroed: list[HostArray] = []
        self._transfers: dict[tuple[type, str | None], Copies] = {}
        #: Whether gradients reuse the memory of the step before, with its shapes and dtypes.
        self.is_steady: bool = False
        # Between steps it has what a step that an error has ended still has to copy to devices.
        self._ring: Ring[Piece] = Ring(lambda _: Copies())

    def has(self, model: Any) -> bool:
        """Whether the step under way has this model, in host memory."""
        return model is self.model and model is not None

    def _enter(self, model: Any, is_updated: Callable[[str, Any], bool]) -> Any:
        """The model with arrays in host memory in place of parameters on devices, whose values are not copied yet.

        Those at a path that ``is_updated`` is false for, with their arrays, remain where they are. Raises
        `ArrayMemoryError` for a parameter that cannot be written, and `AliasError` for those that share memory on a
        device.
        """
        leaves, structure = tree.flatten(model)
        self.arrays, before, self._parameters = {}, self._parameters, {}
        by_identity: dict[int, Any] = {}
        holds_gradients = structure.holds_gradients()
        for i, leaf in enumerate(leaves):
            if not (structure.is_trainable(i) and is_array(leaf) and _core.is_inexact(leaf)):
                continue
            path = str(structure.path(i))
            if on_host(leaf):
                if executor_of(leaf).replaces:
                    raise ArrayMemoryError(
                        f"{path_name(path)}: the parameter cannot be written: state_device='host' updates in place"
                    )
            elif id(leaf) in by_identity:
                leaves[i] = by_identity[id(leaf)]
            elif is_updated(path, leaf):
                pair = self._pair(path, leaf, before.get(path))
                leaves[i] = by_identity[id(leaf)] = pair.here
                self.arrays[path] = pair
                if holds_gradients[i]:
                    pair.here.requires_grad_(leaf.requires_grad)
        # Updates of parameters that share memory on a device would overwrite one another.
        refuse_shared([(path, pair.there, True) for path, pair in self.arrays.items()])
        self.model = tree.unflatten(structure, leaves) if self.arrays else model
        return self.model

    def _pair(self, path: str, there: Any, here: Any) -> HostArray:
        """A parameter on a device with an array in host memory: ``here``, if it has the same shape and dtype."""
        if is_immutable(there):
            raise ArrayMemoryError(
                f"{path_name(path)}: the parameter cannot be written: state_device='host' updates in place"
            )
        if why := adapter_of(there).unreadable(there):
            raise ArrayMemoryError(f"{path_name(path)}: the parameter is {why}")
        self._parameters[path] = here = self._memory(there, here)
        return HostArray(there, here, self._transfers_of(there))

    def _memory(self, there: Any, here: Any) -> Any:
        """An array in host memory like one on a device: ``here``, if it has the same shape and dtype."""
        is_alike = here is not None and (tuple(here.shape), dtype_name(here.dtype)) == (
            tuple(there.shape),
            dtype_name(there.dtype),
        )
        return here if is_alike else self._transfers_of(there).like(detached(there))

    def _transfers_of(self, array: Any) -> Copies:
        key = type(adapter_of(array)), adapter_of(array).place(array)
        if key not in self._transfers:
            self._transfers[key] = adapter_of(array).transfers(array)
        return self._transfers[key]

    # --- copies -------------------------------------------------------------------------------------------------------

    def _down(
        self, grads: Any, reads: Callable[[str], bool] = lambda _: True, *, zeroes: bool = False
    ) -> tuple[Any, list[Event]]:
        """Begins copies of gradients, and of the parameters that the step ``reads``, to host memory.

        Returns the gradients there, None if the parameters hold them, as they do where ``grads`` is None; and the ends
        of the copies. With ``zeroes``, gradients on devices are copied up with the parameters, and `ArrayMemoryError`
        is raised for one that cannot be written.
        """
        for transfers in self._transfers.values():
            transfers.mark()
        events: list[Event] = []
        by_identity: dict[int, Any] = {}
        gradients: dict[str, Any] = {}

        def copied(path: str, g: Any) -> Any:
            if isinstance(g, SparseRows):
                return g.map(lambda array: array if on_host(array) else adapter_of(array).to_host(array))
            if not is_array(g) or on_host(g) or adapter_of(g).unreadable(g):
                return g
            if id(g) not in by_identity:
                by_identity[id(g)] = here = gradients[path] = self._memory(g, self._gradients.get(path))
                events.append(self._transfers_of(g).copy_down(detached(g), here))
                if zeroes:
                    _check_writable_gradient(path, g)
                    self._zeroed.append(HostArray(g, here, self._transfers_of(g)))
            return by_identity[id(g)]

        if grads is None:
            for path, pair in self.arrays.items():
                g = getattr(pair.there, "grad", None)
                pair.here.grad = None if g is None else copied(path, g)
        else:
            leaves, structure = tree.flatten(grads)
            grads = tree.unflatten(structure, [copied(str(structure.path(i)), g) for i, g in enumerate(leaves)])
        events += [pair.down() for path, pair in self.arrays.items() if reads(path)]
        before, self._gradients = self._gradients, gradients
        self.is_steady = gradients.keys() == before.keys() and all(before[path] is g for path, g in gradients.items())
        return grads, events

    def _leave(self, arrays: Sequence[HostArray]) -> None:
        """Leaves arrays to `complete`, which copies them to their devices."""
        self._ring.begin(None)
        if arrays:
            self._ring.add([Piece([], leaving=arrays)])

    def complete(self) -> None:
        """Copies what a step has left to devices, and waits: the next step writes the memory that the copies read."""
        if self._ring.pieces:
            self._ring.worker.run(self._ring.advance)
            self._ring.begin(None)
            self._join()

    def _join(self) -> None:
        """Lets work that devices are given from now on begin after the copies up."""
        for transfers in self._transfers.values():
            transfers.join()

    # --- steps --------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _entered(self, stepper: Stepper, model: Any) -> Iterator[Any]:
        """A block with the model in host memory. The values of its parameters are not copied yet."""
        self.complete()
        try:
            yield self._enter(model, lambda path, array: stepper.options.group_of(path, array) is not None)
        finally:
            # The memory, without the arrays of the user's, serves the next step.
            self.model, self.arrays, self._zeroed = None, {}, []

    @contextlib.contextmanager
    def reading(self, stepper: Stepper, model: Any) -> Iterator[Any]:
        """A block with the model in host memory, with the values of its parameters."""
        with self._entered(stepper, model) as in_memory:
            _, events = self._down({})
            _wait(events)
            yield in_memory

    @contextlib.contextmanager
    def _finishing(self, stepper: Stepper) -> Iterator[None]:
        """A block with a step. Once it is counted, its parameters are copied to their devices, even on interrupts."""
        count, micro = stepper.core.count, stepper.core.micro
        try:
            yield
        finally:
            if stepper.core.count != count and stepper.plan is not None:
                self.finish(stepper.plan.parameters)
            elif stepper.core.micro != micro:
                self.finish([])

    def finish(self, parameters: Sequence[Parameter]) -> None:
        """Copies parameters, and gradients that are zeros now, to their devices."""
        self._leave([*(self.arrays[p.text] for p in parameters if p.text in self.arrays), *self._zeroed])
        self.complete()

    def update(self, stepper: Stepper, model: Any, grads: Any, loss: Any) -> Any:
        """See `Stepper.update`. The model is the same object."""

        def reads(path: str) -> bool:
            """Whether a step reads a parameter, rather than its master weights alone."""
            slots = stepper.table.by_path.get(path)
            return slots is None or MASTER not in slots or not half(self.arrays[path].here)

        with self._entered(stepper, model) as in_memory:
            grads, events = self._down(grads, reads, zeroes=stepper.options.zero_gradients)
            if (gradients := self._gradients_of_pieces(stepper, in_memory, grads)) is not None:
                self._take_pieces(stepper, in_memory, gradients, loss, events)
                return model
            _wait(events)
            with self._finishing(stepper):
                stepper.update(in_memory, grads, loss=loss, keep_root=True)
        return model

    def flush(self, stepper: Stepper, model: Any) -> Any:
        """See `Optimizer.flush`."""
        with self.reading(stepper, model) as in_memory, self._finishing(stepper):
            stepper.flush(in_memory, keep_root=True)
        return model

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _gradients_of_pieces(self, stepper: Stepper, model: Any, grads: Any) -> list[Any] | None:
        """The gradients of a step that can be taken by pieces, as the checked one before; else None.

        A guard, and values over all parameters that cannot be measured first, need all at once.
        """
        step = stepper.resolved.get(False)
        if step is None or not self.is_steady or stepper.options.accumulate > 1:
            return None
        plan = step.plan
        if not step.is_divisible or stepper.open.updated or stepper.presence.without:
            return None
        if not (step.is_current() or step.refresh()) or (leaves := plan.leaves(model)) is None:
            return None
        nbytes = sum(int(leaves[p.index].nbytes) for p in plan.parameters)
        is_small = nbytes <= piece_size(nbytes)
        return None if is_small else step_gradients(plan, leaves, grads)

    def _take_pieces(
        self, stepper: Stepper, model: Any, gradients: list[Any], loss: Any, events: Sequence[Event]
    ) -> None:
        """Takes a step by pieces: parameters that are updated go up to their devices while others are updated.

        No update begins before all copies down are done, the ``events``: an error of one changes nothing. No key stops
        the step: an interrupt comes before it, or is raised when it has ended.
        """
        step, leaves = resolve_whole(stepper, model, loss)
        plan = step.plan
        if plan.recorded:
            plan.detach(leaves, for_core=True)
        plan.check_parameters(leaves)
        sized = [(p, int(leaves[p.index].nbytes)) for p in plan.parameters]
        ring, arrays = self._ring, self.arrays
        totals: list[_core.Totals] = []

        def measure() -> None:
            if plan.needs_all:
                read = plan.pick(checked_gradients(plan, [*gradients]))
                totals.append(measured(stepper.core, plan.pick(leaves), read, bytes, step.programs, step.seed))

        ring.add([Piece([], measure, coming=events)])
        for parameters in packed(sized, piece_size(sum(size for _, size in sized)), lambda _: None):
            update = functools.partial(take_part, stepper, step, parameters, model, leaves, gradients, totals)
            paths = [p.text for p in parameters]
            ring.add([Piece(paths, update, leaving=[arrays[path] for path in paths if path in arrays])])

        def take() -> None:
            try:
                ring.advance()
            finally:
                if ring.is_used:
                    stepper.count_open()

        try:
            ring.worker.run(take)
        finally:
            ring.abandon()
            behind = {*stepper.open.ahead, *(path for piece in ring.failed for path in piece.paths)}
            self._leave([array for path, array in arrays.items() if path in behind])
            self._join()


def _wait(events: Sequence[Event]) -> None:
    """Waits for copies."""
    for event in events:
        event.wait()


def _check_writable_gradient(path: str, g: Any) -> None:
    """Raises `ArrayMemoryError` for a gradient on a device that zeros cannot be copied into."""
    is_broadcast = any(
        extent > 1 and stride == 0 for extent, stride in zip(g.shape, adapter_of(g).strides(g), strict=True)
    )
    if is_immutable(g) or is_broadcast:
        raise ArrayMemoryError(
            f"{path_name(path)}: the gradient, where zero_gradients is to leave zeros, cannot be written: expected a "
            "mutable array"
        )
