"""A step has the same bits in every mode of PyTorch and NumPy that is on around it."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

import oxigrad as ox  # noqa: E402
from ambient_modes import Mode, setting, torch_modes  # noqa: E402
from torch_problems import OURS, equal, gradients, loss_for, parameters, shapes_for, states, values  # noqa: E402

MODES = torch_modes()
NAMES = [name for name in OURS.names if name != "LBFGS"]  # whose steps are PyTorch's
CALLED = [name for name in NAMES if not OURS.type(name).entry.rule.elementwise]  # type: ignore[attr-defined]
LARGE = ((70, 64), (3, 5))
OPTIONS: list[tuple[dict[str, Any], Any]] = [
    ({"rounding": "stochastic"}, torch.bfloat16),
    ({"rounding": "kahan"}, torch.float16),
    ({"master": True}, torch.bfloat16),
    ({"state_device": "host"}, torch.float32),
    ({}, torch.float64),
]


def stepped(name: str, modes: list[Mode], options: Any, dtype: Any, shapes: Any) -> tuple[list[Any], list[Any]]:
    """The parameters and the state after a step in each of the modes."""
    params = parameters(shapes, dtype)
    opt = OURS.make(name, params, **options)
    for step, mode in enumerate(modes):
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = g.to_sparse() if name == "SparseAdam" else g
        with mode():
            opt.step(**loss_for(opt))
    return values(params), states(opt)


def narrowed(state: list[Any], other: list[Any]) -> list[Any]:
    """The state with its numbers in the narrower dtype of both: PyTorch keeps counts and rates in the default one, if it is float64."""
    pairs = zip(state, other, strict=True)
    return [one.to(two.dtype) if one.ndim == 0 and one.itemsize > two.itemsize else one for one, two in pairs]


def check_same(name: str, modes: list[Mode], options: Any = None, dtype: Any = torch.float32, shapes: Any = ()) -> None:
    shapes = shapes or shapes_for(name)
    plain = stepped(name, [contextlib.nullcontext] * len(modes), options or {}, dtype, shapes)
    found = stepped(name, modes, options or {}, dtype, shapes)
    assert equal(found[0], plain[0])
    assert equal(narrowed(found[1], plain[1]), narrowed(plain[1], found[1]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_the_same_bits_in_every_mode(name: str, mode: str) -> None:
    check_same(name, [MODES[mode], contextlib.nullcontext, MODES[mode]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("options", "dtype"), OPTIONS)
@pytest.mark.parametrize("name", [*CALLED, "AdamW"])
def test_every_precision_has_the_same_bits_in_every_mode(name: str, options: Any, dtype: Any, mode: str) -> None:
    check_same(name, [MODES[mode], contextlib.nullcontext], options, dtype)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CALLED])
def test_kernels_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    """Products and sums of PyTorch, by which other rules compute, have not."""
    shapes = ((300, 500), (3,)) if name != "SparseAdam" else ()
    for threads in (1, 3):
        check_same(name, [setting(torch.get_num_threads, torch.set_num_threads, threads)] * 2, shapes=shapes)


@pytest.mark.parametrize("name", ["SOAP", "Shampoo", "GaLore", "Muon"])
def test_products_are_not_cast(name: str) -> None:
    """Autocast has no effect on larger matrices either, whose products it would cast, nor on the state that it would begin."""
    check_same(name, [MODES["autocast bfloat16"]] * 3, shapes=LARGE)


def test_a_state_that_was_made_in_the_inference_mode_is_updated_outside_of_it() -> None:
    for name in ("AdamW", "SOAP", "SparseAdam"):
        params = parameters(shapes_for(name))
        opt = OURS.make(name, params)
        for p, g in zip(params, gradients(params, 0), strict=True):
            p.grad = g.to_sparse() if name == "SparseAdam" else g
        with torch.inference_mode():
            opt.step()
        assert states(opt)
        assert not any(state.is_inference() for state in states(opt))


@pytest.mark.parametrize("differentiable", [False, True])
def test_a_rule_on_arrays_knows_no_mode(differentiable: bool) -> None:
    """The rule itself sees none of the modes that change what it computes."""
    seen = []

    def watching(xp: Any, p: Any, g: Any, m: Any = lambda xp, p: look(p), *, learning_rate: float = 0.1) -> Any:
        return look(p) - learning_rate * g, m

    def look(p: Any) -> Any:
        seen.append((torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled()))
        return p

    opt = ox.optim.define(watching, elementwise=False)()
    model, g = {"w": torch.ones(3)}, {"w": torch.ones(3)}
    for mode in ("autocast bfloat16", "inference"):
        with MODES[mode]():
            if differentiable:
                opt.apply(model, g, opt.init(model))
            else:
                opt.update(model, g)
    assert seen
    assert set(seen) == {(False, False)}
