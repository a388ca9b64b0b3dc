"""LargeBatch: steps by the mean gradient of many small batches, some of each worker."""

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel.local_sums import LocalSums
from oxigrad.distributed.data_parallel.optimizer import DataParallel
from oxigrad.optim import Optimizer


class LargeBatch(DataParallel):
    """Training with large batches: each step is one of the mean gradient of ``local_batches`` batches of each worker.

    Batches that do not complete a step are only added up on their worker: they send nothing, and leave the model
    unchanged. The gradients are then averaged over workers, and all of them take the same step, which is that of one
    worker with all batches as one. Around `oxigrad.optim.LARS` it is the large-batch training of You et al. 2017
    (arXiv:1708.03888), whose trust ratio is that of the mean gradient; around any other optimizer it is synchronous
    training.

    Args:
        optimizer: the optimizer that takes the steps.
        local_batches: the number of batches of each worker that a step uses; it can change between steps.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default those of the communicator.

    It is `DataParallel` whose gradients leave when all batches are added up, with ``overlap=False``. Where a worker is
    lost, the others take the step by the mean of their own gradients.

    Batches have equal sizes, or gradients that are weighted accordingly. `pending` is the number of batches since the
    last step; sums are saved with the state.

    >>> import numpy as np
    >>> from oxigrad import optim
    >>> opt, model = LargeBatch(optim.SGD(1.0), local_batches=2), {"w": np.zeros(1)}
    >>> for gradient in (1.0, 3.0):
    ...     model = opt.update(model, {"w": np.array([gradient])})
    ...     print(model["w"], opt.step, opt.pending)
    [0.] 0 1
    [-2.] 1 0
    """

    _unstated = frozenset({"bucket_bytes", "overlap", "shard_state"})
    overlap = False

    def __init__(
        self,
        optimizer: Optimizer,
        local_batches: int = 1,
        *,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        LocalSums.__init__(self, optimizer, local_batches, communicator=communicator, timeout=timeout)
