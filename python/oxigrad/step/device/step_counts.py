"""The counts of an optimizer's steps: of those taken and skipped, as the core and the devices keep them.

Kernels on a device may count their steps themselves, and read the loss scale there; the host learns of both later.
"""

from typing import Any

from oxigrad import _core, xp
from oxigrad._core import StateError
from oxigrad.cuda.counter import Counted, Counter
from oxigrad.ops.backends import device_of, is_array, namespace
from oxigrad.step.device.loss_scale import DeviceScale
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.parameters.observed_scale import ObservedScale
from oxigrad.step.plan.step_program import StepProgram


class StepCounts:
    """The numbers of steps that an optimizer has taken and skipped, by the core and by the ``counters`` of devices.

    ``scale`` is the loss scale that is kept on a device, if one is. ``raises`` tells whether a step that a device
    counts as skipped raises, rather than being counted here.
    """

    def __init__(self, loss_scale: ObservedScale | None, core: "_core.Stepper") -> None:
        #: The loss scale of the optimizer.
        self.loss_scale: ObservedScale | None = loss_scale
        self._core = core
        self._skipped = 0
        self.counters: dict[int, Counter] = {}
        self.scale: DeviceScale | None = None
        self.raises = False

    @property
    def taken(self) -> int:
        """The number of steps taken. Waits for steps on devices that count themselves."""
        self.sync()
        return self._core.count

    @property
    def skipped(self) -> int:
        """The number of steps that were skipped because their gradients were not finite. Waits as `taken` does."""
        self.sync()
        return self._skipped

    @skipped.setter
    def skipped(self, skipped: int) -> None:
        self._skipped = skipped

    def sync(self, *, wait: bool = True) -> None:
        """Reads the counts of steps that devices have kept; those that have not arrived yet only with ``wait``."""
        for device, counter in self.counters.items():
            is_behind = counter.is_ahead or counter.is_pending
            for change in counter.learn(device, wait=wait):
                self._record(change)
            if is_behind:
                self._core.count = counter.count

    def _record(self, change: Counted) -> None:
        """Counts the skipped steps among those that a device has counted, and lets the loss scale observe them."""
        if self.scale is not None:
            self._skipped += change.skipped
            for finite in (True,) * change.step + (False,) * change.skipped:
                self.scale.note(finite=finite)
        elif not self.raises:
            for _ in range(change.skipped):
                self.add_skipped()

    def add_skipped(self) -> None:
        """Counts a step as skipped."""
        if self._skipped >= _core.MOST_STEPS:
            raise StateError(f"{self._skipped} steps have been skipped: the count cannot exceed this")
        self._skipped += 1
        if self.loss_scale is not None:
            self.loss_scale.observe(finite=False)

    def settle(self) -> None:
        """Lets the loss scale observe a counted step that it has not observed yet."""
        scale = self.loss_scale
        # In one call: a signal handler may run, and save, between any two.
        attributes, values = (vars(scale), scale._after(finite=True)) if scale else ({}, {})
        self._core.observe(attributes, values)

    def is_taken_there(self, step: StepProgram, writes: StepWrites, before: tuple[int, int]) -> bool:
        """Whether a step that a guard on a device may have stopped is taken; waits where that must be known now.

        ``before`` are the numbers of steps and of accumulated gradients before.
        """
        for counter in writes.counters:
            counter.expect()
        is_known_later = writes.scale is not None or not (step.observes or step.plan.options.accumulate > 1)
        if is_known_later and not step.raises:
            self.sync(wait=False)
            return True
        changes = [change for device, c in self.counters.items() for change in c.learn(device, wait=True)]
        if not any(change.skipped for change in changes):
            self.settle()
            return True
        self._core.count, self._core.micro = before
        self._core.observe({}, {})  # the step was none
        return False

    # --- the loss scale on a device -----------------------------------------------------------------------------------

    def scale_for(self, step: StepProgram, leaves: list[Any]) -> DeviceScale | None:
        """The loss scale on the device for a step that reads it there, as the user may have set it."""
        scale = self.loss_scale if step.scales_there else None
        on_device = self.scale if self.scale is not None and self.scale.scale is scale else None
        if scale is None or on_device is None or not on_device.is_known():
            if self.scale is not None:
                self.sync()  # of steps with the scale before
            if scale is not None and on_device is not None and not on_device.is_known():
                on_device.refresh()
            elif scale is not None and on_device is None:
                scale._read_by(self.sync)
                on_device = DeviceScale(scale, leaves[step.plan.on_devices[0].index])
            self.scale = on_device
        return on_device

    def scale_like(self, loss: Any) -> Any:
        """The loss scale as an array like ``loss``, in library and device, if kernels keep it there; else None."""
        scale, loss = self.scale, _core.plain(loss)
        if scale is None or not is_array(loss) or namespace(loss) is not namespace(scale.array):
            return None
        # The user may have set it since.
        is_known = scale.scale is self.loss_scale and scale.is_known()
        if device_of(loss) != device_of(scale.array) or not is_known:
            return None
        return xp.astype(scale.array[0], loss.dtype, copy=True)
