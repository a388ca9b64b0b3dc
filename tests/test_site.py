"""The site: what its tools collect is complete. `make docs` builds it, with every warning an error, and opens it in a browser."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
import oxigrad as ox
from oxigrad.optim.table.row import TABLE
from pages import collect, examples, optimizers, programs, reference, tables

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("module", [name for name in reference.MODULES if name not in reference.READ])
def test_the_reference_has_every_public_name(module: str) -> None:
    if module == "oxigrad.scipy":
        pytest.importorskip("scipy")
    values = reference.resolved(module)
    names = {each.name for each in reference.imported(module)}
    assert names == {
        name
        for name in values.__all__
        if not inspect.ismodule(getattr(values, name)) and f"{module}.{name}" not in reference.MODULES
    }


@pytest.mark.parametrize("module", sorted(reference.READ))
def test_modules_that_are_read_have_the_names_that_they_have_when_they_are_imported(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "sections", str)  # which needs Sphinx
    for library in programs.NEEDED_BY[module]:
        pytest.importorskip(library)
    assert {each.name for each in reference.read(module)} == set(importlib.import_module(module).__all__)


def test_pages_of_one_module_differ_where_case_does_not_count() -> None:
    for module in set(reference.MODULES) - reference.READ - {"oxigrad.scipy"}:
        pages = [each.page.lower() for each in reference.entries(module)]
        assert len(pages) == len({*pages}), module


def test_every_entry_of_the_reference_has_one_example(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    monkeypatch.setattr(reference, "sections", str)  # which needs Sphinx
    shown, rows = examples.table(), tables.support()
    unused, missing, twice = set(shown), [], []
    for module in reference.MODULES:
        for entry in reference.entries(module):
            value = None if module in reference.READ else getattr(reference.resolved(module), entry.name)
            is_numpys = module == "oxigrad.xp" and reference.is_of_numpy(entry.name, value)
            if is_numpys and not ((row := rows.get(entry.place.removeprefix("xp."))) and row.order):
                continue  # whose documentation the page links, as nothing is added
            has_docstring = not is_numpys and ">>>" in (
                entry.body if module in reference.READ else inspect.getdoc(value) or ""
            )
            is_constant = entry.kind == "data"  # whose page shows its value
            if not (has_docstring or is_constant or entry.place in shown):
                missing.append(entry.place)
            if has_docstring and entry.place in shown:
                twice.append(entry.place)
            unused.discard(entry.place)
    assert missing == ["distributed.devices"]  # which needs GPUs
    assert not twice
    assert not unused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(examples.table()))
@pytest.mark.slow(one_in=8)
def test_an_example_of_the_reference_runs(name: str) -> None:
    example = examples.table()[name]
    if example.missing():
        pytest.skip(f"needs {example.missing()}")
    text = example.text()
    assert text.startswith(">>> ")
    assert not name.endswith("Error") or "Traceback" in text or "issubclass(" in text


def test_examples_show_results_gradients_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = examples.read(
        "x = np.array([1.0, 2.0])\nxp.square(x)\nxp.{argmax argmin}(x)\nShapeError: xp.add(x, np.ones(3))\nnone: import nonesuch; nonesuch.f(x)"
    )
    assert (
        shown["xp.square"]
        .text()
        .endswith(
            ">>> xp.square(x)\narray([1., 4.])\n>>> ox.grad(lambda x: xp.sum(xp.square(x)))(x)\narray([2., 4.])\n"
        )
    )
    assert shown["xp.argmin"].text().endswith(">>> xp.argmin(x)\nnp.int64(0)\n")
    with pytest.raises(ValueError, match="broadcast"):  # not the error that is expected
        shown["ShapeError"].text()
    assert shown["none"].text().endswith(">>> import nonesuch\n>>> nonesuch.f(x)\n")


def test_every_module_of_the_api_is_in_the_reference() -> None:
    named = {f"oxigrad.{name}" for name in ox.__all__ if inspect.ismodule(getattr(ox, name))} - {"oxigrad.state"}
    assert named <= {*reference.MODULES}


def test_optimizers_of_all_modules_lead_to_their_page() -> None:
    assert [
        reference.described(f"oxigrad.{module}", name) for module, name in (("torch", "AdamW"), ("optax", "adamw"))
    ] == ["AdamW"] * 2
    assert reference.described("oxigrad.optim", "Chain") == reference.described("oxigrad.xp", "SGD") == ""


def test_every_optimizer_has_a_page_that_says_when_to_take_it() -> None:
    assert {*optimizers.CHOICE} == {*TABLE}
    text = optimizers.page("AdamW", TABLE["AdamW"], "AdamW.png")
    assert "8 bytes an element" in text and '`compat="keras"`' in text and "def adamw(" in text and "AdamW.png" in text


def test_tables_of_pages_are_read() -> None:
    assert tables.elsewhere()["jvp"]["JAX"] == ["jax.jvp"]
    assert "torch.func.vjp" in tables.elsewhere()["vjp"]["PyTorch"]
    assert tables.support()["median"].order == 2 and tables.support()["special.erf"].origin == "SciPy"


def test_links_lead_to_pages_of_the_site() -> None:
    found = collect.places()
    text = "[a](../examples/xor.py#b) [c](optimizers.md) [rules](../python/oxigrad/rules) `[d](optimizers.md)` [e](https://example.org)"
    linked = collect.linked(text, DOCS / "jax.md", "jax.md", found)
    assert (
        linked
        == "[a](examples/xor.md#b) [c](optimizers.md) `python/oxigrad/rules` `[d](optimizers.md)` [e](https://example.org)"
    )


PAGE = """# Title

```python
>>> import torch.nn, math
>>> from oxigrad.optax import adam
>>> for i in range(2):
...     print(i)
0
1

```

After.
"""


def test_a_page_becomes_a_notebook(tmp_path: Path) -> None:
    assert programs.needed(PAGE) == {"torch", "jax", "optax"}
    cells = json.loads(json.dumps(programs.notebook(PAGE)))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert cells[1]["source"].endswith("for i in range(2):\n    print(i)")
    assert programs.with_pictures(PAGE, [["a.svg"]], "p").count("(p/a.svg)") == 1


def test_a_program_that_fails_is_told(tmp_path: Path) -> None:
    page = "```python\n>>> import matplotlib.pyplot as plt\n>>> figure = plt.figure()\n>>> 1 + 1\n3\n```\n"
    found = programs.run(page, "page", tmp_path)
    assert "Expected:\n    3\nGot:\n    2" in found["failures"]
    assert found["pictures"] == [["page-0-1.svg"]] and (tmp_path / "page-0-1.svg").exists()
