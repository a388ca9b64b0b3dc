"""Functions under the names of other libraries: each form of the table, in each space."""

import pytest

import forms
import function_table
import oxigrad as ox
import standard
from forms import Form, Section


@pytest.mark.filterwarnings("ignore")  # as those of NumPy's functions of NaN
@pytest.mark.parametrize(("section", "space", "form"), forms.cases(function_table.SECTIONS))
@pytest.mark.one_in(2)
def test_a_form_has_the_value_and_the_derivatives_that_the_table_says(section: Section, space: str, form: Form) -> None:
    for call in form.calls:
        forms.check(form, call, section.spaces[space], section.own)


def test_names_are_unique() -> None:
    for section in function_table.SECTIONS:
        names = [form.name for form in section.forms]
        assert sorted(set(names)) == sorted(names)


def test_the_page_is_printed_from_the_catalogue() -> None:
    assert function_table.NUMPY.path.read_text() == function_table.NUMPY.text()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries that orders are measured over
def test_the_catalogue_has_the_forms() -> None:
    assert [*ox.support(origin="NumPy")] == [*function_table.catalogue({"NumPy": function_table.SECTIONS}, {})]


def test_the_catalogue_has_the_functions_of_the_standard(library) -> None:
    names = sorted(standard.names(library("array_api_strict")))
    rows = ox.support(origin="Array API")
    known = {name: dict(row.libraries) for name, row in zip(names, rows, strict=True)}
    assert [*rows] == [*function_table.catalogue({}, known)]
    assert all({"numpy", "torch", "jax"} <= {*row.libraries} for row in rows if row.order)


def test_a_wrong_derivative_is_found() -> None:
    wrong = Form("wrong", ("np.real(ox.stop_gradient(x)) + 0.0 * x",))
    space = {**forms.SPACES["np.*"], "ox": ox}
    order, error = forms.reached(wrong, space, space)
    assert order == -1 and "derivative" in error


def test_a_row_that_claims_plain_values_is_checked() -> None:
    wrong = Form("wrong", ("np.sin(x)",), reason="a step", order=0)
    space = forms.SPACES["np.*"]
    assert forms.reached(wrong, space, space)[0] == -1
    refused = Form("refused", ("np.sin(x)",), reason="no", refused=True, order=0)
    assert forms.reached(refused, space, space)[0] == -1
