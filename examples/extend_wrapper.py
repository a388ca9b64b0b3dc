"""A wrapper of optimizers for several workers: each step is one by the median of the workers' gradients, element by element.

A worker whose gradients are wrong, because its data or its memory are damaged, does not move the median of the others
(Yin et al. 2018, arXiv:1803.01498). The wrapper takes part in everything that an optimizer does: groups, schedules,
configurations, files of its state, and other wrappers around it.
"""

from typing import Any

import numpy as np

from oxigrad import distributed, extend, optim


class MedianOfGradients(extend.WrappingOptimizer):
    """Steps by the element-wise median of the gradients of all workers.

    Args:
        optimizer: optimizer that takes the steps.
        trim: number of the largest and of the smallest gradients of an element that the mean of the others leaves out;
            by default as many as leave one or two, whose mean is the median.
        communicator: communicator of this worker; by default the current one of the thread.
    """

    _unstated = frozenset({"communicator"})
    _shared = frozenset({"communicator"})

    def __init__(
        self,
        optimizer: optim.Optimizer,
        *,
        trim: int | None = None,
        communicator: distributed.Communicator | None = None,
    ) -> None:
        super().__init__(optimizer)
        self.trim = None if trim is None else extend.COUNT.check("trim", trim)
        self.communicator = distributed.current() if communicator is None else communicator

    def _step(self, model: Any, grads: Any, *, keep_root: bool = False) -> Any:
        gradients = self._parameters.gradients(model, grads)
        medians = {path: self._median(extend.as_array(g)) for path, g in gradients.items()}
        return self.take_step(self.optimizer, model, self._parameters.tree(model, medians), keep_root=keep_root)

    def _median(self, gradient: np.ndarray) -> np.ndarray:
        of_workers = self.communicator.all_gather_v(np.ascontiguousarray(gradient).reshape(-1))
        ordered = np.sort(np.stack(of_workers), axis=0)
        most = (len(ordered) - 1) // 2
        trim = most if self.trim is None else min(self.trim, most)
        kept = ordered[trim : len(ordered) - trim]
        return kept.mean(axis=0, dtype=kept.dtype).reshape(gradient.shape)


def worker(communicator: distributed.Communicator, steps: int = 100) -> np.ndarray:
    """Fits a mean to the numbers of this worker; those of the last of three or more workers are damaged."""
    data = np.random.default_rng(communicator.rank).normal(1.0, 0.1, 1000)
    if communicator.rank == communicator.size - 1 >= 2:
        data *= 1e6
    model = {"mean": np.zeros(1)}
    optimizer = MedianOfGradients(optim.SGD(0.1), communicator=communicator)
    for _ in range(steps):
        optimizer.minimize(lambda model: ((data - model["mean"]) ** 2).mean(), model)
    return model["mean"]


def main(workers: int = 3) -> list[float]:
    """The means that the workers found, which are equal."""
    return [float(mean[0]) for mean in distributed.run(worker, workers=workers)]


if __name__ == "__main__":
    print("means", *(f"{mean:.3f}" for mean in main()))
