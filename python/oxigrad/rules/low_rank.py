"""GaLore: moments of gradients that are projected to a low rank. The rule is called on arrays."""

from typing import Annotated, Literal

from oxigrad.ops.backends import holds_variable, without_variables
from oxigrad.rules.core.arrays import choose, finite_only, zeros
from oxigrad.rules.core.eigenvectors import with_derivatives
from oxigrad.rules.core.ranges import Count, Decay, NonNegative
from oxigrad.rules.core.slots import Slot

__all__ = ["galore"]


def _has_left(shape, projection):
    """Whether the gradient of a matrix is projected from the left; see `galore`."""
    is_tall = shape[0] >= shape[1]
    return projection in ("left", "full") or (projection == "reverse_std" if is_tall else projection == "std")


def _is_projected(shape):
    return len(shape) == 2 and 0 not in shape


def _sides(shape, projection):
    """Whether a parameter of this shape is projected from the left, and from the right."""
    if not _is_projected(shape):
        return False, False
    has_left = _has_left(shape, projection)
    return has_left, projection == "full" or not has_left


def _rank(rank, shape):
    return min(rank, *shape)


def _left(xp, p, rank, projection):
    return zeros(xp, p, (p.shape[0], _rank(rank, p.shape))) if _sides(p.shape, projection)[0] else None


def _right(xp, p, rank, projection):
    return zeros(xp, p, (_rank(rank, p.shape), p.shape[1])) if _sides(p.shape, projection)[1] else None


def _moment(xp, p, rank, projection):
    if not _is_projected(p.shape):
        return xp.zeros_like(p)
    low = [_rank(rank, p.shape) if side else n for side, n in zip(_sides(p.shape, projection), p.shape, strict=True)]
    return zeros(xp, p, low)


def _signed(xp, vectors, axis):
    """Vectors along ``axis`` with the signs with which the component of largest magnitude is positive."""
    largest, least = xp.max(vectors, axis=axis, keepdims=True), xp.min(vectors, axis=axis, keepdims=True)
    return xp.where(largest >= -least, vectors, -vectors)  # numbers alone would not have the dtype of the vectors


def _bases(xp, g, rank, sides):
    """The first singular vectors of the gradient on each of the sides: columns on the left, rows on the right."""
    constant, is_whole = without_variables(g), holds_variable(g)
    u, values, vh = finite_only(xp, lambda x: xp.linalg.svd(x, full_matrices=is_whole), constant)
    left, right = u, xp.matrix_transpose(vh)
    if is_whole:
        left, right = _singular(xp, left, values, g), _singular(xp, right, values, xp.matrix_transpose(g))
    return [
        _signed(xp, left[:, :rank], 0) if sides[0] else None,
        _signed(xp, xp.matrix_transpose(right[:, :rank]), 1) if sides[1] else None,
    ]


def _singular(xp, vectors, values, g):
    """The constant left singular vectors of ``g``, as columns, with their derivatives."""
    absent = xp.zeros_like(vectors[0, values.shape[0] :])
    return with_derivatives(xp, vectors, xp.concat([values * values, absent]), g @ xp.matrix_transpose(g))


def _between(xp, left, x, right):
    """The product of the matrices that are there."""
    x = x if left is None else left @ x
    return x if right is None else x @ right


def _transposed(xp, x):
    return None if x is None else xp.matrix_transpose(x)


def galore(
    xp,
    p,
    g,
    m=Slot.computed(_moment, is_moment=True),
    v=Slot.computed(_moment, is_moment=True),
    left=Slot.computed(_left),
    right=Slot.computed(_right),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-6,
    weight_decay: NonNegative = 0.0,
    rank: Annotated[Count, "Rank to which the gradients of matrices are projected; slots shrink with it."] = 128,
    interval: Annotated[
        Count, "Number of steps between computations of the bases by singular value decomposition."
    ] = 200,
    update_scale: Annotated[NonNegative, "Factor of the updates of projected matrices."] = 1.0,
    projection: Annotated[
        Literal["std", "reverse_std", "left", "right", "full"],
        'Side that is projected: the shorter ("std") or longer ("reverse_std") axis, "left", "right" or "full".',
    ] = "std",
):
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``.

    As the authors' AdamW. Every ``interval`` steps, from the first on, the bases ``left`` and ``right`` become the
    singular vectors of the gradient with the largest singular values. The moments average the projected gradient; their
    step is projected back and multiplied by ``update_scale``. ``projection`` is the projected side: the shorter axis
    ("std"), the longer one ("reverse_std"), "left", "right", or both ("full"). A square matrix counts as tall.
    Parameters other than matrices are updated by Adam, without ``update_scale``. The weight is decayed after the
    update.

    The signs of singular vectors are not unique: here the component of largest magnitude is positive. The decomposition
    has the parameter's dtype; in the authors' program it is float32.
    """
    if 0 in p.shape:
        return p, m, v, left, right
    low = g
    if _is_projected(p.shape):
        sides = _sides(p.shape, projection)
        left, right = choose(
            xp,
            (step - 1) % interval == 0,
            lambda: _bases(xp, g, _rank(rank, p.shape), sides),
            lambda: [left, right],
        )
        low = _between(xp, _transposed(xp, left), g, _transposed(xp, right))
    m = beta1 * m + (1 - beta1) * low
    v = beta2 * v + (1 - beta2) * low * low
    update = m / (xp.sqrt(v) + epsilon)
    if _is_projected(p.shape):
        update = update_scale * _between(xp, left, update, right)
    new = p - learning_rate * xp.sqrt(1 - beta2**step) / (1 - beta1**step) * update
    return (1 - learning_rate * weight_decay) * new, m, v, left, right
