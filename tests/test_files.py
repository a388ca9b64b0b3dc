"""Files of state: replaced whole or not at all, and never trusted."""

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
from oxigrad import files, optim, state

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
    files.write(tmp_path / "x", {"x": array}, {"note": "é \n"})
    found, metadata = files.read(tmp_path / "x")
    np.testing.assert_array_equal(found["x"], array)
    assert found["x"].dtype == array.dtype.newbyteorder("=")
    assert metadata == {"note": "é \n"}


def test_what_cannot_be_saved_is_told_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("before")
    with pytest.raises(ox.StateError, match=r"m\.w: the dtype complex128 cannot be saved"):
        files.write(tmp_path / "x", {"m.w": np.ones(2, complex)}, {})
    with pytest.raises(ox.StateError, match="no plain data"):
        state.write(tmp_path / "x", {**trained().state_dict(), "remembered": {"a": {"b": object()}}})
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "before"


# --- replaced whole or not at all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["replace", "fsync", "chmod", "open"])
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
    done = subprocess.run([sys.executable, "-c", FULL, file, str(limit)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert (file.read_bytes() == before) == (status == 3)
    assert list(tmp_path.iterdir()) == [file]


SAVING = """
import sys
import numpy as np
import oxigrad as ox
opt, model = ox.optim.Momentum(0.0, momentum=0.0), {"w": np.zeros(200_000), "b": np.zeros(3)}
while True:
    opt.update(model, ox.tree.map(lambda leaf: np.full_like(leaf, opt.step + 1.0), model))
    opt.save(sys.argv[1])
    if opt.step == 1:
        print("saving", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_killed_at_any_moment_the_file_loads(tmp_path: Path) -> None:
    file, generator, steps = tmp_path / "state", random.Random(0), []
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", SAVING, file], stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline() == "saving\n"
        time.sleep(generator.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        found = state.read(file)
        for own in found["slots"].values():
            np.testing.assert_array_equal(own["m"], float(found["step"]))
        steps.append(found["step"])
    assert max(steps) > 1
    left = {path.name for path in tmp_path.iterdir()} - {"state"}
    assert all(name.startswith((".oxigrad-", ".tmp")) for name in left)


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


# --- never trusted -------------------------------------------------------------------------------------------------------


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
def test_any_bytes_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(content)
    refused(tmp_path / "bad")
    (tmp_path / "bad").write_bytes(struct.pack("<Q", len(content)) + content)
    refused(tmp_path / "bad")


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
    "no metadata": (SLOTS, None, "no state of an optimizer, only arrays"),
    "other metadata": (SLOTS, {"format": "pt"}, "no state of an optimizer, only arrays"),
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
    "a parameter too few": (SLOTS, metadata(parameters=["a"]), r"'m\.b\.c' is no slot"),
    "a parameter too many": (SLOTS, metadata(parameters=["a", "b.c", "d"]), "unexpected: d"),
    "a path as a name": ({**SLOTS, "../../etc/passwd": np.ones(1)}, metadata(), "is no slot of a parameter"),
    "an absolute path": ({**SLOTS, "/etc/passwd": np.ones(1)}, metadata(), "is no slot of a parameter"),
    "no name": ({**SLOTS, "": np.ones(1)}, metadata(), "is no slot of a parameter"),
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
        files.read(tmp_path / "bad")


def test_a_pickle_is_refused_and_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR.")
    refused(tmp_path / "bad")
    assert not (tmp_path / "ran").exists()
