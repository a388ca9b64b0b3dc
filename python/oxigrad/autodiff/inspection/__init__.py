"""Views of recorded programs, and of what can be recorded.

`debug_nans` searches where a NaN first appears, `diagram` draws (``Tape.to_mermaid``, ``Tape.to_svg``), `support` is the catalogue of functions.
"""
