"""Files of state: atomic replacement, and validation of untrusted files."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import oxigrad as ox
from oxigrad import optim
from oxigrad.step.state import safetensors_io, state_dict

PARAMETERS = {"a": np.ones(3), "b": {"c": np.ones((2, 2), np.float32)}}


def trained(steps: int = 3) -> Any:
    opt, model = optim.Adam(0.1), ox.tree.map(np.copy, PARAMETERS)
    for _ in range(steps):
        opt.update(model, ox.tree.map(np.ones_like, model))
    return opt


def loaded(file: Any) -> Any:
    opt = optim.Adam(0.1)
    opt.load(file)
    opt.build(PARAMETERS)
    return opt


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    opt, file = trained(), tmp_path / "state.safetensors"
    opt.save(file)
    found = load_file(file)
    assert set(found) == {"m.a", "v.a", "m.b.c", "v.b.c"}
    np.testing.assert_array_equal(found["m.b.c"], opt.slots["b.c"]["m"])
    assert found["m.b.c"].dtype == np.float32
    with safe_open(file, "np") as opened:
        metadata = json.loads(opened.metadata()["oxigrad"])
    assert metadata == {
        "format": 1,
        "optimizer": "Adam",
        "config": opt.get_config(),
        "step": 3,
        "micro": 0,
        "skipped": 0,
        "remembered": {},
        "parameters": ["a", "b.c"],
    }


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(()),
        np.zeros((0, 3)),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-2],
        np.arange(3.0).astype(">f8"),
        np.ones(3, np.float16),
        np.arange(-3, 3, dtype=np.int8),
        np.array([True, False]),
        np.float32(1.5),
    ],
    ids=["0-d", "empty", "transposed", "strided", "big-endian", "half", "int8", "bool", "scalar"],
)
def test_arrays_of_any_layout(array: Any, tmp_path: Path) -> None:
    safetensors_io.write(tmp_path / "x", {"x": array}, {"note": "é \n"})
    found, metadata = safetensors_io.read(tmp_path / "x")
    np.testing.assert_array_equal(found["x"], array)
    assert found["x"].dtype == array.dtype.newbyteorder("=")
    assert metadata == {"note": "é \n"}


def test_an_unsupported_state_is_refused_before_writing(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("before")
    with pytest.raises(ox.StateError, match=r"m\.w: the dtype complex128 cannot be saved"):
        safetensors_io.write(tmp_path / "x", {"m.w": np.ones(2, complex)}, {})
    with pytest.raises(ox.StateError, match="not plain data"):
        state_dict.write(tmp_path / "x", {**trained().state_dict(), "remembered": {"a": {"b": object()}}})
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "before"


# --- atomic replacement --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mkdir", "replace", "fsync", "chmod", "open"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full", "interrupt"])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_failure_at_any_call_leaves_old_or_new(
    name: str, error: BaseException, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, old, new = tmp_path / "state", trained(1), trained(2)
    old.save(file)
    before, calls, own = file.read_bytes(), [], getattr(os, name)

    def failing(*args: Any, **named: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            raise error
        return own(*args, **named)

    monkeypatch.setattr(os, name, failing)
    raised = None
    try:
        new.save(file)
    except (OSError, KeyboardInterrupt) as found:
        raised = found
    monkeypatch.undo()
    failed = raised is error
    assert failed == (len(calls) >= call)
    step = loaded(file).step
    assert step == (1 if file.read_bytes() == before else 2)
    assert step == 1 or not failed or (name, call) in {("fsync", 2), ("open", 3)}  # the folder, after the file is there
    assert list(tmp_path.iterdir()) == [file]


FULL = """
import resource, sys
import numpy as np
import oxigrad as ox
opt, model = ox.optim.Adam(), {"w": np.zeros(50_000)}
opt.update(model, {"w": np.ones(50_000)})
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    opt.save(sys.argv[1])
except OSError as error:
    assert "too large" in str(error), error
    sys.exit(3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits a file's size")
@pytest.mark.parametrize(("limit", "status"), [(0, 3), (100, 3), (500_000, 3), (10_000_000, 0)])
def test_a_disk_that_is_full(limit: int, status: int, tmp_path: Path) -> None:
    file = tmp_path / "state"
    trained(1).save(file)
    before = file.read_bytes()
    done = subprocess.run([sys.executable, "-c", FULL, file, str(limit)], capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stderr
    assert (file.read_bytes() == before) == (status == 3)
    assert list(tmp_path.iterdir()) == [file]


SAVING = """
import sys
import numpy as np
import oxigrad as ox
opt, model = ox.optim.SGD(0.0, momentum=1e-300), {"w": np.zeros(200_000), "b": np.zeros(3)}
while True:
    opt.update(model, ox.tree.map(lambda leaf: np.full_like(leaf, opt.step + 1.0), model))
    opt.save(sys.argv[1])
    if opt.step == 1:
        print("saving", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_killed_at_any_moment_the_file_loads(tmp_path: Path) -> None:
    file, generator, steps = tmp_path / "state", random.Random(0), []
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", SAVING, file], stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline() == "saving\n"
        time.sleep(generator.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        found = state_dict.read(file)
        for own in found["slots"].values():
            np.testing.assert_array_equal(own["m"], float(found["step"]))
        steps.append(found["step"])
    assert max(steps) > 1
    trained(1).save(file)  # which removes what the killed have left
    assert list(tmp_path.iterdir()) == [file]


def unfinished(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(".oxigrad-")}


def leave_behind(folder: Path) -> None:
    folder.mkdir()
    for name in ("state", ".tmp3w9q2A"):  # the library writes to the second, and renames it
        (folder / name).write_bytes(b"half")


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process at a full disk's signal")
@pytest.mark.parametrize("limit", [0, 100, 500_000])
def test_killed_while_the_library_writes(limit: int, tmp_path: Path) -> None:
    """The signal of a file that grows too large ends the process within the write."""
    file, killed = tmp_path / "state", "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n" + FULL
    trained(1).save(file)
    before = file.read_bytes()
    done = subprocess.run([sys.executable, "-c", killed, file, str(limit)], capture_output=True, text=True, timeout=600)
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert file.read_bytes() == before
    (left,) = unfinished(tmp_path)
    assert list((tmp_path / left).iterdir())
    trained(2).save(file)
    assert list(tmp_path.iterdir()) == [file] and loaded(file).step == 2


@pytest.mark.skipif(safetensors_io.fcntl is None, reason="files cannot be locked")
def test_a_symlink_at_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    file, other = tmp_path / "state", tmp_path / "other"
    with safetensors_io._replacing(file) as temporary:
        (name,) = unfinished(tmp_path)
        Path(temporary).write_bytes(b"whole")
    other.mkdir()
    (other / "kept").write_text("kept")
    (tmp_path / name).symlink_to(other)
    trained(1).save(file)
    assert (other / "kept").read_text() == "kept"


@pytest.mark.skipif(safetensors_io.fcntl is None, reason="files cannot be locked")
def test_the_temporary_file_of_another_save_is_kept(tmp_path: Path) -> None:
    file, other = tmp_path / "state", tmp_path / "other"
    with safetensors_io._replacing(file) as temporary, safetensors_io._replacing(other) as beside:
        Path(temporary).write_bytes(b"whole")
        Path(beside).write_bytes(b"other")
        names = unfinished(tmp_path)
        trained(1).save(file)
        assert unfinished(tmp_path) == names and len(names) == 2
        assert loaded(file).step == 1
    assert file.read_bytes() == b"whole"  # the last to be done


@pytest.mark.skipif(safetensors_io.fcntl is None, reason="files cannot be locked")
def test_an_abandoned_temporary_file_is_removed_by_the_next_save(tmp_path: Path) -> None:
    file, other = tmp_path / "state", tmp_path / "other"
    left: dict[Path, Path] = {}
    for target in (file, other):
        with pytest.raises(KeyboardInterrupt), safetensors_io._replacing(target) as temporary:  # noqa: PT012 - raised last
            (name,) = unfinished(tmp_path) - {path.name for path in left.values()}
            left[target] = tmp_path / name
            Path(temporary).write_bytes(b"half")
            raise KeyboardInterrupt
        assert not unfinished(tmp_path) - {path.name for path in left.values()}
        leave_behind(left[target])
    trained(1).save(file)
    assert unfinished(tmp_path) == {left[other].name}
    trained(1).save(other)
    assert set(tmp_path.iterdir()) == {file, other}


@pytest.mark.skipif(safetensors_io.fcntl is None, reason="files cannot be locked")
@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_files_cannot_be_locked_only_old_ones_go(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state"
    with safetensors_io._replacing(file) as temporary:
        (name,) = unfinished(tmp_path)
        Path(temporary).write_bytes(b"whole")
    old, new = tmp_path / name, tmp_path / f"{name[:-5]}x.tmp"
    for path, age in ((old, 2 * 24 * 3600), (new, 3600)):
        leave_behind(path)
        os.utime(path, (time.time() - age,) * 2)

    def no_locks(*_: Any) -> None:
        raise OSError(error, "no locks")

    monkeypatch.setattr(safetensors_io.fcntl, "flock", no_locks)
    trained(1).save(file)
    assert unfinished(tmp_path) == {new.name}
    assert loaded(file).step == 1


@pytest.mark.skipif(safetensors_io.fcntl is None, reason="files cannot be locked")
def test_a_new_file_that_another_save_removes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, made, own = tmp_path / "state", [], safetensors_io.fcntl.flock

    def slow(handle: Any, how: int) -> None:
        if not how & safetensors_io.fcntl.LOCK_NB:
            made.append(handle)
            if len(made) == 1:
                monkeypatch.setattr(safetensors_io.fcntl, "flock", own)
                trained(1).save(file)  # before the first one has its lock
                monkeypatch.setattr(safetensors_io.fcntl, "flock", slow)
        own(handle, how)

    monkeypatch.setattr(safetensors_io.fcntl, "flock", slow)
    trained(2).save(file)
    assert len(made) == 2 and loaded(file).step == 2 and list(tmp_path.iterdir()) == [file]


def test_two_at_once_end_in_one_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "state"
    command = [sys.executable, "-c", SAVING, str(file)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout and process.stdout.readline() == "saving\n"
        for _ in range(20):
            found = state_dict.read(file)
            for own in found["slots"].values():
                np.testing.assert_array_equal(own["m"], float(found["step"]))
    finally:
        for process in processes:
            assert process.poll() is None  # no save has failed
            process.kill()
            process.communicate()
    trained(1).save(file)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("count", [1, 50])
def test_a_file_is_opened_once_and_all_arrays_are_asked_for_at_once(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {f"w{number}": np.ones(2) for number in range(count)}
    opt = optim.Adam()
    opt.update(model, ox.tree.map(np.copy, model))
    calls: list[str] = []

    class Counted:
        def __init__(self, *args: Any, **named: Any) -> None:
            calls.append("open")
            self.opened = safe_open(*args, **named)

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *error: object) -> None:
            self.opened.__exit__(*error)

        def __getattr__(self, name: str) -> Any:
            if name == "get_tensor" or name == "get_tensors":
                calls.append(name)
            return getattr(self.opened, name)

    monkeypatch.setattr(safetensors_io, "safe_open", Counted)
    opt.save(tmp_path / "state")
    optim.Adam().load(tmp_path / "state")
    opt.load(tmp_path / "state")
    assert calls == ["open", "get_tensors"] * 2


PEAK = """
import sys
import numpy as np
from oxigrad.step.state import safetensors_io

def peak():
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10

safetensors_io.write(sys.argv[1], {"w": np.ones(2)}, {})
safetensors_io.read(sys.argv[1])
arrays = {f"w{number}": np.ones(2_000_000) for number in range(4)}
size, before = sum(array.nbytes for array in arrays.values()), peak()
safetensors_io.write(sys.argv[1], arrays, {})
assert peak() - before < 0.25 * size, ("write", peak() - before)
before = peak()
safetensors_io.read(sys.argv[1])
assert peak() - before < 1.25 * size, ("read", peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's peak memory")
def test_large_arrays_are_in_memory_once(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PEAK, tmp_path / "x"], capture_output=True, text=True, timeout=600)
    assert not done.returncode, done.stderr


def test_the_work_grows_with_the_number_of_arrays_alone(tmp_path: Path) -> None:
    """Calls of Python's functions, of which there are ten times as many for ten times as many arrays."""

    def calls(count: int) -> dict[str, int]:
        model = {f"w{number}": np.ones(1, np.float32) for number in range(count)}
        opt, found, grads = optim.SGD(0.1, 0.9), {}, ox.tree.map(np.copy, model)
        file, state_of = tmp_path / f"{count}", opt.init(model)
        uses: dict[str, Any] = {
            "update": lambda: opt.update(model, grads),
            "again": lambda: opt.update(model, grads),
            "save": lambda: opt.save(file),
            "load": lambda: opt.load(file),
            "state_dict": lambda: opt.load_state_dict(opt.state_dict()),
            "build": lambda: (other := optim.SGD(0.1, 0.9)).load(file) or other.build(model),
            "not strict": lambda: optim.SGD(0.1, 0.9).load(file, strict=False),
            "table": lambda: opt.table(model),
            "apply": lambda: opt.apply(model, grads, state_of),
            "paths": lambda: [str(path) for path in ox.tree.key_paths(model)],
            "parameters": lambda: ox.tree.zeros_like(model) and ox.tree.parameters(model),
        }
        for name, use in uses.items():
            counter = [0]
            sys.setprofile(lambda *_, counter=counter: counter.__setitem__(0, counter[0] + 1))
            try:
                use()
            finally:
                sys.setprofile(None)
            found[name] = counter[0]
        return found

    few, many = calls(100), calls(1000)
    for name, count in many.items():
        assert count < 10.5 * few[name] + 500, name


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    folder, link, relative = tmp_path / "folder", tmp_path / "link", tmp_path / "new"
    folder.mkdir()
    file = folder / "state"
    trained(1).save(file)
    expected = 0o666 & ~umask()
    assert stat.S_IMODE(file.stat().st_mode) == expected
    file.chmod(0o640)
    link.symlink_to(file)
    trained(2).save(str(link))
    assert link.is_symlink() and loaded(file).step == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    with pytest.raises(FileNotFoundError):
        trained(1).save(relative / "state")
    with pytest.raises(IsADirectoryError):
        trained(1).save(folder)
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "link"}
    assert [path.name for path in folder.iterdir()] == ["state"]


def umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before


# --- untrusted files -----------------------------------------------------------------------------------------------------


def a_file(folder: Path) -> bytes:
    trained().save(folder / "good")
    return (folder / "good").read_bytes()


def refused(file: Path) -> ox.StateError:
    """Loading raises a `StateError`, and changes nothing, before and after a model was seen."""
    for opt in (optim.Adam(0.1), trained(1)):
        before = str(opt.state_dict())
        with pytest.raises(ox.StateError) as error:
            opt.load(file)
        assert str(opt.state_dict()) == before
    return error.value


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = a_file(tmp_path)
    for length in [*range(0, len(whole), 7), len(whole) - 1]:
        (tmp_path / "bad").write_bytes(whole[:length])
        assert str(tmp_path / "bad") in str(refused(tmp_path / "bad"))
    (tmp_path / "bad").write_bytes(whole + b"\0")
    refused(tmp_path / "bad")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_refused_or_are_numbers(flips: list[tuple[float, int]], tmp_path: Path) -> None:
    whole = bytearray(a_file(tmp_path))
    (size,) = struct.unpack("<Q", whole[:8])
    for place, bits in flips:
        whole[int(place * len(whole))] ^= bits
    (tmp_path / "bad").write_bytes(whole)
    opt = optim.Adam(0.1)
    before = str(opt.state_dict())
    try:
        opt.load(tmp_path / "bad")
    except ox.StateError:
        assert str(opt.state_dict()) == before
        return
    try:
        opt.build(PARAMETERS)  # what is left whole says what it is
        assert {path: set(own) for path, own in opt.slots.items()} == {"a": {"m", "v"}, "b.c": {"m", "v"}}
        assert opt.step >= 0
    except ox.StateError:
        assert any(int(place * len(whole)) < 8 + size for place, _ in flips)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300))
