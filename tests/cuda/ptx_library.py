"""Texts of `Program.cuda` as PTX, launched by calls of their entries, as `executor.Library` is."""

from collections.abc import Iterable, Mapping

from executor import in_one_file
from group import Memory as Registered
from ptx import Memory, Module

from oxigrad.cuda.compiler import compile_text

#: The oldest architecture with everything that kernels use.
ARCHITECTURE = "compute_80"
# Memory that kernels only read.
_CONSTANT = ("leaves", "tasks", "scalars", "batches")


class PtxLibrary:
    """A text that NVRTC compiled, executed by the interpreter: ``names`` are those of its entries in the module."""

    def __init__(self, module: Module, names: Mapping[str, str]) -> None:
        self._module = module
        self._names = names

    @property
    def opcodes(self) -> set[str]:
        """The opcodes of all entries."""
        return set().union(*map(self._module.opcodes, self._names.values()))

    def launch(self, entry: str, grid: int, block: int, struct_bytes: bytes, memory: Registered) -> None:
        """Runs an entry for ``grid`` blocks of ``block`` threads; the bytes are those of `OxLaunch`."""
        registered = Memory()
        for name, array in memory:
            registered.register(array, name, writable=name not in _CONSTANT)
        self._module.launch(self._names[entry], grid=grid, block=block, params=struct_bytes, memory=registered)


def ptx_libraries(texts: Iterable[str]) -> dict[str, PtxLibrary]:
    """The libraries of texts, compiled together: an entry that several texts have is compiled and parsed once."""
    texts = list(dict.fromkeys(texts))
    whole, names = in_one_file(texts)
    module = Module(ptx(whole))
    return {text: PtxLibrary(module, own) for text, own in zip(texts, names, strict=True)}


def ptx(text: str) -> str:
    """The PTX of a text, by NVRTC."""
    return compile_text(text, ARCHITECTURE, cache=None).code.decode()
