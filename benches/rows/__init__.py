"""The rows of the comparison, one file a topic."""

from rows import (
    adamw,
    chain,
    digits,
    gradients,
    jacobians,
    jit,
    optimizers,
    package,
    precision,
    rule,
    sparse,
    tail,
    torch_optim,
)

TOPICS = (
    adamw,
    chain,
    digits,
    gradients,
    jacobians,
    jit,
    optimizers,
    package,
    precision,
    rule,
    sparse,
    tail,
    torch_optim,
)
ROWS = [row for topic in TOPICS for row in topic.ROWS]
FAMILIES = [*optimizers.FAMILIES]
