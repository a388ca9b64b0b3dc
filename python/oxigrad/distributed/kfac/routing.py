"""The exchange of named arrays between chosen workers, of shapes and dtypes that all of them know."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.errors import Refused, TimedOut
from oxigrad.distributed.messages.message import Header, Layout, as_bytes, scatter


class ArraySpec(NamedTuple):
    """The shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclasses.dataclass(frozen=True, order=True)
class Transfer:
    """The transfer of an array, given by name, from one worker to another."""

    name: str
    source: int
    dest: int


def exchanged(
    communicator: Communicator,
    local: Mapping[str, np.ndarray],
    specs: Mapping[str, ArraySpec],
    transfers: Sequence[Transfer],
    *,
    tag: int,
    step: int,
    timeout: float | None = None,
) -> dict[str, np.ndarray]:
    """The arrays that are transferred to this worker, by name. All workers call it with the same transfers and specs.

    ``local`` are the arrays of this worker. Where each array goes to all other workers, they are gathered; otherwise each pair of workers exchanges one
    message. Raises `TimedOut` and `WorkerLost` as the communicator does, and `Refused` for a message of another step or other arrays.
    """
    if not transfers:
        return {}
    if _is_complete(transfers, communicator.size):
        return _gathered(communicator, local, specs, transfers, timeout)
    rank = communicator.rank
    for dest in sorted({each.dest for each in transfers if each.source == rank}):
        names = [each.name for each in transfers if (each.source, each.dest) == (rank, dest)]
        layout = _layout(names, specs)
        communicator.send(dest, Header(tag, step, layout.digest), layout.pack({name: local[name] for name in names}))
    received: dict[str, np.ndarray] = {}
    for source in sorted({each.source for each in transfers if each.dest == rank}):
        layout = _layout([each.name for each in transfers if (each.source, each.dest) == (source, rank)], specs)
        buffers = layout.empty()
        head = communicator.recv_any(buffers, tag=tag, source=source, timeout=timeout)
        if head is None:
            raise TimedOut(
                f"KFAC: no message from worker {source} within {communicator.timeout if timeout is None else timeout:g} s"
            )
        if (head.step, head.digest) != (step, layout.digest):
            raise Refused(
                "step", f"KFAC: a message of worker {source} is of step {head.step} or of other layers: expected {step}"
            )
        received |= layout.views(buffers)
    return received


def _is_complete(transfers: Iterable[Transfer], size: int) -> bool:
    """Whether each array goes from one worker to all others."""
    pairs: dict[str, set[int]] = {}
    sources: dict[str, set[int]] = {}
    for each in transfers:
        pairs.setdefault(each.name, set()).add(each.dest)
        sources.setdefault(each.name, set()).add(each.source)
    return all(len(sources[name]) == 1 and len(dests) == size - 1 for name, dests in pairs.items())


def _gathered(
    communicator: Communicator,
    local: Mapping[str, np.ndarray],
    specs: Mapping[str, ArraySpec],
    transfers: Iterable[Transfer],
    timeout: float | None,
) -> dict[str, np.ndarray]:
    sources = {each.name: each.source for each in transfers}
    by_rank = [[name for name, source in sources.items() if source == rank] for rank in range(communicator.size)]
    layouts = [_layout(names, specs) for names in by_rank]
    rank, arrays = communicator.rank, {}
    mine = layouts[rank].pack({name: local[name] for name in by_rank[rank]})
    whole = np.concatenate([np.empty(0, np.uint8), *map(as_bytes, mine)])
    for other, (layout, received) in enumerate(
        zip(layouts, communicator.all_gather_v(whole, timeout=timeout), strict=True)
    ):
        if other == rank:
            continue
        if received.nbytes != layout.nbytes:
            raise Refused("length", f"KFAC: worker {other} sent {received.nbytes} bytes: expected {layout.nbytes}")
        scatter([received], buffers := layout.empty())
        arrays |= layout.views(buffers)
    return arrays


def _layout(names: Iterable[str], specs: Mapping[str, ArraySpec]) -> Layout:
    return Layout({name: specs[name] for name in names})
