"""Slots of eight and of four bits: their codes by formula, and steps, states and files of both."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from test_precision import bits, problem, run

import oxigrad as ox
from oxigrad import optim
from oxigrad.step.arrays.quantized import CODECS, Quantized

both = pytest.mark.parametrize("kind", CODECS)


@both
def test_averages_keep_their_bits(kind: str) -> None:
    opt = optim.chain(optim.AdamW(0.01), optim.EMA(0.9), slot_dtype=kind)
    p, grads = problem(np.float32, 5000)
    run(opt, p, grads)
    slots = opt.slots["p"]
    assert slots["average"].dtype == np.float32
    assert isinstance(slots["m"], Quantized)


@both
@pytest.mark.parametrize("way", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301
def test_copies_and_pickles_go_on_with_the_same_bits(way: Any, kind: str) -> None:
    opt = optim.Adam(0.01, slot_dtype=kind)
    p, grads = problem(np.float32, 5000)
    run(opt, p, grads)
    again, other = way(opt), p.copy()
    assert again.slots["p"]["m"].codec is opt.slots["p"]["m"].codec
    assert np.array_equal(way(opt.slots["p"]["m"]).copy(), opt.slots["p"]["m"])
    run(opt, p, grads)
    run(again, other, grads)
    assert np.array_equal(bits(other), bits(p))


def root(y: np.ndarray) -> np.ndarray:
    """The fourth root, interpolated between powers of two, as the core's documentation has it."""
    exponent = np.floor(np.log2(np.where(y > 0, y, 1.0)))
    quotient, rest = np.divmod(exponent, 4)
    return np.where(y > 0, 2.0**quotient * (1 + (rest + y / 2.0**exponent - 1) / 4), 0.0)


def test_codes_of_eight_bits_are_those_of_the_formula() -> None:
    generator = np.random.default_rng(0)
    for sign, levels in ((1, 255), (-1, 127)):
        x = (generator.lognormal(0, 2, (3, 500)) * generator.choice([1, sign], (3, 500))).astype(np.float32)
        q = Quantized.zeros(x.shape)
        q[...] = x
        largest = np.array([np.max(np.abs(block)) for block in np.split(x.ravel(), range(256, x.size, 256))])
        np.testing.assert_array_equal(q.scales, -sign * largest)
        scale = np.repeat(largest, 256)[: x.size].reshape(x.shape)
        exact = levels * root(np.abs(x).astype(np.float64) / scale)
        found = np.abs(q.codes.view(np.int8).astype(int)) if sign < 0 else q.codes.astype(int)
        assert np.all(np.abs(found - np.maximum(exact, sign)) <= 0.5 + 1e-3)
        share = np.abs(np.asarray(q) - x) / np.abs(x)
        down = np.maximum(np.ceil(-np.log2(np.abs(x) / scale) / 4), 1) - 1
        assert np.all(share <= 4 / levels * 2.0**down * 1.0001)
        assert np.all(np.sign(np.asarray(q)) == np.sign(x))


