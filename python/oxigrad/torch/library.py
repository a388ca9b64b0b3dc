"""PyTorch, imported by name: a type checker needs no stubs of it, and this package has its name."""

from typing import Any

from oxigrad._names import library

torch: Any = library("torch", "oxigrad.torch needs PyTorch: python -m pip install torch")
