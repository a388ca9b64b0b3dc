"""Training with several workers: wrapper optimizers, and the engines that connect the workers.

>>> import numpy as np
>>> from oxigrad import distributed
>>> def worker(comm):
...     total = np.array([float(comm.rank)])
...     comm.all_reduce([total], op="sum")
...     return float(total[0])
>>> distributed.run(worker, engine="threads", workers=3)
[3.0, 3.0, 3.0]
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oxigrad.distributed.communicator import SECONDS, Communicator, adopt, current
from oxigrad.distributed.data import Shard, shard
from oxigrad.distributed.data_parallel.large_batch import LargeBatch
from oxigrad.distributed.data_parallel.optimizer import DataParallel
from oxigrad.distributed.engines.devices import WorkerDevice, devices
from oxigrad.distributed.errors import (
    Aborted,
    CommunicationError,
    Excluded,
    NotSupported,
    Refused,
    TimedOut,
    WorkerLost,
)
from oxigrad.distributed.fields import check_flags
from oxigrad.distributed.kfac.optimizer import KFAC
from oxigrad.distributed.messages.message import Header, Layout
from oxigrad.distributed.messages.reports.clock import Span
from oxigrad.distributed.messages.reports.logs import WorkerFilter
from oxigrad.distributed.messages.reports.table import WorkerReport, WorkerReports
from oxigrad.distributed.messages.reports.timeline import Timeline
from oxigrad.distributed.methods.compression import DeepGradientCompression
from oxigrad.distributed.methods.elastic_average import ElasticAverage
from oxigrad.distributed.methods.model_average import ModelAverage
from oxigrad.distributed.methods.softsync import DropStale, Softsync
from oxigrad.distributed.methods.sync_replicas import SyncReplicas
from oxigrad.distributed.wrapper import Wrapper
from oxigrad.extend import COUNT

__all__ = [
    "KFAC",
    "Aborted",
    "CommunicationError",
    "Communicator",
    "DataParallel",
    "DeepGradientCompression",
    "DropStale",
    "ElasticAverage",
    "Excluded",
    "Header",
    "LargeBatch",
    "Layout",
    "ModelAverage",
    "NotSupported",
    "Refused",
    "Shard",
    "Softsync",
    "Span",
    "SyncReplicas",
    "TimedOut",
    "Timeline",
    "WorkerDevice",
    "WorkerFilter",
    "WorkerLost",
    "WorkerReport",
    "WorkerReports",
    "Wrapper",
    "communicator",
    "current",
    "devices",
    "run",
    "shard",
]
__dir__: Callable[[], list[str]] = __all__.copy

# What users of PyTorch, Horovod and mpi4py look for.
_ELSEWHERE = {
    "DistributedDataParallel": "use distributed.DataParallel(optimizer), around the optimizer",
    "DistributedOptimizer": "use distributed.DataParallel(optimizer)",
    "DistributedSampler": "use distributed.shard(data, comm)",
    "FullyShardedDataParallel": "use distributed.DataParallel(optimizer, shard_state=True)",
    "MPI": 'use distributed.communicator("mpi")',
    "all_reduce": 'use comm.all_reduce([array], op="sum") of a communicator',
    "get_rank": "use distributed.current().rank",
    "get_world_size": "use distributed.current().size",
    "init_process_group": 'use distributed.communicator("torch"), or distributed.run(worker, engine="torch")',
}
if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error

    def __getattr__(name: str) -> Any:
        advice = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{advice}", name=name)


# The engines: each is a module of `oxigrad.distributed.engines` with functions ``run`` and, for processes that
# something else has started, ``communicator``.
ENGINES = ("threads", "mpi", "ray", "torch")


def _engine(name: str) -> Any:
    if name not in ENGINES:
        raise ValueError(f"engine is {name!r}: expected one of {', '.join(ENGINES)}")
    return importlib.import_module(f"oxigrad.distributed.engines.{name}")


def run(
    worker: Callable[[Communicator], Any], engine: str = "threads", workers: int | None = None, **options: Any
) -> list[Any]:
    """Runs ``worker(communicator)`` on each of ``workers`` workers; returns their results by rank.

    Args:
        worker: called with the communicator of each worker, which is also the `current` one of its thread, so that
            wrapper optimizers made without a communicator use it.
        engine: "threads" (of this process), "ray" (processes of Ray), or "mpi" or "torch" in a program of which each
            worker is a process already, as ``python -m oxigrad.launch`` or ``torchrun`` start it.
        workers: number of workers: by default 4 threads or processes of Ray, or all processes of MPI or torch. For
            these, any other number raises `ValueError`.
        options: options of the engine; ``timeout`` is the number of seconds that a wait takes at most.

    Raises the error of the first worker that raised one, `TypeError` if ``worker`` is no function, and `TypeError` or
    `ValueError` for numbers out of range.
    """
    if not callable(worker):
        raise TypeError(f"run: found {worker!r}, expected a function of a communicator")
    if workers is not None:
        workers = int(COUNT.check("workers", workers))
    if "timeout" in options:
        options["timeout"] = SECONDS.check("timeout", options["timeout"])
    if "accept_newcomers" in options:
        check_flags(accept_newcomers=options["accept_newcomers"])
    return _engine(engine).run(worker, workers, **options)


def communicator(engine: str, **options: Any) -> Communicator:
    """The communicator of this process, in a program of which each worker is a process already.

    Args:
        engine: engine by name, such as "mpi" or "torch".
        **options: arguments of the engine, by keyword.

    It becomes the `current` one of this thread, the default of wrappers. Raises `NotSupported` for an engine that
    starts its workers itself.
    """
    make = getattr(_engine(engine), "communicator", None)
    if make is None:
        raise NotSupported(f"the engine {engine!r} starts its workers: use oxigrad.distributed.run")
    return adopt(make(**options))
