"""The text of `Program.cuda` on the host: compiled by g++, launched by calls of its entries.

>>> library = compile_text(source)
>>> library.launch("update_0", grid, block, struct_bytes)
"""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

HEADER = Path(__file__).with_name("host.h")
COMPILER = shutil.which("g++")
#: As NVRTC compiles the text: no product and sum is fused unless that is written.
FLAGS = ("-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared", "-w")
_ENTRY = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(')
_directory = tempfile.TemporaryDirectory(prefix="oxigrad-cuda-")
_libraries: dict[tuple[str, tuple[str, ...]], "Library"] = {}


class Library:
    """A compiled text."""

    def __init__(self, path: Path, space: str = "") -> None:
        self._functions = ctypes.CDLL(str(path))
        self._space = space

    def launch(self, entry: str, grid: int, block: int, struct_bytes: bytes) -> None:
        """Runs an entry for ``grid`` blocks of ``block`` threads; the bytes are those of `OxLaunch`."""
        function = getattr(self._functions, f"run_{self._space}{entry}")
        function(ctypes.c_uint(grid), ctypes.c_uint(block), struct_bytes)


def compile_text(text: str, *flags: str) -> Library:
    """The library of a text; texts that were compiled before are remembered."""
    return compile_texts([text], *flags)[0]


def compile_texts(texts: Sequence[str], *flags: str) -> list[Library]:
    """The libraries of some texts, compiled as one file where several are new."""
    flags = flags or ("-O1",)
    new = [text for text in dict.fromkeys(texts) if (text, flags) not in _libraries]
    if new:
        whole = "\n".join([f'#include "{HEADER}"', *(_in_namespace(text, _space(text)) for text in new)])
        name = hashlib.sha256((whole + " ".join(flags)).encode()).hexdigest()
        file = Path(_directory.name, f"{name}.cpp")
        file.write_text(whole)
        path = file.with_suffix(".so")
        assert COMPILER, "g++ is missing"
        command = [COMPILER, *FLAGS, *flags, "-o", str(path), str(file)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr[:4000]
        for text in new:
            _libraries[text, flags] = Library(path, f"{_space(text)}_")
    return [_libraries[text, flags] for text in texts]


def _space(text: str) -> str:
    return "t" + hashlib.sha256(text.encode()).hexdigest()[:16]


def _in_namespace(text: str, space: str) -> str:
    """The text with entries and types of its own, beside other texts of one file."""
    for name in _ENTRY.findall(text):
        text = re.sub(rf"\b{name}\b(?=\()", f"{space}_{name}", text)
    runs = "\n".join(f"OX_RUN({name})" for name in _ENTRY.findall(text))
    undefined = "\n".join(f"#undef {name}" for name in set(re.findall(r"#define (OX_\w+)", text)) - _OF_HOST)
    return f"namespace {space} {{\n{text}\n{runs}\n}}\n{undefined}"


_OF_HOST = {"OX_THREADS", "OX_BARRIER", "OX_STATE", "OX_OWN"}
