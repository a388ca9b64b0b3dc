"""The derivative rules of ops, for every mode, order and array library.

* `vjp_rules`: the table of derivative rules, one line per op; start reading here. `vjp_linalg`, `vjp_fft`: its rows for
  matrix decompositions and Fourier transforms.
* `jvp_rules`, `jvp_linalg`: the rules of forward mode; `batching_rules`: the rules of `oxigrad.vmap`.
* `cotangents`, `tangents`: cotangents and tangents in the shape and dtype of the values that they belong to.
"""
