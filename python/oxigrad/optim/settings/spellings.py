"""Names of arguments and attributes of optimizers in PyTorch, Keras and optax, and what takes their place here."""

from collections.abc import Iterable

# For each name, the names here of which the first that an optimizer has is meant; several that belong together are one
# tuple.
_NAMES: dict[str, tuple[str | tuple[str, ...], ...]] = {
    "acc_steps": ("accumulate",),
    "accumulator_dtype": ("slot_dtype",),
    "adaptive": ("adjust",),
    "adjust_lr_fn": ("adjust",),
    "alpha": ("rho", "learning_rate"),
    "axis": ("units",),
    "b1": ("beta1",),
    "b2": ("beta2",),
    "b3": ("beta3",),
    "beta": ("momentum",),
    "beta_1": ("beta1",),
    "beta_2": ("beta2",),
    "beta_2_decay": ("beta2_decay",),
    "betas": (("beta1", "beta2", "beta3"), ("beta1", "beta2")),
    "bias_correction_mu": ("amsgrad",),
    "bias_correction_nu": ("amsgrad",),
    "clip_threshold": ("clipping", "limit"),
    "clip_value": ("limit",),
    "clipping": ("max_ratio",),
    "clipping_threshold": ("clipping",),
    "consistent_rms": ("adjust",),
    "d": ("clipping",),
    "debias": ("average_from",),
    "decay": ("rho",),
    "decay_rate": ("rho", "beta2_decay", "decay"),
    "dtype_momentum": ("slot_dtype",),
    "epoch": ("step",),
    "eps": ("epsilon", ("epsilon1", "epsilon2"), "min_norm"),
    "eps_in_sqrt": ("epsilon_mode",),
    "eps_root": ("epsilon_root",),
    "epsilon_1": ("epsilon1",),
    "epsilon_2": ("epsilon2",),
    "estim_lr0": ("d0",),
    "estim_lr_coef": ("d_coefficient",),
    "etas": (("eta_minus", "eta_plus"),),
    "every_k_schedule": ("accumulate",),
    "gradient_accumulation_steps": ("accumulate",),
    "hessian_diagonal_fn": ("estimate",),
    "history_size": ("history",),
    "init_estim_sq_dist": ("initial_distance",),
    "init_eta": ("initial_value",),
    "init_lr": ("learning_rate",),
    "init_step": (("initial", "initial_value"),),
    "initial_accumulator_value": ("initial_accumulator",),
    "initial_scale": ("initial_accumulator",),
    "iterations": ("step",),
    "l1_regularization_strength": ("l1",),
    "l2_regularization_strength": ("l2",),
    "l2_shrinkage_regularization_strength": ("shrinkage",),
    "lambd": ("decay",),
    "learning_rate_fn": ("learning_rate",),
    "learning_rate_power": ("power",),
    "line_search_fn": ("line_search",),
    "linesearch": ("line_search",),
    "loss_scale_factor": ("loss_scale",),
    "lr": ("learning_rate",),
    "lr_decay": ("rate_decay",),
    "max_delta": ("limit",),
    "max_eval": ("max_evaluations",),
    "max_iter": ("max_iterations",),
    "max_norm": ("max_global_norm",),
    "max_step_size": ("max_size",),
    "memory_size": ("history",),
    "min_dim_size_to_factor": ("min_factored",),
    "min_step_size": ("min_size",),
    "mu_dtype": ("slot_dtype",),
    "multiply_by_parameter_scale": ("scale_parameter",),
    "muon_a": ("a",),
    "muon_b": ("b",),
    "muon_c": ("c",),
    "norm_type": ("max_norm",),
    "ns_coefficients": ("coefficients", ("a", "b", "c")),
    "ns_coeffs": ("coefficients", ("a", "b", "c")),
    "ns_steps": ("iterations",),
    "num_iters": ("iterations",),
    "optimism": (("alpha", "beta"),),
    "param_groups": ("groups",),
    "preconditioning": ("coefficients",),
    "proj_type": ("projection",),
    "rate": ("learning_rate",),
    "reps_rel": ("initial_value",),
    "rms_rate": ("adjust",),
    "state": ("slots",),
    "use_bias_correction": ("bias_correction",),
    "state_dtype": ("slot_dtype",),
    "step_size": ("learning_rate",),
    "step_sizes": (("min_size", "max_size"),),
    "tolerance_grad": ("tolerance_gradient",),
    "update_interval": ("every",),
    "update_proj_gap": ("interval",),
    "use_clipping": ("clipped",),
    "wd": ("weight_decay",),
    "weight_decay_rate": ("weight_decay",),
    "weight_lr_power": ("weight_power",),
}
# What takes the place of names that have no counterpart among the arguments.
_ADVICE = {
    name: advice
    for names, advice in {
        "adam_b1 adam_b2 adam_beta_1 adam_beta_2": "use optim.partition, with optim.AdamW for these parameters",
        "adam_eps_root adam_learning_rate": "use optim.partition, with optim.AdamW for these parameters",
        "adam_lr_ratio adam_weight_decay": "use optim.partition, with optim.AdamW for these parameters",
        "capturable": "every step is fused; a step under CUDA graph capture needs no argument",
        "clip_value_fn": "the limit is step ** 0.25, as in the paper",
        "clipnorm": "use optim.chain(optim.ClipByNorm(...), optimizer)",
        "clipvalue": "use optim.chain(optim.ClipByValue(...), optimizer)",
        "decay_offset": "the count of steps of a state begins at 0; load_state_dict continues it",
        "decoupled_weight_decay weight_decay": "use optim.chain(optimizer, optim.WeightDecay(...))",
        "differentiable": "use opt.apply, whose steps are differentiable",
        "accumulator_dtype": "use the option slot_dtype of the optimizer or chain",
        "ema_momentum use_ema": "use optim.chain(optimizer, optim.EMA(...))",
        "ema_overwrite_frequency": "use opt.swap_in",
        "exclude_embeddings exclude_layers": "use optim.partition for parameters with another optimizer",
        "muon_weight_dimension_numbers": "use optim.partition for parameters with another optimizer",
        "fast_optimizer": "use optim.chain(optimizer, optim.Lookahead(...))",
        "foreach fused": "every step is fused, and needs no argument",
        "global_clipnorm max_grad_norm": "use optim.chain(optim.ClipByGlobalNorm(...), optimizer)",
        "key": "use the option seed",
        "mask": "use groups={pattern: None} for parameters that are not updated",
        "maximize": "use optim.chain(optim.Maximize(), optimizer)",
        "name": "optimizers have no names",
        "nesterov": "use optim.NAdam for Adam with Nesterov's momentum",
        "eta gamma": "use optim.chain(optim.GradientNoise(eta, gamma), optimizer)",
        "seed": "use the option seed of the optimizer or chain",
        "parameters params variables": "the parameters are an argument of opt.update(model, grads)",
        "print_win_rate_every_n_steps verbose": "read opt.slots; nothing is printed",
        "reset_state": "the slots of the optimizer stay as they are",
        "scale_init_precond": "the first direction is the gradient, and the line search scales it",
        "trust_ratio_mask": "use optim.partition for parameters without a trust ratio",
        "warmup_steps": "use a schedule as learning_rate, such as schedules.warmup",
        "weight_decay_mask": "use groups={pattern: {'weight_decay': 0.0}} for parameters without decay",
        "apply_gradients": "use opt.update(model, grads)",
        "zero_grad": "use the option zero_gradients=True",
    }.items()
    for name in names.split()
}


