"""Two network namespaces of one machine are two hosts of a job, whose link is cut, restored and slowed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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
def start(request: pytest.FixtureRequest, link: Link, tmp_path: Path) -> Callable[[float], Job]:
    pytest.importorskip({"mpi": "mpi4py", "torch": "torch"}[request.param])

    def start(timeout: float) -> Job:
        job = Job(link, request.param, tmp_path, timeout)
        request.addfinalizer(job.end)
        return job

    return start


@pytest.fixture
def expected() -> list[float]:
    """The parameters of the training on one host."""
    return two_hosts.expected()


def test_two_hosts_give_the_bits_of_one(start: Callable[[float], Job], expected: list[float]) -> None:
    assert start(30.0).results() == [expected, expected]


def test_a_link_that_is_cut_for_a_moment_costs_time_alone(
    start: Callable[[float], Job], link: Link, expected: list[float]
) -> None:
    job = start(30.0)
    job.wait_for("steps")
    for _ in range(2):
        link.set("down")
        time.sleep(0.3)
        link.set("up")
        time.sleep(0.1)
    assert job.results() == [expected, expected]


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
