"""Indices that are data: labels and tokens of a batch, in functions that are recorded with one batch and replayed with another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import agrees

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
