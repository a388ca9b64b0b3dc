"""The text of `Program.cuda` as PTX, launched by calls of its entries, as `executor.Library` is."""

import functools
from typing import Any

from group import Memory as Registered
from ptx import Memory, Module

from oxigrad.cuda.compiler import compile_text

#: The oldest architecture with everything that kernels use.
ARCHITECTURE = "compute_80"
# Memory that kernels only read.
_CONSTANT = ("leaves", "tasks", "scalars", "batches")


class PtxLibrary:
    """A text that NVRTC compiled, executed by the interpreter."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def launch(self, entry: str, grid: int, block: int, struct_bytes: bytes, memory: Registered) -> None:
        """Runs an entry for ``grid`` blocks of ``block`` threads; the bytes are those of `OxLaunch`."""
        registered = Memory()
        for name, array in memory:
            registered.register(array, name, writable=name not in _CONSTANT)
        self.module.launch(entry, grid=grid, block=block, params=struct_bytes, memory=registered)


@functools.cache
def ptx_library(text: str) -> Any:
    """The library of a text; texts that were compiled before are remembered."""
    return PtxLibrary(Module(compile_text(text, ARCHITECTURE, cache=None).code.decode()))
