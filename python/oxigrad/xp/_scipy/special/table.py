"""The table of SciPy's special functions that the core does not compute: parameters, meaning and partial derivatives.

Values are SciPy's, or the array library's if it has the function. `rows` describes a row; each subject has a file of
rows. Formulas are from the Digital Library of Mathematical Functions (DLMF).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from oxigrad._typing import Array, Results
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.host_calls import Elementwise
from oxigrad.xp import exp
from oxigrad.xp._scipy.special import (
    bessel_functions,
    distribution_functions,
    elementary_functions,
    elliptic_integrals,
    error_functions,
    exponential_integrals,
    gamma_functions,
    hypergeometric_functions,
)
from oxigrad.xp._scipy.special.rows import Row, f

TABLE: dict[str, Row] = {
    **error_functions.ROWS,
    **exponential_integrals.ROWS,
    **gamma_functions.ROWS,
    **bessel_functions.ROWS,
    **elliptic_integrals.ROWS,
    **hypergeometric_functions.ROWS,
    **distribution_functions.ROWS,
    **elementary_functions.ROWS,
}


def _function(name: str, names: str, doc: str, *partials: Any) -> Callable[..., Any]:
    """The function of a row of the table."""
    elementwise = Elementwise(name, functools.partial(of_scipy, "special", name), names.split(), partials)

    def function(*args: Array) -> Results:
        return elementwise(*args)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "oxigrad.xp.special", doc
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names.split()]
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function


FUNCTIONS = {name: _function(name, *row) for name, row in TABLE.items()}
vars(f).update(FUNCTIONS)
# Without "zeta", whose function in `composed` is Riemann's too.
__all__: list[str] = []
__all__.extend(name for name in TABLE if name != "zeta")  # pyright: ignore[reportUnsupportedDunderAll]
globals().update({name: FUNCTIONS[name] for name in __all__})


riemann_zeta: Elementwise = Elementwise(
    "zeta", functools.partial(of_scipy, "special", "zeta"), ["x"], [lambda x: gamma_functions.riemann_slope(x)]
)


@functools.cache
def lambertw(k: int) -> Elementwise:
    """The branch ``k`` of Lambert's function."""
    branch = lambda: functools.partial(of_scipy("special", "lambertw"), k=k)  # noqa: E731
    return Elementwise("lambertw", branch, ["z"], [lambda y: exp(-y) / (1.0 + y)])
