"""How slots begin that do not simply begin as zeros: their defaults; see `oxigrad.rules.rule.Slot`."""

from typing import Any


def only_with(hyperparameter: str) -> Any:
    """As zeros, and only where a hyperparameter is neither 0, None nor False: elsewhere the rule has None for the slot."""
    return hyperparameter


def copied(xp, p):
    """As the parameter does."""
    return xp.asarray(p, copy=True)


def filled(xp, p, initial_accumulator):
    """With the hyperparameter ``initial_accumulator`` everywhere."""
    return xp.full_like(p, initial_accumulator)


def rates(xp, p, learning_rate):
    """With the learning rate everywhere."""
    return xp.full_like(p, learning_rate)
