"""Bridges to the automatic differentiation of PyTorch and JAX, in both directions, and of HIPS autograd.

`oxigrad.interop.torch`, `oxigrad.interop.jax` and `oxigrad.interop.autograd` are imported by name, and import their
library. HIPS autograd has one direction: its functions run in oxigrad.
"""
