"""Synchronous replicas with backup workers."""

from typing import Any

from oxigrad.distributed.coordination.coordinated import Coordinated
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.decisions.replicas import Replicas
from oxigrad.extend import COUNT
from oxigrad.optim import Optimizer


class SyncReplicas(Coordinated):
    """Takes each step by the mean of the first ``replicas_to_aggregate`` gradients of ``total_replicas`` workers.

    The other workers are backups: their gradients of that step are dropped, which they are told, and they go on with
    the new parameters, so that slow workers do not delay the others (Chen et al. 2016, arXiv:1604.00981). Differences
    from TensorFlow 1's optimizer of this name are listed in `oxigrad.distributed.decisions.replicas`.

    Args:
        optimizer: optimizer that takes each step by the gradients of the workers, as in `Wrapper`.
        replicas_to_aggregate: the number of gradients of each step. With fewer workers, some contribute several.
        total_replicas: the number of workers that compute at the same time; by default ``replicas_to_aggregate``.
        **options: ``communicator`` and ``timeout``, as in `Wrapper`; ``sparse_mean``, the divisor of sums of
            `SparseRows`: "replicas" (the default), the number of gradients, or "touches", the number of gradients with
            the row; ``lease``, the seconds after which a worker that computes is no longer waited for, by default the
            time-out.

    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> def worker(comm):
    ...     model = {"w": np.zeros(2)}
    ...     with distributed.SyncReplicas(optim.SGD(1.0), 2, 2) as opt:
    ...         opt.update(model, {"w": np.array([1.0, 2.0 * comm.rank])})
    ...     return model["w"]
    >>> distributed.run(worker, workers=2)
    [array([-1., -1.]), array([-1., -1.])]
    """

    replicas_to_aggregate: int
    total_replicas: int

    def __init__(
        self,
        optimizer: Optimizer,
        replicas_to_aggregate: int,
        total_replicas: int | None = None,
        **options: Any,
    ) -> None:
        self.replicas_to_aggregate = COUNT.check("replicas_to_aggregate", replicas_to_aggregate)
        total = replicas_to_aggregate if total_replicas is None else total_replicas
        self.total_replicas = COUNT.check("total_replicas", total)
        super().__init__(optimizer, **options)

    def _decisions(self, **options: Any) -> Decisions:
        return Replicas(self.replicas_to_aggregate, self.total_replicas, **options)
