# Printed by tools/stubs.py.
from typing import Any

from oxigrad._typing import Array


def cdist(XA: Any, XB: Any, metric: str = 'euclidean', *, out: Any = None, **kwargs: Any) -> Array: ...
def pdist(X: Any, metric: str = 'euclidean', *, out: Any = None, **kwargs: Any) -> Array: ...

__all__ = ['cdist', 'pdist']
