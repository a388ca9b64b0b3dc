# Printed by make generated.
from typing import Any
from oxigrad._typing import Array

def moving_mean(mean: Array, value: Array, decay: Array) -> Array:
    """The moving mean after one more value: ``decay * mean + (1 - decay) * value``."""

def moments(m: Array, v: Array, g: Array, beta1: Array, beta2: Array) -> tuple[Array, ...]:
    """The moving means of the gradient and of its square after one more gradient."""

def root(
    xp: Any, v: Array, correction: Array, epsilon: Array, mode: Array='outside', epsilon_root: Array=None,
) -> Array:
    """The square root of ``v / correction``, with ``epsilon`` added."""
