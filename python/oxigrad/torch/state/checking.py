"""Checks of a state before it is loaded: `StateError` names the parameter and the key."""

from collections.abc import Mapping
from typing import Any

from oxigrad import xp
from oxigrad._core import StateError
from oxigrad.rules.core.rule import is_flag
from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.plan.announcements import named
from oxigrad.step.state.step_count import check_step_count
from oxigrad.torch.library import torch
from oxigrad.torch.state.conversion import as_complex, shape_of
from oxigrad.torch.table import OPTIONAL_SLOTS, Entry

_CODES = ({"codes", "scales"}, {"codes", "scales", "shape"})

# The state of PyTorch's L-BFGS after its first iteration: vectors of all parameters, lists of them, lists of numbers,
# and numbers.
_VECTORS, _HISTORIES = ("d", "prev_flat_grad"), ("old_dirs", "old_stps")
_NUMBERS, _LISTS = ("t", "H_diag", "prev_loss"), ("ro", "al")


def check_form(state: Any) -> None:
    """Raises `StateError` for what is not the result of ``state_dict`` of an optimizer of PyTorch."""
    if not isinstance(state, Mapping):
        raise StateError(f"the state is {type(state).__name__}: expected the result of state_dict, a dict")
    if {"format", "slots"} <= state.keys():
        raise StateError(
            "the state is of an optimizer of oxigrad.optim: expected the result of state_dict of one of PyTorch's; "
            "oxigrad.torch.state_dict converts it"
        )
    for key, kind, expected in (("state", Mapping, "a dict"), ("param_groups", (list, tuple), "a list")):
        if not isinstance(state.get(key), kind):
            description = type(state[key]).__name__ if key in state else "missing"
            raise StateError(f"the state's {key!r} is {description}: expected {expected}, as state_dict returns it")
    for number, group in enumerate(state["param_groups"]):
        if not isinstance(group, Mapping) or not isinstance(group.get("params"), (list, tuple)):
            raise StateError(
                f"param_groups[{number}] of the state is not a dict with 'params', the numbers of parameters"
            )
    numbers = {index for group in state["param_groups"] for index in group["params"]}
    if unknown := [repr(key) for key in state["state"] if key not in numbers]:
        raise StateError(
            f"the state has the keys {named(unknown)}, which are in no group: expected numbers of param_groups, "
            f"{named([*map(repr, numbers)]) or 'which have no parameters'}"
        )
    for index, slots in state["state"].items():
        if not isinstance(slots, Mapping):
            raise StateError(f"state[{index!r}] is {type(slots).__name__}: expected a dict")


def check_state(opt: Any, state: Any) -> None:
    """Raises `StateError` for a state that an optimizer cannot continue from, but for what PyTorch checks itself."""
    check_form(state)
    groups, saved = opt.param_groups, state["param_groups"]
    defaults = opt.entry.rule.defaults  # PyTorch completes groups of earlier releases, which lack flags
    numbers = {key for name, (key, _) in opt.entry.places.items() if not is_flag(defaults[name])} & opt.defaults.keys()
    for number, group in enumerate(saved):
        if missing := sorted(numbers - group.keys()):
            raise StateError(
                f"param_groups[{number}] of the state has no {', '.join(missing)}: expected the state of an optimizer "
                f"of the class {type(opt).__name__}"
            )
        if "noise_step" in group:
            check_step_count(group["noise_step"], f"param_groups[{number}] of the state has noise_step")
    if [len(group["params"]) for group in groups] != [len(group["params"]) for group in saved]:
        return  # PyTorch refuses it.
    ours, theirs = ([name for group in each for name in group.get("param_names", ())] for each in (groups, saved))
    if sorted(ours) == sorted(theirs):
        for index, (name, of_state) in enumerate(zip(ours, theirs, strict=True)):
            if name != of_state:
                raise StateError(
                    f"state[{index}] is of the parameter {of_state!r}: expected {name!r}, which the optimizer has there"
                )
    for group, of_group in zip(groups, saved, strict=True):
        for p, index in zip(group["params"], of_group["params"], strict=True):
            if slots := state["state"].get(index):
                _check(opt, {**group, **of_group}, p, f"state[{index!r}]", slots)


def _check(opt: Any, group: Mapping[str, Any], p: Any, where: str, slots: Mapping[str, Any]) -> None:
    entry: Entry = opt.entry
    points = opt.points(group)
    if entry.counts:
        if slots.get("step") is None:
            raise StateError(f"{where} has no 'step': expected the number of steps taken")
        check_step_count(slots["step"], f"{where} has step")
    keys = {
        "step",
        *map(entry.key_of_slot, OPTIONAL_SLOTS),
        *(entry.key_of_slot(slot.name) for slot in entry.rule.slots),
        *points,
    }
    if unknown := [key for key, value in slots.items() if key not in keys and value is not None]:
        raise StateError(
            f"{where} has {', '.join(map(repr, unknown))}: it is of another optimizer; expected some of "
            f"{', '.join(map(repr, sorted(keys)))}"
        )
    asked = dict(entry.rule.optional)
    for slot in entry.rule.slots:
        key = entry.key_of_slot(slot.name)
        is_optional = slot.name in asked and not entry.value(asked[slot.name], group)
        new = None if slot.is_number else _new_slot(entry, slot, group, p)
        if slots.get(key) is None:
            if entry.counts and not is_optional and (slot.is_number or new is not None):
                raise StateError(f"{where} has no {key!r}: expected a tensor")
        elif slot.is_number:
            _check_number(slots[key], f"{where}[{key!r}]")
        else:
            _check_array(slots[key], p, f"{where}[{key!r}]", new)
    for key in points:
        if slots.get(key) is None:
            raise StateError(f"{where} has no {key!r}: expected a tensor")
        _check_array(slots[key], p, f"{where}[{key!r}]", p)


