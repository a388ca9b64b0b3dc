"""Whether kernels can run on a device of this machine, and the warning, given once, if they cannot."""

import warnings
import weakref
from typing import Any

from oxigrad.cuda.compiler import CompilerUnavailableError
from oxigrad.cuda.driver import Driver, DriverUnavailableError, driver
from oxigrad.ops.backends import device_number, memory_of

# The dtypes of parameters that kernels update.
FLOATING = ("float32", "float64", "float16", "bfloat16")


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


def why_not(array: Any) -> str:
    """The reason why no kernel on a device updates an array; empty if one can, given a rule that it can express."""
    memory = memory_of(array)
    if memory is None:
        number = device_number(array)
        return (
            "it is not in memory of a CUDA device"
            if number is None
            else "its library tells no address that may be written"
        )
    if memory.dtype not in FLOATING:
        return f"it has dtype {memory.dtype}"
    if not memory.is_dense:
        return "its elements do not lie one after the other" if memory.is_writable else "it is read-only"
    return unavailable(memory.device)


def is_launchable(array: Any) -> bool:
    """Whether kernels on a device can update an array: see `why_not`."""
    memory = memory_of(array)
    return memory is not None and memory.is_dense and memory.dtype in FLOATING and not unavailable(memory.device)


def tell(reason: str) -> None:
    """Warns that no kernel has a rule that could have one, once for each reason."""
    if reason not in _told:
        _told.add(reason)
        _warned(reason)


def _warned(reason: str) -> str:
    warnings.warn(f"{reason}; update rules are called on arrays instead", UnavailableWarning, stacklevel=3)
    return reason
