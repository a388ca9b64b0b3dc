"""`inspect.signature`, `help` and hovering in an editor show the same: a language server is asked for each public name."""

import contextlib
import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("basedpyright")
pytest.importorskip("matplotlib")  # of the tools
pytest.importorskip("torch")
pytest.importorskip("optax")
pytest.importorskip("scipy")
from oxigrad.xp._scipy.stats.distribution import Distribution
from pages import reference

PACKAGES = pathlib.Path(__file__).parent.parent.parent / "python"
ENVIRONMENT = pathlib.Path(sys.prefix)
# Whose constructors are those of their subclasses.
BASES = {
    "oxigrad.distributed.Communicator",
    "oxigrad.optim.RuleOptimizer",
    "oxigrad.optim.Transform",
    "oxigrad.schedules.Schedule",
}
# Of functions of PyTorch, JAX and HIPS autograd.
BRIDGES = {"oxigrad.interop.torch", "oxigrad.interop.jax", "oxigrad.interop.autograd"}


class LanguageServer:
    """A language server over its standard streams."""

    def __init__(self, folder: pathlib.Path) -> None:
        command = [str(pathlib.Path(sys.executable).with_name("basedpyright-langserver")), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self._number = 0
        self.request(
            "initialize",
            processId=None,
            rootUri=folder.as_uri(),
            capabilities={},
            workspaceFolders=[{"uri": folder.as_uri(), "name": "x"}],
        )
        self.send({"method": "initialized", "params": {}})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def request(self, method: str, **params: Any) -> Any:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while (answer := self._receive()).get("id") != self._number or "method" in answer:
            if "method" in answer and "id" in answer:  # a request of the server
                settings = (
                    [None] * len(answer["params"].get("items", [])) if "items" in (answer.get("params") or {}) else None
                )
                self.send({"id": answer["id"], "result": settings})
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        size = 0
        while (line := self._process.stdout.readline().strip()) or not size:
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        return json.loads(self._process.stdout.read(size))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def public() -> dict[str, Any]:
    """The functions and classes of the public API that have a signature, by name; NumPy's own have its documentation."""
    values: dict[str, Any] = {}
    for module in sorted(reference.MODULES.keys() - BRIDGES):
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if inspect.ismodule(value) or (module == "oxigrad.xp" and reference.is_of_numpy(name, value)):
                continue
            if isinstance(value, Distribution):  # an object, whose class is shown
                continue
            with contextlib.suppress(TypeError, ValueError):
                inspect.signature(value)
                values[f"{module}.{name}"] = value
    return values


def parameters(signature: str) -> list[tuple[str, bool]]:
    """The names of the parameters of a signature, with stars and slashes, and whether each has a default."""
    depth, parts = 0, [""]
    for character in re.sub(r"""'[^']*'|"[^"]*"|->""", "", signature):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            break
        if character == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += character
    parts[0] = parts[0].removeprefix("(")
    return [(re.match(r"/|\*{0,2}\w*", part.strip())[0], "=" in part) for part in parts if part.strip()]


def hovers(names: list[str], folder: pathlib.Path) -> Iterator[str]:
    """The text that an editor shows of each name."""
    modules = {name.rpartition(".")[0] for name in names if not name.startswith("oxigrad.xp.")}
    text = "\n".join([*(f"import {module}" for module in sorted(modules)), *names])
    (folder / "program.py").write_text(text)
    settings = {"extraPaths": [str(PACKAGES)], "venvPath": str(ENVIRONMENT.parent), "venv": ENVIRONMENT.name}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    server = LanguageServer(folder)
    document = {"uri": (folder / "program.py").as_uri(), "languageId": "python", "version": 1, "text": text}
    try:
        server.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        for line, name in enumerate(names, len(modules)):
            position = {"line": line, "character": len(name) - 1}
            shown = server.request("textDocument/hover", textDocument={"uri": document["uri"]}, position=position)
            yield shown["contents"]["value"] if shown else ""
    finally:
        server.close()


def difference(name: str, value: Any, shown: str) -> str:
    """The part that an editor does not show of a value; empty where it shows the parameters and the summary."""
    summary = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    if not summary or summary not in " ".join(shown.split()):
        return f"{name} shows {shown!r}, without {summary!r}"
    last = name.rpartition(".")[2]
    expected = parameters(str(inspect.signature(value)))
    if ufunc := re.match(
        rf"\(variable\) {last}: _(?:Of|Recorded)([12])\n", shown
    ):  # by the protocol of that many arguments
        count = len([each for each, _ in expected if each != "/"])
        return "" if count == int(ufunc[1]) else f"{name} is shown with {ufunc[1]} arguments: {expected}"
    overloads = [parameters(shown[found.end() :]) for found in re.finditer(rf"(?:def|class) {last}(?=\()", shown)]
    if len(overloads) > 1:  # a separator may stand in some overloads only
        names = {each for overload in overloads for each, _ in overload} - {"*", "/"}
        return (
            "" if names == {each for each, _ in expected} - {"*", "/"} else f"{name} is shown with {names}: {expected}"
        )
    return "" if overloads == [expected] else f"{name} is shown with {overloads}: {expected}"


def test_an_editor_shows_the_parameters_and_the_summary_of_each_public_name(tmp_path: pathlib.Path) -> None:
    values = public()
    assert len(values) > 750
    different = [
        said
        for (name, value), shown in zip(values.items(), hovers(list(values), tmp_path), strict=True)
        if name not in BASES and (said := difference(name, value, shown))
    ]
    assert not different


def test_differences_are_found() -> None:
    def f(x: float, *, power: int = 2) -> float:
        """The power of a number.

        More.
        """

    assert not difference(
        "f", f, "(function) def f(\n    x: float,\n    *,\n    power: int = 2\n) -> float\n\nThe power of\na number."
    )
    assert "without 'The power" in difference("f", f, "(function) def f(x: float, *, power: int = 2) -> float")
    assert "is shown with" in difference(
        "f", f, "(function) def f(x: float, *, power: int) -> float\n\nThe power of a number."
    )
    assert "is shown with" in difference("f", f, "(function) def f(x: float) -> float\n\nThe power of a number.")
