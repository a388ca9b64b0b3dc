"""Messages: no damaged, foreign, repeated or truncated one is used."""

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxigrad import SparseRows, distributed
from oxigrad._core import crc32c
from oxigrad.distributed import Header, Layout, Refused
from oxigrad.distributed.messages.gradients import GradientCodec
from oxigrad.distributed.messages.message import (
    HEADER_BYTES,
    Guard,
    as_bytes,
    checksum,
    copied,
    in_pieces,
    scatter,
    size_of,
)

JOB = bytes(range(16))
PAYLOAD = [np.arange(4.0), np.arange(3, dtype=np.float32)]
SENT = Header(tag=3, step=1 << 40, digest=b"12345678").sealed(PAYLOAD, job=JOB, generation=2, rank=1, sequence=9)


def received(header: bytes, payload: list[np.ndarray] = PAYLOAD, guard: Guard | None = None) -> Header:
    found = Header.unpack(header)
    (guard or Guard(JOB, 2, 3)).check(found, payload)
    return found


def test_a_header_is_64_bytes_and_comes_back() -> None:
    assert len(SENT.pack()) == HEADER_BYTES == 64
    assert received(SENT.pack()) == SENT
    assert SENT.pack()[:8] == b"OXGD\x01\x00\x03\x00"


def test_the_checksum_is_that_of_castagnoli() -> None:
    """RFC 3720, appendix B.4."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(bytes(range(32))) == 0x46DD794E
    data = np.random.default_rng(0).bytes(50_000)
    assert crc32c(data[20_001:], crc32c(data[:20_001])) == crc32c(data)
    assert checksum(PAYLOAD) == crc32c(b"".join(buffer.tobytes() for buffer in PAYLOAD))
    with pytest.raises(BufferError):
        crc32c(np.zeros(8, np.uint8)[::2])


@pytest.mark.parametrize("step", [1, 5, 32, 33, 44, 1000])
def test_pieces_have_the_bytes_and_the_checksum_of_the_whole(step: int) -> None:
    data, crc, at = np.zeros(44, np.uint8), 0, 0
    for piece in in_pieces([PAYLOAD[0], np.empty(0), PAYLOAD[1]], step):
        assert size_of(piece) == min(step, 44 - at)
        crc = copied(piece, data[at : at + size_of(piece)], crc)
        at += size_of(piece)
    assert data.tobytes() == b"".join(buffer.tobytes() for buffer in PAYLOAD)
    assert crc == crc32c(data)
    Guard(JOB, 2, 3).check(SENT, PAYLOAD, crc)
    with pytest.raises(Refused, match="damaged"):
        Guard(JOB, 2, 3).check(SENT, PAYLOAD, crc ^ 1)


@pytest.mark.parametrize("bit", range(8 * HEADER_BYTES))
def test_any_flipped_bit_of_a_header_is_refused(bit: int) -> None:
    data = bytearray(SENT.pack())
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Refused):
        received(bytes(data))


@pytest.mark.parametrize("seed", range(20))
def test_any_flipped_bit_of_a_payload_is_refused(seed: int) -> None:
    rng, copies = random.Random(seed), [buffer.copy() for buffer in PAYLOAD]
    data = as_bytes(rng.choice(copies))
    data[rng.randrange(data.size)] ^= 1 << rng.randrange(8)
    with pytest.raises(Refused, match="damaged"):
        received(SENT.pack(), copies)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"job": bytes(16)}, "job"),
        ({"generation": 1}, "generation"),
        ({"generation": 3}, "generation"),
        ({"rank": 3}, "rank"),
        ({"payload_bytes": 43}, "length"),
        ({"payload_bytes": 1 << 60}, "length"),
        ({"checksum": 0}, "checksum"),
        ({"step": 0}, "checksum"),
        ({"digest": bytes(8)}, "checksum"),
        ({"tag": 4}, "checksum"),
        ({"sequence": 10}, "checksum"),
    ],
)
def test_a_field_with_another_value_is_refused(change: Any, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        received(dataclasses.replace(SENT, **change).pack())
    assert caught.value.reason == reason


@pytest.mark.parametrize(("at", "value", "reason"), [(0, b"HTTP", "magic"), (4, b"\x02\x00", "version")])
def test_another_protocol_is_refused(at: int, value: bytes, reason: str) -> None:
    data = bytearray(SENT.pack())
    data[at : at + len(value)] = value
    with pytest.raises(Refused) as caught:
        received(bytes(data))
    assert caught.value.reason == reason


def test_a_repeated_or_overtaken_message_is_refused() -> None:
    guard = Guard(JOB, 2, 3)

    def sent(sequence: int, tag: int = 3) -> bytes:
        return Header(tag=tag).sealed(PAYLOAD, job=JOB, generation=2, rank=1, sequence=sequence).pack()

    received(sent(5), guard=guard), received(sent(7), guard=guard)
    for sequence in (7, 6, 5, 0):
        with pytest.raises(Refused) as caught:
            received(sent(sequence), guard=guard)
        assert caught.value.reason == "sequence"
    received(sent(6, tag=4), guard=guard)  # tags are received independently
    guard.forget(1)
    received(sent(0), guard=guard)  # a worker that was restarted


def test_a_damaged_message_does_not_use_up_its_number() -> None:
    guard = Guard(JOB, 2, 3)
    with pytest.raises(Refused):
        received(SENT.pack(), [PAYLOAD[0] + 1, PAYLOAD[1]], guard)
    received(SENT.pack(), guard=guard)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        received(data)


# --- layouts -----------------------------------------------------------------------------------------------------------


def test_a_digest_tells_paths_shapes_dtypes_and_configurations_apart() -> None:
    w = np.zeros((2, 3))
    trees = [{"w": w}, {"v": w}, {"w": w.T}, {"w": w.reshape(-1)}, {"w": w.astype(np.float32)}, {"w": w, "b": w}, {}]
    digests = [Layout(tree).digest for tree in trees] + [Layout({"w": w}, "x").digest]
    assert len({*digests}) == len(digests) and {len(digest) for digest in digests} == {8}


def test_arrays_of_any_layout_come_back() -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.float32(3), "c": np.zeros((0, 2)), "d": np.arange(4.0)[::2]}
    layout = Layout(arrays)
    buffers = layout.pack(arrays)
    assert [buffer.dtype for buffer in buffers] == [np.float64, np.float32] and layout.nbytes == 68
    for path, view in layout.views(buffers).items():
        np.testing.assert_array_equal(view, arrays[path])
        assert view.size == 0 or any(np.shares_memory(view, buffer) for buffer in buffers)


def test_an_array_that_fills_its_buffer_is_not_copied() -> None:
    arrays = {"a": np.zeros((2, 3)), "b": np.zeros(2, np.float32)}
    assert all(np.shares_memory(*pair) for pair in zip(Layout(arrays).pack(arrays), arrays.values(), strict=True))


def test_scatter_divides_bytes_otherwise() -> None:
    targets = [np.zeros(3, np.uint8), np.zeros(0), np.zeros(13, np.uint8)]
    scatter([np.arange(1.0), np.zeros(0), np.arange(2, dtype=np.int32)], targets)
    whole = np.concatenate(targets).astype(np.uint8).tobytes()
    assert whole == np.arange(1.0).tobytes() + np.arange(2, dtype=np.int32).tobytes()
    with pytest.raises(Refused, match="8 bytes of payload: expected 16"):
        scatter([np.zeros(1)], [np.zeros(2)])


@given(st.binary(max_size=120))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_gradient_of_any_bytes_is_refused_or_fits(data: bytes) -> None:
    codec = GradientCodec({"t": np.zeros((3, 1)), "b": np.zeros(1, np.float32)})
    try:
        found = codec.decode(np.frombuffer(data, np.uint8).copy())
    except Refused:
        return
    assert found["t"].shape == (3, 1) and found["b"].shape == (1,)


def test_gradients_of_half_precision_are_sent_in_float32() -> None:
    codec = GradientCodec({"w": np.zeros(3, np.float16)})
    (found,) = codec.decode(
        np.concatenate([as_bytes(b) for b in codec.encode({"w": np.array([1e-9, 1, 2], np.float32)})])
    ).values()
    assert found.dtype == np.float32 and found[0] == np.float32(1e-9)


def test_rows_of_a_gradient_come_back() -> None:
    codec = GradientCodec({"t": np.zeros((5, 2, 2), np.float32), "w": np.zeros(3, np.float32)})
    rows = SparseRows([0, 4], np.arange(8, dtype=np.float32).reshape(2, 2, 2), (5, 2, 2))
    payload = np.concatenate([as_bytes(b) for b in codec.encode({"t": rows, "w": np.ones(3, np.float32)})])
    assert payload.size % 8 == 0 and payload.size <= codec.most_bytes
    np.testing.assert_array_equal(codec.decode(payload)["t"].todense(), rows.todense())


def test_messages_of_every_malformed_kind_do_not_reach_a_worker() -> None:
    def worker(comm: Any) -> Any:
        if comm.rank:
            good = [np.full(2, 7.0)]
            sealed = Header(tag=1).sealed(good, job=comm.job, generation=0, rank=1, sequence=0)
            headers = (
                dataclasses.replace(sealed, job=bytes(16)),
                dataclasses.replace(sealed, generation=4),
                dataclasses.replace(sealed, step=9),
                sealed,
                sealed,
            )
            whole = [header.pack() + good[0].tobytes() for header in headers]
            # The first has another tag, and the second is shorter than a header.
            for message in (bytes(8), sealed.pack()[:-1], *whole):
                comm._post(0, np.frombuffer(message, np.uint8))
            comm.send(0, Header(tag=2), [])
            return None
        found = np.zeros(2)
        assert comm.recv_any([], tag=2) is not None
        steps = []
        while comm.recv_any([found], tag=1, timeout=0.0) is not None:
            steps.append(found.tolist())
        return steps, dict(comm.refused)

    steps, refused = distributed.run(worker, workers=2)[0]
    assert steps == [[7.0, 7.0]]
    assert refused == {"length": 1, "job": 1, "generation": 1, "checksum": 1, "sequence": 1}
