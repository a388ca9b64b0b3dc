"""Protocols by which Python, NumPy and other libraries call functions on variables.

* `numpy_protocols`: NumPy's functions and ufuncs; `passthrough`: functions without a derivative, dispatched to the
  library of their arguments, with the signatures of `undifferentiated`.
* `array_methods`: methods of arrays, such as ``x.sum(axis=0)``, from a table of each library.
* `variable_methods`: iteration, rounding, formatting and transposition of variables.
* `foreign_calls`: the errors of SciPy's, PyTorch's and JAX's functions.
* `arguments`: the sentences on arguments that docstrings of `oxigrad.xp` get; `namespaces`: modules of `oxigrad.xp`.
"""
