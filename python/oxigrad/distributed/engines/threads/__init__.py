"""The engine of threads: the workers of a job are threads of this process.

It needs nothing installed and opens no socket.
"""

from oxigrad.distributed.engines.threads.job import ThreadJob, run
from oxigrad.distributed.engines.threads.transport import ThreadCommunicator

__all__ = ["ThreadCommunicator", "ThreadJob", "run"]
