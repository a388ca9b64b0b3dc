# Printed by make generated.
from typing import Any
from oxigrad._typing import Array

SLOTS: dict[str, str]
def gradient_norm(xp: Any, p: Array, g: Array, norm: Array=...) -> tuple[Array, ...]:
    """Records the norm of the gradient: unscaled and accumulated, before transforms of a chain."""

def update_norm(xp: Any, p: Array, new: Array, norm: Array=...) -> tuple[Array, ...]:
    """Records the norm of the change of the parameter, before rounding to half precision."""

def parameter_norm(xp: Any, p: Array, new: Array, norm: Array=...) -> tuple[Array, ...]:
    """Records the norm of the parameter after the step, before rounding to half precision."""
