"""How slots begin that do not begin as zeros; see `oxigrad.rule.Slot`. Imports nothing."""


def copied(xp, p):
    """As the parameter does."""
    return xp.asarray(p, copy=True)


def filled(xp, p, initial_accumulator):
    """With the hyperparameter ``initial_accumulator`` everywhere."""
    return xp.full_like(p, initial_accumulator)


def rates(xp, p, learning_rate):
    """With the learning rate everywhere."""
    return xp.full_like(p, learning_rate)
