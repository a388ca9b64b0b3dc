"""Prints the table of the house: ``python tools/house.py`` measures the sources and the calls, ``--combinations`` the options of a step too.

The combinations take a minute with PyTorch and JAX; columns of libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import functools
import gc
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "oxigrad"
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tests" / name) for name in ("tables", "emulators")]

import numpy as np  # noqa: E402

import oxigrad as ox  # noqa: E402
from imports import python, sibling_pairs  # noqa: E402
from oxigrad import distributed, optim, xp  # noqa: E402
from python_frames import frames  # noqa: E402

WIDTH = 120


# --- sources -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Size:
    """The size of a part of the package: files, lines of several kinds, classes, and names `Any`."""

    files: int = 0
    lines: int = 0
    code: int = 0
    classes: int = 0
    any: int = 0
    private_reads: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))

    @property
    def any_per_thousand(self) -> float:
        """The names `Any` for each 1,000 lines."""
        return 1000 * self.any / max(self.lines, 1)


def python_files(*parts: str) -> list[Path]:
    """The files of Python of a part of the package."""
    place = PACKAGE.joinpath(*parts)
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def size(path: Path) -> Size:
    """The size of a file."""
    text, nodes = path.read_text(encoding="utf-8"), [*ast.walk(parsed(path))]
    return Size(
        files=1,
        lines=text.count("\n"),
        code=_lines_of_code(text, nodes),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        any=sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes),
        private_reads=sum(map(is_private_read, nodes)),
    )


def _lines_of_code(text: str, nodes: list[ast.AST]) -> int:
    """The number of lines that are neither blank, nor a comment, nor of a docstring."""
    texts: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(number not in texts and line.strip()[:1] not in ("", "#") for number, line in lines)


def sizes(*parts: str) -> Size:
    """The size of a part of the package."""
    return sum(map(size, python_files(*parts)), start=Size())


def long_lines(*parts: str) -> list[str]:
    """The lines of Python in some folders that have more than 120 columns."""
    files = [file for part in parts for file in (ROOT / part).rglob("*.py")]
    return [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted(files)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH
    ]


# Names with a leading underscore that the documentation of Python has: of named tuples, `os` and `sys`.
DOCUMENTED = {"_asdict", "_current_frames", "_exit", "_fields", "_getframe", "_make", "_replace", "_repr_html_"}


def is_private_read(node: ast.AST) -> bool:
    """Whether a node reads a private attribute of another object: not of ``self``, ``cls`` or ``super()``."""
    if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
        return False
    if node.attr in DOCUMENTED:
        return False
    if isinstance(node.value, ast.Name):
        return node.value.id not in ("self", "cls", "oxigrad", "xp", "ox")
    called = node.value.func if isinstance(node.value, ast.Call) else None
    return not (isinstance(called, ast.Name) and called.id == "super")


def protocols() -> list[str]:
    """The classes that are a `typing.Protocol`."""
    return [
        f"{file.relative_to(PACKAGE)}: {node.name}"
        for file in python_files()
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
    ]


# --- calls -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class CallPath:
    """The Python functions of the package that a call runs, and the files that they are in."""

    frames: int
    files: int

    def __str__(self) -> str:
        return f"{self.frames} / {self.files}"


def path_of(call: Callable[[], Any], warm: int = 3) -> CallPath:
    """The path of a call, after some calls."""
    for _ in range(warm):
        call()
    was_enabled = gc.isenabled()
    gc.disable()  # or finalizers of other objects would run in the call
    try:
        own = [name for name in frames(call) if name.partition(".")[0] == "oxigrad"]
    finally:
        if was_enabled:
            gc.enable()
    return CallPath(len(own), len({name.rpartition(".")[0] for name in own}))


def _model() -> dict[str, Any]:
    return {"w": np.ones(5), "b": np.ones(3)}


def _gradients() -> dict[str, Any]:
    return {"w": np.full(5, 0.1), "b": np.full(3, 0.1)}


def _loss(model: Any) -> Any:
    return xp.sum(model["w"] ** 2) + xp.sum(model["b"] ** 2)


def _steady(opt: Any) -> CallPath:
    model, gradients = _model(), _gradients()
    return path_of(lambda: opt.update(model, gradients))


def _applied() -> CallPath:
    opt, model, gradients = optim.Adam(1e-3), _model(), _gradients()
    state = opt.init(model)
    return path_of(lambda: opt.apply(model, gradients, state))


def _minimized(**options: Any) -> CallPath:
    opt, model = optim.Adam(1e-3), _model()
    return path_of(lambda: opt.minimize(_loss, model, **options))


def _of_matrix() -> CallPath:
    opt, model, gradients = optim.Muon(1e-3), {"w": np.ones((5, 4))}, {"w": np.ones((5, 4))}
    return path_of(lambda: opt.update(model, gradients))


def _second_of_two(make: Callable[[], Any]) -> CallPath:
    """The path of an update on the second of two workers."""
    found: list[CallPath] = []

    def worker(comm: Any) -> None:
        opt, model, gradients = make(), _model(), _gradients()
        for _ in range(3):
            model = opt.update(model, gradients)
        if comm.rank == 1:
            found.append(path_of(lambda: opt.update(model, gradients), warm=0))
        else:
            opt.update(model, gradients)
        opt.leave(model)

    distributed.run(worker, workers=2)
    return found[0]


def _tensors(name: str, *, is_first: bool = False, **options: Any) -> CallPath:
    """The path of a step of `oxigrad.torch`, the backward included where the step is in it."""
    import torch

    from oxigrad import torch as ours

    def made() -> tuple[Any, Any]:
        p = torch.nn.Parameter(torch.ones(5, 4))
        p.grad = torch.full((5, 4), 0.1)
        return p, getattr(ours, name)([p], lr=1e-3, **options)

    if is_first:
        return path_of(lambda: made()[1].step())
    p, opt = made()

    def in_backward() -> None:
        (p * 2).sum().backward()
        opt.step()

    return path_of(in_backward if "in_backward" in options else opt.step)


def _pytree() -> CallPath:
    import jax.numpy as jnp

    from oxigrad import optax as ours

    transformation, params, gradients = ours.adamw(1e-3), {"w": jnp.ones(5)}, {"w": jnp.ones(5)}
    state = transformation.init(params)
    return path_of(lambda: transformation.update(gradients, state, params))


def _first(make: Callable[[], Any]) -> CallPath:
    return path_of(lambda: make().update(_model(), _gradients()))


# The calls by what they are; the last names the libraries that one needs.
CALLS: dict[str, tuple[Callable[[], CallPath], tuple[str, ...]]] = {
    "Adam": (lambda: _steady(optim.Adam(1e-3)), ()),
    "Adam with a schedule": (lambda: _steady(optim.Adam(ox.schedules.cosine(1e-3, 100))), ()),
    "chain of three": (
        lambda: _steady(optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(1e-3), optim.EMA(0.99))),
        (),
    ),
    "Muon": (_of_matrix, ()),
    "Adam.apply": (_applied, ()),
    "Adam.minimize": (_minimized, ()),
    "Adam.minimize, in the backward": (functools.partial(_minimized, in_backward=True), ()),
    "Adam, construction and first step": (lambda: _first(lambda: optim.Adam(1e-3)), ()),
    "LargeBatch of one worker": (lambda: _steady(distributed.LargeBatch(optim.SGD(0.5))), ()),
    "DataParallel of one worker": (lambda: _steady(distributed.DataParallel(optim.SGD(0.5))), ()),
    "DataParallel, one of two workers": (lambda: _second_of_two(lambda: distributed.DataParallel(optim.SGD(0.5))), ()),
    "SyncReplicas, one of two workers": (
        lambda: _second_of_two(lambda: distributed.SyncReplicas(optim.SGD(0.5), replicas_to_aggregate=2)),
        (),
    ),
    "torch AdamW": (functools.partial(_tensors, "AdamW"), ("torch",)),
    "torch AdamW, in the backward": (functools.partial(_tensors, "AdamW", in_backward=True), ("torch",)),
    "torch AdamW, construction and first step": (functools.partial(_tensors, "AdamW", is_first=True), ("torch",)),
    "torch Muon": (functools.partial(_tensors, "Muon"), ("torch",)),
    "optax adamw, eager": (_pytree, ("jax", "optax")),
}


def calls() -> dict[str, CallPath]:
    """The paths of the calls whose libraries are installed."""
    return {
        name: measured()
        for name, (measured, libraries) in CALLS.items()
        if all(importlib.util.find_spec(library) for library in libraries)
    }


# --- the table ---------------------------------------------------------------------------------------------------------

PARTS = (*"step torch optax optim distributed ops autodiff recording rules cuda extend".split(), "optim/settings")
MARKS = {"ok": "=", "other bits": "~", "no effect": "o", "refused": "x", "-": "."}


def _of_sources() -> Iterator[str]:
    whole = sizes()
    yield f"{'':18}{'files':>7}{'lines':>8}{'code':>8}{'classes':>9}{'Any/1,000':>11}{'private reads':>15}"
    for name, found in [("oxigrad", whole), *((part, sizes(*part.split("/"))) for part in PARTS)]:
        yield (
            f"{name:18}{found.files:7}{found.lines:8}{found.code:8}{found.classes:9}"
            f"{found.any_per_thousand:11.1f}{found.private_reads:15}"
        )
    pairs = sibling_pairs(python())
    beside = len(long_lines("tests", "tools", "benches", "examples"))
    yield f"lines over {WIDTH} columns: {len(long_lines('python'))} of the package, {beside} of tests, tools and programs"
    yield f"protocols: {len(protocols())}"
    yield f"folders of one folder that import each other: {len(pairs)} pairs"
    yield from (f"  {a} and {b}: {', '.join(edges)}" for (a, b), edges in pairs.items())


def _of_calls() -> Iterator[str]:
    yield f"{'frames / files of a call':44}"
    yield from (f"{name:44}{path}" for name, path in calls().items())


def _of_combinations() -> Iterator[str]:
    import ways

    found = {(option, way): cell for option, way, cell in ways.cells()}
    counts = collections.Counter(cell.mark for cell in found.values())
    yield f"{len(found)} combinations: " + ", ".join(
        f"{count} {mark} ({MARKS[mark]})" for mark, count in counts.items()
    )
    yield "an accepted one (=) has the bits of Optimizer.update, and differs from the same way without the option"
    for number, option in enumerate(ways.OPTIONS):
        yield f"{' ' * 24}{'  ' * number}{option}"
    for way in ways.WAYS:
        yield f"{way:24}{' '.join(MARKS[found[option, way].mark] for option in ways.OPTIONS)}"
    for (option, way), cell in found.items():
        if cell.mark not in ("ok", "-"):
            yield f"  {way}, {option}: {cell.mark}{f' by {cell.reason}' if cell.reason else ''}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--combinations", action="store_true", help="run the combinations of options and ways too")
    warnings.simplefilter("ignore")
    parts = [_of_sources, _of_calls, *[_of_combinations] * parser.parse_args().combinations]
    for part in parts:
        print("\n".join([*part(), ""]))


if __name__ == "__main__":
    main()
