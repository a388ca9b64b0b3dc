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
        local, total = encode(buffer), np.zeros_like(buffer)
        for codes in communicator.all_gather_v(local, timeout=timeout):
            if codes.nbytes != local.nbytes:
                raise Refused("length", f"a worker sent {codes.nbytes} bytes of codes: expected {local.nbytes}")
            total += decode(codes, buffer.size).astype(buffer.dtype, copy=False)
        np.divide(total, communicator.size, out=buffer)


def _to_half(buffer: Buffer) -> Buffer:
    with np.errstate(over="ignore"):
        return buffer.astype("<f2").view(np.uint8)


def _to_8bit(buffer: Buffer) -> Buffer:
    quantized = Quantized.zeros(buffer.shape)
    quantized[...] = buffer
    return np.concatenate([quantized.codes, quantized.scales.astype("<f4").view(np.uint8)])


def _from_8bit(codes: Buffer, size: int) -> Buffer:
    scales = Quantized.zeros((size,)).scales
    scales[...] = codes[size:].copy().view("<f4")
    return np.asarray(Quantized(codes[:size], scales))


_CODES: dict[str, tuple[Callable[[Buffer], Buffer], Callable[[Buffer, int], Buffer]]] = {
    "float16": (_to_half, lambda codes, _: codes.view("<f2")),
    "8bit": (_to_8bit, _from_8bit),
}
