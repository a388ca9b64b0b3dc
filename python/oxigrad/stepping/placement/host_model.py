"""A model whose parameters on devices have arrays in host memory in their place, which steps there update."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oxigrad import _core, tree
from oxigrad._core import ArrayMemoryError
from oxigrad._names import path_name
from oxigrad.ops.backends import adapter_of, detached, dtype_name, is_array, is_immutable, on_host
from oxigrad.ops.backends.memory.transfers import Copies, Event
from oxigrad.ops.core.aliasing import refuse_shared
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.parameters.executor import executor_of
from oxigrad.stepping.placement.ring import HostArray


class HostModel:
    """The model of the step under way, in host memory. Its memory is that of the steps before, by key path."""

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
        self._events: list[Event] = []
        #: Whether gradients lie in the memory of those of the step before, with their shapes and dtypes.
        self.is_steady: bool = False

    def enter(self, model: Any, is_updated: Callable[[str, Any], bool]) -> Any:
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

    def leave(self) -> None:
        """Drops the model of the step, and the arrays of the user's; their memory serves the next one."""
        self.model, self.arrays, self._zeroed = None, {}, []

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

    def down(self, grads: Any, reads: Callable[[str], bool] = lambda _: True, *, zeroes: bool = False) -> Any:
        """Begins copies of gradients, and of the parameters that the step ``reads``, to host memory; see `wait`.

        Returns the gradients there; None if the parameters hold them, as they do where ``grads`` is None. With
        ``zeroes``, gradients on devices are copied up with the parameters, and `ArrayMemoryError` is raised for one
        that cannot be written.
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
        before, self._gradients, self._events = self._gradients, gradients, events
        self.is_steady = gradients.keys() == before.keys() and all(before[path] is g for path, g in gradients.items())
        return grads

    def wait(self) -> None:
        """Waits for the copies down."""
        for event in self._events:
            event.wait()

    def up(self, arrays: Sequence[HostArray]) -> None:
        """Copies arrays to their devices, and waits: the next step writes the memory that the copies read."""
        for event in [array.up() for array in arrays]:
            event.wait()
        self.join()

    def join(self) -> None:
        """Lets work that devices are given from now on begin after the copies up."""
        for transfers in self._transfers.values():
            transfers.join()

    def behind(self, paths: Iterable[str]) -> list[HostArray]:
        """The parameters, and the gradients that are zeros now, to copy to their devices after a step."""
        return [*(self.arrays[path] for path in paths if path in self.arrays), *self._zeroed]


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
