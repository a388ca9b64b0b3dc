"""Memory accesses in the machine code of kernels: how many there are of each width.

The encoding of these instructions has been the same from Volta to Blackwell: 16 bytes each, of which the lowest bits are the
opcode and bits 73 to 75 the width. NVIDIA does not document it, therefore `disassembled` gives the same counts from the text of
nvdisasm, for a comparison.
"""

import collections
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from shutil import which

import numpy as np

# Loads and stores of generic (LD, ST), global (G), local (L) and shared (S) memory by the lowest nine bits.
_OPCODES = {
    0x180: "LD",
    0x181: "LDG",
    0x183: "LDL",
    0x184: "LDS",
    0x185: "ST",
    0x186: "STG",
    0x187: "STL",
    0x188: "STS",
}
# Bits of an access by its field: U8, S8, U16, S16, 32, 64, 128 and 256.
_WIDTHS = (8, 8, 16, 16, 32, 64, 128, 256)

# Counts by the opcode and the bits of an access.
Accesses = collections.Counter[tuple[str, int]]


def accesses(cubin: bytes) -> dict[str, Accesses]:
    """The accesses of each function of a cubin."""
    return {name: _decoded(code) for name, code in _functions(cubin)}


def _decoded(code: bytes) -> Accesses:
    words = np.frombuffer(code, np.uint64).reshape(-1, 2)
    opcodes, fields = words[:, 0] & np.uint64(0x1FF), words[:, 1] >> np.uint64(9) & np.uint64(7)
    found: Accesses = collections.Counter()
    for opcode, name in _OPCODES.items():
        for field in fields[opcodes == opcode]:
            found[name, _WIDTHS[int(field)]] += 1
    return found


def _functions(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """The code of each function: the ELF sections ``.text.NAME``."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + size * number) for number in range(count)]
    start = sections[names][4]
    for name_at, _, _, _, offset, length in sections:
        name = cubin[start + name_at :].split(b"\0", 1)[0].decode()
        if name.startswith(".text."):
            yield name.removeprefix(".text."), cubin[offset : offset + length]


# --- beside the disassembler -------------------------------------------------------------------------------------------

_FUNCTION = re.compile(r"^\.text\.([\w$]+):")
_ACCESS = re.compile(r"\b(LDG?|LDL|LDS|STG?|STL|STS)((?:\.\w+)*) ")


def disassembler() -> str | None:
    """The path of nvdisasm: on the path, or in the package triton."""
    if found := which("nvdisasm"):
        return found
    try:
        file = metadata.distribution("triton").locate_file("triton/backends/nvidia/bin/nvdisasm")
    except metadata.PackageNotFoundError:
        return None
    return str(file) if Path(str(file)).exists() else None


def disassembled(cubin: bytes, program: str) -> dict[str, Accesses]:
    """The accesses of each function of a cubin, as nvdisasm names them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernels.cubin")
        file.write_bytes(cubin)
        command = [program, "--print-code", str(file)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, Accesses] = {}
    name = ""
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            name = function[1]
            found[name] = collections.Counter()
        elif access := _ACCESS.search(line):
            found[name][access[1], _width(access[2])] += 1
    return found


def _width(modifiers: str) -> int:
    number = re.search(r"\.[US]?(8|16|64|128|256)\b", modifiers)
    return int(number[1]) if number else 32
