"""Public names under every composition of transforms: values are those of the same call without, derivatives those of a loop."""

from __future__ import annotations

import dataclasses
import random
import time
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import compositions
from forms import Form, Section

CALLS = 250
TABLES = ("forms_numpy", "forms_scipy")
# One whose shape depends on a value.
LEFT_OUT = {("arange", name) for name in compositions.COMPOSITIONS}


def drawn(seed: int, sections: list[Section]) -> tuple[Section, Form, str]:
    """A form, one of its calls, and a composition."""
    choice = random.Random(seed)
    section = choice.choices(sections, [len(section.forms) for section in sections])[0]
    form = choice.choice([form for form in section.forms if not form.refused])
    call = choice.choice(form.calls)
    return section, dataclasses.replace(form, calls=(call,)), choice.choice([*compositions.COMPOSITIONS])


def faults(seed: int, sections: list[Section]) -> Iterator[str]:
    """The faults of a call, under both names, in a composition."""
    section, form, name = drawn(seed, sections)
    if (form.name, name) in LEFT_OUT or (name == "hessian" and form.order == 1):
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


@pytest.mark.parametrize("table", TABLES)
def test_public_names_under_every_composition(table: str, request: pytest.FixtureRequest) -> None:
    sections, found = pytest.importorskip(table).SECTIONS, []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds(request.config.getoption("--fuzz-seconds")):
            found += faults(seed, sections)
    assert not found, "\n".join(found[:10])
