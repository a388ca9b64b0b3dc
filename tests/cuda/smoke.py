"""Whether steps on the GPU of this machine are right, in a minute: python tests/cuda/smoke.py

It prints a row for each property, and ends with status 1 where one does not hold, 2 where PyTorch finds no GPU that kernels run on. A time beside
PyTorch's fused AdamW is only reported. All of the tests take longer: ``make test-gpu``.

Arrays come from a `Library`: CUDA tensors of PyTorch here, and in tests arrays over a driver in host memory.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from oxigrad import cuda, optim
from oxigrad.optim import SGD, AdamW, chain

DTYPES = ("float64", "float32", "bfloat16", "float16")
MANY = 2**31 + 4097  # elements: more than numbers of 32 bits count
TIMED = 50_000_000


class Library(Protocol):
    """The functions of a library that the checks call. Its arrays on the host and on the device are updated by optimizers."""

    @property
    def name(self) -> str:
        """The device, and versions of what runs on it."""
        ...

    def host(self, values: np.ndarray, dtype: str) -> Any:
        """An array on the host."""
        ...

    def device(self, values: np.ndarray, dtype: str) -> Any:
        """An array on the device."""
        ...

    def bytes(self, array: Any) -> bytes:
        """The bytes of an array in row-major order, after all work of the device."""
        ...

    def filled(self, length: int, value: float, dtype: str) -> Any:
        """An array of one number on the device; raises `MemoryError` where there is no room for it."""
        ...

    def is_filled(self, array: Any, value: float) -> bool:
        """Whether all elements are this number."""
        ...

    def stream(self) -> AbstractContextManager[Any]:
        """A new stream as the current one, which waits for the one before; afterwards that waits for it."""
        ...

    def graph(self, function: Callable[[], object]) -> Callable[[], None]:
        """Captures the work of a function; the result replays it on the stream of the capture, which other work waits for."""
        ...

    def milliseconds(self, function: Callable[[], object], times: int) -> float:
        """The time of the device for one call, of so many."""
        ...

    def fused(self, p: Any, g: Any) -> Callable[[], object] | None:
        """A step of the library's own fused AdamW, if it has one."""
        ...


class Wrong(Exception):
    """A property that does not hold."""


class Skipped(Exception):
    """A check that cannot be made here."""


def values(seed: int, length: int = 10_001) -> np.ndarray:
    """Numbers of float32 from a normal distribution."""
    return np.random.default_rng(seed).standard_normal(length).astype(np.float32)


