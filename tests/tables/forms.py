"""Forms: calls of another library's functions as users write them, each with the derivatives that it has.

A form is text, so that the tables in the documentation show what is tested: ``np.median(x, axis=0)``. It is evaluated in a
*space*, which says what ``np`` means: NumPy itself, or `oxigrad.xp` by NumPy's names. Statements may come before the
expression, separated by semicolons. Lower-case letters of `POINTS` are the arguments to differentiate by, upper-case ones of
`CONSTANTS` are plain values. NumPy does not dispatch lists of variables everywhere: such a form is a call of ``xp`` alone.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from cases import apart, fraction, inside, normal, positive
from oxigrad import xp
from oxigrad._core import Variable, is_constant
from oxigrad.testing import check_grads

POINTS: dict[str, Any] = {
    "c": 0.7,
    "i": inside(3, 4),
    "f": fraction(3, 4),
    "h": positive(4, seed=3),
    "m": normal(4, 4) + 3.0 * np.eye(4),
    "n": normal(4, 4, seed=2),
    "p": positive(3, 4),
    "q": positive(3, 4, seed=5),
    "r": normal(5, 3, seed=4),
    "t": normal(2, 3, 4),
    "u": apart(4, seed=9),
    "v": apart(4, seed=5),
    "w": normal(4, seed=6),
    "x": apart(3, 4),
    "y": apart(3, 4, seed=8) + 0.03,
    "z": normal(3, 4) + 1j * normal(3, 4, seed=1),
}
CONSTANTS: dict[str, Any] = {
    "I": np.array([2, 0, 2, 1]),
    "J": np.array([[1, 3, 0, 2], [0, 0, 1, 1], [3, 2, 1, 0]]),
    "K": apart(3, 4, seed=1) > -0.3,
    "Z": np.array([[1, 1, 0, 1], [0, 0, 1, 1], [1, 1, 1, 0]], dtype=bool),
    "E": np.array([-2.0, -0.83, 0.07, 0.93, 2.0]),
    "W": np.array([1.0, 2.0, 0.5, 1.5]),
}
# The spaces of NumPy's forms: a space maps the names of modules in a form to modules.
SPACES: dict[str, dict[str, Any]] = {"np.*": {"np": np}, "xp.*": {"np": xp}}


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """A call as a function of a module, ``part`` of what ``scipy`` means in a space, and of the arguments to differentiate by."""

    part: str
    f: Callable[..., Any]
    args: tuple[Any, ...]

    def bound(self, space: Mapping[str, Any]) -> Callable[..., Any]:
        """The call as a function of its arguments in a space."""
        return functools.partial(self.f, getattr(space["scipy"], self.part))


class _Recorder:
    """An object whose calls, and those of its attributes, add the names of their keywords to ``found``."""

    def __init__(self, recorded: Any, found: set[str]) -> None:
        self._recorded = recorded
        self._found = found

    def __getattr__(self, name: str) -> _Recorder:
        return _Recorder(getattr(self._recorded, name), self._found)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self._found.update(named)
        return self._recorded(*args, **named)


@dataclasses.dataclass(frozen=True)
class Form:
    """The calls of one function, which has derivatives up to ``order``. A ``reason`` says why there are no further ones.

    A form of order zero gives plain values, or is refused if ``refused``.
    """

    name: str
    calls: tuple[str | Call, ...]
    reason: str = ""
    refused: bool = False
    tolerance: float = 1e-6
    order: int = 2

    def __str__(self) -> str:
        return self.name

    @functools.cached_property
    def keywords(self) -> list[str]:
        """The keywords in the calls, sorted."""
        return sorted(set().union(*map(_keywords, self.calls)))


@dataclasses.dataclass(frozen=True)
class Section:
    """A table of forms, evaluated in each space; the first space has the library's own functions, unless ``values`` has them."""

    title: str
    forms: tuple[Form, ...]
    spaces: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=lambda: SPACES)
    # Where the library's own functions do not take variables: the space that has them.
    values: Mapping[str, Any] | None = None

    @property
    def own(self) -> Mapping[str, Any]:
        """The space of the library's own functions, which have the expected values."""
        return next(iter(self.spaces.values())) if self.values is None else self.values


def cases(sections: Iterable[Section]) -> list[Any]:
    """Parameters of a test: each section, space and form."""
    return [
        pytest.param(section, space, form, id=f"{space}-{form.name}")
        for section in sections
        for space in section.spaces
        for form in section.forms
    ]


