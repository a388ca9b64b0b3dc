"""The docstrings in the stub of the compiled module, and the width of lines in all stubs."""

import ast
import inspect
import io
import itertools
import textwrap
import tokenize
from pathlib import Path
from typing import Any

import oxigrad
from oxigrad import _core

_WIDTH = 120


def documented(text: str) -> str:
    """The stub of the compiled module, which is written by hand, with the summaries of the docstrings of its public names."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            value = getattr(_core, node.name)
            if node.name in oxigrad.__all__ or value.__module__ != "oxigrad._core":
                _document(lines, node, value)
    return "\n".join(lines) + "\n"


def methods_of_arrays() -> list[str]:
    """The methods and attributes of `Variable` in the stub that its ``__getattr__`` finds."""
    text = Path(_core.__file__).with_name("_core.pyi").read_text()
    (kind,) = (node for node in ast.parse(text).body if getattr(node, "name", "") == "Variable")
    names = [node.name for node in ast.walk(kind) if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name[0] != "_" and name not in vars(_core.Variable)]


def _document(lines: list[str], node: ast.FunctionDef | ast.ClassDef, value: Any) -> None:
    """Replaces the docstring of a definition, and those of the methods of a class, in the lines of a stub."""
    for each in reversed(node.body if isinstance(node, ast.ClassDef) else []):
        if isinstance(each, ast.FunctionDef) and each.name[0] != "_" and each.name in vars(value):
            _document(lines, each, vars(value).get(each.name))
    first = node.body[0]
    has_docstring = ast.get_docstring(node) is not None
    if has_docstring:
        above = first.lineno - 1
        del lines[above : first.end_lineno]
        if isinstance(node, ast.ClassDef) and not lines[above].strip():
            del lines[above]
    elif isinstance(node, ast.ClassDef):
        above = node.lineno
    else:
        above = first.lineno
        lines[above - 1] = lines[above - 1].removesuffix(" ...")
    if inspect.getdoc(value):
        about = textwrap.indent(summary(value, node.col_offset), " " * node.col_offset).splitlines()
        lines[above:above] = [*about, ""] if isinstance(node, ast.ClassDef) else about
    elif isinstance(node, ast.FunctionDef):
        lines[above - 1] += " ..."


def summary(value: Any, indent: int = 0) -> str:
    """The first paragraph of the docstring of a value, as a docstring within a definition of this indent."""
    return quoted((inspect.getdoc(value) or "").partition("\n\n")[0], indent)


def described(value: Any) -> str:
    """The first paragraph of a docstring and what it says of hyperparameters, as a docstring within a definition."""
    first, *others = (inspect.getdoc(value) or "").split("\n\n")
    return quoted("\n\n".join([first, *(each for each in others if each.startswith("Hyperparameters:"))]))


def quoted(text: str, indent: int = 0) -> str:
    """A text as a docstring within a definition, which is indented later."""
    if "\n" not in text and len(text) + indent <= _WIDTH - 10:
        return f'    """{text}"""'
    lines = [_filled(each, _WIDTH - 10 - indent) for each in text.splitlines()]
    return textwrap.indent('"""{}\n"""'.format("\n".join(lines)), "    ")


def _filled(line: str, width: int) -> str:
    """A line of a docstring in lines of this width; further ones are indented below an item of a list."""
    start = line[: len(line) - len(line.lstrip())]
    further = start + "  " * line.lstrip().startswith(("* ", "``"))
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=further, break_long_words=False)) or line


def narrowed(code: str) -> str:
    """The lines of a stub, where longer ones are broken between the elements of their first brackets."""
    return "\n".join(_narrowed(line) for line in code.split("\n"))


def _narrowed(line: str) -> str:
    first, *cuts = _cuts(line) if len(line) > _WIDTH else [0]
    if not cuts:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    lines = [""]
    for start, end in itertools.pairwise([first, *cuts]):
        element = line[start:end].strip().removesuffix(",") + "," * (len(cuts) > 1)
        if lines[-1] and len(indent) + 5 + len(lines[-1]) + len(element) > _WIDTH:
            lines.append("")
        lines[-1] += f" {element}" if lines[-1] else element
    inside = [_narrowed(f"{indent}    {each}") for each in lines]
    return "\n".join([line[:first], *inside, indent + line[cuts[-1] :]])


def _cuts(line: str) -> list[int]:
    """The places in a line behind its first bracket, behind the commas of this bracket, and before its end."""
    found: list[int] = []
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(line).readline):
        if token.string in tuple("([{"):
            depth += 1
        depth -= token.string in tuple(")]}")
        if token.string in tuple("([{,") and depth == 1:
            found.append(token.end[1])
        elif found and not depth:
            return [*found, token.start[1]]
    return [0]
