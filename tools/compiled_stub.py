"""The docstrings in the stub of the compiled module."""

import ast
import inspect
import textwrap
from typing import Any

import oxigrad
from oxigrad import _core


def documented(text: str) -> str:
    """The stub of the compiled module, which is written by hand, with the summaries of the docstrings of its public names."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            value = getattr(_core, node.name)
            if node.name in oxigrad.__all__ or value.__module__ != "oxigrad._core":
                _document(lines, node, value)
    return "\n".join(lines) + "\n"


def _document(lines: list[str], node: ast.FunctionDef | ast.ClassDef, value: Any) -> None:
    """Replaces the docstring of a definition, and those of the methods of a class, in the lines of a stub."""
    for each in reversed(node.body if isinstance(node, ast.ClassDef) else []):
        if isinstance(each, ast.FunctionDef) and each.name[0] != "_":
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
        about = textwrap.indent(summary(value), " " * node.col_offset).splitlines()
        lines[above:above] = [*about, ""] if isinstance(node, ast.ClassDef) else about
    elif isinstance(node, ast.FunctionDef):
        lines[above - 1] += " ..."


def summary(value: Any) -> str:
    """The first paragraph of the docstring of a value, as a docstring within a definition."""
    return quoted((inspect.getdoc(value) or "").partition("\n\n")[0])


def described(value: Any) -> str:
    """The first paragraph of the docstring of a value and what it says of hyperparameters, as a docstring within a definition."""
    first, *others = (inspect.getdoc(value) or "").split("\n\n")
    return quoted("\n\n".join([first, *(each for each in others if each.startswith("Hyperparameters:"))]))


def quoted(text: str) -> str:
    """A text as a docstring within a definition."""
    return f'    """{text}"""' if "\n" not in text else textwrap.indent(f'"""{text}\n"""', "    ")
