"""lstm: the loss of a recurrent network that predicts the next character, and its gradient by weights, biases and state.

The long short-term memory of ADBench has diagonal matrices: each gate multiplies its input by a vector. With input ``x``, hidden state ``h`` and
cell ``c`` of a layer::

    c <- c sigmoid(x w_f + b_f) + sigmoid(h w_i + b_i) tanh(h w_c + b_c),    h <- sigmoid(x w_o + b_o) tanh(c)

The output ``y`` of the last layer, scaled and shifted, is compared with the next character by the logarithm of ``sum(exp(y)) + 2``. The
function is that of the row "recurrent net" of `rows.gradients`. JAX would unroll a thousand characters into its program: it does not finish.
"""

import numpy as np

from gradbench import cpp
from gradbench.contest import Arrays, gradient_row, size
from measure import Contestant, Goal
from rows.gradients import Objective, letters, recurrent

LAYERS, CHARACTERS = 2, size(1024, 8)


def by_hand(objective: Objective, args: Arrays) -> Contestant:
    """The objective in C++."""
    text = letters(CHARACTERS)
    return cpp.contestant(
        "lstm", [*args, text, LAYERS, CHARACTERS, args[1].shape[1]], lambda: float(objective(np, *args))
    )


ROWS = [
    gradient_row(
        "gradbench lstm l2 c1024",
        lambda: recurrent(LAYERS, CHARACTERS),
        (Goal(25, "torch"), Goal(1 / 2, cpp.NAME)),
        peers="torch",
        by_hand=by_hand,
        samples=5,
    )
]
