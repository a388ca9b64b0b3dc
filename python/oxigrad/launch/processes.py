"""The processes of a job, and the sockets on which they listen, as ``/proc`` shows them."""

import contextlib
import ipaddress
import os
import struct
from pathlib import Path


def listening(root: int) -> list[tuple[str, str, int]]:
    """Name, address and port of the listening TCP sockets of a process and its descendants; empty without ``/proc``."""
    sockets = _sockets()
    sockets_of_job = []
    for process in sorted(descendants(root)):
        inodes = [link[8:-1] for link in _links(Path(f"/proc/{process}/fd")) if link.startswith("socket:[")]
        with contextlib.suppress(OSError):  # the process has ended
            name = Path(f"/proc/{process}/comm").read_text().strip()
            sockets_of_job += [(f"{name} ({process})", *sockets[inode]) for inode in inodes if inode in sockets]
    return sockets_of_job


def _links(folder: Path) -> list[str]:
    """The targets of the links in a folder; entries that vanish meanwhile are left out."""
    targets = []
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            with contextlib.suppress(OSError):
                targets.append(os.readlink(entry))
    return targets


def _sockets() -> dict[str, tuple[str, int]]:
    """Address and port of each listening TCP socket of this host, by inode."""
    sockets = {}
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            address, port = fields[1].split(":")
            if fields[3] == "0A":
                sockets[fields[9]] = _address(address), int(port, 16)
    return sockets


def _address(text: str) -> str:
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    address = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    return str(getattr(address, "ipv4_mapped", None) or address)


def descendants(root: int) -> set[int]:
    """A process and all that it has started, directly or not."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        if parent := stat(int(entry.name))[1]:
            parents.setdefault(int(parent), []).append(int(entry.name))
    processes, rest = set(), [root]
    while rest:
        process = rest.pop()
        processes.add(process)
        rest += parents.get(process, [])
    return processes


def stat(process: int) -> tuple[str, str]:
    """State and parent of a process; empty if it has ended."""
    try:
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return "", ""
    return state, parent
