"""The objectives in C++, three times: what a derivative that is written by hand in C++ is taken to need."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from gradbench.contest import compared
from measure import Contestant, Ready

NAME, TIMES = "C++, value three times", 3
FILE = Path(__file__).with_name("objectives.cpp")


@functools.cache
def library() -> ctypes.CDLL:
    """The objectives as compiled for this processor; raises `ImportError` where there is no g++."""
    if shutil.which("g++") is None:
        raise ImportError("g++")
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder) / "objectives.so"
        subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", "-o", compiled, FILE], check=True)
        return ctypes.CDLL(str(compiled))


def contestant(name: str, arguments: Sequence[np.ndarray | int], expected: Callable[[], float]) -> Contestant:
    """Three calls of an objective with arrays, contiguous ones of float64 or int64, and sizes; checked by its value."""

    def prepare() -> Ready:
        function = getattr(library(), name)
        function.restype = ctypes.c_double
        passed = [
            arg.ctypes.data_as(ctypes.c_void_p) if isinstance(arg, np.ndarray) else ctypes.c_int64(arg)
            for arg in arguments
        ]

        def call() -> float:
            return [function(*passed) for _ in range(TIMES)][-1]

        return compared(call, expected(), "the value", 1e-9)

    return Contestant(NAME, "peer", prepare)
