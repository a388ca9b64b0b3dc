"""Kronecker factors of a layer's Fisher information: averages, damped inverses, preconditioned gradients."""

import dataclasses
import math
from typing import Literal

import numpy as np

Method = Literal["eigen", "inverse"]


@dataclasses.dataclass(frozen=True)
class Factor:
    """The running average of the second moments of a layer's inputs or cotangents, a symmetric matrix.

    The moments of the k-th batch weigh ``1 - min(1 - 1/k, decay)`` (Martens and Grosse 2015, section 5): the average
    begins as a plain mean, without a bias towards an initial value. ``count`` is the number of batches.

    >>> Factor(np.array([[1.0]])).after(np.array([[3.0]]), decay=0.95)
    Factor(value=array([[2.]]), count=2)
    """

    value: np.ndarray
    count: int = 1

    def after(self, moments: np.ndarray, decay: float) -> "Factor":
        """The average after the moments of a further batch."""
        count = self.count + 1
        keep = self.value.dtype.type(min(1 - 1 / count, decay))
        return Factor(keep * self.value + (1 - keep) * moments, count)

    @property
    def mean_eigenvalue(self) -> float:
        """The mean of the eigenvalues: the trace over the size."""
        return float(np.trace(self.value)) / len(self.value)


@dataclasses.dataclass(frozen=True)
class Inverse:
    """The decomposition of a factor: its eigenvectors, as columns, and eigenvalues.

    Without eigenvalues, it is the damped inverse.
    """

    matrix: np.ndarray
    eigenvalues: np.ndarray | None = None


def damped(inputs: Factor, outputs: Factor, damping: float, *, split: bool) -> tuple[float, float]:
    """The numbers that are added to the eigenvalues of the factor of the inputs and to those of the outputs.

    With ``split``, ``pi * sqrt(damping)`` and ``sqrt(damping) / pi``, where pi is the square root of the ratio of the
    mean eigenvalues (Martens and Grosse 2015, section 6.3), so that their product is the damping; otherwise the damping
    for both.

    >>> damped(Factor(4.0 * np.eye(2)), Factor(np.eye(3)), 0.01, split=True)
    (0.2, 0.05)
    """
    if not split:
        return damping, damping
    a, g = inputs.mean_eigenvalue, outputs.mean_eigenvalue
    ratio = math.sqrt(a / g) if a > 0 and g > 0 else 1.0
    return ratio * math.sqrt(damping), math.sqrt(damping) / ratio


def invert(factor: Factor, added: float, method: Method) -> Inverse:
    """The inverse of a factor, computed in float64, in the dtype of the factor.

    ``added`` is added to the diagonal for the method "inverse"; eigenvalues are damped in `precondition`. Raises
    `numpy.linalg.LinAlgError` where the damped factor is singular.
    """
    value = factor.value
    wide = value.astype(np.float64)
    if method == "inverse":
        inverse = np.linalg.inv(wide + added * np.eye(len(wide)))
        return Inverse(((inverse + inverse.T) / 2).astype(value.dtype))
    eigenvalues, vectors = np.linalg.eigh(wide)
    return Inverse(vectors.astype(value.dtype), np.maximum(eigenvalues, 0.0).astype(value.dtype))


def precondition(
    gradient: np.ndarray, inputs: Inverse, outputs: Inverse, damping: float, added: tuple[float, float] | None
) -> np.ndarray:
    """The inverse of the damped Fisher block times the gradient, a matrix of the shape ``(inputs, outputs)``.

    With eigenvectors Q and eigenvalues d, it is ``Qa ((Qa^T V Qg) / (da dg^T + damping)) Qg^T``, the exact inverse of
    the block plus ``damping`` times the identity (George et al. 2018); with ``added``, each factor is damped by its own
    number instead. With inverses, it is ``A^-1 V G^-1``.
    """
    gradient = gradient.astype(inputs.matrix.dtype, copy=False)
    if inputs.eigenvalues is None or outputs.eigenvalues is None:
        return inputs.matrix @ gradient @ outputs.matrix
    rotated = inputs.matrix.T @ gradient @ outputs.matrix
    if added is None:
        rotated /= inputs.eigenvalues[:, None] * outputs.eigenvalues[None, :] + rotated.dtype.type(damping)
    else:
        a, g = (rotated.dtype.type(number) for number in added)
        rotated /= (inputs.eigenvalues + a)[:, None] * (outputs.eigenvalues + g)[None, :]
    return inputs.matrix @ rotated @ outputs.matrix.T
