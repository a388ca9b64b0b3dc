"""Functions that SciPy computes in host memory, from the tables of its modules, with their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cases_ndimage
import cases_scipy_linalg
import cases_signal
import cases_special
from cases import fraction
from oxigrad import xp

_IMAGES = {**cases_ndimage.FILTERS, "minimum_filter": cases_ndimage.SELECTIONS["minimum_filter-sizes"]}
#: Functions that SciPy computes: the name, the function and its arguments.
ON_HOST: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    *(
        (f"special.{name}", *cases_special.of_smooth(name, getattr(xp.special, name.split("-")[0])))
        for name in cases_special.CASES
    ),
    *(
        (f"ndimage.{name}", functools.partial(f, xp.ndimage, mode="nearest"), (cases_ndimage.X,))
        for name, f in _IMAGES.items()
    ),
    *(
        (f"linalg.{name}", functools.partial(f, xp.linalg), args)
        for name, (f, args) in cases_scipy_linalg.CASES.items()
    ),
    *(
        (f"signal.{name}", functools.partial(f, xp.signal), (cases_signal.X,))
        for name, f in cases_signal.LINEAR.items()
    ),
    ("stats.norm.ppf", xp.stats.norm.ppf, (fraction(3, 4),)),
    ("stats.invgauss.ppf", lambda q, mu: xp.stats.invgauss.ppf(q, 1.0 + mu), (fraction(4), fraction(4))),
]
