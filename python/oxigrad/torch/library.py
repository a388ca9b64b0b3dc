"""PyTorch, imported by name: a type checker needs no stubs of it, and this package has its name."""

import importlib
from typing import Any

torch: Any = importlib.import_module("torch")
