"""Update rules that see a parameter as a whole: its rows, its columns, its singular values. They are called on arrays.

What they have in common: a statistic for each axis of a parameter, all of them in one slot, a flat array. A condition on the
step that is a plain truth value saves the work that is not due; under a trace (``jax.jit``) both sides are computed.
"""

import math

from oxigrad._core import ShapeError

# Coefficients of the quintic x -> a x + b x^3 + c x^5 on singular values, one triple an iteration: those of Dion (Ahn et al.
# 2025, arXiv:2504.05295), which optax has under this name.
DION = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)


def _one_of(name, value, known):
    if value not in known:
        raise ValueError(f"{name} is {value!r}: expected one of {', '.join(map(repr, known))}")


def _zeros(xp, p, shape):
    return xp.namespace(p).zeros(shape, dtype=p.dtype, device=xp.device_of(p))


def _mean(xp, x, axis=None):
    """The mean, with the axes kept; that of no elements is zero."""
    axes = range(len(x.shape)) if axis is None else (axis,)
    count = math.prod(x.shape[a] for a in axes)
    return xp.sum(x, axis=axis, keepdims=True) / max(count, 1)


def _root_mean_square(xp, x):
    return xp.sqrt(_mean(xp, x * x))


def _norm(xp, x):
    return xp.sqrt(xp.sum(x * x))


def _share(xp, beta):
    """What a new term adds to a statistic that decays by ``beta``: all of it where nothing decays."""
    return xp.where(beta == 1.0, 1.0, 1.0 - beta)


def _choose(xp, condition, these, those):
    """What ``these`` returns where the condition holds, else what ``those`` does: both are called only if it is not known."""
    if isinstance(condition, bool):
        return these() if condition else those()
    return [None if a is None else xp.where(condition, a, b) for a, b in zip(these(), those(), strict=True)]


# --- factored and covered second moments -------------------------------------------------------------------------------


def _factored_axes(shape, factored, min_factored):
    """The two axes over which second moments are averaged; None where they are kept whole."""
    _one_of("factored", factored, ("last", "largest", None))
    if factored is None or len(shape) < 2:
        return None
    last = len(shape) - 2, len(shape) - 1
    axes = last if factored == "last" else sorted(range(len(shape)), key=shape.__getitem__)[-2:]
    return axes if all(shape[axis] >= min_factored for axis in axes) else None


def _zeros_without(xp, p, axis):
    return _zeros(xp, p, [1 if a == axis else n for a, n in enumerate(p.shape)])


def _row_moments(xp, p, factored, min_factored):
    axes = _factored_axes(p.shape, factored, min_factored)
    return axes and _zeros_without(xp, p, axes[1])


def _column_moments(xp, p, factored, min_factored):
    axes = _factored_axes(p.shape, factored, min_factored)
    return axes and _zeros_without(xp, p, axes[0])


def _whole_moments(xp, p, factored, min_factored):
    return None if _factored_axes(p.shape, factored, min_factored) else xp.zeros_like(p)


def _where_momentum(xp, p, momentum):
    return None if momentum is None else xp.zeros_like(p)


