"""Training on a GPU: whole steps in CUDA graphs, streams, memory that does not grow, sums over NCCL. They run with --gpu alone."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

import oxigrad as ox  # noqa: E402
from torch_problems import OURS, copies, drawn, equal, gradients, parameters, states, train  # noqa: E402
from torch_requirements import process_group  # noqa: E402

pytestmark = pytest.mark.usefixtures("card")

OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "AdamW": ("AdamW", {}),
    "AdamW, clipped": ("AdamW", {"max_norm": 0.01}),
    "AdamW, 8 bits": ("AdamW", {"state_dtype": "8bit"}),
    "AdamW, stochastic": ("AdamW", {"rounding": "stochastic", "seed": 3}),
    "SGD": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "NAdam": ("NAdam", {}),
    "LAMB": ("LAMB", {}),
    "Lion": ("Lion", {}),
    "Prodigy": ("Prodigy", {}),
}


@pytest.fixture
def card(default_device: Any) -> Any:
    """A GPU; tests that need one are skipped without --gpu."""
    if default_device.type != "cuda":
        pytest.skip("needs a GPU: run with --gpu")
    return default_device


def network(dtype: Any = torch.float32, width: int = 80) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.Tanh(), torch.nn.Linear(width, 3)).to(dtype)


def batch(step: int, like: Any) -> Any:
    return drawn((16, 64), torch.Generator().manual_seed(step), device=like.device).to(like.dtype)


def learn(model: Any, opt: Any, steps: Any) -> None:
    for step in steps:
        opt.zero_grad()
        model(batch(step, model[0].weight)).square().mean().backward()
        opt.step()


@pytest.mark.parametrize("name", ["AdamW", "Adam", "NAdam", "RMSprop", "RAdam", "Adamax"])
def test_a_whole_step_in_a_graph(name: str) -> None:
    """Forward, backward and step are captured once, and replayed with other inputs, as by PyTorch's class with ``capturable=True``."""
    model, plain = network(), network()
    opt, other = (OURS.make(name, m.parameters(), lr=0.01, capturable=m is model) for m in (model, plain))
    learn(plain, other, range(6))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        learn(model, opt, range(2))
    torch.cuda.current_stream().wait_stream(side)
    x, graph = batch(2, model[0].weight), torch.cuda.CUDAGraph()
    opt.zero_grad()
    with torch.cuda.graph(graph):
        model(x).square().mean().backward()
        opt.step()
    for step in range(2, 6):
        x.copy_(batch(step, x))
        graph.replay()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)  # numbers of float32, in other orders


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("name", ["AdamW", "LAMB", "Lion"])
def test_a_step_that_counts_on_the_host_is_not_captured(name: str) -> None:
    model = network()
    learn(model, opt := OURS.make(name, model.parameters()), range(2))
    with torch.cuda.graph(torch.cuda.CUDAGraph()), pytest.raises(ox.cuda.CaptureError, match="capturable=True"):
        opt.step()
    learn(model, opt, range(2))


@pytest.mark.parametrize("name", ["AdamW", "AdamW, clipped", "LAMB"])
def test_streams_in_turn(name: str) -> None:
    kind, options = OPTIONS[name]
    model, plain = network(), network()
    opt, other = (OURS.make(kind, m.parameters(), **options) for m in (model, plain))
    learn(plain, other, range(8))
    for step in range(8):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            learn(model, opt, [step])
        torch.cuda.current_stream().wait_stream(side)
    assert equal(model.parameters(), plain.parameters())


@pytest.mark.parametrize("further", [{}, {"state_device": "host"}], ids=["", "state in host memory"])
def test_steps_in_a_backward_on_another_stream(further: dict[str, Any]) -> None:
    found = []
    for options in ({}, {"in_backward": True, **further}):
        model = network(width=4000)
        opt = ours.AdamW(model.parameters(), lr=0.1, **options)
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            for step in range(6):
                if not options:
                    opt.zero_grad()
                model(batch(step, model[0].weight)).square().mean().backward()
                opt.step()
            torch.cuda.current_stream().synchronize()
        found.append([*model.parameters()])
    assert equal(*found)


@pytest.mark.parametrize("options", [{}, {"max_norm": 0.5}, {"master": True, "state_dtype": "float32"}], ids=str)
def test_large_parameters_with_the_state_in_host_memory(options: dict[str, Any]) -> None:
    """Several pieces are on their way at once, while gradients are dropped and drawn anew."""
    dtype = torch.bfloat16 if "master" in options else torch.float32
    params = parameters(((3000, 4000), (5,), (1 << 22,), ()), dtype)
    others = copies(params)
    opt = ours.AdamW(params, lr=0.1, state_device="host", **options)
    other = ours.AdamW(others, lr=0.1, **options)
    for step in range(4):
        train(opt, params, [step])
        train(other, others, [step])
        assert equal(params, others)
    assert equal([t.cpu() for t in states(opt)], [t.cpu() for t in states(other)])


