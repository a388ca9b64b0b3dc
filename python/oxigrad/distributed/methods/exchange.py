"""The mean of flat buffers over workers, in full precision or by codes of fewer bits."""

from collections.abc import Callable, Sequence

import numpy as np

from oxigrad.distributed.communicator import Buffer, Communicator
from oxigrad.distributed.errors import Refused
from oxigrad.optim import Quantized

#: The precisions of an exchange: that of the buffers, half precision, or codes of eight bits (`Quantized`).
EXCHANGES = ("full", "float16", "8bit")


def mean(
    communicator: Communicator, buffers: Sequence[Buffer], exchange: str = "full", *, timeout: float | None = None
) -> None:
    """Replaces floating-point buffers by their means over all workers, in place.

    With "float16" and "8bit" each worker sends codes, which are decoded and summed in the dtype of the buffers in the
    order of ranks, so that all workers have the same bits. The error of the mean is at most the largest error of a
    worker's codes: for "float16" 2**-11 of each number, or 2**-25 where that is larger (a number beyond 65504 becomes
    infinite), for "8bit" that of `Quantized` for blocks of 256 elements.
    """
    if exchange == "full":
        communicator.all_reduce(buffers, op="mean", timeout=timeout)
        return
    encode, decode = _CODES[exchange]
    for buffer in buffers:
        codes = communicator.all_gather_v(encode(buffer), timeout=timeout)
        total = np.zeros_like(buffer)
        for each in codes:
            total += decode(each, buffer.size).astype(buffer.dtype, copy=False)
        np.divide(total, len(codes), out=buffer)


def _to_half(buffer: Buffer) -> Buffer:
    with np.errstate(over="ignore"):
        return buffer.astype("<f2").view(np.uint8)


def _from_half(codes: Buffer, size: int) -> Buffer:
    _check(codes, 2 * size)
    return codes.view("<f2")


def _to_8bit(buffer: Buffer) -> Buffer:
    quantized = Quantized.zeros(buffer.shape)
    quantized[...] = buffer
    return np.concatenate([quantized.codes, quantized.scales.astype("<f4").view(np.uint8)])


def _from_8bit(codes: Buffer, size: int) -> Buffer:
    scales = Quantized.zeros((size,)).scales
    _check(codes, size + scales.nbytes)
    scales[...] = codes[size:].copy().view("<f4")
    return np.asarray(Quantized(codes[:size], scales))


def _check(codes: Buffer, expected: int) -> None:
    if codes.nbytes != expected:
        raise Refused("length", f"a worker sent {codes.nbytes} bytes of codes: expected {expected}")


_CODES: dict[str, tuple[Callable[[Buffer], Buffer], Callable[[Buffer, int], Buffer]]] = {
    "float16": (_to_half, _from_half),
    "8bit": (_to_8bit, _from_8bit),
}
