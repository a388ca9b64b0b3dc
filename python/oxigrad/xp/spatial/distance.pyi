# Printed by make generated.
from typing import Any

from oxigrad._typing import Array


def cdist(XA: Any, XB: Any, metric: str = 'euclidean', *, out: Any = None, **kwargs: Any) -> Array:
    """The distances (m, n) of each of the observations ``XA`` (m, k) to each of ``XB`` (n, k), in their dtype."""
def pdist(X: Any, metric: str = 'euclidean', *, out: Any = None, **kwargs: Any) -> Array:
    """The pairwise distances of the observations ``X`` (m, k), as a vector (m (m - 1) / 2,)."""

__all__ = ['cdist', 'pdist']
