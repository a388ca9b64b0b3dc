"""lstm: the loss of a recurrent network that predicts the next character, and its gradient by weights, biases and state.

The long short-term memory of ADBench has diagonal matrices: each gate multiplies its input by a vector. With input ``x``, hidden state ``h`` and
cell ``c`` of a layer::

    c <- c sigmoid(x w_f + b_f) + sigmoid(h w_i + b_i) tanh(h w_c + b_c),    h <- sigmoid(x w_o + b_o) tanh(c)

The output ``y`` of the last layer, scaled and shifted, is compared with the next character by the logarithm of ``sum(exp(y)) + 2``. The
function is that of the row "recurrent net" of `rows.gradients`. JAX would unroll a thousand characters into its program: it does not finish.
"""

from gradbench.contest import gradient_row, size
from measure import Goal
from rows.gradients import recurrent

ROWS = [
    gradient_row(
        "gradbench lstm l2 c1024",
        lambda: recurrent(2, size(1024, 8)),
        (Goal(25, "torch"),),
        peers="torch",
        samples=5,
    )
]
