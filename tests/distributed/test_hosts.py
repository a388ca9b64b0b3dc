"""Hosts and workers of a job, as Slurm and the MPI operator of Kubernetes state them."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from oxigrad import launch
from oxigrad.launch.hosts import HOSTFILES, hosts_of, node_names

# As `scontrol show hostnames` expands them (slurm.schedmd.com/scontrol.html).
NODE_LISTS = {
    "login": ["login"],
    "a,b": ["a", "b"],
    "node[1-3]": ["node1", "node2", "node3"],
    "node[08-11,20]": ["node08", "node09", "node10", "node11", "node20"],
    "rack[1-2]n[1,3]": ["rack1n1", "rack1n3", "rack2n1", "rack2n3"],
    "gpu[2-3].cluster,login": ["gpu2.cluster", "gpu3.cluster", "login"],
    "a-b[099-100]": ["a-b099", "a-b100"],
}


@pytest.mark.parametrize("nodes", NODE_LISTS)
def test_node_lists_of_slurm(nodes: str) -> None:
    assert node_names(nodes) == NODE_LISTS[nodes]


@pytest.mark.parametrize(
    "nodes", ["", ",a", "a,", "a,,b", "a[1-2", "a]1", "a[]", "a[x]", "a[1-]", "a[-1]", "a[1-2-3]", "a[[1]]"]
)
def test_a_node_list_that_cannot_be_read_is_refused(nodes: str) -> None:
    with pytest.raises(ValueError, match="cannot be read: expected"):
        node_names(nodes)


def test_workers_of_each_node() -> None:
    hosts = hosts_of({"SLURM_JOB_NODELIST": "n[1-3],m", "SLURM_TASKS_PER_NODE": "2(x3),5"})
    assert hosts is not None
    assert hosts.slots == {"n1": 2, "n2": 2, "n3": 2, "m": 5}
    assert hosts.workers == 11
    assert hosts.lines(colons=False).splitlines()[0] == "n1 slots=2"
    assert hosts.lines(colons=True).splitlines()[-1] == "m:5"


def test_variables_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match="of 2 nodes: expected 3"):
        hosts_of({"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x2)"})
    with pytest.raises(ValueError, match=r"expected counts such as 4\(x3\),1"):
        hosts_of({"SLURM_JOB_NODELIST": "n", "SLURM_TASKS_PER_NODE": "two"})
    with pytest.raises(ValueError, match="srun has started 8 launchers"):
        hosts_of({"SLURM_JOB_NODELIST": "n", "SLURM_STEP_NUM_TASKS": "8"})


@pytest.mark.parametrize("variable", HOSTFILES)
def test_host_files_of_an_operator(tmp_path: Path, variable: str) -> None:
    path = tmp_path / "hostfile"
    path.write_text("# workers\njob-worker-0.job slots=2\n\njob-worker-1.job:3\njob-worker-2.job\njob-worker-2.job\n")
    hosts = hosts_of({variable: str(path)})
    assert hosts is not None and hosts.source == variable
    assert hosts.slots == {"job-worker-0.job": 2, "job-worker-1.job": 3, "job-worker-2.job": 2}
    path.write_text("# none\n")
    with pytest.raises(ValueError, match=f"{variable} names .* which names no host"):
        hosts_of({variable: str(path)})
    with pytest.raises(ValueError, match=f"{variable} names .*cannot be read: No such file"):
        hosts_of({variable: str(tmp_path / "missing")})


def test_no_hosts_without_a_job() -> None:
    assert hosts_of({}) is None


SHOWS = f"""#!{sys.executable}
import os, sys
if sys.argv[1:] == ["--version"]:
    print(os.environ["VERSION"])
    sys.exit()
print(sys.argv[1:])
if "--hostfile" in sys.argv:
    print(open(sys.argv[sys.argv.index("--hostfile") + 1]).read())
"""


@pytest.fixture
def shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of `launch.main`, with a launcher that prints its arguments and its host file."""
    path = tmp_path / "mpiexec"
    path.write_text(SHOWS)
    path.chmod(0o755)
    for variable in ("SLURM_JOB_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_TASKS_PER_NODE", *HOSTFILES):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("VERSION", "mpirun (Open MPI) 5.0.11")
    return ["--mpiexec", str(path), "program.py"]


def test_a_job_of_slurm_states_hosts_and_workers(
    shows: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "there[1-2]")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "3(x2)")
    assert launch.main(shows) == 0
    out, err = capfd.readouterr()
    assert "'-n', '6'" in out and "'-x', 'OXIGRAD_SPARES'" in out
    assert "there1 slots=3\nthere2 slots=3" in out
    assert "oxigrad.launch: 6 workers on there1, there2, by SLURM_JOB_NODELIST" in err
    monkeypatch.setenv("VERSION", "HYDRA build details: Version: 5.0.2")
    assert launch.main(["-n", "4", "--quiet", *shows]) == 0
    out, err = capfd.readouterr()
    assert "'-n', '4'" in out and "there1:3\nthere2:3" in out and not err


def test_hosts_of_the_user_come_first(
    shows: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text("mine slots=1\n")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "there[1-2]")
    assert launch.main(["-n", "1", "--hostfile", str(tmp_path / "hosts"), *shows]) == 0
    assert "mine slots=1" in capfd.readouterr().out


def test_a_job_on_this_host_alone_uses_shared_memory(
    shows: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", socket.gethostname())
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "7")
    assert launch.main(shows) == 0
    out = capfd.readouterr().out
    assert "'-n', '7'" in out and "self,sm" in out and "--hostfile" not in out


def test_what_cannot_be_read_is_an_error_of_the_command(
    shows: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "there[1-")
    with pytest.raises(SystemExit):
        launch.main(shows)
    assert "the node list 'there[1-' cannot be read" in capfd.readouterr().err