@both
def test_moments_are_close_to_those_of_float32(kind: str) -> None:
    """A hundred steps, gradients of very different sizes in one block: the parameters move as far, to a few percent.

    With four bits those of small gradients move less, since no second moment is below a sixteenth of the largest of its block.
    """
    generator = np.random.default_rng(0)
    size = np.exp(generator.standard_normal(8192))
    exact, coded = np.zeros(8192, np.float32), np.zeros(8192, np.float32)
    plain, opt = optim.AdamW(1e-3, weight_decay=0.0), optim.AdamW(1e-3, weight_decay=0.0, slot_dtype=kind)
    for _ in range(100):
        g = ((0.3 + generator.standard_normal(8192)) * size).astype(np.float32)
        run(plain, exact, [g])
        run(opt, coded, [g])
    slots = opt.slots["p"]
    assert all(isinstance(slot, Quantized) for slot in slots.values())
    codec = CODECS[kind]
    assert sum(slot.nbytes for slot in slots.values()) == 2 * (8192 * codec.bits // 8 + 4 * 8192 // codec.block)
    assert np.all(slots["v"].scales < 0), "what is never negative is coded without a sign"
    assert np.linalg.norm(coded - exact) / np.linalg.norm(exact) < {"8bit": 0.05, "4bit": 0.8}[kind]
    # No tiny second moment became zero: that would be a step without bound.
    assert np.max(np.abs(coded)) < {"8bit": 1.2, "4bit": 2.0}[kind] * np.max(np.abs(exact))


@both
def test_where_slots_are_no_codes(kind: str, library) -> None:
    jax = library("jax")
    small, large = np.ones(4095, np.float32), np.ones((64, 64), np.float32)
    opt = optim.Adam(slot_dtype=kind)
    model = {"small": small, "large": large, "jax": jax.numpy.asarray(large)}
    grads = ox.tree.map(np.ones_like, {"small": small, "large": large}) | {"jax": jax.numpy.asarray(large)}
    model = opt.update(model, grads)
    assert isinstance(opt.slots["large"]["v"], Quantized)
    assert isinstance(opt.slots["small"]["v"], np.ndarray)
    assert opt.slots["jax"]["v"].dtype == np.float32
    # Slots follow a parameter that moves to another library.
    opt.update({**model, "large": jax.numpy.asarray(model["large"])}, {**grads, "large": jax.numpy.asarray(large)})
    assert str(opt.slots["large"]["v"].dtype) == "float32"


@pytest.mark.parametrize("in_a_file", [False, True])
@both
def test_codes_are_saved_and_loaded_to_the_bit(kind: str, in_a_file: bool, tmp_path: Any) -> None:
    p, grads = problem(np.float32, 80, 60)
    make = lambda: optim.AdamW(0.01, slot_dtype=kind)  # noqa: E731
    opt, again, q = make(), make(), p.copy()
    run(opt, p, grads[:3])
    run(opt, q, [])
    if in_a_file:
        opt.save(tmp_path / "state")
        assert not again.load(tmp_path / "state")
    else:
        assert not again.load_state_dict(opt.state_dict())
    q[...] = p
    run(opt, p, grads[3:])
    run(again, q, grads[3:])
    assert again.step == 5
    assert np.array_equal(bits(p), bits(q))
    for name, slot in opt.slots["p"].items():
        assert np.array_equal(slot.codes, again.slots["p"][name].codes)
        assert np.array_equal(bits(slot.scales), bits(again.slots["p"][name].scales))
    copied = copy.deepcopy(opt)
    run(opt, p, grads[:1])
    assert not np.array_equal(copied.slots["p"]["m"].codes, opt.slots["p"]["m"].codes)
    plain = optim.AdamW(0.01)
    plain.load_state_dict(opt.state_dict())
    with pytest.raises(ox.StateError, match=rf"p: slot m has shape \(80, 60\) and dtype {kind}, expected .* float32"):
        plain.build({"p": p})


@pytest.mark.parametrize("part", ["codes", "scales"])
@both
def test_a_file_with_half_of_the_codes_is_refused(kind: str, part: str, tmp_path: Any) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    opt = optim.SGD(momentum=0.9, slot_dtype=kind)
    run(opt, *problem(np.float32, 5000))
    opt.save(tmp_path / "state")
    with safetensors.safe_open(tmp_path / "state", framework="np") as file:
        arrays, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    for wrong in (None, arrays[f"m-{part}.p"].astype(np.float64)):
        damaged = {name: array for name, array in arrays.items() if name != f"m-{part}.p"}
        damaged |= {} if wrong is None else {f"m-{part}.p": wrong}
        safetensors.save_file(damaged, tmp_path / "state", metadata)
        with pytest.raises(
            ox.StateError, match=f"state: (it has a part of the slot m, but no m-{part}|found codes of|found a shape)"
        ):
            opt.load(tmp_path / "state")


@pytest.mark.parametrize("width", [256, 512])
@both
def test_rows_of_codes(kind: str, width: int) -> None:
    """Rows that are whole blocks are updated by themselves; others are refused, by path."""
    generator = np.random.default_rng(0)
    table, exact = np.zeros((50, width), np.float32), np.zeros((50, width), np.float32)
    opt, plain = (optim.Adam(0.1, sparse="lazy", slot_dtype=slots) for slots in (kind, None))
    for _ in range(3):
        rows = ox.SparseRows([3, 20, 49], generator.standard_normal((3, width)).astype(np.float32), table.shape)
        run(opt, table, [rows])
        run(plain, exact, [rows])
    assert isinstance(opt.slots["p"]["m"], Quantized)
    assert np.array_equal(np.flatnonzero(np.any(table, axis=1)), [3, 20, 49])
    if kind == "8bit":
        np.testing.assert_allclose(table, exact, atol=0.06)
    assert np.linalg.norm(table - exact) / np.linalg.norm(exact) < {"8bit": 0.05, "4bit": 0.4}[kind]
    odd = np.zeros((50, 100), np.float32)
    with pytest.raises(
        ox.ShapeError,
        match=f"^p: rows of codes: found rows of 100 elements, expected a multiple of {CODECS[kind].block}",
    ):
        run(
            optim.Adam(sparse="lazy", slot_dtype=kind),
            odd,
            [ox.SparseRows([1], np.ones((1, 100), np.float32), odd.shape)],
        )


@both
def test_a_block_with_nan_or_infinities_is_nan(kind: str) -> None:
    p, g = np.zeros(5000, np.float32), np.ones(5000, np.float32)
    g[300] = np.inf
    opt = optim.Adam(slot_dtype=kind)
    run(opt, p, [g])
    moments = np.asarray(opt.slots["p"]["m"])
    block = CODECS[kind].block
    start = 300 // block * block
    assert np.all(np.isnan(moments[start : start + block]))
    assert np.all(np.isfinite(np.delete(moments, np.s_[start : start + block])))
    opt, p = optim.Adam(slot_dtype=kind, nonfinite="skip"), np.zeros(5000, np.float32)
    run(opt, p, [g])
    assert opt.skipped == 1
    assert not np.any(np.asarray(opt.slots["p"]["m"]))


@both
def test_scales_that_another_array_shares_are_refused(kind: str) -> None:
    opt, p = optim.Adam(slot_dtype=kind), np.zeros(65536, np.float32)
    run(opt, p, [np.ones(65536, np.float32)])
    codes = opt.slots["p"]["m"].codes
    found = opt.slots["p"]["m"]
    dict.__setitem__(opt.slots["p"], "m", found.with_arrays(codes, p[: found.scales.size]))
    opt.seed = 1  # an option that is set, so that the core is told of the slots again
    with pytest.raises(ox.AliasError, match="^p and a slot of p share memory"):
        run(opt, p, [np.ones(65536, np.float32)])
