# Printed by tools/stubs.py.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array


def odeint(func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0, full_output: Any = 0, ml: Any = None, mu: Any = None, rtol: Any = None, atol: Any = None, tcrit: Any = None, h0: Any = 0.0, hmax: Any = 0.0, hmin: Any = 0.0, ixpr: Any = 0, mxstep: Any = 0, mxhnil: Any = 0, mxordn: Any = 12, mxords: Any = 5, printmessg: Any = 0, tfirst: _bool = False) -> Array: ...

__all__ = ['odeint']
