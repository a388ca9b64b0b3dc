"""Workers as processes of an MPI job, through mpi4py."""

from oxigrad.distributed.engines.mpi.process import MPICommunicator, communicator, run

__all__ = ["MPICommunicator", "communicator", "run"]
