"""The state of model averaging: what is due, and the outer optimizers of the fragments."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oxigrad.distributed.decisions.averaging import Averaging, Merge, Send, strided
from oxigrad.distributed.fields import Arrays, Field, Plain, array_by_path, arrays
from oxigrad.distributed.methods.collective import CollectiveWrapper
from oxigrad.optim import Optimizer
from oxigrad.tree import parameters

_ANCHOR, _SENT, _OUTER = "average-anchor", "average-sent", "outer-"

_KINDS: dict[str, type[Send | Merge]] = {"send": Send, "merge": Merge}


class AverageState(CollectiveWrapper):
    """Base class of model averaging: its state, as a file has it.

    A subclass makes the attributes, and says what the outer optimizer is (`_outer_optimizer`).
    """

    fragments: int
    _machine: Averaging
    _pending: list[Send | Merge]
    _anchors: dict[str, np.ndarray]
    _sent: dict[str, np.ndarray]
    _outer: list[Optimizer]

    def _outer_optimizer(self) -> Optimizer | None:
        """The outer optimizer, by which the anchors are updated; None where there are no anchors."""
        raise NotImplementedError

    def _write_schedule(self, machine: Averaging) -> tuple[Plain, Arrays]:
        return {"step": machine.step, "sent": [[fragment, step] for fragment, step in sorted(machine.sent.items())]}, {}

    def _read_schedule(self, plain: Plain, arrays: Arrays) -> Averaging:
        return self._machine.resumed(int(plain["step"]), {int(fragment): int(step) for fragment, step in plain["sent"]})

    def _write_actions(self, actions: Iterable[Send | Merge]) -> tuple[Plain, Arrays]:
        return {"pending": [["send" if isinstance(each, Send) else "merge", each.fragment] for each in actions]}, {}

    def _read_actions(self, plain: Plain, arrays: Arrays) -> list[Send | Merge]:
        return [_KINDS[kind](int(fragment)) for kind, fragment in plain["pending"]]

    def _write_outer(self, optimizers: Iterable[Any]) -> tuple[Plain, Arrays]:
        states, arrays, names = [], {}, self._stored_names()
        for fragment, outer in enumerate(optimizers):
            state, slots = outer.state_dict(copy=False), outer.slots
            states.append({name: value for name, value in state.items() if name not in ("slots", "config")})
            for path, text in _texts(self._anchors, fragment, self.fragments).items():
                if text in slots:
                    arrays[path] = {stored: slots[text][name] for stored, name in names.items() if name in slots[text]}
        return {"outer": states}, arrays

    def _read_outer(self, plain: Plain, arrays: Arrays) -> list[Optimizer]:
        states = plain["outer"]
        if len(states) != len(self._outer):
            raise ValueError(f"it has {len(states)} outer optimizers, expected {len(self._outer)}")
        names, anchors, optimizers = self._stored_names(), array_by_path(arrays, _ANCHOR), []
        for fragment, state in enumerate(states):
            slots = {
                text: {name: arrays[path][stored] for stored, name in names.items() if stored in arrays[path]}
                for path, text in _texts(anchors, fragment, len(states)).items()
            }
            outer: Any = copy.deepcopy(self._outer_optimizer())
            outer.load_state_dict({**state, "config": None, "slots": slots if state["step"] else {}})
            optimizers.append(outer)
        return optimizers

    def _stored_names(self) -> dict[str, str]:
        """The names that the slots of the outer optimizer have in a state, and those of their own."""
        if not self._outer:
            return {}
        names = self._outer[0].init({"p": np.zeros(1)})["slots"]["p"]
        return {_OUTER + name.replace(".", "-"): name for name in names}

    _fields = (
        Field("_machine", _write_schedule, _read_schedule),
        Field("_pending", _write_actions, _read_actions),
        arrays("_anchors", _ANCHOR),
        arrays("_sent", _SENT),
        Field("_outer", _write_outer, _read_outer, _stored_names),
    )


def _texts(anchors: Mapping[str, Any], fragment: int, fragments: int) -> dict[str, str]:
    """The key paths of a fragment in the model, and in the dict of anchors that its outer optimizer updates."""
    paths = strided(anchors, fragment, fragments)
    return dict(zip(paths, map(str, parameters({path: anchors[path] for path in paths})), strict=True))
