"""Parameters, gradients and state of oxigrad.torch whose memory is swapped, shrunk, shared or lazy between two steps."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oxigrad as ox  # noqa: E402
import oxigrad.torch as ours  # noqa: E402
from oxigrad import _core  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("momentum_buffer", {"momentum": 0.9}),
    "AdamW": ("exp_avg", {}),
    "Adagrad": ("sum", {}),
    "RMSprop": ("square_avg", {}),
    "Adafactor": ("row_var", {}),
    "Muon": ("momentum_buffer", {}),
}
DTYPES = {"real": torch.float64, "complex": torch.complex128}
COMPLEX = {"SGD", "AdamW", "Adagrad"}
COMPARED = [name for name in OPTIMIZERS if name != "Muon"]  # whose matrices PyTorch computes in bfloat16


def steps(cls: Any, options: dict[str, Any], dtype: Any, change: Callable[[Any, Any], None], key: str) -> Any:
    """The parameters and the state after two steps, a change of the first parameter and its state, and a third step."""
    params = [torch.nn.Parameter((torch.arange(12.0).reshape(3, 4) / 7 + k).to(dtype)) for k in range(2)]
    opt = cls(params, lr=0.1, **options)
    for number, size in enumerate((1.0, 0.5, 0.25)):
        if number == 2:
            change(params[0], opt.state[params[0]].get(key, opt.state[params[0]].get("step")))
        for p in params:
            p.grad = torch.cos(p.detach().real).to(dtype) * (size + 0.5j if dtype.is_complex else size)
        opt.step()
    return [p.detach().clone() for p in params], [dict(opt.state[p]) for p in params]


def data(p: Any, slot: Any) -> None:
    slot.data = slot.data.clone() * 3


def moved(p: Any, slot: Any) -> None:
    slot.data = slot.data.to("cpu", copy=True)
    p.data = p.data.to("cpu", copy=True)


def put(p: Any, slot: Any) -> None:
    slot.set_(slot.clone() * 3)


def resized(p: Any, slot: Any) -> None:
    before = slot.clone()
    slot.resize_(1000).resize_(before.shape).copy_(before * 3)


def filled(p: Any, slot: Any) -> None:
    slot.fill_(5.0)


def parameter(p: Any, slot: Any) -> None:
    with torch.no_grad():
        p.set_(p.detach().clone() * 2)


CHANGES = [data, moved, put, resized, filled, parameter]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("which", ["slot", "step"])
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in COMPARED for kind in DTYPES if kind == "real" or name in COMPLEX]
)
def test_swapped_memory_is_that_of_the_step(
    name: str, kind: str, which: str, change: Callable[[Any, Any], None]
) -> None:
    key, options = OPTIMIZERS[name]
    theirs: Any = getattr(torch.optim, name, None)
    own: Any = getattr(ours, name)
    if which == "step":
        if name == "SGD" or change is resized:
            return  # it counts no steps; and steps are views of NumPy's memory, which PyTorch does not resize
        key = "step"
    if change is moved and torch.get_default_device().type != "cpu":
        pytest.skip("parts of the state would be on the host, others on the GPU")
    found, wanted = (steps(cls, options, DTYPES[kind], change, key) for cls in (own, theirs))
    for mine, other in zip(found[0], wanted[0], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)
    for mine, other in zip(found[1], wanted[1], strict=True):
        for state, value in other.items():
            if torch.is_tensor(value):
                torch.testing.assert_close(
                    mine[state], value, rtol=1e-6, atol=1e-12, check_dtype=False, check_device=False
                )


# --- storages that were shrunk ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adafactor"])
def test_a_shrunk_storage_is_named_where_others_lie_behind_it(name: str) -> None:
    """The tensor reaches into the memory of another one: that is no overlap of parameters."""
    _, options = OPTIMIZERS[name]
    p, q = torch.nn.Parameter(torch.ones(2000, 2000)), torch.nn.Parameter(torch.ones(4))
    p.grad, q.grad = torch.ones(2000, 2000), torch.ones(4)
    opt = getattr(ours, name)([q, p], **options)
    opt.step()
    p.data.untyped_storage().resize_(16)
    end = p.data_ptr() + 4 * p.numel()
    behind = next((t for t in [torch.ones(4) for _ in range(5000)] if p.data_ptr() < t.data_ptr() < end), None)
    if behind is None:
        pytest.skip("the allocator gave no memory behind the storage")
    q.data = behind
    with pytest.raises(ox.ArrayMemoryError, match=r"\['params'\]\[1\]: the parameter.* storage was shrunk"):
        opt.step()
    assert torch.equal(behind, torch.ones(4))


# --- lazy views ---------------------------------------------------------------------------------------------------------------


def lazy(bit: str, size: float = 1.0) -> Any:
    """A view of conjugates, or of negated numbers, which are computed when they are read."""
    conjugates = torch.complex(torch.ones(3, 4), torch.full((3, 4), size)).conj()
    return conjugates if bit == "conj" else conjugates.imag


@pytest.mark.parametrize("steps_before", [0, 1, 3])
@pytest.mark.parametrize("which", ["parameter", "state"])
@pytest.mark.parametrize("bit", ["conj", "neg"])
@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adagrad", "LAMB"])
def test_a_lazy_view_that_a_step_would_write_is_refused(name: str, bit: str, which: str, steps_before: int) -> None:
    key, options = OPTIMIZERS.get(name, ("exp_avg", {}))
    p = torch.nn.Parameter(torch.ones_like(lazy(bit).resolve_conj().resolve_neg()))
    opt = getattr(ours, name)([("weight", p)], lr=0.1, **options)
    if which == "state" and not steps_before:
        return
    p.grad = torch.ones_like(p)
    for _ in range(steps_before):
        opt.step()
    if which == "parameter":
        p.data = lazy(bit)
    else:
        opt.state[p][key] = lazy(bit)
    before = p.detach().clone()
    with pytest.raises(ox.ArrayMemoryError, match=rf"weight: the {which}.* lazy view.*resolve_{bit}"):
        opt.step()
    assert torch.equal(p.detach(), before)


# --- shared and sparse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_gradient_that_is_another_parameter_is_refused(name: str) -> None:
    p, q = (torch.nn.Parameter(torch.ones(3, 4)) for _ in range(2))
    opt = getattr(ours, name)([p, q], **OPTIMIZERS[name][1])
    p.grad, q.grad = torch.ones(3, 4), p.data
    for _ in range(2):
        with pytest.raises(ox.AliasError, match="share memory"):
            opt.step()
    assert torch.equal(p.detach(), torch.ones(3, 4))
    assert torch.equal(q.detach(), torch.ones(3, 4))


def test_sparse_adam_takes_a_whole_step_or_none() -> None:
    faults: dict[str, Callable[[Any], Any]] = {
        "dense": lambda p: torch.ones(4, 2),
        "elsewhere": lambda p: torch.ones(4, 2, device="meta").to_sparse(1),
        "shared": lambda p: torch.sparse_coo_tensor(
            torch.arange(4)[None], p.data, (4, 2), is_coalesced=True, check_invariants=False
        ),
    }
    for what, fault in faults.items():
        p, q = (torch.nn.Parameter(torch.ones(4, 2)) for _ in range(2))
        opt = ours.SparseAdam([p, q], lr=0.1)
        p.grad = torch.ones(4, 2).to_sparse(1)
        with contextlib.suppress(RuntimeError, AssertionError):  # PyTorch itself may refuse such a gradient
            q.grad = fault(p)
        if q.grad is None:
            continue
        with pytest.raises((RuntimeError, ox.AliasError)):
            opt.step()
        assert torch.equal(p.detach(), torch.ones(4, 2)), what
        assert not any(opt.state.values()), what
        q.grad = None
        opt.step()
        assert not torch.equal(p.detach(), torch.ones(4, 2))


def test_adafactor_rounds_states_of_other_shapes_stochastically() -> None:
    p = torch.nn.Parameter(torch.ones(64, 64, dtype=torch.bfloat16))
    opt = ours.Adafactor([p], rounding="stochastic", seed=1)
    exact = torch.nn.Parameter(torch.ones(64, 64, dtype=torch.float64))
    of_exact = torch.optim.Adafactor([exact])
    for _ in range(8):
        p.grad, exact.grad = torch.full_like(p, 0.1), torch.full_like(exact, 0.1)
        opt.step()
        of_exact.step()
    row = opt.state[p]["row_var"]
    assert row.shape == (64, 1) and row.dtype == torch.bfloat16
    assert len(row.unique()) > 1  # equal rows, rounded to different sides
    assert abs(float((p.double() - exact).detach().mean())) < 1e-3


# The first tensor that the core sees is one of a transformation, within which no plain tensor can be made.
WITHIN_A_TRANSFORMATION = """
import torch
from oxigrad import _core

