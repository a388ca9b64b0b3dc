"""Sparse Jacobians and Hessians: the pattern is read from the recorded program, and few seeds give all nonzeros.

* `jacobians`: ``sparse_jacobian`` and ``sparse_hessian``.
* `programs`: the entries of a recorded call, as propagation reads them, and whether another call recorded the same.
* `dependences`: the inputs that the elements of an array depend on; `propagation`: the dependences of each entry of a
  program.
* `colorings`: groups of columns, or of rows, that one seed tells apart.
"""
