"""A step as a pure function: results are returned, and nothing is written."""
