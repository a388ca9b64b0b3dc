"""The loss scale of an optimizer in memory of a device, and what the host knows of it."""

from typing import Any

from oxigrad.ops.backends import adapter_of, device_of, memory_of, namespace
from oxigrad.step.parameters.observed_scale import ObservedScale


class DeviceScale:
    """The state of a loss scale as an array that kernels read and update: its value and its finite steps.

    The host takes the same steps on ``scale`` once it knows whether gradients were finite.
    """

    def __init__(self, scale: ObservedScale, like: Any) -> None:
        self.scale = scale
        self._last_state = scale._state()
        self.array: Any = self._to_device(like)

    def _to_device(self, like: Any) -> Any:
        library = namespace(like)
        return library.asarray(
            [float(number) for number in self._last_state], dtype=library.float64, device=device_of(like)
        )

    @property
    def of_kernel(self) -> tuple[int, float, float] | None:
        """The address of the array, and the numbers by which a kernel updates it."""
        memory, numbers = memory_of(self.array), self.scale._of_kernel()
        return None if memory is None or numbers is None else (memory.address, *numbers)

    def is_known(self) -> bool:
        """Whether the scale is as the steps that the host knows of left it."""
        return self.scale._state() == self._last_state

    def refresh(self) -> None:
        """Copies the scale to the device, after the user has changed it."""
        self._last_state = self.scale._state()
        adapter_of(self.array).assign(self.array, self._to_device(self.array))

    def note(self, *, finite: bool) -> None:
        """Takes a step of the device on the scale."""
        after = self.scale._after(finite=finite)
        vars(self.scale).update(after)
        self._last_state = self.scale._state()
