"""The members of a job of torch change: a process joins while the others train, and the others go on after losses."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import job_joins
import jobs
import numpy as np
import pytest

from oxigrad import distributed, optim

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

from oxigrad.distributed.engines.torch import rendezvous  # noqa: E402 - it imports torch
from oxigrad.distributed.engines.torch.library import Group, client_of  # noqa: E402
from oxigrad.distributed.engines.torch.rendezvous import Rendezvous  # noqa: E402

pytestmark = pytest.mark.xdist_group("processes")

TOKEN = "a secret of the tests"  # noqa: S105 - of no job but these
KEYS = f"oxigrad/{bytes(16).hex()}"
"""The keys of the job of `Members`."""


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OXIGRAD_TOKEN", TOKEN)


class Job:
    """The processes of a job. The rendezvous is in this process, as torchrun has it, or in that of rank 0."""

    def __init__(self, name: str, *arguments: str, timeout: float = 60.0, token: bool = True) -> None:
        self._line = [sys.executable, jobs.__file__, "torch", name, *arguments]
        self._environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "JOB_TIMEOUT": str(timeout)}
        self._environment |= {"OXIGRAD_TOKEN": TOKEN} if token else {}
        self._stack = contextlib.ExitStack()
        self._store: Any = None
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.kill()
        self._stack.close()
        self._store = None

    def start(self, count: int, *, has_store: bool = True) -> Job:
        """Starts the processes of the first generation."""
        self._store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self._environment["MASTER_PORT"] = str(self._store.port)
        if has_store:
            self._environment["TORCHELASTIC_USE_AGENT_STORE"] = "True"
        else:
            self.end_store()
        for rank in range(count):
            self._start({"WORLD_SIZE": str(count), "RANK": str(rank)})
        return self

    def end_store(self) -> None:
        """Ends the rendezvous that is in this process."""
        self._store = None

    def join(self, *line: str, **environment: str) -> None:
        """Starts a process that joins."""
        self._start({"JOIN": "1", **environment}, line)

    def _start(self, environment: dict[str, str], line: tuple[str, ...] = ()) -> None:
        process = subprocess.Popen(
            [*self._line[:3], *(line or self._line[3:])],
            env={**self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(self._stack.enter_context(process))

    def results(self) -> list[Any]:
        """The output of each process, in the order of their start; None of one that was killed."""
        ends = [process.communicate(timeout=jobs.DEADLINE) for process in self.processes]
        codes = [process.returncode for process in self.processes]
        assert set(codes) <= {0, -signal.SIGKILL}, ends
        return [jobs.results(output)[0] if code == 0 else None for code, (output, _) in zip(codes, ends, strict=True)]

    def error(self, number: int) -> str:
        """The error of a process that fails, among what torch prints."""
        _, errors = self.processes[number].communicate(timeout=jobs.DEADLINE)
        assert self.processes[number].returncode == 1, errors
        return re.findall(r"oxigrad\.distributed\.errors\.(.*)", errors)[-1]


def wait_for(*files: Path) -> None:
    deadline = time.monotonic() + jobs.DEADLINE
    while not all(file.exists() for file in files):
        assert time.monotonic() < deadline, files
        time.sleep(0.01)


@pytest.fixture
def trains(tmp_path: Path) -> list[Path]:
    """The files that workers 0 and 1 make when they train."""
    return [tmp_path / f"trains{rank}" for rank in range(2)]


@pytest.mark.parametrize("name", job_joins.COLLECTIVE)
def test_a_process_joins_and_the_steps_are_those_of_one_process(name: str, tmp_path: Path, trains: list[Path]) -> None:
    with Job("join_collective", f'"{name}"', f'"{tmp_path}"').start(2, has_store=False) as job:
        wait_for(*trains)
        job.join()
        (first, sizes, digest), other, (joined, later, last) = job.results()
    assert first == 0 and other == [0, sizes, digest]
    assert sizes == [2] * joined + later and later == [3] * job_joins.TOGETHER and joined >= 3
    assert digest == last == job_joins.transcribed(job_joins.COLLECTIVE[name]().optimizer, sizes)


def test_a_process_joins_synchronous_replicas(tmp_path: Path, trains: list[Path]) -> None:
    with Job("join_coordinated", f'"{tmp_path}"').start(2, has_store=False) as job:
        wait_for(*trains)
        job.join()
        results = job.results()
    check_replicas(results)


def test_a_process_joins_after_the_death_of_the_coordinator(tmp_path: Path, trains: list[Path]) -> None:
    with Job("join_coordinated", f'"{tmp_path}"', "2", '"kill"').start(2) as job:
        wait_for(trains[1])
        job.join()
        first, *others = job.results()
    assert first is None
    check_replicas(others)


def check_replicas(results: list[Any]) -> None:
    """Every worker has contributed, and has the state of one process after as many steps."""
    for accepted, steps, digest in results:
        same = job_joins.transcribed(optim.Adam(0.1), [3] * steps, lambda rank, number: job_joins.gradient(0, number))
        assert accepted and digest == same, results


@pytest.mark.parametrize("method", jobs.SURVIVING)
def test_survivors_continue_with_the_slots_of_a_killed_coordinator(method: str) -> None:
    with Job("survive", f'"{method}"').start(3) as job:
        first, *others = job.results()
    assert first is None
    for acknowledged, size, steps, digest in others:
        assert size == 2 and acknowledged[1] >= acknowledged[0]
        assert digest == jobs.undisturbed(steps)


def test_a_stopped_coordinator_is_excluded_and_fenced(tmp_path: Path) -> None:
    with Job("fence", f'"{tmp_path}"').start(3) as job:
        jobs.check_fenced(job.results())


def test_the_others_are_told_where_the_rendezvous_dies() -> None:
    with Job("train", "[0]", timeout=10.0).start(2, has_store=False) as job:
        job.processes[0].wait(jobs.DEADLINE)
        assert job.error(1).startswith("NotSupported: the workers cannot form the next generation")


def test_a_process_joins_too_late(tmp_path: Path) -> None:
    """After the end of all workers, and after that of the process that has the rendezvous."""
    with Job("exchange").start(2) as job:
        job.results()
        job.join(JOB_TIMEOUT="5")
        assert "can no longer be joined: the workers of the job have ended, or have left" in job.error(2)
        job.end_store()
        job.join(JOB_TIMEOUT="2")
        assert "CommunicationError: no job can be joined at 127.0.0.1" in job.error(3)


def test_a_process_joins_a_job_whose_workers_have_died() -> None:
    with Job("wait_for_nothing").start(1) as job:
        output = job.processes[0].stdout
        assert output is not None and output.readline().startswith("pid ")
        job.processes[0].kill()
        job.join(JOB_TIMEOUT="2")
        assert "have not admitted this one within 2 s: they have died or hang" in job.error(1)


def test_a_process_that_names_no_job_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(distributed.CommunicationError, match="expected MASTER_ADDR and MASTER_PORT"):
        distributed.communicator("torch", join=True)


# --- the rendezvous, of threads in the place of processes ------------------------------------------------------------------


class Members:
    """Members of a generation, and newcomers, by their rendezvous."""

    def __init__(self, count: int, token: str | None = TOKEN) -> None:
        self.store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        names, secret = [str(rank) for rank in range(count)], token.encode() if token else None
        self.rendezvous = [Rendezvous(self._client(), bytes(16), name, names, token=secret) for name in names]
        self.rendezvous[0].publish("1")

    def _client(self) -> Any:
        return client_of("127.0.0.1", self.store.port, 30.0)

    def join(self, seconds: float = 30.0) -> tuple[Rendezvous, Group]:
        return Rendezvous.of_newcomer("127.0.0.1", self.store.port, "1", seconds)

    def reform(self, rank: int, alive: list[int], seconds: float = 30.0) -> list[str]:
        """The members of the next generation, to which this one has connected."""
        each = self.rendezvous[rank]
        group = each.connect(each.decided(lambda: alive, seconds), seconds)
        received = np.zeros(len(each.members), np.uint8)
        group.all_gather(received, np.array([each.members.index(each.uid)], np.uint8)).wait()
        assert received.tolist() == [*range(len(each.members))]
        return each.members


def test_survivors_decide_alike_though_they_know_of_other_losses() -> None:
    """One of them knows of one more loss, of a member that lives: it is excluded, or takes part for both."""
    members = Members(4)
    with ThreadPoolExecutor() as pool:
        first, second = (pool.submit(members.reform, rank, alive) for rank, alive in ((1, [1, 2]), (2, [2])))
        if second.result() == ["2"]:
            with pytest.raises(distributed.Excluded):
                first.result()
        else:
            assert first.result() == second.result() == ["1", "2"]


def test_a_member_that_is_not_waited_for_is_excluded() -> None:
    members = Members(3)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(members.reform, rank, [0, 1]) for rank in (0, 1)]
        assert [run.result() for run in runs] == [["0", "1"]] * 2
    with pytest.raises(distributed.Excluded, match="the worker of rank 2 of generation 0"):
        members.reform(2, [0, 1, 2])


def test_a_member_that_does_not_come_is_named_and_may_come_later() -> None:
    members = Members(2)
    with pytest.raises(distributed.TimedOut, match=r"do not call it: \[1\]"):
        members.reform(0, [0, 1], 0.3)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(members.reform, rank, [0, 1]) for rank in (1, 0)]
        assert [run.result() for run in runs] == [["0", "1"]] * 2


def test_newcomers_are_admitted_in_order_and_one_that_died_is_not() -> None:
    members = Members(2)
    members.store.add(f"{KEYS}/tickets", 1)
    members.store.set(f"{KEYS}/ticket/j1", "5")  # which shows no sign of life
    with ThreadPoolExecutor() as pool:
        newcomers = []
        for number in (2, 3):
            newcomers.append(pool.submit(members.join))
            while not members.store.check([f"{KEYS}/ticket/j{number}"]):
                time.sleep(0.01)
        assert members.rendezvous[0].newcomers() == ["j2", "j3"]
        runs = [pool.submit(members.reform, rank, [0, 1]) for rank in (0, 1)]
        for each, group in [newcomer.result() for newcomer in newcomers]:
            group.all_gather(np.zeros(4, np.uint8), np.array([each.members.index(each.uid)], np.uint8))
        assert [run.result() for run in runs] == [["0", "1", "j2", "j3"]] * 2
    assert members.rendezvous[0].newcomers() == []


def test_a_newcomer_that_dies_before_it_connects_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "_PATIENCE", 0.5)
    monkeypatch.setattr(Rendezvous, "newcomers", lambda self: ["j1"])
    members = Members(2)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(members.reform, rank, [0, 1], 2.0) for rank in (0, 1)]
        assert [run.result() for run in runs] == [["0", "1"]] * 2
    assert [each.generation for each in members.rendezvous] == [2, 2]


def test_members_that_wait_for_a_dead_one_in_different_places_go_on_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gloo waits as long as it is told for an address, and five times as long for a connection to a process that gave its address."""
    members, calls = Members(4), [0, 0, 0]
    members.store.set(f"{KEYS}/1/come/3", "true")  # which dies then
    gloo = torch.distributed.ProcessGroupGloo

    def group(store: Any, rank: int, size: int, timeout: Any) -> Any:
        if size < 4:
            return gloo(store, rank, size, timeout=timeout)
        calls[rank] += 1
        time.sleep(timeout.total_seconds() * (1 if rank == 1 else 5))
        raise RuntimeError("Connect timeout")

    def connect(rank: int) -> list[str]:
        each = members.rendezvous[rank]
        assert each.connect(["0", "1", "2", "3"], 4.0).size == 3
        return each.members

    monkeypatch.setattr(torch.distributed, "ProcessGroupGloo", group)
    monkeypatch.setattr(rendezvous, "_PATIENCE", 1.0)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(connect, rank) for rank in (0, 1, 2)]
        assert [run.result() for run in runs] == [["0", "1", "2"]] * 3
    assert calls == [1, 1, 1]