def adafactor(
    xp,
    p,
    g,
    row=_row_moments,
    column=_column_moments,
    v=_whole_moments,
    m=_where_momentum,
    *,
    step,
    learning_rate=1e-2,
    beta2_decay=-0.8,
    epsilon1=None,
    epsilon2=1e-3,
    clipping=1.0,
    weight_decay=0.0,
    min_factored=0,
    momentum=None,
    factored="last",
    relative_step=True,
    scale_parameter=True,
    add_epsilon=False,
):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): second moments of matrices as the product of a row and a column.

    By default as torch.optim.Adafactor: ``epsilon1`` (None: the machine epsilon) bounds root mean squares from below. optax
    and Keras add it to the squared gradients instead: ``add_epsilon=True, epsilon1=1e-30``. optax besides has the two ``factored="largest"``
    axes, if both have ``min_factored=128`` elements, no ``relative_step`` (which bounds the rate by ``1 / sqrt(step)``), the
    rate 1 where none is given, a ``momentum`` of the updates, and a weight decay that is not multiplied by the learning rate: divide it. Keras
    decays before it takes the root mean square of the parameter; here and in torch it is taken first.
    """
    axes = _factored_axes(p.shape, factored, min_factored)
    epsilon = float(xp.namespace(p).finfo(p.dtype).eps) if epsilon1 is None else epsilon1
    squared = g * g + epsilon if add_epsilon else g * g
    share = step**beta2_decay
    if axes is None:
        v = variance = v + share * (squared - v)
    else:
        row = row + share * (_mean(xp, squared, axes[1]) - row)
        column = column + share * (_mean(xp, squared, axes[0]) - column)
        mean = _mean(xp, row, axes[0])
        variance = row / (mean if add_epsilon else xp.maximum(mean, epsilon)) * column
    update = g / xp.sqrt(variance if add_epsilon else xp.maximum(variance, epsilon**2))
    rate = xp.minimum(learning_rate, 1 / xp.sqrt(step)) if relative_step else learning_rate
    scale = xp.maximum(_root_mean_square(xp, p), epsilon2) if scale_parameter else 1.0
    update = rate * scale / xp.maximum(_root_mean_square(xp, update) / clipping, 1.0) * update
    if momentum is not None:
        m = update = momentum * m + (1 - momentum) * update
    return (1 - learning_rate * weight_decay) * p - update, row, column, v, m


def _along(shape, axis):
    return [n if a == axis else 1 for a, n in enumerate(shape)]


def _covers(xp, p):
    return _zeros(xp, p, (sum(p.shape),)) if len(p.shape) > 1 else xp.zeros_like(p)


def sm3(xp, p, g, cover=_covers, m=None, *, learning_rate=0.1, momentum=0.9, beta2=1.0, epsilon=1e-8):
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as optax has it: Adagrad that keeps a maximum for each row, column, ...

    ``cover`` has the maxima of all axes, one axis after the other. ``beta2`` below 1 lets them decay. The momentum is an
    average of the scaled gradients; parameters of less than two axes have an accumulator for each element.
    """
    shape = p.shape
    starts = [sum(shape[:axis]) for axis in range(len(shape))]
    if len(shape) < 2:
        least = cover
    else:
        least = xp.reshape(cover[: shape[0]], _along(shape, 0))
        for axis in range(1, len(shape)):
            maxima = cover[starts[axis] : starts[axis] + shape[axis]]
            least = xp.minimum(least, xp.reshape(maxima, _along(shape, axis)))
    v = beta2 * least + _share(xp, beta2) * g * g
    m = momentum * m + (1 - momentum) * g * xp.where(v > 0, 1 / xp.sqrt(v + epsilon), 0.0)
    if len(shape) < 2:
        cover = v
    elif 0 not in shape:
        others = [tuple(a for a in range(len(shape)) if a != axis) for axis in range(len(shape))]
        cover = xp.concat([xp.max(v, axis=axes) for axes in others])
    return p - learning_rate * m, cover, m


# --- orthogonalised momentum -------------------------------------------------------------------------------------------


def _of_a_matrix(xp, p):
    if len(p.shape) != 2:
        raise ShapeError(
            f"Muon is for matrices, and this parameter has shape {tuple(p.shape)}: let another optimizer have it, as "
            f"in partition({{lambda path, array: array.ndim == 2: Muon(), '*': AdamW()}})"
        )
    return xp.zeros_like(p)


def _orthogonalized(xp, x, coefficients, epsilon):
    """Newton and Schulz' iteration, which brings the singular values near 1; on the shorter side of the matrix."""
    if x.shape[0] > x.shape[1]:
        return xp.matrix_transpose(_orthogonalized(xp, xp.matrix_transpose(x), coefficients, epsilon))
    x = x / xp.maximum(_norm(xp, x), epsilon)
    for a, b, c in coefficients:
        gram = x @ xp.matrix_transpose(x)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x


