"""Partitions: optimizers that update disjoint sets of parameters by different optimizers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from oxigrad._core import StructureError
from oxigrad._names import in_words, path_name
from oxigrad._typing import Array, Config
from oxigrad.optim.optimizer import LocalOptimizer, Optimizer
from oxigrad.optim.rule_optimizer import RuleOptimizer
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.config import REGISTRY
from oxigrad.optim.settings.param_groups import Pattern
from oxigrad.step.parameters.parameter_group import ParameterGroup


class Partition(LocalOptimizer):
    """Optimizer that updates each parameter by one of several optimizers; `partition` makes one.

    Args:
        optimizers: optimizers by pattern of key paths; None freezes parameters.
        **options: options of every optimizer, by keyword; see `Optimizer`.
    """

    def __init__(self, optimizers: Mapping[Pattern, RuleOptimizer | None], **options: Any) -> None:
        param_groups.check(optimizers)
        for pattern, optimizer in optimizers.items():
            if not (optimizer is None or isinstance(optimizer, RuleOptimizer)):
                raise TypeError(
                    f"the pattern {pattern!r}: found {in_words(optimizer)}, expected an optimizer, or None to freeze"
                )
            if optimizer is not None and type(optimizer).minimize is not Optimizer.minimize:
                raise TypeError(
                    f"the pattern {pattern!r}: found {optimizer.name}, which evaluates the loss: expected an optimizer "
                    "that takes a step by a gradient"
                )
        self._optimizers = dict(optimizers)
        self._inner = {f"parts.{at}": each for at, each in enumerate(optimizers.values()) if each is not None}
        super().__init__(**options)
        self._refuse_options()

    def _refuse_options(self) -> None:
        for pattern, optimizer in self._optimizers.items():
            if names := optimizer._stepping_options() if optimizer else []:
                raise ValueError(f"the pattern {pattern!r}: {', '.join(names)} must be set on the partition instead")

    @property
    def optimizers(self) -> Mapping[Pattern, RuleOptimizer | None]:
        """Read-only view of the optimizers by pattern."""
        return MappingProxyType(self._optimizers)

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return "partition"

    def _assign(self, path: str, array: Array, owner: Optimizer | None = None) -> ParameterGroup | None:
        """See `Optimizer._assign`."""
        at = param_groups.first_match(self.optimizers, path, array)
        if at is None:
            raise StructureError(
                f"{path_name(path)}: no pattern of the partition matches: expected one, with an optimizer, or with "
                "None to freeze"
            )
        optimizer = list(self.optimizers.values())[at]
        return optimizer and optimizer._assign(path, array, owner or self)

    def _check_patterns(self, parameters: list[tuple[str, Array]]) -> None:
        """See `Optimizer._check_patterns`."""
        self._refuse_options()
        param_groups.check_matched(self.optimizers, parameters)
        super()._check_patterns(parameters)

    def get_config(self) -> Config:
        """See `Optimizer.get_config`."""
        parts = [
            [param_groups.plain(pattern), optimizer and optimizer.get_config()]
            for pattern, optimizer in self.optimizers.items()
        ]
        return {"optimizer": "partition", "parts": parts, **self._options()}

    def __repr__(self) -> str:
        return f"partition({self._optimizers!r}{self._shown_options()})"

    def _hint(self, name: str) -> str:
        if any(name in optimizer._declared for optimizer in self.optimizers.values() if optimizer):
            return ": set it on one of its optimizers, optimizers[pattern]"
        return super()._hint(name)


def partition(optimizers: Mapping[Pattern, RuleOptimizer | None], **options: Any) -> Partition:
    """An optimizer that updates each parameter by the first of ``optimizers`` whose pattern it matches; None freezes.

    Args:
        optimizers: optimizers by pattern: text with wildcards, a regular expression or a predicate ``(path,
            array)``; None freezes.
        **options: options of every optimizer, by keyword; see `Optimizer`.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, Adam
    >>> opt = partition({"*bias": SGD(1.0), "*": Adam(0.1)})
    >>> opt.update({"w": np.zeros(1), "bias": np.zeros(1)}, {"w": np.ones(1), "bias": np.ones(1)})
    {'w': array([-0.1]), 'bias': array([-1.])}
    """
    return Partition(optimizers, **options)


def _partition_of(*pairs: tuple[Pattern, RuleOptimizer | None], **options: Any) -> Partition:
    return partition(dict(pairs), **options)


REGISTRY["partition"] = _partition_of
