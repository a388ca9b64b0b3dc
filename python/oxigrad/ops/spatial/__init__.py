"""Geometry, named as in `scipy.spatial`: `oxigrad.xp.spatial`. Its part `distance` has distances between observations."""

from oxigrad._names import without
from oxigrad.ops.spatial import distance

__all__ = ["distance"]

__dir__ = __all__.copy
__getattr__ = without("oxigrad.xp.spatial", __all__)
