"""The type stubs that editors read are those of the names that there are, and without errors of types."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tomllib

import pytest

import stubs

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", stubs.HEADS)
def test_the_stub_is_printed_from_the_table(name: str) -> None:
    pytest.importorskip(name)
    assert stubs.path(name).read_text() == stubs.stub(name), "python tools/stubs.py"


def test_what_imports_pytorch_has_no_errors_of_types(tmp_path: pathlib.Path) -> None:
    """`make lint` leaves out the files that it cannot check without PyTorch; they are checked here, by the same settings."""
    pytest.importorskip("torch")
    pytest.importorskip("basedpyright")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["basedpyright"]
    files = [str(path) for pattern in settings["exclude"] for path in ROOT.glob(pattern)]
    project = {
        "include": files,
        "extraPaths": [str(ROOT / "python"), str(ROOT / "examples")],
        **{name: settings[name] for name in settings if name.startswith(("report", "type", "python"))},
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(project))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--project",
        str(tmp_path),
        "--pythonpath",
        sys.executable,
        "--stats",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(stubs.path("torch")) in files and f"Total files checked: {len(files)}" in done.stdout, done.stdout
