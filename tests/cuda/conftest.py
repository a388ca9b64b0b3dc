"""Fixtures of tests of CUDA devices: a driver whose calls are recorded, in place of the real one or before it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import executor
import pytest
from mock_driver import MockDriver

from oxigrad.cuda import driver


@pytest.fixture(scope="session")
def fake_driver(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The driver of `libcuda/` in this process, with --fake-driver; None without."""
    if not request.config.getoption("--fake-driver"):
        yield None
        return
    from fake_driver import FakeDriver

    with pytest.MonkeyPatch.context() as patch:
        yield FakeDriver(patch)


@pytest.fixture
def mock(request: pytest.FixtureRequest, fake_driver: Any) -> Iterator[Any]:
    """A driver whose kernels run on the host; with --gpu the real one, with --fake-driver that of `libcuda/`, whose calls are recorded too."""
    if not (request.config.getoption("--gpu") or fake_driver):
        if executor.COMPILER is None:
            pytest.skip("g++ is missing")
        with driver.replaced(MockDriver()) as made:
            yield made
        return
    if marker := request.node.get_closest_marker("mock_only"):
        pytest.skip(f"by the mock driver only: {marker.args[0]}")
    import hardware

    no_faults = fake_driver.without_faults if fake_driver else contextlib.nullcontext
    with no_faults(), hardware.driver_and_arrays() as made, no_faults():
        if made.devices < 2 and request.node.get_closest_marker("two_devices"):
            pytest.skip("needs two devices")
        yield made