@pytest.mark.slow
def test_any_bytes_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(content)
    refused(tmp_path / "bad")
    (tmp_path / "bad").write_bytes(struct.pack("<Q", len(content)) + content)
    refused(tmp_path / "bad")


HEADERS: dict[str, tuple[Any, str]] = {
    "a list": ([1], "invalid type: sequence"),
    "no text": ({"__metadata__": {"a": 1}}, "expected a string"),
    "text alone": ({"__metadata__": "a"}, "expected a map"),
    "no entry": ({"x": 1}, "expected struct TensorInfo"),
    "no dtype": ({"x": {"shape": [1], "data_offsets": [0, 4]}}, "dtype"),
    "a dtype that is a list": ({"x": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}}, "sequence"),
    "a shape that is a number": ({"x": {"dtype": "F32", "shape": 1, "data_offsets": [0, 4]}}, "expected a sequence"),
    "a negative shape": ({"x": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}, "-1"),
    "a shape of truth": ({"x": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, "boolean"),
    "a shape of fractions": ({"x": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}, "floating point"),
    "a shape of more than there is": ({"x": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 4]}}, "shape"),
    "a shape that wraps": ({"x": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 0]}}, "shape"),
    "no elements of huge extents": (
        {"x": {"dtype": "F32", "shape": [0, 2**70], "data_offsets": [0, 0]}},
        "expected usize",
    ),
    "many axes": ({"x": {"dtype": "F32", "shape": [1] * 1000, "data_offsets": [0, 4]}}, "dimension"),
    "three offsets": ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}}, "invalid length 3"),
    "offsets that are text": ({"x": {"dtype": "F32", "shape": [1], "data_offsets": ["0", "4"]}}, "expected usize"),
    "before the first byte": ({"x": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}, "-4"),
    "after the last byte": ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "not fully covered"),
    "a hole": ({"x": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}}, "invalid offset"),
    "bytes at the end": ({"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, "not fully covered"),
    "one over the other": (
        {name: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for name in "xy"},
        "invalid offset",
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_lie_are_refused(name: str, tmp_path: Path) -> None:
    header, message = HEADERS[name]
    text = json.dumps(header).encode()
    (tmp_path / "bad").write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    with pytest.raises(ox.StateError, match=f"bad: .*{message}"):
        safetensors_io.read(tmp_path / "bad")


def test_files_are_compatible_with_the_safetensors_library(tmp_path: Path) -> None:
    arrays = {
        f"{dtype} {shape}": np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        for dtype in ("bool", "int8", "uint16", "float16", "float32", "int64", "float64", ">f4", "<f8")
        for shape in ((), (0,), (3,), (2, 3), (0, 2**40))
    }
    safetensors_io.write(tmp_path / "ours", arrays, {"a": "b"})
    save_file(
        {name: array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()}, tmp_path / "theirs"
    )
    for found in (
        load_file(tmp_path / "ours"),
        safetensors_io.read(tmp_path / "ours")[0],
        safetensors_io.read(tmp_path / "theirs")[0],
    ):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype.newbyteorder("=") and found[name].flags.aligned
            np.testing.assert_array_equal(found[name], array, strict=False)
            assert found[name].shape == array.shape


def test_a_huge_header_is_refused_without_reading_it(tmp_path: Path) -> None:
    for size in (100_000_001, 2**31, 2**40, 2**63, 2**64 - 1):
        (tmp_path / "bad").write_bytes(struct.pack("<Q", size) + b"{" * 1000)
        refused(tmp_path / "bad")
    with (tmp_path / "bad").open("wb") as file:
        file.write(struct.pack("<Q", 200_000_000))
        file.truncate(200_000_100)
    assert "header" in str(refused(tmp_path / "bad"))


def metadata(**changes: Any) -> dict[str, str]:
    good = {
        "format": 1,
        "optimizer": "Adam",
        "config": None,
        "step": 1,
        "micro": 0,
        "skipped": 0,
        "remembered": {},
        "parameters": ["a", "b.c"],
    }
    return {"oxigrad": json.dumps({**good, **changes})}


SLOTS = {f"{name}.a": np.ones(3) for name in "mv"} | {f"{name}.b.c": np.ones((2, 2), np.float32) for name in "mv"}
MALICIOUS: dict[str, tuple[dict[str, Any], dict[str, str] | None, str]] = {
    "no metadata": (SLOTS, None, "arrays, but not the state of an optimizer"),
    "other metadata": (SLOTS, {"format": "pt"}, "arrays, but not the state of an optimizer"),
    "no JSON": (SLOTS, {"oxigrad": "{"}, "metadata cannot be read"),
    "no dict": (SLOTS, {"oxigrad": "[1]"}, "metadata is list"),
    "deep JSON": (SLOTS, {"oxigrad": "[" * 1_000_000}, "metadata cannot be read"),
    "a number of a million digits": (
        SLOTS,
        {"oxigrad": '{"step": ' + "9" * 1_000_000 + "}"},
        "metadata cannot be read",
    ),
    "a later format": (SLOTS, metadata(format=2), "format 2"),
    "a step of another kind": (SLOTS, metadata(step=[1]), "step"),
    "not a number of steps": (
        SLOTS,
        {"oxigrad": metadata()["oxigrad"].replace('"step": 1', '"step": NaN')},
        "step nan",
    ),
    "parameters of another kind": (SLOTS, metadata(parameters={"a": 1}), "does not list the parameters"),
    "parameters that are no text": (SLOTS, metadata(parameters=[["a"]]), "does not list the parameters"),
    "a parameter too few": (SLOTS, metadata(parameters=["a"]), r"'m\.b\.c' is not a slot"),
    "a parameter too many": (SLOTS, metadata(parameters=["a", "b.c", "d"]), "unexpected: d"),
    "a path as a name": ({**SLOTS, "../../etc/passwd": np.ones(1)}, metadata(), "is not a slot of a parameter"),
    "an absolute path": ({**SLOTS, "/etc/passwd": np.ones(1)}, metadata(), "is not a slot of a parameter"),
    "no name": ({**SLOTS, "": np.ones(1)}, metadata(), "is not a slot of a parameter"),
    "an attribute as a slot": ({**SLOTS, "__class__.a": np.ones(1)}, metadata(), "unexpected: a: slot __class__"),
    "another dtype": ({**SLOTS, "m.a": np.ones(3, np.float32)}, metadata(), "a: slot m has shape"),
    "integers": ({**SLOTS, "m.a": np.ones(3, np.int64)}, metadata(), "dtype int64"),
    "another shape": ({**SLOTS, "m.a": np.ones((3, 1))}, metadata(), r"a: slot m has shape \(3, 1\)"),
    "no arrays": ({}, metadata(), "missing: a: slot m"),
    "a config with code": (SLOTS, metadata(config="__import__('os')"), "config"),
    "too much remembered": (SLOTS, metadata(remembered={"loss_scale": {"value": 1}}), "unexpected: loss_scale"),
}


@pytest.mark.parametrize("name", MALICIOUS)
def test_malicious_files_are_refused(name: str, tmp_path: Path) -> None:
    arrays, about, message = MALICIOUS[name]
    save_file(arrays, tmp_path / "bad", about)
    for opt in (optim.Adam(0.1), trained(1)):
        model = ox.tree.map(np.copy, PARAMETERS)
        with pytest.raises(ox.StateError, match=message):  # noqa: PT012 - in one of two places
            opt.load(tmp_path / "bad")
            opt.build(model)


def test_a_file_that_is_good(tmp_path: Path) -> None:
    save_file(SLOTS, tmp_path / "good", metadata())
    assert loaded(tmp_path / "good").step == 1


@pytest.mark.parametrize("dtype", ["F8_E4M3", "C64", "F4"])
def test_dtypes_that_no_slot_has(dtype: str, tmp_path: Path) -> None:
    size = {"F8_E4M3": 2, "C64": 16, "F4": 1}[dtype]
    header = json.dumps({"x": {"dtype": dtype, "shape": [2], "data_offsets": [0, size]}}).encode()
    (tmp_path / "bad").write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    with pytest.raises(ox.StateError, match=dtype):
        safetensors_io.read(tmp_path / "bad")


def test_a_pickle_is_refused_and_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR.")
    refused(tmp_path / "bad")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 as torch.save writes", b"not a state at all, but text"])
def test_a_file_of_another_format_says_which_is_expected(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    file.write_bytes(content)
    opt = optim.SGD(0.1, momentum=0.9)
    with pytest.raises(ox.StateError, match=r"state\.pt: .*: expected a complete safetensors file, as save writes it"):
        opt.load(file)
    assert opt.step == 0


def test_a_missing_folder_is_named_by_the_path_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "none" / "state.safetensors"
    with pytest.raises(FileNotFoundError, match="its folder does not exist") as raised:
        optim.SGD(0.1).save(file)
    assert raised.value.filename == str(file)
    assert not any(tmp_path.iterdir())
