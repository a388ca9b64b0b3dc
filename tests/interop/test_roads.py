"""The table of docs/libraries.md: how a step of each optimizer is computed over each library, compared with measurement."""

from __future__ import annotations

import doctest
import warnings

import pytest

import optimizer_tables


@pytest.mark.parametrize("column", optimizer_tables.COLUMNS, ids=lambda column: column.title)
def test_the_page_states_the_road_of_each_optimizer(column: optimizer_tables.Column) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ndonnx warns that it would rather have a runtime
        pytest.importorskip(column.module)
    stated = {name: cells[column.title] for name, cells in optimizer_tables.stated_roads().items()}
    assert stated == optimizer_tables.roads_over(column), "make generated"


def test_the_table_is_as_it_is_printed() -> None:
    assert optimizer_tables.roads_table(optimizer_tables.stated_roads()) == optimizer_tables.ROADS.printed()


def test_a_road_that_is_not_that_of_the_page_is_found() -> None:
    column = optimizer_tables.COLUMNS[0]
    adam = optimizer_tables.optimizers()["Adam"]
    assert column.measured(adam())[0] == "Rust"
    assert column.measured(optimizer_tables.optimizers()["SOAP"]())[0] == "rule"


def test_the_examples_of_the_page() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in ("array_api_strict", "dask.array", "mlx.core", "ndonnx", "onnx.reference"):
            pytest.importorskip(module)
        _, *rest = optimizer_tables.ROADS.path.read_text().split("```python\n")
        blocks = "\n".join(block.partition("```")[0] for block in rest)
        examples = doctest.DocTestParser().get_doctest(blocks, {}, "libraries.md", None, None)
        report: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=report.append)
    assert not report, "".join(report)
