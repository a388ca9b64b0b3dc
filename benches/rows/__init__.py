"""The rows of the comparison, one file a topic."""

from rows import adamw, chain, digits, gradients, jacobians, package, precision, sparse

TOPICS = (adamw, chain, digits, gradients, jacobians, package, precision, sparse)
ROWS = [row for topic in TOPICS for row in topic.ROWS]
