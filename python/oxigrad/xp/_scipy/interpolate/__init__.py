"""Interpolation, which `oxigrad.xp.interpolate` gathers."""
