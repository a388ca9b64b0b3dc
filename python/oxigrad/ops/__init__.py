"""Differentiable functions over arrays of any library, which `oxigrad.xp` gathers into one namespace.

Functions that a tape records have a derivative rule in `oxigrad.autodiff.rules`. All others are compositions of these
functions, so derivatives of any order follow. From the bottom up, each folder imports the ones before it:

* `backends`: array libraries, one adapter per library.
* `core`: the ops that a tape records, functions of the standard, and checks of arguments.
* `fft`, `linalg`: the extensions of the Array API standard, with ``scipy.linalg`` and ``scipy.fft``, whose signatures
  are made by `scipy_signatures`.
* `numpy`: functions of NumPy beyond the standard.
* `protocols`: calls of NumPy's functions, methods and operators of Python on variables.
"""
