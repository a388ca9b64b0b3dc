"""Muon, and the orthogonalization of the steps of other optimizers, for matrices. The rules are called on arrays."""

import math
from typing import Annotated, Literal

from oxigrad._core import ShapeError
from oxigrad.rules.core.arrays import matrix_norm, norm, number_like
from oxigrad.rules.core.ranges import Interval, NonNegative, Share
from oxigrad.rules.core.slots import Slot

__all__ = ["muon"]

# Coefficients of the quintic x -> a x + b x^3 + c x^5 on singular values, one triple for each iteration, from Dion (Ahn
# et al. 2025, arXiv:2504.05295). optax has them under this name.
DION = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)

# The hyperparameters of the iteration, of both rules.
Iterations = Annotated[int, Interval("[0, 100)"), "Number of Newton-Schulz iterations, each of three matrix products."]
FirstCoefficient = Annotated[float, "Coefficient of x in the polynomial of an iteration."]
ThirdCoefficient = Annotated[float, "Coefficient of x ** 3 in the polynomial of an iteration."]
FifthCoefficient = Annotated[float, "Coefficient of x ** 5 in the polynomial of an iteration."]
Coefficients = Annotated[
    Literal["dion", None],
    'Named coefficients that replace ``a``, ``b`` and ``c``: "dion" has a triple for each iteration.',
]
Adjust = Annotated[
    Literal["original", "transposed", "match_rms_adamw", "spectral_unclamped", None],
    "Factor of the update by the shape of the matrix; None multiplies by 1.",
]
Matrices = Annotated[
    Literal["last", "filters", None],
    'Matrices of more than two axes: stacks in the "last" two, or "filters", the first axis by all others.',
]


def _of_a_matrix(xp, p, matrices):
    if len(p.shape) != 2 and (len(p.shape) < 2 or matrices is None):
        raise ShapeError(
            f"Muon: found shape {tuple(p.shape)}, expected a matrix: assign the parameter to another optimizer, as "
            f"in partition({{lambda path, array: array.ndim == 2: Muon(), '*': AdamW()}}), or choose the matrices of "
            "more axes by matrices='last' or 'filters'"
        )
    return xp.zeros_like(p)


def _orthogonalized(xp, x, coefficients, divisor):
    """The Newton-Schulz iteration, which brings the singular values near 1.

    On the shorter side of each matrix of a stack. ``divisor`` is the function from norms to what divides the matrices.
    """
    if x.shape[-2] > x.shape[-1]:
        return xp.matrix_transpose(_orthogonalized(xp, xp.matrix_transpose(x), coefficients, divisor))
    x = x / divisor(norm(xp, x) if len(x.shape) == 2 else matrix_norm(xp, x))
    for a, b, c in coefficients:
        gram = x @ xp.matrix_transpose(x)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x


def _triples(iterations, triple, coefficients):
    """The coefficients of each iteration: the same ``triple``, or the last triples of the named coefficients."""
    if coefficients is None:
        return [triple] * iterations
    if iterations > len(DION):
        raise ValueError(f"iterations is {iterations}: expected at most {len(DION)} for coefficients='dion'")
    return DION[len(DION) - iterations :]


def _scaled(xp, x, triples, divisor, adjust, matrices):
    """The factor by the shape of the matrices of ``x``, and ``x`` with these matrices orthogonalized."""
    shape = tuple(x.shape) if matrices != "filters" else (x.shape[0], math.prod(x.shape[1:]))
    rows, columns = shape[-2:]
    ratio = rows / max(columns, 1)
    scale = {
        "original": max(1.0, ratio) ** 0.5,
        "transposed": max(1.0, columns / max(rows, 1)) ** 0.5,
        "match_rms_adamw": 0.2 * max(rows, columns) ** 0.5,
        "spectral_unclamped": ratio**0.5,
        None: 1.0,
    }[adjust]
    if matrices != "filters":
        return scale, _orthogonalized(xp, x, triples, divisor)
    return scale, xp.reshape(_orthogonalized(xp, xp.reshape(x, shape), triples, divisor), x.shape)