def test_a_newcomer_that_nobody_can_reach_is_left_out_and_told() -> None:
    """All are alive; the first connection fails."""
    members, failures = Members(2), iter([True, False])
    connected = Group.connected

    def fail_once(*arguments: Any) -> Group:
        if next(failures, False):
            raise RuntimeError("no route to host")
        return connected(*arguments)

    with ThreadPoolExecutor() as pool, pytest.MonkeyPatch.context() as patch:
        newcomer = pool.submit(members.join, 3.0)
        while not members.rendezvous[0].newcomers():
            time.sleep(0.01)
        patch.setattr(Group, "connected", fail_once)
        runs = [pool.submit(members.reform, rank, [0, 1], 3.0) for rank in (0, 1)]
        assert [run.result() for run in runs] == [["0", "1"]] * 2
        with pytest.raises(
            distributed.WorkerLost, match="joining cannot complete: the workers cannot connect to this process"
        ):
            newcomer.result()


def test_a_newcomer_is_not_admitted_in_time() -> None:
    members = Members(1)
    with pytest.raises(distributed.TimedOut, match="have not admitted this one within 0.5 s"):
        members.join(0.5)
    assert members.rendezvous[0].newcomers() == []


def test_a_process_of_another_version_is_refused() -> None:
    members = Members(1)
    with pytest.raises(
        distributed.Refused, match="a worker runs oxigrad 2, the job 1: expected one version on every worker"
    ):
        Rendezvous.of_newcomer("127.0.0.1", members.store.port, "2", 5.0)


