"""Builds the site of the documentation: ``make docs``."""
