"""NumPy's functions of variables, called with the defaults of all keywords that a form leaves out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import forms
import forms_numpy
import oxigrad as ox
from forms import Form, Section
from oxigrad import xp


class Explicit:
    """NumPy, or a part of it, whose functions are called with their defaults."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._module, name)
        if inspect.ismodule(own):
            return Explicit(own)
        return _explicit(own) if inspect.isroutine(own) and _defaults(own) else own


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters that can be passed by name, with their defaults."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    absent = (inspect.Parameter.empty, np._NoValue)
    return {p.name: p.default for p in parameters if p.kind in by_name and p.default not in absent}


def _explicit(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **named: Any) -> Any:
        given = inspect.signature(function).bind(*args, **named).arguments
        return function(*args, **named, **{k: v for k, v in _defaults(function).items() if k not in given})

    return called


CASES = [
    pytest.param(section, form, id=form.name)
    for section in forms_numpy.SECTIONS
    for form in section.forms
    if "np.*" in section.spaces and not form.refused
]


@pytest.mark.filterwarnings("ignore")  # as those of NumPy's functions of NaN
@pytest.mark.parametrize(("section", "form"), CASES)
def test_a_default_passed_by_name_changes_nothing(section: Section, form: Form) -> None:
    space = section.spaces["np.*"]
    for call in form.calls:
        explicit, args = forms.function(call, {**space, "np": Explicit(np), "xp": xp})
        try:
            expected = forms.parts(explicit(*args))
        except (TypeError, ValueError):  # some of NumPy's defaults may not be passed
            continue
        found = forms.parts(ox.vjp(explicit, *args)[0])
        assert len(found) == len(expected)
        for part, other in zip(found, expected, strict=True):
            if isinstance(part, (np.dtype, type)):
                assert part == other
            else:
                np.testing.assert_allclose(part, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_defaults_hold_where_the_library_requires_the_argument(library: str) -> None:
    made = pytest.importorskip(library)
    x = made.ones((2, 3))
    assert tuple(xp.linspace(made.asarray(0.0), 1.0).shape) == (50,)
    assert tuple(xp.expand_dims(x).shape) == (1, 2, 3)
    assert tuple(xp.permute_dims(x).shape) == (3, 2)
    assert tuple(xp.squeeze(x[:1]).shape) == (3,)
    with pytest.raises(TypeError, match="reshape"):
        xp.reshape(x)
