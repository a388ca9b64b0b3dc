"""Trains a small transformer of PyTorch with the optimizer's step after the backward, inside of it, and in host memory, without and with clipping.

    python examples/offload.py

Prints, for each mode and precision, the bytes of parameters and of the optimizer's state, the largest number of bytes that gradients take
at once, and whether losses and parameters are those of steps after the backward, to the bit. The exit status is 1 if they are not, or if
gradients of steps in the backward take more than the two largest ones and the small ones. The parameters are in host memory here; those on a GPU keep nothing
of the optimizer's state there.
"""

import sys
from typing import Any

import torch
from torch import nn

from oxigrad.torch import AdamW

WIDTH, LETTERS, LENGTH, BATCH = 256, 32, 16, 8
# Gradients of biases and norms wait for each other in the backward, up to so many bytes.
WAITING = 1 << 20
PRECISIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "float32": (torch.float32, {}),
    "bfloat16 with master weights": (torch.bfloat16, {"master": True}),
    "bfloat16, moments of 8 bits": (torch.bfloat16, {"rounding": "stochastic", "state_dtype": "8bit"}),
}


MODES: dict[str, dict[str, Any]] = {
    "after": {},
    "in_backward": {"in_backward": True},
    "host": {"state_device": "host"},
    "host, in_backward": {"state_device": "host", "in_backward": True},
}


class Transformer(nn.Module):
    """A transformer that predicts the next letter; the embedding and the output share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, WIDTH)
        layers = [nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True) for _ in range(3)]
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


def train(steps: int, dtype: Any, **options: Any) -> tuple[list[float], nn.Module, Any, int]:
    """The losses of some steps, the model, its optimizer and the peak of gradients."""
    torch.manual_seed(0)
    model = Transformer().to(dtype)
    peak = Peak(model)
    opt, losses = AdamW(model.parameters(), lr=1e-3, **options), []
    for step in range(steps):
        start = torch.randint(LETTERS, (BATCH, 1), generator=torch.Generator().manual_seed(step))
        letters = (start + 3 * torch.arange(LENGTH + 1)) % LETTERS
        predicted = model(letters[:, :-1]).float()
        loss = nn.functional.cross_entropy(predicted.flatten(0, 1), letters[:, 1:].flatten())
        opt.zero_grad()
        if options.get("in_backward") and "max_norm" in options and "state_device" not in options:
            with opt.norm_pass():
                loss.backward(retain_graph=True)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, model, opt, peak.most


def main(steps: int = 10) -> bool:
    """Trains in all modes, prints a table, and returns whether all is as it is promised."""
    print(f"{'':30} {'mode':26} {'parameters':>11} {'state':>9} {'gradients':>10}  loss")
    holds = True
    for name, (dtype, precision) in PRECISIONS.items():
        for clipping in ({}, {"max_norm": 0.5}):
            before = None
            for mode, options in MODES.items():
                losses, model, opt, most = train(steps, dtype, **precision, **clipping, **options)
                params = [*model.parameters()]
                state = sum(count(own) for own in opt.state.values())
                row = f"{name:30} {mode + ', clipped' * bool(clipping):26} {sum(p.nbytes for p in params):11,} {state:9,} {most:10,}"
                if before is None:
                    before = losses, params
                    print(f"{row}  {losses[0]:.4f} to {losses[-1]:.4f}")
                    continue
                is_equal = losses == before[0] and all(map(torch.equal, params, before[1]))
                print(f"{row}  {'equal to the bit' if is_equal else 'differs'}")
                small = sum(p.nbytes for p in params if p.nbytes <= 1 << 16)
                is_small = most <= sum(sorted(p.nbytes for p in params)[-2:]) + min(small, WAITING)
                holds = holds and is_equal and (is_small or "in_backward" not in options)
    return holds


if __name__ == "__main__":
    sys.exit(not main())
