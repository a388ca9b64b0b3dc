"""Optimizers of `oxigrad.optim` that PyTorch lacks, with PyTorch's names for arguments."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from oxigrad.torch.drop_in import documentation, options
from oxigrad.torch.library import torch
from oxigrad.torch.optimizer import TensorOptimizer
from oxigrad.torch.step.resolved import TensorStep
from oxigrad.torch.table import Entry

# The keywords of every optimizer of PyTorch.
_FLAGS = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False, "fused": None}


class AdditionalOptimizer(TensorOptimizer):
    """Base class of optimizers that PyTorch does not have.

    By keyword they have ``maximize``, and ``foreach`` and ``fused``, which change nothing: a step is always fused.
    ``differentiable`` steps are recorded by autograd; ``capturable=True`` raises `RuntimeError`.
    """

    __signature__: ClassVar[inspect.Signature]
    #: The optimizer of `oxigrad.optim` whose rule it is.
    ours: ClassVar[Any]

    def __init__(self, params: Any, *args: Any, **keywords: Any) -> None:
        self._take_options(args, keywords)
        bound = self.__signature__.bind(params, *args, **keywords)
        bound.apply_defaults()
        defaults = {name: bound.arguments[name] for name in (*arguments(self.entry), *_FLAGS)}
        _check_flags(defaults)
        if isinstance(defaults["lr"], torch.Tensor) and defaults["lr"].numel() != 1:
            raise ValueError("Tensor lr must be 1-element")  # as PyTorch's classes do
        self.check_arguments(defaults)
        super().__init__(params, defaults)

    def _remembered(self) -> Mapping[str, Any]:
        return self.defaults

    def _take_recorded(self, scale: Any, loss: Any) -> None:
        """Takes a step that autograd records."""
        if any(group.get("capturable") for group in self.param_groups):
            raise RuntimeError(
                f"{type(self).__name__}: capturable=True is not supported, since a step reads its numbers on the host"
            )
        resolved = TensorStep(self, scaled=scale is not None, recorded=True)
        resolved.take(self, 1.0 if scale is None else float(scale), loss)


def arguments(entry: Entry) -> dict[str, Any]:
    """The names and defaults of the arguments for the hyperparameters of a rule: tuples for those with items."""
    defaults: dict[str, Any] = {}
    for name, (key, item) in entry.places.items():
        default = entry.rule.defaults[name]
        defaults[key] = default if item is None else (*defaults.get(key, ()), default)
    return defaults


def _check_flags(values: Mapping[str, Any]) -> None:
    """Raises `RuntimeError` for combinations of flags that PyTorch excludes."""
    if values["fused"] and values["differentiable"]:
        raise RuntimeError("`fused` does not support `differentiable`")
    if values["fused"] and values["foreach"]:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


_EXAMPLE = """

    The rule and its defaults come from `oxigrad.optim.{optimizer}`. By keyword it has ``maximize``,
    ``differentiable`` and the other flags of PyTorch's optimizers, and the options of `oxigrad.torch`.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.ones({shape}))
    >>> opt = {name}([weight], lr=0.3)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (weight**2).sum().backward()
    ...     {step}
    >>> bool((weight != 1).all())
    True
    """
# The step of the example, and of one whose rule reads the loss.
_STEP, _STEP_BY_LOSS = "opt.step()", "loss = opt.step(loss=(weight**2).sum())"


def additional(ours: Any, name: str = "", *, shape: str = "3", base: type = AdditionalOptimizer, **places: Any) -> Any:
    """The class for an optimizer of `oxigrad.optim`. ``places`` are fields of `Entry`."""
    name = name or ours.__name__
    entry = Entry(rule=ours._rule, follows_torch=False, **places)
    kind = inspect.Parameter
    hyperparameters = [
        kind(key, kind.POSITIONAL_OR_KEYWORD, default=value) for key, value in _in_order(arguments(entry)).items()
    ]
    flags = [kind(key, kind.KEYWORD_ONLY, default=value) for key, value in _FLAGS.items()]
    signature = [kind("params", kind.POSITIONAL_OR_KEYWORD), *hyperparameters, *flags, *options()]
    step = _STEP_BY_LOSS if "loss" in ours._rule.supplied else _STEP
    body: dict[str, Any] = {
        "__doc__": documentation(
            entry,
            inspect.Signature(signature),
            _EXAMPLE.format(name=name, optimizer=ours.__name__, shape=shape, step=step),
        ),
        "__module__": "oxigrad.torch",
        "__signature__": inspect.Signature(signature),
        "entry": entry,
        "ours": ours,
    }
    return type(base)(name, (base,), body)


def _in_order(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments in the order that PyTorch gives them: lr, betas, eps and weight_decay first."""
    first = [name for name in ("lr", "betas", "eps", "weight_decay") if name in values]
    return {name: values[name] for name in (*first, *values)}
