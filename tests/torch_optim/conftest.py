"""Fixtures of tests of `oxigrad.torch`: the device on which they create tensors, the host's or, with --gpu, a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest


class CardOnly:
    """A GPU in the place of a `LateDevice`: what tests ask of a device in host memory alone skips them."""

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"by a device in host memory only: its {name!r} is asked for")


@pytest.fixture
def default_device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The device on which PyTorch creates tensors; those of modules that ask for it run with --gpu too."""
    torch = pytest.importorskip("torch")
    if not request.config.getoption("--gpu"):
        yield torch.get_default_device()
        return
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    if re.search("sparse_?adam", request.node.name, re.IGNORECASE):
        pytest.skip("SparseAdam updates tensors in host memory")
    torch.set_default_device("cuda")
    try:
        yield torch.get_default_device()
    finally:
        torch.set_default_device(None)


@pytest.fixture
def device(default_device: Any) -> Iterator[Any]:
    """The device of parameters: one in host memory, whose copies end late, or the GPU."""
    if default_device.type != "cpu":
        yield CardOnly()
        return
    from late_device import late_device

    with late_device() as made:
        yield made
