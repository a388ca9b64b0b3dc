"""The GPU of each worker: no two workers have the same one, unless that is asked for."""

import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from oxigrad.cuda import DeviceError
from oxigrad.distributed.communicator import Communicator, current
from oxigrad.extend import driver


class WorkerDevice(NamedTuple):
    """The GPU of a worker: ``device`` is its number among those that the worker's process sees, as in ``cuda:0``."""

    rank: int
    host: str
    device: int
    uuid: str
    name: str

    def __str__(self) -> str:
        return f"rank {self.rank}: cuda:{self.device} on {self.host}, {self.name} ({self.uuid})"


def devices(
    communicator: Communicator | None = None, *, shared: bool = False, timeout: float | None = None
) -> list[WorkerDevice]:
    """The GPU of each worker, by rank: a different one each, visible to its process (``CUDA_VISIBLE_DEVICES``).

    Args:
        communicator: communicator of this worker; by default the `current` one of the thread.
        shared: whether several workers may have the same GPU.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    All workers call it, and get the same list: ``torch.cuda.set_device(devices(comm)[comm.rank].device)``. UUIDs
    identify GPUs. A launcher may therefore show each worker all GPUs of a host, or only one. With ``shared``, workers
    share GPUs if there are too few, as evenly as possible. Needs the extra "cuda".

    Raises `ValueError` on all workers if one of them has no GPU for itself. The error names its rank, its host, and the
    GPUs that it sees.
    """
    used = current() if communicator is None else communicator
    description = json.dumps(_own()).encode()
    rows = used.all_gather_v(np.frombuffer(description, np.uint8), timeout=timeout)
    return assigned([json.loads(bytes(row)) for row in rows], shared=shared)


def _own() -> dict[str, Any]:
    """The host of this process, the GPUs that it sees, and why there are none."""
    try:
        devices, why = driver().devices(), "its process sees no GPU"
    except DeviceError as error:
        devices, why = [], str(error)
    return {"host": socket.gethostname(), "devices": devices, "why": why}


def assigned(workers: Sequence[Mapping[str, Any]], *, shared: bool = False) -> list[WorkerDevice]:
    """The GPU of each worker, given the host of each, and the UUIDs and names of the GPUs that it sees.

    >>> two = [["GPU-a", "H100"], ["GPU-b", "H100"]]
    >>> [each.device for each in assigned([{"host": "n", "devices": two}] * 2)]
    [0, 1]
    """
    seen = [[uuid for uuid, _ in worker["devices"]] for worker in workers]
    owner: dict[str, int] = {}

    def takes(rank: int, tried: set[str]) -> bool:
        """Whether a worker gets a GPU, which another worker may give up for a second one (an augmenting path)."""
        for uuid in sorted(seen[rank], key=owner.__contains__):  # first one that nobody has
            if uuid not in tried:
                tried.add(uuid)
                if uuid not in owner or takes(owner[uuid], tried):
                    owner[uuid] = rank
                    return True
        return False

    without = [rank for rank in range(len(workers)) if not takes(rank, set())]
    of_rank = {rank: uuid for uuid, rank in owner.items()}
    count = dict.fromkeys(owner, 1)
    for rank in without:
        if not shared or not seen[rank]:
            raise ValueError(_refusal(rank, workers, owner))
        of_rank[rank] = min(seen[rank], key=lambda uuid: count.get(uuid, 0))
        count[of_rank[rank]] = count.get(of_rank[rank], 0) + 1
    return [
        WorkerDevice(rank, worker["host"], at := seen[rank].index(of_rank[rank]), *worker["devices"][at])
        for rank, worker in enumerate(workers)
    ]


def _refusal(rank: int, workers: Sequence[Mapping[str, Any]], owner: Mapping[str, int]) -> str:
    worker = workers[rank]
    gpus = ", ".join(f"{uuid} of rank {owner[uuid]}" for uuid, _ in worker["devices"])
    return (
        f"the worker of rank {rank} on {worker['host']} has no GPU of its own: it sees {gpus}; expected as many GPUs "
        "as workers on each host, or shared=True"
        if gpus
        else f"the worker of rank {rank} on {worker['host']} has no GPU: {worker['why']}"
    )
