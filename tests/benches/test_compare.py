"""Comparison of two revisions: the decision by ratios, the measuring processes, and the wheels."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compare
import oxigrad as ox
import ratios
import wheels
import workloads
from compare import Comparison, RowFailedError, Timing
from ratios import Answer, Decision, decide

# --- the decision ----------------------------------------------------------------------------------------------------


def spread(middle: float, width: float, count: int = 31) -> list[float]:
    """Ratios around a middle, evenly; their median absolute deviation is about half the width."""
    return [middle + width * (2 * i / (count - 1) - 1) for i in range(count)]


def test_the_deviation_is_the_median_of_distances_from_the_median() -> None:
    assert ratios.deviation([1.0, 1.0, 2.0, 4.0, 100.0]) == 1.0
    assert ratios.deviation([3.0]) == 0.0


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (spread(1.20, 0.01), Answer.SLOWER),
        (spread(0.80, 0.01), Answer.FASTER),
        (spread(1.00, 0.01), Answer.SAME),
        (spread(1.03, 0.01), Answer.SAME),
        (spread(1.06, 0.001), Answer.SLOWER),
        (spread(1.06, 0.05), Answer.CANNOT_TELL),  # 6 MAD are 15 percent
        (spread(1.00, 0.50), Answer.CANNOT_TELL),  # so wide that 5 percent could hide in it
        (spread(1.048, 0.03), Answer.CANNOT_TELL),  # below the limit, but not surely
        ([1.5] * 4, Answer.CANNOT_TELL),  # too few
        ([1.5], Answer.CANNOT_TELL),
        ([], Answer.CANNOT_TELL),
        ([1.0] * 30 + [50.0], Answer.SAME),  # one interruption is none of our business
    ],
)
def test_decisions(found: list[float], answer: Answer) -> None:
    random.Random(0).shuffle(found)
    assert decide(found).answer is answer


def test_the_limit_is_five_percent_or_six_deviations() -> None:
    assert decide([1.0] * 9).limit == 0.05
    found = spread(1.0, 0.1)
    assert decide(found).limit == pytest.approx(6 * ratios.deviation(found))
    assert decide(found).limit > 0.05


def test_noise_is_no_regression() -> None:
    """Of a thousand rows of one version against itself, on a machine with 3 % of noise, none is slower."""
    numbers = random.Random(1)
    answers = [decide([numbers.lognormvariate(0, 0.03) for _ in range(50)]).answer for _ in range(1000)]
    assert set(answers) <= {Answer.SAME, Answer.CANNOT_TELL}
    assert answers.count(Answer.SAME) > 900


def test_a_regression_is_found_in_noise() -> None:
    numbers = random.Random(2)
    answers = [decide([1.3 * numbers.lognormvariate(0, 0.03) for _ in range(50)]).answer for _ in range(1000)]
    assert answers.count(Answer.SLOWER) > 990


def test_a_row_is_slower_if_it_is_slower_twice() -> None:
    slower, same = Decision(1.2, 0.05, Answer.SLOWER), Decision(1.0, 0.05, Answer.SAME)
    assert ratios.confirm(slower, slower).answer is Answer.SLOWER
    assert ratios.confirm(slower, same) == Decision(1.0, 0.05, Answer.CANNOT_TELL)


# --- compare ---------------------------------------------------------------------------------------------------------

PACKAGE = Path(ox.__file__).parents[1]
ROW = "tree.flatten, 1000 leaves"


def arrays(result: Any) -> list[np.ndarray]:
    return [np.array(leaf) for leaf in ox.tree.leaves(result) if isinstance(leaf, float | np.ndarray | np.generic)]


@pytest.mark.parametrize("row", workloads.ROWS)
def test_a_workload_can_be_repeated(row: str) -> None:
    call = workloads.ROWS[row]()
    first, second = arrays(call()), arrays(call())
    assert first
    assert [(a.shape, a.dtype) for a in first] == [(a.shape, a.dtype) for a in second]
    assert all(np.isfinite(array).all() for array in [*first, *second])
    if "update" not in row and "minimize" not in row:  # these change the model
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_both_sides_are_timed_round_by_round() -> None:
    timing = Comparison((PACKAGE, PACKAGE), samples=3, pairs=2, seconds=1e-4, threads=1).measure([ROW])[ROW]
    assert timing.failure is None
    for side in compare.SIDES:
        assert len(timing.seconds[side]) == 3
        assert all(0 < seconds < 1 for seconds in timing.seconds[side])
    assert timing.decision().answer is Answer.CANNOT_TELL
    assert ROW in compare.table({ROW: timing}, {ROW: timing.decision()})


def test_a_missing_feature_fails_on_its_side(tmp_path: Path) -> None:
    (tmp_path / "oxigrad").mkdir()
    (tmp_path / "oxigrad" / "__init__.py").write_text("xp = None\ndef set_num_threads(threads): pass\n")
    for folders, side, status in (((tmp_path, PACKAGE), "base", 0), ((PACKAGE, tmp_path), "new", 2)):
        timings = Comparison(folders, samples=1, pairs=1, seconds=0.0, threads=1).measure([ROW])
        failure = timings[ROW].failure
        assert failure
        assert failure.side == side
        assert "has no attribute 'tree'" in str(failure)
        decisions = {ROW: timings[ROW].decision()}
        assert decisions[ROW].answer is Answer.CANNOT_TELL
        assert compare.status(timings, decisions) == status
        assert f"does not run on {side}" in compare.table(timings, decisions)


def test_a_package_from_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="process of base ended"):
        Comparison((tmp_path, PACKAGE), samples=1, pairs=1, seconds=0.0, threads=1).measure([ROW])


@pytest.mark.parametrize(("answer", "status"), [(Answer.SLOWER, 1), (Answer.FASTER, 0), (Answer.CANNOT_TELL, 0)])
def test_only_a_slower_row_fails(answer: Answer, status: int) -> None:
    assert compare.status({ROW: Timing()}, {ROW: Decision(1.0, 0.05, answer)}) == status


def test_a_failure_has_no_ratio() -> None:
    timing = Timing()
    timing.failure = RowFailedError("base", "it is too old")
    assert math.isnan(timing.decision().ratio)


@pytest.mark.parametrize("arguments", [[], ["HEAD", "--small"]])
def test_a_base_is_named_unless_it_is_small(arguments: list[str], capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        compare.main(arguments)
    assert "expected either BASE" in capsys.readouterr().err


# --- wheels ----------------------------------------------------------------------------------------------------------

BACKEND = """
    import zipfile

    def build_wheel(folder, config_settings=None, metadata_directory=None):
        name = "tiny-1-py3-none-any.whl"
        with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
            wheel.write("python/tiny.py", "tiny.py")
            wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
            wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr("tiny-1.dist-info/RECORD", "")
        return name
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits of a package that builds without a network."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("target\n__pycache__\n")
    (tmp_path / "backend.py").write_text(textwrap.dedent(BACKEND))
    lines = ["[build-system]", "requires = []", 'build-backend = "backend"', 'backend-path = ["."]']
    lines += ["[project]", 'name = "tiny"', 'version = "1"']
    (tmp_path / "pyproject.toml").write_text("\n".join(lines))
    (tmp_path / "python").mkdir()
    for value in (1, 2):
        (tmp_path / "python" / "tiny.py").write_text(f"value = {value}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "one")
    return tmp_path


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


@pytest.mark.slow
def test_each_revision_has_a_wheel(repository: Path) -> None:
    offline = ["--no-build-isolation", "--no-index"]
    source = repository / "python" / "tiny.py"
    first, second = (wheels.of_revision(revision, repository, offline) for revision in ("HEAD~1", "HEAD"))
    assert [(folder / "tiny.py").read_text() for folder in (first, second)] == ["value = 1\n", "value = 2\n"]
    assert not (first.parent / "source").exists()
    before = (first / "tiny.py").stat().st_mtime_ns
    assert wheels.of_revision("HEAD~1", repository, offline) == first
    assert (first / "tiny.py").stat().st_mtime_ns == before  # it is built once
    assert source.read_text() == "value = 2\n"
    source.write_text("value = 3\n")
    assert (wheels.of_checkout(repository, offline) / "tiny.py").read_text() == "value = 3\n"


def test_the_revision_that_is_checked_out(repository: Path) -> None:
    assert wheels.is_checked_out("HEAD", repository)
    assert not wheels.is_checked_out("HEAD~1", repository)
    (repository / "notes.txt").write_text("no part of the wheel")
    assert wheels.is_checked_out("HEAD", repository)
    (repository / "python" / "new.py").write_text("")
    assert not wheels.is_checked_out("HEAD", repository)


@pytest.mark.parametrize("revision", ["no-such-revision", "--output=x"])
def test_an_unknown_revision_is_named(repository: Path, revision: str) -> None:
    with pytest.raises(SystemExit, match=revision):
        wheels.of_revision(revision, repository)
