"""Recorded functions: recorded once, replayed without their Python code, and never stale.

`traced` has the values that a function is recorded with, `library` the functions of array libraries that take them, `targets` the
functions that entries call, `captures` what a function reads besides its arguments (`reads`: by its code), `trace` the recording of a call, `program` its
replay, `verification` the proof that it has the bits of the function, `function` the transform `record`, `files` recordings as data.
"""
