"""The ten programs of the gallery, written as NumPy is: their gradients by central differences, and the lines that had to change."""

from __future__ import annotations

import runpy
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad.testing import check_grads

GALLERY = Path(__file__).parent.parent / "examples" / "gallery"
PROGRAMS = sorted(file.stem for file in GALLERY.glob("*.py"))
CHANGED = "  # changed: "
# Programs that neither fill an array of zeros nor call functions of SciPy's: they run under NumPy's own names, too.
PLAIN = {"crf", "hierarchical_logistic", "phase_retrieval"}

# What the others need under NumPy's own names: `like=` where an array is filled, and `xp.linalg` for SciPy's functions.
LIKE = {
    "fdfd": {"np.ones((N, N))": "np.ones((N, N), like=design)"},
    "gaussian_process": {"from scipy import linalg": "from oxigrad.xp import linalg"},
    "kalman_filter": {"F = np.eye(2)": "F = np.eye(2, like=params)"},
    "n_body": {"np.empty((STEPS, BODIES, 2))": "np.empty((STEPS, BODIES, 2), like=velocities)"},
    "neural_ode": {"np.zeros(DATA.shape)": 'np.zeros(DATA.shape, like=params["w1"])'},
    "tight_binding": {"np.zeros((2, 2), dtype=complex)": "np.zeros((2, 2), dtype=complex, like=params)"},
    "topology": {
        "np.zeros((size, size))": "np.zeros((size, size), like=density)",
        "u = np.zeros(size)": "u = np.zeros(size, like=density)",
    },
}


def program(name: str) -> dict[str, Any]:
    return runpy.run_path(str(GALLERY / f"{name}.py"))


def under_numpy(name: str, *, likes: bool = False) -> dict[str, Any]:
    """The program with NumPy's own names, and with the lines that were changed as they were, or with the lines of `LIKE`."""
    text = (GALLERY / f"{name}.py").read_text().replace("from oxigrad import xp as np", "import numpy as np")
    text = "\n".join(line.partition(CHANGED)[2] or line for line in text.splitlines())
    for line, change in LIKE[name].items() if likes else ():
        assert text.count(line) == 1
        text = text.replace(line, change)
    module = types.ModuleType(name)
    exec(compile(text, name, "exec"), vars(module))  # noqa: S102 - a program of this repository
    return vars(module)


def test_there_are_ten_programs_of_which_nine_are_unchanged() -> None:
    assert len(PROGRAMS) == 10
    changed = {name for name in PROGRAMS if CHANGED in (GALLERY / f"{name}.py").read_text()}
    assert changed == {"gaussian_process"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_central_differences(name: str) -> None:
    module = program(name)
    start = module["start"]()
    check_grads(module["loss"], (start,), order=1, modes=("rev",), tolerance=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_under_numpy(name: str) -> None:
    ours, numpys = program(name), under_numpy(name)
    start = ours["start"]()
    value, gradient = ox.value_and_grad(ours["loss"])(start)
    np.testing.assert_allclose(value, numpys["loss"](start), rtol=1e-12)
    if name in PLAIN:
        of_numpy = ox.grad(numpys["loss"])(start)
        for one, other in zip(ox.tree.leaves(of_numpy), ox.tree.leaves(gradient), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_under_numpys_own_names_eight_lines_change() -> None:
    assert LIKE.keys() == {*PROGRAMS} - PLAIN
    assert sum(map(len, LIKE.values())) == 8


@pytest.mark.parametrize("name", LIKE)
def test_these_lines_suffice_under_numpys_own_names(name: str) -> None:
    ours, numpys = program(name), under_numpy(name, likes=True)
    start = ours["start"]()
    gradients = (ox.grad(each["loss"])(start) for each in (ours, numpys))
    for one, other in zip(*map(ox.tree.leaves, gradients), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recording_serves_other_arguments(name: str) -> None:
    module = program(name)
    gradient = ox.value_and_grad(module["loss"])
    recorded, start = ox.record(gradient), module["start"]()
    other = ox.tree.map(lambda x: 1.01 * x, start)
    for _ in range(2):  # the first call records, the second one is compared
        recorded(start)
    replays = recorded.replays
    for one, another in zip(ox.tree.leaves(recorded(other)), ox.tree.leaves(gradient(other)), strict=True):
        np.testing.assert_allclose(one, another, rtol=1e-12, atol=1e-14)
    assert recorded.replays == replays + 1 and len(recorded.recordings) == 1


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - PLAIN))
def test_where_numpys_own_names_do_not_suffice_an_error_says_so(name: str) -> None:
    module = under_numpy(name)
    with pytest.raises(TypeError, match="lose its derivative|loses its derivative"):
        ox.grad(module["loss"])(module["start"]())
