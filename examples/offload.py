"""Trains a small transformer in bfloat16 with the optimizer's step after the backward, inside of it, in host memory, and in a file.

    pip install torch ml-dtypes
    python examples/offload.py

Prints for each mode the bytes of parameters and of the optimizer's state, the most that gradients took at once, and the sum of what lies
on the device, and whether losses and parameters are those of steps after the backward, to the bit: without and with clipping by the global norm.
Then the same with several backwards a step, of micro-batches, whose gradients are added on the device or in host memory.
Parameters are in host memory here, in the place of a GPU. Then `minimize` trains a transformer of
NumPy arrays, whose peak is all memory beyond that before the step. The exit status is 1 where a line does not hold what it promises.
"""

import itertools
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes  # gives NumPy bfloat16
import numpy as np
import torch
import transformer
from torch import nn

import oxigrad as ox
from oxigrad.torch import AdamW, HostMemory

WIDTH, LETTERS, LENGTH, BATCH = 256, 32, 16, 8
# Gradients of biases and norms wait for each other in the backward, up to so many bytes.
WAITING = 1 << 20
PRECISIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "float32": (torch.float32, {}),
    "bfloat16, float32 master and moments": (torch.bfloat16, {"master": True, "state_dtype": "float32"}),
    "bfloat16, moments of 8 bits": (torch.bfloat16, {"rounding": "stochastic", "state_dtype": "8bit"}),
}

# A path stands for a file in a temporary folder.
MODES: dict[str, dict[str, Any]] = {
    "after": {},
    "in_backward": {"in_backward": True},
    "host": {"state_device": "host"},
    "host, in_backward": {"state_device": "host", "in_backward": True},
    "host, half of it": {"state_device": HostMemory(fraction=0.5)},
    "file": {"state_device": Path("state.safetensors")},
    "file, in_backward": {"state_device": Path("state.safetensors"), "in_backward": True},
}
# The batch in several backwards, whose gradients are added on the device, or in host memory.
PARTS = 4
IN_PARTS: dict[str, dict[str, Any]] = {
    "after, micro-batches": {},
    "host, in_backward, micro-batches": {"state_device": "host", "in_backward": True},
}


