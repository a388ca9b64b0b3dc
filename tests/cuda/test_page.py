"""docs/gpu.md states what is proved, by tests that exist."""

import gpu_table


def test_the_page_states_the_table() -> None:
    page = gpu_table.PATH.read_text(encoding="utf-8")
    expected = f"{gpu_table.BEGIN}{gpu_table.table()}{gpu_table.END}"
    assert expected in page, "python tools/gpu_table.py prints the page anew"


def test_every_named_test_exists() -> None:
    assert gpu_table.missing() == []
