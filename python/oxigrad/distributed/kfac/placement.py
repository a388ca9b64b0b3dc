"""The placement of decompositions and preconditioned gradients on workers, by cost."""

import dataclasses
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.messages.message import Layout

_Job = TypeVar("_Job", bound=Hashable)


def balanced(costs: Mapping[_Job, float], workers: int) -> dict[_Job, int]:
    """A worker for each job: the costliest job first, to the worker with the least load (Graham 1969).

    The largest load is at most 4/3 of the least possible one. Ties go to the first job and the lowest worker.

    >>> balanced({"a": 5, "b": 4, "c": 3, "d": 3, "e": 3}, 2)
    {'a': 0, 'b': 1, 'c': 1, 'd': 0, 'e': 1}
    """
    loads, placed = [0.0] * workers, {}
    for job in sorted(costs, key=lambda job: -costs[job]):  # sorted is stable
        worker = loads.index(min(loads))
        placed[job] = worker
        loads[worker] += costs[job]
    return {job: placed[job] for job in costs}


@dataclasses.dataclass(frozen=True)
class Placement:
    """Groups of workers, the group of each layer, the worker of each decomposition (Pauloski et al. 2021, KAISA).

    ``factors[layer]`` are the ranks that decompose the factor of its inputs and that of its outputs. All workers of the
    layer's group keep both decompositions and precondition its gradient; one of them gives it to the others.
    """

    groups: tuple[tuple[int, ...], ...]
    layers: Mapping[str, int]
    factors: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, sizes: Mapping[str, tuple[int, int]], workers: int, fraction: float) -> "Placement":
        """The placement of layers with these factor sizes, in groups of ``max(1, round(fraction * workers))``.

        >>> Placement.of({"l1": (3, 2), "l2": (4, 4)}, 2, 0.5).factors
        {'l1': (1, 1), 'l2': (0, 0)}
        """
        width = min(workers, max(1, round(fraction * workers)))
        groups = tuple(tuple(range(start, min(start + width, workers))) for start in range(0, workers, width))
        layers = balanced({layer: a**3 + g**3 for layer, (a, g) in sizes.items()}, len(groups))
        factors: dict[str, tuple[int, int]] = {}
        for number, group in enumerate(groups):
            pairs = {layer: sizes[layer] for layer in sizes if layers[layer] == number}
            jobs = {(layer, side): size**3 for layer, pair in pairs.items() for side, size in enumerate(pair)}
            of = balanced(jobs, len(group))
            factors |= {layer: (group[of[layer, 0]], group[of[layer, 1]]) for layer in pairs}
        return cls(groups, layers, {layer: factors[layer] for layer in sizes})

    def group(self, layer: str) -> tuple[int, ...]:
        """The workers that precondition the gradient of a layer."""
        return self.groups[self.layers[layer]]

    def sender(self, layer: str) -> int:
        """The worker that gives the preconditioned gradient of a layer to those outside of its group."""
        return self.factors[layer][1]


def shared(
    communicator: Communicator,
    local: Mapping[str, np.ndarray],
    specs: Mapping[str, GradientSpec],
    owners: Mapping[str, int],
    timeout: float | None = None,
) -> dict[str, np.ndarray]:
    """The arrays that ``owners`` names, each broadcast by the worker that has it in ``local``.

    All workers call it with the same owners and specs.

    Raises `Refused` for arrays of another size, and errors of communication.
    """
    arrays: dict[str, np.ndarray] = {}
    for root in sorted({*owners.values()}):
        layout = Layout({name: specs[name] for name, owner in owners.items() if owner == root})
        buffers = layout.pack(local) if communicator.rank == root else layout.empty()
        communicator.broadcast(buffers, root, timeout=timeout)
        arrays |= layout.views(buffers)
    return arrays
