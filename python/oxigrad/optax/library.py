"""JAX and optax, imported by name: a type checker needs no stubs of them, and this package has the name of one."""

import importlib
from typing import Any

try:
    jax: Any = importlib.import_module("jax")
    optax: Any = importlib.import_module("optax")
except ModuleNotFoundError as error:
    message = "oxigrad.optax needs JAX and optax: python -m pip install optax"
    raise ModuleNotFoundError(message, name=error.name) from error
