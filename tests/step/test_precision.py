"""Half precision, master weights and rounding, compared with float64, NumPy, ml_dtypes and PyTorch."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, rules, xp
from oxigrad.ops.backends import namespace, on_host

ml_dtypes = pytest.importorskip("ml_dtypes")
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def problem(dtype: Any, *shape: int, seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    """A parameter and the gradients of a few steps."""
    generator = np.random.default_rng(seed)
    draw = lambda: generator.standard_normal(shape).astype(np.float32).astype(dtype)  # noqa: E731
    return draw(), [draw() for _ in range(5)]


def adamw(p: np.ndarray, grads: list[np.ndarray], rate: float, kept: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """AdamW as the paper writes it (arXiv:1711.05101), in float64; ``kept`` is what is left of the parameter each time."""
    p = p.astype(np.float64)
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate((g.astype(np.float64) for g in grads), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p - rate * 0.01 * p - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        p = kept(p).astype(np.float64)
    return p


def bits(x: Any) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{np.asarray(x).dtype.itemsize}")


def run(optimizer: Any, p: Any, grads: list[Any]) -> Any:
    model = {"p": p}
    for g in grads:
        model = optimizer.update(model, {"p": g})
    return model["p"]


def of_torch(torch: Any, array: np.ndarray) -> Any:
    """A tensor of the same dtype, with memory of its own."""
    name = str(array.dtype)
    return torch.tensor(array.astype(np.float32)).to(getattr(torch, name))


def from_torch(tensor: Any) -> np.ndarray:
    return tensor.detach().float().numpy().astype(HALVES.get(str(tensor.dtype).removeprefix("torch."), np.float32))


# --- half precision ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HALVES)
def test_steps_on_halves_are_those_of_float64_rounded(name: str) -> None:
    p, grads = problem(HALVES[name], 33, 31)
    expected = adamw(p, grads, 0.01, lambda x: x.astype(HALVES[name]))
    opt, begun = optim.AdamW(0.01), p.copy()
    assert run(opt, p, grads) is p
    assert not np.array_equal(bits(p), bits(begun))
    spacing = np.maximum(np.abs(expected) * EPSILON[name], 1e-7)
    # A value that was rounded the other way once may stay off by one.
    assert np.max(np.abs(p.astype(np.float64) - expected) / spacing) <= 2.0
    assert np.mean(p.astype(np.float64) == expected) > 0.99
    assert {slot.dtype for slot in opt.slots["p"].values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("name", HALVES)
def test_small_gradients_do_not_vanish(name: str) -> None:
    """In float16 itself, their squares and epsilon are zero, and the step is NaN (pytorch#147437)."""
    p = np.ones(100, HALVES[name])
    run(optim.Adam(0.1), p, [np.full(100, 1e-6, HALVES[name])] * 3)
    np.testing.assert_allclose(p.astype(float), 0.7, atol=0.01)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda x: x.copy(),
    "fortran": lambda x: np.asfortranarray(x),
    "reversed": lambda x: np.flip(np.flip(x).copy()),
    "every other": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "unaligned": lambda x: np.frombuffer(bytearray(b"\0" + x.tobytes()), x.dtype, offset=1).reshape(x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize(
    "options",
    [{}, {"rounding": "stochastic"}, {"slot_dtype": "8bit"}, {"slot_dtype": "4bit"}, {"rounding": "kahan"}],
    ids=str,
)
def test_layouts_and_threads_change_no_bits(name: str, layout: str, options: dict[str, Any], threads: Any) -> None:
    p, grads = problem(HALVES[name], 70, 1201)
    threads(1)
    expected = run(optim.AdamW(0.01, **options), p.copy(), grads[:2])
    for count in (1, 2, 3):
        threads(count)
        q = LAYOUTS[layout](p)
        assert np.array_equal(bits(q), bits(p))
        assert run(optim.AdamW(0.01, **options), q, [LAYOUTS[layout](g) for g in grads[:2]]) is q
        assert np.array_equal(bits(q), bits(expected)), count


def test_models_of_many_dtypes_take_one_step() -> None:
    model = {name: np.ones(300, dtype) for name, dtype in {**HALVES, "float32": "f4", "float64": "f8"}.items()}
    grads = {name: np.full(300, 0.5, p.dtype) for name, p in model.items()}
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(1.0))
    assert opt.update(model, grads) is model
    for name, p in model.items():
        np.testing.assert_allclose(p.astype(float), 1 - 1 / np.sqrt(1200), rtol=2 * EPSILON.get(name, 1e-7))


def test_read_only_halves_are_replaced() -> None:
    for dtype in HALVES.values():
        p = np.ones(3, dtype)
        p.setflags(write=False)
        new = run(optim.SGD(0.5), p, [np.ones(3, dtype)])
        assert new.dtype == dtype
        np.testing.assert_array_equal(new.astype(float), 0.5)
        np.testing.assert_array_equal(p.astype(float), 1.0)


def test_gradients_of_halves_may_be_float32() -> None:
    for name, dtype in HALVES.items():
        p, grads = problem(dtype, 50)
        exact = [g.astype(np.float32) * 1.001 for g in grads]
        expected = adamw(p, exact, 0.01, lambda x: x.astype(dtype))  # noqa: B023
        run(optim.AdamW(0.01), p, exact)
        np.testing.assert_allclose(p.astype(float), expected, rtol=2 * EPSILON[name], atol=1e-6)
        with pytest.raises(ox.DtypeError, match=f"^p: gradient has dtype float64, the parameter {name}"):
            run(optim.SGD(), p, [np.ones(50)])
    with pytest.raises(ox.DtypeError, match="^p: gradient has dtype bfloat16, the parameter float32"):
        run(optim.SGD(), np.ones(3, np.float32), [np.ones(3, ml_dtypes.bfloat16)])


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("options", [{}, {"master": True}, {"rounding": "kahan"}, {"rounding": "stochastic"}], ids=str)
def test_the_rule_on_arrays_gives_the_bits_of_the_kernel(name: str, options: dict[str, Any]) -> None:
    """But for the last bit of the computation in float32, which NumPy may round otherwise: stored, few elements differ."""
    called = optim.define(rules.sgd, "CalledSGD", elementwise=False)
    p, grads = problem(HALVES[name], 5000)
    q = p.copy()
    compiled, by_rule = optim.SGD(0.125, **options), called(0.125, **options)
    run(compiled, p, grads)
    run(by_rule, q, grads)
    assert np.array_equal(bits(p), bits(q))
    for slot, value in compiled.slots["p"].items():
        assert np.array_equal(bits(value), bits(by_rule.slots["p"][slot])), slot


@pytest.mark.parametrize("name", HALVES)
def test_apply_computes_in_float32(name: str) -> None:
    p, grads = problem(HALVES[name], 400)
    opt = optim.AdamW(0.01)
    params, state = {"p": p.copy()}, opt.init({"p": p})
    assert state["slots"]["p"]["m"].dtype == np.float32
    for g in grads:
        params, state = opt.apply(params, {"p": g}, state)
    assert params["p"].dtype == p.dtype
    run(opt, p, grads)
    assert np.mean(bits(p) == bits(params["p"])) > 0.99


def test_jax_arrays_of_half_precision(library) -> None:
    jax = library("jax")
    for name, dtype in HALVES.items():
        p, grads = problem(dtype, 40)
        for options in ({}, {"master": True}, {"rounding": "kahan"}, {"rounding": "stochastic"}):
            found = run(optim.AdamW(0.01, **options), jax.numpy.asarray(p), list(map(jax.numpy.asarray, grads)))
            assert str(found.dtype) == name
            expected = run(optim.AdamW(0.01, **options), p.copy(), grads)
            assert np.mean(bits(np.asarray(found)) == bits(expected)) > 0.9
        state = optim.AdamW().init({"p": jax.numpy.asarray(p)})
        assert state["slots"]["p"]["v"].dtype == jax.numpy.float32


# --- master weights, and Kahan and stochastic rounding -------------------------------------------------------------------


@pytest.mark.parametrize("name", HALVES)
def test_master_weights_are_those_of_float32(name: str) -> None:
    p, grads = problem(HALVES[name], 3000)
    exact = p.astype(np.float32)
    opt = optim.AdamW(1e-4, master=True)
    run(opt, p, grads)
    run(optim.AdamW(1e-4), exact, [g.astype(np.float32) for g in grads])
    assert np.array_equal(bits(opt.slots["p"]["master-weights"]), bits(exact))
    assert np.array_equal(bits(p), bits(exact.astype(HALVES[name])))
    assert opt.slots["p"]["master-weights"].dtype == np.float32


def test_float32_has_no_need_of_master_weights() -> None:
    opt = optim.AdamW(master=True)
    run(opt, np.ones(3, np.float32), [np.ones(3, np.float32)])
    assert set(opt.slots["p"]) == {"m", "v"}


SMALL = 1e-4  # A step too small for either half at 1.


def drift(name: str, **options: Any) -> np.ndarray:
    """Result of 1000 small steps from 1: 0.9 in exact arithmetic."""
    p = np.ones(20_000, HALVES[name])
    run(optim.SGD(SMALL, **options), p, [np.ones(20_000, HALVES[name])] * 1000)
    return p.astype(float)


@pytest.mark.parametrize("name", HALVES)
def test_small_steps_are_lost_unless_they_are_kept(name: str) -> None:
    assert np.all(drift(name) == 1.0)
    spacing = EPSILON[name] / 2  # below 1
    np.testing.assert_allclose(drift(name, master=True), 0.9, atol=spacing / 2 + 1e-6)
    np.testing.assert_allclose(drift(name, rounding="kahan"), 0.9, atol=spacing)
    found = drift(name, rounding="stochastic")
    deviation = np.sqrt(1000 * SMALL * spacing)
    assert abs(np.mean(found) - 0.9) < 6 * deviation / np.sqrt(found.size)
    assert np.std(found) == pytest.approx(deviation, rel=0.2)


@pytest.mark.parametrize("name", HALVES)
def test_kahan_is_as_good_as_float32(name: str) -> None:
    p, grads = problem(HALVES[name], 2000)
    exact = adamw(p, grads * 20, 1e-4, lambda x: x)
    plain, kept = p.copy(), p.copy()
    opt = optim.AdamW(1e-4, rounding="kahan")
    run(optim.AdamW(1e-4), plain, grads * 20)
    run(opt, kept, grads * 20)
    error = lambda x: np.abs(x.astype(float) - exact)  # noqa: E731
    assert opt.slots["p"]["kahan-compensation"].dtype == HALVES[name]
    whole = kept.astype(np.float64) + opt.slots["p"]["kahan-compensation"].astype(np.float64)
    assert np.max(error(whole)) < np.max(error(plain)) / 20
    assert np.all(np.abs(whole - kept.astype(float)) <= np.abs(kept.astype(float)) * EPSILON[name] / 2)


def test_stochastic_rounding_depends_on_seed_step_and_leaf_only() -> None:
    p = np.full(4096, 1.0, ml_dtypes.bfloat16)
    g = np.full(4096, 1.0, ml_dtypes.bfloat16)
    step = lambda seed, skip=0: run(optim.SGD(1e-3, seed=seed, rounding="stochastic"), p.copy(), [g] * (1 + skip))  # noqa: E731
    assert np.array_equal(bits(step(1)), bits(step(1)))
    assert not np.array_equal(bits(step(1)), bits(step(2)))
    pair = {"a": p.copy(), "b": p.copy()}
    optim.SGD(1e-3, rounding="stochastic").update(pair, {"a": g, "b": g})
    assert not np.array_equal(bits(pair["a"]), bits(pair["b"]))
    share = 1e-3 / 2.0**-8
    for x in (step(1), pair["a"], pair["b"]):
        assert np.mean(x.astype(float) < 1) == pytest.approx(share, abs=5 * np.sqrt(share / 4096))


@pytest.mark.parametrize("options", [{"master": True}, {"rounding": "kahan"}, {"rounding": "stochastic"}], ids=str)
def test_accumulating_gradients_leaves_the_parameter_as_it_is(options: dict[str, Any]) -> None:
    p, grads = problem(ml_dtypes.bfloat16, 500)
    begun, opt = p.copy(), optim.AdamW(0.1, accumulate=2, **options)
    run(opt, p, grads[:1])
    assert np.array_equal(bits(p), bits(begun))
    run(opt, p, grads[1:2])
    assert not np.array_equal(bits(p), bits(begun))
    mean = (grads[0].astype(np.float32) + grads[1].astype(np.float32)) / 2
    expected = run(optim.AdamW(0.1, **options), begun, [mean])
    assert np.mean(bits(p) == bits(expected)) > 0.99


def test_options_are_checked_and_written_down() -> None:
    opt = optim.AdamW(slot_dtype="8bit", rounding="stochastic")
    assert repr(optim.from_config(json.loads(json.dumps(opt.get_config())))._precision) == repr(opt._precision)
    assert optim.from_config(optim.SGD(master=True).get_config())._precision.master
    assert not {"slot_dtype", "master", "rounding"} & optim.SGD().get_config().keys()
    with pytest.raises(ValueError, match="slot_dtype is 'int8': expected None, 'float32', 'bfloat16'"):
        optim.SGD(slot_dtype="int8")
    with pytest.raises(ValueError, match="rounding is 'up': expected 'nearest', 'stochastic' or 'kahan'"):
        optim.SGD(rounding="up")
    with pytest.raises(ValueError, match="master=True and rounding='kahan' are mutually exclusive"):
        optim.SGD(rounding="kahan", master=True)


@pytest.mark.parametrize("slot_dtype", ["float16", "bfloat16", "float32"])
def test_slots_of_fewer_bits(slot_dtype: str) -> None:
    p, grads = problem(np.float32, 3000)
    opt, exact = optim.AdamW(0.01, slot_dtype=slot_dtype), p.copy()
    run(opt, p, grads)
    assert {str(slot.dtype) for slot in opt.slots["p"].values()} == {slot_dtype}
    expected = adamw(exact, grads, 0.01, lambda x: x)
    np.testing.assert_allclose(p, expected, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("name", HALVES)
def test_rows_of_halves(name: str) -> None:
    """Lazily updated rows are those of a dense step, rounded as there."""
    rows, dtype = np.array([2, 5, 6]), HALVES[name]
    for options in ({}, {"rounding": "stochastic"}, {"rounding": "kahan"}, {"master": True}):
        whole, some = (problem(dtype, 10, 40)[0] for _ in range(2))
        g = np.zeros((10, 40), dtype)
        g[rows] = problem(dtype, 3, 40, seed=5)[0]
        run(optim.SGD(0.1, **options), whole, [g] * 2)
        run(optim.SGD(0.1, sparse="lazy", **options), some, [ox.SparseRows(rows, g[rows], g.shape)] * 2)
        assert np.array_equal(bits(whole[rows]), bits(some[rows])), options


# --- memory of other libraries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_tensors_are_updated_where_they_lie(dtype: str, library) -> None:
    torch = library("torch")
    p, grads = problem(HALVES.get(dtype, np.float32), 40, 30)
    expected = run(optim.AdamW(0.01), p.copy(), grads)
    for view in (lambda x: x, lambda x: x.T.contiguous().T, lambda x: torch.stack([x, x], -1)[..., 1]):
        tensor = view(of_torch(torch, p))
        address = tensor.data_ptr()
        found = run(optim.AdamW(0.01), tensor, [view(of_torch(torch, g)) for g in grads])
        assert found is tensor
        assert found.data_ptr() == address
        np.testing.assert_array_equal(bits(from_torch(found)), bits(expected))


def test_parameters_of_torch_are_updated_where_they_lie(library) -> None:
    torch = library("torch")
    p = torch.nn.Parameter(torch.ones(5, dtype=torch.bfloat16))
    p.grad = torch.full((5,), 0.5, dtype=torch.bfloat16)
    assert run(optim.SGD(1.0), p, [p.grad]) is p
    np.testing.assert_array_equal(p.detach().float().numpy(), 0.5)
    assert p.requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.chain(optim.SGD(0.5), optim.EMA(0.5), optim.Lookahead(2, 0.5)),
        lambda: optim.chain(optim.Muon(0.5), optim.EMA(0.5)),
        lambda: optim.ScheduleFreeAdamW(0.5),
    ],
    ids=["fused", "called", "averaged"],
)
def test_no_step_is_recorded_by_torch(make, library) -> None:
    torch = library("torch")
    p, g = torch.nn.Parameter(torch.ones(2, 3)), torch.ones(2, 3)
    opt, model = make(), {"w": p}
    for _ in range(3):
        assert opt.update(model, {"w": g}) is model
    assert model["w"] is p
    assert p.grad_fn is None
    after = p.detach().clone()
    model = opt.swap_in(model)
    averaged = {"w": opt.averaged_parameters(model)["w"]}
    np.testing.assert_array_equal(p.detach(), averaged["w"])
    opt.swap_out(model)
    np.testing.assert_array_equal(p.detach(), after)
    state = opt.init(model)
    params, state = opt.apply(model, {"w": g}, state)
    for tensors in (*opt.slots.values(), averaged, *state["slots"].values(), params):
        assert not any(getattr(tensor, "requires_grad", False) for tensor in tensors.values())


