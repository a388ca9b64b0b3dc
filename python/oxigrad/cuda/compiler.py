"""CUDA C++ text to machine code by NVRTC, with a cache on the disk.

NVRTC is NVIDIA's compiler as a library. The packages ``cuda-bindings`` and ``nvidia-cuda-nvrtc`` provide it
(``pip install 'oxigrad[cuda]'``); PyTorch for CUDA requires both. It needs neither a GPU nor a driver.

Kernels are compiled for IEEE 754 arithmetic: products and sums are not contracted, subnormal numbers are not flushed,
divisions and square roots are rounded to nearest.
"""

import contextlib
import ctypes
import functools
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oxigrad.cuda.disk_cache import DiskCache, default_folder

# Options of every compilation. Defaults for division, square root and subnormals are explicit, since bits depend on
# them.
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ptxas-options=-v",  # registers and spills in the log
)
# Lets ptxas use as many registers as the kernel needs.
_ONE_BLOCK = "--ptxas-options=--minnctapersm=1"
#: A text whose kernel shows whether the driver loads the compiler's output.
TRIVIAL = 'extern "C" __global__ void trivial() {}\n'
# Raised when entries of another layout, or compiled otherwise, must not be read.
_LAYOUT = 2
_DEFAULT_CACHE = DiskCache(default_folder())


class CompileError(RuntimeError):
    """CUDA text could not be compiled: the message has the compiler's log.

    For a user-defined rule, it names the change to make.
    """


class CompilerUnavailableError(CompileError):
    """NVRTC is not installed, or does not support the device.

    ``pip install oxigrad[cuda]`` installs the NVRTC of a driver that supports it.
    """


# --- NVRTC ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiler:
    """The loaded NVRTC: its version, its file, and its compute capabilities, such as 90 for 9.0."""

    version: tuple[int, int]
    path: str
    capabilities: tuple[int, ...]

    def __str__(self) -> str:
        return f"NVRTC {self.version[0]}.{self.version[1]} ({self.path})"

    @property
    def identity(self) -> str:
        """A text that differs between releases of NVRTC, updates with the same version number included."""
        return f"{self.version[0]}.{self.version[1]} {os.path.getsize(self.path)}"


@functools.cache
def compiler() -> Compiler:
    """The NVRTC of this process, which is loaded at the first call.

    Raises `CompilerUnavailableError` if it or the package ``cuda-bindings`` is not installed.
    """
    nvrtc = _bindings()
    path = _load()
    try:
        major, minor = _checked(nvrtc.nvrtcVersion())
        (capabilities,) = _checked(nvrtc.nvrtcGetSupportedArchs())
    except (RuntimeError, OSError) as error:
        raise CompilerUnavailableError(f"{path} cannot be used by cuda-bindings: {error}") from error
    _load_builtins(Path(path).parent, f"{major}.{minor}")
    return Compiler((int(major), int(minor)), path, tuple(sorted(int(each) for each in capabilities)))


def architectures(capability: tuple[int, int], device: str = "the device") -> list[str]:
    """The architectures to compile for, the best first: ``["sm_90", "compute_90"]`` for compute capability (9, 0).

    The driver compiles PTX, for a virtual architecture such as ``"compute_90"``, for the device. This supports a device
    newer than this NVRTC, from the last architecture that NVRTC knows. Raises `CompilerUnavailableError` if the device
    is older than all of them; the message names NVRTC and ``device``.
    """
    loaded, number = compiler(), 10 * capability[0] + capability[1]
    supported = [each for each in loaded.capabilities if each <= number]
    if not supported:
        first, last = loaded.capabilities[0], loaded.capabilities[-1]
        raise CompilerUnavailableError(
            f"{loaded} does not support {device} of compute capability {_dotted(number)}: it supports "
            f"{_dotted(first)} to {_dotted(last)}; install an older nvidia-cuda-nvrtc"
        )
    return [f"sm_{number}"] * (number in supported) + [f"compute_{supported[-1]}"]


def _dotted(number: int) -> str:
    return f"{number // 10}.{number % 10}"


def _bindings() -> Any:
    """The module ``cuda.bindings.nvrtc``."""
    try:
        return importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        raise CompilerUnavailableError(
            f"the package cuda-bindings cannot be imported ({error}): expected pip install 'oxigrad[cuda]'"
        ) from error


def _load() -> str:
    """Loads libnvrtc, so that the bindings find it, and gives its path."""
    load = _finder()
    try:
        return _find(load)
    except (RuntimeError, OSError) as error:
        _load_beside_packages()
        with contextlib.suppress(RuntimeError, OSError):
            return _find(load)
        raise CompilerUnavailableError(
            f"NVRTC was not found ({error}): expected pip install 'oxigrad[cuda]'"
        ) from error


def _finder() -> Callable[[str], Any]:
    """The function that finds and loads libraries of CUDA by name."""
    try:
        return importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib
    except ImportError as error:
        raise CompilerUnavailableError(
            f"the package cuda-pathfinder cannot be imported ({error}): expected pip install 'oxigrad[cuda]'"
        ) from error


