"""One step of an optimizer: planning, execution and state, for `oxigrad.optim`, `oxigrad.torch` and `oxigrad.optax`.

Each of these gives parameters with their groups and executors (an `Assignment`), gradients, and slots; the rest of a
step is the same code: the kernels and their scalars (`StepProgram`), rules on arrays (`call_step`), launches
(`DeviceSteps`), and writes (`StepWrites`). `oxigrad.torch` assigns tensors of parameter groups, whose state are the
slots (`oxigrad.torch.step`); transformations of optax take pure steps.

The flow of a step over a tree, `Stepper.update` in `stepper`:

1. The `StepProgram` of the last step is used again unless a `Version` counter has changed. Otherwise `plan` assigns
   each parameter a group of hyperparameters and an executor, and `step_program` reads the kernels and the constant
   hyperparameters of each group.
2. `gradients` aligns the gradients with the parameters by structure (by key path where structures differ), and
   adds up those of tied parameters. The numbers of the step, such as its count and the values of schedules, are filled
   in.
3. Results that are not computed in place come next: rules called on arrays (`rule_executors`), copies of read-only
   parameters, and coalesced rows (`sparse_rows`). `StepWrites` collects them, and writes nothing yet.
4. The core (``rust/python/src/stepper/step.rs``) assigns replaced arrays to the containers of the model.
5. The core makes the last checks of memory, dtype, shape and overlap, with the key path in each error. Arrays in memory
   that a plan of an earlier step does not fit are a `Misfit`, an answer and no error: the step is planned anew.
6. Writes that cannot fail follow: one dispatch of kernels over all parameters in host memory, then copies and slots,
   then the count.

A failed or skipped step changes no parameter and no slot. ``Replacements`` in ``rust/python/src/tree/path.rs`` undoes
step 4, the only write that may raise; a kernel's guard, such as a gradient that is not finite, is evaluated before the
kernel writes; and `Stepper._update_anew` drops slots that were made for the failed step.

Files:

* `stepper`: the steps of one optimizer, with its slots and counts; `parts`: a step in parts; `changes`: other
  parameters, and other values of them; `writes`: results of rules called on arrays, and records of rows.
* `plan`: the group and the executor of each parameter (`assignment`), for a tree (`plan`) with its `gradients`; the
  kernels and scalars of the groups (`step_program`), reused until a version changes.
* `slice`: some elements of a leaf.
* `parameters`: parameters, groups of them, version counters of settings, and executors: `rule_executors` are a rule
  traced into a kernel, and a rule called on arrays; `presence`: the steps that a parameter took part in.
* `arrays`: gradients at the leaves of a model, rows of a table (`sparse_rows`), `precision` of slots and parameters,
  codes of eight and four bits (`quantized`).
* `slots`: slots before the first step, in the core's memory and by name; averages of parameters.
* `state`: the state by key path, saved to files that are replaced atomically, and loaded.
* `device`: launches of kernels, the loss scale and the counts of steps there; `step_writes`: the writes of a step.
* `pure`: a step as a pure function, and kernels called from a function that a library compiles.
"""
