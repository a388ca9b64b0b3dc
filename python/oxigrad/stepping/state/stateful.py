"""Protocols of an optimizer whose state is collected and loaded, as far as `oxigrad.stepping.state.state_dict` reads it."""

from collections.abc import Mapping
from typing import Any, Protocol, Self

from oxigrad.stepping.parameters.presence import ParticipationLog

# Slots by key path and name.
Slots = Mapping[str, Mapping[str, Any]]


class Remembering(Protocol):
    """A stateful part of an optimizer: a loss scale or a schedule."""

    def state_dict(self) -> Any:
        """The state, as plain data."""
        ...

    def load_state_dict(self, state: Any) -> None:
        """Continues from a state."""
        ...


class Swappable(Protocol):
    """The averages of an optimizer, which may be swapped with the parameters."""

    def refuse_swapped(self) -> None:
        """Raises `StateError` while the averages are swapped with the parameters."""
        ...


class Counts(Protocol):
    """The numbers of steps of an optimizer."""

    @property
    def skipped(self) -> int:
        """The number of steps that were skipped because their gradients were not finite."""
        ...

    @property
    def taken(self) -> int:
        """The number of steps taken."""
        ...


class Stepping(Protocol):
    """The counts and slots of an optimizer."""

    fitting: Any
    averages: Swappable
    presence: ParticipationLog

    @property
    def counts(self) -> Counts:
        """The numbers of steps."""
        ...

    @property
    def micro(self) -> int:
        """The number of gradients accumulated since."""
        ...

    @property
    def slots(self) -> Slots:
        """The slots, whose arrays the user may keep."""
        ...

    @property
    def own_slots(self) -> Slots:
        """As `slots`, for readers that give no array to the user."""
        ...

    def check_whole(self) -> None:
        """Raises `StateError` in the middle of a step."""
        ...

    def resumed(self, counts: Mapping[str, int], slots: Slots, fitting: Any, presence: Mapping[str, Any]) -> Self:
        """Another stepper with these counts and slots."""
        ...


class Stateful(Protocol):
    """An optimizer whose state is collected or loaded."""

    accumulate: int
    _stepper: Any

    @property
    def name(self) -> str:
        """The name of the optimizer."""
        ...

    def get_config(self) -> dict[str, Any]:
        """The configuration; raises `TypeError` where it cannot be written down."""
        ...

    def _remembering(self) -> dict[str, Remembering]: ...

    def _resume(self, stepper: Any) -> None: ...
