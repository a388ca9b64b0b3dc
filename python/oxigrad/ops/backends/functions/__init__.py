"""Functions that an array library may lack, computed by the core, by SciPy, or in terms of the standard's functions.

* `kernels`: the core's elementwise kernels as functions of NumPy arrays.
* `scipy_functions`: SciPy's functions, imported when they are called.
* `matrix_functions`: matrix functions that no library has, in terms of the standard's ``linalg``.
"""
