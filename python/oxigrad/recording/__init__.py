"""Recorded functions: recorded once, replayed without their Python code, and audited.

`traced` has the values that a function is recorded with, and the functions of array libraries that take them, `writes`
what the function assigns to arrays that it has computed, `targets` the functions that entries call, `captures` what a
function reads by name, `shadows` the copies that it reads while `trace` records a call, `inputs` and `cases` the
arguments and programs of recorded calls, `program` their replay, `bits` the comparison with the function,
`function` the transform `record`, `files` recordings as data.
"""