def meant(name: str, available: Iterable[str]) -> tuple[str, ...]:
    """The names among the ``available`` ones that one of another library stands for; none if it is unknown.

    >>> meant("betas", ["learning_rate", "beta1", "beta2"])
    ('beta1', 'beta2')
    """
    names = set(available)
    candidates = [(each,) if isinstance(each, str) else each for each in _NAMES.get(name, ())]
    return next((each for each in candidates if names.issuperset(each)), ())


def counterpart(name: str, available: Iterable[str]) -> str:
    """The counterpart of a name of another library among the ``available`` names, as the end of an error message.

    Empty if unknown.

    >>> counterpart("lr", ["learning_rate", "beta1", "beta2"])
    ': use learning_rate'
    >>> counterpart("betas", ["learning_rate", "beta1", "beta2"])
    ': use beta1 and beta2'
    """
    if names := meant(name, available):
        return f": use {' and '.join(names)}"
    return f": {_ADVICE[name]}" if name in _ADVICE else ""


def unlike_optax(name: str, count: int) -> TypeError:
    """The error of `Optimizer.update` with more arguments than two, as a chain of optax calls it."""
    return TypeError(
        f"{name}.update: found {count} arguments, as optax gives (updates, state, params): expected (model, grads); "
        "optax takes oxigrad.optax.transformation(opt) in the place of the optimizer"
    )
