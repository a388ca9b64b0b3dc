"""Checks a release: ``python tools/release_check.py [PYTHON ...]`` installs the files of dist, and runs the demo with each.

Every CPython of `VERSIONS`, or every interpreter that is named, installs the wheel in an empty environment, and the source
distribution in another one. A version that is not on this machine is printed as "not run". The exit status is 1 if a file
fails.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")


def interpreter(version: str) -> str | None:
    """The interpreter of a version: on the path, or of pyenv."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version.rstrip('t')}.*/bin/python{version}"))
    tried = [shutil.which(f"python{version}"), *map(str, pyenv)]
    starts = (
        each
        for each in tried
        if each and not subprocess.run([each, "-c", ""], capture_output=True, check=False).returncode
    )
    return next(starts, None)


def commands(python: str, file: Path, requirements: list[str]) -> Iterator[list[str]]:
    """The commands that install a file in the environment of an interpreter, and use it."""
    yield [python, "-m", "pip", "install", "--quiet", str(file), *requirements]
    yield [python, "-I", "-m", "oxigrad", "doctor"]
    yield [python, "-I", str(ROOT / "examples" / "digits.py")]


def fault(base: str, file: Path) -> str:
    """What fails with a file of the release in an empty environment of an interpreter; empty if nothing does."""
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["demo"]
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["CARGO_TARGET_DIR"] = str(ROOT / "target" / "release_check")  # later builds take what is compiled there
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([base, "-m", "venv", f"{folder}/environment"], check=True)
        for command in commands(f"{folder}/environment/bin/python", file, requirements):
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return ""


def main() -> int:
    """Prints a line for each interpreter and file; returns the exit status."""
    files = sorted([*(ROOT / "dist").glob("oxigrad-*.whl"), *(ROOT / "dist").glob("oxigrad-*.tar.gz")])
    if not files:
        sys.stderr.write(
            "release_check: dist has neither a wheel nor a source distribution: run `make release` first\n"
        )
        return 1
    interpreters = {each: each for each in sys.argv[1:]} or {version: interpreter(version) for version in VERSIONS}
    status = 0
    for name, base in interpreters.items():
        for file in files:
            text = fault(base, file) if base else ""
            status |= bool(text)
            verdict = (
                "not run: no such CPython is here" if base is None else f"FAILED\n{text}" if text else "runs the demo"
            )
            sys.stdout.write(f"CPython {name}, {file.name}: {verdict}\n")
            sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
