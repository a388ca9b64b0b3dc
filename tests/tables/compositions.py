"""Compositions of transforms around the forms of the tables, beside the same call on plain values, or a loop over examples.

A composition is a function of a form, its arguments, and the reference: the same form, of which values and gradients are known. It
returns what it found, and what is expected.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import forms
import oxigrad as ox
from forms import Form, Section
from oxigrad import tree, xp

Function = Callable[..., Any]
Composition = Callable[[Function, tuple[Any, ...], Function], tuple[Any, Any]]

# The examples of a batch are the arguments, scaled.
WEIGHTS = (1.0, 0.9, 0.95)


def compiled(call: str, space: Mapping[str, Any]) -> tuple[Function, tuple[Any, ...]]:
    """A form as a function that a recording can read, and its arguments."""
    parsed = ast.parse(call)
    used = sorted({node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)} & forms.POINTS.keys())
    *before, last = map(ast.unparse, parsed.body)
    lines = [f"def called({', '.join(used)}):", *before, f"return {last}"]
    names = {**space, **forms.CONSTANTS, "__name__": __name__}
    exec("\n    ".join(lines), names)  # noqa: S102
    return names["called"], tuple(forms.POINTS[name] for name in used)


def copying(f: Function) -> Function:
    """The function of copies of its arguments, which it may change."""
    return lambda *args: f(*(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args))


def calls(
    section: Section, form: Form, most: int | None = None
) -> Iterator[tuple[str, str, Function, tuple[Any, ...], Function]]:
    """The calls of a form in each space, ``most`` of them: the space, the text, the function, its arguments, and the reference.

    The reference is the library's own function, where that takes variables.
    """
    for title, space in section.spaces.items():
        own_space = section.own if section.values is None else space
        for at, call in enumerate(form.calls[:most]):
            if isinstance(call, str):
                f, args = compiled(call, {**space, "xp": xp})
                own = copying(compiled(call, {**own_space, "xp": xp})[0])
            else:
                f, args, own = call.bound(space), call.args, copying(call.bound(own_space))
            plain = lambda *args, own=own: ox.stop_gradient(own(*ox.stop_gradient(args)))  # noqa: E731
            yield (
                title,
                call if isinstance(call, str) else f"call {at} of {form.name}",
                f,
                args,
                own if form.order else plain,
            )


# --- results -----------------------------------------------------------------------------------------------------------


def is_number(part: Any) -> bool:
    """Whether a part of a result is a number or an array, rather than a dtype, a class or text."""
    return not isinstance(part, (type, np.dtype, str)) and (
        isinstance(part, (bool, int, float, complex, np.generic)) or hasattr(part, "shape")
    )


def total(f: Function) -> Function:
    """A number of the results and of the arguments, so that it has a derivative where the results have none."""

    def number(*args: Any) -> Any:
        result: Any = sum(0.01 * xp.sum(xp.real(arg * arg)) for arg in args)  # first, as f may change them
        for part in filter(is_number, forms.parts(f(*args))):
            kind = np.dtype(part.dtype).kind if hasattr(part, "dtype") else np.asarray(part).dtype.kind
            for each in (xp.real(part), xp.imag(part)) if kind == "c" else (part,):
                result = result + xp.sum(xp.asinh(each if kind in "fc" else xp.astype(xp.asarray(each), np.float64)))
        return result

    return number


def examples(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The arguments scaled by each weight: as batches, and one by one."""
    each = [tuple(arg * weight for arg in args) for weight in WEIGHTS]
    return tuple(np.stack(parts) for parts in zip(*each, strict=True)), each


def stacked(results: list[Any]) -> list[Any]:
    """The results of the examples as `vmap` returns them: what is no array or number is the same for all."""
    columns = zip(*map(forms.parts, results), strict=True)
    return [np.stack(parts) if is_number(parts[0]) else parts[0] for parts in columns]


