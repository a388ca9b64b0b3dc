"""Arrays as codes of eight bits, for the moments of optimizers."""

import dataclasses
from typing import Any

import numpy as np

from oxigrad import _core

_BLOCK = 256


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Numbers as codes of eight bits, with a scale for each 256 of them in row-major order; NumPy reads them as float32.

    A block's largest magnitude is exact; the error of another number is at most 3.2 % of itself (1.6 % in a block without
    negative numbers) down to a sixteenth of the largest, at most twice that down to a 256th, and so on for twenty powers of two.
    Zero stays zero, and in a block without negative numbers positive numbers stay positive. ``codes`` (uint8, of the shape of the array) and
    ``scales`` (float32) are its only data; the formula is in ``quantized.rs`` of the core.

    >>> x = Quantized.zeros((2, 3))
    >>> x[...] = [[0.0, 0.5, 2.0], [0.1, 0.0, 1.0]]
    >>> np.asarray(x).round(2)
    array([[0. , 0.5, 2. ],
           [0.1, 0. , 1. ]], dtype=float32)
    """

    codes: np.ndarray
    scales: np.ndarray

    def __post_init__(self) -> None:
        codes, scales = np.asarray(self.codes), np.asarray(self.scales)
        blocks = -(-codes.size // _BLOCK)
        if codes.dtype != np.uint8 or scales.dtype != np.float32 or scales.shape != (blocks,):
            raise ValueError(
                f"found codes of {codes.dtype} and scales of {scales.dtype} and shape {scales.shape}: expected uint8, and "
                f"float32 of shape ({blocks},)"
            )

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> "Quantized":
        """Zeros of this shape."""
        codes = np.zeros(shape, np.uint8)
        return cls(codes, np.zeros(-(-codes.size // _BLOCK), np.float32))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.codes.shape

    @property
    def dtype(self) -> str:
        """The name "8bit", in place of a dtype."""
        return "8bit"

    def copy(self) -> "Quantized":
        """The same numbers in memory of their own."""
        return Quantized(self.codes.copy(), self.scales.copy())

    @property
    def nbytes(self) -> int:
        """The bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a Quantized array cannot be converted without a copy (copy=False)")
        numbers = np.empty(self.shape, np.float32)
        _core.copy((self.codes, self.scales), numbers)
        return numbers if dtype is None else numbers.astype(dtype, copy=False)

    def __setitem__(self, key: Any, values: Any) -> None:
        numbers = np.array(self)
        numbers[key] = values
        _core.copy(numbers, (self.codes, self.scales))

    def __repr__(self) -> str:
        return f"Quantized({np.asarray(self)!r})"
