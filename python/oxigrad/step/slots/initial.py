"""The slots of a parameter before its first step."""

from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import ShapeError
from oxigrad._names import path_name
from oxigrad.ops.backends import REFUSALS, device_of, namespace, to_host, widest_float
from oxigrad.ops.core.aliasing import WrittenError, apart
from oxigrad.rules.core.slots import Formula, Slot
from oxigrad.step.arrays.places import check_readable
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.arrays.sparse_rows import LAST_STEP
from oxigrad.step.parameters.rule_context import neutral
from oxigrad.step.parameters.rule_group import RuleGroup, slot_dtype


def new_slots(
    group: RuleGroup,
    path: str,
    p: Any,
    *,
    on_host: bool,
    coded: bool,
    whole: int | None = None,
    existing: Container[str] = (),
    values: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The initial slots of the parameter ``p`` but the ``existing`` ones, by the group's hyperparameters or ``values``.

    ``on_host`` tells whether the core updates the parameter, ``coded`` whether what updates it reads codes. Of a slice,
    ``whole`` is the number of elements of the parameter. Slots of one number are arrays without axes, of the most
    precise floating-point dtype of the library. Raises `ShapeError` with the key path, and `ArrayMemoryError` for a
    parameter that cannot be read.
    """

    def initial(slot: Slot) -> Any:
        dtype = slot_dtype(group, slot, p, coded=coded, whole=whole)
        if isinstance(dtype, str):
            codes = Quantized.zeros(tuple(p.shape), like=None if on_host else p, dtype=dtype)
            if slot.begin is not None:
                codes[...] = to_host(slot.first(xp, p, namespace(p).float32, value))
            return codes
        return slot.first(xp, p, dtype, value)

    def value(name: str) -> Any:
        return values[name] if name in values else group.value(name)

    slots = [slot for slot in group.rule().slots if slot.name not in existing]
    if not slots and not group.catches_up:
        return {}
    try:
        # The library's mode tells whether it has float64 for numbers: what is neutral to modes may have it where the
        # caller has not.
        first: dict[str, Any] = {}
        for slot in slots:
            first[slot.name] = _number(slot.begin, p, on_host=on_host) if slot.is_number else None
        with neutral([p]):
            for slot in slots:
                if not slot.is_number:
                    first[slot.name] = initial(slot)
    except (ShapeError, WrittenError) as error:
        raise type(error)(f"{path_name(path)}: {error}") from error.__cause__
    except REFUSALS:
        check_readable(path, "parameter", p)
        raise
    if group.catches_up and p.shape and LAST_STEP not in existing:
        first[LAST_STEP] = np.zeros(p.shape[0], np.int64) if on_host else _zero_steps(p)
    # A function may return the parameter itself, or one array for two slots; zeros and numbers are new arrays.
    computed: dict[str, Any] = {}
    for slot in slots:
        if isinstance(slot.begin, Formula) and not isinstance(first[slot.name], Quantized):
            computed[slot.name] = first[slot.name]
    if computed:
        first |= zip(computed, apart([*computed.values()], [p]), strict=True)
    return {name: value for name, value in first.items() if value is not None}


def misshapen(
    group: RuleGroup, path: str, p: Any, slots: Mapping[str, Any], *, on_host: bool, coded: bool
) -> str | None:
    """The name of a slot that another shape of the parameter ``p`` began; None where all fit.

    Slots that present flags lack fit, unless no slot is one of a new parameter.
    """
    rule = group.rule()
    present = [slot.name for slot in rule.slots if not slot.is_number and slot.name in slots]
    if rule.elementwise:
        expected = dict.fromkeys(present, tuple(p.shape))
    else:
        new = new_slots(group, path, p, on_host=on_host, coded=coded)
        expected = {name: tuple(new[name].shape) for name in present if name in new}
    differing = [name for name, shape in expected.items() if tuple(slots[name].shape) != shape]
    return next(iter(differing or (present if not expected else ())), None)


def _number(value: float, p: Any, *, on_host: bool) -> Any:
    """A number as an array without axes of the parameter's library; of NumPy for a parameter in host memory."""
    if on_host:
        return np.array(value, np.float64)
    library = namespace(p)
    device = device_of(p)
    return library.full((), value, dtype=widest_float(library, device), device=device)


def _zero_steps(p: Any) -> Any:
    """A zero for each row, of the default integer dtype of the array's library."""
    library, device = namespace(p), device_of(p)
    dtype = library.__array_namespace_info__().default_dtypes(device=device)["integral"]
    return library.zeros(p.shape[0], dtype=dtype, device=device)


def is_of_elements(slot: Slot, group: RuleGroup) -> bool:
    """Whether a slot of a piece begins with the numbers that it has in the slot of the parameter."""
    if not isinstance(slot.begin, Formula):
        return True
    p = np.linspace(-1.0, 2.0, 6)
    whole, part = (slot.first(xp, each, p.dtype, group.value) for each in (p, p[2:5]))
    if whole is None or part is None:
        return whole is part
    return whole.shape == p.shape and part.shape == (3,) and np.array_equal(np.asarray(whole)[2:5], np.asarray(part))
