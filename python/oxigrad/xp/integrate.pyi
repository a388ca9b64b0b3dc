# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array

from oxigrad.xp._scipy.integrate.initial_values import (solve_ivp as solve_ivp)
from oxigrad.xp._scipy.integrate.quadrature import (quad as quad)

def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Array:
    """The integrals from the first point to each other one by Simpson's rule, with the parabolas of `simpson`."""
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1, initial: Any = None) -> Array:
    """The integrals from the first point to each other point by the trapezoidal rule."""
def odeint(
    func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0, full_output: Any = 0,
    ml: Any = None, mu: Any = None, rtol: Any = None, atol: Any = None, tcrit: Any = None, h0: Any = 0.0,
    hmax: Any = 0.0, hmin: Any = 0.0, ixpr: Any = 0, mxstep: Any = 0, mxhnil: Any = 0, mxordn: Any = 12,
    mxords: Any = 5, printmessg: Any = 0, tfirst: _bool = False,
) -> Array:
    """The solution of ``dy/dt = func(y, t, *args)`` at times ``t`` of shape (n,), from ``y0`` at the first of them."""
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: Any = -1) -> Array:
    """The integral along ``axis`` by Simpson's rule, over the points ``x`` or with spacing ``dx``."""
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Array:
    """The integral along ``axis`` by the trapezoidal rule, over the points ``x`` or with spacing ``dx``."""

__all__ = ['cumulative_simpson', 'cumulative_trapezoid', 'odeint', 'quad', 'simpson', 'solve_ivp', 'trapezoid']
