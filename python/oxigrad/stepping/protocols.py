"""Protocols of an optimizer, as far as the modules of this folder read it: they import no class of `oxigrad.optim`."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from oxigrad.stepping.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.stepping.version import Version


class ObservedScale(Protocol):
    """A loss scale that observes steps."""

    def _after(self, *, finite: bool) -> dict[str, Any]: ...

    def _state(self) -> tuple[float, int]: ...

    def _of_kernel(self) -> tuple[float, float] | None: ...

    def _read_by(self, sync: Callable[[], Any]) -> None: ...


class SteppingOptimizer(SteppingOptions, Protocol):
    """The optimizer that takes the steps: its options, and the group of each parameter."""

    @property
    def seed(self) -> int:
        """The seed of the rule's noise."""
        ...

    @property
    def accumulate(self) -> int:
        """The number of gradients whose mean each step uses."""
        ...

    @property
    def loss_scale(self) -> ObservedScale | None:
        """The loss scale, if there is one."""
        ...

    @property
    def scale(self) -> float:
        """The factor of the loss, by which gradients are divided."""
        ...

    def _assign(self, path: str, array: Any) -> ParameterGroup | None: ...

    def _check_patterns(self, parameters: list[tuple[str, Any]]) -> None: ...

    def _observe(self, *, finite: bool) -> None: ...

    def _versions(self) -> Iterator[Version]: ...
