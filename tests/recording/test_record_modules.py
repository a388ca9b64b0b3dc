"""Modules as attributes of objects: they are guarded by identity, and what a function reads of them is a constant, which is audited."""

from __future__ import annotations

import dataclasses
import math
import random
import time
import types
from typing import Any

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from oxigrad import xp

X = np.linspace(0.1, 0.9, 5)


class Plain:
    """An object that is no tree."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.weight = lib, np.arange(5.0)

    def __call__(self, x: Any) -> Any:
        return self.lib.sum(self.lib.exp(x) * self.weight)


@dataclasses.dataclass
class Tree:
    """A tree, of which the module is a leaf."""

    lib: Any
    weight: Any = dataclasses.field(default_factory=lambda: np.arange(5.0))

    __call__ = Plain.__call__


class Holder:
    """An object with a module that its functions may read."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib


@pytest.mark.parametrize("make", [Plain, Tree])
@pytest.mark.parametrize("lib", [xp, np], ids=["xp", "np"])
def test_an_object_with_an_array_library_is_recorded(make, lib):
    model = make(lib)
    for f in (model, lambda x: model(x) * 2, model.__call__, *([] if lib is np else [ox.value_and_grad(model)])):
        g = ox.record(f)
        for scale in (1.0, 1.0, -2.0):
            assert agrees(g, f, X * scale)
        assert g.why is None


def test_an_argument_with_a_module_is_recorded_once_for_each_module():
    def f(model: Any, x: Any) -> Any:
        return model(x)

    g = ox.record(f)
    for lib in (xp, np, xp, np):
        assert agrees(g, f, Tree(lib), X)
    assert len(g.recordings) == 2
    assert g.why is None


@pytest.mark.parametrize("make", [Plain, Tree])
def test_another_module_is_another_recording(make):
    other = types.ModuleType("other")
    other.__dict__.update(sum=np.max, exp=np.log)
    model = make(np)
    g = ox.record(lambda x: model(x))
    for lib in (np, other, np):
        model.lib = lib
        for _ in range(3):
            assert agrees(g, model, X)


def user_module(**attributes: Any) -> types.ModuleType:
    module = types.ModuleType("of_the_user")
    vars(module).update(attributes)
    return module


def test_what_a_function_reads_of_a_users_module_is_audited():
    inner = user_module(rate=2.0)
    module = user_module(scale=np.ones(5), unread=1, inner=inner)
    exec("def apply(x):\n    return x * scale\n", vars(module))  # noqa: S102 - a module of this test's own
    held = Holder(module)

    def f(x: Any) -> Any:
        return held.lib.apply(x) * held.lib.inner.rate

    g = ox.record(f, audit="always")
    for at in range(3):
        assert agrees(g, f, X + at)
    assert g.why is None
    vars(module)["unread"] = 2
    assert agrees(g, f, X)
    assert g.why is None
    for change in (
        lambda: vars(inner).update(rate=3.0),
        lambda: vars(module)["scale"].fill(4.0),
        lambda: vars(module).update(apply=lambda x: x + 1.0),
        lambda: vars(module).update(inner=user_module(rate=-1.0)),
    ):
        change()
        with pytest.raises(ox.StaleRecordingError):
            g(X)
        for at in range(3):
            assert agrees(g, f, X + at)


IMPURE = {
    "the clock": (time, lambda held, x: x * held.lib.time()),
    "random numbers": (random, lambda held, x: x * held.lib.random()),
    "random numbers of NumPy": (np.random, lambda held, x: x * held.lib.normal()),
    "a module inside": (user_module(clock=time), lambda held, x: x * held.lib.clock.perf_counter()),
}


@pytest.mark.parametrize("name", IMPURE)
def test_functions_that_differ_from_themselves_are_refused(name):
    module, function = IMPURE[name]
    held = Holder(module)
    g = ox.record(lambda x: function(held, x))
    for _ in range(3):
        g(X)
    assert g.recordings == []
    assert "the same bits" in str(g.why)


@pytest.mark.parametrize("module", [time, random, math, np.random], ids=lambda module: module.__name__)
def test_a_module_that_is_not_read_does_not_matter(module):
    held: Any = Holder(module)
    held.scale = np.full(5, 3.0)

    def f(x: Any) -> Any:
        return xp.sum(x * held.scale)

    g = ox.record(f)
    for _ in range(3):
        assert agrees(g, f, X)
    assert g.why is None
