"""Gradients of PyTorch modules leave during the backward, with the bits of an exchange after it."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import jobs
import pytest

from oxigrad import distributed, optim, xp
from oxigrad.distributed import DataParallel, LargeBatch, TimedOut
from oxigrad.distributed.engines.threads import ThreadJob

torch = pytest.importorskip("torch")


def new_module() -> Any:
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4), torch.nn.Linear(4, 2))
    draws = torch.Generator().manual_seed(0)  # of its own: threads share the default one
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=draws))
    return module


def loss(module: Any, rank: int, step: int, *, skips: bool = False) -> Any:
    """The loss on data of a worker; the last layer but one is left out where it ``skips``."""
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(100 * rank + step))
    hidden = module[1](module[0](x))
    return (hidden if skips else module[3](module[2](hidden))).square().mean()


def trained(make: Any, workers: int = 2, steps: int = 4, skips: bool = False) -> list[Any]:
    """The parameters of each worker, and the most buckets that had begun at the end of a backward."""

    def worker(comm: Any) -> Any:
        module, opt, most = new_module(), make(), 0
        with opt:
            opt.start(module)
            for step in range(steps):
                module.zero_grad()
                loss(module, comm.rank, step, skips=skips and comm.rank == 1).backward()
                most = max(most, getattr(getattr(opt, "_buckets", None), "begun", 0))
                opt.update(module)
        assert not any(p._post_accumulate_grad_hooks for p in module.parameters())
        return [p.detach().numpy().tobytes() for p in module.parameters()], most

    return distributed.run(worker, workers=workers, timeout=jobs.DEADLINE)


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("limit", [1, 60, 1 << 20])
def test_overlap_changes_no_bits(limit: int, skips: bool) -> None:
    found = trained(lambda: DataParallel(optim.Adam(0.1), bucket_bytes=limit), skips=skips)
    without = trained(lambda: DataParallel(optim.Adam(0.1), bucket_bytes=limit, overlap=False), skips=skips)
    assert found[0][0] == found[1][0] == without[0][0]
    assert without[0][1] == 0
    assert found[0][1] == (6 if limit == 1 else found[0][1]) > 0
    if skips:
        assert found[1][1] < 6 or limit > 1


@pytest.mark.parametrize("local_batches", [1, 3])
def test_the_steps_are_those_of_one_exchange(local_batches: int) -> None:
    found = trained(lambda: DataParallel(optim.SGD(0.1), bucket_bytes=40, local_batches=local_batches), steps=6)
    expected = trained(lambda: LargeBatch(optim.SGD(0.1), local_batches), steps=6)
    assert [each[0] for each in found] == [each[0] for each in expected]
    assert found[0][1] > 0


def test_backwards_without_synchronization_are_added_up() -> None:
    def worker(comm: Any, *, overlap: bool) -> Any:
        module, opt = new_module(), DataParallel(optim.SGD(0.1), bucket_bytes=1, overlap=overlap)
        with opt:
            opt.start(module)
            for step in range(3):
                module.zero_grad()
                with opt.no_sync():
                    loss(module, comm.rank, 10 + step).backward()
                loss(module, comm.rank, step).backward()
                opt.update(module)
        return [p.detach().numpy().tobytes() for p in module.parameters()]

    found = distributed.run(lambda comm: worker(comm, overlap=True), workers=2, timeout=jobs.DEADLINE)
    expected = distributed.run(lambda comm: worker(comm, overlap=False), workers=2, timeout=jobs.DEADLINE)
    assert found == expected


def mistaken(change: Any) -> list[str]:
    """The error of each worker that changes its gradients between two backwards, or after one."""

    def worker(comm: Any) -> str:
        module, opt = new_module(), DataParallel(optim.SGD(0.1), bucket_bytes=1)
        with opt:
            for step in range(3):
                loss(module, comm.rank, step).backward()
                if step == 2:
                    with pytest.raises(RuntimeError) as error:
                        change(opt, module, comm.rank)
                    return str(error.value)
                opt.update(module)
                module.zero_grad()
        return ""

    return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)


def test_a_gradient_that_is_under_way_does_not_change_in_silence() -> None:
    def clip(opt: Any, module: Any, rank: int) -> None:
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1e-3)
        opt.update(module)

    def again(opt: Any, module: Any, rank: int) -> None:
        loss(module, rank, 5).backward()

    assert all("the gradient was changed after the backward" in text for text in mistaken(clip))
    assert all("a second gradient before update" in text for text in mistaken(again))


@pytest.mark.parametrize("layer", [0, 3])
def test_survivors_go_on_after_a_death_in_the_backward(layer: int) -> None:
    """A worker dies while the others' buckets are under way, before its first layer has a gradient, or its last."""
    ready, killed = threading.Event(), threading.Event()

    def die(_: Any) -> None:
        if not killed.is_set():  # the thread may go on until its next call, where another worker has the rank
            killed.set()
            job.kill(1)

    def worker(comm: Any) -> Any:
        assert ready.wait(jobs.DEADLINE)
        module, opt, rank = new_module(), DataParallel(optim.Adam(0.1), bucket_bytes=1), comm.rank
        module = opt.start(module)
        for step in range(6):
            if rank == 1 and step == 3:
                module[layer].weight.register_post_accumulate_grad_hook(die)
            module.zero_grad()
            loss(module, rank, step).backward()
            opt.update(module)
        return [p.detach().numpy().tobytes() for p in module.parameters()], opt.step, opt.communicator.size

    job = ThreadJob(worker, 3, timeout=20.0)
    ready.set()
    first, lost, last = job.wait(jobs.DEADLINE)
    assert lost is None and first == last and first[1:] == (6, 2)


