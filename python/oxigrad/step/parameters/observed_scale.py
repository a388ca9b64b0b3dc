"""A loss scale that observes steps: those that the host counts, and those that a device has counted."""

import weakref
from collections.abc import Callable
from typing import Any


class ObservedScale:
    """A loss scale, which grows by ``factor`` after ``interval`` finite steps, and falls after any other step."""

    factor: float
    interval: int

    @property
    def value(self) -> float:
        """The scale."""
        self._sync_counts()
        return vars(self)["value"]

    @value.setter
    def value(self, value: float) -> None:
        self._sync_counts()
        vars(self)["value"] = value

    @property
    def good(self) -> int:
        """The number of finite steps since the last change."""
        self._sync_counts()
        return vars(self)["good"]

    @good.setter
    def good(self, good: int) -> None:
        self._sync_counts()
        vars(self)["good"] = good

    def observe(self, *, finite: bool) -> None:
        """Updates the scale after a step."""
        self._sync_counts()
        vars(self).update(self._after(finite=finite))

    def _after(self, *, finite: bool) -> dict[str, Any]:
        """The `state_dict` after a further step."""
        value, good = vars(self)["value"], vars(self)["good"] + 1 if finite else 0
        if not finite:
            value /= self.factor
        elif good == self.interval:
            value, good = value * self.factor, 0
        return {"value": value, "good": good}

    # --- steps that a device counts -----------------------------------------------------------------------------------

    def _state(self) -> tuple[float, int]:
        """The scale and the number of finite steps, as far as the host knows them."""
        return vars(self)["value"], vars(self)["good"]

    def _of_kernel(self) -> tuple[float, float] | None:
        """Factor and interval, by which a kernel updates the scale; None where it cannot."""
        return self.factor, float(self.interval)

    def _read_by(self, sync: Callable[[], Any]) -> None:
        """Calls ``sync``, a method, before the scale is read: it observes the steps that a device has taken since."""
        readers = vars(self).setdefault("_readers", [])
        if not any(reader() == sync for reader in readers):
            readers[:] = [*(reader for reader in readers if reader() is not None), weakref.WeakMethod(sync)]

    def _sync_counts(self) -> None:
        for reader in vars(self).get("_readers", ()):
            if (sync := reader()) is not None:
                sync()
