"""The orders of derivatives of forms over other array libraries: to which gradients of all calls are those over NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import forms
import oxigrad as ox
from forms import Call, Form, Section
from libraries import Library, host
from oxigrad import xp

Space = Mapping[str, Any]


def order(form: Form, section: Section, library: Library) -> int | None:
    """The highest order to which all calls of a form that have arrays have the gradients over a library that they have over NumPy.

    None where there is no such call, where one fails, and where `oxigrad.xp` does not have the function.
    """
    space = next((space for title, space in section.spaces.items() if title.startswith("xp.")), None)
    calls = [call for call in form.calls if _has_arrays(call)]
    if space is None or not calls or form.order == 0:
        return None
    for highest in range(form.order, 0, -1):
        try:
            if all(_agrees(call, space, library, highest, form) for call in calls):
                return highest
        except Exception:  # noqa: BLE001, S112  # any failure says that it is not there
            continue
    return None


def _has_arrays(call: str | Call) -> bool:
    args = call.args if isinstance(call, Call) else forms.function(call, {})[1]
    return any(isinstance(arg, np.ndarray) for arg in args)


def _agrees(call: str | Call, space: Space, library: Library, highest: int, form: Form) -> bool:
    _, args = forms.function(call, {**space, "xp": xp})
    of = lambda make: _gradients(_function(call, space, make), tuple(map(_made(make), args)), highest)  # noqa: E731
    for found, expected in zip(of(library.asarray), of(np.array), strict=True):
        scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        tolerance = max(library.rtol, 1e-3 * form.tolerance) * scale
        np.testing.assert_allclose(host(found), expected, rtol=library.rtol, atol=tolerance)
    return True


def _function(call: str | Call, space: Space, make: Callable[..., Any]) -> Callable[..., Any]:
    """A call whose constants are arrays of a library too."""
    constants = {name: _made(make)(value) for name, value in forms.CONSTANTS.items()}
    return forms.function(call, {**space, "xp": xp}, constants)[0]


def _made(make: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda value: make(value) if isinstance(value, np.ndarray) else value


def _gradients(f: Callable[..., Any], args: tuple[Any, ...], highest: int) -> list[Any]:
    """The gradients of the sines of all numbers of the results; of order two, those of the sines of these gradients."""
    target = lambda *args: _total(forms.parts(f(*args)))  # noqa: E731
    gradient = ox.grad(target, argnums=tuple(range(len(args))))
    if highest == 1:
        return [*gradient(*args)]
    return [*ox.grad(lambda *args: _total(gradient(*args)), argnums=tuple(range(len(args))))(*args)]


def _total(parts: Any) -> Any:
    return sum((xp.sum(xp.sin(xp.real(part))) for part in parts), start=0.0)
