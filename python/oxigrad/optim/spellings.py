"""Names of arguments and attributes of optimizers in PyTorch, Keras and optax, and what takes their place here."""

from collections.abc import Iterable

# For each name, the names here of which the first that an optimizer has is meant; several that belong together are one tuple.
_NAMES: dict[str, tuple[str | tuple[str, ...], ...]] = {
    "acc_steps": ("accumulate",),
    "alpha": ("rho", "learning_rate"),
    "b1": ("beta1",),
    "b2": ("beta2",),
    "b3": ("beta3",),
    "beta_1": ("beta1",),
    "beta_2": ("beta2",),
    "betas": (("beta1", "beta2", "beta3"), ("beta1", "beta2")),
    "decay_rate": ("rho", "decay"),
    "epoch": ("step",),
    "eps": ("epsilon",),
    "eps_root": ("epsilon_root",),
    "every_k_schedule": ("accumulate",),
    "gradient_accumulation_steps": ("accumulate",),
    "init_lr": ("learning_rate",),
    "iterations": ("step",),
    "lambd": ("decay",),
    "learning_rate_fn": ("learning_rate",),
    "loss_scale_factor": ("loss_scale",),
    "lr": ("learning_rate",),
    "mu_dtype": ("slot_dtype",),
    "param_groups": ("groups",),
    "rate": ("learning_rate",),
    "state": ("slots",),
    "step_size": ("learning_rate",),
    "wd": ("weight_decay",),
}
# What takes the place of names that have no counterpart among the arguments.
_ADVICE = {
    "capturable": "every step is fused; a step under CUDA graph capture needs no argument",
    "clipnorm": "use optim.chain(optim.ClipByNorm(...), optimizer)",
    "clipvalue": "use optim.chain(optim.ClipByValue(...), optimizer)",
    "differentiable": "use opt.apply, whose steps are differentiable",
    "ema_momentum": "use optim.chain(optimizer, optim.EMA(...))",
    "ema_overwrite_frequency": "use opt.swap_in",
    "foreach": "every step is fused, and needs no argument",
    "fused": "every step is fused, and needs no argument",
    "global_clipnorm": "use optim.chain(optim.ClipByGlobalNorm(...), optimizer)",
    "mask": "use groups={pattern: None} for parameters that are not updated",
    "max_grad_norm": "use optim.chain(optim.ClipByGlobalNorm(...), optimizer)",
    "maximize": "use optim.chain(optim.Maximize(), optimizer)",
    "parameters": "the parameters are an argument of opt.update(model, grads)",
    "params": "the parameters are an argument of opt.update(model, grads)",
    "use_ema": "use optim.chain(optimizer, optim.EMA(...))",
    "variables": "the parameters are an argument of opt.update(model, grads)",
    "weight_decay": "use optim.chain(optimizer, optim.WeightDecay(...))",
    "zero_grad": "use the option zero_gradients=True",
}


def counterpart(name: str, known: Iterable[str]) -> str:
    """The counterpart of a name of another library among the ``known`` names, as the end of an error message; empty if unknown.

    >>> counterpart("lr", ["learning_rate", "beta1", "beta2"])
    ': use learning_rate'
    >>> counterpart("betas", ["learning_rate", "beta1", "beta2"])
    ': use beta1 and beta2'
    """
    names = set(known)
    for candidate in _NAMES.get(name, ()):
        wanted = (candidate,) if isinstance(candidate, str) else candidate
        if names.issuperset(wanted):
            return f": use {' and '.join(wanted)}"
    return f": {_ADVICE[name]}" if name in _ADVICE else ""
