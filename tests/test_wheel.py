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
import oxigrad as ox
import release_files
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


def test_addresses_of_the_project_are_in_one_place() -> None:
    text = absolute_links.PROJECT.read_text()
    urls = tomllib.loads(absolute_links.addressed(text, "https://example.org/name"))["project"]["urls"]
    assert urls["Source"] == "https://example.org/name" and len(urls) == 4
    assert all(url.startswith("https://example.org/name") for url in urls.values())
    root = Path(__file__).parents[1]
    places = [*root.glob("*.md"), *root.glob("*.toml"), *root.glob("docs/**/*.md"), *root.glob("python/**/*.py")]
    assert [file.name for file in places if absolute_links.PLACEHOLDER in file.read_text()] == ["pyproject.toml"]


def test_the_version_stands_in_one_place() -> None:
    root = Path(__file__).parents[1]
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert "version" not in project and "version" in project["dynamic"]
    assert ox.__version__ == version
    assert not re.search(r"^version:", (root / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"## [{version}]" in (root / "CHANGELOG.md").read_text()


def test_classifiers_name_the_versions_of_python_that_are_supported() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert f">={named[0]}" == project["requires-python"]


def test_the_notes_of_a_release_are_the_section_of_its_version(tmp_path: Path) -> None:
    text = "# Changelog\n\n## [0.2.0] - 2027\n\nNew.\n\n## [0.1.0] - 2026\n\nFirst.\n\n* a\n"
    assert release_files.notes(text, "0.1.0") == "First.\n\n* a\n" and release_files.notes(text, "0.2.0") == "New.\n"
    with pytest.raises(ValueError, match=r"0\.3\.0"):
        release_files.notes(text, "0.3.0")


def test_a_release_has_checksums_and_the_sbom(wheels: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    folder.mkdir()
    for at, wheel in enumerate(wheels[:1]):
        (folder / f"oxigrad-0-{at}-any.whl").write_bytes(wheel.read_bytes())
    (folder / "oxigrad-0.tar.gz").write_bytes(b"source")
    files = release_files.complete(folder, "notes\n")
    names = {file.name for file in files}
    assert {"NOTES.md", "SHA256SUMS", "oxigrad-0.tar.gz"} <= names and any(name.endswith(".cdx.json") for name in names)
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_the_workspace_has_the_members_of_the_source_distribution_alone() -> None:
    """maturin leaves out the others, and the lock file would then be that of another workspace, which ``--locked`` refuses."""
    root = Path(__file__).parents[1]
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    module = Path(tomllib.loads((root / "pyproject.toml").read_text())["tool"]["maturin"]["manifest-path"])
    dependencies = tomllib.loads((root / module).read_text())["dependencies"]
    paths = {name: of["path"] for name, of in workspace["dependencies"].items() if "path" in of}
    assert {*workspace["members"]} == {str(module.parent), *(paths[name] for name in dependencies if name in paths)}
