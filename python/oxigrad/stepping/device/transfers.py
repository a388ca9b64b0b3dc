"""The schedule of steps on the host for parameters on a device: which copy or update may begin after which event.

It is a state machine that touches no array and no device. Gradients are copied down in pieces, each into a place of a ring; the piece is
updated there, and its weights are copied up from there. The place is then free for another piece.
"""

import dataclasses
import enum
from collections import deque
from typing import Literal

Kind = Literal["down", "measure", "update", "up"]


class Stage(enum.IntEnum):
    """The stage of a piece; in those with the name of an action, the action is in flight."""

    FINAL = 0
    DOWN = 1
    LANDED = 2
    MEASURE = 3
    MEASURED = 4
    UPDATE = 5
    UPDATED = 6
    UP = 7
    DONE = 8


# The stages before, during and after each kind of action.
_STAGES: dict[Kind, tuple[Stage, Stage, Stage]] = {
    "down": (Stage.FINAL, Stage.DOWN, Stage.LANDED),
    "measure": (Stage.LANDED, Stage.MEASURE, Stage.MEASURED),
    "update": (Stage.MEASURED, Stage.UPDATE, Stage.UPDATED),
    "up": (Stage.UPDATED, Stage.UP, Stage.DONE),
}


@dataclasses.dataclass(frozen=True)
class Action:
    """A copy ``down`` or ``up``, or a ``measure`` or ``update`` by the host, of the piece with this number in this place of the ring."""

    kind: Kind
    piece: int
    place: int


class Schedule:
    """The order of the copies and updates of one step.

    `add` is the event that the gradient of a piece is final on the device; `finish` and `fail` are the ends of actions, in any order.
    `begin` gives the actions that may begin now:

    * a copy down once a place of the ring is free: the copy up from it is done, and no other piece is in it;
    * a measure once the copy down is done, for steps that scale gradients by their norm;
    * an update once the copy down is done, one at a time; with ``measures``, once `close` was called and all pieces are measured;
    * a copy up once the update is done; with ``holds``, once `release` was called as well.

    Copies in each direction, measures and updates begin in the order in which their pieces became ready. After a failure no action begins
    until `resume`; the action that failed is then begun again.

    Args:
        places: the number of places of the ring; None for a place for each piece, which ``measures`` and ``holds`` need.
        measures: whether all gradients are measured before the first update.
        holds: whether copies up wait for `release`.

    >>> schedule = Schedule(places=1)
    >>> schedule.add(), schedule.add()
    (0, 1)
    >>> (down,) = schedule.begin()
    >>> schedule.finish(down)
    >>> schedule.begin()
    [Action(kind='update', piece=0, place=0)]
    """

    def __init__(self, places: int | None, *, measures: bool = False, holds: bool = False) -> None:
        if places is not None and (places < 1 or measures or holds):
            raise ValueError(
                f"places is {places}: expected at least 1, and None with measures or holds, which keep all pieces at once"
            )
        self.measures: bool = measures
        self._is_released = not holds
        self.is_closed: bool = False
        self.is_halted: bool = False
        self._stages: list[Stage] = []
        self._places: list[int] = []  # -1 before a place was taken
        self._free: list[int] | None = None if places is None else [*range(places)]
        self._ready: dict[Kind, deque[int]] = {kind: deque() for kind in _STAGES}
        self._are_updating = 0
        self._measured = 0

    # --- events --------------------------------------------------------------------------------------------------------

    def add(self) -> int:
        """The number of a further piece, whose gradient is final on the device. Raises `RuntimeError` after `close`."""
        if self.is_closed:
            raise RuntimeError("a gradient is final after the last one")
        self._stages.append(Stage.FINAL)
        self._places.append(-1)
        self._ready["down"].append(len(self._stages) - 1)
        return len(self._stages) - 1

    def close(self) -> None:
        """Tells that there are no further pieces."""
        self.is_closed = True

    def release(self) -> None:
        """Lets copies up begin."""
        self._is_released = True

    def finish(self, action: Action) -> None:
        """Tells that an action that was begun is done."""
        _, _, after = self._ended(action)
        self._stages[action.piece] = after
        if after is Stage.LANDED:
            self._landed(action.piece)
        elif after is Stage.MEASURED:
            self._measured += 1
            self._ready["update"].append(action.piece)
        elif after is Stage.UPDATED:
            self._ready["up"].append(action.piece)
        elif self._free is not None:
            self._free.append(action.place)

    def _landed(self, piece: int) -> None:
        if self.measures:
            self._ready["measure"].append(piece)
        else:
            self._stages[piece] = Stage.MEASURED
            self._ready["update"].append(piece)

    def fail(self, action: Action) -> None:
        """Tells that an action that was begun has changed nothing. No other action begins until `resume`."""
        before, _, _ = self._ended(action)
        self._stages[action.piece] = before
        self._ready[action.kind].appendleft(action.piece)
        if action.kind == "down" and self._free is not None:
            self._free.append(action.place)
        self.is_halted = True

    def _ended(self, action: Action) -> tuple[Stage, Stage, Stage]:
        stages = _STAGES[action.kind]
        if self._stages[action.piece] is not stages[1] or self._places[action.piece] != action.place:
            raise RuntimeError(f"{action} is not in flight")
        self._are_updating -= action.kind == "update"
        return stages

    def resume(self) -> None:
        """Lets actions begin again after a failure."""
        self.is_halted = False

    # --- actions -------------------------------------------------------------------------------------------------------

    def begin(self) -> list[Action]:
        """The actions that begin now; each is in flight until `finish` or `fail`."""
        if self.is_halted:
            return []
        actions = []
        while self._ready["up"] and self._is_released:
            actions.append(self._begun("up"))
        while self._ready["down"] and (self._free is None or self._free):
            actions.append(self._begun("down"))
        while self._ready["measure"]:
            actions.append(self._begun("measure"))
        if self._ready["update"] and not self._are_updating and self._may_update:
            self._are_updating += 1
            actions.append(self._begun("update"))
        return actions

    def _begun(self, kind: Kind) -> Action:
        piece = self._ready[kind].popleft()
        if kind == "down":
            self._places[piece] = piece if self._free is None else self._free.pop(0)
        self._stages[piece] = _STAGES[kind][1]
        return Action(kind, piece, self._places[piece])

    @property
    def _may_update(self) -> bool:
        return not self.measures or (self.is_closed and self._measured == len(self._stages))

    # --- what has happened -----------------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """Whether all pieces are done, and there are no further ones."""
        return self.is_closed and all(stage is Stage.DONE for stage in self._stages)

    @property
    def is_updated(self) -> bool:
        """Whether all pieces are updated, and there are no further ones."""
        return self.is_closed and all(stage >= Stage.UPDATED for stage in self._stages)

    def stage(self, piece: int) -> Stage:
        """The stage of a piece."""
        return self._stages[piece]

    @property
    def ahead(self) -> list[int]:
        """The pieces that are updated, or may be: an update of theirs has begun and not failed."""
        return [piece for piece, stage in enumerate(self._stages) if stage >= Stage.UPDATE]

    @property
    def in_use(self) -> int:
        """The number of places that have a piece."""
        return sum(Stage.DOWN <= stage < Stage.DONE for stage in self._stages)
