"""Workers as processes of torch.distributed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import types
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest

from oxigrad import distributed

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)
pytestmark = pytest.mark.xdist_group("processes")


def launched(count: int, *job: str) -> list[tuple[int, str, str]]:
    """Exit status, output and errors of each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, jobs.__file__, "torch", *job],
                    env={**os.environ, **given, "RANK": str(rank)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for rank in range(count)
        ]
        for process in processes:
            stack.callback(process.kill)
        ended = [process.communicate(timeout=jobs.DEADLINE) for process in processes]
        return [(process.returncode, *texts) for process, texts in zip(processes, ended, strict=True)]


def test_every_operation_gives_the_bits_that_threads_give() -> None:
    runs = launched(2, "exchange")
    assert [status for status, _, _ in runs] == [0, 0], runs
    found = [result for _, output, _ in runs for result in jobs.results(output)]
    assert found == distributed.run(jobs.exchange, workers=2)


def test_the_others_are_told_of_a_death() -> None:
    (_, output, errors), _ = launched(2, "torch_faults")
    assert jobs.results(output) == [["collective", "lost [1]", 1, 1, [1.0] * 4]], errors


def found(count: int, *job: str) -> list[Any]:
    """The results of processes, which end well."""
    runs = launched(count, *job)
    assert [status for status, _, _ in runs] == [0] * count, runs
    return [result for _, output, _ in runs for result in jobs.results(output)]


def test_no_malformed_message_is_received() -> None:
    assert found(2, "receive_from_hostile") == [jobs.REFUSED, {}]
    assert sorted(found(2, "ask_with_another_tree"), key=str) == sorted(jobs.ASKED, key=str)


def test_processes_run_out_of_data_at_different_times() -> None:
    assert sorted(found(3, "run_out")[0]) == [[0, 9], [1, 3], [2, 6]]


@pytest.mark.parametrize("method", ["softsync", "drop_stale"])
def test_the_others_go_on_after_the_process_of_the_coordinators_rank(method: str) -> None:
    assert sorted(found(3, "finish_first", f'"{method}"')) == [[0, 1], [1, 1], [2, 1]]


def test_the_others_go_on_after_the_process_of_the_rank_with_the_centre() -> None:
    assert sorted(found(3, "finish_keeping_the_centre")) == [[0, 3], [1, 30], [2, 30]]


def test_the_others_go_on_without_a_slow_process() -> None:
    assert found(3, "straggle") == jobs.STRAGGLED


def test_a_coordinator_stops_and_continues() -> None:
    assert found(3, "stopped_coordinator") == [[0, 6], [1, 6], [2, 6]]


def test_a_checkpoint_on_a_full_disk_keeps_the_old_one(tmp_path: Path) -> None:
    assert found(2, "save_on_a_full_disk", f'"{tmp_path}"') == jobs.FULL_DISK


def test_a_process_that_dies_before_its_communicator_is_not_waited_for_longer_than_the_time_out() -> None:
    (status, output, errors), _ = launched(2, "killed_before_start")
    assert status == 0, errors
    (found,) = jobs.results(output)
    assert found.startswith("the communicator is not made within 2 s")


def test_a_process_without_a_group_is_told_so() -> None:
    with pytest.raises(distributed.CommunicationError, match="call init_process_group first"):
        distributed.communicator("torch")


def test_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))

    def worker(comm: Any) -> float:
        total = np.full(3, 2.0)
        comm.all_reduce([total])
        assert distributed.current() is comm
        return float(total.sum())

    assert distributed.run(worker, "torch", 1) == [6.0]
    assert distributed.run(worker, "torch") == [6.0]
    with pytest.raises(ValueError, match="workers is 4, but the group has 1"):
        distributed.run(worker, "torch", 4)
    assert not torch.distributed.is_initialized()


def test_workers_are_the_processes_of_the_group() -> None:
    assert found(2, "run_in_group") == [[0, [[0, 2], None]], [1, [None, [1, 2]]]]


def test_a_program_runs_several_works() -> None:
    """The second group took the places of the first one from torchrun's store, and a group of the program had only one run."""
    assert found(2, "run_again") == [[3.0] * 5] * 2


def test_every_method_gives_the_bits_that_it_gives_on_threads() -> None:
    runs = launched(2, "every_method")
    assert [status for status, _, _ in runs] == [0, 0], runs
    found = [result for _, output, _ in runs for result in jobs.results(output)]
    assert found == distributed.run(jobs.every_method, workers=2)


def test_gradients_of_a_module_leave_during_the_backward() -> None:
    runs = found(2, "module_in_buckets")
    assert runs == distributed.run(jobs.module_in_buckets, workers=2)
    assert runs[0] == runs[1] and runs[0][0]


