"""Recorded calls as programs that the core replays.

`statement` states the entries; `views` tells which of them are elements of an array; `encoding` writes arguments as
JSON.
"""
