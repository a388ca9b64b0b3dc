"""Workers as processes of ``torch.distributed``, started by torchrun or the program, and processes that join.

Buffers are NumPy arrays in host memory, which torch uses without a copy; they travel over a group of gloo that is made
for them, whatever the backend of the program's own group is. The gradients of `DataParallel` that are on a device
travel by that backend, as NCCL, where it sends them from there (`tensors`). A group of gloo cannot change its members:
after the loss of a worker, and when a process joins, the workers connect anew, by the store of the job's rendezvous
(`Rendezvous`).
"""

from oxigrad.distributed.engines.torch.process import TorchCommunicator, communicator, run

__all__ = ["TorchCommunicator", "communicator", "run"]