def _new_slot(entry: Entry, slot: Slot, group: Mapping[str, Any], p: Any) -> Any:
    """The slot of a new parameter like ``p``, without memory for it; None where the rule begins no slot."""
    if entry.rule.elementwise:
        return p
    like = torch.empty_like(p.detach(), device="meta")
    if p.is_complex():
        like = torch.empty((*p.shape, 2), dtype=p.dtype.to_real(), device="meta")
    first = slot.first(xp, like, like.dtype, lambda name: entry.value(name, group))
    return None if first is None else as_complex(first, p)


def _check_number(value: Any, where: str) -> None:
    is_one = (
        value.numel() == 1 and not value.is_complex()
        if isinstance(value, torch.Tensor)
        else isinstance(value, (int, float))
    )
    if not is_one:
        raise StateError(f"{where} is {type(value).__name__}: expected a number, or a real tensor of one")


def _check_array(value: Any, p: Any, where: str, new: Any) -> None:
    """Raises for a slot that is neither a tensor of the shape and kind of a ``new`` one nor codes with their scales."""
    tensors = [value]
    if isinstance(value, Mapping):
        if value.keys() not in _CODES:
            raise StateError(f"{where} has the keys {[*value]}: expected a tensor, or a dict of 'codes' and 'scales'")
        tensors = [value["codes"], value["scales"]]
    for tensor in tensors:
        _check_tensor(tensor, where)
    if isinstance(value, Mapping):
        try:
            Quantized(**value)
        except (TypeError, ValueError) as error:
            raise StateError(f"{where}: {error}") from None
    else:
        _check_dtype(value, where, is_complex=new is not None and new.is_complex())
    shape, expected = shape_of(value), None if new is None else tuple(new.shape)
    if shape != expected and type(tensors[0]) is type(p.data):
        fault = f"{where} has shape {shape}: expected {'no tensor' if expected is None else expected}"
        what = "the shape of the parameter" if expected == tuple(p.shape) else f"for a parameter of {tuple(p.shape)}"
        raise StateError(f"{fault}, {what}")


def _check_tensor(value: Any, where: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise StateError(f"{where} has {type(value).__name__}: expected a tensor")


def _check_dtype(tensor: Any, where: str, *, is_complex: bool = False) -> None:
    if not (tensor.is_complex() if is_complex else tensor.is_floating_point()):
        kind = "complex" if is_complex else "real floating-point"
        raise StateError(f"{where} has dtype {tensor.dtype}: expected a {kind} dtype")


# --- L-BFGS -----------------------------------------------------------------------------------------------------------


def check_lbfgs_state(state: Any, size: int) -> None:
    """Raises `StateError` for a state that PyTorch's L-BFGS over ``size`` real numbers cannot continue from.

    It is the state of the first parameter. PyTorch checks the number of parameters in the groups.
    """
    check_form(state)
    for group in state["param_groups"]:
        for index in group["params"]:
            if slots := state["state"].get(index):
                if index != group["params"][0]:
                    raise StateError(f"state[{index!r}]: expected a state of the first parameter alone, as L-BFGS has")
                _check_curvature(slots, size, group.get("history_size"), f"state[{index!r}]")


def _check_curvature(slots: Mapping[str, Any], size: int, history: Any, where: str) -> None:
    for key in ("func_evals", "n_iter"):
        if slots.get(key) is None:
            raise StateError(f"{where} has no {key!r}: expected a number of steps")
        check_step_count(slots[key], f"{where} has {key}")
    parts = {key: slots[key] for key in (*_VECTORS, *_HISTORIES, *_NUMBERS, *_LISTS) if slots.get(key) is not None}
    for key in (*_VECTORS, *_HISTORIES, *_NUMBERS, "ro") if slots["n_iter"] else ():
        if key not in parts:
            raise StateError(f"{where} has no {key!r}: expected it after {slots['n_iter']} iterations")
    for key, value in parts.items():
        _check_part(key, value, size, f"{where}[{key!r}]")
    lengths = {key: len(parts[key]) for key in (*_HISTORIES, "ro") if key in parts}
    if len({*lengths.values()}) > 1:
        raise StateError(f"{where} has histories of the lengths {lengths}: expected equal ones")
    _check_lengths(parts, history, where)


def _check_part(key: str, value: Any, size: int, where: str) -> None:
    if key in _NUMBERS:
        return _check_number(value, where)
    if key in _VECTORS:
        return _check_vector(value, size, where)
    if not isinstance(value, (list, tuple)):
        raise StateError(f"{where} is {type(value).__name__}: expected a list")
    for at, item in enumerate(value):
        if key in _HISTORIES:
            _check_vector(item, size, f"{where}[{at}]")
        elif item is not None or key == "ro":  # PyTorch fills "al" up with None.
            _check_number(item, f"{where}[{at}]")
    return None


def _check_vector(value: Any, size: int, where: str) -> None:
    _check_tensor(value, where)
    _check_dtype(value, where)
    if tuple(value.shape) != (size,):
        raise StateError(
            f"{where} has shape {tuple(value.shape)}: expected {(size,)}, one number for each of the parameters'"
        )


def _check_lengths(parts: Mapping[str, Any], history: Any, where: str) -> None:
    """Raises for more pairs than the ``history`` of the group, or fewer places for their factors."""
    if not isinstance(history, int):
        return
    if len(parts.get("ro", ())) > history:
        raise StateError(f"{where} has {len(parts['ro'])} pairs: expected at most {history}, its group's history_size")
    if "al" in parts and len(parts["al"]) < history:
        raise StateError(f"{where}['al'] has {len(parts['al'])} entries: expected {history}, its group's history_size")