def muon(
    xp,
    p,
    g,
    m=_of_a_matrix,
    *,
    step,
    learning_rate=1e-3,
    momentum=0.95,
    weight_decay=0.1,
    epsilon=1e-7,
    iterations=5,
    a=3.4445,
    b=-4.7750,
    c=2.0315,
    coefficients=None,
    adjust="original",
    nesterov=True,
    debias=False,
):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): momentum, made orthogonal by a few iterations. For matrices only.

    ``iterations`` have the coefficients ``a, b, c``, or those of ``coefficients="dion"``, one triple an iteration. ``adjust`` is
    what the update of ``m`` rows and ``n`` columns is multiplied by: ``sqrt(max(1, m / n))`` ("original", torch and Keras),
    ``sqrt(max(1, n / m))`` ("transposed", optax, whose matrices have inputs first), ``0.2 sqrt(max(m, n))``
    ("match_rms_adamw", Liu et al. 2025, arXiv:2502.16982), ``sqrt(m / n)`` ("spectral_unclamped") or 1 (None).

    By default as torch.optim.Muon, which iterates in bfloat16; here it is in the parameter's dtype. ``debias`` corrects the averages
    for their beginning at zero, as optax does. optax and Keras add ``epsilon`` to the norm; here and in torch it bounds it.
    """
    _one_of("adjust", adjust, ("original", "transposed", "match_rms_adamw", "spectral_unclamped", None))
    _one_of("coefficients", coefficients, ("dion", None))
    rows, columns = p.shape
    m = momentum * m + (1 - momentum) * g
    now, then = (1 - momentum**step, 1 - momentum ** (step + 1)) if debias else (1.0, 1.0)
    direction = momentum / then * m + (1 - momentum) / now * g if nesterov else m / now
    triples = DION[-int(iterations) :] if coefficients else [(a, b, c)] * int(iterations)
    ratio = rows / max(columns, 1)
    scale = {
        "original": max(1.0, ratio) ** 0.5,
        "transposed": max(1.0, columns / max(rows, 1)) ** 0.5,
        "match_rms_adamw": 0.2 * max(rows, columns) ** 0.5,
        "spectral_unclamped": ratio**0.5,
        None: 1.0,
    }[adjust]
    update = _orthogonalized(xp, direction, triples, epsilon)
    return (1 - learning_rate * weight_decay) * p - learning_rate * scale * update, m


# --- a statistic for each axis -----------------------------------------------------------------------------------------


def _statistic_shapes(shape, max_size):
    """A matrix for each axis; its diagonal only where the axis is longer than ``max_size``."""
    return [(n, n) if n <= max_size else (n,) for n in shape or (1,)]


def _flat_zeros(xp, p, shapes):
    return _zeros(xp, p, (sum(map(math.prod, shapes)),))


def _split(xp, flat, shapes):
    ends = [sum(map(math.prod, shapes[: k + 1])) for k in range(len(shapes))]
    return [xp.reshape(flat[end - math.prod(s) : end], s) for s, end in zip(shapes, ends, strict=True)]


def _joined(xp, arrays):
    return xp.concat([xp.reshape(array, (math.prod(array.shape),)) for array in arrays])


def _covariance(xp, x, axis, shape):
    """What ``x`` adds to the statistic of an axis: products of its slices, summed over all else."""
    n = x.shape[axis]
    unfolded = xp.reshape(xp.moveaxis(x, axis, 0), (n, math.prod(x.shape) // max(n, 1)))
    if len(shape) == 1:
        return xp.sum(unfolded * unfolded, axis=1)
    return unfolded @ xp.matrix_transpose(unfolded)


def _applied(xp, x, axis, matrix, *, transposed=False):
    """A matrix applied to an axis; a vector stands for a diagonal one."""
    if len(matrix.shape) == 1:
        return x * xp.reshape(matrix, _along(x.shape, axis))
    return xp.moveaxis(xp.tensordot(x, matrix, axes=([axis], [0 if transposed else 1])), -1, axis)


def _applied_to_all(xp, x, matrices, *, transposed=False):
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            x = _applied(xp, x, axis, matrix, transposed=transposed)
    return x


# --- Shampoo -----------------------------------------------------------------------------------------------------------


def _statistics(xp, p, max_size):
    return _flat_zeros(xp, p, _statistic_shapes(p.shape, max_size))


def _where_grafted(xp, p, grafting):
    return xp.zeros_like(p) if grafting == "adagrad" else None


def _inverse_root(xp, statistic, exponent, epsilon):
    """``(statistic + epsilon) ** -exponent``, by eigenvalues, which rounding may have made negative."""
    if len(statistic.shape) == 1:
        return (statistic + epsilon) ** -exponent
    values, vectors = xp.linalg.eigh(statistic)
    return (vectors * (xp.maximum(values, 0.0) + epsilon) ** -exponent) @ xp.matrix_transpose(vectors)


def shampoo(
    xp,
    p,
    g,
    statistics=_statistics,
    roots=_statistics,
    m=_where_momentum,
    v=_where_grafted,
    *,
    step,
    learning_rate=0.1,
    epsilon=1e-4,
    beta2=1.0,
    weight_decay=0.0,
    interval=1,
    max_size=1200,
    graft_epsilon=1e-10,
    momentum=None,
    grafting=None,
):
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance.

    For a matrix that is ``p - learning_rate * L**-1/4 @ g @ R**-1/4``, where L is ``epsilon`` and the sum of ``g @ g.T``, R that of ``g.T @ g``;
    with ``k`` axes the exponent is ``-1 / 2k``. Axes longer than ``max_size`` have a diagonal statistic. Both are in
    slots, axis after axis, flat: ``statistics``, and ``roots``, computed anew every ``interval`` steps.

    ``beta2`` below 1 makes averages of the sums, ``momentum`` averages the gradient that is preconditioned (``m = momentum * m + g``). With ``grafting``
    (Anil et al. 2020, arXiv:2002.09018) each parameter moves as far as under "sgd" or "adagrad", whose sums decay by
    ``beta2`` too. ``weight_decay`` is decoupled.
    """
    _one_of("grafting", grafting, ("sgd", "adagrad", None))
    if 0 in p.shape:
        return p, statistics, roots, m, v
    shapes = _statistic_shapes(p.shape, max_size)
    x = xp.reshape(g, p.shape or (1,))
    share = _share(xp, beta2)
    kept = [
        beta2 * old + share * _covariance(xp, x, axis, shape)
        for axis, (old, shape) in enumerate(zip(_split(xp, statistics, shapes), shapes, strict=True))
    ]
    exponent = 1 / (2 * len(shapes))
    (roots,) = _choose(
        xp,
        (step - 1) % interval == 0,
        lambda: [_joined(xp, [_inverse_root(xp, statistic, exponent, epsilon) for statistic in kept])],
        lambda: [roots],
    )
    if momentum is not None:
        m = momentum * m + g
    direction = g if m is None else m
    update = _applied_to_all(xp, xp.reshape(direction, x.shape), _split(xp, roots, shapes))
    if grafting == "adagrad":
        v = beta2 * v + share * g * g
        direction = direction / (xp.sqrt(v) + graft_epsilon)
    if grafting is not None:
        length = _norm(xp, update)
        update = update * xp.where(length > 0, _norm(xp, direction) / length, 0.0)
    moved = (1 - learning_rate * weight_decay) * p - learning_rate * xp.reshape(update, p.shape)
    return moved, _joined(xp, kept), roots, m, v


