# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array

from oxigrad.xp._scipy.interpolate.cubic_polynomials import (
    CubicSpline as CubicSpline, PchipInterpolator as PchipInterpolator,
)
from oxigrad.xp._scipy.interpolate.grids import (RegularGridInterpolator as RegularGridInterpolator)

def make_interp_spline(
    x: Any, y: Any, k: Any = 3, t: Any = None, bc_type: Any = None, axis: Any = 0, check_finite: _bool = True,
) -> Array:
    """The spline of degree ``k`` through values ``y`` at points ``x``, a function of these and of the knots ``t``."""

__all__ = ['CubicSpline', 'PchipInterpolator', 'RegularGridInterpolator', 'make_interp_spline']
