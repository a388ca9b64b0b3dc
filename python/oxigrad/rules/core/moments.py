"""Moving means of the gradient and of its square, which Adam and its relatives share."""


def moving_mean(mean, value, decay):
    """The moving mean after one more value: ``decay * mean + (1 - decay) * value``."""
    return decay * mean + (1 - decay) * value


def moments(m, v, g, beta1, beta2):
    """The moving means of the gradient and of its square after one more gradient."""
    return moving_mean(m, g, beta1), beta2 * v + (1 - beta2) * g * g


def root(xp, v, correction, epsilon, mode="outside", epsilon_root=None):
    """The square root of ``v / correction``, with ``epsilon`` added.

    Epsilon is added "outside" of the corrected root as in torch and optax, or "inside" the root. "hat" adds it to the
    root of ``v`` before the correction: Kingma and Ba's epsilon hat, as in Keras. ``epsilon_root`` is added inside the
    root in addition.
    """
    if epsilon_root is not None:
        v, correction = v * (1 / correction) + epsilon_root, 1.0
    if mode == "outside":
        return xp.sqrt(v) * (1 / xp.sqrt(correction)) + epsilon
    if mode == "inside":
        return xp.sqrt(v * (1 / correction) + epsilon)
    if mode == "hat":
        return (xp.sqrt(v) + epsilon) * (1 / xp.sqrt(correction))
    raise ValueError(f"epsilon_mode is {mode!r}: expected 'outside', 'inside' or 'hat'")
