"""The figures of README.md and of the first page of the site are those of the files of measurements."""

import re
from pathlib import Path

import pytest

import figures
from oxigrad.optim.table.row import TABLE
from printed_tables import PrintedTable

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.path.name)
def test_the_figures_of_a_page_are_those_of_the_records(page: PrintedTable) -> None:
    assert page.printed() == f"{figures.block(figures.PAGES[page])}\n", "make generated"


def test_the_picture_shows_the_records() -> None:
    text = figures.PICTURE.read_text()
    assert text == figures.picture()
    assert re.findall(r'font-weight="600" fill="#1f2430">([\d.]+x)<', text) == [
        figures.times(ratio) for *_, ratio in figures.figures()
    ]


def test_the_figures_have_a_machine_and_a_day() -> None:
    assert re.fullmatch(r".+ \(family \d+, model \d+\), \d+ threads, \d{4}-\d\d-\d\d", figures.machine())
    assert all(len(row) == 3 and row[2] > 0 for row in figures.figures())


def test_ratios_in_words() -> None:
    assert [figures.times(ratio) for ratio in (0.84, 1.25, 9.96, 13.97)] == ["0.8x", "1.2x", "10x", "14x"]


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        PrintedTable("index.md", "nonesuch").print("")


def test_the_readme_counts_the_optimizers() -> None:
    fused = sum(row.optimizer._rule.elementwise for row in TABLE.values())
    assert f"[{len(TABLE)} optimizers]" in README and f"| fused optimizers on the CPU | **{fused}** |" in README


def test_the_readme_has_no_other_figure_of_speed() -> None:
    before, _, rest = README.partition("<!-- figures, printed by make generated -->")
    text = before + rest.partition("<!-- end -->")[2]
    assert not re.findall(
        r"\d+(?:\.\d+)? ?(?:x\b(?! @)|times\b|%|ms\b|us\b)",
        re.sub(r"```.*?```|\(https[^)]*\)", "", text, flags=re.DOTALL),
    )
