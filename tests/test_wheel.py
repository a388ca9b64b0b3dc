"""Wheels that are packed again have no path of the machine, a RECORD that holds, and the same bytes for the same files."""

import base64
import csv
import hashlib
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import absolute_links
from wheel_packing import pack

FILES = {
    "oxigrad/__init__.py": b"x = 1\n",
    "oxigrad-0.dist-info/sboms/core.cyclonedx.json": b'{"bom-ref": "path+%s/rust#core@0", "other": "file:///elsewhere"}',
}


def built(folder: Path, name: str) -> Path:
    """A wheel as it is built in a folder."""
    files = {name: data.replace(b"%s", folder.as_uri().encode()) for name, data in FILES.items()}
    lines = [f"{name},sha256=of-the-build,{len(data)}" for name, data in files.items()]
    files["oxigrad-0.dist-info/RECORD"] = "\n".join([*lines, "oxigrad-0.dist-info/RECORD,,", ""]).encode()
    wheel = folder / name
    with zipfile.ZipFile(wheel, "w") as to:
        for name, data in files.items():
            to.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data)
    return wheel


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "one", tmp_path / "another" / "deeper"]
    for folder in folders:
        folder.mkdir(parents=True)
    found = [built(folder, "oxigrad.whl") for folder in folders]
    for wheel, folder in zip(found, folders, strict=True):
        pack(wheel, folder)
    return found


def test_two_folders_give_the_same_bytes(wheels: list[Path]) -> None:
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert [*wheels[0].parent.iterdir()] == [wheels[0]]


def test_the_sbom_has_no_path_of_the_build(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        assert wheel.testzip() is None
        text = wheel.read("oxigrad-0.dist-info/sboms/core.cyclonedx.json").decode()
    assert text == '{"bom-ref": "path+file:///oxigrad/rust#core@0", "other": "file:///elsewhere"}'


def test_record_has_the_digest_of_what_was_changed_and_the_lines_of_the_rest(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        rows = [*csv.reader(wheel.read("oxigrad-0.dist-info/RECORD").decode().splitlines())]
        assert {row[0] for row in rows} == {*wheel.namelist()}
        sbom = wheel.read(rows[1][0])
    digest = base64.urlsafe_b64decode(rows[1][1].removeprefix("sha256=") + "=")
    assert digest == hashlib.sha256(sbom).digest() and int(rows[1][2]) == len(sbom)
    assert rows[0][1:] == ["sha256=of-the-build", "6"] and rows[2][1:] == ["", ""]


def test_links_of_the_readme_are_absolute_where_it_is_shown_by_itself() -> None:
    text = absolute_links.README.read_text()
    assert "](docs/" in text
    found = absolute_links.absolute(text, "https://github.com/owner/name", "abc")
    links = re.findall(r"\]\(([^)]*)\)", found)
    assert len(links) > 10 and all(link.startswith("https://") for link in links)
    assert "![Loss" in found and "(https://github.com/owner/name/raw/abc/docs/digits.png)" in found
    assert "(https://github.com/owner/name/blob/abc/docs/start/numpy.md)" in found
    assert absolute_links.absolute("[a](#b) [c](mailto:d)", "https://x", "y") == "[a](#b) [c](mailto:d)"


def test_the_workspace_has_the_members_of_the_source_distribution_alone() -> None:
    """maturin leaves out the others, and the lock file would then be that of another workspace, which ``--locked`` refuses."""
    root = Path(__file__).parents[1]
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    module = Path(tomllib.loads((root / "pyproject.toml").read_text())["tool"]["maturin"]["manifest-path"])
    dependencies = tomllib.loads((root / module).read_text())["dependencies"]
    paths = {name: of["path"] for name, of in workspace["dependencies"].items() if "path" in of}
    assert {*workspace["members"]} == {str(module.parent), *(paths[name] for name in dependencies if name in paths)}
