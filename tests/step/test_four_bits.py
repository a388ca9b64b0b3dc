"""Slots of four bits, compared with the codes and steps of torchao."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_precision import bits, run

import oxigrad as ox
from oxigrad import optim
from oxigrad.step.arrays.quantized import Quantized

TORCHAO: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "four_bits.json").read_text())
BLOCKS = {case["name"]: case for case in TORCHAO["blocks"]}
# Blocks of which torchao fixes the map by the slot; ours are coded by what is in them.
DIFFERENT = ("unsigned zeros", "unsigned, some zeros", "unsigned, below 1e-12", "signed, positive")
SIGNED, UNSIGNED = (np.array(TORCHAO[name], np.float32) for name in ("signed", "unsigned"))


def read(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def coded(numbers: np.ndarray) -> Quantized:
    made = Quantized.zeros(numbers.shape, dtype="4bit")
    made[...] = numbers
    return made


def numbers(seed: int, count: int) -> np.ndarray:
    """Numbers of eleven powers of two, exact in float32."""
    i = np.arange(count, dtype=np.int64)
    mantissa = ((31 * i * i + 17 * i + 101 * seed) % 10007 - 5003).astype(np.float32) / np.float32(4096)
    return mantissa * np.exp2(-((5 * i + seed) % 11)).astype(np.float32)


# --- codes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BLOCKS if name not in DIFFERENT])
def test_codes_are_those_of_torchao(name: str) -> None:
    case = BLOCKS[name]
    found = coded(read(case["numbers"], "<f4"))
    np.testing.assert_array_equal(found.codes, read(case["codes"], "u1"))
    if name != "zeros":  # of which the least scale is another
        np.testing.assert_array_equal(np.abs(found.scales), read(case["scales"], "<f4"))
    np.testing.assert_array_equal(np.signbit(found.scales), not case["signed"])
    assert bits(np.asarray(found)).tolist() == bits(read(case["decoded"], "<f4")).tolist()


def test_maps_are_those_of_torchao() -> None:
    codes = np.arange(256, dtype=np.uint8)
    for scale, shares in ((1.0, SIGNED), (-1.0, UNSIGNED)):
        found = np.asarray(Quantized(codes, np.full(4, scale, np.float32), (512,)))
        np.testing.assert_array_equal(found[::2], shares[codes >> 4])
        np.testing.assert_array_equal(found[1::2], shares[codes & 15])


def test_zeros_of_a_second_moment_stay_zero() -> None:
    """In torchao they are a sixteenth of the largest, or 6e-14 where all are zero."""
    for name in ("unsigned zeros", "unsigned, some zeros"):
        case = BLOCKS[name]
        x, theirs = read(case["numbers"], "<f4"), read(case["decoded"], "<f4")
        found = np.asarray(coded(x))
        assert np.all(theirs > 0)
        np.testing.assert_array_equal(found == 0, x == 0)
        largest = np.max(x)
        assert np.all(np.abs(found - x) <= 0.1125 * largest)
        assert np.all(found[x > 0] >= np.float32(0.0055) * largest)


def test_second_moments_below_1e_12_have_a_scale_of_their_own() -> None:
    """In torchao their least scale is 1e-12, of which they become a sixteenth."""
    case = BLOCKS["unsigned, below 1e-12"]
    x, theirs = read(case["numbers"], "<f4"), read(case["decoded"], "<f4")
    found = np.asarray(coded(x))
    assert np.max(np.abs(found - x)) <= np.max(x) / 16 < np.max(np.abs(theirs - x))
    assert np.max(theirs / x) > 1e3


def test_a_first_moment_of_positive_numbers_is_coded_by_sixteenths() -> None:
    case = BLOCKS["signed, positive"]
    x = read(case["numbers"], "<f4")
    found = coded(x)
    nearest = UNSIGNED[np.argmin(np.abs(x[:, None] / np.max(x) - UNSIGNED), axis=1)]
    np.testing.assert_array_equal(np.asarray(found), nearest * np.max(x))
    assert found.scales[0] < 0


@pytest.mark.parametrize("length", [1, 2, 3, 127, 128, 129, 130, 255, 257, 4097])
def test_tails_are_blocks_of_their_own(length: int) -> None:
    """Memory after the last number changes neither its scale nor a bit of memory."""
    for x in (numbers(3, length), np.abs(numbers(3, length)) + np.float32(1e-3)):
        found = coded(x)
        assert found.codes.shape == (-(-length // 2),) and found.scales.shape == (-(-length // 128),)
        largest = np.array([np.max(np.abs(block)) for block in np.split(x, range(128, length, 128))])
        np.testing.assert_array_equal(np.abs(found.scales), largest)
        scale = np.repeat(largest, 128)[:length]
        assert np.all(np.abs(np.asarray(found) - x) <= 0.1126 * scale)
        if length % 2:
            assert found.codes[-1] & 15 == 0
        for start in range(0, length, 128):
            block = coded(x[start : start + 128])
            np.testing.assert_array_equal(block.codes, found.codes[start // 2 : start // 2 + 64])


def test_every_pair_of_codes_comes_back() -> None:
    """Numbers that a block can have are coded as what they are, if the largest is there."""
    first, second = np.divmod(np.arange(256), 16)
    pairs = np.stack([first, second], axis=1).reshape(-1)
    for shares, codes in ((SIGNED, pairs), (UNSIGNED, pairs)):
        for largest in (1.0, 3.7e-20, 2.5e30):
            x = shares[codes].copy() * np.float32(largest)
            x[::128] = np.float32(largest)
            found = coded(x)
            expected = codes.copy()
            expected[::128] = 15
            np.testing.assert_array_equal(found.codes, expected[::2] << 4 | expected[1::2])


# --- steps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TORCHAO["steps"], ids=lambda case: f"{case['steps']} steps")
def test_steps_are_those_of_torchao(case: dict[str, Any]) -> None:
    """The codes differ where a moment lies next to the middle of two: the last bit of a float32 decides."""
    p = numbers(11, 4096)
    opt = optim.AdamW(0.01, weight_decay=case["weight_decay"], slot_dtype="4bit")
    run(opt, p, [numbers(20 + k, 4096) + np.float32(2.0**-14) for k in range(case["steps"])])
    for name in ("m", "v"):
        slot = opt.slots["p"][name]
        codes, scales = read(case[name]["codes"], "u1"), read(case[name]["scales"], "<f4")
        np.testing.assert_allclose(np.abs(slot.scales), scales, rtol=1e-6)
        apart = np.stack([slot.codes >> 4, slot.codes & 15]).astype(int) - np.stack([codes >> 4, codes & 15])
        assert np.max(np.abs(apart)) <= 1 and np.mean(apart != 0) < 1e-3, name
    expected = read(case["p"], "<f4")
    far = np.abs(p[:1024] - expected) > 1e-4 * 0.01 * case["steps"]  # torchao corrects biases in float32
    assert np.mean(far) < 2e-3


def test_a_second_moment_that_is_rarely_written_never_divides_by_zero() -> None:
    """Most gradients are zero, as those of a table of words: zeros stay, and no step is longer than those of float32 by far."""
    generator = np.random.default_rng(0)
    exact, found = (np.zeros(8192, np.float32) for _ in range(2))
    plain, opt = optim.AdamW(1e-3, weight_decay=0.0), optim.AdamW(1e-3, weight_decay=0.0, slot_dtype="4bit")
    for _ in range(50):
        g = np.where(generator.random(8192) < 0.05, generator.standard_normal(8192), 0.0).astype(np.float32)
        g[:1000] = 0.0
        run(plain, exact, [g])
        run(opt, found, [g])
    assert not np.any(found[:1000])
    assert np.max(np.abs(found)) < 3 * np.max(np.abs(exact))


def test_a_slot_of_other_codes_is_refused_by_name() -> None:
    p = np.zeros(5000, np.float32)
    opt, other = (optim.Adam(slot_dtype=kind) for kind in ("4bit", "8bit"))
    for each in (opt, other):
        run(each, p, [np.ones(5000, np.float32)])
    with pytest.raises(ox.DtypeError, match="^p: the slot m has dtype 4bit: found 8bit"):
        opt.slots["p"]["m"] = other.slots["p"]["m"]
    with pytest.raises(ox.StateError, match=r"p: slot m has shape \(5000,\) and dtype 8bit, expected .* dtype 4bit"):
        opt.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match=r"found codes of shape \(5000,\): expected \(2500,\), for 5000 numbers of 4"):
        Quantized(np.zeros(5000, np.uint8), np.zeros(40, np.float32), (5000,))
    with pytest.raises(ox.ShapeError, match="found 3 bytes of codes for 8 numbers, expected 4"):
        ox._core.copy((np.zeros(3, np.uint8), np.zeros(1, np.float32), (8,)), np.zeros(8))
    with pytest.raises(ValueError, match="is copied to"):
        ox._core.copy((np.zeros(1, np.uint8), np.zeros(1, np.float32), (1,)), np.zeros(8))


def test_a_file_with_another_shape_is_refused(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    opt = optim.SGD(momentum=0.9, slot_dtype="4bit")
    run(opt, np.zeros((100, 50), np.float32), [np.ones((100, 50), np.float32)])
    opt.save(tmp_path / "state")
    with safetensors.safe_open(tmp_path / "state", framework="np") as file:
        arrays, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    assert arrays["m-shape.p"].tolist() == [100, 50]
    for wrong, text in (
        (np.array([99, 50]), "found codes of shape|found codes of"),
        (np.array([-100, -50]), "found a shape"),
        (np.array([5000.0]), "found a shape"),
        (None, "found codes of"),
    ):
        damaged = {**arrays, **({} if wrong is None else {"m-shape.p": wrong})}
        if wrong is None:
            del damaged["m-shape.p"]
        safetensors.save_file(damaged, tmp_path / "state", metadata)
        with pytest.raises(ox.StateError, match=text):
            opt.load(tmp_path / "state")
