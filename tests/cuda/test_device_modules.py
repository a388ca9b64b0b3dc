"""The optimizers of `oxigrad.torch` on a CUDA device: modules whose parameters pose as CUDA tensors, under a mock driver."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from mock_driver import MockDriver

import oxigrad as ox
from oxigrad import cuda

torch = pytest.importorskip("torch")
import fake  # noqa: E402 - it imports torch

import oxigrad.torch as ot  # noqa: E402 - it imports torch
from python_frames import frames  # noqa: E402
from torch_problems import check_shrunk_is_refused  # noqa: E402

SHAPES = {"weight": (3, 50), "bias": (50,), "scale": (), "empty": (0,)}
CLASSES: dict[str, Callable[[Any], Any]] = {
    "AdamW": lambda params: ot.AdamW(params, lr=0.1),
    "AdamW amsgrad": lambda params: ot.AdamW(params, lr=0.1, amsgrad=True, maximize=True),
    "SGD momentum": lambda params: ot.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "LAMB": lambda params: ot.LAMB(params, lr=0.1, weight_decay=0.01),
    "Lion": lambda params: ot.Lion(params, lr=0.1),
    "NAdam": lambda params: ot.NAdam(params, lr=0.1, weight_decay=0.01),
    "ASGD": lambda params: ot.ASGD(params, lr=0.1, t0=1, weight_decay=0.01),
    "Prodigy": lambda params: ot.Prodigy(params),
}
# The launches of a step, where they are not one: those of sums and of numbers.
LAUNCHES = {"LAMB": 4, "NAdam": 2, "ASGD": 2, "Prodigy": 8}


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch, mock: MockDriver) -> Iterator[Callable[[Any], Any]]:
    with fake.posing(monkeypatch) as asarray:
        yield asarray


class Model(torch.nn.Module):
    """A module of parameters of some shapes."""

    def __init__(self, make: Callable[[Any], Any], dtype: Any = torch.float32, shapes: Any = None) -> None:
        super().__init__()
        random = np.random.default_rng(0)
        for name, shape in (shapes or SHAPES).items():
            value = torch.tensor(random.standard_normal(shape)).to(dtype)
            self.register_parameter(name, torch.nn.Parameter(make(value)))

    def backward(self, seed: int, scale: float = 1.0) -> None:
        """Computes gradients of a loss that differs from seed to seed."""
        random = np.random.default_rng(seed)
        loss: Any = sum(
            (p * torch.tensor(random.standard_normal(p.shape)).to(p.dtype)).sum() for p in self.parameters()
        )
        (scale * loss).backward()


def pair(on_cuda: Callable[[Any], Any], **options: Any) -> tuple[Model, Model]:
    return Model(on_cuda, **options), Model(torch.clone, **options)


def bits(tensor: Any) -> tuple[Any, ...]:
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tuple(tensor.shape), tensor.dtype, tensor.detach().view(whole).tolist()


def assert_same(a: Model, b: Model, of_a: Any = None, of_b: Any = None) -> None:
    for (name, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        assert bits(p) == bits(q), name
        if of_a is not None:
            assert of_a.state[p].keys() == of_b.state[q].keys()
            for key, value in of_b.state[q].items():
                found = of_a.state[p][key]
                if isinstance(value, dict):
                    assert [bits(found[part]) for part in value] == [bits(each) for each in value.values()], (name, key)
                else:
                    assert bits(found) == bits(value), (name, key)


def train(a: Model, b: Model, of_a: Any, of_b: Any, seeds: Any = range(1, 4)) -> None:
    for seed in seeds:
        for model, opt in ((a, of_a), (b, of_b)):
            opt.zero_grad()
            model.backward(seed)
            opt.step()
        assert_same(a, b, of_a, of_b)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CLASSES)
def test_a_module_has_the_bits_of_the_host(
    name: str, dtype: str, on_cuda: Callable[[Any], Any], mock: MockDriver
) -> None:
    # An empty tensor does not pose as one of a device, and totals need one device.
    shapes = {key: shape for key, shape in SHAPES.items() if key != "empty" or name != "Prodigy"}
    a, b = pair(on_cuda, dtype=getattr(torch, dtype), shapes=shapes)
    of_a, of_b = (CLASSES[name](model.parameters()) for model in (a, b))
    train(a, b, of_a, of_b)
    one = pair(on_cuda, dtype=getattr(torch, dtype), shapes={"weight": (3, 50)})
    launched = [entry for entry, *_ in mock.launches()]
    mock.forget()
    train(*one, *(CLASSES[name](model.parameters()) for model in one))
    assert launched == [entry for entry, *_ in mock.launches()]  # for all parameters, as for one
    assert len(launched) == 3 * LAUNCHES.get(name, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"master": True},
        {"rounding": "kahan"},
        {"rounding": "stochastic", "seed": 5},
        {"state_dtype": "8bit", "rounding": "stochastic"},
    ],
)
def test_options_of_half_precision(options: dict[str, Any], on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda, dtype=torch.bfloat16)
    train(a, b, *(ot.AdamW(model.parameters(), lr=0.1, **options) for model in (a, b)))
    assert len(mock.launches()) == 3


def test_param_groups_share_a_launch(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    groups = [[{"params": [m.weight]}, {"params": [m.bias, m.scale], "lr": 0.5}] for m in (a, b)]
    of_a, of_b = (ot.AdamW(each, lr=0.1) for each in groups)
    train(a, b, of_a, of_b)
    for opt in (of_a, of_b):
        opt.param_groups[1]["lr"] = 0.25  # as a scheduler does
    train(a, b, of_a, of_b, [4, 5])
    assert len(mock.launches()) == 5


def test_a_steady_step_uploads_nothing_but_moved_gradients(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    of_a, of_b = (ot.AdamW(model.parameters(), lr=0.1) for model in (a, b))
    train(a, b, of_a, of_b)
    resolved, kept = [*of_a._resolved.values()], [p.grad for p in a.parameters()]
    mock.forget()
    of_a.step()
    assert mock.counts() == {"launch": 1}
    of_b.step()
    for p in a.parameters():
        p.grad = p.grad.clone()  # elsewhere, since the gradients before are kept
    of_a.step()
    of_b.step()
    assert_same(a, b, of_a, of_b)
    assert mock.counts() == {"launch": 2, "upload": 1, "record": 1}
    assert [*of_a._resolved.values()] == resolved and len(resolved) == 1 and kept


def test_a_gradient_of_none_leaves_its_parameter(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    of_a, of_b = (ot.AdamW(model.parameters(), lr=0.1) for model in (a, b))
    for seed, missing in ((1, "bias"), (2, None), (3, "weight"), (4, None)):
        for model, opt in ((a, of_a), (b, of_b)):
            opt.zero_grad()
            model.backward(seed)
            if missing:
                getattr(model, missing).grad = None
            opt.step()
        assert_same(a, b, of_a, of_b)
    assert [float(of_a.state[p]["step"]) for p in a.parameters()] == [3, 3, 4, 4]
    assert len(mock.launches()) == 4


def test_state_dicts_are_exchanged(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    of_a, of_b = (ot.AdamW(model.parameters(), lr=0.1) for model in (a, b))
    train(a, b, of_a, of_b)
    saved = copy.deepcopy(of_a.state_dict())
    again, theirs = ot.AdamW(a.parameters(), lr=0.5), torch.optim.AdamW(b.parameters(), lr=0.5)
    again.load_state_dict(saved)
    theirs.load_state_dict(saved)
    train(a, b, again, of_b, [4, 5])
    assert len(mock.launches()) == 5
    of_a.load_state_dict(theirs.state_dict())
    assert float(of_a.state[a.weight]["step"]) == 3


def test_a_closure(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    found = []
    for model in (a, b):
        opt = ot.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def closure(model: Model = model, opt: Any = opt) -> Any:
            opt.zero_grad()
            loss: Any = sum((p * p).sum() for p in model.parameters())
            loss.backward()
            return loss

        found.append([opt.step(closure).item() for _ in range(3)])
    assert found[0] == found[1]
    assert found[0][2] < found[0][0]
    assert_same(a, b)
    assert len(mock.launches()) == 3


@pytest.mark.parametrize("name", ["AdamW", "Lion"])
def test_the_scale_of_a_grad_scaler(name: str, on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    of_a, of_b = (getattr(ot, name)(model.parameters(), lr=0.1, amp_fused=True) for model in (a, b))
    for seed, found_inf in ((1, 0.0), (2, 1.0), (3, 0.0)):
        before = bits(a.weight)
        for model, opt in ((a, of_a), (b, of_b)):
            opt.zero_grad()
            model.backward(seed, scale=1024.0)
            opt.grad_scale, opt.found_inf = torch.tensor(1024.0), torch.tensor(found_inf)
            opt.step()
        assert_same(a, b, of_a, of_b)
        assert (bits(a.weight) == before) is bool(found_inf)
    assert len(mock.launches()) == 2


def test_layouts_of_gradients_and_parameters(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    shapes = {"weight": (2, 3, 5, 7), "bias": (4, 6)}
    a, b = pair(on_cuda, shapes=shapes)
    a.weight.data.set_(b.weight.detach().clone(memory_format=torch.channels_last))
    a.weight.data = on_cuda(a.weight.data).contiguous(memory_format=torch.channels_last)
    of_a, of_b = (ot.AdamW(model.parameters(), lr=0.1) for model in (a, b))
    for seed in (1, 2):
        for model, opt in ((a, of_a), (b, of_b)):
            opt.zero_grad()
            model.backward(seed)
            model.bias.grad = torch.full((6, 4), float(seed)).t()
            opt.step()
        assert_same(a, b, of_a, of_b)
    assert mock.launches()


def planned(opt: Any) -> list[Any]:
    """The parameters of the steps that an optimizer has resolved."""
    return [p for step in opt._resolved.values() for p in step.plan.parameters]


ORDERED: dict[str, Callable[[Any], Any]] = {
    "sums": lambda params: ot.LAMB(params, lr=0.1, weight_decay=0.01),
    "sums without a slot": lambda params: ot.LARS(params, lr=0.1, momentum=0.0),
    "totals": lambda params: ot.Prodigy(params),
    "noise": lambda params: ot.AdamLRD(params, lr=0.1, dropout_rate=0.5, seed=7),
    "stochastic": lambda params: ot.AdamW(params, lr=0.1, rounding="stochastic", seed=7),
    "8bit": lambda params: ot.AdamW(params, lr=0.1, state_dtype="8bit"),
}


@pytest.mark.parametrize("name", ORDERED)
def test_channels_last_parameters_of_rules_that_depend_on_the_order(
    name: str, on_cuda: Callable[[Any], Any], mock: MockDriver
) -> None:
    shapes = {"weight": (9, 8, 11, 7), "bias": (4, 6)}  # more than a chunk, and a block of codes
    dtype = torch.bfloat16 if name == "stochastic" else torch.float32
    a, b = pair(on_cuda, shapes=shapes, dtype=dtype)
    a.weight.data = on_cuda(b.weight.detach().contiguous(memory_format=torch.channels_last))
    of_a, of_b = (ORDERED[name](model.parameters()) for model in (a, b))
    train(a, b, of_a, of_b)
    assert a.weight.stride() == (616, 1, 56, 8)
    assert {p.is_copied for p in planned(of_a)} == {True, False}
    assert mock.launches()
    again = ORDERED[name](a.parameters())
    again.load_state_dict(copy.deepcopy(of_b.state_dict()))
    train(a, b, again, of_b, [4, 5])


def test_a_sum_over_all_parameters_has_those_of_the_host_too(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    """Parameters in host memory and on a device take the rule on arrays together, rather than each their own sum."""
    a, b = pair(on_cuda)
    here = [torch.nn.Parameter(torch.ones(7)) for _ in "ab"]
    of_a, of_b = (ot.Prodigy([*m.parameters(), p], lr=1.0, d0=0.01) for m, p in zip((a, b), here, strict=True))
    for seed in (1, 2, 3):
        for model, p, opt in zip((a, b), here, (of_a, of_b), strict=True):
            opt.zero_grad()
            model.backward(1)
            p.grad = torch.full((7,), 10.0 * seed)
            opt.step()
    assert planned(of_a) and all(p.executor.calls_rule for p in planned(of_a))
    found = [[opt.state[p]["d"].item() for p in opt.param_groups[0]["params"]] for opt in (of_a, of_b)]
    assert len({*found[0]}) == 1
    assert found[1][0] != 0.01
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    torch.testing.assert_close(here[0], here[1])


def test_states_are_loaded_where_kernels_read_them(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    """Codes of eight bits and slots of one number, saved from tensors in host memory and on a device."""
    for make in (
        lambda params: ot.NAdam(params, lr=0.1, state_dtype="8bit"),
        lambda params: ot.Prodigy(params, d0=0.1, state_dtype="8bit"),
    ):
        a, b = pair(on_cuda, shapes={"weight": (70, 80), "bias": (5,)})
        of_a, of_b = make(a.parameters()), make(b.parameters())
        train(a, b, of_a, of_b)
        again_a, again_b = make(a.parameters()), make(b.parameters())
        again_a.load_state_dict(of_b.state_dict())
        again_b.load_state_dict(of_a.state_dict())
        mock.forget()
        train(a, b, again_a, again_b, [4])
        assert mock.launches()
        assert isinstance(again_a.state[a.weight]["exp_avg" if "exp_avg" in again_a.state[a.weight] else "m"], dict)


def test_nadam_takes_the_state_of_pytorch(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    of_a, theirs = ot.NAdam(a.parameters(), lr=0.1), torch.optim.NAdam(b.parameters(), lr=0.1)
    for seed in (1, 2, 3, 4):
        if seed == 3:
            states = copy.deepcopy(of_a.state_dict()), copy.deepcopy(theirs.state_dict())
            of_a.load_state_dict(states[1])
            theirs.load_state_dict(states[0])
        for model, opt in ((a, of_a), (b, theirs)):
            opt.zero_grad()
            model.backward(seed)
            opt.step()
        for p, q in zip(a.parameters(), b.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(of_a.state[p]["mu_product"], theirs.state[q]["mu_product"])
    assert len(mock.launches()) == 8


def test_slots_of_tensors_on_a_device_are_there() -> None:
    """Numbers and codes too, wherever a state was loaded from; made without reading a number of the device."""
    from oxigrad.step.parameters.executor import DEVICE
    from oxigrad.torch.group import TensorGroup
    from oxigrad.torch.state import conversion

    with fake.cuda() as asarray, fake.Alone(given=True):
        p = torch.nn.Parameter(asarray(np.zeros(5000, np.float32)))
        for kind, options in ((ot.NAdam, {}), (ot.ASGD, {}), (ot.Prodigy, {"state_dtype": "8bit"})):
            opt = kind([p], **options)
            group, own = TensorGroup(opt.entry, opt.param_groups[0], None, scaled=False), {}
            for _ in range(2):
                conversion.begin(group, "p", p, own, DEVICE)
                parts = [
                    part
                    for key, value in own.items()
                    if key != "step"
                    for part in (value.values() if isinstance(value, dict) else [value])
                ]
                assert {part.device.type for part in parts} == {"cuda"}
                own.update(
                    {
                        key: torch.zeros((), dtype=v.dtype)
                        for key, v in own.items()
                        if not (isinstance(v, dict) or v.ndim)
                    }
                )


def test_complex_parameters(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    start = torch.randn(5, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    p, q = torch.nn.Parameter(on_cuda(start)), torch.nn.Parameter(start.clone())
    of_p, of_q = ot.AdamW([p], lr=0.1), ot.AdamW([q], lr=0.1)
    for number in (1, 2, 3):
        for each, opt in ((p, of_p), (q, of_q)):
            each.grad = torch.full((5,), complex(number, -1), dtype=torch.complex64).conj()
            opt.step()
        assert bits(torch.view_as_real(p)) == bits(torch.view_as_real(q))
    assert len(mock.launches()) == 3


def test_versions_of_tensors_are_counted(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    """Autograd refuses to differentiate by a tensor that a launch has changed since."""
    model = Model(on_cuda)
    opt = ot.AdamW(model.parameters(), lr=0.1)
    model.backward(1)
    opt.step()
    loss, versions = (model.weight**2).sum(), [model.weight._version, opt.state[model.weight]["exp_avg"]._version]
    opt.step()
    assert [model.weight._version, opt.state[model.weight]["exp_avg"]._version] == [each + 1 for each in versions]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_host_and_device_share_a_step(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    a, b = pair(on_cuda)
    here = [torch.nn.Parameter(torch.ones(7)) for _ in "ab"]
    opts = [ot.AdamW([*m.parameters(), p], lr=0.1) for m, p in zip((a, b), here, strict=True)]
    for seed in (1, 2):
        for model, p, opt in zip((a, b), here, opts, strict=True):
            opt.zero_grad()
            model.backward(seed)
            p.grad = torch.full((7,), float(seed))
            opt.step()
    assert_same(a, b, *opts)
    assert bits(here[0]) == bits(here[1])
    assert len(mock.launches()) == 2


@pytest.mark.parametrize(
    ("call", "steps"), [("load", 0), ("allocate", 0), ("upload", 0), ("upload", 2), ("launch", 0), ("launch", 2)]
)
def test_a_step_that_fails_changes_nothing(
    call: str, steps: int, on_cuda: Callable[[Any], Any], mock: MockDriver
) -> None:
    a, b = pair(on_cuda)
    of_a, of_b = (ot.AdamW(model.parameters(), lr=0.1) for model in (a, b))
    train(a, b, of_a, of_b, range(steps))
    kept = []
    for model, opt in ((a, of_a), (b, of_b)):
        kept += [p.grad for p in model.parameters()]
        opt.zero_grad()
        model.backward(9)
    before = [bits(p) for p in a.parameters()], copy.deepcopy(of_a.state_dict())
    mock.failures[call] = 0, "CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(cuda.DeviceMemoryError, match=r"^param_groups\[0\]\['params'\]\[0\]: "):
        of_a.step()
    mock.failures.clear()
    assert before[0] == [bits(p) for p in a.parameters()]
    after = of_a.state_dict()
    assert after["state"].keys() == before[1]["state"].keys()
    for number, own in before[1]["state"].items():
        assert {key: bits(value) for key, value in own.items()} == {
            key: bits(value) for key, value in after["state"][number].items()
        }
    for opt in (of_a, of_b):
        opt.step()
    assert_same(a, b, of_a, of_b)


def test_a_capture_is_refused(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    model = Model(on_cuda)
    opt = ot.AdamW(model.parameters(), lr=0.1)
    model.backward(1)
    opt.step()
    before = bits(model.weight)
    with mock.capture(0), pytest.raises(cuda.CaptureError, match="reads its numbers on the host"):
        opt.step()
    assert bits(model.weight) == before
    assert float(opt.state[model.weight]["step"]) == 1


def test_memory_that_gradients_and_parameters_share(on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    model = Model(on_cuda)
    opt = ot.AdamW(model.parameters(), lr=0.1)
    model.backward(1)
    opt.step()
    before = bits(model.bias)
    model.bias.grad = model.bias.detach()
    with pytest.raises(ox.AliasError, match="share memory"):
        opt.step()
    assert bits(model.bias) == before


@pytest.mark.parametrize("name", ["Muon", "Shampoo", "Adafactor"])
def test_rules_without_a_kernel_are_called(name: str, on_cuda: Callable[[Any], Any], mock: MockDriver) -> None:
    """Rules of whole matrices."""
    a, b = pair(on_cuda, shapes={"weight": (4, 5)})
    of_a, of_b = (getattr(ot, name)(model.parameters()) for model in (a, b))
    for seed in (1, 2):
        for model, opt in ((a, of_a), (b, of_b)):
            opt.zero_grad()
            model.backward(seed)
            opt.step()
        torch.testing.assert_close(a.weight, b.weight)
    assert not mock.launches()


def test_a_steady_step_runs_as_many_frames_for_any_number_of_parameters(on_cuda: Callable[[Any], Any]) -> None:
    found = []
    for count in (1, 50):
        params = [torch.nn.Parameter(on_cuda(torch.ones(3))) for _ in range(count)]
        opt = ot.AdamW(params)
        for p in params:
            p.grad = torch.ones(3)
        for _ in range(3):
            opt.step()
        found.append([name for name in frames(opt.step) if name.startswith("oxigrad")])
    assert found[0] == found[1]
    assert len(found[0]) <= 48, found[0]


@pytest.mark.parametrize("left", [0, 16])
@pytest.mark.parametrize(
    ("steps_before", "which"),
    [
        *((steps, which) for steps in (0, 1, 2) for which in ("parameter", "gradient", "new gradient")),
        *((steps, "state") for steps in (1, 2)),
    ],
)
def test_a_shrunk_storage_is_refused(steps_before: int, which: str, left: int, on_cuda: Callable[[Any], Any]) -> None:
    """A kernel would read and write outside of it."""
    p, q = (torch.nn.Parameter(on_cuda(torch.ones(30, 40))) for _ in range(2))
    p.grad, q.grad = torch.ones(30, 40), torch.ones(30, 40)
    opt = ot.AdamW([q, p])
    for _ in range(steps_before):
        opt.step()
    check_shrunk_is_refused(opt, which, "exp_avg", left)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_rule_of_whole_parameters_refuses_gradients_in_memory_that_it_writes(
    start: int, on_cuda: Callable[[Any], Any]
) -> None:
    """From the first, the middle or the last row of another parameter on."""
    memory = on_cuda(torch.linspace(0, 1, 24).reshape(6, 4))
    p, q = torch.nn.Parameter(memory[:3]), torch.nn.Parameter(on_cuda(torch.ones(3, 4)))
    before = p.detach().clone(), q.detach().clone()
    opt = ot.Muon([p, q])
    p.grad, q.grad = torch.ones(3, 4), memory[start : start + 3]
    with pytest.raises(ox.AliasError, match="share memory"):
        opt.step()
    assert torch.equal(p, before[0]) and torch.equal(q, before[1])
    q.grad = memory[3:]
    opt.step()
    assert not torch.equal(p, before[0]) and not torch.equal(q, before[1])
