"""Optimizers under optax's names, as gradient transformations of optax. Nothing imports this package.

* `aliases`, `composed`: the functions under optax's names; `transformation`: any optimizer of `oxigrad.optim` as a
  transformation.
* `displacement`: the change of a parameter, computed without the rounding of the new parameter.

They compose with ``optax.chain``, ``optax.MultiSteps``, ``optax.inject_hyperparams``, ``optax.masked`` and the like,
and work under ``jit``, ``vmap`` and ``scan``. Arguments have optax's names and defaults, and may be arrays and
schedules, optax's or ours. See docs/jax.md for what differs.

>>> import jax.numpy as jnp
>>> import optax
>>> import oxigrad.optax
>>> tx = optax.chain(optax.clip_by_global_norm(1.0), oxigrad.optax.adamw(1e-1))
>>> params = {"w": jnp.array([1.0, -1.0])}
>>> updates, state = tx.update({"w": jnp.array([0.3, 0.4])}, tx.init(params), params)
>>> optax.apply_updates(params, updates)["w"].round(2)
Array([ 0.9, -1.1], dtype=float32)

``apply`` takes the whole step, and does not write the updates:

>>> tx = oxigrad.optax.adamw(1e-1)
>>> params, state = tx.apply({"w": jnp.array([0.3, 0.4])}, tx.init(params), params)

Importing it raises `ModuleNotFoundError` where JAX or optax is missing.
"""

from collections.abc import Callable
from typing import Any

from oxigrad._names import unknown_name
from oxigrad.optax.aliases import ALIASES, function
from oxigrad.optax.composed import muon, noisy_sgd, optimistic_adam
from oxigrad.optax.library import optax
from oxigrad.optax.pytrees import State
from oxigrad.optax.transformation import Transformation, transformation

globals().update({name: function(name) for name in ALIASES})

__all__ = [
    "State",
    "Transformation",
    "muon",
    "noisy_sgd",
    "optimistic_adam",
    "transformation",
]
__all__ += list(ALIASES)  # pyright: ignore[reportUnsupportedDunderAll]
__dir__: Callable[[], list[str]] = __all__.copy


def __getattr__(name: str) -> Any:
    advice = {"apply_updates": "use optax.apply_updates, or tx.apply(grads, state, params)"}
    if name in optax.__all__:  # its transforms, compositions and schedules
        advice = {name: f"use optax.{name}, which works with oxigrad.optax"} | advice
    raise unknown_name(__name__, name, __all__, advice)
