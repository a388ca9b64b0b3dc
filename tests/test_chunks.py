"""The distribution of tests over processes (`tests/tables/chunks.py`)."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import pytest

    @pytest.mark.parametrize("a", range(100))
    def test_of_many(a): ...

    @pytest.mark.parametrize("a", range(40))
    @pytest.mark.xdist_group("together")
    def test_of_a_group(a):
        assert a != 7
"""


@pytest.mark.slow
def test_all_run_once_and_groups_in_one_process(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makeconftest(
        """
        import pytest
        from chunks import ChunkScheduling
        from groups import name_groups

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(config, items):
            if config.getoption("loadgroup", default=False):
                name_groups(items)

        def pytest_xdist_make_scheduler(config, log):
            return ChunkScheduling(config, log)
        """
    )
    pytester.makeini(f"[pytest]\npythonpath = {Path(__file__).parent / 'tables'}")
    pytester.makepyfile(TESTS)
    ran = pytester.runpytest_subprocess("-v", "--numprocesses=2", "--dist=loadgroup", "-p", "no:rerunfailures")
    ran.assert_outcomes(passed=139, failed=1)
    lines = [re.match(r"\[(gw\d)\].* (PASSED|FAILED) \S+::(\w+)", line) for line in ran.outlines]
    processes = collections.defaultdict(collections.Counter)
    for line in filter(None, lines):
        processes[line[3]][line[1]] += 1
    assert len(processes["test_of_a_group"]) == 1
    assert len({name for counts in processes.values() for name in counts}) == 2
