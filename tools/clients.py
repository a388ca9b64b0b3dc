"""Runs libraries of others on oxigrad: programs and tests of libraries that stand on autograd, and training loops.

    python tools/clients.py [--only NAME] [--whole]

Three tables of `docs/clients.md`:

* the programs of `tests/clients`, each with autograd and with `oxigrad.autograd` in its place; their numbers are compared.
* tests of libraries themselves, each with autograd and with oxigrad; the tests that pass are compared. Of SurPyval a sample is run,
  and with ``--whole`` all.
* the rows of `tests/clients/trainers.py`: a target is trained in the training loop of another library, with save and resume.

Libraries that stand on autograd are installed in an environment in `target/clients`, with the releases of
`tests/clients/requirements.txt`; those with training loops beside the packages of this interpreter, with the releases of
`trainers.txt`. Results are kept in `target/clients/results.json`: with ``--only`` the other rows of the page stay. The status is 1
where a result or a test is right with autograd alone, or a training loop does not resume.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import math
import os
import statistics
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "clients"
FOLDER = ROOT / "target" / "clients"
LOCK, TRAINERS_LOCK = PROGRAMS / "requirements.txt", PROGRAMS / "trainers.txt"
# The release of autograd whose tests are run, which is newer than that of the libraries: PennyLane takes none from 1.9 on.
AUTOGRAD_LOCK = PROGRAMS / "autograd.txt"
# Numbers at the end of an iteration differ by its tolerance.
TOLERANCE = 1e-5
ROUNDS = 10  # that are timed
WHICH = ("autograd", "oxigrad")
# Training loops in the order of the page, and what each of them trains and saves with.
TRAINERS = {
    "transformers": "`Trainer` with LoRA of peft, checkpoints",
    "lightning": "`Trainer`, checkpoint",
    "accelerate": "`Accelerator`, `save_state`",
    "skorch": "`NeuralNetRegressor`, `save_params`",
    "timm": "`VisionTransformer` and `CosineLRScheduler`, state dicts",
    "flax": "`nnx.Optimizer`, msgpack",
    "equinox": "`filter_jit`, `tree_serialise_leaves`",
    "numpyro": "`SVI`, msgpack",
    "optimistix": "`OptaxMinimiser`, `tree_serialise_leaves`",
    "keras": "`fit`, `model.save`",
}

INSTALL = "import oxigrad.autograd\noxigrad.autograd.install()\n"
CHECK = "import autograd\nassert ('oxigrad' in autograd.__file__) == {}, autograd.__file__\n"

PAGE = """\
# Libraries that run on oxigrad

<!-- Printed by `make clients`: do not edit. -->

## Programs with autograd

The programs belong to libraries that import HIPS autograd. Each runs twice: with autograd, and after `oxigrad.autograd.install()`.
A program *passes* with oxigrad if its numbers equal the numbers with autograd up to {tolerance:g}. The ratio is the processor time
with oxigrad divided by the processor time with autograd. The ratio for derivatives counts the calls of functions that
`grad`, `value_and_grad`, `hessian` and other operators of autograd return. Some libraries call none of these.

The two processes take turns, {rounds} rounds after the first. Ratios are ratios of medians.

| library | release | results | passed with autograd | passed with oxigrad | ratio of processor time | ratio for derivatives |
|---|---|---|---|---|---|---|
{programs}

Variables take the place of autograd's boxes. Autograd's graph has no counterpart: `VJPNode`, `new_box` and `trace_stack` raise
`NotImplementedError` when they are used, as in PennyLane's `math.is_independent`.

## Times of results

Milliseconds of processor time of each result, and ratios as above. In brackets: the 10th and the 90th percentile of the ratios
within a round.

| library | result | autograd | oxigrad | ratio | autograd's derivatives | oxigrad's derivatives | ratio for derivatives |
|---|---|---|---|---|---|---|---|
{times}

## Tests of libraries

| library | release | tests | passed with autograd | passed with oxigrad | ratio of processor time |
|---|---|---|---|---|---|
{suites}

`make clients` runs a sample of SurPyval's parametric tests. `make clients OPTIONS=--whole` runs all 2,394 in half an hour. Only one
of these fails with oxigrad, the last one of this list. The list has the tests that pass with autograd alone:

{differences}

## Training loops

Each library trains a small model for six steps with an optimizer of oxigrad. A second run saves and resumes after three steps.
The difference is the largest difference between parameters of the two runs.

