"""Gradients that are announced once each is final, and the step that stays open until all of them are used."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from oxigrad import xp
from oxigrad._core import StateError, Watched
from oxigrad.ops.core.aliasing import is_same_array
from oxigrad.step.parameters.parameter import Parameter

#: Gradients of at most so many bytes wait for others, until there are so many bytes, or parameters, or the backward
#: ends.
SMALL, BUCKET, MOST = 1 << 16, 1 << 20, 64
#: The state of parameters that are ahead of the others, in errors.
UNFINISHED = "in the backward of a step that is not finished"

# Items of dicts that a step assigns with its writes, so that no interrupt comes between: the dict, the key and the
# value.
Assignments = Sequence[tuple[Any, Any, Any]]


def named(paths: Sequence[str]) -> str:
    """Some names of parameters, and how many others there are."""
    others = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + others


def updated(paths: Sequence[str]) -> str:
    """The words that parameters were updated.

    >>> updated(["a", "b"]), updated([])
    ('a, b were updated', 'no parameter was updated')
    """
    return f"{named(paths) or 'no parameter'} {'were' if len(paths) > 1 else 'was'} updated"


class OpenStep:
    """A step that several dispatches apply, each to some of its parameters, before it is counted.

    A parameter has a number as its key. ``updated`` are the names of parameters that are ahead of the others;
    ``waiting`` are small gradients, each until others join its dispatch. ``remedy`` ends the errors of a reader.
    """

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self.updated: dict[int, str] = {}
        self.waiting: dict[int, Any] = {}
        #: The number of steps once this one is counted.
        self.number: int = 0
        self._bytes = 0

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that are updated, in the order of their updates."""
        return [*self.updated.values()]

    def begin(self, number: int) -> None:
        """Begins a step with this number; raises `StateError` while parameters are ahead."""
        if self.updated:
            self.check_none()
        self.waiting, self._bytes, self.number = {}, 0, number

    def check_none(self) -> None:
        """Raises `StateError` while parameters are ahead."""
        if self.updated:
            raise StateError(f"{updated(self.ahead)} {UNFINISHED}: expected {self._remedy}")

    def marks(self, names: Mapping[int, str]) -> Assignments:
        """The assignments by which parameters with these names, by key, are ahead.

        Their update makes them, so that no interrupt comes between.
        """
        return [*zip(itertools.repeat(self.updated), names.keys(), names.values())]

    def due(self, key: int, item: Any, size: int) -> list[Any]:
        """The items that are due now that a gradient of ``size`` bytes is final.

        A large one is due by itself, small ones when they are enough.
        """
        if size > SMALL:
            return [item]
        self.waiting[key] = item
        self._bytes += size
        return self.drain() if len(self.waiting) >= MOST or self._bytes >= BUCKET else []

    def drain(self) -> list[Any]:
        """The items, which no longer wait."""
        items, self.waiting, self._bytes = self.waiting, {}, 0
        return [*items.values()]

    def end(self) -> None:
        """Ends the step: no parameter is ahead of the others, and none waits."""
        self.updated.clear()
        self.waiting, self._bytes = {}, 0


class FinalGradients:
    """The final gradients of ``parameters`` that no update has read, by the positions of their leaves: ``held``.

    ``watched`` are the variables of the model, the argument of the loss. A parameter with several key paths has a
    gradient at each, and is complete with the last one of them.
    """

    def __init__(self, parameters: Sequence[Parameter], watched: Watched) -> None:
        structure = watched.structures[0]
        #: The position of each variable among the leaves of the model.
        self.leaves: Sequence[int] = [0] if structure is None else structure[1]
        #: The parameter of each leaf that is one.
        self.of_leaf: dict[int, Parameter] = {}
        for p in parameters:
            self.of_leaf |= dict.fromkeys(p.indices, p)
        self.held: dict[int, Any] = {}

    def add(self, p: Parameter, leaf: int, g: Any) -> bool:
        """Holds the gradient of a leaf of a parameter; whether the parameter is complete."""
        if not p.tied:
            self.held[leaf] = g
            return True
        self.held[leaf] = self._apart(p, g)
        return all(i in self.held for i in p.indices)

    def pop(self, p: Parameter) -> list[Any]:
        """The gradients of a parameter, by key path, which are no longer held."""
        return [self.held.pop(i) for i in p.indices]

    def _apart(self, p: Parameter, g: Any) -> Any:
        """The gradient; a copy where it is that of another key path too: an array that is given twice counts once."""
        others = [self.held[i] for i in p.indices if i in self.held]
        return xp.asarray(g, copy=True) if any(is_same_array(g, other) for other in others) else g
