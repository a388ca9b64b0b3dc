"""Slots in a file that memory cannot hold: pages that are written back during steps, and memory that is given back."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

from oxigrad.step.state import write_back  # noqa: E402
from oxigrad.torch.state import file as state_file  # noqa: E402
from rows import memory  # noqa: E402
from torch_problems import OURS, copies, equal, parameters, states, train  # noqa: E402

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
# What a process has beyond its files after the first step, of what it had before, as a part of the bytes of the slots.
GROWTH = """
import sys, torch
from oxigrad.torch import AdamW
def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
params = [torch.nn.Parameter(torch.ones(1 << 20)) for _ in range(24)]
for p in params:
    p.grad = torch.ones_like(p)
opt = AdamW(params, state_device=sys.argv[1])
before = anonymous()
opt.step()
print((anonymous() - before) / (8 * 24 * (1 << 20)))
"""


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large beside the memory, from the first slot on."""
    monkeypatch.setattr(write_back, "memory_limit", lambda: 1.0)
    monkeypatch.setattr(write_back, "LEAST", 0)
    monkeypatch.setattr(state_file, "_RELEASED", 0)


@ON_LINUX
def test_the_memory_of_new_slots_is_given_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GROWTH, str(tmp_path / "state.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.3


@pytest.mark.usefixtures("no_memory")
@pytest.mark.parametrize("options", [{}, {"in_backward": True}])
def test_steps_while_pages_are_written_have_the_same_bits(
    options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, fdatasync = [], os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: written.append(fdatasync(file)))
    params = parameters(((64, 65), (3,)))
    others = copies(params)
    opt = OURS.make("AdamW", params, **options)
    other = OURS.make("AdamW", others, **options, state_device=tmp_path / "state.safetensors")
    train(opt, params, range(3))
    train(other, others, range(1))
    assert written  # in the first step, whose file is empty at its begin
    train(other, others, range(1, 3))
    assert equal(others, params)
    assert equal(states(other), states(opt))


@pytest.mark.usefixtures("no_memory")
def test_a_disk_that_fails_is_an_error_with_the_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(file: int) -> None:
        raise OSError(errno.EIO, "failed")

    params = parameters(((64, 65),))
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params)
    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(OSError, match=r"slots beside .*state\.safetensors: Input/output error") as raised:
        train(opt, params)
    assert raised.value.errno == errno.EIO
    monkeypatch.undo()
    train(opt, params)


@pytest.mark.usefixtures("no_memory")
def test_an_error_of_the_step_is_that_of_the_step(tmp_path: Path) -> None:
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        block = write_back.WriteBack(file.fileno(), "a file").block(10)
        with pytest.raises(KeyError, match="of the block"), block:
            raise KeyError("of the block")


def test_files_that_memory_holds_are_left_to_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda file: pytest.fail("written"))
    params = parameters(((64, 65),))
    opt = ours.AdamW(params, state_device=tmp_path / "state.safetensors")
    train(opt, params)
    assert not write_back.is_large(opt.state_file._end)


@ON_LINUX
@pytest.mark.parametrize(
    ("line", "name"),
    [("4:cpuset,memory:/a/b", "memory/{}/memory.limit_in_bytes"), ("0::/a/b", "{}/memory.max")],
    ids=["v1", "v2"],
)
def test_the_limit_is_the_least_of_all_groups(
    line: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, value in (("a", "5000"), ("a/b", "max")):
        limit = tmp_path / name.format(folder)
        limit.parent.mkdir(parents=True, exist_ok=True)
        limit.write_text(f"{value}\n")
    read = Path.read_text
    monkeypatch.setattr(write_back, "_GROUPS", tmp_path)
    monkeypatch.setattr(Path, "read_text", lambda path: f"9:cpu:/\n{line}\n" if path.name == "cgroup" else read(path))
    assert write_back.memory_limit() == 5000.0


@ON_LINUX
@pytest.mark.slow
@pytest.mark.parametrize("in_backward", [False, True])
def test_slots_of_three_times_the_memory(in_backward: bool, tmp_path: Path) -> None:
    try:
        with memory.control_group() as (group, used, limit):
            arguments = tmp_path, 1 << 25, group / used, group / limit, in_backward
            seconds = memory.measured(memory.FILE, *arguments, group=group)
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    assert len(seconds) == 2
