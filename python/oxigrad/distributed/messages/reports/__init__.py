"""Reports of the workers of a training: their counts as a table, and their times as a picture."""
