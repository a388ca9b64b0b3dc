"""Integrals, differential equations and interpolation."""
