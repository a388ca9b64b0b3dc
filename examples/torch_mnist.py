"""Trains a PyTorch model on the handwritten digits of scikit-learn, with an optimizer of oxigrad.

    python examples/torch_mnist.py

A standard PyTorch training loop, with AdamW of `oxigrad.torch` and a PyTorch scheduler. The exit status is 1 if the test accuracy is below
0.97.
"""

import sys
import time
from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

from oxigrad.torch import AdamW

GOAL = 0.97
EPOCHS = 40


def new_model() -> nn.Module:
    """A network of 64 inputs, two hidden layers of 128 units, and 10 outputs."""
    layers = [nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)]
    return nn.Sequential(*layers)


def load() -> tuple[TensorDataset, TensorDataset]:
    """Training and test data: images and labels."""
    pixels, digits = load_digits(return_X_y=True)
    parts = train_test_split(pixels.reshape(-1, 8, 8) / 16, digits, test_size=0.2, random_state=0, stratify=digits)
    x_train, x_test, y_train, y_test = map(torch.as_tensor, parts)
    return TensorDataset(x_train.float(), y_train), TensorDataset(x_test.float(), y_test)


def main(epochs: int = EPOCHS, made: Any = AdamW, **options: Any) -> float:
    """Trains the model, prints its progress, and returns the test accuracy."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # one thread multiplies matrices this small as fast as two
    data, test = load()
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = new_model()
    optimizer = made(model.parameters(), lr=1e-3, weight_decay=0.05, **options)
    scheduler = OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * len(loader))
    start, accuracy = time.perf_counter(), 0.0
    for epoch in range(1, epochs + 1):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(x)
        with torch.inference_mode():
            accuracy = (model(test.tensors[0]).argmax(1) == test.tensors[1]).double().mean().item()
        if epoch % 10 == 0 or epoch == epochs:
            print(f"epoch {epoch:3}  loss {total / len(data):.4f}  test {accuracy:.4f}")
    print(f"test accuracy {accuracy:.4f}, in {time.perf_counter() - start:.1f} s")
    return accuracy


if __name__ == "__main__":
    sys.exit(main() < GOAL)