def _find(load: Callable[[str], Any]) -> str:
    path = load("nvrtc").abs_path
    if path is None:
        raise OSError("the path of libnvrtc is unknown")
    return path


def _load_beside_packages() -> None:
    """Loads libnvrtc from a folder of `sys.path`, such as one of ``pip install --target``.

    The search of cuda.pathfinder ends with the folders of the interpreter's own environment.
    """
    for folder in map(Path, sys.path):
        for file in sorted(folder.glob("nvidia/*/lib/libnvrtc.so.*"), reverse=True):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL)
                return


def _load_builtins(folder: Path, version: str) -> None:
    """Loads the library that NVRTC opens by name at the first compilation; the linker may not search its folder."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(str(folder / f"libnvrtc-builtins.so.{version}"))


# --- compiling --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resources:
    """Resources of one function: registers of a thread, bytes of stack, of spills, and of shared memory.

    Spills count stored and loaded bytes. The resources of a device function are part of its callers' registers and
    shared memory; its own are 0.
    """

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True)
class Binary:
    """Compiled kernels: a cubin, or PTX for a virtual architecture (``compute_90``), and the log of the compiler."""

    code: bytes
    architecture: str
    log: str

    @property
    def resources(self) -> dict[str, Resources]:
        """The resources of each kernel, and of each function that is called, by name. For PTX, nothing is known."""
        return _resources(self.log)


def compile_text(
    text: str, architecture: str, *, options: Iterable[str] = (), cache: DiskCache | None = _DEFAULT_CACHE
) -> Binary:
    """The binary of CUDA C++ ``text`` for an architecture: a cubin for ``"sm_90"``, PTX for ``"compute_90"``.

    It is read from ``cache`` if the same text was compiled before by this NVRTC with the same options, `OPTIONS` and
    ``options``. ``cache=None`` compiles again and stores nothing.

    Raises `CompileError` with the log for a text with errors, and `CompilerUnavailableError` if NVRTC is not installed.
    """
    every = (f"--gpu-architecture={architecture}", *OPTIONS, *options)
    key = json.dumps([_LAYOUT, compiler().identity, every, text]).encode()
    stored = None if cache is None else cache.read(key)
    if stored is not None:
        log, code = stored.split(b"\0", 1)
        return Binary(code, architecture, log.decode())
    log, code = _without_spills(text, every, "PTX" if architecture.startswith("compute_") else "CUBIN")
    if cache is not None:
        cache.write(key, log.encode() + b"\0" + code)
    return Binary(code, architecture, log)


def _without_spills(text: str, options: tuple[str, ...], form: str) -> tuple[str, bytes]:
    """As `_compiled`; compiles again without the aim of more blocks per processor if registers spill."""
    log, code = _compiled(text, options, form)
    if any(each.stack or each.spill_stores for each in _resources(log).values()):
        with contextlib.suppress(CompileError):  # a compiler that does not know the option
            return _compiled(text, (*options, _ONE_BLOCK), form)
    return log, code


def _compiled(text: str, options: tuple[str, ...], form: str) -> tuple[str, bytes]:
    nvrtc = _bindings()
    (program,) = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"oxigrad.cu", 0, None, None))
    try:
        result = nvrtc.nvrtcCompileProgram(program, len(options), [each.encode() for each in options])
        log = _text(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").replace("\0", "")
        try:
            _checked(result)
        except CompileError as error:
            raise CompileError(f"{compiler()} failed ({error}) with {' '.join(options)}:\n{log}") from None
        return log, _text(nvrtc, program, form)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(nvrtc: Any, program: Any, part: str) -> bytes:
    """A part of a compiled program: its log, its PTX or its cubin."""
    (size,) = _checked(getattr(nvrtc, f"nvrtcGet{part}Size")(program))
    content = bytearray(size)
    _checked(getattr(nvrtc, f"nvrtcGet{part}")(program, content))
    return bytes(content)


def _checked(returned: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a call of NVRTC, without the status that precedes them."""
    status, *values = returned
    if int(status) != 0:
        raise CompileError(getattr(status, "name", str(status)))
    return tuple(values)


# --- the log ----------------------------------------------------------------------------------------------------------

_FUNCTION = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?\b(\d+) bytes smem)?")


def _resources(log: str) -> dict[str, Resources]:
    """The resources that ptxas reports for each function: a line with its name, then its stack, then its registers.

    Only a kernel has the line with registers.
    """
    name, resources = "", dict[str, Resources]()
    for line in log.splitlines():
        if function := _FUNCTION.search(line):
            name = function[1]
        elif stack := _STACK.search(line):
            resources[name] = Resources(0, int(stack[1]), int(stack[2]), int(stack[3]), 0)
        elif used := _USED.search(line):
            resources[name] = replace(resources[name], registers=int(used[1]), shared=int(used[2] or 0))
    return resources
