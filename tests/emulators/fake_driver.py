"""The driver of `libcuda/`, which cuda-bindings loads in the place of NVIDIA's: no GPU is needed, and nothing of ours stands between.

Only a process of its own may load it: libraries that look for a GPU would find this one.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import executor
import pytest

from oxigrad.cuda import compiler

SOURCE = Path(__file__).with_name("libcuda") / "libcuda.cpp"
FLAGS = ("-std=c++17", "-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
#: Of kernels: most are compiled for one test.
KERNEL_FLAGS = ("-O0",)


def build() -> Path:
    """Compiles the driver."""
    path = Path(executor.FOLDER.name, "libcuda.so.1")
    if not path.exists():
        assert executor.COMPILER, "g++ is missing"
        command = [executor.COMPILER, *FLAGS, "-o", str(path), str(SOURCE)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr[:4000]
    return path


class FakeDriver:
    """The driver in this process, as tests set and question it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        # The linker then takes it for libcuda.so.1, which is its name.
        self._library = ctypes.CDLL(str(build()), ctypes.RTLD_GLOBAL)
        patch.setattr(compiler, "compile_text", self._compiled)

    @staticmethod
    def _compiled(text: str, architecture: str, **_: object) -> compiler.Binary:
        """Kernels of the host in the place of what NVRTC makes of a text."""
        if "OxLaunch" not in text:  # one without an argument
            text = "struct OxLaunch { char none; };\n\n" + re.sub(r"(__global__ void \w+)\(\)", r"\1(OxLaunch)", text)
        return compiler.Binary(executor.compile_text(text, *KERNEL_FLAGS).image, architecture, "")

    @staticmethod
    def compile(texts: Iterable[str]) -> None:
        """Compiles texts together, which takes less time than one after the other."""
        executor.compile_texts([*texts], *KERNEL_FLAGS)

    def set(self, option: str, value: int) -> None:
        """Sets an option: see ``fake_set`` in `libcuda.cpp`."""
        assert self._library.fake_set(option.encode(), value) == 0, option

    def count(self, what: str) -> int:
        """The number of objects of a kind: see ``fake_count``."""
        return self._library.fake_count(what.encode())

    def faults(self) -> list[str]:
        """The faults since the last call, after all work is done."""
        text = ctypes.create_string_buffer(10000)
        self._library.fake_faults(text, len(text))
        return text.value.decode().splitlines()

    @contextlib.contextmanager
    def without_faults(self) -> Iterator[None]:
        """Asserts at the end that nothing was wrong."""
        try:
            yield
        finally:
            found = self.faults()
        assert found == []
