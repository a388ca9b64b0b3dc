"""The site: what its tools collect is complete. `make docs` builds it, with every warning an error, and opens it in a browser."""

import importlib
import inspect
import json
import pydoc
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
import oxigrad as ox
from oxigrad.ops.protocols import arguments
from oxigrad.optim.table.row import TABLE
from pages import check, collect, examples, optimizers, programs, reference, tables

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("module", [name for name in reference.MODULES if name not in reference.READ])
def test_the_reference_has_every_public_name(module: str) -> None:
    if module == "oxigrad.scipy":
        pytest.importorskip("scipy")
    values = importlib.import_module(module)
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


def test_every_entry_of_the_reference_has_two_examples_and_every_error_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    monkeypatch.setattr(reference, "sections", str)  # which needs Sphinx
    shown, rows = examples.table(), tables.support()
    unused, numbers = set(shown), {}
    for module in reference.MODULES:
        for entry in reference.entries(module):
            value = None if module in reference.READ else getattr(importlib.import_module(module), entry.name)
            is_numpys = module == "oxigrad.xp" and reference.is_of_numpy(entry.name, value)
            if is_numpys and not ((row := rows.get(entry.place.removeprefix("xp."))) and row.order):
                continue  # whose documentation the page links, as nothing is added
            has_docstring = not is_numpys and ">>>" in (
                entry.body if module in reference.READ else inspect.getdoc(value) or ""
            )
            unused.discard(entry.place)
            if entry.kind != "data":  # whose page shows its value
                shows = has_docstring + len(shown.get(entry.place, ()))
                numbers[entry.place] = shows + reference.is_error(value)
    assert {place: number for place, number in numbers.items() if number != 2} == {
        "distributed.devices": 0
    }  # needs GPUs
    assert not unused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(examples.table()))
@pytest.mark.one_in(8)
def test_an_example_of_the_reference_runs(name: str) -> None:
    for example in examples.table()[name]:
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
        shown["xp.square"][0]
        .text()
        .endswith(
            ">>> xp.square(x)\narray([1., 4.])\n>>> ox.grad(lambda x: xp.sum(xp.square(x)))(x)\narray([2., 4.])\n"
        )
    )
    assert shown["xp.argmin"][0].text().endswith(">>> xp.argmin(x)\nnp.int64(0)\n")
    with pytest.raises(ValueError, match="broadcast"):  # not the error that is expected
        shown["ShapeError"][0].text()
    assert shown["none"][0].text().endswith(">>> import nonesuch\n>>> nonesuch.f(x)\n")


def test_help_has_a_sentence_for_every_argument_of_functions_of_xp() -> None:
    pytest.importorskip("scipy")
    used = set()
    for module in (each for each in reference.MODULES if each.startswith("oxigrad.xp")):
        for entry in reference.entries(module):
            function = getattr(importlib.import_module(module), entry.name)
            if "autofunction" in entry.body:
                names = [*inspect.signature(function).parameters]
                text = pydoc.plain(pydoc.render_doc(function))
                assert all(re.search(rf"^ *{each}: \S", text, re.MULTILINE) for each in names), entry.place
                rows = [*arguments.rows(module.removeprefix("oxigrad."), entry.name, names)]
                assert [name for name, *_ in rows] == names, entry.place
                used |= {(group, key) for _, group, key in rows}
    table = {(group, key): said for group, rows in arguments.SENTENCES.items() for key, said in rows.items()}
    assert used == table.keys()
    assert all(len(said) >= 20 and said.endswith(".") for said in table.values())


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
    assert all(TABLE[name].valleys for name in optimizers.PANELS) and optimizers.panels().count(":img-bottom:") == 6
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


def test_faults_of_accessibility_are_told() -> None:
    page = '<html><h1>a</h1><h3>b</h3><img src="x"><a href="y"></a><a href="z"><img src="i" alt="t"></a><button></button></html>'
    assert check.Outline(page).faults == [
        "a picture without a text: x",
        "a link without a name: y",
        "a button without a name: ",
        "no language",
        "a heading of level 3 below one of level 1",
    ]
    assert not check.Outline('<html lang="en"><h1>a</h1><h2>b</h2><a href="y">c</a></html>').faults


def test_contrasts_are_those_of_the_web_guidelines() -> None:
    assert check.contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert check.contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert not [*check.faint((Path(check.__file__).parent / "static" / "oxigrad.css").read_text(), check.GROUNDS)]
    assert len([*check.faint('html[data-theme="dark"] { --pst-color-link: #333333; }', check.GROUNDS)]) == 1


def test_colours_of_code_have_the_contrast_of_the_web_guidelines() -> None:
    comment = 'html[data-theme="light"] .highlight .c { color: %s; font-style: italic }'
    assert [*check.faint(comment % "#60A0B0", check.CODE_GROUNDS)] == [
        ".highlight .c color has a contrast of 2.7 in the light theme"
    ]
    assert not [*check.faint(comment % "#333", check.CODE_GROUNDS)]
    marked = 'html[data-theme="dark"] .special { color: #000000; background-color: #ffffc0; }'
    assert not [*check.faint(marked, check.CODE_GROUNDS)]


def test_excerpts_are_the_first_paragraphs() -> None:
    pytest.importorskip("sphinx")
    from pages import build

    text = (
        "---\norphan: true\n---\n# Title\n\n```python\n>>> 1\n```\n\nOne *word* and [a link](b.md) of `code`.\n\nMore."
    )
    assert build.excerpt(text) == "One word and a link of code."
    assert build.excerpt("# Title\n\n" + "word " * 60).endswith("word ...")
    entries = {"oxigrad.tree": reference.entries("oxigrad.tree")}
    assert ("map", "map") in build.names(entries)["reference/oxigrad.tree"]
    assert ("AdamW", "AdamW") in build.names(entries)["gallery"]


def test_a_search_ranks_titles_and_shows_no_page_twice() -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("needs node")
    script = Path(check.__file__).parent / "static" / "search.js"
    titles = {
        "ClipByNorm": "/a",
        "Gradients": "/g",
        "Clip gradients": "/c",
        "Clip gradients > chains": "/c",
        "Clip": "/d",
    }
    results = json.dumps([{"title": title, "page": page} for title, page in titles.items()])
    program = f"const {{ ranked }} = require({json.dumps(str(script))});"
    program += f"console.log(JSON.stringify(ranked({results}, 'clip gradient').map((each) => each.page)))"
    found = subprocess.run([node, "-e", program], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(found.stdout) == ["/c", "/a", "/g", "/d"]
