"""The rows of the comparison, one file a topic."""

from rows import adamw, chain, digits, gradients, jacobians, package, sparse

ROWS = [*adamw.ROWS, *chain.ROWS, *digits.ROWS, *gradients.ROWS, *jacobians.ROWS, *package.ROWS, *sparse.ROWS]
