"""The combinations of a test's parameters that cover each value of each parameter."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from combinations import covering

pytest_plugins = ["pytester"]

TESTS = """
    import pytest

    @pytest.mark.parametrize("a", range(5))
    @pytest.mark.parametrize("b", "xyz")
    @pytest.mark.parametrize("c", [[1], {2: 3}])
    def test_of_three(a, b, c): ...

    @pytest.mark.parametrize("a", range(7))
    def test_of_one(a): ...

    def test_of_none(): ...
"""


def test_every_value_is_in_the_sample(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        from combinations import covering

        @pytest.hookimpl(wrapper=True)
        def pytest_generate_tests(metafunc):
            yield
            metafunc._calls[:] = covering(metafunc._calls, metafunc.definition.nodeid)
        """
    )
    pytester.makepyfile(TESTS)
    items, _ = pytester.inline_genitems()
    chosen = [item.name for item in items]
    of_three = [name.removeprefix("test_of_three[").removesuffix("]").split("-") for name in chosen if "three" in name]
    values = [set(column) for column in zip(*of_three, strict=True)]
    assert [len(column) for column in values] == [2, 3, 5]
    assert 5 <= len(of_three) < 12
    assert sum("of_one" in name for name in chosen) == 7
    assert "test_of_none" in chosen


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The parameters of one item."""

    id: str
    params: dict[str, Any]


def of_many() -> list[Parameters]:
    """The combinations of 20 values of two parameters."""
    return [Parameters(f"{a}-{b}", {"a": a, "b": b}) for a, b in itertools.product(range(20), repeat=2)]


def test_the_sample_is_the_same_each_time() -> None:
    assert covering(of_many(), "test.py::test_it") == covering(of_many(), "test.py::test_it")
