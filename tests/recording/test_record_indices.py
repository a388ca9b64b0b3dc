"""Indices that are data: labels and tokens of a batch, in functions that are recorded with one batch and replayed with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal

import oxigrad as ox
from oxigrad import xp

SCORES = np.sin(np.arange(12.0)).reshape(4, 3)
LABELS = np.array([0, 2, 1, 1])
OTHERS = np.array([2, 2, 0, 1])


def picked(scores: Any, labels: Any) -> Any:
    return xp.mean(xp.take_along_axis(scores, labels[:, None], axis=1)[:, 0])


FUNCTIONS = {
    "take_along_axis": picked,
    "take_along_axis of a table": lambda scores, labels: xp.sum(scores) * picked(SCORES, labels),
    "index": lambda scores, labels: xp.sum(scores[labels] ** 2),
    "index of two axes": lambda scores, labels: xp.sum(scores[xp.arange(4), labels] ** 2),
    "take": lambda scores, labels: xp.sum(xp.take(scores, labels, axis=0) ** 2),
    "scatter_add": lambda scores, labels: xp.sum(ox.grad(lambda s: xp.sum(s[labels]))(scores) * scores),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("transform", [lambda f: f, ox.value_and_grad], ids=["function", "derivative"])
def test_a_recording_with_one_batch_of_indices_is_replayed_with_another(name, transform):
    f = transform(FUNCTIONS[name])
    g = ox.record(f)
    for labels in (LABELS, LABELS, OTHERS):
        assert agrees(g, f, SCORES, labels)
    assert g.why is None
    assert g.replays == 2
    assert len(g.recordings) == 1


# What has as many parts as an integer says.
COUNTS: dict[str, Callable[[Any, Any], Any]] = {
    "a list": lambda x, n: [x * 2.0] * n,
    "a list on the right": lambda x, n: n * [x * 2.0],
    "a tuple": lambda x, n: (x, 1.0) * n,
    "a list of constants": lambda x, n: sum([0.5] * n) * x,
    "a list in place": lambda x, n: xp.stack([x, *_repeated([x * 2.0], n)]),
    "nested lists": lambda x, n: [[row * 2.0] * n for row in x],
    "text": lambda x, n: x * len("ab" * n),
    "bytes": lambda x, n: x * len(n * b"ab"),
    "parts": lambda x, n: xp.stack([xp.sum(part) for part in np.array_split(x[0, :2], n)]),
    "parts by name": lambda x, n: x * len(np.array_split(x[0, :2], indices_or_sections=n)),
    "empty parts": lambda x, n: x * len(np.split(x[:0], n)),
}


def _repeated(values: list[Any], n: Any) -> list[Any]:
    values *= n
    return values


@pytest.mark.parametrize("integer", [int, np.int64])
@pytest.mark.parametrize("f", COUNTS.values(), ids=COUNTS)
def test_a_count_of_parts_is_checked(f: Callable[[Any, Any], Any], integer: Callable[[int], Any]) -> None:
    """Audits with the count of the first call find nothing."""
    g: Any = ox.record(f, audit="never")
    for at, n in enumerate((3, 3, 4, 3, 1, 4, 3)):
        x = SCORES + at
        assert equal(g(x, integer(n)), f(x, integer(n))), g
    assert g.why is None, g