| library | release | what trains and saves | loss after one step | loss after six | difference |
|---|---|---|---|---|---|
{trainers}
"""


@dataclasses.dataclass
class Suite:
    """Tests of a library: their folder, the files, and why some cannot pass with oxigrad, by the beginning of the name of each."""

    folder: Callable[[], Path]
    files: str
    differences: dict[str, str]
    lock: Path = LOCK


@dataclasses.dataclass
class Run:
    """The results of a program in one process."""

    values: dict[str, list[float]]
    error: str | None
    #: Processor time of each result: of all, and of what autograd's operators return.
    seconds: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)


def main() -> int:
    """Runs what is chosen; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names: of programs, autograd_tests, keras_trainer")
    parser.add_argument("--whole", action="store_true", help="run all of SurPyval's tests, half an hour, not a sample")
    options = parser.parse_args()
    only = options.only
    if options.whole:
        SUITES["surpyval"].files = ""
    prepare()
    programs = sorted(file.stem for file in PROGRAMS.glob("*_*.py"))
    tasks: dict[str, tuple[str, Callable[[str], tuple[str, bool]], str]] = {
        **{name: ("programs", program_row, name) for name in programs},
        **{f"{name}_tests": ("suites", suite_row, name) for name in SUITES},
        **{f"{name}_trainer": ("trainers", trainer_row, name) for name in TRAINERS},
    }
    file, failed, lines = FOLDER / "results.json", False, results()
    for name, (_, row, argument) in tasks.items():
        if only in name:
            line, is_failure = row(argument)
            failed |= is_failure
            print(line, flush=True)
            lines = {**results(), name: line}
            file.write_text(json.dumps(lines, indent=1), encoding="utf-8")
    if tasks.keys() <= lines.keys():
        tables = {
            part: "\n".join(lines[name].split("\n")[0] for name, (table, *_) in tasks.items() if table == part)
            for part in ("programs", "suites", "trainers")
        }
        times = "\n".join(line for name in programs for line in lines[name].split("\n")[1:])
        reasons = [
            f"* {name}, `{test}`: {why}." for name, suite in SUITES.items() for test, why in suite.differences.items()
        ]
        page = PAGE.format(tolerance=TOLERANCE, rounds=ROUNDS, times=times, differences="\n".join(reasons), **tables)
        (ROOT / "docs" / "clients.md").write_text(page, encoding="utf-8")
    return int(failed)


def results() -> dict[str, str]:
    """The rows of the page that are known, by the name of the task."""
    file = FOLDER / "results.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


# --- environments --------------------------------------------------------------------------------------------------------


def prepare() -> None:
    """Makes the environments, where they are not those of the lock files."""
    environment, extras, newest = (FOLDER / name for name in ("venv", "trainers", "newest"))
    if stale(environment, LOCK):
        venv.create(environment, with_pip=True, clear=True)
        subprocess.run([*pip(python()), "--requirement", str(LOCK)], check=True)
        stamp(environment, LOCK)
    if stale(extras, TRAINERS_LOCK):
        # The lock file has all that the interpreter's environment lacks, so that no package is installed twice.
        command = [*pip(Path(sys.executable)), "--no-deps", "--upgrade", "--target", str(extras)]
        subprocess.run([*command, "--requirement", str(TRAINERS_LOCK)], check=True)
        stamp(extras, TRAINERS_LOCK)
    if stale(newest, AUTOGRAD_LOCK):
        command = [*pip(python()), "--no-deps", "--upgrade", "--target", str(newest)]
        subprocess.run([*command, "--requirement", str(AUTOGRAD_LOCK)], check=True)
        stamp(newest, AUTOGRAD_LOCK)
    for which in WHICH:
        (FOLDER / which).mkdir(exist_ok=True)
        text = (INSTALL if which == "oxigrad" else "") + CHECK.format(which == "oxigrad")
        (FOLDER / which / "door.py").write_text(text, encoding="utf-8")


def stale(folder: Path, lock: Path) -> bool:
    """Whether a folder was not made from this lock file."""
    copy = folder / lock.name
    return not copy.exists() or copy.read_text(encoding="utf-8") != lock.read_text(encoding="utf-8")


def stamp(folder: Path, lock: Path) -> None:
    """Leaves a copy of the lock file in a folder that was made from it."""
    (folder / lock.name).write_text(lock.read_text(encoding="utf-8"), encoding="utf-8")


def pip(interpreter: Path) -> list[str]:
    """The command that installs packages."""
    return [str(interpreter), "-m", "pip", "install", "--quiet"]


def python() -> Path:
    """The interpreter of the environment of autograd's libraries."""
    return FOLDER / "venv" / "bin" / "python"


def variables(*paths: Path) -> dict[str, str]:
    """Environment variables of a process that imports oxigrad from this checkout, and modules of more folders."""
    path = os.pathsep.join(map(str, (ROOT / "python", *paths)))
    return {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}


