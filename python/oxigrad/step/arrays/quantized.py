"""Arrays as codes of eight or four bits, for the moments of optimizers."""

import dataclasses
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.ops.backends import adapter_of, copied_like, device_of, dtype_name, namespace, on_host, size_of, to_host


@dataclasses.dataclass(frozen=True)
class Codec:
    """A kind of codes, by the name that it has as a dtype.

    ``bits`` are those of a code, ``block`` the numbers that share a scale, ``zeros`` a byte of codes of zeros, and
    ``stored`` the name of the dtype in the programs of devices.
    """

    name: str
    bits: int
    block: int
    zeros: int
    stored: str

    def shape_of_codes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the codes of an array: its own, or flat where codes share bytes."""
        return shape if self.bits == 8 else (-(-size_of(shape) * self.bits // 8),)


EIGHT, FOUR = Codec("8bit", 8, 256, 0x00, "uint8"), Codec("4bit", 4, 128, 0x77, "uint4")
#: The kinds of codes, by name.
CODECS = {codec.name: codec for codec in (EIGHT, FOUR)}


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Numbers as codes, with a scale for each block of them in row-major order; NumPy reads them as float32.

    Args:
        codes: array of uint8 with the codes.
        scales: array of float32 with one scale for each block.
        shape: shape of the array, for codes of four bits.

    Its only data are ``codes`` (uint8) and ``scales`` (float32), arrays of the library and on the device of the
    parameter. Without a ``shape``, codes have eight bits and the shape of the array; with one, they have four bits, two
    a byte, the first in its upper half.

    **Eight bits**, blocks of 256: a block's largest magnitude is exact; the error of another number is at most 3.2 % of
    itself (1.6 % in a block without negative numbers) down to a sixteenth of the largest, at most twice that down to a
    256th, and so on for twenty powers of two. The formula is in ``quantized/eight.rs`` of the core.

    **Four bits**, blocks of 128 (Li, Chen and Zhu 2023, arXiv:2309.01507), coded as in torchao: a block of positive
    numbers by sixteenths of the largest, from one to sixteen, another block by 0, 0.0055, 0.0325, 0.0775, 0.2125,
    0.4375, 0.6625 and 0.8875 of the largest magnitude, of either sign, and 1. The error is at most 1/16 of the largest,
    or 0.1125. In torchao, first moments always have the latter map and second moments the former, which makes zeros
    1/16; here a block of second moments with zeros has the latter. The maps are in ``quantized/four.rs``.

    In both, zero stays zero, and in a block without negative numbers positive numbers stay positive.

    >>> x = Quantized.zeros((2, 3))
    >>> x[...] = [[0.0, 0.5, 2.0], [0.1, 0.0, 1.0]]
    >>> np.asarray(x).round(2)
    array([[0. , 0.5, 2. ],
           [0.1, 0. , 1. ]], dtype=float32)
    >>> x = Quantized.zeros((2, 3), dtype="4bit")
    >>> x[...] = [[0.4, 0.5, 2.0], [0.1, 0.8, 1.0]]
    >>> np.asarray(x).round(3), x.codes
    (array([[0.375, 0.5  , 2.   ],
           [0.125, 0.75 , 1.   ]], dtype=float32), array([ 35, 240,  87], dtype=uint8))
    """

    codes: Any
    scales: Any
    shape: tuple[int, ...] = None  # pyright: ignore[reportAssignmentType] - that of the codes, where it is not given
    codec: Codec = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        codec = EIGHT if self.shape is None else FOUR
        shape = tuple(map(int, self.codes.shape if self.shape is None else self.shape))
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "codec", codec)
        kinds, scales_shape = (dtype_name(self.codes.dtype), dtype_name(self.scales.dtype)), tuple(self.scales.shape)
        blocks = -(-size_of(shape) // codec.block)
        if kinds != ("uint8", "float32") or scales_shape != (blocks,):
            raise ValueError(
                f"found codes of {kinds[0]} and scales of {kinds[1]} and shape {scales_shape}: expected uint8, and "
                "float32 of shape "
                f"({blocks},)"
            )
        if tuple(self.codes.shape) != codec.shape_of_codes(shape):
            expected = codec.shape_of_codes(shape)
            raise ValueError(
                f"found codes of shape {tuple(self.codes.shape)}: expected {expected}, for {size_of(shape)} numbers of "
                f"{codec.bits} bits"
            )

    @classmethod
    def zeros(cls, shape: tuple[int, ...], like: Any = None, dtype: str = "8bit") -> "Quantized":
        """Zeros of this shape, in host memory, or as arrays of the library and on the device of ``like``."""
        codec = CODECS[dtype]
        blocks, codes_shape = (-(-size_of(shape) // codec.block),), codec.shape_of_codes(shape)
        packed: Any = None if codec is EIGHT else shape
        if like is None:
            return cls(np.full(codes_shape, codec.zeros, np.uint8), np.zeros(blocks, np.float32), packed)
        library, device = namespace(like), device_of(like)
        codes = library.full(codes_shape, codec.zeros, dtype=library.uint8, device=device)
        return cls(codes, library.zeros(blocks, dtype=library.float32, device=device), packed)

    @property
    def dtype(self) -> str:
        """The name of the kind of codes, "8bit" or "4bit", in place of a dtype."""
        return self.codec.name

    @property
    def arrays(self) -> dict[str, Any]:
        """The codes and the scales, by these names."""
        return {"codes": self.codes, "scales": self.scales}

    @property
    def fields(self) -> dict[str, Any]:
        """The arguments of an equal `Quantized`, by name: codes, scales and, of four bits, the shape."""
        return self.arrays if self.codec is EIGHT else {**self.arrays, "shape": self.shape}

    def in_core(self) -> tuple[Any, ...]:
        """The numbers as the core takes them."""
        return tuple(self.fields.values())

    def with_arrays(self, codes: Any, scales: Any) -> "Quantized":
        """Numbers of the same shape and kind of codes by other arrays."""
        return Quantized(**{**self.fields, "codes": codes, "scales": scales})

    def within(self, start: int, stop: int) -> "Quantized":
        """The numbers from ``start``, at which a block begins, to ``stop`` in row-major order, in the same memory."""
        bits, block = self.codec.bits, self.codec.block
        codes = self.codes.reshape(-1)[start * bits // 8 : -(-stop * bits // 8)]
        packed: Any = None if self.codec is EIGHT else (stop - start,)
        return Quantized(codes, self.scales[start // block : -(-stop // block)], packed)

    def copy(self) -> "Quantized":
        """The same numbers in memory of their own."""
        return self.copied_like(self)

    def copied_like(self, like: "Quantized") -> "Quantized":
        """A copy, as arrays of the library and on the device of ``like``."""
        return self.with_arrays(copied_like(self.codes, like.codes), copied_like(self.scales, like.scales))

    def decoded(self, like: Any) -> Any:
        """The numbers as a float32 array like ``like``, in library and device. Waits for the device of the codes."""
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
        _core.copy(self.with_arrays(to_host(self.codes), to_host(self.scales)).in_core(), numbers)
        return numbers if dtype is None else numbers.astype(dtype, copy=False)

    def __setitem__(self, key: Any, values: Any) -> None:
        numbers = np.array(self)
        numbers[key] = values
        if on_host(self.codes):
            _core.copy(numbers, self.in_core())
            return
        coded = Quantized.zeros(self.shape, dtype=self.dtype)
        _core.copy(numbers, coded.in_core())
        for part, new in zip(self.arrays.values(), coded.arrays.values(), strict=True):
            adapter_of(part).assign(part, copied_like(new, part))

    def __reduce__(self) -> Any:
        return Quantized, self.in_core()  # which gives it the one object of its kind of codes

    def __repr__(self) -> str:
        return f"Quantized({np.asarray(self)!r})"
