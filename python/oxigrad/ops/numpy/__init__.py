"""Functions of NumPy beyond the standard, composed of functions of the standard.

* `extras`, `padding`: functions that ``xp`` has under NumPy's names.
* `forms`: NumPy-signature functions called when NumPy's functions get variables, by subject: `creation`, `moves`,
  `reductions`, `order_statistics`, `histograms`, `polynomials`, `sets`, `scimath`, `ufuncs`.
"""
