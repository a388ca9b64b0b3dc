"""Differentiable functions over arrays of any library."""
