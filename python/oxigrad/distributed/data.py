"""Shards of data: the batches of one worker, which are disjoint from those of the others and complete with them."""

import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from oxigrad import ShapeError, StateError, StructureError, tree
from oxigrad.distributed.communicator import Communicator, current
from oxigrad.distributed.fields import check_flags
from oxigrad.extend import adapter_of, device_of

__all__ = ["Shard", "shard"]

_FORMAT = 1


def shard(
    data: Any,
    communicator: Communicator | None = None,
    *,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    drop_last: bool = False,
) -> "Shard":
    """The batches of this worker: the rows of ``data`` that it trains on, in each epoch each row on exactly one worker.

    The rows are permuted anew in each epoch and cut into batches of all workers together; each worker has an equal part
    of each batch, up to one row. So a step uses the same rows for any number of workers, and training goes on in the
    middle of an epoch with another number.

    Args:
        data: arrays with one first axis, or a tree of them; or the number of rows, for batches that are arrays of
            indices.
        communicator: communicator of this worker; by default the `current` one of the thread, which is read for each
            batch, also after a loss of workers. Any object with ``rank`` and ``size`` will do.
        batch_size: the rows of a batch of all workers together.
        shuffle: whether to permute the rows: a permutation is a function of ``seed`` and the epoch alone.
        seed: an integer from 0 to 2**64 - 1.
        drop_last: whether to leave out the last rows of an epoch where they are fewer than ``batch_size``.

    All workers make the same shards, of the whole data and with the same arguments. A shard sends nothing itself: a
    wrapper compares the number of rows and the arguments of those on its communicator with its hyperparameters, and
    raises `Refused`. The values of the data are not compared.

    Raises `ShapeError` for arrays whose first axes differ or that have none, `StructureError` for data without arrays,
    `ValueError` for numbers out of range, and where a batch has fewer rows than there are workers.

    >>> from oxigrad import distributed
    >>> def worker(comm):
    ...     return [rows.tolist() for rows in distributed.shard(6, comm, batch_size=4, shuffle=False)]
    >>> distributed.run(worker, engine="threads", workers=2)
    [[[0, 1], [4]], [[2, 3], [5]]]
    """
    return Shard(data, communicator, batch_size=batch_size, shuffle=shuffle, seed=seed, drop_last=drop_last)


