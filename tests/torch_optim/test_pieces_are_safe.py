"""Steps by pieces beside what users do meanwhile: graphs that read parameters, threads, settings, and memory that is freed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from oxigrad import ArrayMemoryError  # noqa: E402
from oxigrad.step.state import write_back  # noqa: E402
from torch_problems import OURS, equal, parameters, values  # noqa: E402

NAMES = sorted({*OURS.names} - {"LBFGS", "SparseAdam"})
READS_LOSS = ("MoMo", "MoMoAdam", "PolyakSGD")
WHERE = ("host", "file", "in_backward", "in_backward host", "in_backward file")


@pytest.fixture(autouse=True)
def _large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file of slots is large beside the memory."""
    monkeypatch.setattr(write_back, "memory_limit", lambda: 1.0)
    monkeypatch.setattr(write_back, "LEAST", 0)


def placed(where: str, folder: Path) -> dict[str, Any]:
    """The options of a way of stepping."""
    options: dict[str, Any] = {"in_backward": True} if "in_backward" in where else {}
    if "host" in where:
        options["state_device"] = "host"
    elif "file" in where:
        options["state_device"] = folder / "state.safetensors"
    return options


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", NAMES)
def test_a_backward_after_the_step_does_not_read_other_weights(name: str, where: str, tmp_path: Path) -> None:
    """As in PyTorch, whose versions tell that a parameter has changed since the forward."""
    options = placed(where, tmp_path)
    p = torch.nn.Parameter(torch.linspace(-1.0, 1.0, 36).reshape(6, 6))
    x = torch.ones(6, 6, requires_grad=True)
    try:
        opt = OURS.make(name, [p], **options)
    except ValueError as error:
        assert "in_backward" in str(error)  # noqa: PT017 - of rules that need all gradients at once
        return
    for _ in range(2):  # the first makes the slots
        loss = ((x @ p) ** 2).sum()
        loss.backward(retain_graph=True)
        opt.step(**({"loss": 1.0} if name in READS_LOSS else {}))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("where", [where for where in WHERE if "in_backward" in where])
def test_a_backward_that_reads_a_detached_weight_has_the_right_gradient_or_raises(where: str, tmp_path: Path) -> None:
    found = []
    for options in ({}, placed(where, tmp_path)):
        generator = torch.Generator().manual_seed(0)
        p = torch.nn.Parameter(torch.randn(300, 300, generator=generator))
        opt = ours.AdamW([p], lr=100.0, **options)
        for _ in range(2):
            x = torch.randn(300, 300, generator=generator, requires_grad=True)
            y = (x @ p.detach() @ p).sum()  # the gradient of p is final before that of x
            opt.zero_grad()
            try:
                y.backward()
            except RuntimeError as error:
                assert "modified by an inplace operation" in str(error)  # noqa: PT017
            else:
                found.append(x.grad)
            opt.step()
    assert len(found) >= 2 and all(torch.equal(g, found[0]) for g in found[2:3])


@pytest.mark.parametrize("name", ["SOAP", "Shampoo", "Muon"])
def test_products_of_matrices_use_the_threads_of_the_caller(name: str) -> None:
    before = torch.get_num_threads()
    shape = (120, 100)
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found = []
            for options in ({}, {"state_device": "host"}):
                params = parameters((shape,))
                opt = OURS.make(name, params, **options)
                generator = torch.Generator().manual_seed(1)
                for _ in range(4):
                    params[0].grad = torch.randn(shape, generator=generator)
                    opt.step()
                found.append(values(params))
            assert equal(*found)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("where", ["host", "file"])
def test_threads_that_step_one_optimizer_lose_no_step(where: str, tmp_path: Path) -> None:
    p, q = (torch.nn.Parameter(torch.linspace(0.0, 1.0, 50)) for _ in range(2))
    opt = ours.SGD([p], lr=0.125, momentum=0.5, **placed(where, tmp_path))
    other = ours.SGD([q], lr=0.125, momentum=0.5)
    p.grad, q.grad = torch.ones(50), torch.ones(50)
    errors: list[BaseException] = []

    def step() -> None:
        try:
            for _ in range(15):
                opt.step()
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opt.synchronize()
    for _ in range(60):
        other.step()
    assert not errors
    assert torch.equal(p, q)


def freed(p: Any) -> None:
    p.data.untyped_storage().resize_(0)


def replaced(p: Any) -> None:
    p.data = torch.zeros_like(p)


@pytest.mark.parametrize("change", [freed, replaced])
def test_memory_that_is_gone_in_the_middle_of_a_step_is_an_error_by_name(change: Any) -> None:
    """Updates that clip wait for the norm of all gradients, which ``step()`` knows."""
    p = torch.nn.Parameter(torch.ones(1000))
    opt = ours.AdamW([{"params": [p]}], in_backward=True, max_norm=1.0, state_device="host")
    p.sum().backward()
    opt._pieces._ring.join()
    change(p)
    with pytest.raises(ArrayMemoryError, match=r"params'\]\[0\]: the (parameter|memory of the parameter)"):
        opt.step()
