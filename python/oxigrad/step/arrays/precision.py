"""Precision: dtypes of slots; master weights, compensation and stochastic rounding for half precision."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import DtypeError
from oxigrad.ops.backends import dtype_in, dtype_name, namespace, size_of
from oxigrad.rules.core.rule import Rule, Stages
from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.quantized import CODECS

SLOT_DTYPES = (None, "float32", "bfloat16", "float16", *CODECS)
ROUNDINGS = ("nearest", "stochastic", "kahan")
HALVES = ("bfloat16", "float16")
# Slots of the optimizer's own have names that no parameter of a rule can have.
MASTER, COMPENSATION = "master-weights", "kahan-compensation"
# Smaller arrays stay as they are: there is little to save (the limit is that of bitsandbytes).
SMALLEST_CODED = 4096


def half(array: Any) -> str | None:
    """The name of the array's dtype if it has two bytes, else None.

    >>> half(np.ones(2, np.float16)), half(np.ones(2))
    ('float16', None)
    """
    name = dtype_name(array.dtype)
    return name if name in HALVES else None


@dataclasses.dataclass(frozen=True)
class Precision:
    """The options of an optimizer about precision; see `oxigrad.optim.Optimizer`.

    With ``keeps_halves``, slots of a parameter of half precision have its dtype, as PyTorch's, where they would have
    float32.
    """

    slot_dtype: str | None = None
    master: bool = False
    rounding: str = "nearest"
    keeps_halves: bool = False

    def __post_init__(self) -> None:
        if self.master and self.rounding == "kahan":
            raise ValueError("master=True and rounding='kahan' are mutually exclusive")

    def around(self, rule: Rule, storage: str | None) -> Rule:
        """The rule for parameters of half precision (``storage``), given in float32.

        It has master weights or a compensation.
        """
        if storage is None:
            return rule
        if self.master:
            return rule.remembering(_on_master)(rule)
        return rule.remembering(_compensated)(rule, storage) if self.rounding == "kahan" else rule

    def whole(self, p: Any, slots: Mapping[str, Any]) -> Any:
        """The parameter in the dtype in which kernels compute: its master weights, or with its compensation."""
        if half(p) and self.master:
            return slots[MASTER]
        return widened(p) + widened(slots[COMPENSATION]) if half(p) and self.rounding == "kahan" else widened(p)

    def kept_in(self, slot: Slot, p: Any, *, coded: bool, whole: int | None = None) -> Any:
        """The dtype of a slot of ``p``, which is a parameter, or a slice of one of ``whole`` elements.

        It is the name of a codec for codes, where what updates the parameter reads them (``coded``).
        """
        storage = half(p)
        name = slot.dtype or ("float32" if storage and not self.keeps_halves else None)
        if self.slot_dtype and slot.is_moment:
            name = self.slot_dtype
            if name in CODECS and (not coded or (size_of(p.shape) if whole is None else whole) < SMALLEST_CODED):
                name = "float32"
        return name if name in CODECS else p.dtype if name in (None, storage) else _named(namespace(p), name)


def check_slot_dtype(
    name: str, option: str, slot_dtype: str | None, rules: Iterable[tuple[Rule, Collection[str]]]
) -> None:
    """Raises `ValueError` for an ``option`` without effect on the optimizer ``name``.

    The rules each have their absent slots.
    """
    if slot_dtype is None:
        return
    rules = [*rules]
    present = [(rule, slot) for rule, absent in rules for slot in rule.slots if slot.name not in absent]
    moments = [rule for rule, slot in present if slot.is_moment]
    if any(rule.elementwise or slot_dtype not in CODECS for rule in moments):
        return
    if not present and any(slot.is_moment for rule, _ in rules for slot in rule.slots):
        return  # SGD without momentum, which has nothing to keep
    if moments:
        others = ", ".join(map(repr, (each for each in SLOT_DTYPES[1:] if each not in CODECS)))
        why, expected = "its rule is called on arrays, which reads no codes", f"{others} or None"
    else:
        why, expected = "it keeps no moments", "None"
    raise ValueError(f"{name}: {option}={slot_dtype!r} would have no effect, since {why}: expected {expected}")


def _named(library: Any, name: str) -> Any:
    """The dtype of this name, of NumPy's too the object; `DtypeError` where the library has none."""
    dtype = dtype_in(library, name)
    try:
        return np.dtype(name) if isinstance(dtype, str) else dtype
    except TypeError:
        raise DtypeError(
            f"there is no dtype {name} among {library.__name__}'s: import ml_dtypes to give NumPy one"
        ) from None


