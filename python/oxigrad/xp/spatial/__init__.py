"""Geometry, named as in `scipy.spatial`: `oxigrad.xp.spatial`. The submodule `distance` compares observations."""

import typing as _typing

from oxigrad._names import without as _without
from oxigrad.xp.spatial import distance as distance

__all__ = ["distance"]

if not _typing.TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = _without(__name__, __all__)
