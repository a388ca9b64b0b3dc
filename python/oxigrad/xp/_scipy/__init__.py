"""Functions under SciPy's names, a folder for each module of `oxigrad.xp` that gathers them.

They build on `oxigrad.xp` and `oxigrad.extend`, which import none of them.
"""
