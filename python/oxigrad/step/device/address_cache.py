"""The places of a step's arrays on devices, by which the next step sees that nothing but addresses has changed."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.cuda.launch import DeviceLeaf
from oxigrad.ops.backends import DeviceMemory, adapter_of, is_array, memory_of


class AddressCache:
    """The leaves of a step by device, valid while every array is where it was, or has moved only.

    ``arrays`` are all parameters, those with the ``positions`` of leaves, then all gradients. Slots are looked at where
    they are ``exposed``: else only steps access them. Where libraries do not tell places in a fast way, descriptions of
    the memory are compared.
    """

    def __init__(
        self,
        positions: Iterable[int],
        leaves: dict[int, list[DeviceLeaf]],
        arrays: list[Any],
        slots: list[Any],
        *,
        exposed: bool,
    ) -> None:
        self.leaves = leaves
        self._exposed = exposed
        #: The arrays of the slots, where they are exposed.
        self.slots = slots
        looked_at = [*arrays, *slots]
        self._places = _core.Places.of(looked_at)
        self._memory = [] if self._places else _described(looked_at)
        self._types = [] if self._places else [*map(type, looked_at)]
        numbers = {number: at for at, number in enumerate(positions)}
        #: The numbers of the leaves of each device among all parameters on devices.
        self.positions: dict[int, list[int]] = {
            device: [numbers[leaf.position] for leaf in device_leaves] for device, device_leaves in leaves.items()
        }
        # The device of each parameter, and the number of its leaf there.
        self._device_of, self._leaf_of = np.zeros((2, len(arrays) // 2), np.int64)
        for device, numbers_there in self.positions.items():
            self._device_of[numbers_there], self._leaf_of[numbers_there] = device, np.arange(len(numbers_there))
        # The first parameter of each type on each device: a type has one library.
        first = {
            device: {type(arrays[at]): at for at in reversed(numbers_there)}
            for device, numbers_there in self.positions.items()
        }
        self.first: dict[int, list[int]] = {device: sorted(of_type.values()) for device, of_type in first.items()}

    def moved(self, arrays: list[Any], *, exposed: bool) -> dict[int, np.ndarray] | None:
        """The moves of arrays since the last call, by device: see `DeviceStep.relocate`; None for other changes."""
        if exposed is not self._exposed:
            return None
        looked_at = [*arrays, *self.slots]
        moves_of_arrays = self._places.moved(looked_at) if self._places else self._moved(looked_at)
        if not moves_of_arrays:
            return None if moves_of_arrays is None else {}
        at, addresses = np.frombuffer(moves_of_arrays, np.uint64).reshape(-1, 2).T
        if at[-1] >= len(arrays):
            return None  # a slot
        at, count = at.astype(np.int64), len(arrays) // 2
        is_parameter = at < count
        at -= np.where(is_parameter, 0, count)
        moves = np.stack([self._leaf_of[at].astype(np.uint64), is_parameter.astype(np.uint64), addresses], axis=1)
        there = self._device_of[at]
        return {device: moves[there == device] for device in np.unique(there).tolist()}

    def _moved(self, arrays: list[Any]) -> bytes | None:
        if [*map(type, arrays)] != self._types:
            return None
        before, self._memory = self._memory, _described(arrays)
        if self._memory == before:
            return b""
        pairs = enumerate(zip(self._memory, before, strict=True))
        moved = [(at, now, then) for at, (now, then) in pairs if now != then]
        if any(now is None or then is None or now[1:] != then[1:] for _, now, then in moved):
            return None
        return np.array([(at, now.address) for at, now, _ in moved if now is not None], np.uint64).tobytes()


def _described(arrays: Iterable[Any]) -> list[DeviceMemory | None]:
    """The memory of arrays, most of them of one type."""
    memories: list[DeviceMemory | None] = []
    kind, describe = None, memory_of
    for array in arrays:
        if type(array) is not kind:
            kind, describe = type(array), adapter_of(array).device_memory if is_array(array) else _nowhere
        memories.append(describe(array))
    return memories


def _nowhere(_: Any) -> None:
    """The memory of what is no array."""
