"""The state of PyTorch's Adam, AdamW and SGD, read into the optimizers of `oxigrad.optim`, and written from them.

>>> import numpy as np
>>> import oxigrad as ox
>>> weight = torch.nn.Parameter(torch.ones(3))
>>> theirs = torch.optim.AdamW([weight], lr=0.1)
>>> weight.grad = torch.ones(3)
>>> theirs.step()
>>> opt, model = ox.optim.AdamW(learning_rate=0.1), {"weight": weight.detach().numpy()}
>>> load_state_dict(opt, theirs.state_dict(), ["weight"])
Report(missing=[], unexpected=[], mismatched=[])
>>> model = opt.update(model, {"weight": np.ones(3, np.float32)})
>>> theirs.load_state_dict(state_dict(opt, ["weight"], theirs.state_dict()["param_groups"]))
>>> float(theirs.state[weight]["step"])
2.0
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad._core import StateError
from oxigrad.ops.backends import to_host
from oxigrad.rules import gradient_transforms
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.parameters.presence import PRESENCE
from oxigrad.step.state.state_dict import Report
from oxigrad.step.state.step_count import check_step_count
from oxigrad.torch.library import torch
from oxigrad.torch.state.checking import check_form
from oxigrad.torch.table import SLOTS

# PyTorch's names of the slots: of optimizers that keep squares of gradients, and of those that do not.
_ADAM = {slot: SLOTS[slot] for slot in ("m", "v", "v_max")}
_SGD = {"m": "momentum_buffer"}
_SLOTS = {theirs: ours for table in (_ADAM, _SGD) for ours, theirs in table.items()}


def load_state_dict(
    opt: Any, state: Mapping[str, Any], names: Iterable[str], *, step: int | None = None, strict: bool = True
) -> Report:
    """Loads the ``state_dict()`` of one of PyTorch's optimizers into ``opt``.

    Args:
        opt: the optimizer of the same formula; hyperparameters are not compared.
        state: the result of ``state_dict()`` of PyTorch's optimizer.
        names: the key paths of the parameters, in the order in which PyTorch's optimizer was given them. For a model
            ``dict(module.named_parameters())`` these are ``map(str, oxigrad.tree.parameters(model))``.
        step: the number of steps taken, which the state of SGD lacks.
        strict: as for `Optimizer.load_state_dict`.

    Raises `StateError`, with nothing changed, for a state of another kind, or one that does not match the optimizer.
    """
    check_form(state)
    paths, their_state = _by_index(state["param_groups"], names), state["state"]
    taken = {path: _step(path, their_state[index], step) for index, path in paths.items() if index in their_state}
    count, before = max(taken.values(), default=step or 0), opt.state_dict(copy=False)
    missed = {path: count - number for path, number in taken.items() if number < count}
    remembered = {name: value for name, value in before["remembered"].items() if name != PRESENCE}
    with_state = their_state or {index: {} for index in paths}  # SGD without momentum has none
    return opt.load_state_dict(
        {
            **before,
            "step": count,
            "micro": 0,
            "remembered": remembered | ({PRESENCE: {"missed_steps": missed}} if missed else {}),
            "slots": {path: _slots(path, with_state[index]) for index, path in paths.items() if index in with_state},
        },
        strict,
    )


def state_dict(opt: Any, names: Iterable[str], param_groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The state of ``opt`` for ``load_state_dict`` of one of PyTorch's optimizers, of the same formula.

    Args:
        opt: the optimizer of `oxigrad.optim` whose state is read.
        names: the key paths of the parameters, in the order in which PyTorch's optimizer was given them.
        param_groups: groups of its ``state_dict()``, whose hyperparameters do not change.

    Raises `StateError` for slots that PyTorch's optimizer lacks.
    """
    ours, paths = opt.state_dict(), _by_index(param_groups, names)
    if ours["micro"]:
        raise StateError(f"{ours['micro']} gradients are accumulated, which has no counterpart: expected whole steps")
    if unknown := sorted(ours["slots"].keys() - set(paths.values())):
        raise StateError(f"there are slots for parameters that are not named: {', '.join(unknown)}")
    missed = ours["remembered"].get(PRESENCE, {}).get("missed_steps", {})
    by_index = {
        index: _named(path, ours["slots"][path], ours["step"] - missed.get(path, 0))
        for index, path in paths.items()
        if path in ours["slots"]
    }
    return {"state": {index: slots for index, slots in by_index.items() if slots}, "param_groups": list(param_groups)}


def _by_index(groups: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[int, str]:
    """The key path of each parameter index of PyTorch."""
    indices, paths = [index for group in groups for index in group["params"]], [*names]
    if len(indices) != len(paths):
        raise StateError(f"found {len(paths)} names: expected {len(indices)}, one for each parameter of the groups")
    return dict(zip(indices, paths, strict=True))


def _step(path: str, state: Mapping[str, Any], default: int | None) -> int:
    step = state.get("step", default)
    if step is None:
        raise StateError(f"{path}: the state lacks the number of steps taken: expected the argument step")
    check_step_count(step, f"{path}: the state has step")
    return int(step)


def _slots(path: str, state: Mapping[str, Any]) -> dict[str, Any]:
    slots = {name: value for name, value in state.items() if name != "step" and value is not None}
    if unknown := sorted(slots.keys() - _SLOTS.keys()):
        raise StateError(f"{path}: the state has {', '.join(unknown)}: expected the state of Adam, AdamW or SGD")
    return {_SLOTS[name]: value for name, value in slots.items()}


def _named(path: str, slots: Mapping[str, Any], step: int) -> dict[str, Any]:
    """The slots of one parameter as PyTorch's optimizer has them."""
    table = _ADAM if "v" in slots else _SGD
    # No mean of gradients is accumulated.
    arrays = {name: array for name, array in slots.items() if name != gradient_transforms.NAMES["mean"]}
    if unknown := sorted(arrays.keys() - table.keys()):
        raise StateError(f"{path}: the slots {', '.join(unknown)} have no counterpart in Adam, AdamW or SGD")
    count = {"step": torch.tensor(float(step), dtype=torch.float32, device="cpu")} if table is _ADAM else {}
    return {**count, **{table[name]: _tensor(array) for name, array in arrays.items()}}


def _tensor(array: Any) -> Any:
    if isinstance(array, Quantized):
        array = np.asarray(array)
    return array if isinstance(array, torch.Tensor) else torch.asarray(to_host(array), device="cpu", copy=True)
