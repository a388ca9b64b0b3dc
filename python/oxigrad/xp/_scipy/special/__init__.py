"""Special functions, which `oxigrad.xp.special` gathers."""
