"""Probability distributions, which `oxigrad.xp.stats` gathers."""