def widened(array: Any) -> Any:
    """The array in the dtype in which kernels compute: float32 where it is half precision."""
    return xp.astype(array, namespace(array).float32) if half(array) else array


def _on_master(rule: Rule) -> Rule:
    """The rule applied to a float32 copy of the parameter, the slot `MASTER`; the parameter is the copy rounded."""

    def call(xp: Any, p: Any, g: Any, *slots: Any, **named: Any) -> Stages:
        *rule_slots, master = slots
        new, *after = yield from rule.stages(xp, master, g, rule_slots, named)
        return [p if new is master else new, *after, new]

    return rule.with_slot(call, dataclasses.replace(Slot.copy(name=MASTER), dtype="float32"))


def _compensated(rule: Rule, storage: str) -> Rule:
    """The rule applied to the parameter plus its last rounding error, a slot `COMPENSATION` of its dtype (Kahan 1965).

    So the two hold about 16 significant bits of bfloat16, 22 of float16.
    """

    def call(xp: Any, p: Any, g: Any, *slots: Any, **named: Any) -> Stages:
        *rule_slots, compensation = slots
        whole = p + compensation
        new, *after = yield from rule.stages(xp, whole, g, rule_slots, named)
        if new is whole:
            return [p, *after, compensation]
        near = getattr(xp, f"round_to_{storage}")(new)
        return [near, *after, new - near]

    return rule.with_slot(call, Slot(COMPENSATION, dtype=storage))


def with_written(master: Any, p: Any, rounding: str) -> Any:
    """Master weights, with the elements of the parameter ``p`` in place of those that it is no rounding of.

    Such elements were written outside of a step. Stochastic ``rounding`` has two roundings of a number.
    """
    near = xp.astype(master, p.dtype)
    is_rounding = near == p
    if rounding == "stochastic":
        above = xp.astype(near, master.dtype) < master
        towards = xp.astype(xp.where(above, xp.inf, -xp.inf) + xp.zeros_like(master), p.dtype)
        is_exact = xp.astype(near, master.dtype) == master
        is_rounding = is_rounding | (~is_exact & (xp.nextafter(near, towards) == p))
    return xp.where(is_rounding, master, widened(p))


def rounded(value: Any, dtype: Any, random: Any) -> Any:
    """A float32 array in a dtype of half precision, rounded stochastically, as kernels do it.

    ``random`` are whole numbers from 0 to 65535. A value between two numbers of the dtype is rounded away from zero
    with a probability proportional to its distance from the one nearer to zero, so that rounding is unbiased.
    """
    near = xp.astype(value, dtype)
    zero = xp.zeros_like(near)
    low = xp.where(xp.abs(xp.astype(near, value.dtype)) > xp.abs(value), xp.nextafter(near, zero), near)
    high = xp.nextafter(low, xp.astype(xp.where(value < 0, -xp.inf, xp.inf) + xp.zeros_like(value), dtype))
    below, above, inner = (xp.astype(x, value.dtype) for x in (low, high, xp.nextafter(low, zero)))
    # Above the largest finite number, the spacing is taken to be that below it.
    share = (value - below) / xp.where(xp.isfinite(above), above - below, below - inner)
    goes_up = xp.floor(share * 65536.0) + random >= 65536.0
    return xp.where(xp.isfinite(value), xp.where(goes_up, high, low), near)
