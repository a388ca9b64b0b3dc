"""Differentiable functions over arrays of any library, which `oxigrad.xp` gathers into one namespace.

Functions that a tape records, each with a derivative rule in `oxigrad.autodiff`:

* `primitives`: the ops that all other functions are composed of.
* `linalg`, `fft`: the extensions of the Array API standard, ``xp.linalg`` and ``xp.fft``.

Functions composed of these, so that their derivatives of any order follow:

* `composite`: the decorator of composite functions, which call the array library's function on plain values.
* `standard`, `sets`: functions of the standard; `numpy_extras`: further functions of NumPy.
* `products`: products and contractions, such as ``einsum``.
* `scipy_linalg`, `matrix_compositions`: SciPy's linear algebra.
* `special`, `stats`, `integrate`: functions under SciPy's names.
* `ndimage`, `signal`: filters of SciPy; `extension`: arrays beyond their edges.
* `scipy_special`: the table of special functions that SciPy computes; `host_calls`: functions of NumPy arrays as recorded ops.

Variables as arrays:

* `indexed_update`: ``x.at[key].set(value)``, and assignment to elements of a variable.
* `numpy_protocols`: NumPy's functions called on variables; `in_place`: those that write to an argument.
* `array_methods`: methods of arrays, such as ``x.sum(axis=0)``, from a table of each library.
* `variable_methods`: iteration, rounding, formatting and transposition of variables.

Array libraries:

* `backends`: one adapter per library (a folder).
* `passthrough`: functions without a derivative, dispatched to the library of their arguments.
* `shapes`: checks of axes and shapes, and the errors that name them.
* `aliasing`: detection of arrays that share memory, and copies of them.
* `matrix_equations`: Sylvester equations and banded systems on NumPy arrays.
"""
