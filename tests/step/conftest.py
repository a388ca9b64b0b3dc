"""The ways to an optimizer's step as a fixture, and the sizes of pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from doors import DOORS, OPTIMIZERS, Door, Values, drawn
from oxigrad.step.placement import ring


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Callable[..., Door]:
    """Each way to a step in turn, as a function of the optimizer's name."""
    kind, module = DOORS[request.param]
    pytest.importorskip(module)

    def made(name: str, values: Values | None = None, arguments: Mapping[str, Any] | None = None, **how: Any) -> Door:
        return kind(name, OPTIMIZERS.get(name, {}) if arguments is None else arguments, values or drawn(0), **how)

    return made


@pytest.fixture(params=[1 << 25, 64], ids=["one piece", "pieces"])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of a piece of the state in host memory: of all parameters, or of few numbers."""
    for limit in ("SMALLEST", "LARGEST"):
        monkeypatch.setattr(ring, limit, request.param)
    return request.param
