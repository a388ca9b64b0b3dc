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
#: Nothing of the text needs libstdc++, which takes time to link.
LIBRARIES = ("-nodefaultlibs", "-lm", "-lc")
_ENTRY = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(')
#: The folder of what was compiled, for this process.
FOLDER = tempfile.TemporaryDirectory(prefix="oxigrad-cuda-")
_libraries: dict[tuple[str, tuple[str, ...]], "Library"] = {}


class Library:
    """A compiled text: the names of its entries in the library."""

    def __init__(self, path: Path, names: dict[str, str]) -> None:
        self._functions = ctypes.CDLL(str(path))
        self._names = names
        self._path = path

    @property
    def image(self) -> bytes:
        """The image that the driver in `libcuda` takes in the place of a cubin: the file, each entry and its symbol."""
        symbols = "".join(f"{entry} {name}\n" for entry, name in self._names.items())
        return f"kernels of the host\n{self._path}\n{symbols}\0".encode()

    def launch(self, entry: str, grid: int, block: int, struct_bytes: bytes, memory: object = None) -> None:
        """Runs an entry for ``grid`` blocks of ``block`` threads; the bytes are those of `OxLaunch`.

        ``memory`` is for executors that check accesses.
        """
        function = getattr(self._functions, f"run_{self._names[entry]}")
        function(ctypes.c_uint(grid), ctypes.c_uint(block), struct_bytes)


def compile_text(text: str, *flags: str) -> Library:
    """The library of a text; texts that were compiled before are remembered."""
    return compile_texts([text], *flags)[0]


def compile_texts(texts: Sequence[str], *flags: str) -> list[Library]:
    """The libraries of some texts, compiled as one file where several are new."""
    flags = flags or ("-O1",)
    new = [text for text in dict.fromkeys(texts) if (text, flags) not in _libraries]
    if new:
        whole, names = in_one_file(new, "OX_RUN({name})")
        whole = f'#include "{HEADER}"\n{whole}'
        path = _compiled(whole, flags)
        for text, own in zip(new, names, strict=True):
            _libraries[text, flags] = Library(path, own)
    return [_libraries[text, flags] for text in texts]


def _compiled(whole: str, flags: tuple[str, ...]) -> Path:
    """The shared library of a file; it appears whole, since several threads may compile the same text."""
    assert COMPILER, "g++ is missing"
    path = Path(FOLDER.name, hashlib.sha256((whole + " ".join(flags)).encode()).hexdigest()).with_suffix(".so")
    with tempfile.TemporaryDirectory(dir=FOLDER.name) as folder:
        source, target = Path(folder, "text.cpp"), Path(folder, path.name)
        source.write_text(whole)
        command = [COMPILER, *FLAGS, *flags, "-o", str(target), str(source), *LIBRARIES]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr[:4000]
        target.replace(path)
    return path


def in_one_file(texts: Sequence[str], after_entry: str = "") -> tuple[str, list[dict[str, str]]]:
    """One file of the texts, and the names in it of the entries of each. Texts of the same constants share functions and entries.

    ``after_entry`` follows each entry, with its name in the place of ``{name}``.
    """
    groups: dict[str, dict[str, None]] = {}
    names = []
    for text in texts:
        constants, types, rest = text.partition(_TYPES) if _TYPES in text else ("", "", text)
        parts, own = groups.setdefault(constants, {}), {}
        for part in _PARTS.split((types + rest).strip()):
            if found := _ENTRY.match(part):
                own[found[1]] = name = f"{found[1]}_{hashlib.sha256((constants + part).encode()).hexdigest()[:16]}"
                parts[f"{part.replace(f' {found[1]}(', f' {name}(', 1)}\n{after_entry.format(name=name)}"] = None
            else:
                parts[part] = None
        names.append(own)
    spaces = []
    for number, (constants, parts) in enumerate(groups.items()):
        undefined = "\n".join(f"#undef {name}" for name in set(_DEFINED.findall(constants)) - _OF_HOST)
        # A template that one text has and does not use may call a function of another one, which then comes later.
        called = [f"{found[0]};" for part in parts for found in _CALLED.finditer(part)]
        body = "\n\n".join([constants, *called, *parts])
        spaces.append(f"namespace g{number} {{\n{body}\n}}\n{undefined}")
    return "\n".join(spaces), names


# What follows the constants of a text; and the end of a declaration.
_TYPES = "typedef unsigned char"
_PARTS = re.compile(r"\n\n(?=\S)")
_DEFINED = re.compile(r"#define (OX_\w+)")
_CALLED = re.compile(r"^static .*\bfloat ox_narrowed\(\w+ value\)", re.MULTILINE)
_OF_HOST = {"OX_THREADS", "OX_BARRIER", "OX_STATE", "OX_OWN", "OX_GLOBAL"}