def test_tensors_without_memory_are_left_to_their_library(library) -> None:
    torch = library("torch")
    with torch._subclasses.fake_tensor.FakeTensorMode():
        assert not ox._core.exports_memory(torch.zeros(3))
    assert not ox._core.exports_memory(torch.zeros(3, device="meta"))
    assert ox._core.exports_memory(torch.zeros(0))


class Exporter:
    """An array that has nothing but DLPack, of this version or of before there were any."""

    def __init__(self, array: np.ndarray, *, versioned: bool = True, device: int = 1) -> None:
        self.array, self.versioned, self.device = array, versioned, device
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **named: Any) -> Any:
        if not self.versioned and named:
            raise TypeError("an unexpected keyword argument")
        return self.array.__dlpack__(**named)


def test_any_exporter_of_dlpack_is_read_and_written() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        array = np.ones((4, 6), dtype)[:, ::2]
        new = Exporter(array)
        assert ox._core.is_floating(new) and ox._core.is_writable(new)
        ox._core.copy(Exporter(np.arange(3, dtype=np.float64)), new)
        np.testing.assert_array_equal(array, [[0.0, 1.0, 2.0]] * 4)
        old = Exporter(array, versioned=False)
        assert ox._core.is_floating(old) and not ox._core.is_writable(old)
        assert not ox._core.exports_memory(Exporter(array, device=2))
    read_only = np.ones(3)
    read_only.setflags(write=False)
    assert not ox._core.is_writable(Exporter(read_only))
    assert ox._core.exports_memory(Exporter(np.ones(3, complex)))
    assert not ox._core.is_floating(Exporter(np.ones(3, complex)))