# --- SOAP --------------------------------------------------------------------------------------------------------------


def _rotated_axes(shape, max_size, vectors):
    return [axis for axis, n in enumerate(shape) if (len(shape) > 1 or vectors) and n <= max_size]


def _matrices(xp, p, max_size, vectors):
    axes = _rotated_axes(p.shape, max_size, vectors)
    return _flat_zeros(xp, p, [(p.shape[a], p.shape[a]) for a in axes]) if axes else None


def _eigenvectors(xp, statistic):
    """As columns, those of the largest eigenvalues first, where the iteration by QR leaves them."""
    return xp.flip(xp.linalg.eigh(statistic)[1], axis=1)


def soap(
    xp,
    p,
    g,
    m,
    v,
    statistics=_matrices,
    bases=_matrices,
    *,
    step,
    learning_rate=3e-3,
    beta1=0.95,
    beta2=0.95,
    epsilon=1e-8,
    weight_decay=1e-2,
    interval=10,
    max_size=10000,
    vectors=False,
):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics.

    Statistics and bases are in slots, axis after axis, flat. Every ``interval`` steps a step of power iteration and a QR decomposition bring
    the bases up to date. Axes longer than ``max_size`` are not rotated, nor are ``vectors`` unless that is set: without rotation
    it is Adam. As in the authors' code the first step only begins the statistics and the bases, and moves nothing. Unlike
    there, ``epsilon`` is added after the bias correction and the weight is decayed before the update, as in AdamW.

    While the statistics have not full rank, some eigenvectors are not determined, and other libraries may choose others.
    """
    if 0 in p.shape:
        return p, m, v, statistics, bases
    axes = _rotated_axes(p.shape, max_size, vectors)
    shapes = [(p.shape[axis], p.shape[axis]) for axis in axes]
    kept, rotations = [], [None] * len(p.shape)
    if axes:
        for axis, old, basis in zip(axes, _split(xp, statistics, shapes), _split(xp, bases, shapes), strict=True):
            kept.append(beta2 * old + (1 - beta2) * _covariance(xp, g, axis, old.shape))
            rotations[axis] = basis
    count = xp.maximum(step - 1, 1)

    def begun():
        begun = _joined(xp, [_eigenvectors(xp, statistic) for statistic in kept]) if axes else bases
        return [p, m, v, begun]

    def turned():
        found = zip(kept, _split(xp, bases, shapes), strict=True)
        return [_joined(xp, [xp.linalg.qr(statistic @ basis)[0] for statistic, basis in found])]

    def moved():
        rotated = _applied_to_all(xp, g, rotations, transposed=True)
        average = beta1 * m + (1 - beta1) * g
        square = beta2 * v + (1 - beta2) * rotated * rotated
        root = xp.sqrt(square / (1 - beta2**count)) + epsilon
        update = _applied_to_all(xp, average, rotations, transposed=True) / (1 - beta1**count) / root
        new = (1 - learning_rate * weight_decay) * p - learning_rate * _applied_to_all(xp, update, rotations)
        after = _choose(xp, count % interval == 0, turned, lambda: [bases])[0] if axes else bases
        return [new, average, square, after]

    new, m, v, bases = _choose(xp, step == 1, begun, moved)
    return new, m, v, _joined(xp, kept) if axes else statistics, bases
