"""Parameters on CUDA devices whose elements lie in another order of axes, as in channels-last tensors: updated as flat memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver
from test_device_step import assert_same_bits, slots_of

from oxigrad import cuda, optim
from oxigrad.ops.backends.memory import device_memory
from oxigrad.optim import AdamW, chain

SHAPE = (2, 3, 5, 7)


def drawn(seed: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def channels_last(x: np.ndarray) -> np.ndarray:
    """The same numbers, with the second axis the fastest in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


def strides_of(array: arrays.Array) -> Any:
    return device_memory.interface_memory(array).strides


POINTWISE: dict[str, Callable[[], Any]] = {
    "adamw": lambda: AdamW(0.1),
    "groups": lambda: AdamW(0.1, groups={"w": {"learning_rate": 0.2}}),
    "checked": lambda: AdamW(0.1, nonfinite="skip"),
    "clipped": lambda: chain(optim.ClipByValue(0.5), AdamW(0.1), optim.EMA(0.9)),
    "kahan": lambda: AdamW(0.1, rounding="kahan"),
    "accumulated": lambda: AdamW(0.1, accumulate=2),
    "few": lambda: AdamW(0.1, slot_dtype="8bit"),  # too few elements for codes
}
BY_ORDER: dict[str, Callable[[], Any]] = {
    "sums": lambda: optim.LAMB(0.1),
    "global norm": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1)),
    "checked global norm": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), nonfinite="skip"),
    "noise": lambda: optim.AdamLRD(0.1, dropout_rate=0.5, seed=7),
    "stochastic": lambda: AdamW(0.1, rounding="stochastic"),
}


@pytest.mark.parametrize("order", ["same", "row-major", "strided"])
@pytest.mark.parametrize("name", POINTWISE)
def test_a_step_is_one_launch_with_the_bits_of_the_host(name: str, order: str, mock: MockDriver) -> None:
    p, g = drawn(0), drawn(1)
    given = {"same": channels_last(g), "row-major": g, "strided": np.repeat(g, 2, axis=-1)[..., ::2]}[order]
    there, here = {"w": arrays.Array(channels_last(p)), "b": arrays.Array(p.copy())}, {"w": p.copy(), "b": p.copy()}
    a, b = POINTWISE[name](), POINTWISE[name]()
    for _ in range(3):
        assert a.update(there, {"w": arrays.Array(given), "b": arrays.Array(g)}) is there
        b.update(here, {"w": g, "b": g})
        assert_same_bits(there, here)
    assert len(mock.launches()) >= 3, "the rule was called on arrays"
    assert strides_of(there["w"]) == (105, 1, 21, 3)
    for key, slot in slots_of(a).items():
        assert_same_bits({key: slot}, {key: slots_of(b)[key]})
        if key.startswith("w ") and slot.shape:
            assert strides_of(slot) == strides_of(there["w"])


@pytest.mark.parametrize("name", BY_ORDER)
def test_rules_that_depend_on_the_order_of_elements_are_called_on_arrays(name: str, mock: MockDriver) -> None:
    p, g = drawn(0), drawn(1)
    if name == "stochastic":
        p, g = p.astype(np.float16), g.astype(np.float16)
    there, here = {"w": arrays.Array(channels_last(p))}, {"w": p.copy()}
    a, b = BY_ORDER[name](), BY_ORDER[name]()
    for _ in range(2):
        there = a.update(there, {"w": arrays.Array(channels_last(g))})
        here = b.update(here, {"w": g})
    assert not mock.launches()
    np.testing.assert_allclose(arrays.host(there["w"]), here["w"], rtol=1e-2 if name == "stochastic" else 1e-5)


def test_codes_of_eight_bits_are_slots_of_float32(mock: MockDriver) -> None:
    opt, there = AdamW(slot_dtype="8bit"), {"w": arrays.Array(channels_last(drawn(0, (4, 8, 16, 16))))}
    opt.update(there, {"w": arrays.Array(drawn(1, (4, 8, 16, 16)))})
    assert opt.slots["w"]["m"].dtype == np.float32 and len(mock.launches()) == 1


