"""What all tests share: the libraries that must be there."""

import importlib.util

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        default="",
        metavar="LIBRARY,...",
        help="libraries that must be installed, so that no test of theirs is skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    required = [name for name in config.getoption("--require").split(",") if name]
    missing = [name for name in required if importlib.util.find_spec(name) is None]
    if missing:
        raise pytest.UsageError(f"--require: not installed: {', '.join(missing)}")
