"""Transforms of functions into their derivatives, and the derivative rules.

Transforms:

* `transforms`: ``grad``, ``value_and_grad``, ``vjp``, ``jvp`` and ``stop_gradient``.
* `jacobians`: ``jacobian``, ``hessian`` and ``hvp``; `products`: functions of derivatives, such as ``linearize``.
* `implicit`: derivatives of solutions of equations.
* `vmap`: a function of one example, applied to a batch; `batching`: the values that it passes; `examples`: calls for each example.
* `debug_nans`: a search for the operation where a NaN first appears.
* `checkpoint`: gradient checkpointing, which recomputes a function in the backward pass.
* `custom_rules`: ``custom_vjp``, ``define_vjp`` and ``define_jvp``, functions with a derivative rule stated by their author.
* `function_calls`: the tape entries that checkpoints and custom rules record.

`rules` has the derivative rules of ops. `diagram` draws recorded programs (``Tape.to_mermaid``, ``Tape.to_svg``). The tape and its
replay are in the core: ``rust/core/src/autodiff`` holds the generic part, ``rust/python/src/autodiff`` the part for Python values.
"""
