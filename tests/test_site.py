"""The site: what its tools collect is complete. `make docs` builds it, with every warning an error, and opens it in a browser."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
import oxigrad as ox
from oxigrad.optim.table.row import TABLE
from pages import collect, optimizers, programs, reference, tables

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


def test_every_module_of_the_api_is_in_the_reference() -> None:
    named = {f"oxigrad.{name}" for name in ox.__all__ if inspect.ismodule(getattr(ox, name))} - {"oxigrad.state"}
    assert named <= {*reference.MODULES}


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
