"""The slots of one parameter, by name."""

from collections.abc import Mapping
from typing import Any, NoReturn

from oxigrad._core import DtypeError, ShapeError
from oxigrad.ops.backends import copied_like, dtype_name
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.parameters.hyperparameter import Version
from oxigrad.step.parameters.slots import Slots


class ParameterSlots(dict[str, Any], Slots):
    """A dict of slots whose arrays can be replaced by others of the same shape and dtype, which are copied.

    The next step starts from the assigned values; each assignment raises ``version``. Slots cannot be added or removed:
    the rule declares them.
    """

    __slots__ = ("_kinds", "_path", "_version")

    def __init__(self, path: str, slots: Mapping[str, Any], version: Version) -> None:
        super().__init__(slots)
        self._path = path
        self._kinds = {name: (tuple(slot.shape), slot.dtype) for name, slot in self.items()}
        self._version = version

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self:
            raise KeyError(f"{self._path}: there is no slot {name}; there are {', '.join(self) or 'none'}")
        before = self[name]
        array = value if isinstance(value, Quantized) or hasattr(value, "dtype") else None
        dtype = dtype_name(array.dtype) if array is not None else type(value).__name__
        if array is None or dtype != dtype_name(before.dtype):
            expected = dtype_name(before.dtype)
            raise DtypeError(f"{self._path}: the slot {name} has dtype {expected}: found {dtype}")
        if tuple(value.shape) != tuple(before.shape):
            shapes = tuple(before.shape), tuple(value.shape)
            raise ShapeError(f"{self._path}: the slot {name} has shape {shapes[0]}: found {shapes[1]}")
        copied = value.copied_like(before) if isinstance(value, Quantized) else copied_like(value, before)
        super().__setitem__(name, copied)
        self._version.raise_structure()

    def check(self) -> None:
        """Raises `ShapeError` or `DtypeError` for a slot whose shape or dtype was changed in place."""
        for name, (shape, dtype) in self._kinds.items():
            slot = self[name]
            if tuple(slot.shape) != shape:
                raise ShapeError(f"{self._path}: the slot {name} has shape {tuple(slot.shape)}, it had {shape}")
            if slot.dtype is not dtype and slot.dtype != dtype:
                raise DtypeError(f"{self._path}: the slot {name} has dtype {slot.dtype}, it had {dtype}")

    def of_rule(self) -> Mapping[str, Any]:
        """The slots as a rule is called on them."""
        return self

    def write(self, name: str, value: Any, writes: Any) -> None:
        """Adds the assignment of a new value to the writes of a step."""
        writes.assignments.append((self, name, value))

    def update(self, *args: Any, **named: Any) -> None:
        """Assigns to each of these slots."""
        for name, value in dict(*args, **named).items():
            self[name] = value

    def __ior__(self, other: Any) -> "ParameterSlots":
        self.update(other)
        return self

    def _refuse(self, *_: Any) -> NoReturn:
        """Raises `TypeError`."""
        raise TypeError(f"{self._path}: slots can be replaced, and neither added nor removed")

    __delitem__: Any = _refuse
    pop: Any = _refuse
    popitem: Any = _refuse
    clear: Any = _refuse

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The slot of this name; raises `TypeError` where there is none."""
        return self[name] if name in self else self._refuse()

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)
