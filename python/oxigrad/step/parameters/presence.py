"""The steps that parameters took part in: those that were frozen, had no gradient, or were added later, missed some.

The number of the step that a rule reads, as in Adam's bias correction, counts the steps that updated the parameter, as
in PyTorch. Schedules and random numbers read the number of the optimizer's step.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from oxigrad import xp
from oxigrad._core import StateError, Structure

#: The key of the presence of parameters in what a state remembers.
PRESENCE = "presence"


@dataclasses.dataclass
class Changes:
    """The differences between the parameters of a model and those that an optimizer had slots for, as key paths.

    Slots were begun for ``added`` ones, and anew for those that were ``reset``, which have another shape than before.
    ``frozen`` ones keep their slots, and those that are ``unfrozen`` continue with them. Of those that the model lacks,
    slots are ``kept`` or ``removed``.
    """

    added: list[str] = dataclasses.field(default_factory=list)
    unfrozen: list[str] = dataclasses.field(default_factory=list)
    frozen: list[str] = dataclasses.field(default_factory=list)
    reset: list[str] = dataclasses.field(default_factory=list)
    kept: list[str] = dataclasses.field(default_factory=list)
    removed: list[str] = dataclasses.field(default_factory=list)

    def __bool__(self) -> bool:
        return any(vars(self).values())


class ParticipationLog:
    """The number of steps that each parameter ``missed``, by key path, and what is known of absent parameters.

    ``were_inactive`` are those that were not updated by an earlier plan, and may have no slots yet; ``kept`` are those
    that left the model while their slots remain; ``without`` are those without a gradient since the last step, while
    gradients are accumulated. ``waiting`` are the arrays among those that were inactive: a state lists the ones without
    slots, which may begin after it is loaded.
    """

    def __init__(self) -> None:
        self.missed: dict[str, int] = {}
        self.were_inactive: set[str] = set()
        self.waiting: set[str] = set()
        self.orphans: set[str] = set()
        self.without: set[str] = set()
        # The parameters with slots that the present plan does not update, and the count of steps up to which they are
        # in `missed`.
        self._absent: set[str] = set()
        self._since = 0

    @property
    def is_counting(self) -> bool:
        """Whether steps are being missed."""
        return bool(self._absent)

    def settle(self, count: int) -> None:
        """Counts the steps that were missed until now, after ``count`` steps."""
        if further := count - self._since:
            self.missed |= {path: self.missed.get(path, 0) + further for path in self._absent}
        self._since = count

    def missed_by(self, path: str, *, with_slots: Collection[str], count: int) -> int:
        """The number of ``count`` steps that a parameter missed; one that is not ``with_slots`` missed all."""
        return self.missed.get(path, 0) if path in with_slots else count

    def begin_anew(self, paths: Iterable[str], count: int) -> None:
        """Notes parameters whose slots are new after ``count`` steps."""
        self.missed |= dict.fromkeys(paths, count)

    def enter(
        self,
        missed: Mapping[str, int],
        inactive: Iterable[str],
        with_slots: Collection[str],
        count: int,
        *,
        waiting: Iterable[str] = (),
    ) -> None:
        """Begins a plan for parameters that ``missed`` steps; others ``with_slots`` miss further ones."""
        self.missed = {path: number for path, number in {**self.missed, **missed}.items() if number}
        self.were_inactive |= set(inactive)
        self.waiting |= set(waiting)
        self.orphans -= missed.keys()
        self._absent, self._since = {path for path in with_slots if path not in missed}, count

    @property
    def inactive(self) -> set[str]:
        """The parameters with slots that the last plan did not update."""
        return self._absent | self.missed.keys()

    def drop(self, paths: Iterable[str]) -> None:
        """Forgets parameters."""
        dropped = {*paths}
        self.missed = {path: number for path, number in self.missed.items() if path not in dropped}
        for noted in (self._absent, self.without, self.orphans, self.waiting):
            noted.difference_update(dropped)

    def state(self, count: int, with_slots: Collection[str]) -> dict[str, Any]:
        """The memory of a state after ``count`` steps, as plain data; empty where no parameter missed anything."""
        self.settle(count)
        lists = {
            "kept": sorted(self.orphans),
            "without_gradient": sorted(self.without),
            "without_slots": sorted(self.waiting.difference(with_slots)),
        }
        return {name: value for name, value in {"missed_steps": dict(self.missed), **lists}.items() if value}

    def with_steps_of(
        self, lacking: Collection[str], state: Mapping[str, Any], count: int, taken: int
    ) -> Mapping[str, Any]:
        """The presence in a state after ``count`` steps, for parameters that it is ``lacking``.

        They took part in the ``taken`` steps here.
        """
        self.settle(taken)
        missed = {path: max(0, count - taken + self.missed.get(path, 0)) for path in lacking}
        return {**state, "missed_steps": {**state.get("missed_steps", {}), **missed}} if missed else state

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "ParticipationLog":
        """The presence of parameters in a state."""
        log = cls()
        log.missed, log.orphans = dict(state.get("missed_steps", {})), set(state.get("kept", ()))
        log.without = set(state.get("without_gradient", ()))
        log.waiting = set(state.get("without_slots", ()))
        log.were_inactive = log.waiting.copy()
        return log

    @staticmethod
    def check(state: Any, step: int) -> None:
        """Raises `StateError` for what is not that of a state after ``step`` steps."""
        names = {"missed_steps", "kept", "without_gradient", "without_slots"}
        if not isinstance(state, Mapping) or state.keys() - names:
            raise StateError(
                f"the state has presence {state!r}: expected a dict with the keys {', '.join(sorted(names))}"
            )
        missed = state.get("missed_steps", {})
        if not isinstance(missed, Mapping):
            raise StateError(f"the state has missed_steps {missed!r}: expected a dict")
        for path, number in missed.items():
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= step:
                raise StateError(f"{path}: the state has missed_steps {number!r}: expected at most the step, {step}")
        for name in ("kept", "without_gradient", "without_slots"):
            if not all(isinstance(path, str) for path in state.get(name, ())):
                raise StateError(f"the state has {name} {state[name]!r}: expected a list of key paths")


def accumulated(
    structure: Structure, leaves: list[Any], gradients: list[Any], without: set[str], *, first: bool, last: bool
) -> set[str]:
    """Puts zeros in place of gradients of None, for means; returns the parameters that had none so far.

    ``without`` are those that had none before, unless this is the ``first`` since a step. In the ``last`` one before a
    step, the gradients of those that had none at all remain None.
    """
    absent = {str(structure.path(i)): i for i, g in enumerate(gradients) if g is None and structure.is_trainable(i)}
    never = absent.keys() if first else absent.keys() & without
    for path, i in absent.items():
        if not (last and path in never):
            gradients[i] = xp.zeros_like(leaves[i])
    return set(never)
