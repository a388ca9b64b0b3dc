"""PyTorch's tensors in kernels on a CUDA device: tensors in host memory that pose as CUDA tensors, under a mock driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver

import oxigrad as ox
from oxigrad import cuda, optim
from oxigrad.optim import AdamW, chain

torch = pytest.importorskip("torch")
import fake  # noqa: E402 - it imports torch

NAMES = ("numpy", "torch", "torch_cuda", "cupy_cuda")


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch, mock: MockDriver) -> Iterator[Callable[[Any], Any]]:
    with fake.posing(monkeypatch) as asarray:
        yield asarray


def drawn(seed: int, length: int = 50) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(length).astype(np.float32) for name in NAMES}


def placed(values: dict[str, np.ndarray], on_cuda: Callable[[Any], Any]) -> dict[str, Any]:
    """The arrays of a model, each of another library."""
    makers = np.array, torch.tensor, on_cuda, lambda x: arrays.Array(x.copy())
    return {name: make(values[name]) for name, make in zip(NAMES, makers, strict=True)}


def host(array: Any) -> np.ndarray:
    return array.detach().numpy().copy() if isinstance(array, torch.Tensor) else arrays.host(array)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        assert host(found[name]).tobytes() == host(value).tobytes(), name


MIXED: dict[str, Callable[[], Any]] = {
    "adamw": lambda: AdamW(0.1),
    "chain": lambda: chain(optim.ClipByValue(0.5), AdamW(0.1), optim.EMA(0.9)),
    "groups": lambda: AdamW(0.1, groups={"torch*": {"learning_rate": 0.5}}),
    "accumulated": lambda: AdamW(0.1, accumulate=2),
}


@pytest.mark.parametrize("name", MIXED)
def test_four_libraries_take_one_update(name: str, on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    model, here = placed(drawn(0), on_cuda), drawn(0)
    a, b = MIXED[name](), MIXED[name]()
    for seed in (1, 2, 3):
        assert a.update(model, placed(drawn(seed), on_cuda)) is model
        b.update(here, drawn(seed))
        assert_same(model, here)
        for path, own in b.slots.items():
            assert_same(dict(a.slots[path]), dict(own))
    assert {p.text: p.executor.name for p in a._stepper.plan.parameters} == dict(
        zip(NAMES, ("host", "host", "device", "device"), strict=True)
    )
    assert (a.step, len(mock.launches())) == (b.step, 3)  # one for both libraries


def test_a_mixed_step_is_whole_or_not_at_all(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    model, grads, opt = placed(drawn(0), on_cuda), placed(drawn(1), on_cuda), AdamW(0.1)
    opt.update(model, grads)
    before = {name: host(x) for name, x in model.items()}
    slots = {name: {slot: host(x) for slot, x in own.items()} for name, own in opt.slots.items()}
    short = placed(drawn(1, 49), on_cuda)
    for name in NAMES:
        with pytest.raises(ox.ShapeError, match=f"^{name}: gradient has shape"):
            opt.update(model, {**grads, name: short[name]})
        with pytest.raises(ox.StructureError, match=f"^{name}: the gradient is missing"):
            opt.update(model, {other: g for other, g in grads.items() if other != name})
    for name, other in [("cupy_cuda", "torch_cuda"), ("torch_cuda", "numpy")]:
        with pytest.raises((ox.DtypeError, ox.ArrayMemoryError), match=f"^{name}: the gradient"):
            opt.update(model, {**grads, name: grads[other]})
    mock.failures["launch"] = 0, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    with pytest.raises(cuda.DeviceError, match="^torch_cuda: "):
        opt.update(model, grads)
    mock.failures.clear()
    assert_same(model, before)
    for name, own in slots.items():
        assert_same(dict(opt.slots[name]), own)
    assert opt.step == 1
    opt.update(model, grads)
    here, other = drawn(0), AdamW(0.1)
    for _ in range(2):
        other.update(here, drawn(1))
    assert_same(model, here)


def test_moments_of_eight_bits(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    values, grads = drawn(0, 5000)["numpy"], drawn(1, 5000)["numpy"]
    model, here = {"w": on_cuda(values)}, {"w": values.copy()}
    a, b = AdamW(0.1, slot_dtype="8bit"), AdamW(0.1, slot_dtype="8bit")
    for _ in range(2):
        a.update(model, {"w": on_cuda(grads)})
        b.update(here, {"w": grads})
        assert_same(model, here)
    m, expected = a.slots["w"]["m"], b.slots["w"]["m"]
    assert isinstance(m.codes, torch.Tensor) and m.codes.dtype == torch.uint8
    assert_same({"codes": m.codes, "scales": m.scales}, {"codes": expected.codes, "scales": expected.scales})
    again = AdamW(0.1, slot_dtype="8bit")
    again.load_state_dict(a.state_dict())
    again.update(here, {"w": grads})
    a.update(model, {"w": on_cuda(grads)})
    assert_same(model, here)
    assert len(mock.launches()) == 3


@pytest.mark.parametrize("order", ["channels last", "row-major"])
def test_channels_last(order: str, on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    p, g = (np.random.default_rng(seed).standard_normal((2, 3, 5, 7)).astype(np.float32) for seed in (0, 1))
    model, here = {"w": on_cuda(p)}, {"w": p.copy()}
    model["w"].set_(torch.tensor(p).contiguous(memory_format=torch.channels_last))
    given = (
        torch.tensor(g).contiguous(memory_format=torch.channels_last) if order == "channels last" else torch.tensor(g)
    )
    a, b = AdamW(0.1), AdamW(0.1)
    for _ in range(2):
        a.update(model, {"w": given})
        b.update(here, {"w": g})
        assert_same(model, here)
    assert a.slots["w"]["m"].stride() == model["w"].stride() == (105, 1, 21, 3)
    assert len(mock.launches()) == 2


def test_a_loop_of_steps_with_a_loss_scale_does_not_wait(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    start = np.linspace(-2, 3, 50).astype(np.float32)
    model, here = {"w": on_cuda(start).requires_grad_()}, {"w": start.copy()}
    a, b = (AdamW(0.1, loss_scale=optim.LossScale(2.0**126, interval=2)) for _ in "ab")
    mock.immediate = False
    for _ in range(6):
        model["w"].grad = None
        loss = (model["w"] * model["w"]).sum()
        a.scale_loss(loss).backward()
        a.update(model, {"w": model["w"].grad})
    assert "wait" not in mock.counts()
    with np.errstate(over="ignore"):
        for _ in range(6):
            b.update(here, {"w": (np.float32(b.scale) * here["w"]) * np.float32(2.0)})
    np.testing.assert_allclose(host(model["w"]), here["w"], rtol=1e-6)
    assert (a.step, a.skipped, a.scale) == (b.step, b.skipped, b.scale)
    assert a.skipped


def test_new_gradients_upload_rows_and_describe_nothing(
    on_cuda: Callable[[Any], Any], mock: MockDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oxigrad.step.device import launches

    model, opt = {"a": on_cuda(np.ones(5)), "b": on_cuda(np.ones(6))}, AdamW(0.1)
    here, other = {"a": np.ones(5), "b": np.ones(6)}, AdamW(0.1)
    described = []
    own = launches.check_alike
    monkeypatch.setattr(launches, "check_alike", lambda p, *args: described.append(p) or own(p, *args))
    kept = []
    for number in range(4):
        g = {name: np.full(len(x), 1.0 + number) for name, x in here.items()}
        kept.append({name: torch.tensor(x) for name, x in g.items()})
        mock.forget()
        opt.update(model, kept[-1])
        other.update(here, g)
        assert_same(model, here)
    assert len(described) == 2  # in the first step
    assert mock.counts() == {"upload": 1, "record": 1, "launch": 1}


def test_a_step_that_fails_forgets_where_arrays_are(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    """Gradients that moved in a step which was refused have moved for the next one, too."""
    model = {"a": on_cuda(np.ones(5)), "b": np.ones(3)}
    here, opt, other = {"a": np.ones(5), "b": np.ones(3)}, AdamW(0.1), AdamW(0.1)
    opt.update(model, {"a": torch.full((5,), 2.0, dtype=torch.float64), "b": np.ones(3)})
    moved = torch.full((5,), -3.0, dtype=torch.float64)
    with pytest.raises(ox.ShapeError, match="^b: "):
        opt.update(model, {"a": moved, "b": np.ones(4)})
    for call in ("upload", "launch"):
        mock.failures[call] = 0, "CUDA_ERROR_OUT_OF_MEMORY"
        with pytest.raises(cuda.DeviceMemoryError):
            opt.update(model, {"a": moved.clone() if call == "upload" else moved, "b": np.ones(3)})
        mock.failures.clear()
    opt.update(model, {"a": moved, "b": np.ones(3)})
    other.update(here, {"a": np.full(5, 2.0), "b": np.ones(3)})
    other.update(here, {"a": np.full(5, -3.0), "b": np.ones(3)})
    assert_same(model, here)


def test_a_gradient_that_moves_onto_another_array(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    whole = torch.ones(9, dtype=torch.float64)
    p = on_cuda(np.ones(5))
    p.set_(whole[:5])
    opt = AdamW(0.1)
    opt.update({"a": p}, {"a": torch.ones(5, dtype=torch.float64)})
    before = host(p)
    with pytest.raises(ox.AliasError, match="^a and the gradient of a share memory"):
        opt.update({"a": p}, {"a": whole[3:8]})
    assert_same({"a": p}, {"a": before})
    opt.update({"a": p}, {"a": torch.ones(5, dtype=torch.float64)})
    assert opt.step == 2


SHRUNK: dict[str, Callable[[], Any]] = {
    "adamw": lambda: AdamW(0.1),
    "clipped": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1)),
    "accumulated": lambda: AdamW(0.1, accumulate=2),
    "codes": lambda: AdamW(0.1, slot_dtype="8bit"),
    "lamb": lambda: optim.LAMB(0.1),
    "muon": lambda: optim.Muon(0.1),
}


@pytest.mark.parametrize("left", [0, 16])
@pytest.mark.parametrize("which", ["parameter", "gradient", "new gradient"])
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("name", SHRUNK)
def test_a_shrunk_storage_is_refused_and_nothing_changes(
    name: str, steps: int, which: str, left: int, on_cuda: Callable[[Any], Any]
) -> None:
    model = {key: on_cuda(torch.ones(90, 100)) for key in "ab"}
    gradients = {key: torch.ones(90, 100) for key in "ab"}
    opt = SHRUNK[name]()
    for _ in range(steps):
        model = opt.update(model, gradients)
    before = model["a"].clone()
    if which == "new gradient":
        gradients["b"] = torch.ones(90, 100)
    shrunk = model["b"] if which == "parameter" else gradients["b"]
    shrunk.untyped_storage().resize_(left)
    with pytest.raises(ox.ArrayMemoryError, match=rf"^b: the {which.split()[-1]} .*storage (is freed|was shrunk)"):
        opt.update(model, gradients)
    assert torch.equal(model["a"], before)
    assert opt.step == (steps if name != "accumulated" else steps // 2)
