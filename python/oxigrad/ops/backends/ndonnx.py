"""ndonnx: arrays that are nodes of an ONNX graph. Arrays that depend on an input of the graph have no values."""

import numpy as np

from oxigrad._typing import Array
from oxigrad.ops.backends.generic import Adapter


class NdonnxAdapter(Adapter):
    """ndonnx's arrays."""

    def to_host(self, array: Array) -> np.ndarray:
        """The values of an array that depends on no input of the graph."""
        try:
            return array.unwrap_numpy()
        except ValueError as error:
            raise BufferError("an input of an ONNX graph, and an array that depends on one, has no values") from error


ADAPTER = NdonnxAdapter
