"""The compiler of CUDA text, and its cache on the disk."""

import multiprocessing
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oxigrad.cuda import compiler as compiling
from oxigrad.cuda import disk_cache
from oxigrad.cuda.compiler import Binary, CompileError, Compiler, CompilerUnavailableError, Resources
from oxigrad.cuda.disk_cache import DiskCache

SCALE = 'extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] = a * x[threadIdx.x] + 1.0f; }'
# 64 values that are all needed later, in a kernel that may have 32 registers.
SPILLS = """
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const float* x, float* y) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; i++) v[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 63; i >= 0; i--) { sum = sum * v[i] + v[(i * 7) % 64]; y[i * 1024 + threadIdx.x] = sum; }
}
"""


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "a" / "b")


def entries(cache: DiskCache) -> list[Path]:
    assert cache.folder is not None
    return sorted(cache.folder.iterdir()) if cache.folder.exists() else []


# --- compiling ---------------------------------------------------------------------------------------------------------


def test_a_cubin_for_a_device_and_ptx_for_a_virtual_architecture(nvrtc: Compiler) -> None:
    cubin = compiling.compile_text(SCALE, "sm_90", cache=None)
    assert cubin.code.startswith(b"\x7fELF") and cubin.architecture == "sm_90"
    ptx = compiling.compile_text(SCALE, "compute_90", cache=None)
    assert b".target sm_90" in ptx.code and b".entry scale(" in ptx.code and not ptx.code.endswith(b"\0\0")
    assert ptx.resources == {}


def test_a_product_and_a_sum_are_not_contracted(nvrtc: Compiler) -> None:
    code = compiling.compile_text(SCALE, "compute_90", cache=None).code
    assert b"mul.rn.f32" in code and b"add.rn.f32" in code and b"fma" not in code


def test_division_and_square_root_are_rounded_to_nearest(nvrtc: Compiler) -> None:
    text = 'extern "C" __global__ void f(float* x) { *x = sqrtf(x[1]) / x[2]; }'
    code = compiling.compile_text(text, "compute_90", cache=None).code
    assert b"sqrt.rn.f32" in code and b"div.rn.f32" in code and b"ftz" not in code and b"approx" not in code


def test_resources_of_each_kernel(nvrtc: Compiler) -> None:
    found = compiling.compile_text(SCALE + SPILLS, "sm_90", cache=None).resources
    assert found.keys() == {"scale", "spills"}
    assert found["scale"].registers > 4 and found["scale"].spill_stores == found["scale"].spill_loads == 0
    assert found["spills"].registers == 32 and found["spills"].spill_stores > 0 and found["spills"].spill_loads > 0


def test_resources_are_read_off_the_log() -> None:
    log = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 256 bytes smem, 356 bytes cmem[0]
