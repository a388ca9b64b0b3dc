"""Types of transformed functions: their parameters are those of the function."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """\
import numpy as np
import oxigrad as ox

def loss(w: float, x: float, *, scale: float = 1.0) -> float: ...
def with_aux(w: bytes, x: float) -> tuple[float, int]: ...
def of_tree(model: dict[str, float], x: str) -> float: ...

@ox.record
def recorded(w: str) -> bytes: ...
"""
# Expressions and the types that a checker reveals: parameters keep their names, a gradient has the type of its argument.
REVEALED = {
    "ox.grad(loss)": "(w: float, x: float, *, scale: float = 1) -> float",
    "ox.grad(of_tree)": "(model: dict[str, float], x: str) -> dict[str, float]",
    "ox.grad(with_aux, has_aux=True)": "(w: bytes, x: float) -> tuple[bytes, int]",
    "ox.grad(loss, (0, 1))": "(w: float, x: float, *, scale: float = 1) -> Any",
    'ox.grad(loss, argnames="x")': "(w: float, x: float, *, scale: float = 1) -> Any",
    "ox.value_and_grad(of_tree)": "(model: dict[str, float], x: str) -> tuple[float, dict[str, float]]",
    "ox.value_and_grad(with_aux, has_aux=True)": "(w: bytes, x: float) -> tuple[tuple[float, int], bytes]",
    "ox.value_and_grad(loss, 1)(1.0, 2.0)": "tuple[float, Any]",
    "ox.elementwise_grad(loss)": "(w: float, x: float, *, scale: float = 1) -> float",
    "ox.hessian_diag(of_tree)": "(model: dict[str, float], x: str) -> dict[str, float]",
    "ox.vjp(of_tree, {'w': 1.0}, '')": "tuple[float, (float) -> tuple[dict[str, float], str]]",
    "ox.vjp(with_aux, b'', 1.0, has_aux=True)": "tuple[float, (float) -> tuple[bytes, float], int]",
    "ox.jvp(loss, (1.0, 2.0), (1.0, 0.0))": "tuple[float, float]",
    "ox.linearize(loss, 1.0, 2.0)": "tuple[float, LinearMap[float]]",
    "ox.checkpoint(loss)": "(w: float, x: float, *, scale: float = 1) -> float",
    "ox.stop_gradient('text')": "str",
    "recorded('')": "bytes",
    "recorded.why": "Why | None",
}
# Calls with too few or with wrong arguments.
REFUSED = [
    *(
        f"ox.{name}(loss)(1.0)"
        for name in "grad value_and_grad jacobian jacfwd jacrev hessian elementwise_grad hessian_diag checkpoint".split()
    ),
    "ox.grad(of_tree)(1.0, '')",
    "ox.vjp(loss, 'text', 1.0)",
    "ox.vjp(loss, 1.0)",
    "ox.linearize(loss, 'text', 1.0)",
    "recorded(1.0)",
    "ox.grad(3)",
]


def test_transforms_keep_the_parameters_of_a_function(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    lines = [f"reveal_type({each})" for each in REVEALED]
    (tmp_path / "program.py").write_text("\n".join([HEAD, *lines, *REFUSED, ""]))
    project = {
        "include": ["program.py"],
        "extraPaths": [str(Path(__file__).parents[2] / "python")],
        "typeCheckingMode": "standard",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(project))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--project",
        str(tmp_path),
        "--pythonpath",
        sys.executable,
        "--outputjson",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    revealed = [each["message"].partition(" is ")[2] for each in found if each["severity"] == "information"]
    assert revealed == [f'"{text}"' for text in REVEALED.values()]
    refused = {each["range"]["start"]["line"] for each in found if each["severity"] == "error"}
    begin = len(HEAD.splitlines()) + 1 + len(lines)
    assert refused == {*range(begin, begin + len(REFUSED))}, done.stdout
