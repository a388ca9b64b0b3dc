"""Random numbers of rules, drawn on a device: those of the core (``rust/core/src/noise.rs``), to the bit."""

from typing import Any

from oxigrad.ops.backends import device_number, device_of, namespace, size_of

_WORD = 0xFFFF_FFFF
_WORD_OF_64 = 0xFFFF_FFFF_FFFF_FFFF


class DeviceNoise:
    """The draws of a leaf, or of ``rows`` of it, for arrays like ``like``, where `draws_on_device`."""

    def __init__(self, seed: int, step: int, leaf: int, like: Any, rows: Any) -> None:
        self._key = _mix(_mix(_mix(seed) ^ step) ^ leaf)
        self._like, self._rows = like, rows

    def uniform(self, draw: int) -> Any:
        """Uniform numbers of [0, 1) for the draw of a rule with this number."""
        low, high = self._stream(draw)
        bits = _hash((_hash(self._indices() ^ low, 0) + high) & _WORD, 0)
        return self._shaped(bits >> 8) * 2.0**-24

    def rounding(self, number: int) -> Any:
        """The numbers from 0 to 65535 by which the array with this number is rounded stochastically."""
        low, high = self._stream(_WORD - number // 2)
        return self._shaped((_hash(self._indices() ^ low, high) >> (number % 2 * 16)) & 0xFFFF)

    def _stream(self, draw: int) -> tuple[int, int]:
        word = _mix(_mix(self._key ^ draw))
        return word & _WORD, word >> 32

    def _indices(self) -> Any:
        """The number of each element in the leaf, below 2^32, in int64."""
        library, like = namespace(self._like), self._like
        if self._rows is None:
            return library.arange(size_of(like.shape), dtype=library.int64, device=device_of(like))
        count = size_of(like.shape[1:])
        columns = library.arange(count, dtype=library.int64, device=device_of(like))
        rows = library.astype(self._rows, library.int64)
        return library.reshape(library.reshape(rows, (-1, 1)) * count + columns, (-1,))

    def _shaped(self, bits: Any) -> Any:
        library = namespace(self._like)
        return library.reshape(library.astype(bits, self._like.dtype), tuple(self._like.shape))


def draws_on_device(like: Any, count: int) -> bool:
    """Whether numbers are drawn on the device of an array, of a leaf of ``count`` elements: fewer than 2^32."""
    return device_number(like) is not None and count <= _WORD


def _mix(value: int) -> int:
    z = (value + 0x9E37_79B9_7F4A_7C15) & _WORD_OF_64
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _WORD_OF_64
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _WORD_OF_64
    return z ^ (z >> 31)


def _hash(value: Any, key: int) -> Any:
    """A hash of numbers below 2^32, whose products wrap around."""
    x = ((value ^ (value >> 16)) * 0x7FEB_352D) & _WORD
    x = ((x ^ (x >> 15) ^ key) * 0x846C_A68B) & _WORD
    return x ^ (x >> 16)
