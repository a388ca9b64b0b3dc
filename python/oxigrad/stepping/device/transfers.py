"""The schedule of steps on the host for parameters on a device: which copy or update may begin after which event.

It is a state machine that touches no array and no device. Gradients are copied down in pieces, each into a place of a
ring; the piece is updated there, and its weights are copied up from there. The place is then free for another piece.
"""

import dataclasses
from collections import deque
from typing import Literal

Kind = Literal["down", "measure", "update", "up"]
# The order in which actions that may begin at the same time do.
_ORDER: tuple[Kind, ...] = ("up", "down", "measure", "update")


@dataclasses.dataclass(frozen=True)
class Action:
    """A copy ``down`` or ``up``, a ``measure`` or an ``update`` of the numbered piece, in a place of the ring."""

    kind: Kind
    piece: int
    place: int


class Schedule:
    """The order of the copies and updates of one step.

    `add` is the event that the gradient of a piece is final on the device; `finish` and `fail` are the ends of actions,
    in any order. `begin` gives the actions that may begin now:

    * a copy down once a place of the ring is free: the copy up from it is done, and no other piece is in it;
    * a measure once the copy down is done, for steps that scale gradients by their norm;
    * an update once the copy down is done, one at a time; with ``measures``, once `close` was called and all pieces are
      measured;
    * a copy up once the update is done; with ``holds``, once `release` was called as well.

    Copies in each direction, measures and updates begin in the order in which their pieces became ready. After a
    failure no action begins until `resume`; the action that failed is then begun again.

    Args:
        places: the number of places of the ring; None for a place for each piece, which ``measures`` and ``holds``
            need.
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
                f"places is {places}: expected at least 1, and None with measures or holds, which keep all pieces at "
                "once"
            )
        self.measures: bool = measures
        self.is_closed: bool = False
        self.is_halted: bool = False
        self._is_released = not holds
        #: The actions of a piece in their order, and for each piece how many are done, the one in flight, and its
        #: place.
        self._kinds: tuple[Kind, ...] = ("down", "measure", "update", "up") if measures else ("down", "update", "up")
        self._done: list[int] = []
        self._flying: dict[int, Action] = {}
        self._places: dict[int, int] = {}
        self._free: list[int] | None = None if places is None else [*range(places)]
        self._ready: dict[Kind, deque[int]] = {kind: deque() for kind in _ORDER}

    # --- events -------------------------------------------------------------------------------------------------------

    def add(self) -> int:
        """The number of a further piece, whose gradient is final on the device. Raises `RuntimeError` after `close`."""
        if self.is_closed:
            raise RuntimeError("a gradient is final after the last one")
        self._done.append(0)
        self._ready["down"].append(len(self._done) - 1)
        return len(self._done) - 1

    def close(self) -> None:
        """Tells that there are no further pieces."""
        self.is_closed = True

    def release(self) -> None:
        """Lets copies up begin."""
        self._is_released = True

    def finish(self, action: Action) -> None:
        """Tells that an action that was begun is done."""
        self._end(action)
        self._done[action.piece] += 1
        if action.kind != "up":
            self._ready[self._kinds[self._done[action.piece]]].append(action.piece)
        elif self._free is not None:
            self._free.append(action.place)

    def fail(self, action: Action) -> None:
        """Tells that an action that was begun has changed nothing. No other action begins until `resume`."""
        self._end(action)
        self._ready[action.kind].appendleft(action.piece)
        if action.kind == "down" and self._free is not None:
            self._free.append(action.place)
        self.is_halted = True

    def _end(self, action: Action) -> None:
        if self._flying.get(action.piece) != action:
            raise RuntimeError(f"{action} is not in flight")
        del self._flying[action.piece]

    def resume(self) -> None:
        """Lets actions begin again after a failure."""
        self.is_halted = False

    # --- actions ------------------------------------------------------------------------------------------------------

    def begin(self) -> list[Action]:
        """The actions that begin now; each is in flight until `finish` or `fail`."""
        actions: list[Action] = []
        if not self.is_halted:
            for kind in _ORDER:
                while self._ready[kind] and self._may_begin(kind):
                    actions.append(self._begun(kind))
        return actions

    def _may_begin(self, kind: Kind) -> bool:
        """Whether the next piece that is ready for an action may have it."""
        if kind == "up":
            return self._is_released
        if kind == "down":
            return self._free is None or bool(self._free)
        if kind == "measure":
            return True
        flying = {action.kind for action in self._flying.values()}
        is_measured = self.is_closed and not (
            flying & {"down", "measure"} or self._ready["down"] or self._ready["measure"]
        )
        return "update" not in flying and (is_measured or not self.measures)

    def _begun(self, kind: Kind) -> Action:
        piece = self._ready[kind].popleft()
        if kind == "down":
            self._places[piece] = piece if self._free is None else self._free.pop(0)
        action = self._flying[piece] = Action(kind, piece, self._places[piece])
        return action

    # --- what has happened --------------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """Whether all pieces are done, and there are no further ones."""
        return self.is_closed and all(done == len(self._kinds) for done in self._done)

    @property
    def ahead(self) -> list[int]:
        """The pieces that are updated, or may be: an update of theirs has begun and not failed."""
        before = self._kinds.index("update")
        updating = [action.piece for action in self._flying.values() if action.kind == "update"]
        return [piece for piece, done in enumerate(self._done) if done > before or piece in updating]
