"""Transforms of functions into their derivatives, and the derivative rules."""
