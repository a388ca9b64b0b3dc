"""Shampoo and SOAP: a statistic for each axis of a parameter, flattened into one slot. The rules are called on arrays.

If the step is a plain number, work of every ``interval``-th step is skipped in the other steps. A traced program
(``jax.jit``) computes it in every step and selects by ``where``.
"""

import functools
import math
import operator
from typing import Annotated, Literal

from oxigrad.ops.backends import holds_variable, without_variables
from oxigrad.rules.core.arrays import along, choose, finite_only, norm, number_like, share_of_new, zeros
from oxigrad.rules.core.eigenvectors import changes_of, column, identity, order_of, rounding, with_derivatives
from oxigrad.rules.core.ranges import Count, Decay, Interval, NonNegative, Share
from oxigrad.rules.core.slots import Slot

__all__ = ["shampoo", "soap"]


def _statistic_shapes(shape, max_size):
    """The shape of the statistic of each axis: a matrix, or its diagonal for axes longer than ``max_size``."""
    return [(n, n) if n <= max_size else (n,) for n in shape or (1,)]


def _flat_zeros(xp, p, shapes):
    return zeros(xp, p, (sum(map(math.prod, shapes)),))


def _split(xp, flat, shapes):
    ends = [sum(map(math.prod, shapes[: k + 1])) for k in range(len(shapes))]
    return [xp.reshape(flat[end - math.prod(s) : end], s) for s, end in zip(shapes, ends, strict=True)]


def _joined(xp, arrays):
    return xp.concat([xp.reshape(array, (math.prod(array.shape),)) for array in arrays])


