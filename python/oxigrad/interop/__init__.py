"""Bridges to the automatic differentiation of other libraries: of PyTorch and JAX in both directions, and functions of HIPS autograd.

`oxigrad.interop.torch`, `oxigrad.interop.jax` and `oxigrad.interop.autograd` are imported by name, and import their library.
"""