def site_packages() -> Path:
    """The folder of packages of the environment of autograd's libraries."""
    return next((FOLDER / "venv" / "lib").glob("python*/site-packages"))


def autograd_tests() -> Path:
    """The tests of HIPS autograd, which its source distribution has."""
    version = release("autograd", AUTOGRAD_LOCK)
    folder = FOLDER / f"autograd-{version}"
    if not folder.exists():
        download = [
            str(python()),
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary=:all:",
            "--dest",
            str(FOLDER),
        ]
        subprocess.run([*download, f"autograd=={version}"], check=True)
        with tarfile.open(f"{folder}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return folder / "tests"


# Each uses autograd by another method.
SURPYVAL = (
    "test_censored_hessian.py test_custom_distribution.py test_extras.py test_fit_invariants.py test_fixed.py test_lfp_zi.py test_mom.py "
    "test_mps.py test_offset_start.py test_regressions.py test_uniform.py test_weibayes.py"
)
SUITES = {
    "autograd": Suite(
        autograd_tests,
        "",
        {
            "test_fft.test_rfftn_odd_not_implemented": "`rfftn` of odd sizes is differentiable here",
            "test_graphs.test_assignment_raises_error": "an assignment to a variable is recorded here",
            "test_linalg.test_pinv": "the test calls `autograd.numpy.linalg._dot`",
            "test_misc.test_const_graph": "`const_graph` is `oxigrad.record`, which detects when it must call the function again",
            "test_systematic.test_std": "the second derivative of `std` of equal elements is NaN here, and 0 in autograd",
            "test_tests.test_check_vjp": "the tests compare the text of an error, which is that of `oxigrad.testing.check_grads`",
            "test_wrappers.test_deprecated": "`f.defvjp`, `f.defgrad` and `quick_grad_check`, deprecated since 2017, are absent",
            "test_wrappers.test_wrapped_name_and_docs": "the test compares the texts of docstrings",
        },
        AUTOGRAD_LOCK,
    ),
    "surpyval": Suite(
        lambda: site_packages() / "surpyval" / "tests" / "univariate" / "parametric",
        SURPYVAL,
        {
            "test_confidence_bounds.test_a_family_without_forward_rules_uses_reverse_once": "the test expects that `betainc` has no derivative in forward mode",
        },
    ),
}


# --- programs ------------------------------------------------------------------------------------------------------------


def program_row(name: str) -> tuple[str, bool]:
    """A row of the table of programs and rows of times, and whether a result is right with autograd alone."""
    runs = rounds(name)
    theirs, ours = (runs[which][0] for which in WHICH)
    same = [key for key, value in theirs.values.items() if are_near(ours.values.get(key), value)]
    for which in WHICH:
        if runs[which][0].error:
            print(f"{name} with {which}:\n{runs[which][0].error}", file=sys.stderr)
    for key in theirs.values.keys() - {*same}:
        print(f"{name}, {key}: {theirs.values[key]} with autograd, {ours.values.get(key)}", file=sys.stderr)
    total, library = len(theirs.values.keys() | ours.values.keys()), library_of(name)

    def medians(which: str, part: int, keys: list[str]) -> float:
        return statistics.median(sum(run.seconds[key][part] for key in keys) for run in runs[which][1:])

    def ratios(part: int, keys: list[str]) -> str:
        return ratio(*(medians(which, part, keys) for which in WHICH))

    line = row_of_counts(library, release(library), total, len(theirs.values), len(same), ratios(0, same))
    lines = [f"{line} {ratios(1, same)} |"]
    for key in same:
        within = [
            b.seconds[key][0] / a.seconds[key][0] for a, b in zip(*(runs[which][1:] for which in WHICH), strict=True)
        ]
        low, *_, high = statistics.quantiles(within, n=10)
        cells = [
            f"{1e3 * medians('autograd', 0, [key]):.3g} | {1e3 * medians('oxigrad', 0, [key]):.3g}",
            f"{ratios(0, [key])} ({low:.2f}–{high:.2f})",
            f"{1e3 * medians('autograd', 1, [key]):.3g} | {1e3 * medians('oxigrad', 1, [key]):.3g} | {ratios(1, [key])}",
        ]
        lines.append(f"| {library} | {key} | {' | '.join(cells)} |")
    return "\n".join(lines), len(same) < len(theirs.values)


def row_of_counts(library: str, version: str, total: int, theirs: int, ours: int, ratio: str) -> str:
    """A row of the tables that compare oxigrad with autograd."""
    return f"| {library} | {version} | {total} | {theirs} | {ours} | {ratio} |"


def ratio(theirs: float, ours: float) -> str:
    """The ratio of processor times, if both were measured."""
    return f"{ours / theirs:.2f}" if theirs and ours else "–"


def library_of(name: str) -> str:
    """The library of a program, by its name in the lock file."""
    return name.rpartition("_")[0].replace("_", "-")


def rounds(name: str) -> dict[str, list[Run]]:
    """The results of a program with autograd and with oxigrad, whose processes take turns; of an error, one round."""
    with contextlib.ExitStack() as stack:
        processes = {which: stack.enter_context(process(name, which)) for which in WHICH}
        runs: dict[str, list[Run]] = {which: [] for which in WHICH}
        for _ in range(1 + ROUNDS):
            for which, each in processes.items():
                each.stdin.write("\n")
                each.stdin.flush()
                runs[which].append(Run(**json.loads(each.stdout.readline())))
            if any(run[0].error for run in runs.values()):
                break
    return runs


def process(name: str, which: str) -> Any:
    """A process that runs a program with autograd or with oxigrad for each line of its input."""
    command = [str(python()), str(PROGRAMS / "child.py"), name, str(FOLDER / which)]
    return subprocess.Popen(command, env=variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def are_near(one: list[float] | None, other: list[float]) -> bool:
    """Whether numbers agree to the tolerance."""
    if one is None or len(one) != len(other):
        return False
    return all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-9) for a, b in zip(one, other, strict=True))


