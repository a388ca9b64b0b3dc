"""Trains a small transformer with Muon whose momentum is in host memory, and compares it with Muon on the spot, to the bit.

    pip install torch ml-dtypes
    python examples/muon_offload.py

Muon takes whole matrices: each of the hidden ones is a chunk that goes through the ring of buffers. AdamW trains embeddings, biases and norms.
Prints for each place of the state the last loss, the bytes of state on the device, and whether losses and parameters are equal to the bit.
The exit status is 1 where they are not.
"""

import sys
from typing import Any

import numpy as np
import torch
from offload import BATCH, LENGTH, LETTERS, Transformer, count, cross_entropy

from oxigrad.torch import AdamW, Muon


def train(steps: int, **options: Any) -> tuple[list[float], list[np.ndarray], int]:
    """The losses of some steps, the parameters after them, and the bytes of state on the device."""
    torch.manual_seed(0)
    model = Transformer()
    hidden = [p for name, p in model.named_parameters() if p.ndim == 2 and "embedding" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embedding" in name]
    optimizers, losses = (Muon(hidden, lr=0.02, **options), AdamW(others, lr=1e-3, **options)), list[float]()
    for step in range(steps):
        start = torch.randint(LETTERS, (BATCH, 1), generator=torch.Generator().manual_seed(step))
        loss = cross_entropy(model, (start + 3 * torch.arange(LENGTH + 1)) % LETTERS)
        loss.backward()
        for opt in optimizers:
            opt.step()
            opt.zero_grad()
        losses.append(loss.item())
    for opt in optimizers:
        opt.synchronize()
    on_device = (
        0 if "state_device" in options else sum(count(state) for opt in optimizers for state in opt.state.values())
    )
    return losses, [p.detach().numpy().copy() for p in model.parameters()], on_device


def main(steps: int = 8) -> bool:
    """Trains with each place of the state; returns whether all trainings are one."""
    expected = train(steps)
    holds = expected[0][-1] < expected[0][0]
    for place, options in {"on the spot": {}, "host memory": {"state_device": "host"}}.items():
        losses, params, on_device = train(steps, **options)
        equal = losses == expected[0] and all(map(np.array_equal, params, expected[1]))
        print(
            f"{place:12} loss {losses[-1]:.6f}   {on_device:9,} bytes on the device   {'equal to the bit' if equal else 'DIFFERS'}"
        )
        holds = holds and equal
    return holds


if __name__ == "__main__":
    sys.exit(not main())