def _share(xp, decay, count, x):
    """The sum of the weights in an average ``x`` of ``count`` terms; NaN if ``decay`` is 1, as all weights are 0."""
    return number_like(xp, xp.where(decay < 1.0, 1 - decay**count, math.nan), x)


def muon(
    xp,
    p,
    g,
    m=Slot.computed(_of_a_matrix, is_moment=True),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    momentum: Annotated[Share, "Decay of the moving mean of gradients, which is then orthogonalized."] = 0.95,
    weight_decay: NonNegative = 0.1,
    epsilon: Annotated[NonNegative, "Lower bound of the norm by which the momentum is divided."] = 1e-7,
    iterations: Iterations = 5,
    a: FirstCoefficient = 3.4445,
    b: ThirdCoefficient = -4.7750,
    c: FifthCoefficient = 2.0315,
    coefficients: Coefficients = None,
    adjust: Adjust = "original",
    nesterov=True,
    matrices: Matrices = None,
    debias: Annotated[bool, "Whether moving means are corrected for their initial value of zero."] = False,
):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only.

    The ``iterations`` use the coefficients ``a, b, c``, or with ``coefficients="dion"`` one triple for each iteration.
    ``adjust`` names the factor of the update of ``m`` rows and ``n`` columns: ``sqrt(max(1, m / n))`` ("original",
    torch and Keras), ``sqrt(max(1, n / m))`` ("transposed", optax, whose matrices have inputs first), ``0.2 sqrt(max(m,
    n))`` ("match_rms_adamw", Liu et al. 2025, arXiv:2502.16982), ``sqrt(m / n)`` ("spectral_unclamped") or 1 (None).

    Parameters of more than two axes are refused by default. With ``matrices="last"``, the last two axes hold a stack of
    matrices, such as experts or heads. With "filters", a convolution is one matrix, whose rows are its first axis, as
    in the authors' program.

    The defaults are as in torch.optim.Muon, which iterates in bfloat16; here the parameter's dtype is used.
    ``debias`` corrects the averages for their initial value of zero, as optax does. optax and Keras add ``epsilon`` to
    the norm; here and in torch it is a lower bound of the norm.
    """
    m = momentum * m + (1 - momentum) * g
    now, then = (_share(xp, momentum, step + after, m) for after in (0, 1)) if debias else (1.0, 1.0)
    direction = momentum / then * m + (1 - momentum) / now * g if nesterov else m / now
    triples = _triples(iterations, (a, b, c), coefficients)
    scale, update = _scaled(xp, direction, triples, lambda length: xp.maximum(length, epsilon), adjust, matrices)
    return (1 - learning_rate * weight_decay) * p - learning_rate * scale * update, m


def orthogonalize(
    xp,
    p,
    new,
    *,
    learning_rate,
    matrices: Matrices = None,
    adjust: Adjust = "original",
    iterations: Iterations = 5,
    a: FirstCoefficient = 3.4445,
    b: ThirdCoefficient = -4.7750,
    c: FifthCoefficient = 2.0315,
    coefficients: Coefficients = None,
):
    """Orthogonalizes the step of the optimizer before it: its singular values become about ``learning_rate``.

    ``chain(SGD(0.02, momentum=0.95, nesterov=True), Orthogonalize(), WeightDecay(0.1))`` is `Muon`, whose docstring
    has the hyperparameters. The size of the optimizer's step has no effect, only its direction. A weight decay comes
    after, so that it is not orthogonalized. Parameters with fewer than two axes have the step of the optimizer.
    With more than two axes, `ShapeError` is raised unless ``matrices`` is "last", for stacks of matrices ``[..., M,
    N]``, or "filters", for convolutions.
    """
    if len(p.shape) < 2:
        return new
    if len(p.shape) > 2 and matrices is None:
        raise ShapeError(
            f"Orthogonalize: found shape {tuple(p.shape)}, expected at most two axes, or matrices='last' for stacks of "
            "matrices and matrices='filters' for convolutions"
        )
    triples = _triples(iterations, (a, b, c), coefficients)
    scale, update = _scaled(xp, p - new, triples, lambda length: xp.where(length > 0.0, length, 1.0), adjust, matrices)
    return p - learning_rate * scale * update
