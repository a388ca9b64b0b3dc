"""The state of an optimizer as bytes, such as another process receives."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

from oxigrad.ops.backends import to_host
from oxigrad.step.state import safetensors_io
from oxigrad.step.state import state_dict as states


def pack_state(state: Mapping[str, Any]) -> bytes:
    """The result of `Optimizer.state_dict` as bytes: a safetensors file in memory, numbers and JSON.

    Args:
        state: state of plain data and arrays, as `Optimizer.state_dict` returns it.

    Raises `StateError` for a state that is not plain data and arrays.

    >>> from oxigrad import optim
    >>> unpack_state(pack_state(optim.SGD().state_dict()))["optimizer"]
    'SGD'
    """
    arrays, metadata = states.flat(state)
    return save({name: np.asarray(to_host(array), order="C") for name, array in arrays.items()}, metadata)


def unpack_state(data: bytes, source: str = "the state") -> Mapping[str, Any]:
    """The state that `pack_state` converted to bytes, with arrays of NumPy.

    Args:
        data: bytes that `pack_state` returned.
        source: name of the state in error messages.

    Raises `StateError` for any other bytes.
    """
    return states.whole(*safetensors_io.parsed(data), source)
