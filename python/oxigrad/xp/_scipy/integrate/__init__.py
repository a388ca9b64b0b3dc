"""Integrals and differential equations, which `oxigrad.xp.integrate` gathers."""
