"""Notes on arguments: the columns of their rows beside name, type, default and range, which declarations state.

A rule declares an argument by ``name: Annotated[type, "sentence"] = default``. Arguments that mean the same in several
rules have their notes here, by name. The module is imported when documentation is read.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Note:
    """The notes of an argument.

    Args:
        sentence: what the argument does, in one plain sentence.
        unit: the unit of its value; a pure number without one.
        cost: the memory or time that it takes.
        see: related public names and pages.
        section: the section of an option: "precision", "gradients", "state" or "flags".
    """

    sentence: str
    unit: str = ""
    cost: str = ""
    see: tuple[str, ...] = ()
    section: str = ""


NOTES = {
    "learning_rate": Note("Step size, by which every update is multiplied.", see=("oxigrad.schedules",)),
    "beta1": Note("Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps."),
    "beta2": Note("Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2) steps."),
    "epsilon": Note("Small number added to the denominator, which keeps updates finite where gradients are near zero."),
    "epsilon_mode": Note(
        'Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before the bias correction of '
        "the root."
    ),
    "epsilon_root": Note("Small number added to the second moment inside the root; None adds nothing."),
    "weight_decay": Note("Strength with which a step pulls parameters towards zero; 0 turns the decay off."),
    "momentum": Note("Decay of the accumulated gradient; 0 turns momentum off.", cost="one slot when not 0"),
    "nesterov": Note("Whether the update looks one momentum step ahead, as in Nesterov's method."),
    "amsgrad": Note(
        'Whether to divide by the largest second moment so far: "raw" or True before the bias correction, '
        '"corrected" after it.',
        cost="one more slot",
    ),
    "rho": Note("Decay of the moving mean of squared gradients, which averages over about 1 / (1 - rho) steps."),
    "initial_accumulator": Note("Initial value of the accumulator of squared gradients."),
    "bias_correction": Note("Whether moving means are corrected for their initial value of zero."),
    "decoupled": Note("Whether the weight decay is applied to the parameter first, and not added to the update."),
    "dropout_rate": Note("Probability that an element of a parameter is not updated in a step."),
    "l1": Note("Strength of L1 regularization, which drives small parameters to zero."),
    "l2": Note("Strength of L2 regularization, which shrinks parameters in proportion to their size."),
    "weight_power": Note("Exponent of the learning rate in the weight of a step in the average."),
    "lower_bound": Note("Lower bound of the loss, from which the step size is computed.", unit="as the loss"),
    "adapt_lower_bound": Note("Whether the lower bound of the loss is estimated during training."),
    "d0": Note("Initial estimate of the distance from the first parameters to the solution.", unit="as the parameters"),
    "growth_rate": Note("Largest factor by which the estimate of the distance may grow in one step."),
    "rate_before_momentum": Note("Whether the learning rate multiplies each gradient before momentum, as in Keras."),
    "seed": Note("Seed of the random numbers that a rule draws; equal seeds give equal bits.", section="state"),
    "accumulate": Note(
        "Number of gradients, from 1 on, whose mean each step uses.",
        unit="calls of ``update``",
        cost="one slot when above 1",
        see=("Optimizer.flush",),
        section="gradients",
    ),
    "nonfinite": Note(
        'Treatment of infinite and NaN gradients: "propagate" them, "skip" the step, or "raise" `NonFiniteError`.',
        cost='one more pass over the gradients for "skip" and "raise"',
        section="gradients",
    ),
    "loss_scale": Note(
        'A `LossScale` for losses in float16; with it, "propagate" becomes "skip".',
        see=("LossScale",),
        section="gradients",
    ),
    "zero_gradients": Note(
        "Whether each step sets the gradients to zero; they must be writable and in host memory.", section="gradients"
    ),
    "sparse": Note(
        'Effect of a `SparseRows` gradient on other rows: "dense" counts them as zero, "lazy" skips them, "catch_up" '
        "updates them later.",
        see=("oxigrad.SparseRows",),
        section="gradients",
    ),
    "slot_dtype": Note(
        'Dtype in which moments and accumulators are stored; "8bit" and "4bit" are block-wise codes for large '
        "parameters.",
        cost="8, 4, 2, 1 or 1/2 bytes an element and slot",
        see=("Quantized",),
        section="precision",
    ),
    "master": Note(
        "Whether parameters of half precision have a float32 copy, to which updates are applied. Call `rebuild` after "
        "other writes to parameters.",
        cost="4 bytes an element",
        section="precision",
    ),
    "rounding": Note(
        'Rounding of half-precision parameters: "nearest", "stochastic" (unbiased), or "kahan" (the error is '
        "kept and added to the next step).",
        cost='one slot of the dtype of the parameter for "kahan"',
        section="precision",
    ),
    "record_norms": Note(
        'Norms that each step records: "gradient", "update" and "parameter", or some of them.',
        see=("Optimizer.recorded_norms",),
        section="state",
    ),
    "state_device": Note(
        '"host" keeps the state of device parameters in host memory, and updates them there; None keeps it with them.',
        cost="copies of gradients and parameters in each step",
        section="state",
    ),
    "groups": Note(
        "Hyperparameters by key path pattern for some parameters; None as a value freezes them.",
        see=("Optimizer.groups",),
        section="state",
    ),
    "dtype": Note(
        "Dtype of the parameters that this optimizer updates; None updates all of them.", section="precision"
    ),
    "compat": Note(
        'Library whose defaults and formula variant are taken: "torch", "optax" or "keras".', section="state"
    ),
}

# Arguments of PyTorch's optimizers and of `oxigrad.torch`, where they are not those above.
TORCH = {
    "params": Note(
        "Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that define groups."
    ),
    "betas": Note("Decays of the moving means of gradients and of squared gradients."),
    "maximize": Note("Whether to maximize the loss instead of minimizing it.", section="gradients"),
    "foreach": Note("Accepted as in PyTorch, and without effect: every step is fused.", section="flags"),
    "fused": Note("Accepted as in PyTorch, and without effect: every step is fused.", section="flags"),
    "capturable": Note(
        "Accepted as in PyTorch; steps of these classes raise an error in the capture of a CUDA graph.", section="flags"
    ),
    "differentiable": Note("Whether autograd records the step, for gradients through the update.", section="flags"),
    "weight_decay": Note("Strength of the decay; coupled to the gradient unless the optimizer decouples it."),
    "decoupled_weight_decay": Note("Whether the weight decay is applied to the parameters, as in AdamW."),
    "state_dtype": Note(
        'Dtype of the moments: "float32", "bfloat16", "float16", "8bit" or "4bit"; None is the '
        "parameter's dtype in PyTorch's optimizers, float32 in others.",
        section="precision",
    ),
    "amp_fused": Note(
        "Whether the step unscales the gradients of `torch.amp.GradScaler` itself, in the same pass.",
        section="gradients",
    ),
    "max_norm": Note(
        "Global norm, over all groups, to which a step clips the gradients of the group; None does not clip.",
        section="gradients",
    ),
    "in_backward": Note(
        "Whether each parameter is updated during the backward pass, which then frees its gradient.",
        section="gradients",
    ),
    "state_device": Note(
        'Place of the state: None with the parameters, "host" or `HostMemory` in host memory, or the path of a file.',
        section="state",
    ),
}

# Arguments of optax's functions, where they are not those above.
OPTAX = {
    "betas": TORCH["betas"],
    "mask": Note(
        "Pytree of booleans, or a function of the parameters that returns one: where the weight decay applies."
    ),
    "weight_decay_mask": Note("Pytree of booleans, or a function that returns one: where the weight decay applies."),
    "mu_dtype": Note("Dtype in which the first moment is stored; None takes the parameter's dtype."),
    "accumulator_dtype": Note("Dtype in which the momentum is stored; None takes the parameter's dtype."),
    "dtype_momentum": Note("Dtype in which the momentum is stored; None takes the parameter's dtype."),
    "state_dtype": Note("Dtype in which the iterate ``z`` is stored; None takes the parameter's dtype."),
    "eps_in_sqrt": Note("Whether ``eps`` is added inside the square root, and not to the root."),
    "nesterov": Note("Whether the update looks one momentum step ahead, as in Nesterov's method."),
    "init_step": Note("Pair of the kind and value of the first step size, such as ``('heuristic', 1e-6)``."),
    "factored": Note("Whether second moments of matrices are stored by row and column."),
    "decay_rate": Note("Exponent of the decay of second moments: at step t it is 1 - t ** -decay_rate."),
}
