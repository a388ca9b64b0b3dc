"""The rows of the comparison, one file a topic."""

from rows import adamw, chain, digits, gradients, jacobians, jit, optimizers, package, precision, rule, sparse, tail

TOPICS = (adamw, chain, digits, gradients, jacobians, jit, optimizers, package, precision, rule, sparse, tail)
ROWS = [row for topic in TOPICS for row in topic.ROWS]
FAMILIES = [*optimizers.FAMILIES]