class Transformer(nn.Module):
    """A transformer that predicts the next letter; the embedding and the output share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, WIDTH)
        layers = [nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True) for _ in range(2)]
        self.layers = nn.ModuleList(layers)

    def forward(self, letters: Any) -> Any:
        x, mask = self.embedding(letters), nn.Transformer.generate_square_subsequent_mask(letters.shape[1])
        for layer in self.layers:
            x = layer(x, src_mask=mask.to(x.dtype))
        return x @ self.embedding.weight.T


class Peak:
    """The largest number of bytes of gradients that are alive, looked at whenever a gradient is final."""

    def __init__(self, model: nn.Module) -> None:
        self.most, self._params = 0, [*model.parameters()]
        for p in self._params:
            p.register_post_accumulate_grad_hook(self._look)

    def _look(self, _: Any) -> None:
        self.most = max(self.most, sum(p.grad.nbytes for p in self._params if p.grad is not None))


def count(value: Any) -> int:
    """The bytes of all tensors in a state."""
    if isinstance(value, dict):
        return sum(map(count, value.values()))
    return value.nbytes if isinstance(value, torch.Tensor) else 0


def on_device(opt: Any, params: list[Any], device: Any) -> int:
    """The bytes of the state of parameters whose state is not in host memory, or in a file: the smallest ones after a fraction."""
    if device is None:
        return sum(map(count, opt.state.values()))
    wanted = sum(p.nbytes for p in params) * getattr(device, "fraction", 1.0)
    by_size = sorted(params, key=lambda p: -p.nbytes)
    before = itertools.accumulate((p.nbytes for p in by_size), initial=0)
    return sum(count(opt.state[p]) for p, total in zip(by_size, before, strict=False) if total >= wanted)


def train(steps: int, dtype: Any, parts: int = 1, **options: Any) -> tuple[list[float], nn.Module, Any, int]:
    """The losses of some steps of so many micro-batches, the model, its optimizer and the peak of gradients."""
    torch.manual_seed(0)
    model = Transformer().to(dtype)
    peak = Peak(model)
    opt, losses = AdamW(model.parameters(), lr=1e-3, **options), []
    # In host memory gradients wait for their norm; otherwise a first backward measures them.
    measures = options.get("in_backward") and "max_norm" in options and options.get("state_device") != "host"
    for step in range(steps):
        start = torch.randint(LETTERS, (BATCH, 1), generator=torch.Generator().manual_seed(step))
        letters = (start + 3 * torch.arange(LENGTH + 1)) % LETTERS
        opt.zero_grad()
        *first, last = letters.chunk(parts)
        with opt.no_step():
            for part in first:
                (cross_entropy(model, part) / parts).backward()
        loss = cross_entropy(model, last) / parts
        if measures:
            with opt.norm_pass():
                loss.backward(retain_graph=True)
        loss.backward()
        opt.step()
        losses.append(loss.item() * parts)
    return losses, model, opt, peak.most


def cross_entropy(model: nn.Module, letters: Any) -> Any:
    """The mean loss of the predictions of each letter after the first."""
    predicted = model(letters[:, :-1]).float()
    return nn.functional.cross_entropy(predicted.flatten(0, 1), letters[:, 1:].flatten())


def compare(steps: int, name: str, clipping: dict[str, Any], folder: str) -> bool:
    """Trains in all modes, prints a line for each, and returns whether all is as it is promised."""
    dtype, precision = PRECISIONS[name]
    before: tuple[list[float], list[Any]] = [], []
    holds = True
    for mode, options in [*MODES.items(), *IN_PARTS.items()]:
        parts = PARTS if mode in IN_PARTS else 1
        device = options.get("state_device")
        placed = {"state_device": Path(folder) / device} if isinstance(device, Path) else {}
        losses, model, opt, most = train(steps, dtype, parts, **precision, **clipping, **{**options, **placed})
        params = [*model.parameters()]
        size, state = sum(p.nbytes for p in params), sum(map(count, opt.state.values()))
        total = size + most + on_device(opt, params, device)
        row = f"{name:37} {mode + ', clipped' * bool(clipping):41} {size:11,} {state:10,} {most:10,} {total:11,}"
        if not options:
            before = losses, params
        is_equal = losses == before[0] and all(map(torch.equal, params, before[1]))
        if not options:
            print(f"{row}  {losses[0]:.4f} to {losses[-1]:.4f}")
        else:
            print(f"{row}  {'equal to the bit' if is_equal else 'differs'}")
            small = sum(p.nbytes for p in params if p.nbytes <= 1 << 16)
            is_small = most <= sum(sorted(p.nbytes for p in params)[-2:]) + min(small, WAITING)
            holds = holds and is_equal and (is_small or "in_backward" not in options)
    return holds


# --- minimize --------------------------------------------------------------------------------------------------------------


def minimize(steps: int, *, in_backward: bool) -> tuple[list[float], list[np.ndarray], int]:
    """The losses of steps of `minimize` in bfloat16, the parameters, and the peak of memory in the last step."""
    generator = np.random.default_rng(0)
    model = ox.tree.map(lambda p: p.astype(ml_dtypes.bfloat16), transformer.new_model(generator))
    opt, losses = ox.optim.AdamW(1e-3, master=True), []
    tokens = next(transformer.batches(generator))[:2, :9]
    for step in range(steps):
        if step == steps - 1:
            tracemalloc.start()
        loss = opt.minimize(lambda model: transformer.cross_entropy(model, tokens), model, in_backward=in_backward)
        losses.append(float(loss))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return losses, ox.tree.leaves(model), peak


def compare_minimize(steps: int) -> bool:
    """Trains in both modes, prints a line for each, and returns whether the bits are the same, and the peak is lower in the backward."""
    transformer.WIDTH = WIDTH
    found = {mode: minimize(steps, in_backward=mode == "in_backward") for mode in ("after", "in_backward")}
    (losses, params, most), (others, same, least) = found.values()
    gradients = sum(p.nbytes for p in params)
    is_equal = losses == others and all(p.tobytes() == q.tobytes() for p, q in zip(params, same, strict=True))
    print(f"minimize, bfloat16: {gradients:,} bytes of gradients; peak {most:,}; {losses[0]:.4f} to {losses[-1]:.4f}")
    print(f"minimize, bfloat16, in_backward: peak {least:,}; {'equal to the bit' if is_equal else 'differs'}")
    return is_equal and least < most


def main(steps: int = 10) -> bool:
    """Trains in all modes, prints a table, and returns whether all is as it is promised."""
    print(f"{'':37} {'mode':41} {'parameters':>11} {'state':>10} {'gradients':>10} {'on device':>11}  loss")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # multiplies matrices this small as fast as two
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = itertools.product(PRECISIONS, ({}, {"max_norm": 0.5}))
            found = [compare(steps, name, clipping, folder) for name, clipping in rows]
    finally:
        torch.set_num_threads(threads)
    return all([*found, compare_minimize(min(steps, 3))])


if __name__ == "__main__":
    sys.exit(not main())
