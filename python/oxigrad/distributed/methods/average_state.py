"""The fields of the state of model averaging: what is due, and the outer optimizers of the fragments."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oxigrad.distributed.decisions.averaging import Averaging, Merge, Send, strided
from oxigrad.distributed.fields import Arrays, Field, Plain, array_by_path
from oxigrad.optim import Optimizer
from oxigrad.tree import parameters

ANCHOR, SENT, _OUTER = "average-anchor", "average-sent", "outer-"

_KINDS: dict[str, type[Send | Merge]] = {"send": Send, "merge": Merge}


def _write_schedule(wrapper: Any, machine: Averaging) -> tuple[Plain, Arrays]:
    return {"step": machine.step, "sent": [[fragment, step] for fragment, step in sorted(machine.sent.items())]}, {}


def _read_schedule(wrapper: Any, plain: Plain, arrays: Arrays) -> Averaging:
    return wrapper._machine.resumed(int(plain["step"]), {int(fragment): int(step) for fragment, step in plain["sent"]})


def _write_actions(wrapper: Any, actions: Iterable[Send | Merge]) -> tuple[Plain, Arrays]:
    return {"pending": [["send" if isinstance(each, Send) else "merge", each.fragment] for each in actions]}, {}


def _read_actions(wrapper: Any, plain: Plain, arrays: Arrays) -> list[Send | Merge]:
    return [_KINDS[kind](int(fragment)) for kind, fragment in plain["pending"]]


def _write_outer(wrapper: Any, optimizers: Iterable[Any]) -> tuple[Plain, Arrays]:
    states, arrays, names = [], {}, _stored_names(wrapper)
    for fragment, outer in enumerate(optimizers):
        state, slots = outer.state_dict(copy=False), outer.slots
        states.append({name: value for name, value in state.items() if name not in ("slots", "config")})
        for path, text in _texts(wrapper._anchors, fragment, wrapper.fragments).items():
            if text in slots:
                arrays[path] = {names[name]: slot for name, slot in slots[text].items()}
    return {"outer": states}, arrays


def _read_outer(wrapper: Any, plain: Plain, arrays: Arrays) -> list[Optimizer]:
    states = plain["outer"]
    if len(states) != len(wrapper._outer):
        raise ValueError(f"it has {len(states)} outer optimizers, expected {len(wrapper._outer)}")
    names, anchors, optimizers = _stored_names(wrapper), array_by_path(arrays, ANCHOR), []
    for fragment, state in enumerate(states):
        slots = {
            text: {name: arrays[path][stored] for name, stored in names.items() if stored in arrays[path]}
            for path, text in _texts(anchors, fragment, len(states)).items()
        }
        outer = copy.deepcopy(wrapper._outer_optimizer())
        outer.load_state_dict({**state, "config": None, "slots": slots if state["step"] else {}})
        optimizers.append(outer)
    return optimizers


def _texts(anchors: Mapping[str, Any], fragment: int, fragments: int) -> dict[str, str]:
    """The key paths of a fragment in the model, and in the dict of anchors that its outer optimizer updates."""
    paths = strided(anchors, fragment, fragments)
    return dict(zip(paths, map(str, parameters({path: anchors[path] for path in paths})), strict=True))


def _stored_names(wrapper: Any) -> dict[str, str]:
    """The names of the slots of the outer optimizer, and those that they have in a state."""
    if not wrapper._outer:
        return {}
    names = wrapper._outer[0].init({"p": np.zeros(1)})["slots"]["p"]
    return {name: _OUTER + name.replace(".", "-") for name in names}


SCHEDULE = Field("_machine", _write_schedule, _read_schedule)
ACTIONS = Field("_pending", _write_actions, _read_actions)
OUTER_OPTIMIZERS = Field("_outer", _write_outer, _read_outer, lambda wrapper: _stored_names(wrapper).values())
