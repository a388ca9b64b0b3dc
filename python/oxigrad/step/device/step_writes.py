"""The writes of a step besides the update by the core: results of rules called on arrays, counts, and launches."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._names import path_name
from oxigrad.cuda.counter import Counter
from oxigrad.cuda.driver import Call, DeviceError, Driver
from oxigrad.cuda.launch import DeviceLeaf
from oxigrad.ops.backends import adapter_of
from oxigrad.step.device.loss_scale import DeviceScale
from oxigrad.step.parameters.parameter import copying


class StepWrites:
    """The writes of a step, collected: see `_core.Writes`."""

    def __init__(self) -> None:
        self.replacements: list[tuple[_core.KeyPath, Any]] = []
        self.assignments: list[tuple[Any, Any, Any]] = []
        self.copies: list[tuple[Any, Any]] = []
        #: Calls of the driver, each with its arguments and whether it writes; and the arrays whose memory they write.
        self.calls: list[tuple[Any, tuple[Any, ...], bool]] = []
        self.launched: list[Any] = []
        #: Copies that kernels read in place of gradients, whose memory is theirs until the calls were made.
        self.read: list[Any] = []
        self.counters: list[Counter] = []
        #: The loss scale that kernels read and update, if they do.
        self.scale: DeviceScale | None = None
        # The end of the calls for each device, and a leaf there.
        self._devices: list[tuple[int, int, Driver, DeviceLeaf]] = []

    def copy_into(self, array: Any, value: Any) -> None:
        """Adds a copy of ``value`` into an array: by the core in host memory, elsewhere by the array's library."""
        if _core.is_writable(array):
            self.copies.append(copying(value, array))
        else:
            self.assign(array, value)

    def assign(self, array: Any, value: Any) -> None:
        """Adds a copy of the result of a rule into the memory of a parameter, by its library."""
        self.calls.append((_assigned, (array, value), True))

    def launch(self, used: Driver, device: int, leaf: DeviceLeaf, calls: Iterable[tuple[Call, bool]]) -> None:
        """Adds calls on a device, with its context current; ``leaf`` is named in errors."""
        enter, leave = used.entered(device)
        for (function, arguments), writes in ((enter, False), *calls, (leave, False)):
            self.calls.append((function, arguments, writes))
        self._devices.append((len(self.calls), device, used, leaf))

    def _fail(self, number: int, status: Any) -> None:
        """Raises the error of the call with this number."""
        for end, device, used, leaf in self._devices:
            if number < end:
                with naming([leaf]):
                    used.fail(device, status)

    def frozen(self) -> _core.Writes:
        """The writes as the core takes them."""
        launches: Any = {"launches": (self.calls, self._fail), "launched": self.launched} if self.calls else {}
        return _core.Writes(
            replacements=self.replacements, assignments=self.assignments, copies=self.copies, **launches
        )


def _assigned(array: Any, value: Any) -> tuple[int]:
    adapter_of(array).assign(array, value)
    return (0,)


@contextlib.contextmanager
def naming(leaves: Sequence[DeviceLeaf]) -> Iterator[None]:
    """Puts the first leaf's key path before a `DeviceError` whose message begins with no leaf's."""
    try:
        yield
    except DeviceError as error:
        if any(str(error).startswith(f"{path_name(leaf.path)}: ") for leaf in leaves):
            raise
        raise type(error)(f"{leaves[0].path}: {error}") from error