# --- strangers --------------------------------------------------------------------------------------------------------------


def test_a_process_joins_only_where_the_job_accepts_newcomers() -> None:
    members = Members(2, token=None)
    with pytest.raises(
        distributed.Refused, match="accepts no newcomers: expected accept_newcomers=True on its workers"
    ):
        members.join()
    members.store.add(f"{KEYS}/tickets", 1)
    members.store.set(f"{KEYS}/ticket/j1", "1")
    assert members.rendezvous[0].newcomers() == []


def test_a_process_without_a_token_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members(1)
    for value, expected in (("short", "has 5 characters"), ("", "is not set")):
        monkeypatch.setenv("OXIGRAD_TOKEN", value)
        with pytest.raises(distributed.CommunicationError, match=f"OXIGRAD_TOKEN {expected}: expected at least 16"):
            members.join()


def test_a_process_with_another_token_is_refused_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    members = Members(2)
    monkeypatch.setenv("OXIGRAD_TOKEN", "a guess, and a wrong one")
    with ThreadPoolExecutor() as pool:
        stranger = pool.submit(members.join)
        while not stranger.done():
            assert members.rendezvous[0].newcomers() == []
            time.sleep(0.01)
        with pytest.raises(distributed.Refused, match="it has another token: expected OXIGRAD_TOKEN as of the workers"):
            stranger.result()
        runs = [pool.submit(members.reform, rank, [0, 1]) for rank in (0, 1)]
        assert [run.result() for run in runs] == [["0", "1"]] * 2
    assert [each.levelname for each in caplog.records if "is refused" in each.message] == ["WARNING"]


