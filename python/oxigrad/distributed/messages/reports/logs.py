"""Log records that carry the rank and the step of a worker."""

import logging
from typing import Any


class WorkerFilter(logging.Filter):
    """A filter that adds the attributes ``rank`` and ``step`` of a worker to records of `logging`, for formats.

    It passes every record, also of the logger ``oxigrad.distributed``. Add it to a handler of a process with one
    worker, or to the logger of a worker that is a thread.

    Args:
        optimizer: the wrapper optimizer of the worker; records get its rank and step at the time of the record.

    >>> import sys
    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> opt, handler, log = (
    ...     distributed.LargeBatch(optim.SGD(0.1)),
    ...     logging.StreamHandler(sys.stdout),
    ...     logging.getLogger("example"),
    ... )
    >>> handler.setFormatter(logging.Formatter("rank %(rank)d, step %(step)d: %(message)s"))
    >>> handler.addFilter(distributed.WorkerFilter(opt))
    >>> log.addHandler(handler)
    >>> model = opt.update({"w": np.ones(2)}, {"w": np.ones(2)})
    >>> log.warning("a loss of %g", 0.5)
    rank 0, step 1: a loss of 0.5
    >>> log.removeHandler(handler)
    """

    def __init__(self, optimizer: Any) -> None:
        super().__init__()
        self._optimizer = optimizer

    def filter(self, record: logging.LogRecord) -> bool:
        """Sets the rank and the step of a record."""
        record.rank, record.step = self._optimizer.communicator.rank, int(self._optimizer.step)
        return True
