"""Two network namespaces of one machine are two hosts of a job, whose link is cut, restored and slowed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import job_joins
import jobs
import pytest
import two_hosts
from two_hosts import Job, Link

pytestmark = pytest.mark.xdist_group("processes")


@pytest.fixture
def link() -> Iterator[Link]:
    if not (shutil.which("ip") and shutil.which("unshare")):
        pytest.skip("no ip and unshare (iproute2, util-linux)")
    with contextlib.ExitStack() as stack:
        try:
            link = stack.enter_context(Link())
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces are not permitted here: {error.stderr.strip()}")
        yield link


@pytest.fixture(params=["mpi", "torch"])
def start(request: pytest.FixtureRequest, link: Link, tmp_path: Path) -> Callable[..., Job]:
    pytest.importorskip({"mpi": "mpi4py", "torch": "torch"}[request.param])

    def start(timeout: float, method: str = "large_batch") -> Job:
        job = Job(link, request.param, tmp_path, timeout, method=method)
        request.addfinalizer(job.end)
        return job

    return start


@pytest.fixture
def expected() -> list[float]:
    """The parameters of the training on one host."""
    return two_hosts.expected()


def test_two_hosts_give_the_bits_of_one(start: Callable[[float], Job], expected: list[float]) -> None:
    assert start(30.0).results() == [expected, expected]


@pytest.mark.parametrize("method", two_hosts.METHODS)
def test_a_link_that_is_cut_for_a_moment_costs_time_alone(start: Callable[..., Job], link: Link, method: str) -> None:
    job = start(30.0, method)
    job.wait_for("steps")
    for _ in range(2):
        link.set("down")
        time.sleep(0.3)
        link.set("up")
        time.sleep(0.1)
    assert job.results() == [two_hosts.expected(method=method)] * 2


def test_a_process_joins_over_a_link_that_is_cut_for_a_moment(link: Link, tmp_path: Path) -> None:
    """Two processes train on two hosts, and a third one joins them from the second."""
    pytest.importorskip("torch")
    line = [sys.executable, jobs.__file__, "torch", "join_collective", '"data_parallel"', f'"{tmp_path}"']
    given = {
        **two_hosts.environment(),
        "MASTER_ADDR": two_hosts.ADDRESSES[0],
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "2",
        "OXIGRAD_TOKEN": "a secret of two hosts",
    }
    with contextlib.ExitStack() as stack:

        def begin(side: int, **own: str) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    ["ip", "netns", "exec", link.names[side], *line],
                    env={**given, "GLOO_SOCKET_IFNAME": link.devices[side], **own},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return process

        processes = [begin(rank, RANK=str(rank)) for rank in range(2)]
        deadline = time.monotonic() + jobs.DEADLINE
        while not all((tmp_path / f"trains{rank}").exists() for rank in range(2)):
            assert time.monotonic() < deadline and not any(process.poll() for process in processes)
            time.sleep(0.01)
        processes.append(begin(1, JOIN="1"))
        while any(process.poll() is None for process in processes):
            assert time.monotonic() < deadline
            link.set("down")
            time.sleep(0.2)
            link.set("up")
            time.sleep(0.6)
        ends = [process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [0] * 3, ends
    (first, sizes, digest), other, (joined, later, last) = [jobs.results(output)[0] for output, _ in ends]
    assert other == [first, sizes, digest] and last == digest
    assert sizes == [2] * joined + later and later == [3] * job_joins.TOGETHER
    assert digest == job_joins.transcribed(job_joins.COLLECTIVE["data_parallel"]().optimizer, sizes)


def test_workers_behind_a_link_that_is_cut_are_told(start: Callable[[float], Job], link: Link) -> None:
    job = start(2.0)
    job.wait_for("steps")
    link.set("down")
    assert all(result in ("TimedOut", "WorkerLost") for result in job.results())


def test_a_slow_link_changes_no_bit(start: Callable[[float], Job], link: Link, expected: list[float]) -> None:
    try:
        link.slow()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"tc cannot slow a link here: {error.stderr.strip()}")
    assert start(30.0).results() == [expected, expected]
