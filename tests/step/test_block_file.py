"""Reads and writes of long ranges of a file that is mapped too, past the page cache and by way of it."""

from __future__ import annotations

import errno
import gc
import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxigrad.step.state import block_file
from oxigrad.step.state.block_file import BlockFile

pytestmark = pytest.mark.skipif(not hasattr(os, "preadv"), reason="there is no preadv")
PAGE = mmap.PAGESIZE
SIZE = 8 * PAGE


@pytest.fixture(params=["past the cache", "by the cache", "refused"])
def long(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges from a page on go past the page cache, or none does, or the file system refuses those that do."""
    monkeypatch.setattr(block_file, "LONG", SIZE + 1 if request.param == "by the cache" else 1)
    if request.param == "refused":
        read, write, opened = os.preadv, os.pwritev, os.open
        direct = set()

        def tracked(path: Any, flags: int, *args: Any) -> int:
            number = opened(path, flags, *args)
            if flags & getattr(os, "O_DIRECT", 0):
                direct.add(number)
            return number

        def refusing(call: Any) -> Any:
            def refused(file: int, *args: Any) -> int:
                if file in direct:
                    raise OSError(errno.EINVAL, "blocks of another size")
                return call(file, *args)

            return refused

        monkeypatch.setattr(os, "open", tracked)
        monkeypatch.setattr(os, "preadv", refusing(read))
        monkeypatch.setattr(os, "pwritev", refusing(write))
    return


Ranges = st.lists(
    st.tuples(st.booleans(), st.integers(0, SIZE), st.integers(0, SIZE), st.integers(0, 255)), max_size=12
)


@pytest.mark.usefixtures("long")
def test_ranges_are_those_of_a_file_of_bytes(tmp_path: Path) -> None:
    @settings(deadline=None, max_examples=60)
    @given(Ranges)
    def run(ranges: list[tuple[bool, int, int, int]]) -> None:
        with tempfile.TemporaryFile(dir=tmp_path) as file, mmap.mmap(-1, 2 * SIZE) as memory:
            file.truncate(SIZE)
            expected = bytearray(SIZE)
            mapped = mmap.mmap(file.fileno(), SIZE)
            blocks = BlockFile(file.fileno(), "a file")
            for is_write, one, other, byte in ranges:
                start, stop = min(one, other), max(one, other)
                view = memoryview(memory)[start % PAGE : start % PAGE + stop - start]
                if is_write:
                    view[:] = bytes((byte + at) % 256 for at in range(stop - start))
                    expected[start:stop] = view
                    blocks.write(start, view)
                else:
                    if stop > start:
                        mapped[start] = expected[start] = byte
                    blocks.read(start, view)
                    assert view == expected[start:stop]
                assert mapped[:] == expected
                view.release()
            mapped.close()

    run()


@pytest.mark.parametrize("call", ["preadv", "pwritev"])
def test_calls_that_end_early_are_continued(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = getattr(os, call)
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(bytes(range(250)))
        file.flush()
        blocks = BlockFile(file.fileno(), "a file")
        monkeypatch.setattr(os, call, lambda number, parts, start: whole(number, [parts[0][:7]], start))
        memory = memoryview(bytearray(range(100, 150)))
        (blocks.read if call == "preadv" else blocks.write)(20, memory)
        assert bytes(memory) == (bytes(range(20, 70)) if call == "preadv" else bytes(range(100, 150)))
        file.seek(20)
        assert file.read(50) == bytes(memory)


def test_errors_have_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> int:
        raise OSError(errno.EIO, "failed")

    with tempfile.TemporaryFile(dir=tmp_path) as file:
        blocks = BlockFile(file.fileno(), "a file")
        with pytest.raises(OSError, match="a file: it ends before byte 30"):
            blocks.read(20, memoryview(bytearray(10)))
        monkeypatch.setattr(os, "pwritev", failing)
        with pytest.raises(OSError, match="a file: Input/output error") as raised:
            blocks.write(20, memoryview(bytearray(10)))
        assert raised.value.errno == errno.EIO


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="there is no O_DIRECT")
@pytest.mark.parametrize("call", ["preadv", "pwritev"])
def test_a_file_system_that_is_not_coherent_is_read_by_the_cache(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_file, "LONG", 1)
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(bytes(range(200)))
        file.flush()
        own, calls = file.fileno(), list[int]()
        whole = getattr(os, call)

        def incoherent(number: int, parts: Any, start: int) -> int:
            calls.append(number)
            return whole(number, parts, start) if number == own else len(parts[0])

        monkeypatch.setattr(os, call, incoherent)
        blocks = BlockFile(own, "a file")
        assert os.fstat(own).st_size == 200
        file.truncate(4 * PAGE)
        calls.clear()
        with mmap.mmap(-1, 4 * PAGE) as memory, mmap.mmap(own, 4 * PAGE) as mapped:
            if call == "preadv":
                blocks.read(0, memoryview(memory))
                assert memory[:200] == bytes(range(200))
            else:
                memory[:] = b"a" * (4 * PAGE)
                blocks.write(0, memoryview(memory))
                assert mapped[:] == memory[:]
        assert calls == [own]


def test_ranges_of_pages_go_past_the_cache_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above test nothing of it."""
    monkeypatch.setattr(block_file, "LONG", 1)
    with tempfile.TemporaryFile(dir=tmp_path) as file, mmap.mmap(-1, 3 * PAGE) as memory:
        file.truncate(3 * PAGE)
        blocks = BlockFile(file.fileno(), "a file")
        if blocks._direct is None:
            pytest.skip("the file system has no such reads")
        used, whole = list[int](), os.pwritev
        monkeypatch.setattr(os, "pwritev", lambda number, *args: (used.append(number), whole(number, *args))[1])
        blocks.write(5, memoryview(memory)[5 : 2 * PAGE + 7])
        assert used == [file.fileno(), blocks._direct, file.fileno()]


def test_the_second_descriptor_is_closed(tmp_path: Path) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("there is no /proc")
    gc.collect()
    count = len(os.listdir("/proc/self/fd"))
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        blocks = BlockFile(file.fileno(), "a file")
        del blocks
        gc.collect()
    assert len(os.listdir("/proc/self/fd")) == count
