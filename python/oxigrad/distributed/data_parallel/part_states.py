"""The state of an optimizer whose slots are divided among workers: gathered into one state, and cut from it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad import StateError
from oxigrad.distributed.data_parallel.division import Extent
from oxigrad.extend import Slice, to_host
from oxigrad.optim import Quantized

# The key of the parameters that were not updated in each step, among what a state remembers.
PRESENCE = "presence"


def joined(
    states: Sequence[Mapping[str, Any]],
    slices: Sequence[Sequence[Slice]],
    extents: Mapping[str, Extent],
    waiting: Collection[str],
) -> dict[str, Any]:
    """The state of one process from those of all workers by rank, who have these slices.

    No worker updates the ``waiting`` arrays.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {path: [] for path in extents}
    for state, of_worker in zip(states, slices, strict=True):
        for each in of_worker:
            parts[each.path] += [state["slots"][each.path]] if each.path in state["slots"] else []
    slots = {path: _joined(of_workers, extents[path]) for path, of_workers in parts.items() if of_workers}
    slots |= {path: dict(named) for path, named in states[0]["slots"].items() if path not in extents}
    presence = dict(states[0]["remembered"].get(PRESENCE, {}))
    presence["without_slots"] = sorted({*presence.get("without_slots", ()), *waiting} - slots.keys())
    presence = {name: value for name, value in presence.items() if value}
    rest = {name: value for name, value in states[0]["remembered"].items() if name != PRESENCE}
    return {**states[0], "remembered": {**rest, **({PRESENCE: presence} if presence else {})}, "slots": slots}


def _joined(parts: Sequence[Mapping[str, Any]], extent: Extent) -> dict[str, Any]:
    """The slots of one parameter from those of its slices."""
    if len(parts) == 1:
        return dict(parts[0])
    return {name: _whole([part[name] for part in parts], extent.shape) for name in parts[0]}


def _whole(parts: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if isinstance(parts[0], Quantized):
        codes, scales = (np.concatenate([to_host(getattr(q, name)) for q in parts]) for name in ("codes", "scales"))
        like = Quantized.zeros(shape, dtype=parts[0].dtype)
        return like.with_arrays(codes.reshape(like.codes.shape), scales)
    if not parts[0].shape:  # one number for the parameter, the same on all workers
        return parts[0]
    return np.concatenate([to_host(part) for part in parts]).reshape(shape)


def cut(state: Mapping[str, Any], slices: Mapping[str, Slice]) -> dict[str, Any]:
    """The state of one process with the slots of a worker's slices, by key path. Their leaves are `Extent`.

    Raises `StateError` for a slot that has not the shape of its parameter.
    """
    slots = {
        path: dict(_parts(named, slices[path]) if path in slices else named) for path, named in state["slots"].items()
    }
    return {**state, "slots": slots}


def _parts(named: Mapping[str, Any], part: Slice) -> Iterator[tuple[str, Any]]:
    extent: Extent = part.leaf
    if part.is_whole or (extent.is_called and part.count):
        yield from named.items()
        return
    for name, slot in named.items():
        shape = tuple(slot.shape)
        if name in extent.numbers:
            yield name, np.array(to_host(slot), np.float64) if extent.is_called else slot
        elif extent.is_called:
            continue
        elif shape != extent.shape and part.count:
            raise StateError(f"{part.path}: slot {name} has shape {shape}: expected {extent.shape}")
        elif isinstance(slot, Quantized):
            on_host = slot.with_arrays(to_host(slot.codes), to_host(slot.scales))
            yield name, on_host.within(part.first, part.stop)
        else:
            yield name, np.asarray(to_host(slot)).reshape(-1)[part.first : part.stop]