def release(library: str, lock: Path = LOCK) -> str:
    """The release of a library in a lock file."""
    named = dict(line.split("==") for line in lock.read_text(encoding="utf-8").splitlines() if "==" in line)
    known = {name.lower().replace("_", "-"): version for name, version in named.items()}
    return known[library.lower()]


# --- tests of libraries --------------------------------------------------------------------------------------------------


def suite_row(name: str) -> tuple[str, bool]:
    """A row of the table of tests, and whether one without a reason passes with autograd alone."""
    (theirs, their_seconds), (ours, our_seconds) = (outcomes(name, which) for which in ("autograd", "oxigrad"))
    passed = [test for test, is_passed in theirs.items() if is_passed]
    lost = [test for test in passed if not ours.get(test)]
    unexpected = [test for test in lost if not test.startswith(tuple(SUITES[name].differences))]
    for test in unexpected:
        print(f"{name}: {test} passes with autograd alone", file=sys.stderr)
    version = release(name, SUITES[name].lock)
    times = ratio(their_seconds, our_seconds)
    line = row_of_counts(name, version, len(theirs), len(passed), sum(ours.values()), times)
    return line, bool(unexpected) or not passed


def outcomes(name: str, which: str) -> tuple[dict[str, bool], float]:
    """Whether each test of a library passes that is not skipped, and the processor time of all."""
    report = FOLDER / which / f"{name}.xml"
    report.unlink(missing_ok=True)
    folder = SUITES[name].folder()
    options = [
        "-q",
        "-p",
        "door",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        "-c",
        os.devnull,
        "--import-mode=importlib",
    ]
    paths = [str(folder / file) for file in SUITES[name].files.split()] or [str(folder)]
    command = [str(python()), "-m", "pytest", *options, "--tb=no", f"--junitxml={report}", *paths]
    before = os.times()
    newest = [FOLDER / "newest"] if SUITES[name].lock == AUTOGRAD_LOCK else []
    environment = variables(FOLDER / which, folder, *newest)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    tests: dict[str, bool] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (a file that pytest has just written)
        if case.find("skipped") is None:
            module = case.get("classname", "").rpartition("tests.")[2]
            tests[f"{module}.{case.get('name')}"] = case.find("failure") is None and case.find("error") is None
    return tests, seconds


# --- training loops ------------------------------------------------------------------------------------------------------


def trainer_row(name: str) -> tuple[str, bool]:
    """A row of the table of training loops, and whether the target is not trained, or not resumed."""
    environment = {**variables(FOLDER / "trainers"), "KERAS_BACKEND": "torch", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(PROGRAMS / "trainers.py"), name]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        print(f"{name}:\n{ran.stderr}", file=sys.stderr)
        return f"| {name} | {trainer_release(name)} | {TRAINERS[name]} | – | – | – |", True
    outcome: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    numbers = f"{outcome['before']:.4g} | {outcome['after']:.4g} | {outcome['difference']:.1g}"
    line = f"| {name} | {trainer_release(name)} | {TRAINERS[name]} | {numbers} |"
    return line, not outcome["after"] < outcome["before"] or outcome["difference"] > TOLERANCE


def trainer_release(library: str) -> str:
    """The release of a library with a training loop: in the lock file, or in the environment of this interpreter."""
    named = dict(line.split("==") for line in TRAINERS_LOCK.read_text(encoding="utf-8").splitlines())
    return named.get(library) or importlib.metadata.version(library)


if __name__ == "__main__":
    sys.exit(main())
