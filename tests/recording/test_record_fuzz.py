"""Random programs: the first call, each replay and each audit give the bits of the function, and arguments stay what they are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import random_programs
from test_record import equal

import oxigrad as ox

PROGRAMS = 150
# Arguments of calls: the recorded ones come back after others.
ORDER = [0, 1, 2, 0, 3, 2]


@pytest.fixture(autouse=True)
def _without_warnings():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("seed", [*range(PROGRAMS), 110_415])  # and one that once differed
def test_random_programs_have_their_bits(seed: int) -> None:
    f, calls = random_programs.function(seed), random_programs.arguments(seed)
    try:
        expected = [f(*args) for args in calls]
    except (ox.ArrayMemoryError, ox.DerivativeError, TypeError) as error:
        pytest.skip(f"no program: {error}")
    g: Any = ox.record(f, limit=20, audit="never" if seed % 3 else "powers")
    for at in ORDER:
        before = [np.array(arg) for arg in calls[at]]
        assert equal(g(*calls[at]), expected[at]), (random_programs.source(seed), at, g)
        assert all(map(np.array_equal, before, calls[at]))
    assert g.replays or g._refused or g._refusal, g


@pytest.mark.parametrize("seed", range(12))
def test_a_random_generator_is_an_argument_that_is_drawn_from_once(seed: int) -> None:
    base, calls = random_programs.function(seed), random_programs.arguments(seed)

    def f(x: Any, y: Any, v: Any, s: Any, rng: np.random.Generator) -> Any:
        return base(x, y, v * rng.normal(size=v.shape).astype(v.dtype), s)

    g: Any = ox.record(f)
    ours, its = np.random.default_rng(seed), np.random.default_rng(seed)
    for at in ORDER:
        assert equal(g(*calls[at], ours), f(*calls[at], its))
    assert "Generator" in str(g.why)
