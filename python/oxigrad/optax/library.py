"""JAX and optax, imported by name: a type checker needs no stubs of them, and this package has the name of one."""

from typing import Any

from oxigrad._names import library

jax: Any = library("jax", "oxigrad.optax needs JAX and optax: python -m pip install optax")
optax: Any = library("optax", "oxigrad.optax needs JAX and optax: python -m pip install optax")
