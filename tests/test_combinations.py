"""The sample of the combinations of a test's parameters that `make test` takes."""

from __future__ import annotations

import pytest

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


def names(pytester: pytest.Pytester) -> list[str]:
    """The tests of the file that are collected with ``covering``."""
    pytester.makeconftest(
        """
        import pytest
        from combinations import covering

        @pytest.hookimpl(wrapper=True)
        def pytest_pycollect_makeitem(collector, obj):
            made = yield
            return covering(made) if isinstance(made, list) else made
        """
    )
    pytester.makepyfile(TESTS)
    items, _ = pytester.inline_genitems()
    return [item.name for item in items]


def test_every_value_is_in_the_sample(pytester: pytest.Pytester) -> None:
    chosen = names(pytester)
    of_three = [name.removeprefix("test_of_three[").removesuffix("]").split("-") for name in chosen if "three" in name]
    values = [set(column) for column in zip(*of_three, strict=True)]
    assert [len(column) for column in values] == [2, 3, 5]
    assert 5 <= len(of_three) < 12
    assert sum("of_one" in name for name in chosen) == 7
    assert "test_of_none" in chosen


def test_the_sample_is_the_same_each_time(pytester: pytest.Pytester) -> None:
    assert names(pytester) == names(pytester)
