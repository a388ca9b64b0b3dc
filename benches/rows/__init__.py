"""The rows of the comparison, one file a topic."""

from rows import adamw, chain, digits, package

ROWS = [*adamw.ROWS, *chain.ROWS, *digits.ROWS, *package.ROWS]
