"""Nothing is unpickled by the distributed part, and the sockets that it listens on are known."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jobs
import pytest

import oxigrad
from oxigrad import distributed, launch

PACKAGE = Path(oxigrad.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Modules that deserialize objects, and functions of mpi4py, torch and NumPy that do.
MODULES = {
    "pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "ray.cloudpickle",
    "mpi4py.util.pkl5",
}
LOWER_CASE = {
    *"send recv bcast gather scatter allgather alltoall allreduce reduce scan exscan sendrecv isend irecv issend".split(),
    *"bsend ssend mprobe improbe".split(),
}
OBJECTS = {"loads", "load_pickle", "eval", "exec"}


def banned(text: str, *, of_mpi: bool) -> list[str]:
    """The imports and calls in a program that deserialize objects. ``of_mpi``: also those of mpi4py's lower-case methods."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        if any(name in MODULES or name.split(".")[0] in MODULES for name in names):
            found.append(f"line {node.lineno}: import of {', '.join(names)}")
        if isinstance(node, ast.Attribute) and (
            node.attr.endswith(("_object", "_object_list")) or (of_mpi and node.attr in LOWER_CASE)
        ):
            found.append(f"line {node.lineno}: .{node.attr}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append(f"line {node.value.lineno}: allow_pickle")
    return found


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(PACKAGE)) for file in FILES])
@pytest.mark.one_in(6)
def test_nothing_is_unpickled(file: Path) -> None:
    assert not banned(file.read_text(), of_mpi="mpi" in file.parts)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from ray import cloudpickle",
        "import ray.cloudpickle",
        "comm.bcast(x)",
        "self._comm.allreduce(x)",
        "distributed.all_gather_object(found, x)",
        "distributed.broadcast_object_list(found)",
        "np.load(file, allow_pickle=True)",
    ],
)
def test_the_lint_finds(text: str) -> None:
    assert banned(text, of_mpi=True)


@pytest.mark.parametrize("text", ["comm.Bcast(x)", "comm.Iallreduce(x)", "np.load(file, allow_pickle=False)"])
def test_the_lint_passes(text: str) -> None:
    assert not banned(text, of_mpi=True)


# --- sockets ------------------------------------------------------------------------------------------------------------

linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are read from /proc")


@linux
def test_threads_open_no_socket() -> None:
    program = (
        "import os, sys; from oxigrad import distributed, launch\n"
        "sys.path.insert(0, sys.argv[1]); import jobs\n"
        "distributed.run(jobs.exchange, workers=3)\n"
        "links = [os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if fd.isdigit() and int(fd) > 2 and os.path.exists(f'/proc/self/fd/{fd}')]\n"
        "assert not [link for link in links if link.startswith('socket:')], links\n"
        "assert launch.listening(os.getpid()) == []\n"
        "assert not {'mpi4py', 'ray', 'torch'} & set(sys.modules)\n"
    )
    line = [sys.executable, "-c", program, str(Path(jobs.__file__).parent)]
    run = subprocess.run(line, capture_output=True, text=True, timeout=jobs.DEADLINE)
    assert run.returncode == 0, run.stderr


@linux
def test_a_listening_socket_is_found() -> None:
    import socket

    with socket.socket() as server, socket.socket(socket.AF_INET6) as other:
        server.bind(("127.0.0.1", 0))
        server.listen()
        other.bind(("::1", 0))
        other.listen()
        port = server.getsockname()[1]
        found = {entry[1:] for entry in launch.listening(os.getpid())}
        assert ("127.0.0.1", port) in found
        assert ("::1", other.getsockname()[1]) in found
    assert ("127.0.0.1", port) not in {entry[1:] for entry in launch.listening(os.getpid())}


def test_a_message_of_another_job_does_not_reach_a_worker() -> None:
    """Two jobs in one process: each has an identity of its own, which nothing but the job knows."""

    def worker(comm: Any) -> bytes:
        return comm.job

    names = {*distributed.run(worker, workers=2), *distributed.run(worker, workers=2)}
    assert len(names) == 2 and all(len(name) == 16 and any(name) for name in names)
