"""What stands around a rule in a chain, written as rules over ``xp``. Imports nothing.

Those that take ``g`` return another gradient; those that take ``new``, the parameter after the update, return it changed.
"""


def finite(xp, p, g, *, total, guard):
    """Lets no step happen unless every gradient is finite: the difference of infinities, and of NaN, is NaN."""
    guard(total(g - g) == 0.0)
    return g


def accumulate(xp, p, g, mean, *, micro):
    """The mean of the gradients so far, of which this is number ``micro``, updated by Welford's recurrence."""
    mean = xp.where(micro == 1, g, mean + (g - mean) / micro)
    return mean, mean


def unscale(xp, p, g, *, inverse_scale):
    """The gradient of the loss, from that of the scaled loss."""
    return g * inverse_scale


def clip(xp, p, g, *, limit=1.0):
    """Each element of the gradient, at most ``limit`` from zero (torch's clip_grad_value_, optax's clip)."""
    return xp.clip(g, -limit, limit)


def clip_norm(xp, p, g, *, max_norm=1.0):
    """The gradient, scaled down where the norm of the leaf is above ``max_norm`` (Keras' clipnorm)."""
    norm = xp.sqrt(xp.sum(g * g))
    return g * xp.where(norm > max_norm, max_norm / norm, 1.0)


def clip_global_norm(xp, p, g, *, total, max_global_norm=1.0):
    """All gradients, scaled down together where their common norm is above ``max_global_norm`` (Pascanu et al. 2013).

    Exact, as optax has it; torch's clip_grad_norm_ divides by the norm plus 1e-6.
    """
    norm = xp.sqrt(total(g * g))
    return g * xp.where(norm > max_global_norm, max_global_norm / norm, 1.0)
