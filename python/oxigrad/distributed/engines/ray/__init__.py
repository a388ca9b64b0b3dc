"""Workers as processes of Ray, on one machine or a cluster of it.

One actor keeps what the workers share, a `Hub`: mailboxes, membership, and the sums in the order of ranks.
Ray restarts it where its process dies, and the workers then form the next generation there, as they do where one of
them dies. Ray itself serializes the worker function and its result with cloudpickle; the workers exchange buffers only.
"""

from oxigrad.distributed.engines.ray.job import RayJob, run
from oxigrad.distributed.engines.ray.library import connect
from oxigrad.distributed.engines.ray.transport import RayCommunicator

__all__ = ["RayCommunicator", "RayJob", "connect", "run"]