def test_a_model_whose_order_of_axes_changes_between_steps(mock: MockDriver) -> None:
    p, g = drawn(0, (4, 8, 16, 16)), drawn(1, (4, 8, 16, 16))
    here, a, b = {"w": p.copy()}, AdamW(0.1), AdamW(0.1)
    there = {"w": arrays.Array(p.copy())}
    for number in range(4):
        if number == 1:
            there = {"w": arrays.Array(channels_last(arrays.host(there["w"])))}
        elif number == 3:
            there = {"w": arrays.Array(np.ascontiguousarray(arrays.host(there["w"])))}
        a.update(there, {"w": arrays.Array(g)})
        b.update(here, {"w": g})
        assert_same_bits(there, here)
    assert a.step == 4 and len(mock.launches()) == 4


def test_codes_follow_a_change_of_the_order_of_axes(mock: MockDriver) -> None:
    p, g = drawn(0, (4, 8, 16, 16)), arrays.Array(drawn(1, (4, 8, 16, 16)))
    opt, there = AdamW(0.1, slot_dtype="8bit"), {"w": arrays.Array(p.copy())}
    opt.update(there, {"w": g})
    numbers = np.asarray(opt.slots["w"]["m"])
    opt.build({"w": arrays.Array(channels_last(p))})
    there = {"w": arrays.Array(channels_last(arrays.host(there["w"])))}
    opt.update(there, {"w": g})
    m = arrays.host(opt.slots["w"]["m"])
    np.testing.assert_allclose(m, 0.9 * numbers + 0.1 * arrays.host(g), rtol=1e-5)
    assert len(mock.launches()) == 2


def test_a_state_takes_the_order_of_the_parameter(mock: MockDriver) -> None:
    p, g = drawn(0), drawn(1)
    there, here, a, b = {"w": arrays.Array(channels_last(p))}, {"w": p.copy()}, AdamW(0.1), AdamW(0.1)
    a.update(there, {"w": arrays.Array(g)})
    b.update(here, {"w": g})
    a, b = (opt_of(state) for state in (b.state_dict(), a.state_dict()))
    a.update(there, {"w": arrays.Array(g)})
    b.update(here, {"w": g})
    assert_same_bits(there, here)
    assert strides_of(a.slots["w"]["m"]) == strides_of(there["w"])
    assert len(mock.launches()) == 2


def opt_of(state: Any) -> Any:
    made = AdamW(0.1)
    made.load_state_dict(state)
    return made


def test_an_assigned_slot_takes_the_order_of_the_parameter(mock: MockDriver) -> None:
    p, g = drawn(0), drawn(1)
    there, here, a, b = {"w": arrays.Array(channels_last(p))}, {"w": p.copy()}, AdamW(0.1), AdamW(0.1)
    for number in range(2):
        a.update(there, {"w": arrays.Array(g)})
        b.update(here, {"w": g})
        if not number:
            a.slots["w"]["m"], b.slots["w"]["m"] = arrays.Array(p.copy()), p.copy()
    assert_same_bits(there, here)
    assert len(mock.launches()) == 2


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 3), (1, 2), (1, 2)),
        ((2, 1, 3), (1, 99, 2), (1, 0, 2)),
        ((2, 3), (3, 2), None),
        ((2, 3), (0, 1), None),
        ((2, 3), (-1, 2), None),
        ((2, 2), (1, 1), None),
        ((), (), ()),
    ],
)
def test_dense_strides(shape: tuple[int, ...], strides: tuple[int, ...], expected: Any) -> None:
    assert device_memory.dense_strides(shape, strides) == expected


def test_reasons(mock: MockDriver) -> None:
    assert cuda.why(arrays.Array(channels_last(drawn(0)))) == ""
    assert "lie one after the other" in cuda.why(arrays.Array(drawn(0)[..., ::2]))
