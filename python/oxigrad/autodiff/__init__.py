"""Transforms of functions into their derivatives, and the derivative rules.

Transforms:

* `transforms`: ``grad``, ``value_and_grad``, ``vjp``, ``jvp`` and ``stop_gradient``.
* `jacobians`: ``jacobian``, ``hessian`` and ``hvp``; `products`: functions of derivatives, such as ``linearize``.
* `sparse`: ``sparse_jacobian`` and ``sparse_hessian``, by patterns that are read from recorded programs.
* `implicit`: derivatives of solutions of equations.
* `vmap`: a function of one example, applied to a batch; `batching`: the values that it passes.
* `inspection`: a search for the operation where a NaN first appears, and drawings of recorded programs.
* `checkpoint`: gradient checkpointing, which recomputes a function in the backward pass.
* `custom_rules`: ``custom_vjp``, ``define_vjp`` and ``define_jvp``, functions with user-defined derivative rules.
* `function_calls`: the tape entries that checkpoints and custom rules record, and calls for each example of a batch.
* `arguments`: the arguments that a transform differentiates by.

`rules` has the derivative rules of ops. The tape and its replay are in the core: ``rust/core/src/autodiff`` holds the
generic part, ``rust/python/src/autodiff`` the part for Python values.
"""
