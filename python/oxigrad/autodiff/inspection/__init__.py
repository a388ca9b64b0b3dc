"""Views of recorded programs, and a catalogue of recordable functions.

`debug_nans` finds the first NaN, `diagram` draws (``Tape.to_mermaid``, ``Tape.to_svg``), `support` is the catalogue.
"""