def test_frozen_parameters_need_no_gradient() -> None:
    def worker(comm: Any) -> Any:
        module, opt = new_module(), DataParallel(optim.SGD(0.1), bucket_bytes=1)
        module[0].weight.requires_grad_(False)
        before = module[0].weight.detach().numpy().tobytes()
        with opt:
            for step in range(3):
                module.zero_grad()
                loss(module, comm.rank, step).backward()
                opt.update(module)
        assert module[0].weight.detach().numpy().tobytes() == before
        return module[3].weight.detach().numpy().tobytes()

    first, second = distributed.run(worker, workers=2, timeout=jobs.DEADLINE)
    assert first == second


def test_a_module_may_be_replaced() -> None:
    """The hooks move to the tensors of the model of the last step."""

    def worker(comm: Any) -> list[int]:
        with DataParallel(optim.SGD(0.1), bucket_bytes=1) as opt:
            begun = []
            for _ in range(2):
                module = new_module()
                for step in range(3):
                    module.zero_grad()
                    loss(module, comm.rank, step).backward()
                    begun.append(opt._buckets.begun if opt._buckets else 0)
                    opt.update(module)
        return begun

    for begun in distributed.run(worker, workers=2, timeout=jobs.DEADLINE):
        assert begun[2] == begun[5] == 6


SHARDED = {
    "muon": lambda: optim.partition({"*weight": optim.Muon(0.1), "*": optim.Adam(0.1)}),
    "clip": lambda: optim.chain(optim.ClipByGlobalNorm(0.1), optim.AdamW(0.1)),
}


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("make", SHARDED.values(), ids=SHARDED)
def test_modules_have_the_same_bits_with_their_slots_in_shards(make: Any, overlap: bool) -> None:
    found = trained(lambda: DataParallel(make(), bucket_bytes=60, overlap=overlap, shard_state=True), workers=3)
    expected = trained(lambda: DataParallel(make(), bucket_bytes=60, overlap=False), workers=3)
    assert [each[0] for each in found] == [each[0] for each in expected]
    assert (found[0][1] > 0) == overlap


def test_buckets_of_a_backward_are_reduced_into_parts() -> None:
    def worker(comm: Any) -> Any:
        module = new_module()
        with DataParallel(optim.Adam(0.1), bucket_bytes=60, shard_state=True) as opt:
            for step in range(3):
                module.zero_grad()
                loss(module, comm.rank, step).backward()
                opt.update(module)
            buckets = opt._buckets
            assert buckets is not None and len(buckets._buckets) > 1
            return sum(view.size for view in buckets.mean(1, comm.rank).values())

    sizes = distributed.run(worker, workers=3, timeout=jobs.DEADLINE)
    assert sum(sizes) == sum(p.numel() for p in new_module().parameters()) and max(sizes) - min(sizes) <= 3


