"""Recorded calls as programs that the core replays.

`replay` makes the program of the entries; `encoding` writes arguments as JSON.
"""
