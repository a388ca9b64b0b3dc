"""Slots of eight and four bits on CUDA devices: codes and scales in memory of the device, with the bits of the host's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver
from test_device_step import assert_same_bits, follow, on_device, slots_of

import oxigrad as ox
from oxigrad import cuda, optim
from oxigrad.optim import SGD, Adam, AdamW, Quantized, chain
from oxigrad.step.arrays.quantized import CODECS

SHAPES = {"w": (80, 60), "b": (5000,), "few": (7,)}  # the last one is too small for codes


def drawn(seed: int, dtype: Any = np.float32) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in SHAPES.items()}


def coded(opt: Any) -> set[str]:
    """The slots that are codes in memory of a device."""
    return {
        f"{path} {name}"
        for path, own in opt.slots.items()
        for name, slot in own.items()
        if isinstance(slot, Quantized)
        and isinstance(slot.codes, arrays.Array)
        and isinstance(slot.scales, arrays.Array)
    }


MAKERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: SGD(0.1, momentum=0.9, slot_dtype="8bit"),
    "momentum of four bits": lambda: SGD(0.1, momentum=0.9, slot_dtype="4bit"),
    "adamw of four bits": lambda: AdamW(0.1, slot_dtype="4bit"),
    "lamb of four bits": lambda: optim.LAMB(0.1, slot_dtype="4bit"),
    "clipped, of four bits": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), slot_dtype="4bit"),
    "adamw": lambda: AdamW(0.1, slot_dtype="8bit"),
    "amsgrad": lambda: Adam(0.1, amsgrad=True, slot_dtype="8bit"),
    "lamb": lambda: optim.LAMB(0.1, slot_dtype="8bit"),
    "clipped": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), slot_dtype="8bit"),
    "checked": lambda: AdamW(0.1, nonfinite="skip", slot_dtype="8bit"),
    "accumulated": lambda: AdamW(0.1, accumulate=2, slot_dtype="8bit"),
    "frozen": lambda: AdamW(0.1, slot_dtype="8bit", groups={"few": None}),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.one_in(4)
def test_steps_give_the_codes_of_the_host(name: str, mock: MockDriver) -> None:
    opt, _ = follow(MAKERS[name], drawn(0), drawn(1))
    assert {path.split()[0] for path in coded(opt)} == {"w", "b"}
    assert len(mock.launches()) >= 3, "the rule was called on arrays"


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("rounding", ["nearest", "stochastic", "kahan"])
def test_parameters_of_half_precision(rounding: str, kind: str, mock: MockDriver) -> None:
    opt, _ = follow(lambda: AdamW(0.1, slot_dtype=kind, rounding=rounding), drawn(0, np.float16), drawn(1, np.float16))
    assert coded(opt) == {"w m", "w v", "b m", "b v"}
    assert len(mock.launches()) == 2 * 3  # one of parameters with codes, one of those without


def test_groups_with_and_without_codes_are_two_launches(mock: MockDriver) -> None:
    follow(MAKERS["adamw"], drawn(0), drawn(1), steps=1)
    assert [grid for _, grid, *_ in mock.launches()] == [4, 1]


@pytest.mark.parametrize("kind", CODECS)
def test_files_of_device_and_host_are_equal(kind: str, mock: MockDriver, tmp_path: Path) -> None:
    model, grads = drawn(0), drawn(1)
    there, a, b = on_device(model), AdamW(0.1, slot_dtype=kind), AdamW(0.1, slot_dtype=kind)
    a.update(there, on_device(grads))
    b.update(model, grads)
    for name, opt in {"device": a, "host": b}.items():
        opt.save(tmp_path / name)
    assert (tmp_path / "device").read_bytes() == (tmp_path / "host").read_bytes()


@pytest.mark.parametrize("name", ["adamw", "adamw of four bits"])
@pytest.mark.parametrize("through_file", [False, True])
def test_a_state_goes_from_one_memory_to_the_other(
    through_file: bool, name: str, mock: MockDriver, tmp_path: Path
) -> None:
    model, grads = drawn(0), drawn(1)
    there, here = on_device(model), {name: x.copy() for name, x in model.items()}
    make = MAKERS[name]

    def moved(opt: Any) -> Any:
        made = make()
        if through_file:
            opt.save(tmp_path / "state")
            made.load(tmp_path / "state")
        else:
            made.load_state_dict(opt.state_dict())
        return made

    a, b = make(), make()
    a.update(there, on_device(grads))
    b.update(here, grads)
    a, b = moved(b), moved(a)
    for _ in range(2):
        a.update(there, on_device(grads))
        b.update(here, grads)
        assert_same_bits(there, here)
        assert_same_bits(slots_of(a), slots_of(b))
    assert coded(a) == {"w m", "w v", "b m", "b v"} and not coded(b)


def test_a_copy_has_codes_of_its_own(mock: MockDriver) -> None:
    there, grads, opt = on_device(drawn(0)), on_device(drawn(1)), MAKERS["adamw"]()
    opt.update(there, grads)
    again, other = {name: arrays.Array(arrays.host(x)) for name, x in there.items()}, copy.deepcopy(opt)
    before = {name: arrays.host(x) for name, x in slots_of(other).items()}
    opt.update(there, grads)
    assert_same_bits(slots_of(other), before)
    other.update(again, grads)
    assert_same_bits(again, {name: arrays.host(x) for name, x in there.items()})


@pytest.mark.parametrize("kind", CODECS)
def test_codes_can_be_read_and_assigned(kind: str, mock: MockDriver) -> None:
    model, grads = drawn(0), drawn(1)
    there, a, b = on_device(model), AdamW(0.1, slot_dtype=kind), AdamW(0.1, slot_dtype=kind)
    a.update(there, on_device(grads))
    b.update(model, grads)
    m = a.slots["w"]["m"]
    assert m.dtype == kind and m.shape == (80, 60)
    assert m.nbytes == {"8bit": 4800 + 4 * 19, "4bit": 2400 + 4 * 38}[kind]
    np.testing.assert_array_equal(np.asarray(m), np.asarray(b.slots["w"]["m"]))
    for opt in (a, b):
        opt.slots["w"]["m"][3] = 0.5  # in place
        opt.slots["w"]["v"] = b.slots["w"]["v"]  # of the host
    a.update(there, on_device(grads))
    b.update(model, grads)
    assert_same_bits(there, model)
    assert_same_bits(slots_of(a), slots_of(b))
    with pytest.raises(ox.DtypeError, match=f"^w: the slot m has dtype {kind}: found float32"):
        a.slots["w"]["m"] = arrays.Array(np.zeros((80, 60), np.float32))


def test_gradients_that_are_not_contiguous(mock: MockDriver) -> None:
    wide = np.random.default_rng(3).standard_normal((80, 120)).astype(np.float32)
    there, here = {"w": arrays.Array(drawn(0)["w"])}, {"w": drawn(0)["w"]}
    a, b = MAKERS["adamw"](), MAKERS["adamw"]()
    for _ in range(2):
        a.update(there, {"w": arrays.Array(wide)[:, ::2]})
        b.update(here, {"w": wide[:, ::2].copy()})
        assert_same_bits(there, here)
    assert coded(a) == {"w m", "w v"}


def test_rows_are_updated_with_slots_of_float32(mock: MockDriver) -> None:
    """The rule on arrays, which sparse gradients take, reads no codes."""
    there, opt = {"w": arrays.Array(drawn(0)["w"])}, Adam(0.1, slot_dtype="8bit", sparse="lazy")
    rows = ox.SparseRows(arrays.Array(np.array([0, 2])), arrays.Array(np.ones((2, 60), np.float32)), (80, 60))
    opt.update(there, {"w": rows})
    assert not coded(opt) and opt.slots["w"]["m"].dtype == np.float32


@pytest.mark.parametrize("kind", CODECS)
def test_tensors_of_pytorch(kind: str, library: Any) -> None:
    torch = library("torch")
    zeros = Quantized.zeros((3, 100), like=torch.zeros(2), dtype=kind)
    assert zeros.codes.dtype == torch.uint8 and zeros.scales.shape == {"8bit": (2,), "4bit": (3,)}[kind]
    assert not np.any(np.asarray(zeros))
    zeros[1] = 2.0
    np.testing.assert_array_equal(np.asarray(zeros)[1], np.full(100, 2.0, np.float32))
    found = zeros.copied_like(Quantized.zeros((3, 100), dtype=kind))
    assert isinstance(found.codes, np.ndarray)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(zeros))


def test_the_text_reads_codes() -> None:
    text = cuda.source(AdamW(slot_dtype="8bit"), {"w": np.zeros(5000, np.float32), "b": np.zeros(3, np.float32)})
    assert text.count("struct OxLaunch {") == 2 and "// w\n" in text and "// b\n" in text
