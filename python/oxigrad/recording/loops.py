"""Loops of recordings in files: the entries of a loop are stated once, with what differs between its repetitions.

Entries are JSON. In a loop an integer that is more by the same step in each repetition is ``{"steps": [first, step]}``, and what differs otherwise
is ``{"each": [...]}``, a value for each repetition.
"""

from typing import Any

# An item of the list of entries: this, the number of repetitions, and the entries of one.
LOOP = "loop"


def rolled(stated: list[Any], loops: list[tuple[int, int, int]]) -> list[Any]:
    """The entries with each loop as one item; `Replay.loops` has the first entry of each, its length and the number of repetitions."""
    items, before = [], 0
    for start, period, count in loops:
        end = start + period * count
        body = [_merged(stated[at:end:period]) for at in range(start, start + period)]
        items += [*stated[before:start], [LOOP, count, body]]
        before = end
    return items + stated[before:]


def unrolled(items: list[Any], most: int) -> list[Any]:
    """The entries with each repetition stated; raises `ValueError` for a loop that is none, and for more entries than ``most``."""
    stated = []
    for item in items:
        if item[0] != LOOP:
            stated.append(item)
            continue
        _, count, body = item
        if type(count) is not int or count < 1 or not isinstance(body, list):
            raise ValueError(f"found a loop of {count!r} repetitions")
        if len(stated) + count * len(body) > most:
            raise ValueError(f"found more than {most} entries")
        stated += [_repetition(entry, at, count) for at in range(count) for entry in body]
    return stated


def _merged(each: list[Any]) -> Any:
    """The values of all repetitions as one."""
    first = each[0]
    if all(type(value) is type(first) and value == first for value in each):
        return first
    if all(type(value) is int for value in each):
        step = each[1] - first
        if all(value == first + at * step for at, value in enumerate(each)):
            return {"steps": [first, step]}
    if all(isinstance(value, list) and len(value) == len(first) for value in each):
        return [_merged(list(parts)) for parts in zip(*each, strict=True)]
    if all(isinstance(value, dict) and value.keys() == first.keys() for value in each):
        return {key: _merged([value[key] for value in each]) for key in first}
    return {"each": each}


def _repetition(stated: Any, at: int, count: int) -> Any:
    """The value in one repetition."""
    if isinstance(stated, list):
        return [_repetition(part, at, count) for part in stated]
    if not isinstance(stated, dict):
        return stated
    if stated.keys() == {"steps"}:
        first, step = stated["steps"]
        if type(first) is not int or type(step) is not int:
            raise ValueError(f"found the steps {first!r}, {step!r}, expected integers")
        return first + at * step
    if stated.keys() == {"each"}:
        if len(stated["each"]) != count:
            raise ValueError(f"found {len(stated['each'])} values, expected one for each of {count} repetitions")
        return stated["each"][at]
    return {key: _repetition(part, at, count) for key, part in stated.items()}