def test_a_proof_of_one_process_is_not_that_of_another() -> None:
    members = Members(1)
    first = members.rendezvous[0]
    shown = {"beat": 1, "proof": rendezvous.proof(TOKEN.encode(), bytes(16), "j1")}
    members.store.add(f"{KEYS}/tickets", 2)
    for uid in ("j1", "j2"):
        members.store.set(f"{KEYS}/ticket/{uid}", json.dumps(shown))
    assert [*first._waiting([1, 2])] == ["j1"]


JUNK = ["", "junk", "[", "null", "7", '"text"', "[1]", '{"job": 3}', "\x00\xff", "[" * 5_000]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_junk_in_the_store_is_refused_by_name(junk: str) -> None:
    """Whatever reads it, a process that joins or a worker, names the key and what is there."""
    members = Members(1)
    members.store.set("oxigrad/job", junk)
    with pytest.raises(distributed.Refused, match="the key oxigrad/job of the rendezvous is "):
        members.join()
    first = members.rendezvous[0]
    members.store.set(f"{KEYS}/ticket/j1", junk)
    members.store.add(f"{KEYS}/tickets", 1)
    assert first.newcomers() == []
    members.store.set(f"{KEYS}/0/next", junk or "junk")
    with pytest.raises(distributed.Refused, match="the key 0/next of the rendezvous is "):
        first.decided(lambda: [0], 5.0)
    members.store.set(f"{KEYS}/1/come", junk or "junk")
    with pytest.raises(distributed.Refused, match="the key 1/come of the rendezvous is "):
        first.connect(["0"], 5.0)
    if junk:
        members = Members(1)
        members.store.set(f"{KEYS}/1/connected", junk)
        with pytest.raises(distributed.Refused, match="the key 1/connected of the rendezvous is "):
            members.rendezvous[0].connect(["0"], 5.0)
        members = Members(2)
        members.store.set(f"{KEYS}/1/come", "{}")
        members.store.set(f"{KEYS}/1/connected/1", junk)
        with pytest.raises(distributed.Refused, match="the key 1/connected/1 of the rendezvous is "):
            members.rendezvous[0].connect(["0", "1"], 5.0)


def test_a_count_of_tickets_that_is_junk_lets_nobody_join(caplog: pytest.LogCaptureFixture) -> None:
    """The workers go on: the store would end the connection of one that adds to the count."""
    members, why = Members(1), "the key tickets of the rendezvous is 'junk': expected an integer"
    members.store.set(f"{KEYS}/tickets", "junk")
    with pytest.raises(distributed.Refused, match=why):
        members.join()
    assert members.rendezvous[0].newcomers() == members.rendezvous[0].newcomers() == []
    assert [why in each.message for each in caplog.records if each.levelname == "WARNING"] == [True]
    assert members.reform(0, [0]) == ["0"]


def test_workers_that_accept_newcomers_on_some_ranks_alone_are_refused() -> None:
    from oxigrad.distributed.engines.torch.process import _check_tokens

    zeros, one, other = np.zeros(64, np.uint8), np.full(64, 49, np.uint8), np.full(64, 50, np.uint8)
    _check_tokens(np.stack([zeros, zeros]))
    _check_tokens(np.stack([one, one]))
    with pytest.raises(distributed.Refused, match="accept_newcomers is True on rank 1, False on rank 0"):
        _check_tokens(np.stack([zeros, one]))
    with pytest.raises(distributed.Refused, match="OXIGRAD_TOKEN of rank 1 is another one than of rank 0"):
        _check_tokens(np.stack([one, other]))