def most_bytes(**options: Any) -> list[tuple[int, int]]:
    """The most bytes of gradients and of buckets at a time, in the backwards from the second step on, and those of all gradients."""

    def worker(comm: Any) -> tuple[int, int]:
        module, most = torch.nn.Sequential(*(torch.nn.Linear(40, 40) for _ in range(10))), 0

        def count(_: Any) -> None:
            nonlocal most
            grads = [p.grad for p in module.parameters() if p.grad is not None]
            own = sum(each.untyped_storage().nbytes() for each in grads)
            most = max(most, own + (opt._buckets.nbytes if opt._buckets else 0))

        with DataParallel(optim.Adam(0.1), bucket_bytes=6000, **options) as opt:
            for step in range(4):
                module.zero_grad()
                module(torch.ones(2, 40)).square().mean().backward()
                opt.update(module)
                if options.get("shard_state") and step:
                    assert all(p.grad is None for p in module.parameters())
                if step == 0:
                    handles = [p.register_post_accumulate_grad_hook(count) for p in module.parameters()]
            for handle in handles:
                handle.remove()
        return most, sum(p.numel() for p in module.parameters()) * 4

    return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)


def test_gradients_and_buckets_in_shards_are_given_back_during_the_backward() -> None:
    for most, whole in most_bytes():
        assert most >= 2 * whole
    for most, whole in most_bytes(shard_state=True):
        assert most < 0.45 * whole  # two buckets of a tenth, and the layers whose buckets are not full


def test_a_gradient_that_was_given_back_does_not_change_in_silence() -> None:
    """Clipping by torch raises its own error, since nobody has the gradients of all."""

    def worker(comm: Any) -> list[str]:
        module, found = new_module(), []
        with DataParallel(optim.SGD(0.1), bucket_bytes=1, shard_state=True) as opt:
            for step in range(3):
                module.zero_grad()
                loss(module, comm.rank, step).backward()
                opt.update(module)
            module.zero_grad()
            loss(module, comm.rank, 3).backward()
            for change in (
                lambda: torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0),
                lambda: loss(module, comm.rank, 3).backward(),
            ):
                with pytest.raises(RuntimeError) as error:
                    change()
                found.append(str(error.value))
            module[0].weight.grad.zero_()
            with pytest.raises(RuntimeError, match=r"0.weight: the gradient was changed after the backward"):
                opt.update(module)
        return found

    for texts in distributed.run(worker, workers=2, timeout=jobs.DEADLINE):
        assert all("more than one element of the written-to tensor" in text for text in texts) and len(texts) == 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_workers_start_from_parameters_of_half_precision(dtype: str) -> None:
    def worker(comm: Any) -> list[Any]:
        module = torch.nn.Linear(3, 2, dtype=getattr(torch, dtype))
        with torch.no_grad():
            for p in module.parameters():
                p.fill_(0.25 + comm.rank)
        with DataParallel(optim.Adam(0.5)) as opt:
            opt.start(module)
            started = [p.unique().tolist() for p in module.parameters()]
            module(torch.ones(1, 3, dtype=getattr(torch, dtype)) * (1 + comm.rank)).sum().backward()
            opt.update(module)
        return [*started, *(p.float().detach().numpy().tobytes() for p in module.parameters())]

    first, second = distributed.run(worker, workers=2)
    assert first == second and first[:2] == [[0.25], [0.25]]


@pytest.mark.parametrize("is_module", [True, False])
@pytest.mark.parametrize("shard_state", [False, True])
def test_a_step_that_timed_out_leaves_nothing_to_the_next(shard_state: bool, is_module: bool) -> None:
    """Its gradients counted as final in the next backward, which was refused as a second one, with all that followed."""

    def worker(comm: Any) -> Any:
        opt, is_late = DataParallel(optim.Adam(0.1), bucket_bytes=60, shard_state=shard_state), False

        def timed_out(operation: Any) -> Any:
            def called(*args: Any, **named: Any) -> Any:
                if is_late:
                    raise TimedOut("another worker is late")
                return operation(*args, **named)

            return called

        comm._collect, comm._all_reduce = timed_out(comm._collect), timed_out(comm._all_reduce)
        module, arrays = (
            new_module(),
            {f"p{at}": p.detach().numpy().copy() for at, p in enumerate(new_module().parameters())},
        )
        taken = opt.start(module if is_module else arrays)
        for step in range(8):
            is_late = step == 4
            with pytest.raises(TimedOut) if is_late else contextlib.nullcontext():
                if is_module:
                    module.zero_grad()
                    loss(module, comm.rank, step).backward()
                    opt.update(module)
                else:
                    rate = 0.1 * comm.rank + step
                    opt.minimize(lambda arrays, rate=rate: sum(xp.sum((p - rate) ** 2) for p in arrays.values()), taken)
        assert opt.step == 7
        return (
            [p.detach().numpy().tobytes() for p in module.parameters()]
            if is_module
            else [p.tobytes() for p in taken.values()]
        )

    found = distributed.run(worker, workers=2)
    assert found[0] == found[1]