class Pair:
    """A model on the device and on the host, and an optimizer of each."""

    def __init__(
        self, library: Library, dtype: str, make: Callable[[], Any], lengths: Sequence[int] = (10_001, 37)
    ) -> None:
        self.library, self.dtype = library, dtype
        self.a, self.b = make(), make()
        self.lengths = lengths
        self.there, self.here = (self._model(place, 0) for place in (library.device, library.host))

    def _model(self, place: Callable[[np.ndarray, str], Any], seed: int) -> dict[str, Any]:
        return {f"w{n}": place(values(seed + n, n), self.dtype) for n in self.lengths}

    def gradients(self, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same gradients on the device and on the host."""
        return self._model(self.library.device, seed), self._model(self.library.host, seed)

    def step(self, seed: int) -> None:
        """A step of both."""
        there, here = self.gradients(seed)
        self.a.update(self.there, there)
        self.b.update(self.here, here)

    def check(self) -> None:
        """Raises `Wrong` where the bits differ."""
        for name, value in self.here.items():
            found, expected = (np.frombuffer(self.library.bytes(x), np.uint8) for x in (self.there[name], value))
            if differing := int((found != expected).sum()):
                raise Wrong(f"{name} of {self.dtype}: {differing} of {len(expected)} bytes differ from the host's")
        if self.a.step != self.b.step:
            raise Wrong(f"{self.a.step} steps were counted, {self.b.step} on the host")


# --- the checks: each returns what it found -----------------------------------------------------------------------------

PRECISIONS: dict[str, Callable[[], Any]] = {
    "AdamW": lambda: AdamW(0.1),
    "8-bit slots": lambda: AdamW(0.1, slot_dtype="8bit"),
    "global norm, guard": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), nonfinite="skip"),
    "stochastic rounding": lambda: AdamW(0.1, rounding="stochastic", seed=3),
}


def check_load(library: Library) -> str:
    """Kernels can run on the device."""
    if reason := cuda.why(library.device(values(0, 3), "float32")):
        raise Wrong(reason)
    return library.name


def check_bits(library: Library, dtype: str) -> str:
    """Three steps of each of `PRECISIONS` have the bits of the host."""
    for make in PRECISIONS.values():
        pair = Pair(library, dtype, make)
        for seed in (1, 2, 3):
            pair.step(seed)
        pair.check()
    return ", ".join(PRECISIONS)


def check_views(library: Library) -> str:
    """Parameters and gradients that begin off the alignment of a vector."""
    for dtype in DTYPES:
        for start, given in ((1, 3), (3, 0), (2, 1)):
            pair = Pair(library, dtype, lambda: AdamW(0.1), (9001,))
            there, here = ({"w": g["w9001"][given : given + 8990]} for g in pair.gradients(1))
            whole = pair.there, pair.here
            pair.there, pair.here = ({"w": model["w9001"][start : start + 8990]} for model in whole)
            pair.a.update(pair.there, there)
            pair.b.update(pair.here, here)
            pair.there, pair.here = whole  # what lies around a view is as it was
            pair.check()
    return "by 0 to 3 elements"


def check_graphs(library: Library) -> str:
    """Two CUDA graphs of steps of one optimizer, with gradients of their own, replayed in turn."""
    for make in (lambda: AdamW(0.1), lambda: AdamW(0.1, nonfinite="skip")):
        pair = Pair(library, "float32", make)
        graphs, given = [], [pair.gradients(seed) for seed in (1, 2)]
        for there, here in given:
            pair.a.update(pair.there, there)  # memory is allocated before a capture
            pair.b.update(pair.here, here)
            graphs.append(library.graph(lambda there=there, pair=pair: pair.a.update(pair.there, there)))
        for number in (0, 1, 1, 0, 1):
            graphs[number]()
            pair.b.update(pair.here, given[number][1])
        pair.check()
    return "replayed 5 times"


def check_streams(library: Library) -> str:
    """Steps on streams in turn, of an optimizer that ends while the last one works."""
    pair = Pair(library, "float32", lambda: AdamW(0.1, nonfinite="skip"))
    for seed in range(4):
        with library.stream():
            pair.step(seed)
    pair.check()
    with library.stream():
        pair.step(5)
        pair.a = pair.b
    pair.check()
    return "5 streams"


def check_many(library: Library, length: int) -> str:
    """An array of more elements than 32 bits count."""
    try:
        p, g = (library.filled(length, value, "float16") for value in (1.0, 0.5))
    except MemoryError as error:
        raise Skipped(str(error)) from error
    SGD(0.5).update({"w": p}, {"w": g})
    if not library.is_filled(p, 0.75):
        raise Wrong("elements were not updated")
    return f"{length} elements of float16"


def check_time(library: Library, length: int) -> str:
    """The time of a step of AdamW beside the library's own."""
    p, g = library.filled(length, 1.0, "float32"), library.filled(length, 0.5, "float32")
    opt = AdamW(1e-3)
    ours = library.milliseconds(lambda: opt.update({"w": p}, {"w": g}), 20)
    found = f"{ours:.3f} ms for {length} elements, {28 * length / ours / 1e6:.0f} GB/s"
    peer = library.fused(p, g)
    return found if peer is None else f"{found}; fused AdamW {library.milliseconds(peer, 20):.3f} ms"


def rows(library: Library, *, many: int, timed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """The checks by name."""
    yield "load", lambda: check_load(library)
    for dtype in DTYPES:
        yield f"bits of {dtype}", lambda dtype=dtype: check_bits(library, dtype)
    yield "views at odd offsets", lambda: check_views(library)
    yield "two CUDA graphs", lambda: check_graphs(library)
    yield "side streams", lambda: check_streams(library)
    yield "more than 2^31 elements", lambda: check_many(library, many)
    yield "time", lambda: check_time(library, timed)


def run(library: Library, *, many: int = MANY, timed: int = TIMED, write: Callable[[str], object] | None = None) -> int:
    """Runs the checks and writes a row for each; the status of the program."""
    status = 0
    for name, check in rows(library, many=many, timed=timed):
        start = time.perf_counter()
        try:
            outcome, text = "ok", check()
        except Skipped as error:
            outcome, text = "SKIPPED", str(error)
        except Exception as error:  # noqa: BLE001 - a row of its own, and the others follow
            outcome, text, status = "WRONG", f"{type(error).__name__}: {error}", 1
        (write or _line)(f"{name:24} {outcome:8} {time.perf_counter() - start:6.1f} s  {text}")
    return status


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# --- PyTorch ------------------------------------------------------------------------------------------------------------


class Torch:
    """CUDA tensors."""

    def __init__(self) -> None:
        import torch

        self._torch = torch

    @property
    def name(self) -> str:
        """See `Library.name`."""
        from oxigrad.cuda import driver
        from oxigrad.cuda.compiler import compiler

        return f"{driver.driver().name(0)}; {compiler()}; PyTorch {self._torch.__version__}"

    def host(self, values: np.ndarray, dtype: str) -> Any:
        """See `Library.host`."""
        return self._torch.tensor(values).to(getattr(self._torch, dtype))

    def device(self, values: np.ndarray, dtype: str) -> Any:
        """See `Library.device`."""
        return self.host(values, dtype).to("cuda")

    def bytes(self, array: Any) -> bytes:
        """See `Library.bytes`."""
        return array.detach().cpu().contiguous().view(self._torch.uint8).numpy().tobytes()

    def filled(self, length: int, value: float, dtype: str) -> Any:
        """See `Library.filled`."""
        try:
            return self._torch.full((length,), value, dtype=getattr(self._torch, dtype), device="cuda")
        except self._torch.cuda.OutOfMemoryError as error:
            raise MemoryError(str(error).splitlines()[0]) from error

    def is_filled(self, array: Any, value: float) -> bool:
        """See `Library.is_filled`."""
        return all(bool((part == value).all()) for part in array.split(2**28))

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """See `Library.stream`."""
        before, made = self._torch.cuda.current_stream(), self._torch.cuda.Stream()
        made.wait_stream(before)
        with self._torch.cuda.stream(made):
            yield
        before.wait_stream(made)

    def graph(self, function: Callable[[], object]) -> Callable[[], None]:
        """See `Library.graph`."""
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            function()
        return graph.replay

    def milliseconds(self, function: Callable[[], object], times: int) -> float:
        """See `Library.milliseconds`."""
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in "ab")
        for _ in range(3):
            function()
        start.record()
        for _ in range(times):
            function()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / times

    def fused(self, p: Any, g: Any) -> Callable[[], object] | None:
        """See `Library.fused`."""
        p.grad = g
        return self._torch.optim.AdamW([p], fused=True).step


def main() -> int:
    """Runs the checks over CUDA tensors of PyTorch."""
    try:
        import torch
    except ImportError:
        sys.stdout.write("PyTorch is not installed\n")
        return 2
    if not torch.cuda.is_available():
        sys.stdout.write("PyTorch finds no GPU\n")
        return 2
    return run(Torch())


if __name__ == "__main__":
    sys.exit(main())
