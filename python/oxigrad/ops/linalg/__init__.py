"""Linear algebra, which `oxigrad.xp.linalg` gathers.

* `standard`: the functions of the Array API standard; `numpy_keywords`: the rest of ``numpy.linalg``, and NumPy's
  keywords.
* `compositions`, `equations`: functions of ``scipy.linalg``; `host_equations`: their solvers for NumPy arrays.
"""