ptxas info    : Function properties for _Z1ff
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 16 bytes spill loads
"""
    expected = {"k": Resources(10, 8, 4, 12, 256), "_Z1ff": Resources(0, 0, 0, 16, 0)}
    assert Binary(b"", "sm_90", log).resources == expected


def test_an_error_in_the_text_is_reported_with_the_log(nvrtc: Compiler, cache: DiskCache) -> None:
    with pytest.raises(CompileError, match=r'(?s)NVRTC \d+.*oxigrad\.cu\(1\).*identifier "y" is undefined'):
        compiling.compile_text('extern "C" __global__ void f(float* x) { *x = y; }', "sm_90", cache=cache)
    assert entries(cache) == []


def test_an_architecture_that_nvrtc_lacks(nvrtc: Compiler) -> None:
    with pytest.raises(CompileError, match="sm_61"):
        compiling.compile_text(SCALE, "sm_61", cache=None)


# --- the compiler ------------------------------------------------------------------------------------------------------


def test_architectures(nvrtc: Compiler) -> None:
    assert compiling.architectures((9, 0)) == ["sm_90", "compute_90"]
    assert compiling.architectures((12, 0), "RTX 5090") == ["sm_120", "compute_120"]


def test_a_device_that_nvrtc_does_not_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiler", lambda: Compiler((13, 2), "/lib/libnvrtc.so.13", (75, 80, 88, 120)))
    assert compiling.architectures((8, 8), "Card") == ["sm_88", "compute_88"]
    assert compiling.architectures((8, 6), "Card") == ["compute_80"]  # the last one that it knows
    assert compiling.architectures((99, 0), "Card") == ["compute_120"]
    expected = r"NVRTC 13\.2 \(/lib/libnvrtc\.so\.13\) does not support Card of compute capability 6\.1: it supports 7\.5 to 12\.0"
    with pytest.raises(CompilerUnavailableError, match=rf"{expected}; install an older nvidia-cuda-nvrtc"):
        compiling.architectures((6, 1), "Card")


@pytest.mark.parametrize("missing", ["cuda.bindings.nvrtc", "cuda.pathfinder"])
def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in ("cuda", "cuda.bindings", "cuda.bindings.nvrtc", "cuda.pathfinder"):
        monkeypatch.setitem(sys.modules, name, None if name == missing else SimpleNamespace())
    package = "cuda-bindings" if "bindings" in missing else "cuda-pathfinder"
    with pytest.raises(
        CompilerUnavailableError, match=rf"{package} cannot be imported .*pip install 'oxigrad\[cuda\]'"
    ):
        compiling.compiler.__wrapped__()


def test_a_library_that_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> Any:
        raise RuntimeError(f"no lib{name}")

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", SimpleNamespace(load_nvidia_dynamic_lib=find))
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(CompilerUnavailableError, match=r"NVRTC was not found \(no libnvrtc\): expected pip install"):
        compiling.compiler.__wrapped__()


# --- the cache ---------------------------------------------------------------------------------------------------------


def test_what_was_compiled_is_read_from_the_cache(
    nvrtc: Compiler, cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiling.compile_text(SCALE, "sm_90", cache=cache)
    monkeypatch.setattr(compiling, "_compiled", None)
    assert compiling.compile_text(SCALE, "sm_90", cache=cache) == first
    assert first.resources and len(entries(cache)) == 1


def test_the_key_has_text_architecture_options_and_compiler(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def counted(text: str, options: tuple[str, ...], form: str) -> tuple[str, bytes]:
        compiled.append((text, options, form))
        return "log", form.encode()

    library = cache.folder.parent / "libnvrtc.so" if cache.folder else Path()
    library.parent.mkdir(parents=True)
    library.write_bytes(b"1")
    loaded = Compiler((13, 2), str(library), (90,))
    monkeypatch.setattr(compiling, "_compiled", counted)
    monkeypatch.setattr(compiling, "compiler", lambda: loaded)
    arguments: list[tuple[str, str, tuple[str, ...]]] = [
        ("a", "sm_90", ()),
        ("b", "sm_90", ()),
        ("a", "sm_80", ()),
        ("a", "compute_90", ()),
        ("a", "sm_90", ("-G",)),
    ]
    for _ in range(2):
        for text, architecture, options in arguments:
            compiling.compile_text(text, architecture, options=options, cache=cache)
    assert len(compiled) == len(arguments)
    library.write_bytes(b"22")  # an update with the same version number
    compiling.compile_text("a", "sm_90", cache=cache)
    loaded = Compiler((13, 3), str(library), (90,))
    compiling.compile_text("a", "sm_90", cache=cache)
    assert len(compiled) == len(arguments) + 2


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "another"])
def test_a_damaged_entry_is_compiled_anew(nvrtc: Compiler, cache: DiskCache, damage: str) -> None:
    expected = compiling.compile_text(SCALE, "compute_90", cache=cache)
    (file,) = entries(cache)
    stored = file.read_bytes()
    if damage == "another":  # whole, but of another text
        compiling.compile_text(SPILLS, "compute_90", cache=cache)
        (other,) = set(entries(cache)) - {file}
        os.replace(other, file)
    else:
        middle = len(stored) // 2
        file.write_bytes(
            {"empty": b"", "cut": stored[:middle], "changed": stored[:middle] + b"?" + stored[middle + 1 :]}[damage]
        )
    assert compiling.compile_text(SCALE, "compute_90", cache=cache) == expected
    assert file.read_bytes() == stored


def test_a_folder_that_cannot_be_used_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below", None):
        cache = DiskCache(folder)
        cache.write(b"key", b"content")
        assert cache.read(b"key") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_folder_that_others_may_write_to_is_not_used(cache: DiskCache) -> None:
    cache.write(b"key", b"content")
    assert cache.read(b"key") == b"content" and cache.folder is not None
    cache.folder.chmod(0o777)
    assert cache.read(b"key") is None
    cache.write(b"other", b"content")
    assert len(entries(cache)) == 1


def test_a_failed_write_leaves_nothing_behind(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.write(b"key", b"content")
    assert entries(cache) == [] and cache.read(b"key") is None


def test_a_folder_keeps_a_bounded_number_of_entries(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "LIMIT", 8)
    for number in range(8):
        cache.write(b"%d" % number, b"content")
    for age, file in enumerate(entries(cache)):
        os.utime(file, (time.time() - 100 - age, time.time() - 100 - age))
    abandoned = entries(cache)[0].with_name("0.tmp")
    abandoned.write_bytes(b"")
    os.utime(abandoned, (0, 0))
    cache.write(b"newest", b"content")
    assert len(entries(cache)) == 7 and cache.read(b"newest") == b"content" and not abandoned.exists()


def _write_often(folder: Path) -> int:
    """Reads and writes one entry, and counts the reads that gave something else."""
    cache, content = DiskCache(folder), b"content" * 10_000
    wrong = 0
    for _ in range(50):
        cache.write(b"key", content)
        wrong += cache.read(b"key") != content
    return wrong


def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_write_often, [tmp_path, tmp_path]) == [0, 0]
    assert len(entries(DiskCache(tmp_path))) == 1


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have other folders")
def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    above = tmp_path if variable == "XDG_CACHE_HOME" else tmp_path / ".cache"
    assert disk_cache.default_folder() == above / "oxigrad" / "kernels"


def test_without_a_home_there_is_no_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("could not determine home directory")

    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert disk_cache.default_folder() is None
