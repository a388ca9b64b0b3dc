"""Deep gradient compression: workers exchange the largest elements of gradients, and keep the rest for later."""

import copy
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from oxigrad import NonFiniteError
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.errors import Refused
from oxigrad.distributed.fields import BOUND, FACTOR, WHOLE, Arrays, Field, Plain, array_by_path, arrays, check_flags
from oxigrad.distributed.messages.configuration import options_set
from oxigrad.distributed.messages.message import Layout, LayoutEntry
from oxigrad.distributed.methods import top_k
from oxigrad.distributed.methods.collective import CollectiveWrapper
from oxigrad.distributed.methods.means import mean_over_workers
from oxigrad.distributed.methods.top_k import Memory
from oxigrad.distributed.parameters import promoted
from oxigrad.distributed.wrapper import Wrapper
from oxigrad.extend import Domain, as_array
from oxigrad.optim import SAM, SGD, Chain, ChainPart, Interval, Optimizer, Partition

_RESIDUAL, _VELOCITY, _DECAY = "compression-residual", "compression-velocity", "compression-decay"
# What the first word of a message says where it is not the number of values.
_ABSENT, _NOT_FINITE = 0xFFFFFFFF, 0xFFFFFFFE
_RATIO = Domain(interval=Interval("(0, 1]"))
# Hyperparameters of SGD that the wrapper takes over.
_MOVED = ("momentum", "nesterov", "weight_decay")


def _write_memories(wrapper: Any, memories: Mapping[str, Memory]) -> tuple[Plain, Arrays]:
    arrays = {}
    for path, memory in memories.items():
        velocity = {} if memory.velocity is None else {_VELOCITY: memory.velocity}
        arrays[path] = {_RESIDUAL: memory.residual, **velocity}
    return {"compressed": [*memories]}, arrays


def _read_memories(wrapper: Any, plain: Plain, arrays: Arrays) -> dict[str, Memory]:
    residuals, velocities = array_by_path(arrays, _RESIDUAL), array_by_path(arrays, _VELOCITY)
    if sorted(residuals) != sorted(plain["compressed"]):
        raise ValueError(f"it has residuals of {sorted(residuals)}: expected {sorted(plain['compressed'])}")
    if residuals and wrapper.ratio == 1:
        raise ValueError("it has residuals, but ratio is 1")
    memories = {path: Memory(residual, velocities.get(path)) for path, residual in residuals.items()}
    if any((memory.velocity is None) == (wrapper.momentum > 0) for memory in memories.values()):
        raise ValueError(f"it has residuals of another momentum than {wrapper.momentum}")
    return memories


def _read_velocities(wrapper: Any, plain: Plain, arrays: Arrays) -> dict[str, np.ndarray]:
    """The velocities of the parameters that are exchanged densely."""
    velocities = array_by_path(arrays, _VELOCITY)
    return {path: velocity for path, velocity in velocities.items() if path not in plain["compressed"]}


