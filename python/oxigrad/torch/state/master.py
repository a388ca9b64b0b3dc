"""Master weights of parameters that were written outside of a step, as by ``load_state_dict`` of a module."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from oxigrad.step.arrays.precision import with_written
from oxigrad.torch.state import conversion


class Mastered(NamedTuple):
    """A parameter with master weights: its tensor, its state with their key there, and how a step rounds them."""

    tensor: Any
    state: dict[str, Any]
    key: str
    rounding: str


class MasterWeights:
    """The version of each parameter after its last step, by identity: a write outside of a step raises it."""

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}

    def follow(self, parameters: Sequence[Mastered]) -> None:
        """Takes the elements of parameters that are no roundings of their master weights as the master weights.

        Parameters whose version is that of their last step are not read.
        """
        for p in parameters:
            if p.tensor.is_inference() or self._versions.get(id(p.tensor)) != p.tensor._version:
                master = conversion.local(p.state[p.key])
                master.copy_(with_written(master, conversion.local(p.tensor).to(master.device), p.rounding))

    def note(self, parameters: Sequence[Mastered]) -> None:
        """Notes the versions of parameters that a step has written."""
        self._versions.update((id(p.tensor), p.tensor._version) for p in parameters if not p.tensor.is_inference())
