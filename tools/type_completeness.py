"""Prints each public symbol whose type type checkers do not know: ``python tools/type_completeness.py``; its status is 1 where there is one.

These are the symbols that ``basedpyright --verifytypes oxigrad --ignoreexternal`` counts. The base classes of optax and Keras are declared here,
since these declare no types. Modules for PyTorch are left out where it is not installed.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent.parent / "python"
# Packages whose base classes are those of a library, by the library.
_OF_LIBRARIES = {"torch": "oxigrad.torch"}
_STUBS = {
    "optax-stubs/__init__.pyi": """from typing import Any, NamedTuple
class GradientTransformation(NamedTuple):
    init: Any
    update: Any
class GradientTransformationExtraArgs(GradientTransformation): ...
""",
    "keras-stubs/__init__.pyi": "from keras import optimizers as optimizers",
    "keras-stubs/optimizers.pyi": "class Optimizer: ...",
}


def verified(package: str, sources: Path) -> dict[str, Any]:
    """The report of basedpyright on the types of a package in the folder ``sources``."""
    with tempfile.TemporaryDirectory() as stubs:
        for name, text in _STUBS.items():
            (Path(stubs) / name).parent.mkdir(exist_ok=True)
            (Path(stubs) / name).write_text(text)
        # It looks for libraries in the first Python on the path.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(sources), stubs]), "PATH": path}
        command = [sys.executable, "-m", "basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=stubs)  # noqa: S603
    found = json.loads(done.stdout)["typeCompleteness"]
    if not any(found["exportedSymbolCounts"].values()):
        raise RuntimeError(f"basedpyright finds no symbols of {package} in {sources}: {done.stderr}")
    return found


def public(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The public symbols of a report, without those of libraries that are not installed."""
    absent = tuple(f"{name}." for library, name in _OF_LIBRARIES.items() if not importlib.util.find_spec(library))
    return [each for each in report["symbols"] if each["isExported"] and not each["name"].startswith(absent)]


def unknown(report: dict[str, Any]) -> dict[str, str]:
    """The public symbols of a report whose types are not known, each with what basedpyright says of it."""
    return {
        symbol["name"]: "; ".join(" ".join(each["message"].split()) for each in symbol["diagnostics"])
        for symbol in public(report)
        if not symbol["isTypeKnown"]
    }


def main() -> int:
    """Prints the symbols and their number; returns the exit status."""
    report = verified("oxigrad", SOURCES)
    lost = unknown(report)
    for name, reason in lost.items():
        sys.stderr.write(f"{name}: {reason}\n")
    number = len(public(report))
    sys.stdout.write(f"{number - len(lost)} of {number} public symbols have types that are known\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