def compare(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    """Raises `AssertionError` where results differ in number, shape, dtype or value."""
    found, expected = forms.parts(found), forms.parts(expected)
    assert len(found) == len(expected), f"found {len(found)} results, expected {len(expected)}"
    for part, other in zip(found, expected, strict=True):
        if not is_number(other):
            assert part is other or part == other, f"found {part!r}, expected {other!r}"
            continue
        assert not isinstance(part, ox.Variable), "found a variable"
        part, other = np.asarray(part), np.asarray(other)
        assert part.shape == other.shape, f"found the shape {part.shape}, expected {other.shape}"
        assert part.dtype == other.dtype, f"found {part.dtype}, expected {other.dtype}"
        finite = np.abs(other[np.isfinite(other)]) if other.dtype.kind in "fc" else np.zeros(0)
        size = max(1.0, float(np.max(finite, initial=0.0)))
        np.testing.assert_allclose(part, other, rtol=tolerance, atol=tolerance * size)


# --- compositions ------------------------------------------------------------------------------------------------------


def _everything(args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(range(len(args)))


def gradients(f: Function, args: tuple[Any, ...]) -> Any:
    """The gradients of the number of a function with respect to all arguments."""
    return ox.grad(total(f), _everything(args))(*args)


def _directional(f: Function, args: tuple[Any, ...]) -> Any:
    return sum(np.sum(np.real(g * arg)) for g, arg in zip(gradients(f, args), args, strict=True))


def _tape(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    with ox.Tape() as tape:
        result = f(*map(tape.watch, args))
    return tree.leaves(ox.stop_gradient(result)), tree.leaves(reference(*args))


def _numbers(f: Function) -> Function:
    """The parts of the result that are numbers or arrays: `vmap` has no examples of others."""
    return lambda *args: list(filter(is_number, forms.parts(f(*args))))


def _vmap(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    batch, each = examples(args)
    return ox.vmap(_numbers(f))(*batch), stacked([_numbers(reference)(*args) for args in each])


def _twice(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    batch, each = examples(args)
    expected = stacked([_numbers(reference)(*args) for args in each])
    found = ox.vmap(ox.vmap(_numbers(f)))(*(part[:, None] for part in batch))
    return found, [part[:, None] for part in expected]


def _vmap_of_grad(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    batch, each = examples(args)
    return ox.vmap(ox.grad(total(f), _everything(args)))(*batch), stacked([gradients(reference, args) for args in each])


def _grad_of_vmap(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    batch, each = examples(args)
    mapped = lambda *args: xp.sum(ox.vmap(total(f))(*args))  # noqa: E731
    return ox.grad(mapped, _everything(args))(*batch), stacked([gradients(reference, args) for args in each])


def _vmap_of_jvp(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    batch, each = examples(args)
    mapped = ox.vmap(lambda *args: ox.jvp(total(f), args, args)[1])
    return mapped(*batch), np.stack([_directional(reference, args) for args in each])


def _hessian(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
    """Along the arguments, beside central differences of the gradient, of which four digits are right."""
    rows = ox.hessian(total(f), _everything(args))(*args)
    step = 1e-5
    ends = [gradients(reference, tuple(arg * (1.0 + side * step) for arg in args)) for side in (1, -1)]
    expected = [(np.asarray(up) - np.asarray(down)) / (2.0 * step) for up, down in zip(*ends, strict=True)]
    found = [
        sum(np.sum(np.asarray(h) * arg, axis=_last(arg)) for h, arg in zip(row, args, strict=True)) for row in rows
    ]
    for part, other in zip(found, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
        np.testing.assert_allclose(part, other, rtol=1e-3, atol=1e-3 * scale)
    return (), ()


def _last(arg: Any) -> tuple[int, ...]:
    return tuple(range(-np.ndim(arg), 0))


def _recorded(
    make: Callable[[Function], Function], expected: Callable[[Function, tuple[Any, ...]], Any]
) -> Composition:
    """A recording, called with each example twice."""

    def composition(f: Function, args: tuple[Any, ...], reference: Function) -> tuple[Any, Any]:
        record = ox.record(make(f))
        each = examples(args)[1] * 2
        return [copying(record)(*args) for args in each], [expected(reference, args) for args in each]

    return composition


COMPOSITIONS: dict[str, Composition] = {
    "tape": _tape,
    "vjp": lambda f, args, reference: (ox.vjp(f, *args)[0], reference(*args)),
    "jvp's value": lambda f, args, reference: (ox.jvp(f, args, args)[0], reference(*args)),
    "grad": lambda f, args, reference: (gradients(f, args), gradients(reference, args)),
    "jvp": lambda f, args, reference: (ox.jvp(total(f), args, args)[1], _directional(reference, args)),
    "jacrev": lambda f, args, reference: (
        ox.jacrev(total(f), _everything(args))(*args),
        gradients(reference, args),
    ),
    "jacfwd": lambda f, args, reference: (
        ox.jacfwd(total(f), _everything(args))(*args),
        gradients(reference, args),
    ),
    "hessian": _hessian,
    "checkpoint": lambda f, args, reference: _tape(ox.checkpoint(f), args, reference),
    "grad of checkpoint": lambda f, args, reference: (
        gradients(ox.checkpoint(f), args),
        gradients(reference, args),
    ),
    "vmap": _vmap,
    "vmap of vmap": _twice,
    "vmap of grad": _vmap_of_grad,
    "grad of vmap": _grad_of_vmap,
    "vmap of jvp": _vmap_of_jvp,
    "vmap of grad of checkpoint": lambda f, args, reference: _vmap_of_grad(ox.checkpoint(f), args, reference),
    "record": _recorded(lambda f: f, lambda reference, args: reference(*args)),
    "record of grad": _recorded(lambda f: lambda *args: gradients(f, args), gradients),
}
# Without a complex argument: whose Jacobians are of another convention, or of one mode.
REAL = {"jacfwd", "hessian"}
# Of refusals that are true: what was wrong, in their texts.
REASONS = (
    "has no derivative",
    "is immutable",
    "differ in their",
    "would write",
    "does not turn into",
    "same for all examples",
    "is not one number",
)


def fault(name: str, f: Function, args: tuple[Any, ...], reference: Function) -> str:
    """The fault of a composition of a call; empty where it is right, or refused by a text that is true."""
    if name in REAL and any(map(np.iscomplexobj, args)):
        return ""
    try:
        compare(*COMPOSITIONS[name](f if name.startswith("record") else copying(f), args, reference))
    except Exception as error:  # noqa: BLE001 - any is a fault, but for refusals
        text = str(error)
        is_refusal = isinstance(error, (TypeError, ox.DerivativeError)) and any(each in text for each in REASONS)
        is_true = "vmap" not in text or "vmap" in name
        return "" if is_refusal and is_true else f"{type(error).__name__}: {' '.join(text.split())[:300]}"
    return ""
