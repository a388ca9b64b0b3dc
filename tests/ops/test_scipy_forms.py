"""Functions under SciPy's names: each form of the table, in each space."""

import numpy as np
import pytest

import forms
import function_table
import oxigrad as ox
from forms import Call, Form, Section
from oxigrad import xp

scipy = pytest.importorskip("scipy")
import forms_scipy  # noqa: E402


@pytest.mark.filterwarnings("ignore")  # as those of NumPy's functions of NaN
@pytest.mark.parametrize(("section", "space", "form"), forms.cases(forms_scipy.SECTIONS))
@pytest.mark.one_in(8)
def test_a_form_has_the_value_and_the_derivatives_that_the_table_says(section: Section, space: str, form: Form) -> None:
    for call in form.calls:
        forms.check(form, call, section.spaces[space], section.own)


def test_every_name_of_ours_has_one_row() -> None:
    names = [form.name for section in forms_scipy.SECTIONS for form in section.forms]
    assert sorted(set(names)) == sorted(names)
    parts = ("special", "ndimage", "signal", "stats", "integrate", "interpolate")
    ours = {f"{part}.{name}" for part in parts for name in getattr(xp, part).__all__}
    ours |= {f"fft.{name}" for name in xp.fft.__all__ if not hasattr(np.fft, name)}
    ours |= {f"spatial.distance.{name}" for name in xp.spatial.distance.__all__}
    ours |= {
        f"linalg.{name}" for name in xp.linalg.__all__ if hasattr(scipy.linalg, name) and not hasattr(np.linalg, name)
    }
    refused = {form.name for section in forms_scipy.SECTIONS for form in section.forms if form.refused}
    assert set(names) - refused == ours


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries that orders are measured over
def test_the_page_is_printed_from_the_catalogue() -> None:
    assert function_table.SCIPY.path.read_text() == function_table.SCIPY.text()
    assert [*ox.support(origin="SciPy")] == [*function_table.catalogue({"SciPy": forms_scipy.SECTIONS}, {})]


def test_keywords_of_a_call_are_those_that_it_passes() -> None:
    call = Call("ndimage", lambda ndimage, x: ndimage.laplace(x, mode="wrap", cval=1.0), (np.ones((3, 3)),))
    assert Form("laplace", (call,)).keywords == ["cval", "mode"]


def test_a_wrong_derivative_of_a_call_is_found() -> None:
    space = {"scipy": xp}
    wrong = Call("special", lambda special, x: special.erf(x) + x - getattr(x, "value", x), (np.array([0.3, 0.7]),))
    order, error = forms.reached(Form("wrong", (wrong,)), space, space)
    assert order == -1 and "derivative" in error