def seen(x):
    assert _core.Places.of([x]) is None
    return x.sum()

torch.func.grad(seen)(torch.ones(3))
x = torch.ones(3)
places = _core.Places.of([x])
assert places is not None and places.moved([x]) == b""
x.data = torch.ones(3)
assert len(places.moved([x])) == 16
"""


def test_places_are_told_after_a_transformation_saw_the_first_tensor() -> None:
    done = subprocess.run([sys.executable, "-c", WITHIN_A_TRANSFORMATION], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_signature_tells_changes_of_lists_of_states_and_of_memory() -> None:
    a, b = torch.zeros(3), torch.zeros(2)
    lists, state = [[a, b]], {a: {"m": {"codes": b}}}
    signature = _core.Signature(lists, state, [a, b])
    assert signature.holds([[a, b]], dict(state))
    for changed in ([[b, a]], [[a]], [[a, b], []], []):
        assert not signature.holds(changed, state)
    assert not signature.holds(lists, {})
    state[a]["m"]["codes"] = a
    assert not signature.holds(lists, state)
    state[a]["m"]["codes"] = b
    assert signature.holds(lists, state)
    a.data = a.data.clone()
    assert not signature.holds(lists, state)
    lazy = torch.zeros(2, dtype=torch.complex64).conj().imag  # with its negative bit, which its memory does not show
    described = [["first"], ["first"], ["second"]]
    signature = _core.Signature([], {}, [lazy], lambda tensors: described.pop(0))
    assert [signature.holds([], {}), signature.holds([], {})] == [True, False]
    assert not _core.Signature([], {}, [lazy]).holds([], {})
