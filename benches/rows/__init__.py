"""The rows of the comparison, one file a topic."""

from rows import adamw, chain, digits, gradients, package

ROWS = [*adamw.ROWS, *chain.ROWS, *digits.ROWS, *gradients.ROWS, *package.ROWS]
