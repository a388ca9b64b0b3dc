"""ndonnx: arrays that are nodes of an ONNX graph; those that depend on an argument of the graph have no values."""

from typing import Any

import numpy as np

from oxigrad.ops.backends.generic import Adapter


class NdonnxAdapter(Adapter):
    """ndonnx's arrays."""

    def to_host(self, array: Any) -> np.ndarray:
        """The values of an array that depends on no argument of the graph."""
        try:
            return array.unwrap_numpy()
        except ValueError as error:
            raise BufferError("an argument of an ONNX graph, and what depends on one, has no values") from error


ADAPTER = NdonnxAdapter
