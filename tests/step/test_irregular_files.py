"""Only regular files are read and replaced: pipes, sockets and devices are refused at once."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, schedules
from oxigrad.cuda.disk_cache import DiskCache

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such files")


@pytest.fixture
def irregular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files of each kind, by the name of the kind in errors."""
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    os.symlink("pipe", "link")
    return {"pipe": "a pipe", "link": "a pipe", "socket": "a socket", os.devnull: "a device", "/dev/zero": "a device"}


def every_door() -> dict[str, Any]:
    """The functions that read a state from a file."""
    made = optim.Adam(0.1)
    return {
        "optimizer": made.load,
        "chain": optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD()).load,
        "partition": optim.partition({"*": optim.SGD()}).load,
        "SAM": optim.SAM(optim.SGD()).load,
        "L-BFGS": optim.LBFGS().load,
        "read": ox.state.read,
    }


def test_reading(irregular: dict[str, str]) -> None:
    for path, kind in irregular.items():
        for door in every_door().values():
            with pytest.raises(ox.StateError, match=f"{path}: it is {kind}: expected a regular file"):
                door(path)
            with pytest.raises(ox.StateError, match=f"it is {kind}"):
                door(Path(path))
            with pytest.raises(ox.StateError, match=f"it is {kind}"):
                door(os.fsencode(path))
    os.mkdir("folder")
    for door in every_door().values():
        with pytest.raises(IsADirectoryError, match="folder"):
            door("folder")
        with pytest.raises(FileNotFoundError, match="missing"):
            door("missing")


def test_writing_replaces_none_of_them(irregular: dict[str, str]) -> None:
    opt = optim.Adam(0.1)
    opt.update({"w": np.ones(2)}, {"w": np.ones(2)})
    for path, kind in irregular.items():
        before = os.stat(path)
        with pytest.raises(ox.StateError, match=f"{path}: it is {kind}: expected a regular file"):
            opt.save(path)
        assert stat.S_IFMT(os.stat(path).st_mode) == stat.S_IFMT(before.st_mode)
    opt.save("state")
    os.symlink("state", "to-state")
    opt.save("to-state")
    assert os.path.islink("to-state")
    assert optim.Adam(0.1).load(b"to-state").missing == []
    assert sorted(os.listdir()) == ["link", "pipe", "socket", "state", "to-state"]


def test_the_disk_cache_reads_no_pipe(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = DiskCache(folder)
    cache.write(b"key", b"content")
    (file,) = folder.iterdir()
    assert cache.read(b"key") == b"content"
    file.unlink()
    os.mkfifo(file)
    assert cache.read(b"key") is None


def test_configurations_are_dicts() -> None:
    for read in (optim.from_config, schedules.from_config):
        for wrong in ("file", b"file", None, 3, Path("file"), [1]):
            with pytest.raises(TypeError, match=f"the configuration is {type(wrong).__name__}: expected a dict"):
                read(wrong)
