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


# What has as many elements as an integer says, or as a condition holds for, and is read for its shape alone.
SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "nonzero": lambda x, n: len(np.nonzero(x > n + 2.0)[0]),
    "xp.nonzero": lambda x, n: len(xp.nonzero(x > n + 2.0)[0]),
    "flatnonzero": lambda x, n: np.flatnonzero(x > n + 2.0).size,
    "argwhere": lambda x, n: np.argwhere(x > n + 2.0).shape[0],
    "where": lambda x, n: np.where(x > n + 2.0)[0].size,
    "a mask": lambda x, n: len(x[x > n + 2.0]),
    "a mask of numbers": lambda x, n: len(x[[x[0] > 2.0, x[1] > 3.0, x[2] > n + 2.0]]),
    "what follows a mask": lambda x, n: xp.concat([x, xp.exp(x[x > n + 2.0])]).size,
    "a mask in a derivative": lambda x, n: ox.grad(lambda x: xp.sum(x) * len(x[x > n + 2.0]))(x)[0],
    "a loop over a mask": lambda x, n: sum(1 for _ in x[x > n + 2.0]),
    "compress": lambda x, n: x.compress(x > n + 2.0).size,
    "np.shape": lambda x, n: np.shape(x[x > n + 2.0])[0],
    "np.size": lambda x, n: np.size(x[x > n + 2.0]),
    "unique": lambda x, n: np.unique(np.floor(x / n)).size,
    "xp.unique_counts": lambda x, n: len(xp.unique_counts(xp.floor(x / n))[0]),
    "bincount": lambda x, n: np.bincount(np.abs(np.array([1, 2]) * n)).size,
    "roots": lambda x, n: len(np.roots([n - 2, 1.0, 2.0])),
    "a slice": lambda x, n: len(x[:n]),
    "a slice of axes": lambda x, n: len(x[None, :n, None][0]),
    "repeat": lambda x, n: np.repeat(x, abs(n)).size,
    "the method repeat": lambda x, n: x.repeat(abs(n)).size,
    "xp.repeat": lambda x, n: len(xp.repeat(x, abs(n))),
    "tile": lambda x, n: np.tile(x, abs(n)).size,
    "xp.tile": lambda x, n: len(xp.tile(x, (abs(n),))),
    "pad": lambda x, n: np.pad(x, abs(n)).size,
    "arange": lambda x, n: len(np.arange(abs(n))),
    "xp.arange": lambda x, n: len(xp.arange(abs(n))),
    "reshape": lambda x, n: np.reshape(np.tile(x, 8), (abs(n), -1)).shape[1],
    "xp.reshape": lambda x, n: xp.reshape(np.tile(x, 8), (abs(n), -1)).shape[1],
    "broadcast_to": lambda x, n: len(np.broadcast_to(x, (abs(n), 3))),
    "diff": lambda x, n: len(np.diff(np.tile(x, 3), n=abs(n))),
    "fft": lambda x, n: len(np.fft.fft(x, n=abs(n))),
    "histogram": lambda x, n: len(np.histogram(x, bins=abs(n))[0]),
    "complex eigenvalues": lambda x, n: 2.0 if np.iscomplexobj(np.linalg.eigvals(_matrix(x, n))) else 3.0,
    "complex roots": lambda x, n: 2.0 if np.roots(x * n + np.arange(3.0)).dtype.kind == "c" else 3.0,
    "automatic bins": lambda x, n: len(np.histogram(x**n, bins="auto")[0]),
    "edges of bins": lambda x, n: len(np.histogram_bin_edges(x**n, bins="fd")),
    "a range of floats": lambda x, n: len(xp.arange(x[0], x[0] + abs(n), 0.5)),
    "a product of polynomials": lambda x, n: len(np.polymul(x, [(n - 2) * 1.0, 1.0])),
    "a remainder of polynomials": lambda x, n: len(np.polydiv(x * x * (n - 2), x[:2])[1]),
    "an open mesh": lambda x, n: len(np.ix_(x > n + 2.0)[0]),
    "parts by an array": lambda x, n: len(np.split(x, np.astype(x[:1] * n, int))[0]),
    "pads by an array": lambda x, n: np.pad(x, np.astype(np.abs(x[:2] * n), int)).size,
    "a real part that is not all at first": lambda x, n: np.real_if_close(x + 1j * (n + 2)).itemsize,
    "a real part that is all": lambda x, n: np.real_if_close(x + 1j * (n - 2)).itemsize,
    "the class of a power": lambda x, n: 2.0 if isinstance(2**n, int) else 3.0,
}


def _matrix(x: Any, n: Any) -> Any:
    return xp.stack([xp.stack([x[0], x[1]]), xp.stack([x[1] * n, x[0]])])


@pytest.mark.parametrize("f", SIZES.values(), ids=SIZES)
def test_a_size_that_depends_on_data_is_checked(f: Callable[[Any, Any], Any]) -> None:
    """The array itself is no part of the result, so no replay computes it otherwise."""
    g: Any = ox.record(lambda x, n: x * f(x, n), audit="never")
    for at, n in enumerate((2, 2, 4, 2, -2, 4, -3, 2)):
        x = np.arange(1.0, 4.0) + at
        assert equal(g(x, n), x * f(x, n)), g
    assert g.recordings, g


SYMBOLS = [2, 0, 1, 1]


def picked_columns(scores: Any) -> Any:
    return sum(xp.sum(scores[:, symbol]) for symbol in SYMBOLS)


def test_integers_that_index_alone_need_no_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shape of a scattered cotangent does not depend on its key, so a replay takes other integers."""
    f = ox.value_and_grad(picked_columns)
    g = ox.record(f)
    for symbols in ([2, 0, 1, 1], [2, 0, 1, 1], [0, 0, 2, 1]):
        monkeypatch.setitem(globals(), "SYMBOLS", symbols)
        assert agrees(g, f, SCORES)
    assert len(g.recordings) == 1
    assert ", 0 checks" in repr(g)
