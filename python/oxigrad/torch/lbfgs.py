"""PyTorch's L-BFGS, with its parameters in the group only."""

from typing import Any

from oxigrad.torch import library
from oxigrad.torch.state.checking import check_lbfgs_state
from oxigrad.torch.state.loading import KeepingDtypes


class LBFGS(KeepingDtypes, library.LBFGS):
    """L-BFGS (Liu and Nocedal 1989), a subclass of `torch.optim.LBFGS` whose steps are PyTorch's.

    Args:
        params: parameters to update, as in `torch.optim.LBFGS`.
        lr: first trial length of the line search, or the length of a move.
        max_iter: largest number of iterations of a step.
        max_eval: largest number of evaluations of the closure; None is 5/4 of ``max_iter``.
        tolerance_grad: largest element of the gradient at which iterations end.
        tolerance_change: change of loss or parameters at which iterations end.
        history_size: number of past steps that approximate the Hessian.
        line_search_fn: line search: "strong_wolfe", or None for moves of a fixed length.
        maximize: whether to maximize the loss instead of minimizing it.

    It takes its parameters from the group in each step. PyTorch's class also has them in an attribute, so that it
    cannot be pickled, and its parameters cannot be replaced. `oxigrad.optim.LBFGS` is the optimizer for functions of a
    model.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.ones(3))
    >>> opt = LBFGS([weight])
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = (weight**2).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure).item()
    3.0
    >>> bool((weight.abs() < 1e-3).all())
    True
    """

    __module__ = "oxigrad.torch"

    @property
    def _params(self) -> list[Any]:
        """The parameters, as they are in the group now."""
        return self.param_groups[0]["params"]

    @_params.setter
    def _params(self, params: list[Any]) -> None:
        """Ignores the list that PyTorch's constructor assigns."""

    def _numel(self) -> int:
        """The number of real numbers in all parameters."""
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict`` of this class, or PyTorch's: copies, of the same dtypes.

        Raises `StateError`, with nothing changed, for a state that L-BFGS cannot continue from: counts that are no
        whole numbers, and a direction, gradients or histories that are missing or of another size than the parameters.
        """
        check_lbfgs_state(state_dict, self._numel())
        super().load_state_dict(state_dict)
