"""Wheels of two revisions, unpacked into folders of their own, so that two processes can import one each."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The sources of a wheel.
SOURCES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "rust", "python")


def git(*arguments: str, root: Path = ROOT) -> str:
    """The output of git; raises `SystemExit` with its message if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit(revision: str, root: Path = ROOT) -> str:
    """The full hash of a revision."""
    return git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}", root=root)


def is_checked_out(revision: str, root: Path = ROOT) -> bool:
    """Whether the sources of the wheel in the checkout, uncommitted changes included, are those of a revision."""
    changed = git("diff", "--name-only", commit(revision, root), "--", *SOURCES, root=root)
    untracked = git("ls-files", "--others", "--exclude-standard", "--", *SOURCES, root=root)
    return not changed and not untracked


def extract(revision: str, folder: Path, root: Path = ROOT) -> None:
    """Writes the files of a revision into a new folder, which has its name only once they are all there."""
    partial = folder.with_name(folder.name + ".partial")
    for old in (partial, folder):
        shutil.rmtree(old, ignore_errors=True)
    partial.mkdir(parents=True)
    archive = partial / "archive.tar"
    git("archive", f"--output={archive}", commit(revision, root), root=root)
    with tarfile.open(archive) as files:
        files.extractall(partial, filter="data")
    archive.unlink()
    partial.rename(folder)


def of_revision(revision: str, root: Path = ROOT, options: Sequence[str] = ()) -> Path:
    """The folder with the package of a revision, built from its files where there is none yet."""
    place = root / "target" / "compare" / commit(revision, root)[:12]
    if not (place / "package").is_dir():
        extract(revision, place / "source", root)
        _build(place / "source", place, options)
        shutil.rmtree(place / "source")  # with what cargo left in it
    return place / "package"


def of_checkout(root: Path = ROOT, options: Sequence[str] = ()) -> Path:
    """The folder with the package of the checkout as it is now, always built anew."""
    return _build(root, root / "target" / "compare" / "checkout", options)


def _build(source: Path, place: Path, options: Sequence[str]) -> Path:
    """Builds the release wheel of a source tree, below its own ``target``, and unpacks it to ``place / "package"``."""
    print(f"building the wheel of {source} ...", file=sys.stderr, flush=True)
    wheels, partial, package = place / "wheels", place / "partial", place / "package"
    for folder in (wheels, partial, package):
        shutil.rmtree(folder, ignore_errors=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        *options,
        "--wheel-dir",
        str(wheels),
        str(source),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    subprocess.run(pip, check=True, env=environment)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial)  # noqa: S202 - pip has just built it
    partial.rename(package)  # only a package that is whole has the name
    return package
