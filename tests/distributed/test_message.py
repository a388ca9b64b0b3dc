"""Messages: no foreign or truncated one is used."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxigrad import SparseRows, distributed
from oxigrad._core import crc32c
from oxigrad.distributed import Header, Layout, Refused
from oxigrad.distributed.engines.mailbox import Mailbox
from oxigrad.distributed.messages.gradients import GradientCodec
from oxigrad.distributed.messages.message import (
    HEADER_BYTES,
    as_bytes,
    checksum,
    scatter,
)

JOB = bytes(range(16))
PAYLOAD = [np.arange(4.0), np.arange(3, dtype=np.float32)]
SENT = Header(tag=3, step=1 << 40, digest=b"12345678").sealed(PAYLOAD, job=JOB, generation=2, rank=1)


def received(header: bytes, payload: list[np.ndarray] = PAYLOAD) -> Header:
    """The header of a message that a worker of the job has received."""
    mail, data = Mailbox(JOB, 2, 3), header + b"".join(buffer.tobytes() for buffer in payload)
    mail.put(np.frombuffer(data, np.uint8))
    taken = mail.take(3, None)
    assert taken is not None and taken.data[HEADER_BYTES:].tobytes() == data[HEADER_BYTES:]
    return taken.header


def test_a_header_is_56_bytes_and_comes_back() -> None:
    assert len(SENT.pack()) == HEADER_BYTES == 56
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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"job": bytes(16)}, "job"),
        ({"generation": 1}, "generation"),
        ({"generation": 3}, "generation"),
        ({"rank": 3}, "rank"),
        ({"payload_bytes": 43}, "length"),
        ({"payload_bytes": 1 << 60}, "length"),
    ],
)
def test_a_field_with_another_value_is_refused(change: Any, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        received(SENT._replace(**change).pack())
    assert caught.value.reason == reason


@pytest.mark.parametrize(("at", "value", "reason"), [(0, b"HTTP", "magic"), (4, b"\x02\x00", "version")])
def test_another_protocol_is_refused(at: int, value: bytes, reason: str) -> None:
    data = bytearray(SENT.pack())
    data[at : at + len(value)] = value
    with pytest.raises(Refused) as caught:
        received(bytes(data))
    assert caught.value.reason == reason


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


def test_scatter_divides_the_bytes_of_a_message() -> None:
    targets = [np.zeros(3, np.uint8), np.zeros(0), np.zeros(13, np.uint8)]
    payload = np.arange(16, dtype=np.uint8)
    scatter(payload, targets)
    assert np.concatenate(targets).astype(np.uint8).tobytes() == payload.tobytes()
    with pytest.raises(Refused, match="8 bytes of payload: expected 16"):
        scatter(np.zeros(8, np.uint8), [np.zeros(2)])


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
            sealed = Header(tag=1).sealed(good, job=comm.job, generation=0, rank=1)
            headers = (
                sealed._replace(job=bytes(16)),
                sealed._replace(generation=4),
                sealed._replace(rank=0),
                sealed._replace(payload_bytes=8),
                sealed,
            )
            whole = [header.pack() + good[0].tobytes() for header in headers]
            told: list[str] = []
            # The first is no message, and the second is shorter than a header.
            for message in (bytes(8), sealed.pack()[:-1], *whole):
                try:
                    comm._post(0, np.frombuffer(message, np.uint8))
                except Refused as error:
                    told.append(error.reason)
            comm.send(0, Header(tag=2), [])
            return told
        found = np.zeros(2)
        assert comm.recv_any([], tag=2) is not None
        steps = []
        while comm.recv_any([found], tag=1, timeout=0.0) is not None:
            steps.append(found.tolist())
        return steps

    steps, told = distributed.run(worker, workers=2)
    assert steps == [[7.0, 7.0]]
    assert told == ["length", "length", "job", "generation", "rank", "length"]
