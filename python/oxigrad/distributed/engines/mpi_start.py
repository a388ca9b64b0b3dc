"""MPI, initialized by this import."""

import sys

import mpi4py

#: Whether the engine ends MPI itself. `MPI_Finalize` waits for all processes, and would wait for one that has died.
FINALIZES = "mpi4py.MPI" not in sys.modules
if FINALIZES:
    mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402 - it reads the setting above

__all__ = ["FINALIZES", "MPI"]
