"""The workers of the rows of `rows.distributed`: a job of MPI that runs what it is told on its standard input.

    python -m oxigrad.launch --quiet -n 3 benches/mpi_job.py

Rank 0 reads lines ``NAME COUNT``, all ranks run that function so many times, and rank 0 answers "done" or "wrong: ...". Between
commands the ranks sleep: waiting in MPI would use the processors.
"""

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import sizes
from mpi_trainings import Module, Transformer
from oxigrad import distributed, optim
from oxigrad.distributed import DataParallel, Header

COUNT = 2_500_000  # 10 MB of float32
TAG = 77


class Work:
    """The state of a rank, and the work that it can be told to run; each function leaves the mean over the ranks in ``buffer``."""

    def __init__(self) -> None:
        self.world = MPI.COMM_WORLD.Dup()
        self.comm = distributed.communicator("mpi")
        self.rank, self.size = self.world.rank, self.world.size
        count = sizes.numbers(COUNT)
        self.given = np.random.default_rng(self.rank).standard_normal(count, np.float32)
        self.buffer, self.other = self.given.copy(), np.empty(count, np.float32)
        self.model = gpt2(8 if sizes.is_small() else 77)
        self.gradients = {name: np.full_like(array, self.rank + 1) for name, array in self.model.items()}
        self.optimizer = DataParallel(optim.SGD(1e-3), communicator=self.comm)
        self.flat = np.concatenate([gradient.reshape(-1) for gradient in self.gradients.values()])
        self.sum = np.empty_like(self.flat)

    @functools.cached_property
    def transformer(self) -> Transformer:
        return Transformer(self.comm)

    @functools.cached_property
    def module(self) -> Module:
        return Module(self.comm, self.world)

    def transformer_ours(self) -> None:
        """A step of a small transformer, by the mean of the gradients."""
        self.transformer.step("ours")

    def transformer_alone(self) -> None:
        """The same step by the worker's own gradient: what it computes."""
        self.transformer.step("alone")

    def module_ours(self) -> None:
        """A step of a transformer of PyTorch."""
        self.module.step("ours")

    def module_raw(self) -> None:
        """The same by DistributedDataParallel."""
        self.module.step("raw")

    def reduce_ours(self) -> None:
        """All-reduce by the protocol."""
        self.buffer[:] = self.given
        self.comm.all_reduce([self.buffer])

    def reduce_raw(self) -> None:
        """All-reduce by mpi4py, and the division."""
        self.buffer[:] = self.given
        self.world.Allreduce(MPI.IN_PLACE, self.buffer)
        self.buffer /= self.size

    def round_ours(self) -> None:
        """Pushes to rank 0 and takes the mean, as checked messages."""
        if self.rank:
            self.comm.send(0, Header(TAG), [self.given])
            self.comm.recv_any([self.buffer], tag=TAG)
            return
        self.buffer[:] = self.given
        for _ in range(1, self.size):
            self.comm.recv_any([self.other], tag=TAG)
            self.buffer += self.other
        self.buffer /= self.size
        for rank in range(1, self.size):
            self.comm.send(rank, Header(TAG), [self.buffer])

    def round_raw(self) -> None:
        """The same by mpi4py, with nothing checked."""
        if self.rank:
            self.world.Send(self.given, 0)
            self.world.Recv(self.buffer, 0)
            return
        self.buffer[:] = self.given
        for _ in range(1, self.size):
            self.world.Recv(self.other, MPI.ANY_SOURCE)
            self.buffer += self.other
        self.buffer /= self.size
        for rank in range(1, self.size):
            self.world.Send(self.buffer, rank)

    def model_ours(self) -> None:
        """One step of SGD on the model, by the mean of the gradients."""
        self.optimizer.update(self.model, self.gradients)

    def model_raw(self) -> None:
        """The sum of the flat gradients alone, which no step can do without."""
        self.world.Allreduce(self.flat, self.sum)

    def check(self, name: str) -> str:
        """Runs a function once; the difference from the right result in words, empty where there is none."""
        if name.startswith(("transformer", "module")):
            training, which = name.split("_")
            return getattr(self, training).check(which, self.world)
        if name.startswith("model"):
            before = float(self.model["ln_f.b"][0])
            getattr(self, name)()
            mean = (self.size + 1) / 2
            found = (
                float(self.sum[0]) / self.size
                if name == "model_raw"
                else (before - float(self.model["ln_f.b"][0])) * 1e3
            )
            return "" if abs(found - mean) < 1e-2 else f"the mean is {found}, expected {mean}"
        expected = np.zeros(len(self.given))
        self.world.Allreduce(self.given.astype(np.float64), expected)
        getattr(self, name)()
        error = float(np.max(np.abs(self.buffer - expected / self.size)))
        return "" if error < 1e-6 else f"the mean is off by {error:.3g}"


def gpt2(width: int) -> dict[str, np.ndarray]:
    """Parameters of the 148 shapes of GPT-2 small (Radford et al. 2019), of another width than 768."""
    shapes: dict[str, tuple[int, ...]] = {"wte": (50257 if width > 8 else 257, width), "wpe": (1024, width)}
    for layer in range(12):
        for name, shape in {
            "ln_1.g": (width,),
            "ln_1.b": (width,),
            "attn.w": (width, 3 * width),
            "attn.b": (3 * width,),
            "proj.w": (width, width),
            "proj.b": (width,),
            "ln_2.g": (width,),
            "ln_2.b": (width,),
            "fc.w": (width, 4 * width),
            "fc.b": (4 * width,),
            "out.w": (4 * width, width),
            "out.b": (width,),
        }.items():
            shapes[f"h{layer}.{name}"] = shape
    shapes |= {"ln_f.g": (width,), "ln_f.b": (width,)}
    return {name: np.ones(shape, np.float32) for name, shape in shapes.items()}


def told(work: Work) -> tuple[str, int] | None:
    """The next command, on all ranks; None at the end."""
    line = np.zeros(64, np.uint8)
    if work.rank == 0:
        text = sys.stdin.readline().encode()
        line[: len(text)] = np.frombuffer(text, np.uint8)
    request = work.world.Ibcast(line, 0)
    while not request.Test():
        time.sleep(1e-4)
    words = line.tobytes().rstrip(b"\0").decode().split()
    return (words[0], int(words[1])) if words else None


def main() -> None:
    """Runs commands until the end of the input."""
    if "--small" in sys.argv:
        sizes.shrink()
    work = Work()
    while command := told(work):
        name, count = command
        answer = work.check(name) if count == 0 else ""
        run: Callable[[], Any] = getattr(work, name)
        for _ in range(count):
            run()
        wrong = work.world.gather(answer) or []
        if work.rank == 0:
            sys.stdout.write(next((f"wrong: {each}\n" for each in wrong if each), "done\n"))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