def _keywords(call: str | Call) -> set[str]:
    if isinstance(call, str):
        return {str(node.arg) for node in ast.walk(ast.parse(call)) if isinstance(node, ast.keyword) and node.arg}
    found: set[str] = set()
    call.f(_Recorder(getattr(xp, call.part), found), *call.args)
    return found


def read(text: str, reason: str = "", *, refused: bool = False) -> list[Form]:
    """Forms from lines ``name: call | call``; the name is optional, where the first call shows it."""
    forms = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head = re.match(r"([\w.]+): ", line)
        calls = tuple(line[head.end() if head else 0 :].split(" | "))
        name = head[1] if head else _name(calls[0])
        forms.append(Form(name, calls, reason, refused, order=0 if reason else 2))
    return forms


def _name(call: str) -> str:
    found = re.search(r"\b(?:np|xp|scipy)\.([\w.]+)", call)
    assert found, f"{call}: expected a name in front of the calls"
    return found[1]


def function(
    call: str | Call, space: Mapping[str, Any], constants: Mapping[str, Any] = CONSTANTS
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A call as a function of its arguments, and the arguments."""
    if isinstance(call, Call):
        return call.bound(space), call.args
    parsed = ast.parse(call)
    used = sorted({node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)} & POINTS.keys())
    *before, last = parsed.body
    assert isinstance(last, ast.Expr), call
    statements = compile(ast.Module(before, []), call, "exec")
    expression = compile(ast.Expression(last.value), call, "eval")

    def called(*args: Any) -> Any:
        given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        names = {**space, **constants, **dict(zip(used, given, strict=True))}
        exec(statements, names)  # noqa: S102
        return eval(expression, names)  # noqa: S307

    return called, tuple(POINTS[name] for name in used)


def parts(result: Any) -> list[Any]:
    """The arrays and numbers of a result, in tuples and lists too."""
    return [part for each in result for part in parts(each)] if isinstance(result, (list, tuple)) else [result]


def check(
    form: Form, call: str | Call, space: Mapping[str, Any], own: Mapping[str, Any] = SPACES["np.*"], order: int = 2
) -> None:
    """Checks the value of a call by that of the library's ``own`` function, and its derivatives by central differences.

    A form of order zero must give plain values, or be refused by an error.
    """
    f, args = function(call, {**space, "xp": xp})
    if form.refused:
        _check_refusal(f, args)
        return
    expected = parts(function(call, {**own, "xp": np})[0](*args))
    found = parts(_plain(f, args) if form.order == 0 else ox.vjp(f, *args)[0])
    assert len(found) == len(expected)
    for part, other in zip(found, expected, strict=True):
        _compare(part, other)
    if form.order > 0:
        check_grads(f, args, order=min(order, form.order), tolerance=form.tolerance)


def _plain(f: Callable[..., Any], args: Iterable[Any]) -> Any:
    with ox.Tape() as tape:
        result = f(*map(tape.watch, args))
        result = ox.tree.map(lambda part: ox.stop_gradient(part) if is_constant(part) else part, result)
    assert not any(isinstance(part, Variable) for part in parts(result)), "found a variable, expected plain values"
    return result


def _check_refusal(f: Callable[..., Any], args: Iterable[Any]) -> None:
    with ox.Tape() as tape:
        try:
            f(*map(tape.watch, args))
        except (ox.DerivativeError, AttributeError, TypeError):
            return
    raise AssertionError("found a result, expected a refusal")


def _compare(part: Any, other: Any) -> None:
    assert np.shape(part) == np.shape(other), f"found shape {np.shape(part)}, expected {np.shape(other)}"
    if np.asarray(other).dtype.kind in "fc":
        np.testing.assert_allclose(part, other, rtol=1e-10, atol=1e-12)
    else:
        np.testing.assert_array_equal(part, other)


def reached(form: Form, space: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[int, str]:
    """The highest order to which all calls of a form are right in a space, -1 where one fails; and the error at the next order."""
    for order in range(form.order, 0, -1) if form.order else (0,):
        try:
            for call in form.calls:
                check(form, call, space, own, order)
        except Exception as found:  # noqa: BLE001  # any failure is what the table reports
            failure = f"{call if isinstance(call, str) else form.name}: {type(found).__name__}: {found}"
        else:
            return order, ""
    return -1, failure
