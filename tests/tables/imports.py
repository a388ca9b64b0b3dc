"""The imports between the files of a package of Python."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Graph = dict[str, set[str]]
PACKAGE = Path(__file__).parents[2] / "python" / "oxigrad"


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of files that import each other, by way of others or at once (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(file: str) -> None:
        order[file] = low[file] = len(order)
        path.append(file)
        for other in sorted(graph.get(file, ())):
            if other not in order:
                visit(other)
            if other in path:
                low[file] = min(low[file], low[other])
        if low[file] == order[file]:
            members = path[path.index(file) :]
            del path[path.index(file) :]
            if len(members) > 1:
                found.append(sorted(members))

    for file in sorted(graph):
        if file not in order:
            visit(file)
    return found


def python_graph(root: Path) -> Graph:
    """The modules of a package and those that each imports; a package is its ``__init__``."""
    files = {file.relative_to(root).with_suffix("").as_posix(): file for file in root.rglob("*.py")}
    return {name: set(_python_imports(root.name, name, file, files)) - {name} for name, file in files.items()}


def _python_imports(package: str, name: str, file: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            paths = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level:
                parents = [package, *name.split("/")]
                module = parents[: len(parents) - node.level] + module
            paths = [[*module, alias.name] for alias in node.names]
        else:
            continue
        yield from (_python_file(path[1:], files) for path in paths if path[0] == package)


def _python_file(path: list[str], files: Mapping[str, Path]) -> str:
    if path[:1] == ["_core"]:
        return "_core"
    for end in range(len(path), -1, -1):
        for name in ("/".join(path[:end]), "/".join([*path[:end], "__init__"])):
            if name in files:
                return name
    raise AssertionError(f"no module for {path}")


@functools.cache
def python() -> Graph:
    """The modules of the package and those that each imports."""
    return python_graph(PACKAGE)


def sibling_pairs(graph: Graph) -> dict[tuple[str, str], list[str]]:
    """The folders of one folder that import each other, with the imports of the pair."""
    found: dict[tuple[str, str], list[str]] = {}
    for file, others in graph.items():
        for other in others:
            for ours, theirs in itertools.product(_folders(file), _folders(other)):
                if ours != theirs and ours.rpartition("/")[0] == theirs.rpartition("/")[0]:
                    found.setdefault((ours, theirs), []).append(f"{file} -> {other}")
    return {(a, b): [*edges, *found[b, a]] for (a, b), edges in found.items() if a < b and (b, a) in found}


def _folders(file: str) -> list[str]:
    """The folders that a file is in."""
    parts = file.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