def _covariance(xp, x, axis, shape):
    """The term of ``x`` in the statistic of an axis: products of its slices, summed over all other axes."""
    n = x.shape[axis]
    unfolded = xp.reshape(xp.moveaxis(x, axis, 0), (n, math.prod(x.shape) // max(n, 1)))
    if len(shape) == 1:
        return xp.sum(unfolded * unfolded, axis=1)
    return unfolded @ xp.matrix_transpose(unfolded)


def _applied(xp, x, axis, matrix, *, transposed=False):
    """A matrix applied to an axis; a vector represents a diagonal matrix."""
    if len(matrix.shape) == 1:
        return x * xp.reshape(matrix, along(x.shape, axis))
    return xp.moveaxis(xp.tensordot(x, matrix, axes=([axis], [0 if transposed else 1])), -1, axis)


def _applied_to_all(xp, x, matrices, *, transposed=False):
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            x = _applied(xp, x, axis, matrix, transposed=transposed)
    return x


# --- Shampoo ----------------------------------------------------------------------------------------------------------


def _statistics(xp, p, max_size):
    return _flat_zeros(xp, p, _statistic_shapes(p.shape, max_size))


def _shape_alone(xp, p):
    """An array without elements that has the shape of ``p`` in its own: statistics have one length for many shapes."""
    return zeros(xp, p, (0, *p.shape))


def _where_grafted(xp, p, grafting):
    return xp.zeros_like(p) if grafting == "adagrad" else None


def _eigh(xp, x):
    """Eigenvalues and eigenvectors; NaN where ``x`` is not finite."""
    return finite_only(xp, xp.linalg.eigh, x)


def _inverse_root(xp, statistic, degree, epsilon):
    """``(statistic + epsilon) ** (-1 / degree)`` by eigendecomposition, with negative eigenvalues clipped.

    Negative eigenvalues are rounding errors.
    """
    if len(statistic.shape) == 1:
        return (statistic + epsilon) ** (-1 / degree)
    values, vectors = _eigh(xp, without_variables(statistic))
    values = xp.maximum(values, 0.0) + without_variables(epsilon)
    root = (vectors * values ** (-1 / degree)) @ xp.matrix_transpose(vectors)
    order = max(map(order_of, (statistic, epsilon)))
    return root if order == 0 else _root_with_derivatives(xp, root, statistic, values, vectors, degree, epsilon, order)


def _root_with_derivatives(xp, root, statistic, values, vectors, degree, epsilon, order):
    """The constant ``root`` with its derivatives up to ``order``, which exist for equal eigenvalues too.

    Derivatives of eigenvectors do not exist there. In the constant basis, ``turned ** (1 / degree)`` is the solution of
    ``x**degree = turned``. The derivative of the power at the diagonal matrix of ``x`` multiplies elements by sums of
    products of its elements. Each iteration with that derivative adds the derivatives of one more order.
    """
    transposed, eye = xp.matrix_transpose(vectors), identity(values)
    turned = changes_of(xp.matmul(transposed, xp.add(statistic, epsilon * eye)) @ vectors) + values * eye
    x = values ** (1 / degree)
    slopes = sum(column(xp, x) ** k * x ** (degree - 1 - k) for k in range(degree))
    x = x * eye
    for _ in range(order):
        x = (turned - functools.reduce(operator.matmul, [x] * degree)) / slopes + x
    return changes_of(xp.matmul(vectors, xp.linalg.inv(x)) @ transposed) + root


def shampoo(
    xp,
    p,
    g,
    statistics=Slot.computed(_statistics),
    roots=Slot.computed(_statistics),
    m=Slot.zeros(when="momentum"),
    v=Slot.computed(_where_grafted),
    shape=Slot.computed(_shape_alone),
    *,
    step,
    learning_rate: NonNegative = 0.1,
    momentum: NonNegative = 0.0,
    beta2: Annotated[Share, "Decay of the covariances of gradients; 1 sums them."] = 1.0,
    epsilon: Annotated[NonNegative, "Small number added to the covariances before their root is taken."] = 1e-4,
    weight_decay: NonNegative = 0.0,
    interval: Annotated[
        Count, "Number of steps between computations of the inverse roots, which dominate the time."
    ] = 1,
    max_size: Annotated[
        int, Interval("[0, inf]"), "Longest axis with a full covariance; longer axes have a diagonal one."
    ] = 1200,
    graft_epsilon: Annotated[NonNegative, "Small number added to the denominator of the grafted Adagrad step."] = 1e-10,
    grafting: Annotated[
        Literal["sgd", "adagrad", None],
        'Rule whose step length is taken: "sgd", "adagrad", or None for Shampoo\'s own.',
    ] = None,
):
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance.

    The new matrix is ``p - learning_rate * L**-1/4 @ g @ R**-1/4``. L is ``epsilon`` plus the sum of ``g @ g.T``, and R
    is ``epsilon`` plus the sum of ``g.T @ g``. With ``k`` axes the exponent is ``-1 / 2k``. Axes longer than
    ``max_size`` have a diagonal statistic. The slots ``statistics`` and ``roots`` hold the arrays of all axes,
    flattened and concatenated; ``roots`` is recomputed every ``interval`` steps. The slot ``shape`` has no elements: by
    its shape a state of another matrix, such as the transposed one, is refused.

    ``beta2`` below 1 turns the sums into averages; ``momentum`` accumulates the gradient before the preconditioning
    (``m = momentum * m + g``). With ``grafting`` (Anil et al. 2020, arXiv:2002.09018) the step of each parameter has
    the norm of the step of "sgd" or "adagrad", whose sums decay by ``beta2`` too. ``weight_decay`` is decoupled.
    """
    if 0 in p.shape:
        return p, statistics, roots, m, v, shape
    shapes = _statistic_shapes(p.shape, max_size)
    x = xp.reshape(g, p.shape or (1,))
    share = share_of_new(xp, beta2)
    new_statistics = [
        beta2 * old + share * _covariance(xp, x, axis, shape)
        for axis, (old, shape) in enumerate(zip(_split(xp, statistics, shapes), shapes, strict=True))
    ]
    (roots,) = choose(
        xp,
        (step - 1) % interval == 0,
        lambda: [_joined(xp, [_inverse_root(xp, statistic, 2 * len(shapes), epsilon) for statistic in new_statistics])],
        lambda: [roots],
    )
    if m is not None:
        m = momentum * m + g
    direction = g if m is None else m
    update = _applied_to_all(xp, xp.reshape(direction, x.shape), _split(xp, roots, shapes))
    if grafting == "adagrad":
        v = beta2 * v + share * g * g
        direction = direction / (xp.sqrt(v) + graft_epsilon)
    if grafting is not None:
        length = norm(xp, update)
        update = update * xp.where(length > 0, norm(xp, direction) / length, 0.0)
    moved = (1 - learning_rate * weight_decay) * p - learning_rate * xp.reshape(update, p.shape)
    return moved, _joined(xp, new_statistics), roots, m, v, shape


# --- SOAP -------------------------------------------------------------------------------------------------------------


def _rotated_axes(shape, max_size, vectors):
    return [axis for axis, n in enumerate(shape) if (len(shape) > 1 or vectors) and n <= max_size]


def _matrices(xp, p, max_size, vectors):
    axes = _rotated_axes(p.shape, max_size, vectors)
    return _flat_zeros(xp, p, [(p.shape[a], p.shape[a]) for a in axes]) if axes else None


def _eigenvectors(xp, statistic):
    """The eigenvectors as columns, in descending order of eigenvalues, as QR iteration orders them."""
    values, vectors = _eigh(xp, without_variables(statistic))
    return xp.flip(with_derivatives(xp, vectors, values, statistic), axis=1)


def _orthogonal(xp, x):
    """The orthogonal factor of ``x``, with derivatives.

    In derivatives, a column that depends on the columns before it only turns to stay orthogonal to them.
    """
    q, r = xp.linalg.qr(without_variables(x))
    if not holds_variable(x):
        return q
    sizes = xp.abs(xp.sum(r * identity(r[0, :]), axis=0))
    turned = xp.linalg.qr(xp.where(sizes <= rounding(xp, sizes), q, x))[0]
    return changes_of(turned * xp.sign(xp.sum(without_variables(turned) * q, axis=0))) + q


def soap(
    xp,
    p,
    g,
    m,
    v,
    statistics=Slot.computed(_matrices),
    bases=Slot.computed(_matrices),
    *,
    step,
    learning_rate: NonNegative = 3e-3,
    beta1: Decay = 0.95,
    beta2: Annotated[Decay, "Decay of second moments and of the covariances of gradients."] = 0.95,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 1e-2,
    interval: Annotated[Count, "Number of steps between updates of the bases, each a QR decomposition."] = 10,
    max_size: Annotated[
        int, Interval("[0, inf]"), "Longest axis that is rotated; longer axes stay as they are."
    ] = 10000,
    vectors: Annotated[bool, "Whether parameters with one axis are rotated too."] = False,
):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics.

    The slots ``statistics`` and ``bases`` hold the arrays of all axes, flattened and concatenated. Every ``interval``
    steps the bases are updated by one power iteration and a QR decomposition. Axes longer than ``max_size`` are not
    rotated, nor are vectors unless ``vectors`` is set: without rotation it is Adam. As in the authors' code the first
    step only initializes the statistics and the bases, and leaves the parameter unchanged. Unlike there, ``epsilon`` is
    added after the bias correction and the weight is decayed before the update, as in AdamW.

    While the statistics do not have full rank, some eigenvectors are not unique: other libraries may compute others.
    """
    if 0 in p.shape:
        return p, m, v, statistics, bases
    axes = _rotated_axes(p.shape, max_size, vectors)
    shapes = [(p.shape[axis], p.shape[axis]) for axis in axes]
    new_statistics, rotations = [], [None] * len(p.shape)
    if axes:
        for axis, old, basis in zip(axes, _split(xp, statistics, shapes), _split(xp, bases, shapes), strict=True):
            new_statistics.append(beta2 * old + (1 - beta2) * _covariance(xp, g, axis, old.shape))
            rotations[axis] = basis
    count = xp.maximum(step - 1, 1)

    def begun():
        return [p, m, v, _joined(xp, [_eigenvectors(xp, statistic) for statistic in new_statistics]) if axes else bases]

    def turned():
        pairs = zip(new_statistics, _split(xp, bases, shapes), strict=True)
        return [_joined(xp, [_orthogonal(xp, statistic @ basis) for statistic, basis in pairs])]

    def moved():
        rotated = _applied_to_all(xp, g, rotations, transposed=True)
        average = beta1 * m + (1 - beta1) * g
        square = beta2 * v + (1 - beta2) * rotated * rotated
        first, second = (number_like(xp, 1 - beta**count, p) for beta in (beta1, beta2))
        root = xp.sqrt(square / second) + epsilon
        update = _applied_to_all(xp, average, rotations, transposed=True) / first / root
        new = (1 - learning_rate * weight_decay) * p - learning_rate * _applied_to_all(xp, update, rotations)
        after = choose(xp, count % interval == 0, turned, lambda: [bases])[0] if axes else bases
        return [new, average, square, after]

    new, average, square, after = choose(xp, step == 1, begun, moved)
    return new, average, square, _joined(xp, new_statistics) if axes else statistics, after
