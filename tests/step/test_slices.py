"""Slices of parameters and layouts of places: slices cover a parameter, tensors do not overlap, ranges are read as they lie in the file."""

from __future__ import annotations

import mmap
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from oxigrad.step.placement.slices import laid_out, laid_out_as_in_file, sliced
from oxigrad.step.slice import Slice

BLOCK, PAGE = 256, mmap.PAGESIZE


@given(st.integers(0, 20_000), st.integers(1, 50_000), st.integers(1, 16), st.sampled_from([0, 1, 4096]))
def test_slices_cover_a_parameter_in_units(elements: int, size: int, each: int, unit: int) -> None:
    size_of = lambda part: part.count * each  # noqa: E731
    slices = sliced("p", None, elements, size_of, size, unit=unit)
    covered = [i for part, _ in slices for i in range(part.first, part.stop)]
    assert covered == [*range(elements)]
    assert all(count == size_of(part) for part, count in slices)
    if not unit:
        assert slices == [(Slice("p", None, 0, elements), elements * each)]
        return
    least = max(BLOCK, unit)
    assert all(part.first % least == 0 for part, _ in slices)
    assert all(count <= max(size, least * each) for _, count in slices)
    if size > (PAGE + 1) * each:
        assert all(part.first % PAGE == 0 for part, _ in slices)


@given(st.lists(st.integers(0, 1000)))
def test_tensors_in_a_place_do_not_overlap(sizes: list[int]) -> None:
    starts, size = laid_out(sizes)
    assert len(starts) == len(sizes)
    assert all(start % 64 == 0 for start in starts)
    ends = [start + count for start, count in zip(starts, sizes, strict=True)]
    assert all(end <= following for end, following in zip(ends, [*starts, size][1:], strict=True))


@given(st.lists(st.tuples(st.sampled_from([0, 0, 64, 3 * 64, 5 * PAGE]), st.integers(1, 3 * PAGE)), max_size=12))
def test_slots_lie_in_a_place_as_in_the_file(gaps: list[tuple[int, int]]) -> None:
    spans: list[tuple[int, int]] = []
    for gap, count in gaps:
        end = sum(spans[-1]) if spans else 0
        spans.append((-(-end // 64) * 64 + gap, count))
    starts, ranges, size = laid_out_as_in_file(spans)
    file: dict[int, Any] = {at: (first, at) for first, count in spans for at in range(first, first + count)}
    place: dict[int, Any] = {}
    for first, at, count in ranges:
        assert first % PAGE == at % PAGE
        assert at + count <= size
        for i in range(count):
            assert at + i not in place
            place[at + i] = file.get(first + i)
    for (first, count), start in zip(spans, starts, strict=True):
        assert [place[start + i] for i in range(count)] == [(first, first + i) for i in range(count)]
    assert len(ranges) <= 1 + sum(gap > 0 for gap, _ in gaps)
