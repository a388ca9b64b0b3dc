"""`chain`, and chains with a partition among their parts: partitions of chains, whose common parts are set together."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from oxigrad._typing import Config
from oxigrad.optim.chain import Chain, ChainPart, hint_of_parts
from oxigrad.optim.partition import Partition
from oxigrad.optim.settings import param_groups
from oxigrad.optim.settings.attributes import hint
from oxigrad.optim.settings.config import OPTIONS, REGISTRY
from oxigrad.optim.settings.hyperparameters import DeclaredAttributes, Part
from oxigrad.optim.settings.param_groups import Pattern


class PartitionPart:
    """The partition among the parts of a chain."""

    name = "partition"

    def __init__(self, optimizers: Mapping[Pattern, tuple[ChainPart, ...] | None]) -> None:
        self._optimizers = optimizers

    @property
    def optimizers(self) -> Mapping[Pattern, tuple[ChainPart, ...] | None]:
        """By pattern, the parts that only its parameters have; None for frozen parameters."""
        return MappingProxyType(self._optimizers)

    def get_config(self) -> Config:
        """The partition as plain data."""

        def config(parts: tuple[ChainPart, ...] | None) -> dict[str, Any] | None:
            configs = [part.get_config() for part in parts or ()]
            return (
                None if parts is None else configs[0] if len(configs) == 1 else {"optimizer": "chain", "parts": configs}
            )

        shown = [[param_groups.plain(pattern), config(parts)] for pattern, parts in self._optimizers.items()]
        return {"optimizer": "partition", "parts": shown}

    def __repr__(self) -> str:
        def shown(parts: tuple[ChainPart, ...] | None) -> str:
            texts = ", ".join(map(repr, parts or ()))
            return "None" if parts is None else texts if len(parts) == 1 else f"chain({texts})"

        return f"partition({{{', '.join(f'{p!r}: {shown(parts)}' for p, parts in self._optimizers.items())}}})"


class ChainedPartition(DeclaredAttributes, Partition):
    """A chain with a partition among its parts; `chain` makes one.

    The parameters of each pattern are updated by a chain of the common parts and of the pattern's own optimizer. A
    global norm covers the gradients of all parameters that are not frozen.
    """

    def __init__(self, *parts: Part | Partition, **options: Any) -> None:
        if unknown := sorted(options.keys() - OPTIONS.keys()):
            raise TypeError(f"chain: unknown options: {', '.join(unknown)}{hint(unknown[0], OPTIONS)}")
        if excess := sorted(options.keys() & {"groups", "dtype"}):
            raise TypeError(
                f"chain: found {', '.join(excess)} with a partition: expected further patterns of the partition"
            )
        flat = [each for part in parts for each in (part._copies() if isinstance(part, ChainedPartition) else [part])]
        partitions = [part for part in flat if isinstance(part, Partition)]
        if len(partitions) > 1:
            raise TypeError(f"chain: found {len(partitions)} partitions among the parts, expected at most one")
        inner, at = partitions[0], flat.index(partitions[0])
        common = [part for part in flat if not isinstance(part, Partition)]
        before, after = common[:at], common[at:]
        if options_set := inner._options():
            raise ValueError(f"partition: {', '.join(options_set)} must be set on the chain instead")
        self._before = sum(len(part.parts) if isinstance(part, Chain) else 1 for part in before)
        self._after = sum(len(part.parts) if isinstance(part, Chain) else 1 for part in after)
        super().__init__(
            {key: part and _chained(key, before, part, after) for key, part in inner.optimizers.items()}, **options
        )
        if not any(self._optimizers.values()):
            raise ValueError("chain: the partition freezes all parameters: expected an optimizer for a pattern")

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return " then ".join(part.name for part in self.parts)

    @property
    def parts(self) -> tuple[ChainPart | PartitionPart, ...]:
        """The parts in order, nested chains flattened. Parts other than the partition are common to all patterns."""
        chains = {pattern: chain and chain.parts for pattern, chain in self._chains().items()}
        each = [parts for parts in chains.values() if parts is not None]
        by_pattern = {key: parts and parts[self._before : len(parts) - self._after] for key, parts in chains.items()}
        before = [_common(k, tuple(parts[k] for parts in each)) for k in range(self._before)]
        after = [
            _common(self._before + 1 + k, tuple(parts[k - self._after] for parts in each)) for k in range(self._after)
        ]
        return (*before, PartitionPart(by_pattern), *after)

    def get_config(self) -> Config:
        """See `Optimizer.get_config`."""
        return {"optimizer": "chain", "parts": [part.get_config() for part in self.parts], **self._options()}

    def _chains(self) -> Mapping[Pattern, Chain | None]:
        return cast(Mapping[Pattern, Chain | None], self._optimizers)

    def _copies(self) -> Iterator[Any]:
        """The parts outside of the chain, with the current hyperparameters."""
        for part in self.parts:
            if isinstance(part, ChainPart):
                yield part._copy()
            else:
                copies: dict[Any, Any] = {
                    key: parts and [each._copy() for each in parts] for key, parts in part.optimizers.items()
                }
                yield Partition(
                    {key: parts and (parts[0] if len(parts) == 1 else Chain(*parts)) for key, parts in copies.items()}
                )

    def _owners(self, name: str) -> list[ChainPart]:
        return [part for part in self.parts if isinstance(part, ChainPart) and name in part.hyperparameters]

    def _current(self, name: str, step: int) -> Any:
        """See `Optimizer._current`: of a common part."""
        if len(self._owners(name)) == 1:
            return next(filter(None, self._chains().values()))._current(name, step)
        return super()._current(name, step)

    def _seal(self) -> None:
        """See `Sealed._seal`. Hyperparameters of one common part become attributes."""
        names = [name for part in self.parts if isinstance(part, ChainPart) for name in part.hyperparameters]
        self._attributes = frozenset(name for name in names if names.count(name) == 1 and not hasattr(type(self), name))
        super()._seal()

    def _get_attribute(self, name: str) -> Any:
        return self._owners(name)[0]._get_attribute(name)

    def _set_attribute(self, name: str, value: Any) -> None:
        self._owners(name)[0]._set_attribute(name, value)

    def _hint(self, name: str) -> str:
        return hint_of_parts(name, self.parts) or hint(name, self._attributes) or super()._hint(name)

    def __repr__(self) -> str:
        return f"chain({', '.join(map(repr, self.parts))}{self._shown_options()})"


def _common(number: int, parts: Sequence[ChainPart]) -> ChainPart:
    """The part that is ``parts`` in the chains of all patterns."""
    places = tuple([place for part in parts for place in part._places])
    return ChainPart(number, places)


def _chained(pattern: Pattern, before: Sequence[Part], part: Part, after: Sequence[Part]) -> Chain:
    try:
        return Chain(*before, part, *after)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the pattern {pattern!r}: {error}") from None


def chain(*parts: Part | Partition, **options: Any) -> Chain | ChainedPartition:
    """An optimizer composed of parts, each applied to the results of the parts before it.

    ``options`` as in `Optimizer`.

    Args:
        *parts: transforms, optimizers, chains and at most one partition, in order.
        **options: options of every optimizer, by keyword; see `Optimizer`.

    Before the first optimizer, a gradient transform changes the gradient. After it, the step ``p - new`` takes the role
    of the gradient: a gradient transform changes the step, and a further optimizer reads it as its gradient. A
    parameter transform must come after an optimizer. A part may occur any number of times; a nested chain is flattened.

    A `partition` may be one of the parts, whose optimizers each update some of the parameters between the other parts.

    The parts become one rule, which makes one pass over memory where the formula allows. They are copied: their
    hyperparameters are attributes of the chain and of its ``parts`` (see `Chain`). `Optimizer.averaged_parameters`
    returns the averages of the last part that has any; all are in the slots. Raises `TypeError` for an argument that
    cannot be a part, and `ValueError` for an order that has no meaning, and for options on a part.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, ClipByGlobalNorm
    >>> opt = chain(ClipByGlobalNorm(1.0), SGD(learning_rate=1.0))
    >>> opt.update({"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.array([3.0]), "b": np.array([4.0])})
    {'a': array([-0.6]), 'b': array([-0.8])}
    """
    if any(isinstance(part, Partition) for part in parts):
        return ChainedPartition(*parts, **options)
    return Chain(*cast(tuple[Part, ...], parts), **options)


REGISTRY["chain"] = chain
