"""hello: the square of a number, and its derivative. It shows that a tool runs, and is no measurement."""

from typing import Any

import numpy as np

from gradbench.contest import gradient_row


def square(lib: Any, x: Any) -> Any:
    """The square of a number."""
    return x * x


ROWS = [gradient_row("gradbench hello", lambda: (square, lambda: [np.array(3.0)]))]
