"""Colorings of sparsity patterns: columns (or rows) of one color share a seed, whose product has all their nonzeros.

Column colorings are greedy: a column gets the first color that no other column sharing a row with it has (Curtis,
Powell and Reid, 1974). The color sets of rows are ints, so the work is proportional to the number of nonzeros. Hessians
get star colorings: neighbors differ, and each path of four vertices has at least three colors (Coleman and Moré, 1984;
Gebremedhin, Tarafdar, Manne and Pothen, 2007). By symmetry, each nonzero is then alone in the product of one of its two
places.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np


def columns(pattern: Any) -> np.ndarray:
    """The color of each column of a CSR pattern; -1 for one without nonzeros. Columns of one color share no row."""
    by_row = np.diff(pattern.indptr)
    by_column = pattern.tocsc()
    least = int(by_row.max(initial=0))
    first = _greedy(by_column, range(pattern.shape[1]))
    if first.max(initial=-1) + 1 == least:
        return first  # no coloring has fewer
    second = _greedy(by_column, _largest_first(by_column))
    return min(first, second, key=lambda colors: colors.max(initial=-1))


def star(pattern: Any) -> np.ndarray:
    """The color of each vertex of a symmetric CSR pattern: a star coloring; -1 for one without nonzeros."""
    natural, by_degree = _star(pattern, range(pattern.shape[0])), _star(pattern, _largest_first(pattern))
    return min(natural, by_degree, key=lambda colors: colors.max(initial=-1))


def count(colors: np.ndarray) -> int:
    """The number of colors."""
    return int(colors.max(initial=-1)) + 1


def star_places(pattern: Any, colors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each nonzero of a symmetric CSR pattern, the row and color of the compressed matrix that hold it."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    at = pattern.indices
    keys = rows.astype(np.int64) * (count(colors) + 1) + colors[at]
    _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
    alone = times[which] == 1
    return np.where(alone, rows, at), np.where(alone, colors[at], colors[rows])


def _largest_first(compressed: Any) -> list[int]:
    """The lines of a compressed matrix, those with the most nonzeros first."""
    return np.argsort(-np.diff(compressed.indptr), kind="stable").tolist()


def _lowest_free(used: int) -> int:
    """The number of the lowest bit that is zero."""
    return (~used & (used + 1)).bit_length() - 1


def _greedy(by_column: Any, order: Iterable[int]) -> np.ndarray:
    colors = np.full(by_column.shape[1], -1)
    used = [0] * by_column.shape[0]
    ends, rows = by_column.indptr.tolist(), by_column.indices.tolist()
    for column in order:
        nonzeros = rows[ends[column] : ends[column + 1]]
        if not nonzeros:
            continue
        taken = 0
        for row in nonzeros:
            taken |= used[row]
        color = _lowest_free(taken)
        colors[column] = color
        for row in nonzeros:
            used[row] |= 1 << color
    return colors


def _star(pattern: Any, order: Iterable[int]) -> np.ndarray:
    """A greedy star coloring: a vertex gets the lowest color that completes no path of four vertices in two colors."""
    size = pattern.shape[0]
    ends, indices = pattern.indptr.tolist(), pattern.indices.tolist()
    colors = [-1] * size
    # For each vertex: its colored neighbors by color, the set of their colors, and the colors of neighbors that have
    # another neighbor in the vertex's own color. With these the vertex is the end of a path in two colors.
    groups: list[dict[int, list[int]]] = [{} for _ in range(size)]
    seen, paths = [0] * size, [0] * size
    for vertex in order:
        neighbors = indices[ends[vertex] : ends[vertex + 1]]
        if not neighbors:
            continue
        taken = seen[vertex]
        for group in groups[vertex].values():
            if len(group) == 1:
                taken |= paths[group[0]]
            else:
                for neighbor in group:
                    taken |= seen[neighbor]
        color = colors[vertex] = _lowest_free(taken)
        for group in groups[vertex].values():
            if len(group) > 1:
                for neighbor in group:
                    paths[neighbor] |= 1 << color
        for neighbor in neighbors:
            if neighbor == vertex:
                continue
            group = groups[neighbor].setdefault(color, [])
            group.append(vertex)
            seen[neighbor] |= 1 << color
            if colors[neighbor] >= 0 and len(group) > 1:
                for each in group if len(group) == 2 else [vertex]:
                    paths[each] |= 1 << colors[neighbor]
    return np.array(colors, np.int64)