def test_gradients_of_minimize_leave_during_the_replay() -> None:
    runs = found(2, "minimize_in_buckets")
    assert runs == distributed.run(jobs.minimize_in_buckets, workers=2)
    assert runs[0] == runs[1] and runs[0][0]


def test_reports_and_time_lines_are_gathered() -> None:
    assert found(2, "reported") == distributed.run(jobs.reported, workers=2)


def test_steps_over_the_tensors_of_fsdp_are_those_of_one_process() -> None:
    assert found(2, "fully_sharded") == [[True, True]] * 2


def test_gradients_in_shards_take_the_memory_of_a_part_and_of_some_buckets() -> None:
    """Half of the sums, and two buckets, of one parameter each, with the memory of their exchange; without shards, gradients and buckets of all 24."""
    for most, parameter in found(2, "memory_of_gradients", "true"):
        assert most < (12 + 2 + 2 + 1) * parameter
    for most, parameter in found(2, "memory_of_gradients", "false"):
        assert most >= 2 * 24 * parameter


def test_threads_that_serve_a_dead_worker_end() -> None:
    runs = launched(3, "outlive")
    assert [jobs.results(output) for status, output, _ in runs if status == 0] == [[[False, False]]] * 2, runs


def test_gradients_on_a_device_do_not_travel_over_the_host() -> None:
    """The bits are those of gradients that do."""
    for of_worker in zip(*found(3, "model_on_device"), strict=True):
        (digest, *_), _ = of_worker[0]
        for over_host, direct in of_worker:
            assert over_host[0] == direct[0] == digest
            assert over_host[1] > 0 and direct[1] == 0
            assert over_host[2] == direct[2]


def test_survivors_go_on_over_the_host_after_a_death() -> None:
    (_, *texts), *others = sorted(launched(3, "lose_on_device"), key=lambda run: run[0])
    assert [jobs.results(output) for _, output, _ in others] == [[[True, True, True]]] * 2, (texts, others)


def test_gradients_travel_over_the_host_where_the_backend_does() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from oxigrad.distributed.engines.torch import tensors

    class Program:
        def __init__(self, **backends: str) -> None:
            self._backends = backends

        def _get_backend(self, device: Any) -> Any:
            if device.type not in self._backends:
                raise RuntimeError("no backend")
            return types.SimpleNamespace(name=lambda: self._backends[device.type])

    def is_chosen(program: Any, *leaves: Any) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tensors.TensorGroup, "__init__", lambda self, program, device: None)
            return tensors.TensorGroup.of(program, leaves) is not None

    with FakeTensorMode():
        first, second, host = (torch.empty(3, device=device) for device in ("cuda:0", "cuda:1", "cpu"))
    nccl, gloo = Program(cuda="nccl", cpu="gloo"), Program(cuda="gloo", cpu="gloo")
    assert is_chosen(nccl, first, first) and not is_chosen(gloo, first)
    assert not is_chosen(nccl, first, second) and not is_chosen(nccl, first, host) and not is_chosen(nccl, host)
    assert not is_chosen(Program(cpu="gloo"), first) and not is_chosen(nccl) and not is_chosen(nccl, np.ones(3))


def test_an_exchange_that_fails_in_a_backward_is_told_by_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from oxigrad.distributed.data_parallel.tensor_buckets import Queued
    from oxigrad.distributed.engines.torch import tensors

    def fail(*arguments: Any, **options: Any) -> None:
        raise torch.distributed.DistBackendError("NCCL communicator was aborted")

    monkeypatch.setattr(torch.distributed, "all_to_all_single", fail)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group: 2)
    group = tensors.TensorGroup(None, torch.device("cpu"))
    flat = group.flat(3, np.dtype(np.float32))
    assert flat.numel() == 4
    queued = Queued(lambda: group.sum(flat))
    queued.wait()
    with pytest.raises(distributed.WorkerLost, match="a sum of tensors"):
        queued.result()


def test_memory_that_the_stream_uses_is_not_given_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients may be dropped while their copies are queued: tensors without memory stand for those of a device."""
    from oxigrad.distributed.engines.torch import tensors

    recorded: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: recorded.append((self.numel(), stream)))
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group: 2)
    group = tensors.TensorGroup(None, torch.device("cpu"))
    monkeypatch.setattr(group, "_device", torch.device("meta"))
    flat = group.flat(5, np.dtype(np.float32))
    with group.queued():
        group.fill({"w": flat[:3], "b": flat[3:5]}, {"w": torch.ones(3, device="meta")})
    assert recorded == [(6, group._stream), (3, group._stream)]
