"""The loss scale in device memory, where kernels read and update it, so that no step waits for its check."""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from oxigrad.cuda import tables
from oxigrad.cuda.driver import Call, Driver

#: Two kernels: one writes the reciprocal of the scale to a step's scalars, one updates the scale as
#: `oxigrad.optim.LossScale` does.
TEXT = r"""
typedef unsigned long long ox_u64;
typedef unsigned int ox_u32;
struct OxControl { ox_u64 step; ox_u32 stopped; ox_u32 skipped; };
struct OxLaunch {
    double *state;                // the scale, and the number of finite steps since its last change
    const OxControl *control;
    double *const *targets;       // the scalars that are the reciprocal of the scale
    ox_u64 count;
    double factor;
    double interval;
};

extern "C" __global__ void __launch_bounds__(1) scale_read(const __grid_constant__ OxLaunch launch)
{
    const double inverse = 1.0 / launch.state[0];
    for (ox_u64 k = 0; k < launch.count; ++k) *launch.targets[k] = inverse;
}

extern "C" __global__ void __launch_bounds__(1) scale_update(const __grid_constant__ OxLaunch launch)
{
    double value = launch.state[0], good = launch.state[1] + 1.0;
    if (launch.control->stopped) {
        value /= launch.factor;
        good = 0.0;
    } else if (good == launch.interval) {
        value *= launch.factor;
        good = 0.0;
    }
    launch.state[0] = value;
    launch.state[1] = good;
}
"""
#: Its kernels.
ENTRIES = ("scale_read", "scale_update")
_ARGUMENT = struct.Struct("<4Q2d")


class ScaleLaunches:
    """The launches of `TEXT` in steps of some leaves; ``targets`` is the address of ``count`` scalar addresses."""

    def __init__(self, targets: int, count: int) -> None:
        self._targets, self._count = targets, count
        self._argument = ctypes.create_string_buffer(max(tables.LAUNCH_SIZE, _ARGUMENT.size))
        self._pointers = (ctypes.c_void_p * 1)(ctypes.addressof(self._argument))

    def pack(self, state: int, control: int, factor: float, interval: float) -> None:
        """Writes the argument of the launches; ``state`` and ``control`` are addresses."""
        _ARGUMENT.pack_into(self._argument, 0, state, control, self._targets, self._count, factor, interval)

    def calls(self, driver: Driver, device: int, functions: Sequence[Any], stream: int) -> list[tuple[Call, bool]]:
        """The calls that launch these functions, each with whether it writes to memory of the model."""
        arguments = ctypes.addressof(self._pointers)
        return [(driver.launch(device, function, 1, 1, stream, arguments), True) for function in functions]


def addresses(targets: Sequence[int]) -> bytes:
    """The table of these addresses."""
    return struct.pack(f"<{len(targets)}Q", *targets)
