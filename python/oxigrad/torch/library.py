"""PyTorch, imported by name: a type checker needs no stubs of it, and this package has its name.

Its base classes of optimizers are the exception: to a type checker that has PyTorch, optimizers of oxigrad are
optimizers of PyTorch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oxigrad._names import library

torch: Any = library("torch", "oxigrad.torch needs PyTorch: python -m pip install torch")

if TYPE_CHECKING:
    from torch.optim import LBFGS as LBFGS
    from torch.optim import Optimizer as Optimizer
else:
    LBFGS, Optimizer = torch.optim.LBFGS, torch.optim.Optimizer


def without_grad(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function while autograd is off.

    An interrupt in the methods of `torch.no_grad` would leave it off.
    """
    before = torch.is_grad_enabled()
    try:
        torch._C._set_grad_enabled(False)
        return function(*args)
    finally:
        torch._C._set_grad_enabled(before)


def without_modes(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function with autograd and inference mode off, so that later steps may update its tensors."""
    if not torch.is_inference_mode_enabled():
        return without_grad(function, *args)
    with torch.inference_mode(False):
        return without_grad(function, *args)


@torch._disable_dynamo
def untraced(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function, which `torch.compile` does not trace: it breaks its graph here."""
    return function(*args)