class Shard:
    """The batches of one worker, as `shard` makes them. An iteration gives the batches that remain in an epoch.

    Args:
        data: tree of arrays whose first axis counts the rows.
        communicator: communicator of this worker; by default the `current` one of the thread.
        batch_size: number of rows of a batch of one worker.
        shuffle: whether the rows are shuffled anew in each epoch.
        seed: seed of the shuffling, equal on all workers.
        drop_last: whether an incomplete last batch is dropped.

    Attributes:
        epoch: the number of epochs that are complete.
        position: the rows of this epoch, of all workers together, in the batches that were given so far.
        weight: rows of this worker in the last batch, divided by the mean over workers: 1.0 if all have equally many.
            Multiply a loss (or gradient) that is a mean over rows by it: the mean over workers is then the mean over
            the batch.
        communicator: communicator of this worker, or None for the `current` one; it can be set after a loss of workers.

    >>> batches = Shard({"x": np.arange(10.0), "y": np.zeros(10)}, batch_size=5, seed=1)
    >>> len(batches), next(iter(batches))["x"].shape
    (2, (5,))
    >>> state = batches.state_dict()
    >>> rest = [batch["x"] for batch in batches]
    >>> batches.load_state_dict(state)
    >>> all((batch["x"] == other).all() for batch, other in zip(batches, rest, strict=True))
    True
    """

    data: Any
    communicator: Communicator | None
    rows: int
    batch_size: int
    seed: int
    shuffle: bool
    drop_last: bool
    epoch: int
    position: int
    weight: float

    def __init__(
        self,
        data: Any,
        communicator: Communicator | None = None,
        *,
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.data, self.communicator = data, communicator
        self.rows = _rows(data)
        self.batch_size = _integer("batch_size", batch_size, 1, 2**63 - 1)
        self.seed = _integer("seed", seed, 0, 2**64 - 1)
        self.shuffle, self.drop_last = check_flags(shuffle=shuffle, drop_last=drop_last)
        if self._end == 0:
            raise ValueError(f"an epoch has no batch: there are {self.rows} rows, and batch_size is {self.batch_size}")
        last = self._end - (len(self) - 1) * self.batch_size
        self._refuse_few(last)
        self.epoch = self.position = 0
        self.weight = 1.0
        self._order: tuple[int, np.ndarray] | None = None
        if isinstance(self._worker, Communicator):
            options = {"batch_size": self.batch_size, "drop_last": self.drop_last}
            self._worker.trainings.shards.append({**self._identity(), **options})

    @property
    def _end(self) -> int:
        """The rows that an epoch uses."""
        return self.rows - self.rows % self.batch_size if self.drop_last else self.rows

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return math.ceil(self._end / self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """The batches that are left of this epoch, also after a ``break``. Iterations at once share the position.

        A batch counts in `position` when it is given, so that a state that is saved after its step goes on with the
        next one.
        """
        while self.position < self._end:
            begin, end = self.position, min(self.position + self.batch_size, self._end)
            indices = self._part(begin, end)
            self.position = end
            yield self._at(indices)
        self.epoch, self.position = self.epoch + 1, 0

    @property
    def _worker(self) -> Communicator:
        return current() if self.communicator is None else self.communicator

    def _refuse_few(self, count: int) -> None:
        """Raises `ValueError` for a batch of fewer rows than there are workers: one would train on nothing."""
        if count < self._worker.size:
            raise ValueError(
                f"a batch has {count} rows for {self._worker.size} workers: expected one for each at least; pass "
                "drop_last=True, or another batch_size"
            )

    def _part(self, begin: int, end: int) -> np.ndarray:
        """The indices of this worker in a batch of all workers, the rows ``begin`` to ``end`` of the epoch."""
        count, rank, size = end - begin, self._worker.rank, self._worker.size
        self._refuse_few(count)
        first, last = begin + count * rank // size, begin + count * (rank + 1) // size
        self.weight = (last - first) * size / count
        if not self.shuffle:
            return np.arange(first, last)
        if self._order is None or self._order[0] != self.epoch:
            self._order = self.epoch, permutation(self.rows, self.seed, self.epoch)
        return self._order[1][first:last]

    def _at(self, indices: np.ndarray) -> Any:
        if isinstance(self.data, int):
            return indices
        return tree.map(lambda array: _taken(array, indices), self.data)

    def state_dict(self) -> dict[str, Any]:
        """The place in the data, as plain data, equal on all workers; it continues with any number of workers."""
        return {"format": _FORMAT, **self._identity(), "epoch": self.epoch, "position": self.position}

    def _identity(self) -> dict[str, Any]:
        """The values that decide which rows follow a place in the data."""
        return {"rows": self.rows, "seed": self.seed, "shuffle": self.shuffle}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues at the place of a state.

        Raises `StateError` for a malformed one, or one of other data or another permutation.
        """
        if not isinstance(state, Mapping) or state.get("format") != _FORMAT:
            raise StateError(f"expected a state of a shard in format {_FORMAT}, found {state!r:.80}")
        for name, expected in self._identity().items():
            if state.get(name) != expected:
                raise StateError(f"the state has {name} {state.get(name)!r}, this shard {expected!r}")
        epoch, position = state.get("epoch"), state.get("position")
        if (
            type(epoch) is not int
            or not 0 <= epoch < 2**63
            or type(position) is not int
            or not 0 <= position <= self.rows
        ):
            raise StateError(
                f"the state has epoch {epoch!r} and position {position!r}: expected integers, the position at most "
                f"{self.rows}"
            )
        self.epoch, self.position = epoch, position


def _taken(array: Any, indices: np.ndarray) -> Any:
    """The rows of an array at the indices, as an array of its library on its device."""
    library = adapter_of(array).library
    return library.take(array, library.asarray(indices, device=device_of(array)), axis=0)


def permutation(rows: int, seed: int, epoch: int) -> np.ndarray:
    """A permutation of ``range(rows)``: the order of random keys of 64 bits.

    The keys are those of Philox 4x64-10 (Salmon et al. 2011), whose stream NumPy keeps the same in all releases, with
    the key (seed, epoch).
    """
    keys = np.random.Philox(key=np.array([seed, epoch], np.uint64)).random_raw(rows)
    return np.argsort(keys, kind="stable")


def _rows(data: Any) -> int:
    """The number of rows of data."""
    if isinstance(data, int) and not isinstance(data, bool):
        return _integer("the number of rows", data, 1, 2**63 - 1)
    arrays, structure = tree.flatten(data)
    if not arrays:
        raise StructureError("the data has no arrays")
    for at, array in enumerate(arrays):
        path = str(structure.path(at)) or "data"
        if not (hasattr(array, "shape") and hasattr(array, "dtype")):
            kind = type(array).__name__
            raise StructureError(f"{path}: found {kind}, expected an array, whose first axis counts the rows")
        if not array.shape:
            raise ShapeError(f"{path}: the array has no axes: expected a first axis, which counts the rows")
        if array.shape[0] != arrays[0].shape[0]:
            first = structure.path(0)
            raise ShapeError(f"{path}: the array has {array.shape[0]} rows, {first} has {arrays[0].shape[0]}")
    return int(arrays[0].shape[0])


def _integer(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: expected an integer")
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}: expected an integer from {least} to {most}")
    return number
