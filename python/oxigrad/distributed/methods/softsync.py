"""Asynchronous training with learning rates scaled by staleness."""

from typing import Any

from oxigrad.distributed.coordination.coordinated import Coordinated
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.decisions.staleness import Staleness
from oxigrad.distributed.fields import WHOLE, check_flags
from oxigrad.extend import COUNT
from oxigrad.optim import Optimizer


class Softsync(Coordinated):
    """Takes a step after every ``gradients_per_step`` gradients, each divided by its staleness.

    No worker waits for another.

    ``p <- p - (1 / c) * sum(alpha(t) * g)`` over c gradients, where ``alpha(t)`` is the learning rate divided by the
    staleness t, for t > 0 (Zhang et al. 2016, arXiv:1511.05950): the weighted mean is the gradient of the optimizer's
    step. With w workers, the paper's n-softsync is ``gradients_per_step=w // n``; the staleness is about n.

    Args:
        optimizer: optimizer that takes each step by the gradients of the workers, as in `Wrapper`.
        gradients_per_step: the number of gradients of each step.
        scaled: whether gradients are divided by their staleness.
        limit: the largest staleness of a gradient that is used; None for no limit.
        **options: ``communicator`` and ``timeout``, as in `Wrapper`; ``sparse_mean``, the divisor of sums of
            `SparseRows`: "replicas" (the default), the number of gradients, or "touches", the number of gradients with
            the row; ``lease``, the seconds after which a worker that computes is no longer waited for, by default the
            time-out.

    >>> from oxigrad import distributed, optim
    >>> distributed.Softsync(optim.SGD(0.1), gradients_per_step=2).gradients_per_step
    2
    """

    gradients_per_step: int
    scaled: Any
    limit: int | None

    def __init__(
        self,
        optimizer: Optimizer,
        gradients_per_step: int = 1,
        *,
        scaled: bool = True,
        limit: int | None = None,
        **options: Any,
    ) -> None:
        self.gradients_per_step = COUNT.check("gradients_per_step", gradients_per_step)
        (self.scaled,) = check_flags(scaled=scaled)
        self.limit = None if limit is None else WHOLE.check("limit", limit)
        super().__init__(optimizer, **options)

    def _decisions(self, **options: Any) -> Decisions:
        return Staleness(self.gradients_per_step, limit=self.limit, is_scaled=self.scaled, **options)


class DropStale(Softsync):
    """Takes a step by every gradient as it comes, but drops those whose staleness is above a bound.

    No worker waits for another.

    It is `Softsync` with one gradient a step, ``scaled=False`` and the bound as its ``limit``. The staleness is the
    number of steps taken since the worker read its parameters. As TensorFlow 1's DropStaleGradientOptimizer
    (tensorflow/contrib/opt at 4d48d1dc), which did not tell the worker.

    Args:
        optimizer: optimizer that takes each step by the gradients of the workers, as in `Wrapper`.
        staleness: the largest staleness of a gradient that is used.
        **options: ``communicator`` and ``timeout``, as in `Wrapper`; ``sparse_mean``, the divisor of sums of
            `SparseRows`: "replicas" (the default), the number of gradients, or "touches", the number of gradients with
            the row; ``lease``, the seconds after which a worker that computes is no longer waited for, by default the
            time-out.

    >>> from oxigrad import distributed, optim
    >>> distributed.DropStale(optim.SGD(0.1), staleness=2).staleness
    2
    """

    staleness: int

    _unstated = frozenset({"gradients_per_step", "scaled", "limit"})

    def __init__(self, optimizer: Optimizer, staleness: int, **options: Any) -> None:
        self.staleness = WHOLE.check("staleness", staleness)
        super().__init__(optimizer, scaled=False, limit=self.staleness, **options)
