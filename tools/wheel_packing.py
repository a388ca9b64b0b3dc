"""Packs a built wheel again: without the folder of its build, which maturin writes into the SBOM, and compressed by libdeflate.

    python tools/wheel_packing.py dist/*.whl

The same files give the same bytes. What is changed gets a new line in RECORD. Any program that reads deflate unpacks
it: libdeflate looks longer for the shortest codes, 3 % shorter than those of zlib, in two seconds.
"""

import base64
import hashlib
import os
import sys
import zipfile
from pathlib import Path

import deflate

ROOT = Path(__file__).resolve().parents[1]


def record_line(name: str, data: bytes) -> str:
    """The line of a file in RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


class Compressor:
    """Compresses a file as zlib's compressor objects do, by libdeflate, which takes it whole."""

    def __init__(self) -> None:
        self.data = b""

    def compress(self, data: bytes) -> bytes:
        """Keeps the bytes of the file, or some of them, for `flush`."""
        self.data += data
        return b""

    def flush(self) -> bytes:
        """The compressed file."""
        return deflate.deflate_compress(self.data, 12)


def write(to: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
    """Adds a file, compressed."""
    info.compress_type = zipfile.ZIP_DEFLATED
    with to.open(info, "w") as file:
        assert hasattr(file, "_compressor")  # noqa: S101 - zipfile has no parameter for it
        file._compressor = Compressor()  # pyright: ignore[reportAttributeAccessIssue]
        file.write(data)


def pack(wheel: Path, root: Path = ROOT) -> None:
    """Packs the wheel again, in which the folder ``root`` is called ``oxigrad``."""
    with zipfile.ZipFile(wheel) as found:
        files = [(info, found.read(info)) for info in found.infolist()]
    changed = {
        info.filename: data.replace(root.as_uri().encode(), b"file:///oxigrad")
        for info, data in files
        if ".dist-info/sboms/" in info.filename
    }
    record, data = next((info.filename, data) for info, data in files if info.filename.endswith(".dist-info/RECORD"))
    lines = [(line.split(",")[0], line) for line in data.decode().splitlines()]
    lines = [record_line(name, changed[name]) if name in changed else line for name, line in lines]
    changed[record] = "".join(f"{line}\n" for line in lines).encode()
    packed = wheel.with_suffix(".packed")
    with zipfile.ZipFile(packed, "w") as to:
        for info, data in files:
            write(to, info, changed.get(info.filename, data))
    os.replace(packed, wheel)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        pack(Path(argument))
        sys.stdout.write(f"{argument}: {Path(argument).stat().st_size / 1e6:.2f} MB\n")
