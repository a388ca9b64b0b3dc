"""Runs the Python blocks of a page as tests/test_docs.py does, and notes time, memory and pictures.

    python tools/pages/programs.py docs/tutorials/gradients.md output/pictures

Prints a line of JSON: seconds, megabytes at the peak, the pictures that each block has drawn with matplotlib.pyplot, and what
failed.
"""

import ast
import doctest
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")  # pictures are saved, and shown on no screen
os.environ.setdefault("KERAS_BACKEND", "jax")  # whose default may not be installed

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# Modules of the package that need another library, and libraries that come with NumPy or with this tool.
NEEDED_BY = {
    "oxigrad.torch": {"torch"},
    "oxigrad.interop.torch": {"torch"},
    "oxigrad.keras": {"keras"},
    "oxigrad.optax": {"jax", "optax"},
    "oxigrad.interop.jax": {"jax"},
    "oxigrad.interop.autograd": {"autograd"},
    "oxigrad.scipy": {"scipy"},
}


def blocks(text: str) -> list[str]:
    """The Python blocks of a page."""
    return BLOCK.findall(text)


def is_run(block: str) -> bool:
    """Whether a block has prompts: others show what is written in a program of another library."""
    return ">>> " in block


def needed(text: str) -> set[str]:
    """The libraries that the Python blocks of a page import, besides the standard library, NumPy and oxigrad."""
    names: set[str] = set()
    for block in filter(is_run, blocks(text)):
        names |= {f"oxigrad.{name}" for name in re.findall(r"\box\.(\w+)", block)}
        for node in ast.walk(ast.parse(program(block))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    found = set().union(*(libraries for name, libraries in NEEDED_BY.items() if name in names))
    tops = {name.partition(".")[0] for name in names} - {"oxigrad", "numpy"}
    return found | (tops - {*sys.stdlib_module_names})


def is_here(library: str) -> bool:
    """Whether a library is installed."""
    return importlib.util.find_spec(library) is not None


def run(text: str, name: str, folder: Path) -> dict[str, Any]:
    """Runs the blocks of a page, one after the other; see the module."""
    report, scope, pictures = io.StringIO(), {"__name__": "__main__"}, []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    begin = time.perf_counter()
    for number, block in enumerate(blocks(text)):
        examples = doctest.DocTestParser().get_doctest(block, scope, f"{name}, block {number}", name, 0)
        examples.globs = scope
        runner.run(examples, out=report.write, clear_globs=False)
        pictures.append(saved(folder / f"{Path(name).stem}-{number}"))
    return {
        "seconds": time.perf_counter() - begin,
        "megabytes": peak(),
        "pictures": pictures,
        "failures": report.getvalue(),
    }


def saved(stem: Path) -> list[str]:
    """Saves the pictures that pyplot holds, and closes them; returns their names."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    pyplot = sys.modules["matplotlib.pyplot"]
    names = []
    for number in pyplot.get_fignums():
        names.append(f"{stem.name}-{number}.svg")
        stem.parent.mkdir(parents=True, exist_ok=True)
        pyplot.figure(number).savefig(stem.with_name(names[-1]), transparent=False)
    pyplot.close("all")
    return names


def peak() -> float:
    """The most memory that this process had, in megabytes. The count of Linux's getrusage includes the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s*(\d+)", status.read_text())[0]) / 2**10
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run_apart(page: Path, name: str, folder: Path) -> dict[str, Any]:
    """Runs a page in a process of its own; raises an error that says what failed."""
    command = [sys.executable, "-P", __file__, str(page), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found["failures"]:
        raise RuntimeError(f"{name}:\n{found['failures']}")
    return found


# --- a page with its pictures, and as a notebook ---------------------------------------------------------------------------


def with_pictures(text: str, pictures: list[list[str]], folder: str) -> str:
    """The text of a page with the pictures of each block after it."""
    drawn = iter(pictures)

    def shown(block: re.Match[str]) -> str:
        return block[0] + "".join(f"\n![What the program above draws]({folder}/{name})\n" for name in next(drawn))

    return BLOCK.sub(shown, text)


def notebook(text: str) -> dict[str, Any]:
    """A page as a notebook of Jupyter: prose, and programs without what they print."""
    cells, at = [], 0
    for block in BLOCK.finditer(text):
        cells += [("markdown", text[at : block.start()]), ("code", program(block[1]))]
        at = block.end()
    cells.append(("markdown", text[at:]))
    return {
        "cells": [cell(kind, source.strip(), number) for number, (kind, source) in enumerate(cells) if source.strip()],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cell(kind: str, source: str, number: int) -> dict[str, Any]:
    """A cell of a notebook."""
    rest = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source, **rest}


def program(block: str) -> str:
    """The statements of a block: what follows prompts."""
    if not is_run(block):
        return block
    return "\n".join(line[4:] for line in block.splitlines() if line.startswith((">>>", "...")))


if __name__ == "__main__":
    page = Path(sys.argv[1])
    print(json.dumps(run(page.read_text(), str(page), Path(sys.argv[2]))))
