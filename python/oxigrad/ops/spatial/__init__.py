"""Geometry, named as in `scipy.spatial`: `oxigrad.xp.spatial`. The submodule `distance` compares observations."""

from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.ops.spatial import distance

__all__ = ["distance"]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without("oxigrad.xp.spatial", __all__, package=__name__)
