"""The sample of the combinations of a test's parameters that `make test` takes, and the share of the others."""

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

    @pytest.mark.parametrize("a", range(20))
    @pytest.mark.parametrize("b", range(20))
    def test_of_many(a, b): ...
"""


def names(pytester: pytest.Pytester, choice: str = "covering(items)") -> list[str]:
    """The tests of the file that are collected by a choice."""
    pytester.makeconftest(
        f"""
        import pytest
        from combinations import covering, share

        @pytest.hookimpl(wrapper=True)
        def pytest_pycollect_makeitem(collector, obj):
            items = yield
            return {choice} if isinstance(items, list) else items
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


def test_the_share_has_the_sample_and_moves_on_with_the_revision(pytester: pytest.Pytester) -> None:
    every, sample = set(names(pytester, "items")), set(names(pytester))
    shares = [set(names(pytester, f"share(items, 'revision {number}')")) for number in range(40)]
    assert all(sample <= each <= every for each in shares)
    assert all(len(each - sample) < len(every - sample) / 4 for each in shares)
    assert set().union(*shares) == every
    assert shares[0] == set(names(pytester, "share(items, 'revision 0')"))
