"""Two network namespaces of one machine as two hosts of a job, and the link between them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jobs
import numpy as np

from oxigrad import distributed, launch, optim

STEPS = 30
RESULTS = ("result0", "result1")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
PROGRAM = """
import json, os, pathlib, time
from oxigrad import distributed
from two_hosts import step

folder = pathlib.Path(os.environ["FOLDER"])

def train(comm):
    try:
        for parameters in step(int(os.environ["STEPS"]), os.environ["METHOD"]):
            (folder / "steps").touch()
            time.sleep(0.02)
    except (distributed.TimedOut, distributed.WorkerLost) as error:
        return type(error).__name__
    return parameters

if os.environ["ENGINE"] == "torch":
    import torch.distributed

    torch.distributed.init_process_group("gloo")
comm = distributed.communicator(os.environ["ENGINE"], timeout=float(os.environ["TIMEOUT"]))
result = train(comm)
(folder / f"part{comm.rank}").write_text(json.dumps(result))
os.rename(folder / f"part{comm.rank}", folder / f"result{comm.rank}")
if os.environ["ENGINE"] == "torch":
    os._exit(0)  # the group cannot be destroyed together over a link that is cut
"""
# In place of ssh: the command runs in the namespace of the other host.
AGENT = """#!/bin/sh
shift
exec ip netns exec {namespace} unshare --uts sh -c "hostname other; $*"
"""


METHODS: dict[str, Any] = {
    "large_batch": lambda: distributed.LargeBatch(optim.Adam(0.1)),
    "shard_state": lambda: distributed.DataParallel(optim.Adam(0.1), shard_state=True),
}


def step(steps: int = STEPS, method: str = "large_batch") -> Iterator[list[float]]:
    """The parameters after each step of a training, by the current communicator."""
    rank = distributed.current().rank
    model = {"w": np.linspace(-1.0, 1.0, 5)}
    opt = METHODS[method]()
    for at in range(steps):
        opt.update(model, {"w": model["w"] * (rank + 1) + np.sin(at)})
        yield model["w"].tolist()
    opt.leave()


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


class Link:
    """Two namespaces and the link between them."""

    def __init__(self) -> None:
        self.names = [f"oxigrad{os.getpid()}{side}" for side in "ab"]
        self.devices = ("oxa", "oxb")

    def __enter__(self) -> Link:
        with contextlib.ExitStack() as stack:
            for name in self.names:
                run("ip", "netns", "add", name)
                stack.callback(run, "ip", "netns", "delete", name)
            here, there = self.names
            line = ("type", "veth", "peer", "name", self.devices[1], "netns", there)
            run("ip", "-n", here, "link", "add", self.devices[0], *line)
            for name, device, address in zip(self.names, self.devices, ADDRESSES, strict=True):
                run("ip", "-n", name, "address", "add", f"{address}/24", "dev", device)
                for each in (device, "lo"):
                    run("ip", "-n", name, "link", "set", each, "up")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def set(self, state: str) -> None:
        """Cuts the link ("down"), or restores it ("up")."""
        run("ip", "-n", self.names[1], "link", "set", self.devices[1], state)

    def slow(self) -> None:
        """Delays every packet by 20 ms."""
        run(
            "ip",
            "netns",
            "exec",
            self.names[0],
            "tc",
            "qdisc",
            "add",
            "dev",
            self.devices[0],
            "root",
            "netem",
            "delay",
            "20ms",
        )


def expected(steps: int = STEPS, method: str = "large_batch") -> list[float]:
    """The parameters of the training on one host."""
    return distributed.run(lambda _: list(step(steps, method))[-1], workers=2)[0]


def environment() -> dict[str, str]:
    """The variables of a process in a namespace, which imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


class Job:
    """The training on both hosts, by an engine."""

    def __init__(
        self,
        link: Link,
        engine: str,
        folder: Path,
        timeout: float,
        steps: int = STEPS,
        method: str = "large_batch",
    ) -> None:
        self.folder = folder
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self.environment = {
            **environment(),
            "ENGINE": engine,
            "METHOD": method,
            "STEPS": str(steps),
            "TIMEOUT": str(timeout),
            "FOLDER": str(folder),
        }
        lines = {"mpi": self._by_mpi, "torch": self._by_torch}[engine](link, folder, str(program))
        self.processes = [
            subprocess.Popen(
                line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **given}
            )
            for line, given in lines
        ]

    @staticmethod
    def _by_mpi(link: Link, folder: Path, program: str) -> list[tuple[list[str], dict[str, str]]]:
        agent, hosts = folder / "agent", folder / "hosts"
        agent.write_text(AGENT.format(namespace=link.names[1]))
        agent.chmod(0o755)
        hosts.write_text("".join(f"{address} slots=1\n" for address in ADDRESSES))
        allowed = {f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for name in ("PRTE", "OMPI") for end in ("", "_CONFIRM")}
        line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", "2", "--hostfile", str(hosts), program]
        return [(["ip", "netns", "exec", link.names[0], *line], {"PRTE_MCA_plm_ssh_agent": str(agent), **allowed})]

    @staticmethod
    def _by_torch(link: Link, _: Path, program: str) -> list[tuple[list[str], dict[str, str]]]:
        given = {"MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29500", "WORLD_SIZE": "2"}
        return [
            (
                ["ip", "netns", "exec", name, sys.executable, program],
                {**given, "RANK": str(rank), "GLOO_SOCKET_IFNAME": device},
            )
            for rank, (name, device) in enumerate(zip(link.names, link.devices, strict=True))
        ]

    def wait_for(self, *names: str) -> None:
        """Returns when these files are there."""
        deadline = time.monotonic() + jobs.DEADLINE
        while not all((self.folder / name).exists() for name in names):
            assert time.monotonic() < deadline and not all(process.poll() for process in self.processes), self.end()
            time.sleep(0.01)

    def has_ended(self) -> bool:
        """Whether both workers have written their results."""
        return all((self.folder / name).exists() for name in RESULTS)

    def results(self) -> list[object]:
        """The results of the workers."""
        self.wait_for(*RESULTS)
        return [json.loads((self.folder / name).read_text()) for name in RESULTS]

    def end(self) -> list[str]:
        """Ends the processes, and returns what they wrote to their standard error."""
        for process in self.processes:
            for pid in launch.descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return [process.communicate()[1] for process in self.processes]
