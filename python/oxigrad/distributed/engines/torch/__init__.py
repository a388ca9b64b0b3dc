"""Workers as processes of ``torch.distributed``, which torchrun or the program itself has started, and processes that join them.

Buffers are NumPy arrays in host memory, which torch uses without a copy; they travel over groups of gloo that are made for them,
whatever the backend of the program's own group is. Such a group cannot change its members: after the loss of a worker, and when a
process joins, the workers connect anew, by the store of the job's rendezvous (`Rendezvous`).
"""

from oxigrad.distributed.engines.torch.process import TorchCommunicator, communicator, run

__all__ = ["TorchCommunicator", "communicator", "run"]
