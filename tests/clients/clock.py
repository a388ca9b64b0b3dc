"""Processor time of derivatives: of the functions that autograd's operators return, as programs call them.

It is imported before the programs, which may import an operator by its name.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import autograd
from autograd import differential_operators

OPERATORS = "elementwise_grad grad grad_and_aux hessian hessian_vector_product jacobian value_and_grad".split()


class Clock:
    """The seconds of calls that are in no other one."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._is_running = False

    def timed(self, operator: Callable[..., Any]) -> Callable[..., Any]:
        """An operator whose functions are timed."""

        @functools.wraps(operator)
        def made(*args: Any, **named: Any) -> Any:
            derivative = operator(*args, **named)

            @functools.wraps(derivative)
            def called(*args: Any, **named: Any) -> Any:
                if self._is_running:
                    return derivative(*args, **named)
                self._is_running, start = True, time.process_time()
                try:
                    return derivative(*args, **named)
                finally:
                    self._is_running = False
                    self.seconds += time.process_time() - start

            return called

        return made


CLOCK = Clock()
for name in OPERATORS:
    each = CLOCK.timed(getattr(differential_operators, name))
    for module in (autograd, differential_operators):
        if hasattr(module, name):
            setattr(module, name, each)
