"""Types of transformed functions: their parameters are those of the function."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import oxigrad as ox

def loss(w: float, x: float, *, scale: float = 1.0) -> float:
    return w * x * scale

reveal_type(ox.grad(loss))
reveal_type(ox.value_and_grad(loss)(1.0, 2.0))
reveal_type(ox.checkpoint(loss))
""" + "".join(
    f"ox.{name}(loss)(1.0)\n"
    for name in "grad value_and_grad jacobian jacfwd jacrev hessian elementwise_grad checkpoint".split()
)


def test_transforms_keep_the_parameters_of_a_function(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    (tmp_path / "program.py").write_text(PROGRAM)
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
    told = [each["message"] for each in found if each["severity"] == "information"]
    assert [message.partition(" is ")[2] for message in told] == [
        '"(w: float, x: float, *, scale: float = 1) -> Any"',
        '"tuple[Any, Any]"',
        '"(w: float, x: float, *, scale: float = 1) -> float"',
    ]
    errors = [each for each in found if each["severity"] == "error"]
    assert [each["rule"] for each in errors] == ["reportCallIssue"] * 8, done.stdout
