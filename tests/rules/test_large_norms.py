"""Norms of gradients whose squares overflow: they are clipped to the limit, as gradients of other sizes are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim
from oxigrad.optim.table.row import TABLE

SHAPE = (4, 3)
SIZES = [1.0, 1e15, 3e19, 1e25, 3e37, 3.4e38]
TRANSFORMS: dict[str, Callable[[], Any]] = {
    "global norm": lambda: optim.ClipByGlobalNorm(0.5),
    "norm": lambda: optim.ClipByNorm(0.5),
    "units, last": lambda: optim.AdaptiveGradientClip(0.5),
    "units, first": lambda: optim.AdaptiveGradientClip(0.5, units="first"),
    "mars": lambda: optim.MARS(),
}
RULES: dict[str, Callable[[], Any]] = {
    "lars": lambda: optim.LARS(0.1, momentum=0.0, trust_coefficient=1.0),
    "lars, separate": lambda: optim.LARS(0.1, momentum=0.0, trust_coefficient=1.0, norms="separate"),
    "fromage": lambda: optim.Fromage(0.1),
    "lamb": lambda: optim.LAMB(0.1),
}
CASES: dict[str, Callable[[], Any]] = {
    **{name: lambda make=make: optim.chain(make(), optim.SGD(1.0)) for name, make in TRANSFORMS.items()},
    **RULES,
}
# Second moments of these overflow, which are squares that the state has.
SQUARED = {"lamb": 1e19}


def normal(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 1.0, SHAPE) * np.where(np.arange(12).reshape(SHAPE) % 2, 1, -1)


def of_numpy(array: np.ndarray) -> Any:
    return array


def of_torch(array: np.ndarray) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array)


def of_jax(array: np.ndarray) -> Any:
    return pytest.importorskip("jax.numpy").asarray(array)


def stepped(make: Callable[[], Any], like: Callable[[np.ndarray], Any], dtype: Any, size: float) -> Any:
    """The changes of two parameters in a step whose gradients have this size."""
    before = {name: normal(seed).astype(dtype) for name, seed in (("a", 1), ("b", 2))}
    gradient = {name: (normal(seed) * size).astype(dtype) for name, seed in (("a", 3), ("b", 4))}
    model = {name: like(array.copy()) for name, array in before.items()}
    model = make().update(model, {name: like(array) for name, array in gradient.items()})
    return {name: np.asarray(model[name], np.float64) - before[name] for name in before}


@pytest.mark.parametrize("like", [of_numpy, of_torch, of_jax])
@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("name", CASES)
def test_the_step_is_that_in_float64(name: str, size: float, like: Callable[[np.ndarray], Any]) -> None:
    """In float64 no square of a float32 overflows."""
    if size > SQUARED.get(name, np.inf):
        pytest.skip("its second moments are infinite")
    if size > 1e38 and (name == "mars" or (like is not of_numpy and name in RULES)):
        pytest.skip("the norm itself is infinite in float32, or the corrected gradient")
    if size > 1e37 and like is of_jax:
        pytest.skip("the factor is subnormal, which XLA takes for zero")
    found = stepped(CASES[name], like, np.float32, size)
    expected = stepped(CASES[name], of_numpy, np.float64, size)
    for key, change in expected.items():
        np.testing.assert_allclose(found[key], change, rtol=2e-5, atol=3e-7)
        if name in TRANSFORMS:
            assert np.any(found[key])


@pytest.mark.parametrize("name", [name for name in CASES if "units" not in name])
def test_limits_are_not_reached_by_infinities(name: str) -> None:
    """An infinite gradient has an infinite norm, as before."""
    model = {"w": normal(1).astype(np.float32)}
    gradient = normal(3).astype(np.float32)
    gradient[0, 0] = np.inf
    with np.errstate(all="ignore"):
        model = CASES[name]().update(model, {"w": gradient})
    assert not np.isfinite(model["w"][0, 0]) or name in ("lamb",)


@pytest.mark.parametrize("adaptive", [False, True])
def test_the_step_of_sam_has_its_length(adaptive: bool) -> None:
    changes = []
    for dtype, size in ((np.float32, 3e25), (np.float64, 3e25)):
        model = {name: normal(seed).astype(dtype) for name, seed in (("a", 1), ("b", 2))}
        gradient = {name: (normal(seed) * size).astype(dtype) for name, seed in (("a", 3), ("b", 4))}
        with np.errstate(over="ignore"):  # of squares
            there = optim.SAM(optim.SGD(0.1), rho=0.05, adaptive=adaptive).perturbed(model, gradient)
        changes.append({name: np.float64(there[name]) - model[name] for name in model})
    for name in changes[0]:
        np.testing.assert_allclose(changes[0][name], changes[1][name], rtol=1e-4, atol=1e-7)
        assert np.any(changes[0][name])


WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "in backward": {"in_backward": True},
    "on the host": {"state_device": "host"},
    "norm measured before": {"in_backward": True},
    "master": {"master": True, "state_dtype": "float32"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", SIZES[1:-1])
def test_max_norm_of_torch(size: float, way: str) -> None:
    torch = pytest.importorskip("torch")
    import oxigrad.torch as ours

    changes = []
    for dtype, further in ((torch.bfloat16 if way == "master" else torch.float32, WAYS[way]), (torch.float64, {})):
        params = [torch.nn.Parameter(torch.zeros(SHAPE, dtype=dtype)) for _ in range(2)]
        opt = ours.SGD(params, lr=1.0, max_norm=0.5, **further)
        gradients = [torch.from_numpy(normal(seed) * size).to(params[0].dtype) for seed in (3, 4)]

        def backward(params: Any = params, gradients: Any = gradients) -> None:
            torch.autograd.backward(params, gradients)

        if way == "norm measured before" and further:
            with opt.norm_pass():
                backward()
        backward()
        opt.step()
        changes.append([p.detach().double() for p in params])
    torch.testing.assert_close(changes[0], changes[1], rtol=1e-2 if way == "master" else 1e-5, atol=1e-7)
    norm = torch.stack([p.square().sum() for p in changes[0]]).sum().sqrt().item()
    assert norm == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize("name", ["global norm", "norm"])
def test_ordinary_gradients_keep_their_bits(name: str) -> None:
    """The formula without scales, in the float64 of sums and numbers."""
    model, gradient = {"w": normal(1).astype(np.float32)}, normal(3).astype(np.float32)
    square = np.float64((gradient * gradient).astype(np.float64).sum())
    factor = np.float32(0.5 / np.sqrt(square))
    expected = model["w"] - gradient * factor
    found = optim.chain(TRANSFORMS[name](), optim.SGD(1.0)).update(model, {"w": gradient})
    np.testing.assert_allclose(found["w"], expected, rtol=1e-6)


Whole = optim.transform(lambda xp, p, g: g, "Whole", changes="gradient", elementwise=False)
VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    name: (row.optimizer, dict(values))
    for row in TABLE.values()
    for name, values in {row.optimizer.__name__: {}, **row.variants}.items()
    if row.optimizer is not optim.LBFGS
}
# Elements that would be zero but for rounding errors have steps of the size of all others.
ROUNDED = {"Shampoo", "shampoo", "galore-full"}
# The largest number of a slot, an array, whose terms have sums in float32.
LARGEST = 2e37


# Those that hold norms, but no squares of elements.
NORMS = {"Muon", "DoG", "DoWG", "NovoGrad", "DAdaptSGD", "LARS", "Fromage", "PolyakSGD", "MoMo", "COCOB"}


def trained(opt: Any, like: Callable[[np.ndarray], Any], dtype: Any, size: float) -> tuple[list[np.ndarray], float]:
    """The parameters after each of two steps, and the largest number of the slots that are arrays."""
    model, after = {"w": like(normal(1).astype(dtype))}, []
    for seed in (3, 4):
        model = opt.update(model, {"w": like((normal(seed) * size).astype(dtype))}, loss=1.5)
        after.append(np.asarray(model["w"], np.float64).copy())
    slots = [np.asarray(slot, np.float64) for slot in opt.slots["w"].values()]
    with np.errstate(all="ignore"):
        return after, max([float(np.max(np.abs(slot))) for slot in slots if slot.ndim and slot.size], default=0.0)


@pytest.mark.parametrize("executor", ["kernel", "arrays"])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_optimizer_takes_the_step_of_float64(name: str, executor: str) -> None:
    """Unless its state has squares of float32, which are infinite, as in other libraries."""
    compare(name, executor, of_numpy)


@pytest.mark.parametrize("like", [of_torch, of_jax])
@pytest.mark.parametrize("name", ["Muon", "DoG", "NovoGrad", "DAdaptSGD", "prodigy", "lamb"])
def test_arrays_of_other_libraries(name: str, like: Callable[[np.ndarray], Any]) -> None:
    """JAX computes numbers in float64 in its default mode too. It keeps them in float32 there, as the square of NovoGrad."""
    mode: Any = contextlib.nullcontext()
    if like is of_jax:
        mode = pytest.importorskip("jax").enable_x64(name == "NovoGrad")
    with mode:
        compare(name, "arrays", like)


def compare(name: str, executor: str, like: Callable[[np.ndarray], Any]) -> None:
    make, values = VARIANTS[name]
    if executor == "arrays" and "noise" in make._rule.supplied:
        pytest.skip("its random numbers are rounded to the dtype")
    compared = 0
    for size in (1e19, 3e22, 1e30):
        expected, largest = trained(make(**values), of_numpy, np.float64, size)
        if largest > LARGEST or name in ROUNDED:
            continue
        opt = make(**values) if executor == "kernel" else optim.chain(Whole(), make(**values))
        for ours, theirs in zip(trained(opt, like, np.float32, size)[0], expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        compared += 1
    assert compared == 3 or make.__name__ not in NORMS


def test_derivatives_through_a_clipped_step_are_finite() -> None:
    """No root of zero is differentiated where small gradients vanish once they are scaled."""
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(0.1))

    def after(g: Any) -> Any:
        state = opt.init({"w": np.ones(3, np.float32)})
        model, _ = opt.apply({"w": np.ones(3, np.float32)}, {"w": g}, state)
        return ox.xp.sum(model["w"])

    for size in (1e-30, 1.0, 1e25):
        assert np.isfinite(ox.grad(after)(np.full(3, size, np.float32))).all()
