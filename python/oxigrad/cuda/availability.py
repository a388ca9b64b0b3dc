"""Whether kernels can run on a device of this machine, and the warning, given once, if they cannot."""

import warnings
import weakref

from oxigrad.cuda.compiler import CompilerUnavailableError
from oxigrad.cuda.driver import Driver, DriverUnavailableError, driver


class UnavailableWarning(UserWarning):
    """Kernels cannot run on a device, or cannot express a rule, so that rules are called on arrays there.

    The message states the reason.
    """


_reasons: "weakref.WeakKeyDictionary[Driver, dict[int, str]]" = weakref.WeakKeyDictionary()
_without_driver: list[str] = []
_told: set[str] = set()


def unavailable(device: int) -> str:
    """The reason why no kernel runs on a device; empty if one can.

    The answer is cached, and a reason is a warning once.
    """
    if _without_driver:
        return _without_driver[0]
    try:
        loaded = driver()
    except DriverUnavailableError as error:
        _without_driver.append(str(error))
        return _warned(str(error))
    reasons = _reasons.setdefault(loaded, {})
    if device not in reasons:
        reasons[device] = ""
        try:
            loaded.check(device)
        except (DriverUnavailableError, CompilerUnavailableError) as error:
            reasons[device] = str(error)
            return _warned(str(error))
    return reasons[device]


def tell(reason: str) -> None:
    """Warns that no kernel has a rule that could have one, once for each reason."""
    if reason not in _told:
        _told.add(reason)
        _warned(reason)


def _warned(reason: str) -> str:
    warnings.warn(f"{reason}; update rules are called on arrays instead", UnavailableWarning, stacklevel=3)
    return reason
