"""Automatic differentiation and optimizers for any array library, with a Rust core."""

from oxigrad import derivatives, xp
from oxigrad._core import Tape, Variable
from oxigrad._core import plain as stop_gradient

__all__ = ["Tape", "Variable", "stop_gradient", "xp"]
