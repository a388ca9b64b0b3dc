"""Functions of NumPy beyond the standard, composed of functions of the standard.

* `extras`, `padding`: those that ``xp`` has under NumPy's names.
* `forms`: the functions that are called in place of NumPy's on variables, each with NumPy's signature, by subject: `creation`, `moves`,
  `reductions`, `order_statistics`, `histograms`, `polynomials`, `sets`, `scimath`, `ufuncs`.
"""
