"""LargeBatch: steps by the mean gradient of many small batches, some of each worker."""

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel.optimizer import DataParallel
from oxigrad.optim import Optimizer


class LargeBatch(DataParallel):
    """Training with large batches: a step uses the mean gradient of ``local_batches`` batches of each worker.

    Batches that do not complete a step are only added up on their worker: they send nothing, and leave the model
    unchanged. The workers then average their gradients and take the same step: the step of one worker with one batch of
    all examples. Around `oxigrad.optim.LARS` it is the large-batch training of You et al. 2017 (arXiv:1708.03888): the
    mean gradient gives the trust ratio. Around any other optimizer it is synchronous training.

    Args:
        optimizer: the optimizer that takes the steps.
        local_batches: the number of batches of each worker that a step uses; it can change between steps.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    It is `DataParallel` with ``overlap=False``: gradients leave when all batches are added up. After the loss of a
    worker, the others take the step by the mean of their gradients.

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

    def __init__(
        self,
        optimizer: Optimizer,
        local_batches: int = 1,
        *,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(
            optimizer, overlap=False, local_batches=local_batches, communicator=communicator, timeout=timeout
        )
