"""Parameters and the state of an optimizer as one buffer of bytes, for a worker that joins.

The buffer is a safetensors file in memory: numbers and JSON, nothing that is executed or unpickled.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad import StateError
from oxigrad.distributed.errors import Refused
from oxigrad.extend import pack_state, unpack_state

# The name of parameters among the arrays, as if they were a slot: no slot's name has a space.
_PARAMETER = "a parameter"


def pack(parameters: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> np.ndarray:
    """Parameters by key path and the result of `state_dict`, as bytes.

    >>> import oxigrad as ox
    >>> parameters, state = unpack(pack({"w": np.ones(2)}, ox.optim.SGD().state_dict()))
    >>> parameters, state["optimizer"]
    ({'w': array([1., 1.])}, 'SGD')
    """
    slots = {path: {**state["slots"].get(path, {}), _PARAMETER: array} for path, array in parameters.items()}
    return np.frombuffer(pack_state({**state, "slots": {**state["slots"], **slots}}), np.uint8)


def unpack(buffer: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The parameters and the state in bytes that `pack` made. Raises `Refused` for any others."""
    try:
        state = unpack_state(buffer.tobytes(), "the state of another worker")
    except (StateError, ValueError, LookupError, TypeError) as error:
        raise Refused("state", f"the state of another worker cannot be read: {error}") from error
    slots = {path: dict(named) for path, named in state["slots"].items()}
    parameters = {path: named.pop(_PARAMETER) for path, named in slots.items() if _PARAMETER in named}
    rest = {path: named for path, named in slots.items() if named or path not in parameters}
    return parameters, {**state, "slots": rest}
