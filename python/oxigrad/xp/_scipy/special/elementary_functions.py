"""Rows of the trigonometric functions of degrees, and of powers."""

import math

from oxigrad import xp as ops
from oxigrad.xp._scipy.guarded import xlogy
from oxigrad.xp._scipy.special.rows import Row, f

_DEGREE = math.pi / 180.0

ROWS: dict[str, Row] = {
    "sindg": ("x", "Sine of an angle in degrees.", lambda x: _DEGREE * f.cosdg(x)),
    "cosdg": ("x", "Cosine of an angle in degrees.", lambda x: -_DEGREE * f.sindg(x)),
    "tandg": ("x", "Tangent of an angle in degrees.", lambda y: _DEGREE * (1.0 + y * y)),
    "cotdg": ("x", "Cotangent of an angle in degrees.", lambda x: -_DEGREE / ops.square(f.sindg(x))),
    "powm1": (
        "x1 x2",
        "``x1**x2 - 1``, accurate near zero.",
        lambda x1, x2: x2 * ops.pow(x1, x2 - 1.0),
        lambda x1, x2: xlogy(ops.pow(x1, x2), x1),
    ),
}
