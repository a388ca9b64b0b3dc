"""Geometry, which `oxigrad.xp.spatial` gathers."""
