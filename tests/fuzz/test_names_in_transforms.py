"""Public names under every composition of transforms: values are those of the same call without, derivatives those of a loop."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import compositions
import forms_numpy
from forms import Form, Section

CALLS = 250
# Whose sines of large coefficients have no digits, and one whose shape depends on a value.
LEFT_OUT = {("poly", "hessian"), *(("arange", name) for name in compositions.COMPOSITIONS)}


def drawn(seed: int) -> tuple[Section, Form, str]:
    """A form and a composition."""
    choice = random.Random(seed)
    section = choice.choices(forms_numpy.SECTIONS, [len(section.forms) for section in forms_numpy.SECTIONS])[0]
    return section, choice.choice(section.forms), choice.choice([*compositions.COMPOSITIONS])


def faults(seed: int) -> Iterator[str]:
    """The faults of the calls of a form, under both names, in a composition."""
    section, form, name = drawn(seed)
    if (form.name, name) in LEFT_OUT:
        return
    for title, call, f, args, reference in compositions.calls(section, form):
        if args and (what := compositions.fault(name, f, args, reference)):
            yield f"seed {seed}: {title}, {call}, {name}: {what}"


def seeds(seconds: float | None) -> Iterator[int]:
    """The seeds of the calls: always the same ones, or new ones for so long."""
    if seconds is None:
        yield from range(CALLS)
        return
    start = time.time()
    seed = int(start)
    while time.time() - start < seconds:
        yield (seed := seed + 1)


def test_public_names_under_every_composition(request: pytest.FixtureRequest) -> None:
    found: list[Any] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds(request.config.getoption("--fuzz-seconds")):
            found += faults(seed)
    assert not found, "\n".join(found[:10])
