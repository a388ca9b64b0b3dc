"""The hosts of a job, as Slurm and the MPI operator of Kubernetes state them in the environment of a process."""

import itertools
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HOSTFILES = (
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
)
"""Variables that name a host file; the MPI operator of Kubeflow sets them in the pod of the launcher."""

_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\[\]]+\])+")
_LIST = re.compile(rf"{_ENTRY.pattern}(?:,{_ENTRY.pattern})*")
_PART = re.compile(r"(?P<text>[^\[\]]*)(?:\[(?P<ranges>[^\]]*)\])?")
_REPEATED = re.compile(r"(?P<count>\d+)(\(x(?P<times>\d+)\))?$")
_SLOTS = re.compile(r"(?P<name>[^\s:]+)(\s.*\bslots\s*=\s*(?P<slots>\d+)|:(?P<processes>\d+))?")


@dataclass(frozen=True)
class Hosts:
    """Host names with the number of workers of each, and the variable that states them."""

    slots: Mapping[str, int]
    source: str

    @property
    def workers(self) -> int:
        """The number of workers on all hosts."""
        return sum(self.slots.values())

    def are_this_host(self) -> bool:
        """Whether the only host is the one that this process runs on."""
        name = socket.gethostname()
        return set(self.slots) <= {name, name.partition(".")[0], "localhost"}

    def lines(self, *, colons: bool) -> str:
        """The text of a host file: of Open MPI, or with ``colons`` of MPICH."""
        form = "{}:{}\n" if colons else "{} slots={}\n"
        return "".join(form.format(name, slots) for name, slots in self.slots.items())


def hosts_of(environment: Mapping[str, str]) -> Hosts | None:
    """The hosts that the environment defines, or None.

    Raises `ValueError` if a variable cannot be read, or if ``srun`` has started a launcher for each task.

    >>> hosts_of({"SLURM_JOB_NODELIST": "gpu[08-10],login", "SLURM_TASKS_PER_NODE": "4(x3),1"}).slots
    {'gpu08': 4, 'gpu09': 4, 'gpu10': 4, 'login': 1}
    """
    if nodes := environment.get("SLURM_JOB_NODELIST"):
        if int(environment.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
            raise ValueError(
                f"srun has started {environment['SLURM_STEP_NUM_TASKS']} launchers: expected one, as by "
                "'srun -n 1' or by the batch script itself, or the program instead of the launcher"
            )
        return _of_slurm(nodes, environment.get("SLURM_TASKS_PER_NODE"))
    for variable in HOSTFILES:
        if path := environment.get(variable):
            return Hosts(_of_file(Path(path), variable), variable)
    return None


def _of_slurm(nodes: str, tasks: str | None) -> Hosts:
    names = list(node_names(nodes))
    counts = list(_counts(tasks)) if tasks else [1] * len(names)
    if len(counts) != len(names):
        raise ValueError(
            f"SLURM_TASKS_PER_NODE={tasks} is of {len(counts)} nodes: expected {len(names)}, the nodes of "
            f"SLURM_JOB_NODELIST={nodes}"
        )
    return Hosts(dict(zip(names, counts, strict=True)), "SLURM_JOB_NODELIST")


def node_names(nodes: str) -> list[str]:
    """The names of a node list of Slurm, in its order; raises `ValueError` if it cannot be read.

    >>> node_names("a[1-2,07]b,c")
    ['a1b', 'a2b', 'a07b', 'c']
    """
    if not _LIST.fullmatch(nodes):
        raise ValueError(f"the node list {nodes!r} cannot be read: expected names such as 'node[01-03,07],login'")
    names = []
    for entry in _ENTRY.finditer(nodes):
        parts = [[match["text"] + number for number in _numbers(match["ranges"])] for match in _PART.finditer(entry[0])]
        names += ["".join(words) for words in itertools.product(*parts)]
    return names


def _numbers(ranges: str | None) -> Iterator[str]:
    """The numbers of ``01-03,07``, with their width kept; an empty text without brackets."""
    if ranges is None:
        yield ""
        return
    for text in ranges.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
        if not match:
            raise ValueError(f"the range {text!r} in a node list cannot be read: expected a range such as 01-03")
        first, last = match[1], match[2] or match[1]
        yield from (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))


def _counts(tasks: str) -> Iterator[int]:
    """The numbers of ``4(x3),1``."""
    for text in tasks.split(","):
        match = _REPEATED.match(text)
        if not match:
            raise ValueError(f"SLURM_TASKS_PER_NODE={tasks} cannot be read: expected counts such as 4(x3),1")
        yield from itertools.repeat(int(match["count"]), int(match["times"] or 1))


def _of_file(path: Path, variable: str) -> dict[str, int]:
    try:
        text = path.read_text()
    except OSError as error:
        raise ValueError(f"{variable} names {path}, which cannot be read: {error.strerror}") from None
    slots: dict[str, int] = {}
    for line in text.splitlines():
        if match := _SLOTS.match(line.partition("#")[0].strip()):
            slots[match["name"]] = slots.get(match["name"], 0) + int(match["slots"] or match["processes"] or 1)
    if not slots:
        raise ValueError(f"{variable} names {path}, which names no host")
    return slots
