"""Trainings of the workers of `mpi_job`: a step by `DataParallel`, beside the same step without other workers and beside PyTorch's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import oxigrad as ox
from oxigrad import optim
from oxigrad.distributed import DataParallel

RATE = 1e-3
BUCKET = 1 << 17


class Transformer:
    """The small transformer of `rows.transformer`, by `minimize` with buckets that leave during the replay, and without other workers."""

    def __init__(self, comm: Any) -> None:
        from rows.transformer import LETTERS, Problem

        ox.set_num_threads(1)
        problem = Problem()
        tokens = np.random.default_rng(comm.rank).integers(0, LETTERS, problem.tokens.shape)
        self.models = {name: problem.model() for name in ("ours", "alone")}
        self.optimizers = {
            "ours": DataParallel(optim.AdamW(RATE), bucket_bytes=BUCKET, communicator=comm),
            "alone": optim.AdamW(RATE),
        }
        self.loss: Callable[[Any], Any] = lambda model: problem.demo.cross_entropy(model, tokens)

    def step(self, name: str) -> None:
        self.optimizers[name].minimize(self.loss, self.models[name])

    def check(self, name: str, world: Any) -> str:
        """Whether workers have the same parameters after a step, or others where each trains alone."""
        self.step(name)
        found = world.allgather(_digest(ox.tree.leaves(self.models[name])))
        are_same = len(set(found)) == 1
        return (
            ""
            if are_same == (name == "ours")
            else f"the parameters of {name} are {'the same' if are_same else 'different'}"
        )


class Module:
    """A transformer of PyTorch of these sizes, by oxigrad and by DistributedDataParallel over gloo with the fused AdamW."""

    def __init__(self, comm: Any, world: Any) -> None:
        import torch

        torch.set_num_threads(1)
        ox.set_num_threads(1)
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(
                "gloo", store=_store(torch, world), rank=world.rank, world_size=world.size
            )
        modules = [self._new(torch) for _ in range(2)]
        self.tokens = torch.tensor(np.random.default_rng(comm.rank).integers(0, 27, (32, 65)))
        self.modules = {"ours": modules[0], "raw": torch.nn.parallel.DistributedDataParallel(modules[1])}
        ours = DataParallel(optim.AdamW(RATE), communicator=comm)
        raw = torch.optim.AdamW(modules[1].parameters(), RATE, weight_decay=0.01, fused=True)
        self.takes = {"ours": lambda: ours.update(modules[0]), "raw": raw.step}
        self.cross_entropy = torch.nn.functional.cross_entropy

    @staticmethod
    def _new(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
        blocks = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        return torch.nn.Sequential(torch.nn.Embedding(27, 64), blocks, torch.nn.Linear(64, 27))

    def step(self, name: str) -> None:
        module = self.modules[name]
        module.zero_grad()
        scores = module(self.tokens[:, :-1])
        self.cross_entropy(scores.reshape(-1, 27), self.tokens[:, 1:].reshape(-1)).backward()
        self.takes[name]()

    def check(self, name: str, world: Any) -> str:
        """Whether workers have the same parameters after a step, which are those of the other contestant after as many."""
        self.step(name)
        arrays = [p.detach().numpy() for p in self.modules[name].parameters()]
        if len(set(world.allgather(_digest(arrays)))) != 1:
            return f"the parameters of {name} are different on each worker"
        if name == "raw":  # after ours
            others = [p.detach().numpy() for p in self.modules["ours"].parameters()]
            error = max(float(np.abs(a - b).max()) for a, b in zip(arrays, others, strict=True))
            return "" if error < 2 * RATE else f"the parameters differ by {error}"
        return ""


def _digest(arrays: Any) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def _store(torch: Any, world: MPI.Comm) -> Any:
    """A store of torch that rank 0 serves, at a port that the system gives it, and that all workers of this host reach."""
    new = torch.distributed.TCPStore
    served = new("127.0.0.1", 0, is_master=True, wait_for_workers=False) if world.rank == 0 else None
    port = world.bcast(None if served is None else served.port)
    return new("127.0.0.1", port, is_master=False) if served is None else served
