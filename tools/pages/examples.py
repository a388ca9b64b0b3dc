"""Examples of the reference: the table docs/reference/examples.txt as programs, which are run when the pages are built."""

import ast
import contextlib
import dataclasses
import io
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad.optim.table.row import TABLE
from pages.programs import NEEDED_BY, is_here

FILE = Path(__file__).parent.parent.parent / "docs" / "reference" / "examples.txt"
_IMPORTS = {
    "np": "import numpy as np",
    "ox": "import oxigrad as ox",
    **{
        name: f"from oxigrad import {name}"
        for name in ("cuda", "distributed", "extend", "optim", "schedules", "tree", "xp")
    },
}
_LINE = re.compile(r"(?:(?P<name>[\w.]+(?:\{[\w* ]+\})?): )?(?P<program>.+?)(?: \| (?P<loss>.+))?$")
_CALL = re.compile(r"\b(?:xp|ox|optim|tree|distributed|cuda|extend)\.[\w.]*(?:\{[\w* ]+\})?")


@dataclasses.dataclass(frozen=True)
class Example:
    """A program whose last expression is shown, and the ``loss`` whose gradient follows: "" for the sum of the result, "-" for none."""

    name: str
    program: str
    loss: str
    #: The texts of the values that programs use, by name.
    values: Mapping[str, str]

    def missing(self) -> set[str]:
        """The libraries that the program imports and that are not installed."""
        imports = (node for node in ast.walk(ast.parse(self.program)) if isinstance(node, ast.Import))
        names = {alias.name for node in imports for alias in node.names}
        libraries = {name.partition(".")[0] for name in names}.union(*(NEEDED_BY.get(name, set()) for name in names))
        return {name for name in libraries if not is_here(name)}

    def text(self) -> str:
        """The program with prompts, and what it prints where its libraries are installed; raises its error if it is not that of its name."""
        lines = [ast.get_source_segment(self.program, node) or "" for node in ast.parse(self.program).body]
        names = dict.fromkeys(node.id for node in _names(self.program))
        before = [*(f"{name} = {self.values[name]}" for name in names if name in self.values), *lines[:-1]]
        if self.missing():
            return _with_imports("".join(map(_prompt, [*before, lines[-1]])))
        scope: dict[str, Any] = {}
        for line in _IMPORTS.values():
            exec(line, scope)  # noqa: S102
        text = "".join(_run(line, scope) for line in before)
        shown, result = _shown(lines[-1], scope, self.name.rpartition(".")[2])
        text += shown
        if (loss := self._loss(lines[-1], result)) and (by := self._by(lines[-1], scope)):
            text += _shown(f"ox.grad(lambda {by}: {loss})({by})", scope)[0]
        return _with_imports(text)

    def _loss(self, expression: str, result: Any) -> str:
        """The loss of the gradient that is shown; empty for none."""
        if self.loss or not self.name.startswith("xp."):
            return "" if self.loss == "-" else self.loss
        if not isinstance(result, (np.ndarray, np.floating, float)) or np.asarray(result).dtype.kind != "f":
            return ""
        return expression if np.ndim(result) == 0 else f"xp.sum({expression})"

    def _by(self, expression: str, scope: Mapping[str, Any]) -> str:
        """The first floating-point value of the table that an expression uses."""
        used = sorted(_names(expression), key=lambda node: (node.lineno, node.col_offset))
        of_table = (node.id for node in used if node.id in self.values and f"{node.id} = " not in self.program)
        return next((name for name in of_table if getattr(scope[name], "dtype", None) == np.float64), "")


def _with_imports(text: str) -> str:
    """A text with prompts after the imports of the names that it reads attributes of."""
    return "".join(_prompt(line) for name, line in _IMPORTS.items() if re.search(rf"\b(?<!\.){name}\.", text)) + text


def _names(text: str) -> list[ast.Name]:
    return [] if text in ("", "-") else [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]


def _prompt(line: str) -> str:
    return ">>> " + line.replace("\n", "\n... ") + "\n"


def _run(line: str, scope: dict[str, Any]) -> str:
    """A statement before the last, with its result if it is an expression."""
    if isinstance(ast.parse(line).body[0], ast.Expr):
        return _shown(line, scope)[0]
    exec(line, scope)  # noqa: S102
    return _prompt(line)


def _shown(expression: str, scope: dict[str, Any], error: str = "") -> tuple[str, Any]:
    """An expression with its result as an interpreter shows them, and the result; an exception of the class named ``error`` is shown."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            result = eval(expression, scope)  # noqa: S307
    except Exception as raised:
        if type(raised).__name__ != error:
            raise
        trace = "Traceback (most recent call last):\n    ...\n"
        return f"{_prompt(expression)}{trace}{type(raised).__module__}.{error}: {raised}\n", None
    shown = "" if result is None else f"{result!r}\n"
    return _prompt(expression) + printed.getvalue() + shown, result


def read(text: str) -> dict[str, list[Example]]:
    """The examples of a table by name, below the package: ``xp.sin``. The n-th ``{*}`` is for names with fewer than n lines before it."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    values = dict(line.split(" = ", 1) for line in lines if re.match(r"\w+ = ", line))
    programs = [line for line in lines if not re.match(r"\w+ = ", line)]
    examples: dict[str, list[Example]] = {}
    ranks: Counter[str] = Counter()
    for line in programs:
        family = line.partition("{*}")[0]
        ranks[family] += 1
        for example in _of_line(line, values):
            known = examples.setdefault(example.name, [])
            if "{*}" not in line or len(known) < ranks[family]:
                known.append(example)
    return examples


def _of_line(line: str, values: Mapping[str, str]) -> list[Example]:
    """The examples of a line: one, or one for each name in braces, which ``{}`` stands for in the program."""
    parts = _LINE.match(line)
    program, loss = (parts["program"], parts["loss"] or "") if parts else ("", "")
    name = (parts and parts["name"]) or next(iter(_CALL.findall(program)), "")
    if not name:
        raise ValueError(f"{line}: expected a name in front, as of xp.sin")
    name = name.removeprefix("oxigrad.").removeprefix("ox.")
    if name.startswith("xp.stats.") and name.count(".") == 3:
        name = name.rpartition(".")[0]  # of the distribution, whose method is called
    if (braces := re.search(r"\{([\w* ]+)\}", name)) is None:
        return [Example(name, program, loss, values)]
    names = _optimizers(name.partition(".")[0]) if braces[1] == "*" else braces[1].split()
    return [
        Example(
            name.replace(braces[0], each),
            program.replace(braces[0], each).replace("{}", each),
            loss.replace("{}", each),
            values,
        )
        for each in names
    ]


# What defines an optimizer in the stub of a module.
_DEFINITIONS = {"torch": r"^class (\w+)\(_Stepping", "keras": r"^class (\w+)\(_Optimizer", "optax": r"^def (\w+)\("}


def _optimizers(module: str) -> list[str]:
    """The names of the optimizers in a module."""
    if module == "optim":
        return [*TABLE]
    stub = (Path(ox.__file__).parent / module / "__init__.pyi").read_text()
    return re.findall(_DEFINITIONS[module], stub, re.MULTILINE)


def table() -> dict[str, list[Example]]:
    """The examples of the reference."""
    return read(FILE.read_text())


def rubric(examples: Sequence[Example]) -> str:
    """Examples as a part of a page."""
    blocks = (f".. code-block:: pycon\n\n{textwrap.indent(each.text(), '   ')}" for each in examples)
    return "\n\n".join((f".. rubric:: Example{'s' * (len(examples) > 1)}", *blocks))
