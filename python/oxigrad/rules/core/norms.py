"""Norms that a step records: transforms that change nothing, each with a slot of one number for its norm.

Their sums are computed in the pass over memory that updates the parameter, from the numbers that it holds then.
"""

from oxigrad.rules.core.arrays import wide_product
from oxigrad.rules.core.slots import Slot

# The slot of each norm; the hyphen keeps it apart from the arguments of rules.
SLOTS = {"gradient": "gradient-norm", "update": "update-norm", "parameter": "parameter-norm"}


def gradient_norm(xp, p, g, norm=Slot.scalar(name=SLOTS["gradient"])):
    """Records the norm of the gradient: unscaled and accumulated, before transforms of a chain."""
    return g, xp.sqrt(xp.sum(wide_product(xp, g, g)))


def update_norm(xp, p, new, norm=Slot.scalar(name=SLOTS["update"])):
    """Records the norm of the change of the parameter, before rounding to half precision."""
    change = new - p
    return new, xp.sqrt(xp.sum(wide_product(xp, change, change)))


def parameter_norm(xp, p, new, norm=Slot.scalar(name=SLOTS["parameter"])):
    """Records the norm of the parameter after the step, before rounding to half precision."""
    return new, xp.sqrt(xp.sum(wide_product(xp, new, new)))
