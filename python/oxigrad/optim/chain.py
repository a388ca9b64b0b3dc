"""Optimizers of several parts: chains, which are one rule, and partitions, whose parts have parameters of their own."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from oxigrad._core import StructureError
from oxigrad.optim import param_groups
from oxigrad.optim.config import OPTIONS, REGISTRY
from oxigrad.optim.hyperparameters import Part, declare
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.rule_optimizer import RuleOptimizer, caller, register
from oxigrad.rules import rule
from oxigrad.rules.compat import filled_in
from oxigrad.stepping.parameter_group import ParameterGroup
from oxigrad.stepping.version import Version


class Transform(Part):
    """A part of a chain that is no optimizer: it changes gradients before the update, or parameters after it.

    ``compat`` is as optimizers have it: "torch", "optax" or "keras".
    """

    def __init__(self, *args: Any, compat: str | None = None, **keywords: Any) -> None:
        super().__init__(*args, **filled_in(type(self).__name__, compat, list(self.declared)[: len(args)], keywords))


class Chain(RuleOptimizer):
    """What `chain` makes: parts that are one rule."""

    chained: tuple[Part, ...]

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return self.rule.name

    def get_config(self) -> dict[str, Any]:
        """See `Optimizer.get_config`."""
        return {"optimizer": "chain", "parts": [part.get_config() for part in self._present()], **self._options()}

    def _present(self) -> list[Part]:
        """The parts, with the hyperparameters as they are now."""
        return [type(part)(**{n: self._hyperparameters[n] for n in part.declared}) for part in self.chained]

    def _classes(self) -> Iterator[type]:
        yield from map(type, self.chained)

    def __repr__(self) -> str:
        return f"chain({', '.join(map(repr, self._present()))}{self._shown_options()})"


class Partition(Optimizer):
    """What `partition` makes: several optimizers, each for some of the parameters."""

    def __init__(self, optimizers: Mapping[Any, RuleOptimizer | None], **options: Any) -> None:
        super().__init__(**options)
        param_groups.check(optimizers)
        for pattern, optimizer in optimizers.items():
            if not (optimizer is None or isinstance(optimizer, RuleOptimizer)):
                raise TypeError(f"the pattern {pattern!r} has {optimizer!r}: expected an optimizer, or None to freeze")
        self._optimizers = dict(optimizers)
        self._refuse_options()

    def _refuse_options(self) -> None:
        for pattern, optimizer in self._optimizers.items():
            if given := optimizer._stepping_options() if optimizer else []:
                raise ValueError(f"the pattern {pattern!r}: {', '.join(given)} belong to the partition")

    @property
    def optimizers(self) -> Mapping[Any, RuleOptimizer | None]:
        """The optimizers by pattern, to be read."""
        return MappingProxyType(self._optimizers)

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return "partition"

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield from super()._parts()
        for number, optimizer in enumerate(self.optimizers.values()):
            found = optimizer._parts() if optimizer else ()
            yield from ((f"parts.{number}.{name}", part) for name, part in found)

    def _group_for(self, owner: Optimizer, path: str, array: Any) -> ParameterGroup | None:
        """See `Optimizer._group_for`."""
        at = param_groups.first_match(self.optimizers, path, array)
        if at is None:
            raise StructureError(f"{path}: no pattern of the partition matches; None as an optimizer freezes")
        optimizer = list(self.optimizers.values())[at]
        return optimizer and optimizer._group_for(owner, path, array)

    def _check_patterns(self, parameters: list[tuple[str, Any]]) -> None:
        """See `Optimizer._check_patterns`."""
        self._refuse_options()
        param_groups.check_matched(self.optimizers, parameters)
        for optimizer in filter(None, self.optimizers.values()):
            optimizer._check_patterns(parameters)

    def get_config(self) -> dict[str, Any]:
        """See `Optimizer.get_config`."""
        found = [
            [param_groups.plain(pattern), optimizer and optimizer.get_config()]
            for pattern, optimizer in self.optimizers.items()
        ]
        return {"optimizer": "partition", "parts": found, **self._options()}

    def _versions(self) -> Iterator[Version]:
        yield from super()._versions()
        for optimizer in filter(None, self._optimizers.values()):
            yield from optimizer._versions()

    def _classes(self) -> Iterator[type]:
        for optimizer in filter(None, self.optimizers.values()):
            yield from optimizer._classes()

    def __repr__(self) -> str:
        return f"partition({self._optimizers!r}{self._shown_options()})"

    def _hint(self, name: str) -> str:
        if any(name in optimizer.declared for optimizer in self.optimizers.values() if optimizer):
            return ": set it on one of its optimizers, optimizers[pattern]"
        return super()._hint(name)


def transform(function: Callable[..., Any], name: str | None = None, *, elementwise: bool = True) -> type[Transform]:
    """A new part for a `chain`, from a rule that changes gradients or new parameters.

    The rule is ``(xp, p, g, *slots, ...)`` and returns another gradient, or ``(xp, p, new, *slots, ...)`` and returns the
    new parameter changed; each followed by its slots.

    >>> from oxigrad.optim import SGD
    >>> Halve = transform(lambda xp, p, g, *, share=0.5: share * g, "Halve")
    >>> chain(Halve(share=0.1), SGD(1.0))
    chain(Halve(share=0.1), SGD(learning_rate=1.0, weight_decay=0.0))
    """
    read = rule.read(function, changes_gradient=True, elementwise=elementwise)
    return register(read, name, Transform, module=caller())


def chain(*parts: Part, **options: Any) -> Chain:
    """One optimizer of several parts: what changes gradients, an optimizer, what changes parameters after it, in this order.

    It is one rule, in one pass over memory where the formula allows. The hyperparameters of the parts are its attributes, and
    are set there, since the parts are copied;
    ``options`` are those of every optimizer. Raises `ValueError` where parts do not fit.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, ClipByGlobalNorm
    >>> opt = chain(ClipByGlobalNorm(1.0), SGD(learning_rate=1.0))
    >>> opt.update({"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.array([3.0]), "b": np.array([4.0])})
    {'a': array([-0.6]), 'b': array([-0.8])}
    """
    flat = [one for part in parts for one in (part._present() if isinstance(part, Chain) else [part])]
    for part in flat:
        if not isinstance(part, Part):
            raise TypeError(f"{part!r} is no part of a chain: expected optimizers and transforms")
        if isinstance(part, Optimizer) and part._options():
            raise ValueError(f"{type(part).__name__}: {', '.join(part._options())} belong to the chain")
    made = declare(rule.compose([part.rule for part in flat]), "Chain", Chain, OPTIONS, Chain.__module__)
    made.chained = tuple(flat)
    values = {name: value for part in flat for name, value in part.hyperparameters.items()}
    return made(**values, **options)


def partition(optimizers: Mapping[Any, RuleOptimizer | None], **options: Any) -> Partition:
    """One optimizer that gives each parameter to the first of ``optimizers`` whose pattern it matches; None freezes.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, Adam
    >>> opt = partition({"*bias": SGD(1.0), "*": Adam(0.1)})
    >>> opt.update({"w": np.zeros(1), "bias": np.zeros(1)}, {"w": np.ones(1), "bias": np.ones(1)})
    {'w': array([-0.1]), 'bias': array([-1.])}
    """
    return Partition(optimizers, **options)


def _partition_of(*pairs: tuple[Any, RuleOptimizer | None], **options: Any) -> Partition:
    return partition(dict(pairs), **options)


REGISTRY["chain"] = chain
REGISTRY["partition"] = _partition_of
