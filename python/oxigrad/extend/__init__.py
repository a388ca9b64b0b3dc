"""The border for other packages: names that new array libraries, rules, transforms, wrappers and engines need.

An op or a function with a custom derivative needs `oxigrad.custom_vjp`, `oxigrad.define_vjp` and
`oxigrad.define_jvp`; a rule needs `oxigrad.optim.define` with `oxigrad.optim.Slot`, and a gradient transform
`oxigrad.optim.transform`. The names here are for the rest.

>>> import numpy as np
>>> from oxigrad import extend
>>> extend.namespace(np.ones(3)).__name__, extend.dtype_name(np.dtype("float32"))
('numpy', 'float32')
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from oxigrad._names import unknown_name as _unknown_name

if _TYPE_CHECKING:
    from oxigrad._core import crc32c
    from oxigrad._names import library
    from oxigrad._tables import Table
    from oxigrad.autodiff.transforms import Recording
    from oxigrad.cuda.driver import driver
    from oxigrad.extend.adapters import register_adapter
    from oxigrad.extend.parameters import Parameters
    from oxigrad.extend.slices import SlicedSteps
    from oxigrad.extend.states import pack_state, unpack_state
    from oxigrad.extend.wrapping import WrappingOptimizer
    from oxigrad.ops.backends import adapter_of, copied_like, device_of, dtype_name, to_host
    from oxigrad.ops.backends.generic import Adapter
    from oxigrad.ops.backends.memory.worker import Worker
    from oxigrad.optim.settings.config import OPTIONS
    from oxigrad.rules.core.ranges import COUNT, Domain
    from oxigrad.schedules.numbers import number
    from oxigrad.step.arrays.sparse_rows import as_array
    from oxigrad.step.slice import Slice
    from oxigrad.step.state.state_dict import config_of

__all__ = [
    "COUNT",
    "OPTIONS",
    "Adapter",
    "Domain",
    "Parameters",
    "Recording",
    "Slice",
    "SlicedSteps",
    "Table",
    "Worker",
    "WrappingOptimizer",
    "adapter_of",
    "as_array",
    "config_of",
    "copied_like",
    "crc32c",
    "device_of",
    "driver",
    "dtype_name",
    "library",
    "number",
    "pack_state",
    "register_adapter",
    "to_host",
    "unpack_state",
]


# Imported when they are first used: an array library needs no optimizers.
_LAZY = {
    "COUNT": "oxigrad.rules.core.ranges",
    "OPTIONS": "oxigrad.optim.settings.config",
    "Adapter": "oxigrad.ops.backends.generic",
    "Domain": "oxigrad.rules.core.ranges",
    "Parameters": "oxigrad.extend.parameters",
    "Recording": "oxigrad.autodiff.transforms",
    "Slice": "oxigrad.step.slice",
    "SlicedSteps": "oxigrad.extend.slices",
    "Table": "oxigrad._tables",
    "Worker": "oxigrad.ops.backends.memory.worker",
    "WrappingOptimizer": "oxigrad.extend.wrapping",
    "adapter_of": "oxigrad.ops.backends",
    "as_array": "oxigrad.step.arrays.sparse_rows",
    "config_of": "oxigrad.step.state.state_dict",
    "copied_like": "oxigrad.ops.backends",
    "crc32c": "oxigrad._core",
    "device_of": "oxigrad.ops.backends",
    "driver": "oxigrad.cuda.driver",
    "dtype_name": "oxigrad.ops.backends",
    "library": "oxigrad._names",
    "number": "oxigrad.schedules.numbers",
    "pack_state": "oxigrad.extend.states",
    "register_adapter": "oxigrad.extend.adapters",
    "to_host": "oxigrad.ops.backends",
    "unpack_state": "oxigrad.extend.states",
}


def __dir__() -> list[str]:
    return __all__.copy()


if not _TYPE_CHECKING:  # to type checkers, a name that is not there is an error

    def __getattr__(name: str) -> _Any:
        if name not in _LAZY:
            raise _unknown_name(__name__, name, __all__)
        value = globals()[name] = getattr(_importlib.import_module(_LAZY[name]), name)
        return value
