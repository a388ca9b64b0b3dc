"""Copies of the parameters in another dtype, written by the same step, in chains for mixed-precision training."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, xp

ml_dtypes = pytest.importorskip("ml_dtypes")
DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype("f2"), "float32": np.dtype("f4")}


def tail(**options: Any) -> Any:
    """All that ends a step of training in mixed precision."""
    parts = optim.ClipByGlobalNorm(1.0), optim.AdamW(0.1), optim.EMA(decay=0.9), optim.Copy("bfloat16")
    return optim.chain(*parts, **options)


def draw(seed: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {"w": generator.standard_normal((33, 7)).astype(dtype), "b": generator.standard_normal(5).astype(dtype)}


def assert_copied(opt: Any, model: Any, name: str = "bfloat16") -> None:
    copies = opt.copied_parameters()
    for path, copy in copies.items():
        assert copy.dtype == DTYPES[name]
        np.testing.assert_array_equal(copy, model[path].astype(DTYPES[name]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DTYPES)
def test_copies_are_the_parameters_rounded(name: str, dtype: str, threads: Any) -> None:
    for count in (1, 2):
        threads(count)
        opt, model = optim.chain(optim.AdamW(0.1), optim.Copy(name)), draw(0, dtype)
        opt.build(model)
        assert_copied(opt, model, name)
        arrays = opt.copied_parameters()
        for seed in (1, 2, 3):
            before = model["w"].copy()
            opt.update(model, draw(seed, dtype))
            assert (model["w"] != before).all()
            assert_copied(opt, model, name)
        assert all(opt.copied_parameters()[path] is array for path, array in arrays.items())


def test_copies_over_array_libraries(asarray: Any) -> None:
    model = {"w": asarray(draw(0, "float64")["w"])}
    opt = optim.chain(optim.AdamW(0.1), optim.Copy("float32"))
    for seed in (1, 2):
        model = opt.update(model, {"w": asarray(draw(seed, "float64")["w"])})
    copy = opt.copied_parameters()["w"]
    assert isinstance(copy, type(opt.slots["w"]["m"]))
    assert str(copy.dtype).endswith("float32")
    np.testing.assert_array_equal(host(copy), host(model["w"]).astype(np.float32))


@pytest.mark.parametrize("name", DTYPES)
def test_copies_of_tensors(name: str, library: Any) -> None:
    torch = library("torch")
    opt, model = tail(zero_gradients=True), {"w": torch.tensor(draw(0)["w"])}
    opt.copy_dtype = name
    for seed in (1, 2):
        grads = {"w": torch.tensor(draw(seed)["w"])}
        opt.update(model, grads)
        assert not grads["w"].any()
    copy = opt.copied_parameters()["w"]
    assert copy.dtype == getattr(torch, name)
    assert torch.equal(copy, model["w"].to(copy.dtype))


@pytest.mark.parametrize("options", [{}, {"rounding": "stochastic"}], ids=str)
def test_the_rule_and_the_kernel_copy_alike(options: dict[str, Any], library: Any) -> None:
    jax = library("jax")
    on_host, elsewhere = (optim.chain(optim.SGD(0.1), optim.Copy(), seed=3, **options) for _ in range(2))
    model = {"w": draw(0)["w"]}
    given = {"w": jax.numpy.asarray(model["w"])}
    for seed in (1, 2):
        g = draw(seed)["w"]
        on_host.update(model, {"w": g})
        given = elsewhere.update(given, {"w": jax.numpy.asarray(g)})
    np.testing.assert_array_equal(np.asarray(given["w"]), model["w"])
    ours, theirs = (opt.copied_parameters()["w"] for opt in (on_host, elsewhere))
    assert theirs.dtype == jax.numpy.bfloat16
    np.testing.assert_array_equal(ours, np.asarray(theirs))
    is_nearest = np.array_equal(ours, model["w"].astype(DTYPES["bfloat16"]))
    assert is_nearest == (not options)


def test_copies_are_not_rounded_twice() -> None:
    """Of a parameter of half precision, the copy is of what the step computed in float32."""
    opt, model = optim.chain(optim.SGD(1.0), optim.Copy("float32")), {"w": np.ones(3, np.float16)}
    opt.update(model, {"w": np.full(3, 2.0**-14, np.float16)})
    np.testing.assert_array_equal(model["w"], 1.0)
    np.testing.assert_array_equal(opt.copied_parameters()["w"], np.float32(1 - 2.0**-14))


def test_the_whole_tail_is_its_parts() -> None:
    """With a loss scale, clipping, an average and zeros in the gradients: the parameters are those of a loop in float64."""
    opt, model = tail(loss_scale=optim.LossScale(8.0), zero_gradients=True), draw(0)
    p = {path: x.astype(float) for path, x in model.items()}
    average = {path: x.copy() for path, x in p.items()}
    m, v = ({path: np.zeros_like(x) for path, x in p.items()} for _ in range(2))
    for t in (1, 2, 3):
        grads = draw(t)
        norm = np.sqrt(sum(np.sum(g.astype(float) ** 2) for g in grads.values()))
        for path, g in grads.items():
            g = g.astype(float) / norm
            m[path], v[path] = 0.9 * m[path] + 0.1 * g, 0.999 * v[path] + 0.001 * g * g
            root = np.sqrt(v[path] / (1 - 0.999**t)) + 1e-8
            p[path] = p[path] - 0.1 * 0.01 * p[path] - 0.1 * m[path] / (1 - 0.9**t) / root
            average[path] = 0.9 * average[path] + 0.1 * p[path]
        scaled = {path: 8 * g for path, g in grads.items()}
        opt.update(model, scaled)
        assert not any(g.any() for g in scaled.values())
    assert_copied(opt, model)
    for path in p:
        np.testing.assert_allclose(model[path], p[path], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(opt.averaged_parameters()[path], average[path], rtol=1e-5, atol=1e-6)


def test_a_step_that_is_skipped_or_held_copies_nothing() -> None:
    opt, model = tail(nonfinite="skip", accumulate=2), draw(0)
    opt.build(model)
    before = {path: copy.copy() for path, copy in opt.copied_parameters().items()}
    for number, grads in enumerate((draw(1), draw(2) | {"b": np.full(5, np.nan, "f4")}, draw(3))):
        opt.update(model, grads)
        is_first = number < 2
        assert opt.step == 1 - is_first
        assert all(np.array_equal(opt.copied_parameters()[path], before[path]) == is_first for path in before)
        assert_copied(opt, model)
    assert opt.skipped == 1


def test_groups_and_partitions_have_copies_of_different_dtypes() -> None:
    opt, model = tail(groups={"b": None}), draw(0)
    opt.update(model, draw(1))
    assert opt.copied_parameters().keys() == {"w"}
    halves = optim.chain(optim.SGD(0.1), optim.Copy("float16"), groups={"*.b": {"copy_dtype": "float32"}})
    opt = optim.partition({"a.*": halves, "*": optim.SGD(0.1)})
    model = {"a": draw(0), "c": np.ones(2)}
    opt.update(model, {"a": draw(1), "c": np.ones(2)})
    assert {path: str(copy.dtype) for path, copy in opt.copied_parameters().items()} == {
        "a.w": "float16",
        "a.b": "float32",
    }


def test_rows_of_tables_are_copied() -> None:
    opt = optim.chain(optim.SGD(1.0), optim.Copy(), sparse="lazy")
    model = {"w": draw(0)["w"]}
    opt.update(model, {"w": ox.SparseRows(np.array([3, 1]), np.ones((2, 7), "f4"), (33, 7))})
    assert_copied(opt, model)


def test_copies_are_saved_and_resumed(tmp_path: Path) -> None:
    opt, model = tail(), draw(0)
    opt.update(model, draw(1))
    opt.save(tmp_path / "state.safetensors")
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    other = {path: array.copy() for path, array in model.items()}
    again.load(tmp_path / "state.safetensors")
    for o, its in ((opt, model), (again, other)):
        o.update(its, draw(2))
        assert_copied(o, its)
    for path, copy in opt.copied_parameters().items():
        np.testing.assert_array_equal(again.copied_parameters()[path], copy)


def test_a_forward_pass_reads_the_copies() -> None:
    """A model of the copies, put together once, is as new after every step."""
    opt, model = optim.chain(optim.SGD(0.25), optim.Copy("float16")), {"w": np.zeros(8, np.float32)}
    opt.build(model)
    low = opt.copied_parameters()
    loss = lambda low: xp.sum((xp.astype(low["w"], np.float32) - 1.0) ** 2)  # noqa: E731
    for _ in range(5):
        opt.update(model, {"w": ox.grad(loss)(low)["w"].astype(np.float32)})
    np.testing.assert_array_equal(low["w"], (1 - 0.5 ** np.arange(6))[-1])


def test_what_is_refused() -> None:
    with pytest.raises(
        ValueError, match=re.escape("copy_dtype is 'int8': expected 'bfloat16', 'float16' or 'float32'")
    ):
        optim.Copy("int8")
    with pytest.raises(ox.StateError, match="there are no copies"):
        optim.SGD().copied_parameters()


def test_copied_parameters_are_those_of_the_last_copy() -> None:
    opt = optim.chain(optim.SGD(1.0), optim.Copy("float16"), optim.Copy("float32"))
    opt.update({"w": np.zeros(2)}, {"w": np.ones(2)})
    assert sorted(opt.slots["w"]) == ["1.parameter-copy", "2.parameter-copy"]
    assert opt.copied_parameters()["w"] is opt.slots["w"]["2.parameter-copy"]
