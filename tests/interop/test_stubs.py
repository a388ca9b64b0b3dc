"""The type stubs that editors read are those of the names that there are, and without errors of types."""

from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys
import tomllib
from typing import Any

import numpy as np
import pytest

import compiled_stub
import oxigrad
import stubs
import type_completeness

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", [*stubs.HEADS, *stubs.RULES])
def test_the_stub_is_printed_from_the_table(name: str) -> None:
    if name in ("torch", "optax", "keras", "torch.formulas"):
        pytest.importorskip(name.partition(".")[0])
    text = stubs.path(name).read_text()
    if name == "xp" and f"of NumPy {stubs.NUMPY}." not in text:
        pytest.skip("shows the signatures of another release of NumPy")
    assert text == stubs.stub(name), "make generated"
    assert max(map(len, text.splitlines())) <= 120


def test_the_stub_of_the_compiled_module_has_the_summaries_of_its_docstrings() -> None:
    text = stubs.path("_core").read_text()
    assert text == compiled_stub.documented(text), "make generated"
    assert compiled_stub.documented('class Tape:\n    """Old."""\n    def watch(self) -> int: ...\n').count('"""') == 4


def test_what_imports_pytorch_has_no_errors_of_types(tmp_path: pathlib.Path) -> None:
    """`make lint` leaves out the files that it cannot check without PyTorch; they are checked here, by the same settings."""
    pytest.importorskip("torch")
    pytest.importorskip("basedpyright")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["basedpyright"]
    files = [str(path) for pattern in settings["exclude"] for path in ROOT.glob(pattern)]
    project = {
        "include": files,
        "extraPaths": [str(ROOT / "python"), str(ROOT / "examples")],
        **{name: settings[name] for name in settings if name.startswith(("report", "type", "python"))},
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
        "--stats",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(stubs.path("torch")) in files and f"Total files checked: {len(files)}" in done.stdout, done.stdout


def test_each_method_of_variables_in_the_stub_gives_a_variable() -> None:
    arguments = {"clip": (0.0, 1.0), "compress": ([True, False], 0), "dot": (np.eye(2),), "repeat": (2,), "take": (0,)}
    arguments |= {"reshape": (4,), "swapaxes": (0, 1)}
    names = compiled_stub.methods_of_arrays()

    def results(x: Any) -> Any:
        for name in names:
            found = getattr(x, name)
            found = found(*arguments.get(name, ()))
            assert isinstance(found, oxigrad.Variable), name
        return x.sum()

    assert {"sum", "mean", "reshape"} <= {*names}
    np.testing.assert_array_equal(oxigrad.grad(results)(np.eye(2)), np.ones((2, 2)))


def test_lines_of_stubs_are_broken_between_elements() -> None:
    parameters = ", ".join(f"b{i}: str = 'x, y'" for i in range(12))
    line = f"def f(a: dict[str, int], {parameters}, *, c: Literal['a', 'b'] = 'a') -> tuple[int, str]: ..."
    narrowed = compiled_stub.narrowed(line)
    assert ast.dump(ast.parse(narrowed)) == ast.dump(ast.parse(line))
    assert len(line) > 240 and max(map(len, narrowed.splitlines())) <= 120 and narrowed.count("\n") == 4
    assert compiled_stub.narrowed("x: int") == "x: int"


# Lines of a program, each with the type that a checker reveals, or a word of its error.
PROGRAM = {
    "reveal_type(opt)": '"Adam"',
    "reveal_type(opt.learning_rate)": '"float | Schedule"',
    "reveal_type(opt.amsgrad)": "\"bool | Literal['raw', 'corrected'] | None\"",
    'reveal_type(opt.update({"w": 1.0}, None))': '"dict[str, float]"',
    "reveal_type(opt.step)": '"int"',
    "opt.updat()": "reportAttributeAccessIssue",
    **dict.fromkeys(
        (f"{name}.updat()" for name in ("chained", "defined", "wrapped", "chained.parts[0]")), "reportCallIssue"
    ),
    "optim.transform(double)().updat()": "reportCallIssue",
    "split.updat()": "reportAttributeAccessIssue",
    **{f"reveal_type({name}.learning_rate)": '"float | Schedule"' for name in ("chained", "defined", "wrapped")},
    'reveal_type(wrapped.update({"w": 1.0}, None))': '"dict[str, float]"',
    "opt.lerning_rate = 0.1": "reportAttributeAccessIssue",
    'opt.learning_rate = "x"': "reportAttributeAccessIssue",
    "optim.Adam(lr=0.1)": "reportCallIssue",
    'optim.Adam(compat="flax")': "reportArgumentType",
    "optim.SDG": "reportAttributeAccessIssue",
    "xp.sni(1.0)": "reportAttributeAccessIssue",
    "xp.special.erff": "reportAttributeAccessIssue",
    "reveal_type(xp.special.erf)": '"(x: Any, /) -> Any"',
    "reveal_type(xp.add.outer)": "**named: Any",
    **{
        f"reveal_type({call})": '"Variable"'
        for call in (
            "xp.sum(variable)",
            "xp.mean(variable, axis=0)",
            "xp.sin(variable)",
            "xp.add(1.0, variable)",
            "xp.matmul(variable, [1.0])",
            "xp.reshape(variable, (2, 2))",
        )
    },
    **{
        f"reveal_type({call})": '"Variable"'
        for call in (
            "variable + 1",
            "1.0 - variable",
            "variable @ variable",
            "-variable**2",
            "abs(variable)",
            "variable[0]",
            "next(iter(variable))",
            "variable.T",
            "variable.sum(axis=0)",
            "variable.real",
        )
    },
    "reveal_type(variable < 0)": '"Any"',
    "reveal_type(variable // 2)": '"Any"',
    "reveal_type(xp.isnan(variable))": '"Any"',
    "reveal_type(xp.sum([1.0]))": '"Any"',
    **{
        f"reveal_type({call})": '"ndarray[Any, Any]"'
        for call in (
            "xp.sum(plain)",
            "xp.sin(plain)",
            "xp.add(plain, 1.0)",
            "xp.add(1.0, plain)",
            "xp.mean(plain, axis=0)",
        )
    },
    "reveal_type(xp.add(plain, variable))": '"Variable"',
    "reveal_type(xp.add(plain, unknown))": '"Any"',
    **{
        f"reveal_type({call})": '"Any"'
        for call in ("xp.mean(unknown)", "xp.sin(unknown)", "xp.add(unknown, unknown)", "xp.matmul(unknown, [1.0])")
    },
    "reveal_type(xp.add(variable, unknown))": '"Variable"',
    "reveal_type(xp.add(unknown, variable))": '"Any"',
    "xp.sum(variable, axis='x')": "reportCallIssue",
    "reveal_type(oxigrad.grad(loss))": '"(x: float, *, power: int) -> float"',
}


def test_editors_know_names_arguments_and_results(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("basedpyright")
    head = """from typing import Any
import numpy as np
import oxigrad
from oxigrad import distributed, optim, xp
def loss(x: float, *, power: int) -> float: ...
def descent(xp, p, g, *, learning_rate=0.1): return (p - learning_rate * g,)
def double(xp, p, g, *, factor=2.0): return (factor * g,)
def of(value: oxigrad.Variable) -> oxigrad.Variable: ...
variable = of(...)  # type: ignore
unknown: Any = 1.0
plain = np.ones(2)
opt = optim.Adam(0.1)
chained = optim.chain(optim.ClipByValue(1.0), opt)
defined = optim.define(descent)()
split = optim.partition({"w": opt})
wrapped = distributed.DataParallel(opt)
"""
    (tmp_path / "program.py").write_text(head + "\n".join(PROGRAM))
    settings = {"include": ["program.py"], "extraPaths": [str(ROOT / "python")], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
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
    said: dict[int, str] = {}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        line = each["range"]["start"]["line"]
        said[line] = f"{said.get(line, '')} {each['message']} {each.get('rule', '')}"
    for line, (code, expected) in enumerate(PROGRAM.items(), head.count("\n")):
        assert expected in said.get(line, "nothing"), (code, said.get(line))


# --- completeness ------------------------------------------------------------------------------------------------------


def test_every_public_symbol_has_a_type_that_is_known() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("basedpyright")
    report = type_completeness.verified("oxigrad", type_completeness.SOURCES)
    assert type_completeness.unknown(report) == {}
    names = {each["name"] for each in type_completeness.public(report)}
    assert {"oxigrad.tree.flatten", "oxigrad.torch.Adam", "oxigrad.optax.transformation.Transformation"} <= names


def test_symbols_without_types_are_found(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("basedpyright")
    package = tmp_path / "untyped"
    package.mkdir()
    (package / "py.typed").touch()
    (package / "__init__.py").write_text(
        "import optax\n"
        "def whole(x: int) -> int: return x\n"
        "def of_argument(x) -> int: return 1\n"
        "def of_result(x: int): return x\n"
        "inferred = whole(1)\n"
        "class Of(optax.GradientTransformationExtraArgs):\n"
        "    def __init__(self) -> None:\n"
        "        self.attribute = whole(1)\n"
        "def _private(x): return x\n"
    )
    found = type_completeness.unknown(type_completeness.verified("untyped", tmp_path))
    names = {name.removeprefix("untyped.") for name in found}
    assert names == {"of_argument", "of_result", "inferred", "Of", "Of.attribute"}
