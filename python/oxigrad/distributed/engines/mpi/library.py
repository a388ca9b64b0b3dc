"""MPI, as the engine uses it: it is initialized when a communicator is made, not by an import.

Raises `ModuleNotFoundError` where mpi4py finds no MPI library.
"""

import importlib
import sys
from typing import Any

from oxigrad.extend import library

mpi4py: Any = library("mpi4py", "the engine of MPI needs mpi4py: python -m pip install 'oxigrad[mpi]'")

_is_first = "mpi4py.MPI" not in sys.modules
#: Whether the engine ends MPI itself. `MPI_Finalize` waits for all processes, and would wait for one that has died;
#: mpi4py calls it at the end of the program, unless ``mpi4py.rc.finalize`` was False when ``mpi4py.MPI`` was imported.
FINALIZES = _is_first or mpi4py.rc.finalize is False
if _is_first:
    mpi4py.rc.initialize = mpi4py.rc.finalize = False

try:
    MPI: Any = importlib.import_module("mpi4py.MPI")
except RuntimeError as _error:
    raise ModuleNotFoundError(
        f"mpi4py finds no MPI: pip install 'oxigrad[mpi]' installs one ({_error})", name="libmpi"
    ) from _error