class DeepGradientCompression(CollectiveWrapper):
    """Deep gradient compression (Lin et al. 2018, arXiv:1712.01887): sends the largest ``ratio`` of each gradient.

    Each worker adds its gradient to a residual, sends the elements of the residual with the largest magnitudes, and
    keeps the others. ``optimizer`` takes its step by the mean over the workers of what was sent. A parameter of fewer
    than ``min_size`` elements is exchanged densely. ``ratio=1`` turns all of this off: gradients are averaged by a
    plain all-reduce.

    Around `SGD` with momentum, the momentum moves into the residual (momentum correction): ``u = momentum * u + g``,
    ``v = v + u``, and both are zero where an element was sent (momentum factor masking); with ``nesterov`` as in the
    paper's appendix. The wrapper then has a copy of the optimizer without momentum, and separate ``momentum``,
    ``nesterov`` and ``weight_decay``. It adds the weight decay after the exchange, with a separate momentum. With
    ``ratio=1``, a step has the bits of the optimizer's step by the averaged gradient. Steps of parameters below
    ``min_size`` equal it up to rounding. Any other optimizer reads the mean of what was sent, without correction. A
    `SparseRows` gradient is exchanged as an array.

    Args:
        optimizer: the optimizer of all workers.
        ratio: the share of elements that is sent, above 0 and at most 1.
        warmup: the number of first steps in which more is sent, see `oxigrad.distributed.methods.top_k.density`.
        momentum, nesterov, weight_decay: values of the correction, if ``optimizer`` is SGD without them, or a chain
            with such an SGD.
        clip_norm: clips the gradient of each worker to this global norm over the square root of the number of workers,
            before it is added (local gradient clipping); None clips nothing.
        min_size: the number of elements below which a parameter is exchanged densely.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    The residuals of a worker are in its own checkpoint; ``save(file, gather=True)`` writes one for any number of
    workers. The worker is told by the report of gradients that were dropped: those that are not finite, where
    ``nonfinite`` is "skip" or "raise" (then no worker takes the step), and the first one of a worker that joins. What a
    lost worker had not sent is lost. Raises `TypeError` or `ValueError` at construction for what cannot be combined:
    momentum in groups or in SGD inside of a chain or a partition, dampening, and the options ``accumulate``,
    ``loss_scale``, ``sparse`` and ``zero_gradients``.

    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> def worker(comm):
    ...     opt = distributed.DeepGradientCompression(optim.SGD(1.0), ratio=0.5, min_size=1)
    ...     model = {"w": np.zeros(2)}
    ...     for _ in range(3):
    ...         model = opt.update(model, {"w": np.array([1.0, 0.4])})
    ...     return model["w"]
    >>> distributed.run(worker, workers=2)
    [array([-2. , -1.2]), array([-2. , -1.2])]
    """

    ratio: float
    warmup: int
    clip_norm: float | None
    min_size: int
    momentum: Any
    nesterov: Any
    weight_decay: Any
    optimizer: SGD

    _fields = (
        Field("_memories", _write_memories, _read_memories, lambda wrapper: (_RESIDUAL,), dict),
        dataclasses.replace(arrays("_velocities", _VELOCITY), read=_read_velocities),
        arrays("_decays", _DECAY),
    )

    def __init__(
        self,
        optimizer: Optimizer,
        ratio: float = 0.001,
        *,
        warmup: int = 0,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        min_size: int = 16384,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self.ratio, self.clip_norm = _RATIO.check("ratio", ratio), BOUND.check("clip_norm", clip_norm)
        self.warmup, self.min_size = WHOLE.check("warmup", warmup), WHOLE.check("min_size", min_size)
        self.momentum = FACTOR.check("momentum", momentum)
        self.weight_decay = FACTOR.check("weight_decay", weight_decay)
        (self.nesterov,) = check_flags(nesterov=nesterov)
        if ratio < 1:
            self._refuse_options()
            self._move_momentum()
            self._refuse_momentum()
        elif momentum or weight_decay or warmup or clip_norm:
            raise ValueError(
                "ratio is 1, which turns compression off: expected no momentum, weight_decay, warmup or clip_norm"
            )
        self._memories: dict[str, Memory] = {}
        self._sent: dict[str, Memory] = {}  # after what was sent last
        self._velocities: dict[str, np.ndarray] = {}  # of parameters that are exchanged densely
        self._decays: dict[str, np.ndarray] = {}

    def _refuse_options(self) -> None:
        if refused := options_set(self.optimizer, ("accumulate", "loss_scale", "sparse", "zero_gradients")):
            raise ValueError(
                f"DeepGradientCompression: {', '.join(refused)} cannot be combined with compressed gradients"
            )

    def _move_momentum(self) -> None:
        """Takes momentum and weight decay out of SGD."""
        base = self.optimizer
        if not isinstance(base, SGD) or not base.momentum:
            return
        for pattern, values in base.groups.items():
            if names := sorted((values or {}).keys() & {*_MOVED, "dampening"}):
                raise ValueError(f"the group {pattern!r} has {', '.join(names)}: expected one value for all parameters")
        if base.dampening:
            raise ValueError(f"dampening is {base.dampening}: momentum correction is defined for 0")
        if set_here := [name for name in _MOVED if getattr(self, name)]:
            raise ValueError(f"{', '.join(set_here)}: set on SGD or on DeepGradientCompression, not on both")
        for name in ("momentum", "weight_decay"):
            if callable(getattr(base, name)):
                raise TypeError(f"{name} is {getattr(base, name)!r}: momentum correction is defined for a constant")
        self.momentum, self.nesterov, self.weight_decay = (cast(Any, getattr(base, name)) for name in _MOVED)
        self.optimizer = inner = copy.deepcopy(base)
        inner.momentum, inner.nesterov, inner.weight_decay = 0.0, False, 0.0

    def _refuse_momentum(self) -> None:
        parts = [*_of_sgd(self.optimizer, "its optimizer")]
        if where := [label for label, part in parts if part.momentum or _group_sets(part, "momentum")]:
            raise ValueError(
                f"{where[0]} is SGD with momentum: expected momentum=0, and the momentum on DeepGradientCompression"
            )
        if self.momentum and not parts:
            raise ValueError(
                f"momentum is {self.momentum}: its correction is defined for SGD, not for {self.optimizer!r}"
            )
        if (self.weight_decay or self.nesterov) and not self.momentum:
            raise ValueError("nesterov and weight_decay belong to the momentum correction: expected a momentum")

    # --- state --------------------------------------------------------------------------------------------------------

    def state_dict(self, *, copy: bool = True, gather: bool = False) -> dict[str, Any]:
        """See `Wrapper.state_dict`.

        With ``gather``, which all workers call, the state is one that any number of workers loads.

        Its residuals and velocities are means over the workers. They hold the part of the mean gradient that was not
        sent yet: nothing is lost or counted twice, up to rounding.
        """
        if not gather:
            return super().state_dict(copy=copy)
        with self._lock.reading():
            return self._gathered()

    def save(self, file: str | os.PathLike[str], *, gather: bool = False) -> None:
        """See `Wrapper.save`.

        With ``gather``, all workers call it, and rank 0 writes the file; see `state_dict`.
        """
        if not gather:
            super().save(file)
            return
        with self._lock.reading():
            self._write_on_one(file, self._gathered())

    def _gathered(self) -> dict[str, Any]:
        """The state with the means over workers of what each of them has for itself."""
        state = self._whole_state(copy=False)
        local = {
            f"{name} {path}": array
            for path in self._memories
            for name, array in state["slots"][path].items()
            if name in (_RESIDUAL, _VELOCITY)
        }
        with self._gathering("save and state_dict with gather=True"):
            means = mean_over_workers(local, self.communicator, timeout=self.timeout) if local else {}
        slots = {
            path: {name: means.get(f"{name} {path}", slot) for name, slot in named.items()}
            for path, named in state["slots"].items()
        }
        return {**state, "slots": copy.deepcopy(slots)}

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """See `Wrapper._step`."""
        gradients = {path: as_array(g) for path, g in self._parameters.gradients(model, grads).items()}
        model, late = self._entered(model)
        exchange = self._averaged if self.ratio == 1 else self._exchanged
        with np.errstate(over="ignore", invalid="ignore"):
            model, exchanged = self._repeated(model, lambda: exchange(gradients, absent=late))
        if exchanged is None:  # the others have completed this step, by what all have sent, or all were late
            self._memories = self._sent or self._memories
            self._report.count(accepted=not late)
            return model
        values = {"_done": self._done + 1}
        if exchanged.refused:
            ranks = exchanged.refused
            return self._with_step(
                lambda: self._skip(model, gradients, ranks, keep_root=keep_root), values, accepted=False
            )
        means, velocities, decays = self._corrected(model, exchanged.means)
        steps = {path: mean.reshape(gradients[path].shape) for path, mean in means.items()}
        grads = self._parameters.tree(model, steps)
        state = {"_memories": exchanged.memories, "_velocities": velocities, "_decays": decays}
        return self._with_step(
            lambda: self.take_step(self.optimizer, model, grads, keep_root=keep_root), values, state, accepted=not late
        )

    def _averaged(self, gradients: Mapping[str, np.ndarray], *, absent: bool) -> "_Exchanged | None":
        """The means of gradients by a plain all-reduce; None where all workers are absent."""
        means = self._dense_means({path: _flat(g) for path, g in gradients.items()}, absent=absent)
        return _Exchanged(means) if means else None

    def _exchanged(self, gradients: Mapping[str, np.ndarray], *, absent: bool) -> "_Exchanged | None":
        """The means of what all workers send, and the memory of this worker after it; nothing is changed.

        None as of `_averaged`.
        """
        flat = {path: _flat(g) for path, g in gradients.items()}
        self._begin_memories(flat)
        sparse = {path: g for path, g in flat.items() if path in self._memories}
        memories, message = dict(self._memories), np.array([_ABSENT], "<u4").view(np.uint8)
        if not absent and self.nonfinite != "propagate" and not all(np.isfinite(g).all() for g in flat.values()):
            message = np.array([_NOT_FINITE], "<u4").view(np.uint8)
        elif not absent:
            if self.clip_norm is not None:
                factor = top_k.clip_factor([*flat.values()], self.clip_norm, self.communicator.size)
                flat = {path: g * g.dtype.type(factor) for path, g in flat.items()}
            memories, message = self._compressed({path: flat[path] for path in sparse})
        self._sent = memories
        messages = self.communicator.all_gather_v(message, timeout=self.timeout)
        words = [int(each[:4].view("<u4")[0]) if each.size >= 4 else -1 for each in messages]
        if unknown := [word for word in words if word not in (0, _ABSENT, _NOT_FINITE)]:
            raise Refused("status", f"a message of sparse values begins with {unknown[0]}: expected 0")
        if refused := [rank for rank, word in enumerate(words) if word == _NOT_FINITE]:
            return _Exchanged({}, memories, refused)
        present = [each[4:] for each, word in zip(messages, words, strict=True) if word != _ABSENT]
        if not present:
            return None
        means = self._sparse_means(sparse, present)
        dense = {path: g for path, g in flat.items() if path not in sparse}
        return _Exchanged({**means, **(self._dense_means(dense, absent=absent) if dense else {})}, memories)

    def _compressed(self, gradients: Mapping[str, np.ndarray]) -> tuple[dict[str, Memory], np.ndarray]:
        """The memory of this worker after its gradients were added and the largest elements sent, and their message."""
        share, parts = top_k.density(self.ratio, self.warmup, self._done), [np.zeros(4, np.uint8)]
        memories = dict(self._memories)  # with those of parameters that are frozen for now
        for dtype, group in _by_dtype(gradients):
            chosen, sent = [], []
            for entry in group:
                memory = self._memories[entry.path].accumulated(
                    gradients[entry.path], self.momentum, nesterov=self.nesterov
                )
                indices = top_k.largest(memory.residual, top_k.count_sent(memory.residual.size, share))
                chosen.append(indices + entry.start)
                sent.append(memory.residual[indices].astype(dtype, copy=False))
                memories[entry.path] = memory.without(indices)
            indices, values = np.concatenate(chosen), np.concatenate(sent)
            parts += [np.array([indices.size], "<u4").view(np.uint8), top_k.pack(indices, values)]
        return memories, np.concatenate(parts)

    def _sparse_means(self, like: Mapping[str, np.ndarray], messages: list[np.ndarray]) -> dict[str, np.ndarray]:
        """The means over the workers of what they sent."""
        means = {}
        for dtype, group in _by_dtype(like):
            frames = []
            for number, message in enumerate(messages):
                count = int(message[:4].copy().view("<u4")[0]) if message.size >= 4 else 0
                end = 4 + count * (4 + dtype.itemsize)
                if message.size < max(end, 4):
                    raise Refused("length", f"a message of sparse values has {message.size} bytes: expected {end}")
                frames.append(message[4:end])
                messages[number] = message[end:]
            total = top_k.mean(frames, sum(entry.size for entry in group), dtype)
            means |= {entry.path: total[entry.start : entry.start + entry.size] for entry in group}
        if any(message.size for message in messages):
            raise Refused("length", "a message of sparse values is longer than its counts say")
        return means

    def _dense_means(self, gradients: Mapping[str, np.ndarray], *, absent: bool) -> dict[str, np.ndarray]:
        """The means of whole gradients over the workers that are not ``absent``."""
        return mean_over_workers(gradients, self.communicator, count=0 if absent else 1, timeout=self.timeout)

    def _corrected(
        self, model: Tree, means: Mapping[str, np.ndarray]
    ) -> tuple[Mapping[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The steps of momentum SGD by the means, and the velocities of dense gradients and weight decay after it."""
        if not self.momentum:
            return means, self._velocities, self._decays
        values = self._parameters.read(model) if self.weight_decay else {}
        steps, velocities, decays = dict(means), dict(self._velocities), dict(self._decays)
        for path, mean in means.items():
            decay = mean.dtype.type(self.weight_decay) * _flat(values[path]) if self.weight_decay else None
            if path not in self._memories:
                g = mean if decay is None else mean + decay
                steps[path], velocities[path] = self._with_momentum(g, velocities.get(path))
            elif decay is not None:
                added, decays[path] = self._with_momentum(decay, decays.get(path))
                steps[path] = mean + added
        return steps, velocities, decays

    def _with_momentum(self, g: np.ndarray, velocity: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The step of SGD with momentum by ``g``, and the velocity after it."""
        momentum = g.dtype.type(self.momentum)
        after: np.ndarray = g.copy() if velocity is None else momentum * velocity + g
        return (g + momentum * after if self.nesterov else after), after

    def _skip(self, model: Tree, gradients: Mapping[str, np.ndarray], ranks: list[int], *, keep_root: bool) -> Tree:
        """A step that no worker takes, since gradients of the workers ``ranks`` are not finite."""
        if self.nonfinite == "raise":
            bad = [path for path, g in gradients.items() if not np.isfinite(g).all()]
            where = f"{', '.join(bad)}: " if self.communicator.rank in ranks else ""
            raise NonFiniteError(
                f"{where}the gradient of the worker of rank {', '.join(map(str, ranks))} has infinities or NaN; "
                "nothing was changed"
            )
        grads = {path: np.full_like(g, np.nan) for path, g in gradients.items()}
        return self.take_step(self.optimizer, model, self._parameters.tree(model, grads), keep_root=keep_root)

    # --- state --------------------------------------------------------------------------------------------------------

    def _begin(self, model: Tree) -> None:
        """See `CollectiveWrapper._begin`."""
        if self.ratio < 1:
            self._begin_memories(self._parameters.specs(model))

    def _begin_memories(self, gradients: Mapping[str, Any]) -> None:
        """Makes the memories of parameters that have none, as those that were frozen before."""
        for path, g in gradients.items():
            if path not in self._memories and g.size >= max(self.min_size, 1):
                self._memories[path] = Memory.zeros(g.size, g.dtype, velocity=self.momentum > 0)
        total = sum(memory.residual.size for memory in self._memories.values())
        if total >= 2**32:
            raise ValueError(f"the compressed parameters have {total} elements: expected fewer than 2**32")


@dataclasses.dataclass
class _Exchanged:
    """The result of an exchange: flat means by key path, memories after it, and ranks with infinities or NaN."""

    means: Mapping[str, np.ndarray]
    memories: dict[str, Memory] = dataclasses.field(default_factory=dict)
    refused: list[int] = dataclasses.field(default_factory=list)


def _flat(array: np.ndarray) -> np.ndarray:
    """The array with one axis, in float32 if it is of half precision."""
    return promoted(array.reshape(-1))


def _by_dtype(arrays: Mapping[str, np.ndarray]) -> list[tuple[np.dtype, list[LayoutEntry]]]:
    """The places of flat arrays by dtype, where those of one dtype are joined."""
    layout = Layout(arrays)
    return [(d, [entry for entry in layout.entries if entry.dtype == d]) for d in layout.dtypes]


def _of_sgd(optimizer: Any, label: str) -> Iterator[tuple[str, Any]]:
    """The parts inside of an optimizer that are `SGD`, each with a label for errors."""
    if isinstance(optimizer, (Wrapper, SAM)):
        yield from _of_sgd(optimizer.optimizer, f"the optimizer of {type(optimizer).__name__}")
    elif isinstance(optimizer, Partition):
        for pattern, inner in optimizer.optimizers.items():
            yield from _of_sgd(inner, f"the optimizer of the pattern {pattern!r}")
    elif isinstance(optimizer, Chain):
        yield from (
            (f"parts[{at}] of {label}", part) for at, part in enumerate(optimizer.parts) if part.name == SGD.__name__
        )
    elif isinstance(optimizer, SGD):
        yield label, optimizer


def _group_sets(part: Any, name: str) -> bool:
    return not isinstance(part, ChainPart) and any(name in (values or {}) for values in part.groups.values())
