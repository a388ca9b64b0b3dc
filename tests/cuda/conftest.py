"""Fixtures of tests of CUDA devices: a mock driver in place of the real one."""

from __future__ import annotations

from collections.abc import Iterator

import executor
import pytest
from mock_driver import MockDriver

from oxigrad.cuda import driver


@pytest.fixture
def mock() -> Iterator[MockDriver]:
    """A driver whose kernels run on the host."""
    if executor.COMPILER is None:
        pytest.skip("g++ is missing")
    with driver.replaced(MockDriver()) as made:
        yield made
