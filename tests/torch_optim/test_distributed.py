"""oxigrad.torch with `torch.distributed`, in a process group of size one: DTensor, FSDP2 and distributed checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")
if not torch.distributed.is_available():
    pytest.skip("this build of PyTorch has no torch.distributed", allow_module_level=True)

from torch.distributed import checkpoint  # noqa: E402
from torch.distributed.checkpoint.state_dict import (  # noqa: E402
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

from torch_problems import OURS, drawn, equal, gradients, parameters, train  # noqa: E402
from torch_requirements import device_mesh  # noqa: E402


@pytest.fixture
def mesh(default_device: Any) -> Iterator[Any]:
    """A device mesh of one process."""
    with device_mesh() as made:
        yield made


def classifier(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 80), torch.nn.Tanh(), torch.nn.Linear(80, 3))


def learn(model: Any, opt: Any, steps: Any) -> None:
    for step in steps:
        x = drawn((8, 64), torch.Generator().manual_seed(step))
        opt.zero_grad()
        model(x).square().mean().backward()
        opt.step()


OPTIONS: dict[str, dict[str, Any]] = {
    "AdamW": {"lr": 0.01},
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adafactor": {},
    "Lion": {},
    "ScheduleFreeAdamW": {},
}


@pytest.mark.filterwarnings("ignore:.*torch.distributed is .*unavailable")
@pytest.mark.parametrize("flat", [False, True], ids=["nested", "flat"])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_distributed_checkpoint(name: str, flat: bool, tmp_path: Path, mesh: Any) -> None:
    """`torch.distributed.checkpoint` saves the state and loads it into a new optimizer."""
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    model = classifier()
    opt = OURS.make(name, model.parameters(), **OPTIONS[name])
    learn(model, opt, range(3))
    own, state = get_state_dict(model, opt, options=options)
    checkpoint.save({"model": own, "optimizer": state}, checkpoint_id=tmp_path / "saved")
    other = classifier(1)
    resumed = OURS.make(name, other.parameters(), **OPTIONS[name])
    own, state = get_state_dict(other, resumed, options=options)
    read = {"model": own, "optimizer": state}
    checkpoint.load(read, checkpoint_id=tmp_path / "saved")
    set_state_dict(other, resumed, model_state_dict=read["model"], optim_state_dict=read["optimizer"], options=options)
    learn(model, opt, range(3, 6))
    learn(other, resumed, range(3, 6))
    assert equal(other.parameters(), model.parameters())


@pytest.mark.parametrize("name", ["AdamW", "SGD", "Lion"])
def test_fully_sharded(name: str, mesh: Any) -> None:
    """`fully_shard` replaces the parameters of a module by DTensors."""
    from torch.distributed.fsdp import fully_shard

    plain, model = classifier(), classifier()
    fully_shard(model, mesh=mesh)
    options = OPTIONS[name]
    opt, other = OURS.make(name, model.parameters(), **options), OURS.make(name, plain.parameters(), **options)
    learn(model, opt, range(3))
    learn(plain, other, range(3))
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p.full_tensor(), q, rtol=1e-5, atol=1e-6)


def distributed(mesh: Any, params: Any) -> list[Any]:
    from torch.distributed.tensor import Shard, distribute_tensor

    return [torch.nn.Parameter(distribute_tensor(p.detach().clone(), mesh, [Shard(0)])) for p in params]


@pytest.mark.parametrize("name", ["LAMB", "LARS", "Muon", "SOAP", "Shampoo", "Adafactor"])
def test_rules_of_whole_parameters_refuse_a_dtensor(name: str, mesh: Any) -> None:
    """A norm of the local part would silently be another value."""
    from torch.distributed.tensor import Shard, distribute_tensor

    if not hasattr(ours, name):
        pytest.fail(f"oxigrad.torch has no {name}")
    plain = parameters(((4, 3), (2, 5)))
    params = distributed(mesh, plain)
    opt = OURS.make(name, [("first", params[0]), ("second", params[1])])
    for p, g in zip(params, gradients(plain, 0), strict=True):
        p.grad = distribute_tensor(g, mesh, [Shard(0)])
    with pytest.raises(RuntimeError, match=f"first.*{name}.*DTensor"):
        opt.step()
    assert equal([p.to_local() for p in params], plain)


def test_mismatched_placements_are_refused(mesh: Any) -> None:
    from torch.distributed.tensor import Replicate, distribute_tensor

    (plain,) = parameters(((4, 3),))
    (p,) = distributed(mesh, [plain])
    opt = ours.AdamW([("weight", p)])
    p.grad = distribute_tensor(torch.ones(4, 3), mesh, [Replicate()])
    with pytest.raises(RuntimeError, match="weight.*placement"):
        opt.step()
    assert torch.equal(p.to_local(), plain) and not opt.state


def test_low_precision_state_in_a_distributed_checkpoint(tmp_path: Path, mesh: Any) -> None:
    kinds: list[tuple[dict[str, Any], Any]] = [
        ({"state_dtype": "8bit"}, torch.float32),
        ({"state_dtype": "4bit"}, torch.float32),
        ({"master": True}, torch.bfloat16),
    ]
    for number, (options, dtype) in enumerate(kinds):
        model, other = classifier().to(dtype), classifier(1).to(dtype)
        opt, resumed = (ours.AdamW(m.parameters(), lr=1e-3, **options) for m in (model, other))
        train(opt, [*model.parameters()])
        read = [
            dict(zip(("model", "optimizer"), get_state_dict(m, o), strict=True))
            for m, o in ((model, opt), (other, resumed))
        ]
        checkpoint.save(copy.deepcopy(read[0]), checkpoint_id=tmp_path / str(number))
        checkpoint.load(read[1], checkpoint_id=tmp_path / str(number))
        set_state_dict(other, resumed, model_state_dict=read[1]["model"], optim_state_dict=read[1]["optimizer"])
        train(opt, [*model.parameters()], range(3, 6))
        train(resumed, [*other.parameters()], range(3, 6))
        assert equal(other.parameters(), model.parameters()), options
