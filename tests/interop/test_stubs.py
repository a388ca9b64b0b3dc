"""The type stubs that editors read are those of the names that there are."""

from __future__ import annotations

import pytest

import stubs


@pytest.mark.parametrize("name", stubs.HEADS)
def test_the_stub_is_printed_from_the_table(name: str) -> None:
    pytest.importorskip(name)
    assert stubs.path(name).read_text() == stubs.stub(name), "python tools/stubs.py"
