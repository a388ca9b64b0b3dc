"""Update rules: what an optimizer does to one parameter, written once over ``xp``. Imports nothing.

A rule takes ``xp``, the parameter ``p``, its gradient ``g`` and its slots, and returns the new parameter and the new
slots. After ``*`` come what is supplied, if it is named (``step``, counted from 1, and ``noise``), and the
hyperparameters with their defaults. A hyperparameter that is True, False, None or a string is a flag: it may be branched
on; a numeric one is a symbol, and may not.
"""


def sgd(xp, p, g, *, learning_rate=1e-3, weight_decay=0.0):
    """Stochastic gradient descent, with L2 regularization ``weight_decay`` added to the gradient (torch.optim.SGD)."""
    return p - learning_rate * (g + weight_decay * p)


def momentum(xp, p, g, m, *, step, learning_rate=1e-3, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False):
    """Gradient descent with momentum, as in torch.optim.SGD: the first step takes the gradient undampened.

    Nesterov's form looks ahead by one more application of the momentum (Sutskever et al. 2013).
    """
    g = g + weight_decay * p
    m = momentum * m + xp.where(step == 1, 1.0, 1.0 - dampening) * g
    direction = g + momentum * m if nesterov else m
    return p - learning_rate * direction, m


def adam(xp, p, g, m, v, *, step, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    rate = learning_rate / (1 - beta1**step)
    root = xp.sqrt(v) * (1 / xp.sqrt(1 - beta2**step))
    return p - rate * m / (root + epsilon), m, v


def adamw(xp, p, g, m, v, *, step, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=1e-2):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101), applied first, as torch does."""
    p = (1 - learning_rate * weight_decay) * p
    return adam(xp, p, g, m, v, step=step, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
