"""Bridges to the automatic differentiation of other libraries, in both directions.

`oxigrad.interop.torch` and `oxigrad.interop.jax` are imported by name, and import their library.
"""
