"""Filters and interpolation of images, which `oxigrad.xp.ndimage` gathers."""