@pytest.mark.parametrize("name", ["AdamW", "AdamW, clipped", "AdamW, 8 bits", "Prodigy"])
def test_memory_does_not_grow(name: str) -> None:
    """Neither what PyTorch allocates nor what the driver has given, and both are free after the optimizer."""

    def used() -> tuple[int, int]:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free, whole = torch.cuda.mem_get_info()
        return torch.cuda.memory_allocated(), whole - free

    kind, options = OPTIONS[name]
    model = network(width=200_000)
    learn(model, opt := OURS.make(kind, model.parameters(), **options), range(2))  # kernels and libraries are loaded
    del opt
    model.zero_grad()
    before = used()
    opt = OURS.make(kind, model.parameters(), **options)
    learn(model, opt, range(2))
    opt.zero_grad()
    during = used()
    learn(model, opt, range(30))
    opt.zero_grad()
    after = used()
    assert after[0] == during[0] > before[0]
    del opt
    at_end = used()
    assert at_end[0] == before[0]
    if torch.cuda.device_count() and not _shared():
        assert after[1] <= during[1]
        assert at_end[1] <= before[1] + (4 << 20)


def _shared() -> bool:
    """Whether other processes of the tests use the GPU: what the driver has given is then theirs too."""
    import os

    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1


@pytest.mark.parametrize("name", ["AdamW", "AdamW, 8 bits", "NAdam"])
def test_a_state_moves_between_the_host_and_the_card(name: str, tmp_path: Path) -> None:
    kind, options = OPTIONS[name]
    params = parameters(((70, 64), (3,)))
    train(opt := OURS.make(kind, params, **options), params)
    torch.save(opt.state_dict(), tmp_path / "state.pt")
    host = [torch.nn.Parameter(p.detach().cpu()) for p in params]
    resumed = OURS.make(kind, host, **options)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True))
    for step in range(3, 6):
        given = gradients(params, step)
        for model, o in ((params, opt), (host, resumed)):
            for p, g in zip(model, given, strict=True):
                p.grad = g.to(p.device)
            o.step()
    assert equal([p.cpu() for p in params], host)
    back = copies(p.cuda() for p in host)
    again = OURS.make(kind, back, **options)
    again.load_state_dict(resumed.state_dict())
    train(opt, params, range(6, 8))
    train(again, back, range(6, 8))
    assert equal(params, back)


def test_a_model_that_moves_takes_its_state_along() -> None:
    model, plain = network().cpu(), network()
    opt, other = (ours.AdamW(m.parameters(), lr=0.1) for m in (model, plain))
    for step in range(2):
        for p, q, g in zip(model.parameters(), plain.parameters(), gradients([*plain.parameters()], step), strict=True):
            p.grad, q.grad = g.cpu(), g
        opt.step()
        other.step()
    opt.zero_grad()
    model.to("cuda")
    resumed = ours.AdamW(model.parameters(), lr=0.1)
    resumed.load_state_dict(opt.state_dict())
    train(resumed, [*model.parameters()], range(2, 5))
    train(other, [*plain.parameters()], range(2, 5))
    assert equal(model.parameters(), plain.parameters())


# --- over NCCL -------------------------------------------------------------------------------------------------------------


def test_gradients_are_added_by_nccl() -> None:
    """In a group of one process, which NCCL serves too."""
    from oxigrad.distributed.engines.torch import tensors

    gradients_by_path = {"w": torch.randn(300, 40), "b": torch.randn(7, dtype=torch.bfloat16)}
    with process_group():
        program = torch.distributed.distributed_c10d._get_default_group()
        group = tensors.TensorGroup.of(program, [*gradients_by_path.values()])
        assert group is not None
        for _ in range(3):
            with group.queued():
                flat = group.flat(12_010, np.dtype(np.float32))
                views = {"w": flat[:12_000].view(300, 40), "b": flat[12_000:12_007], "none": flat[12_007:12_010]}
                group.fill(views, gradients_by_path)
                group.sum(flat)
            group.join()
            assert torch.equal(views["w"], gradients_by_path["w"])
            assert torch.equal(views["b"], gradients_by_path["b"].float())
            assert not views["none"].any()


@pytest.mark.parametrize("options", [{}, {"local_batches": 2}, {"overlap": False}], ids=str)
def test_a_replica_on_a_card(options: dict[str, Any]) -> None:
    """A job of one process steps as without one."""
    from oxigrad import distributed

    model, plain = network(), network()
    batches: int = options.get("local_batches", 1)
    with process_group():
        comm = distributed.communicator("torch")
        with distributed.DataParallel(ox.optim.Adam(0.1), bucket_bytes=400, communicator=comm, **options) as opt:
            opt.start(model)
            step_all(model, opt.update, range(4 * batches))
    reference = ox.optim.Adam(0.1)
    for number in range(4):
        for p in plain.parameters():
            p.grad = None
        for step in range(number * batches, (number + 1) * batches):
            (model_loss(plain, step) / batches).backward()
        reference.update(plain)
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def model_loss(model: Any, step: int) -> Any:
    return model(batch(step, model[0].weight)).square().mean()


def step_all(model: Any, update: Callable[[Any], object], steps: Any) -> None:
    for step in steps:
        model.zero_grad()
        model_loss(model, step).backward()
        update(model)


def test_wrapped_modules_of_torch() -> None:
    """`DistributedDataParallel` over NCCL."""
    model, plain = network(), network()
    with process_group():
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        opt, other = (ours.AdamW(m.parameters(), lr=0.1, max_norm=1.0) for m in (wrapped, plain))
        for step in range(4):
            opt.zero_grad()
            wrapped(batch(step, model[0].weight)).square().mean().backward()
            opt.step()
        learn(plain, other, range(4))
    assert equal(model.parameters(), plain.parameters())
