"""The state of an optimizer whose slots are divided among workers: gathered to the state of one process, and cut from it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad._core import StateError
from oxigrad.distributed.data_parallel.division import Extent, Piece
from oxigrad.ops.backends import to_host
from oxigrad.stepping.arrays.quantized import Quantized
from oxigrad.stepping.parameters.presence import PRESENCE


def joined(
    states: Sequence[Mapping[str, Any]], extents: Mapping[str, Extent], waiting: Collection[str]
) -> dict[str, Any]:
    """The state of one process from those of all workers by rank, each with the slots of its pieces; no worker updates the ``waiting`` arrays."""
    parts: dict[str, list[Mapping[str, Any]]] = {path: [] for path in extents}
    for state in states:
        for path, named in state["slots"].items():
            parts.setdefault(path, []).append(named)
    slots = {path: _joined(of_workers, extents.get(path)) for path, of_workers in parts.items() if of_workers}
    remembered = dict(states[0]["remembered"])
    presences = [state["remembered"].get(PRESENCE, {}) for state in states]
    if presence := _together([*presences, {"without_slots": waiting}], slots):
        remembered[PRESENCE] = presence
    return {**states[0], "remembered": remembered, "slots": slots}


def _joined(parts: Sequence[Mapping[str, Any]], extent: Extent | None) -> dict[str, Any]:
    """The slots of one parameter from those of its pieces."""
    if len(parts) == 1 or extent is None:
        return dict(parts[0])
    return {name: _whole([part[name] for part in parts], extent.shape) for name in parts[0]}


def _whole(pieces: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if isinstance(pieces[0], Quantized):
        codes, scales = (np.concatenate([to_host(getattr(q, name)) for q in pieces]) for name in ("codes", "scales"))
        like = Quantized.zeros(shape, dtype=pieces[0].dtype)
        return like.with_arrays(codes.reshape(like.codes.shape), scales)
    if not pieces[0].shape:  # one number for the parameter, the same on all workers
        return pieces[0]
    return np.concatenate([to_host(piece) for piece in pieces]).reshape(shape)


def _together(presences: Sequence[Mapping[str, Any]], with_slots: Collection[str]) -> dict[str, Any]:
    """The presence of parameters in a state, from the states of all workers."""
    missed = {path: number for each in presences for path, number in each.get("missed_steps", {}).items()}
    lists = {
        name: sorted({path for each in presences for path in each.get(name, ())})
        for name in ("kept", "without_gradient", "without_slots")
    }
    lists["without_slots"] = [path for path in lists["without_slots"] if path not in with_slots]
    return {name: value for name, value in {"missed_steps": missed, **lists}.items() if value}


def cut(state: Mapping[str, Any], pieces: Sequence[Piece], extents: Mapping[str, Extent]) -> dict[str, Any]:
    """The state of one process as far as it is that of the ``pieces`` of a worker; all of what belongs to no parameter.

    Raises `StateError` for a slot that has not the shape of its parameter.
    """
    pieces_by_path = {piece.path: piece for piece in pieces}
    slots: dict[str, dict[str, Any]] = {}
    for path, named in state["slots"].items():
        if path not in extents:
            slots[path] = dict(named)
        elif path in pieces_by_path:
            slots[path] = dict(_pieces(named, pieces_by_path[path], extents[path]))
    presence = dict(state["remembered"].get(PRESENCE, {}))
    if "missed_steps" in presence:
        presence["missed_steps"] = {path: n for path, n in presence["missed_steps"].items() if path in slots}
    rest = {name: value for name, value in state["remembered"].items() if name != PRESENCE}
    return {**state, "remembered": {**rest, **({PRESENCE: presence} if presence else {})}, "slots": slots}


def _pieces(named: Mapping[str, Any], piece: Piece, extent: Extent) -> Iterator[tuple[str, Any]]:
    for name, slot in named.items():
        shape = tuple(slot.shape)
        if piece.is_whole or not shape:
            yield name, slot
        elif shape != extent.shape:
            raise StateError(f"{piece.path}: slot {name} has shape {shape}: expected {extent.shape}")
        elif isinstance(slot, Quantized):
            on_host = slot.with_arrays(to_host(slot.codes), to_host(slot.scales))
            yield name, on_host.within(piece.start, piece.stop)
        else:
            yield name, piece.of(np.asarray(to_host(slot)))
