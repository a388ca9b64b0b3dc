"""Views of recorded programs: `debug_nans` searches where a NaN first appears, and `diagram` draws (``Tape.to_mermaid``, ``Tape.to_svg``)."""
