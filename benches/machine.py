"""The machine and the libraries that a run measures on, and how many threads each may use."""

import contextlib
import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PEERS = ("oxigrad", "numpy", "torch", "jax", "jaxlib", "optax", "autograd", "bitsandbytes")


def limit_threads(threads: int) -> None:
    """Says to every library how many threads to use. Must come before NumPy, torch or JAX are imported."""
    announce_threads(threads)
    set_threads(threads)


def announce_threads(threads: int) -> None:
    """Says in the environment how many threads to use, to libraries that are not imported yet.

    JAX's CPU client takes the size of its pool from ``NPROC``, and its matrix products from the XLA flag.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        os.environ[name] = str(threads)
    if threads == 1:
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def set_threads(threads: int) -> None:
    """Sets the number of threads of oxigrad and torch."""
    import oxigrad as ox

    ox.set_num_threads(threads)
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(threads)


@contextlib.contextmanager
def threads_limited(threads: int | None) -> Iterator[None]:
    """A context in which oxigrad, torch and NumPy's matrix products use this many threads; JAX's number is fixed."""
    if threads is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    import oxigrad as ox

    before = ox.get_num_threads()
    set_threads(threads)
    with threadpool_limits(threads, user_api="blas"):
        yield
    set_threads(before)


def describe(threads: int) -> dict[str, Any]:
    """The machine, the versions and the number of threads, for the header of a table."""
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "isa": _isa(),
        "threads": threads,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _PEERS},
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _cpuinfo(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _cpu() -> str:
    """Its name, and its family and model: some names are of a whole series."""
    name = _cpuinfo("model name") or platform.processor() or platform.machine()
    numbers = [_cpuinfo(key) for key in ("cpu family", "model\t")]
    return f"{name} (family {numbers[0]}, model {numbers[1]})" if all(numbers) else name


def _isa() -> str:
    """The widest instruction set that the CPU reports, of those that kernels are compiled for."""
    flags = set(_cpuinfo("flags").split())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return "AVX-512"
    if {"avx2", "fma"} <= flags:
        return "AVX2"
    return "NEON" if platform.machine() in ("aarch64", "arm64") else platform.machine()
