"""Arrays as codes of eight bits, for the moments of optimizers."""

import dataclasses
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.ops.backends import adapter_of, copied_like, device_of, dtype_name, namespace, on_host, size_of, to_host

_BLOCK = 256


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Numbers as codes of eight bits, with a scale for each 256 of them in row-major order; NumPy reads them as float32.

    A block's largest magnitude is exact; the error of another number is at most 3.2 % of itself (1.6 % in a block without
    negative numbers) down to a sixteenth of the largest, at most twice that down to a 256th, and so on for twenty powers of two.
    Zero stays zero, and in a block without negative numbers positive numbers stay positive. ``codes`` (uint8, of the shape of the array) and
    ``scales`` (float32) are its only data, arrays of the library and on the device of the parameter; the formula is in ``quantized.rs`` of the core.

    >>> x = Quantized.zeros((2, 3))
    >>> x[...] = [[0.0, 0.5, 2.0], [0.1, 0.0, 1.0]]
    >>> np.asarray(x).round(2)
    array([[0. , 0.5, 2. ],
           [0.1, 0. , 1. ]], dtype=float32)
    """

    codes: Any
    scales: Any

    def __post_init__(self) -> None:
        shape, kinds = tuple(self.scales.shape), (dtype_name(self.codes.dtype), dtype_name(self.scales.dtype))
        blocks = -(-size_of(self.codes.shape) // _BLOCK)
        if kinds != ("uint8", "float32") or shape != (blocks,):
            raise ValueError(
                f"found codes of {kinds[0]} and scales of {kinds[1]} and shape {shape}: expected uint8, and float32 of shape "
                f"({blocks},)"
            )

    @classmethod
    def zeros(cls, shape: tuple[int, ...], like: Any = None) -> "Quantized":
        """Zeros of this shape, in host memory, or as arrays of the library and on the device of ``like``."""
        blocks = (-(-size_of(shape) // _BLOCK),)
        if like is None:
            return cls(np.zeros(shape, np.uint8), np.zeros(blocks, np.float32))
        library, device = namespace(like), device_of(like)
        codes = library.zeros(shape, dtype=library.uint8, device=device)
        return cls(codes, library.zeros(blocks, dtype=library.float32, device=device))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.codes.shape)

    @property
    def dtype(self) -> str:
        """The name "8bit", in place of a dtype."""
        return "8bit"

    def copy(self) -> "Quantized":
        """The same numbers in memory of their own."""
        return self.copied_like(self)

    def copied_like(self, like: "Quantized") -> "Quantized":
        """A copy, as arrays of the library and on the device of ``like``."""
        return Quantized(copied_like(self.codes, like.codes), copied_like(self.scales, like.scales))

    def decoded(self, like: Any) -> Any:
        """The numbers as a float32 array of the library and on the device of ``like``. Waits for the device of the codes."""
        library = namespace(like)
        return library.asarray(np.asarray(self), dtype=library.float32, device=device_of(like))

    @property
    def nbytes(self) -> int:
        """The bytes of codes and scales."""
        return size_of(self.codes.shape) + 4 * size_of(self.scales.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a Quantized array cannot be converted without a copy (copy=False)")
        numbers = np.empty(self.shape, np.float32)
        _core.copy((to_host(self.codes), to_host(self.scales)), numbers)
        return numbers if dtype is None else numbers.astype(dtype, copy=False)

    def __setitem__(self, key: Any, values: Any) -> None:
        numbers = np.array(self)
        numbers[key] = values
        parts = self.codes, self.scales
        if on_host(self.codes):
            _core.copy(numbers, parts)
            return
        coded = Quantized.zeros(self.shape)
        _core.copy(numbers, (coded.codes, coded.scales))
        for part, new in zip(parts, (coded.codes, coded.scales), strict=True):
            adapter_of(part).assign(part, copied_like(new, part))

    def __repr__(self) -> str:
        return f"Quantized({np.asarray(self)!r})"
