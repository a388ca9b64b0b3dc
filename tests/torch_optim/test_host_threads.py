"""The number of threads of updates in host memory: ``HostMemory(threads=...)``."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from oxigrad import _core  # noqa: E402
from oxigrad.torch.step.offload.pieces import TensorPiece  # noqa: E402

THREADS = """
import sys, pathlib, time, torch, oxigrad as ox
from oxigrad.torch import AdamW, HostMemory
ox.set_num_threads(4)
p = torch.nn.Parameter(torch.ones(1 << 20))
opt = AdamW([p], state_device=HostMemory(threads=int(sys.argv[1])) if sys.argv[1] != "0" else None)
p.grad = torch.full_like(p, 0.5)
opt.step()
def name(task):
    try:
        return (task / "comm").read_text()
    except OSError:  # a thread of PyTorch's that ends meanwhile
        return ""
def workers():
    names = [*map(name, pathlib.Path("/proc/self/task").iterdir())]
    return sum(text.startswith("oxigrad-") and text[8].isdigit() for text in names)
# A thread sets its name itself, which can be after the update that did not need it.
until = time.monotonic() + 20
while workers() < int(sys.argv[2]) and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.1)
print(workers(), ox.get_num_threads(), p.data[0].item().hex())
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="threads are counted by /proc")
def test_updates_use_at_most_the_threads_of_the_memory() -> None:
    run = lambda threads, workers: subprocess.run(  # noqa: E731
        [sys.executable, "-c", THREADS, str(threads), str(workers)], capture_output=True, text=True, check=True
    ).stdout.split()
    everywhere = run(0, 4)
    # A pool has the threads that are used; an update by one thread runs on the thread that calls.
    runs = {(threads, workers): run(threads, workers) for threads, workers in ((1, 0), (3, 3), (8, 4))}
    assert {limits: int(result[0]) for limits, result in runs.items()} == {limits: limits[1] for limits in runs}
    assert all(result[1:] == everywhere[1:] for result in runs.values())


def test_a_limit_of_threads_ends_with_the_update() -> None:
    limits: list[int | None] = []
    p = torch.nn.Parameter(torch.ones(100))
    opt = ours.AdamW([p], state_device=ours.HostMemory(threads=1))
    p.grad = torch.ones(100)
    with mock.patch.object(TensorPiece, "use", autospec=True, side_effect=lambda piece, memory: limits.append(limit())):
        opt.step()
    assert limits == [1] and limit() is None


def limit() -> int | None:
    """The limit of this thread."""
    before = _core.limit_threads(None)
    _core.limit_threads(before)
    return before


@pytest.mark.parametrize("threads", [0, -1, 2000, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(threads: Any) -> None:
    with pytest.raises(ValueError, match="threads is"):
        ours.HostMemory(threads=threads)
