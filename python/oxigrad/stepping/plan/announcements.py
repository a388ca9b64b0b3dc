"""Steps in parts: gradients that are announced once each is final, and the parameters that they complete."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Generic, TypeVar

from oxigrad import xp
from oxigrad._core import StateError, Watched
from oxigrad.ops.backends import is_array
from oxigrad.ops.core.aliasing import is_same_array
from oxigrad.stepping.parameters.parameter import Parameter

#: Gradients of at most so many bytes wait for others, until there are so many bytes, or parameters, or the backward
#: ends.
SMALL, BUCKET, MOST = 1 << 16, 1 << 20, 64
#: The state of parameters that are ahead of the others, in errors.
UNFINISHED = "was updated in the backward of a step that is not finished"

Part = TypeVar("Part")
# Items of dicts that a step assigns with its writes, so that no interrupt comes between: the dict, the key and the
# value.
Assignments = Sequence[tuple[Any, Any, Any]]


def named(paths: Sequence[str]) -> str:
    """Some names of parameters, and how many others there are."""
    others = f" and {len(paths) - 3} others" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + others


def watched_leaves(watched: Watched) -> Sequence[int]:
    """The positions, among the leaves of a model that is the argument of a loss, of those that have derivatives."""
    structure = watched.structures[0]
    return [0] if structure is None else structure[1]


class StepInParts(Generic[Part]):
    """A step whose parameters are updated in parts: ``updated``, the names of those that are ahead, by key.

    Each parameter has a number as its key. A part is what updates some of them in one dispatch, and is used in later
    steps too. ``remedy`` is what errors expect, in place of what may not be done meanwhile.
    """

    def __init__(self, remedy: str) -> None:
        self._remedy = remedy
        self.updated: dict[int, str] = {}
        self._whole: Any = None
        self._parts: dict[tuple[int, ...], Part] = {}

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that are updated, in the order of their updates."""
        return [*self.updated.values()]

    def check_none(self) -> None:
        """Raises `StateError` while parameters are ahead."""
        if self.updated:
            raise StateError(f"{named(self.ahead)} {UNFINISHED}: expected {self._remedy}")

    def part(self, whole: Any, count: int, keys: tuple[int, ...], make: Callable[[], Part]) -> Part:
        """The part for some of the ``count`` parameters of the step ``whole``: one of before, or one to ``make``."""
        if self._whole is not whole or len(self._parts) > 2 * count:
            self.forget()
            self._whole = whole
        if keys not in self._parts:
            self._parts[keys] = make()
        return self._parts[keys]

    def forget(self) -> None:
        """Drops all parts, which hold arrays."""
        self._whole = None
        self._parts.clear()

    def marks(self, names: Mapping[int, str]) -> Assignments:
        """The assignments by which parameters with these names, by key, are ahead.

        Their update makes them, so that no interrupt comes between.
        """
        return [(self.updated, key, name) for key, name in names.items()]

    def end(self) -> None:
        """Ends the step: no parameter is ahead of the others."""
        self.updated.clear()


class Pending:
    """Small gradients that wait for others, by a key each: ``items``."""

    def __init__(self) -> None:
        self.items: dict[int, Any] = {}
        self._bytes = 0

    def due(self, key: int, item: Any, size: int) -> list[Any]:
        """The items that are due now that a gradient of ``size`` bytes is final.

        A large one is due by itself, small ones when they are enough.
        """
        if size > SMALL:
            return [item]
        self.items[key] = item
        self._bytes += size
        return self.drain() if len(self.items) >= MOST or self._bytes >= BUCKET else []

    def drain(self) -> list[Any]:
        """The items, which no longer wait."""
        items, self.items, self._bytes = self.items, {}, 0
        return [*items.values()]


class CompleteGradients:
    """The announced gradients of ``parameters``, by the positions of their leaves in the model: ``held``.

    A parameter with several key paths has a gradient at each, and is complete with the last one of them.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._of_leaf = {i: p for p in parameters for i in p.indices}
        self.held: dict[int, Any] = {}

    def parameter(self, leaf: int) -> Parameter | None:
        """The parameter of a leaf; None for a leaf of none."""
        return self._of_leaf.get(leaf)

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


class Announcements(CompleteGradients):
    """The announced gradients of parameters that are updated when complete; ``held`` has those not updated yet.

    Those ``excluded`` are not taken: their leaves, and leaves that are no arrays, get their gradients when the backward
    has ended.
    """

    def __init__(self, parameters: Sequence[Parameter], leaves: Sequence[Any], excluded: Container[str]) -> None:
        super().__init__(parameters)
        self._arrays = [is_array(leaf) for leaf in leaves]
        self._excluded = excluded
        self._pending = Pending()

    def announce(self, leaf: int, g: Any) -> tuple[bool, list[Parameter]]:
        """Whether the gradient of a leaf is taken, and the parameters that are to be updated now."""
        p = self.parameter(leaf)
        if p is None or p.text in self._excluded:
            return p is None and self._arrays[leaf], []  # that of a frozen parameter is dropped
        if not self.add(p, leaf, g):
            return True, []
        held = [self.held[i] for i in p.indices] if p.tied else [g]
        return True, self._pending.due(p.position, p, sum([getattr(each, "nbytes", 0) for each in held]))

    def taken(self, parameters: Sequence[Parameter], count: int) -> list[Any]:
        """The gradients of these parameters among ``count`` leaves; they are no longer held."""
        gradients = [None] * count
        for p in parameters:
            for i, g in zip(p.indices, self.pop(p), strict=True):
                gradients[i] = g
        return gradients
