"""The catalogue of functions: what it answers, and the names that it has."""

from typing import Any

import numpy as np
import pytest

import forms
import forms_numpy
import forms_over
import libraries
import oxigrad as ox
from oxigrad import xp
from oxigrad.autodiff.inspection import support
from oxigrad.autodiff.inspection.support import Catalogue, Support


def test_the_file_is_read_as_it_was_written() -> None:
    assert support.written(support.read(support.FILE)) == support.FILE.read_text()


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({"origin": "SciPy"}, lambda row: row.origin == "SciPy"),
        ({"order": 2}, lambda row: row.order == 2),
        ({"mode": "forward"}, lambda row: "forward" in row.modes),
        ({"library": "jax", "order": 1}, lambda row: row.libraries["jax"] >= 1),
        ({"function": "erf"}, lambda row: row.function in ("erf", "special.erf")),
    ],
)
def test_rows_are_those_that_were_asked_for(asked: dict[str, Any], holds: Any) -> None:
    rows = ox.support(**asked)
    assert rows and all(map(holds, rows))
    assert len(rows) == sum(
        map(holds, (row for row in ox.support() if "jax" in row.libraries or "library" not in asked))
    )


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="'sni'"):
        ox.support("sni")
    with pytest.raises(KeyError, match="'tensorflow': expected one of .*jax"):
        ox.support(library="tensorflow")


def test_every_row_without_derivatives_has_a_reason_and_no_mode() -> None:
    assert [row.function for row in ox.support() if not row.order and (not row.reason or row.modes)] == []
    assert all(row.modes == ("forward", "reverse") for row in ox.support(order=1))


def named(row: Support) -> Any:
    """The function of `xp` that a row is of."""
    found: Any = xp
    for part in row.function.split("."):
        found = getattr(found, part, None)
    return found


def test_functions_of_the_catalogue_are_in_xp() -> None:
    rows = [row for row in ox.support(order=1) if row.origin == "Array API" or "xp.*" in row.spaces]
    assert len(rows) > 400 and [row.function for row in rows if named(row) is None] == ["out"]  # a keyword


@pytest.mark.parametrize("part", ["fft", "integrate", "interpolate", "ndimage", "signal", "special", "stats"])
def test_functions_of_parts_of_xp_are_in_the_catalogue(part: str) -> None:
    module, rows = getattr(xp, part), {row.function for row in ox.support()}
    assert [name for name in dir(module) if f"{part}.{name}" not in rows] == []


@pytest.mark.parametrize("name", ["sin", "median", "special.erf", "linalg.det"])
def test_a_function_with_derivatives_has_them(name: str) -> None:
    point: Any = np.eye(3) * 2.0 if name == "linalg.det" else np.array([0.3, 0.1, 0.7])
    rows = ox.support(name)
    assert rows[0].order == 2
    gradient = ox.grad(lambda x: xp.sum(named(rows[0])(x)))(point)
    assert gradient.shape == point.shape and np.any(gradient != 0.0)


def test_it_is_shown_as_a_table() -> None:
    rows = ox.support("argmax")
    assert isinstance(rows, Catalogue) and isinstance(rows[:1], Catalogue) and isinstance(rows[0], Support)
    assert "gives whole numbers" in repr(rows) and "<td>argmax</td>" in rows._repr_html_()
    assert "more, see table()" in repr(ox.support()) and len(ox.support().table().rows) == len(ox.support())
    assert max(map(len, ox.support().table().splitlines())) <= 100


@pytest.mark.filterwarnings("ignore")  # of PyTorch, where a form mixes its tensors with arrays of NumPy
def test_orders_of_names_of_numpy_and_scipy_over_pytorch() -> None:
    pytest.importorskip("torch")
    scipy_forms = pytest.importorskip("forms_scipy")
    found = {
        (origin, form.name): (form, section)
        for origin, sections in {"NumPy": forms_numpy.SECTIONS, "SciPy": scipy_forms.SECTIONS}.items()
        for section in sections
        for form in section.forms
    }
    rows = [row for row in ox.support(library="torch", order=1) if row.origin != "Array API"]
    assert len(rows) > 400
    for row in rows[::60]:
        form, section = found[row.origin, row.function]
        assert forms_over.order(form, section, libraries.named("torch")) == row.libraries["torch"], row.function


def test_a_function_that_fails_over_a_library_has_no_order_there() -> None:
    torch = libraries.named("torch")
    section = forms.Section("", tuple(forms.read("np.sum(x, axis=1)\nnp.sum(x, dtype=np.longdouble)")))
    pytest.importorskip("torch")
    assert [forms_over.order(form, section, torch) for form in section.forms] == [2, None]
