"""PyTorch as the engine uses it: groups of gloo, called directly, also outside of the program's own group."""

import contextlib
import datetime
import importlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from oxigrad.distributed.errors import CommunicationError
from oxigrad.distributed.messages.reduction import Op
from oxigrad.extend import library

# The library, and not the package that this file is in, which has the name too.
torch: Any = library("torch", "the engine of torch needs PyTorch: python -m pip install torch")
distributed: Any = importlib.import_module("torch.distributed")
rendezvous: Any = importlib.import_module("torch.distributed.rendezvous").rendezvous

LONG = datetime.timedelta(days=365)
"""The time-out that gloo has: waits end by the time-outs of the engine. A channel may be silent for as long."""

_UNUSED_TAG = 77

# The stores of the program by place, with the rank and the number of processes, and the numbers of its groups.
_stores: dict[tuple[str | None, ...], Any] = {}
_groups = itertools.count()


class Group:
    """The connections of one process to the others by gloo. Operations return works, which have begun.

    Args:
        group: the group of torch, of any class that has the methods of ``ProcessGroup``.
        rank, size: the place of this process.
    """

    rank: int
    size: int

    def __init__(self, group: Any, rank: int, size: int) -> None:
        self._group, self.rank, self.size = group, rank, size

    @classmethod
    def of_world(cls, ranks: list[int]) -> "Group":
        """A group of processes of ``torch.distributed``, all of which make it."""
        group = distributed.new_group(ranks, timeout=LONG, backend="gloo")
        return cls(group, ranks.index(distributed.get_rank()), len(ranks))

    @classmethod
    def connected(cls, store: Any, prefix: str, rank: int, size: int, seconds: float) -> "Group":
        """A group of processes that have a store in common, and call this at about the same time.

        Raises `RuntimeError` where one does not connect within ``seconds``.
        """
        store.set_timeout(datetime.timedelta(seconds=seconds))
        # Gloo waits five times as long as it is told for a connection to a process that has given its address, and may
        # have died since.
        limit = datetime.timedelta(seconds=seconds / 5)
        return cls(
            distributed.ProcessGroupGloo(distributed.PrefixStore(prefix, store), rank, size, timeout=limit), rank, size
        )

    def all_gather(self, rows: np.ndarray, part: np.ndarray) -> Any:
        """Fills ``rows`` with the bytes of all processes by rank."""
        return self._group._allgather_base(torch.from_numpy(rows), torch.from_numpy(part), _options("AllgatherOptions"))

    def all_to_all(self, rows: np.ndarray, data: np.ndarray, received: list[int], sent: list[int]) -> Any:
        """Sends and receives as many bytes to and from each process."""
        options = _options("AllToAllOptions")
        return self._group.alltoall_base(torch.from_numpy(rows), torch.from_numpy(data), received, sent, options)

    def broadcast(self, data: np.ndarray, root: int) -> Any:
        """Replaces an array by that of ``root``."""
        return self._group.broadcast([torch.from_numpy(data)], _options("BroadcastOptions", rootRank=root))

    def all_reduce(self, buffer: np.ndarray, op: Op) -> Any:
        """The sum or the maximum over all processes, in any order; a mean is a sum here."""
        kind = distributed.ReduceOp.MAX if op == "max" else distributed.ReduceOp.SUM
        return self._group.allreduce([torch.from_numpy(buffer)], _options("AllreduceOptions", reduceOp=kind))

    def send(self, array: np.ndarray, dest: int) -> None:
        """Sends an array. Returns when it is received, also by a stopped process."""
        self._group.send([torch.from_numpy(array)], dest, 0).wait(LONG)

    def receive(self, array: np.ndarray, source: int) -> None:
        """Receives into an array."""
        self._group.recv([torch.from_numpy(array)], source, 0).wait(LONG)

    def close(self) -> None:
        """Ends the connections: operations that have begun fail, in this process and in the others.

        A wait that times out makes gloo close all connections of its group, which no other call does in all versions of
        torch.
        """
        for rank in set(range(self.size)) - {self.rank}:
            with contextlib.suppress(RuntimeError):
                self._group.recv([torch.empty(1, device="cpu")], rank, _UNUSED_TAG).wait(
                    datetime.timedelta(milliseconds=1)
                )


def _options(name: str, **values: Any) -> Any:
    """Options of an operation, without a time-out of its own."""
    options = getattr(distributed.distributed_c10d, name)()
    for field, value in {"timeout": LONG, **values}.items():
        setattr(options, field, value)
    return options


# What torchrun tells a process of its job.
_ENVIRONMENT = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


def init_group(seconds: float) -> None:
    """Initializes ``torch.distributed`` with gloo from the environment; again after ``destroy_process_group`` too.

    Each group has keys of its own in one store: a process would connect to the places in which the others were in the
    former group.
    """
    limit = datetime.timedelta(seconds=seconds)
    place = tuple(os.environ.get(name) for name in _ENVIRONMENT)
    if place not in _stores:
        if absent := [name for name, value in zip(_ENVIRONMENT, place, strict=True) if value is None]:
            raise RuntimeError(
                f"{', '.join(absent)} are not in the environment: expected a process of a job, as started by "
                "torchrun --nproc-per-node 2 program.py, or a group of torch.distributed"
            )
        _stores[place] = next(rendezvous("env://", timeout=limit))
    store, rank, size = _stores[place]
    part = distributed.PrefixStore(f"oxigrad/group/{next(_groups)}", store)
    distributed.init_process_group("gloo", store=part, rank=rank, world_size=size, timeout=limit)


def store_of_program() -> Any:
    """A separate connection to the store of the program's group: an operation that waits there delays no other.

    The prefixes that torch gives to keys are left out, so that processes outside of the program's group find the same
    keys.
    """
    store = distributed.distributed_c10d._get_default_store()
    while isinstance(store, distributed.PrefixStore):
        store = store.underlying_store
    return client_of(store.host, store.port, 60.0) if isinstance(store, distributed.TCPStore) else store


def client_of(host: str, port: int, seconds: float) -> Any:
    """A connection to the store of another process."""
    limit = datetime.timedelta(seconds=seconds)
    return distributed.TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=limit)


@contextlib.contextmanager
def failures_of_store(kind: type[CommunicationError], text: str) -> Iterator[None]:
    """A context in which a store that cannot be reached raises an error of communication."""
    try:
        yield
    except CommunicationError:
        raise
    except RuntimeError as error:
        raise kind(f"{text} ({str(error).splitlines()[0]})") from error