def test_exported_memory_is_released() -> None:
    array = np.ones(10)
    before = sys.getrefcount(array)
    for versioned in (True, False):
        exporter = Exporter(array, versioned=versioned)
        for _ in range(100):
            assert ox._core.is_floating(exporter)
        del exporter
    gc.collect()
    assert sys.getrefcount(array) == before


def test_copying_refuses_mismatched_arrays() -> None:
    with pytest.raises(ValueError, match=r"\[3\] is copied to \[2\]"):
        ox._core.copy(np.ones(3), np.ones(2))
    with pytest.raises(TypeError, match="numbers in host memory to copy"):
        ox._core.copy("text", np.ones(2))
    with pytest.raises(ox.DtypeError, match="found dtype int64"):
        ox._core.copy(np.ones(2), np.ones(2, int))
    with pytest.raises(ox.DtypeError, match="expected codes of uint8 and scales of float32"):
        ox._core.copy((np.ones(2), np.ones(1)), np.ones(2))
    with pytest.raises(ox.ShapeError, match="found 2 scales for 2 codes, expected 1"):
        ox._core.copy((np.ones(2, np.uint8), np.ones(2, np.float32)), np.ones(2))


# --- rounding as an op ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HALVES)
def test_rounding_is_that_of_a_conversion(name: str, asarray: Any) -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32) * 100
    function = getattr(xp, f"round_to_{name}")
    array = asarray(values)
    if not (hasattr(namespace(array), name) or on_host(array)):
        with pytest.raises(NotImplementedError, match=f"no function round_to_{name}"):
            function(array)
        return
    found = function(array)
    assert type(found) is type(asarray(values))
    np.testing.assert_array_equal(host(found), values.astype(HALVES[name]).astype(np.float32))
    assert function(1.001) == float(np.float32(1.001).astype(HALVES[name]))
    np.testing.assert_array_equal(host(ox.grad(lambda x: xp.sum(2.0 * function(x)))(asarray(values))), 2.0)
