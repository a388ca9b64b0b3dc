"""Loading of states: copies of the same dtypes. PyTorch casts what it loads to the dtype of the parameter."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad.torch import library
from oxigrad.torch.library import torch


class _Sealed:
    """A tensor of a state on its way through PyTorch's ``load_state_dict``, which casts tensors only."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def sealed(opt: Any, state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """The state with its tensors sealed: a hook before ``load_state_dict``."""
    return {**state_dict, "state": {key: _seal(slots) for key, slots in state_dict["state"].items()}}


def _seal(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _Sealed(value)
    if isinstance(value, dict):
        return {key: _seal(item) for key, item in value.items()}
    return type(value)(map(_seal, value)) if type(value) in (list, tuple) else value


def opened(
    state: Mapping[Any, Any], groups: Sequence[Mapping[str, Any]], on_host: Callable[[Any], bool]
) -> defaultdict[Any, Any]:
    """The state with copies of the sealed tensors, on the devices of the parameters; what is not sealed stays as it is.

    ``on_host`` tells whether the state of a parameter is in host memory instead.
    """
    on_device = {id(p) for group in groups if group.get("fused") or group.get("capturable") for p in group["params"]}
    copies = {
        key: _open(slots, key, "cpu" if on_host(key) else None, counts_there=id(key) in on_device and not on_host(key))
        for key, slots in state.items()
    }
    return defaultdict(dict, copies)


def _open(value: Any, p: Any, device: Any, *, counts_there: bool, name: Any = None) -> Any:
    if isinstance(value, _Sealed):
        tensor = value.tensor.detach()
        if name == "step" and counts_there:
            return tensor.to(p.device, torch.float32, copy=True)
        # Numbers of whole parameters stay where they are.
        if isinstance(p, torch.Tensor) and name != "step" and (tensor.ndim or not p.ndim):
            return tensor.to(device or p.device, copy=True)
        return tensor.clone()
    if isinstance(value, dict):
        if not any(isinstance(item, (_Sealed, dict)) for item in value.values()):
            return value
        return {key: _open(item, p, device, counts_there=counts_there, name=key) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_open(item, p, device, counts_there=counts_there) for item in value)
    return value


class KeepingDtypes(library.Optimizer):
    """`torch.optim.Optimizer` whose ``load_state_dict`` copies tensors with their dtypes."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads copies from a ``state_dict`` of this class, or of PyTorch's class of this name, with its dtypes."""
        handle = self.register_load_state_dict_pre_hook(sealed)  # the last one, after the user's hooks
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()

    def _keeps_on_host(self, p: Any) -> bool:
        """Whether the state of a parameter is in host memory, wherever the parameter is."""
        return False

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "state" in state and "param_groups" in state:
            state = {**state, "state": opened(state["state"], state["param_groups"], self._keeps_on_host)}
        super().__setstate__(state)
