"""Completes a release in dist: ``python tools/release_files.py`` adds the SBOM of the wheels, the notes and the checksums.

The wheel and the source distribution are there already. The notes are the section of CHANGELOG.md for the version.
"""

import hashlib
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(changelog: str, version: str) -> str:
    """The section of a version in the changelog; raises `ValueError` where there is none."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no section [{version}]")
    return found[1].strip() + "\n"


def boms(wheel: Path) -> dict[str, bytes]:
    """The SBOMs in a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "/sboms/" in name}


def complete(folder: Path, text: str) -> list[Path]:
    """Writes SBOMs, notes and checksums beside the wheels; returns all files of the release."""
    for wheel in sorted(folder.glob("*.whl")):
        for name, content in boms(wheel).items():
            plain = Path(name).name.removesuffix(".json").removesuffix(".cdx").removesuffix(".cyclonedx")
            (folder / f"{wheel.stem}-{plain}.cdx.json").write_bytes(content)
    (folder / "NOTES.md").write_text(text)
    files = sorted(file for file in folder.iterdir() if file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    return [*files, folder / "SHA256SUMS"]


def main() -> int:
    """Completes dist; returns the exit status."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    text = notes((ROOT / "CHANGELOG.md").read_text(), version)
    for file in complete(ROOT / "dist", text):
        sys.stdout.write(f"{file.stat().st_size:12,} {file.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
