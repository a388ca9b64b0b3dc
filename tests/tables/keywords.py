"""Calls of NumPy's and SciPy's functions with one keyword more than the forms of the tables pass, and by every float argument.

A form's own calls are recorded: the function, and its arguments as plain values. Each is made again with every further keyword of
the library's function, at values that it takes.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import forms
from forms import Form

_MASK = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]], dtype=bool)
# Values of each keyword, of which those that the library takes are passed one at a time.
VALUES: dict[str, list[Any]] = {
    "UPLO": ["U", "L"],
    "append": [0.3],
    "assume_unique": [True],
    "atol": [0.3],
    "aweights": [np.array([1.0, 2.0, 0.5, 1.5])],
    "axes": [(1, 0), 1, (0, 2), (1, 2)],
    "axis": [0, 1, -1, (0, 1), None],
    "axis1": [1],
    "axis2": [0],
    "axisa": [0],
    "axisb": [0],
    "axisc": [0],
    "base": [2.0],
    "bias": [True],
    "bins": [3],
    "boundary": ["wrap", "symm"],
    "casting": ["unsafe"],
    "compute_uv": [False],
    "constant_values": [2.0, (1.0, 2.0)],
    "copy": [True, False],
    "correction": [1, 0.5],
    "cov": [True],
    "cval": [0.7],
    "ddof": [1, 0.5],
    "decimals": [1],
    "deg": [True],
    "density": [True],
    "discont": [4.0],
    "dtype": [np.float32, np.float64, np.complex128],
    "dx": [0.5],
    "edge_order": [2],
    "endpoint": [False],
    "equal_nan": [False],
    "fill_value": [0.3],
    "fillvalue": [0.7],
    "full": [True],
    "full_matrices": [False, True],
    "fweights": [np.array([1, 2, 3, 1])],
    "hermitian": [True],
    "include_initial": [True],
    "increasing": [True],
    "ind": [1],
    "indexing": ["ij"],
    "initial": [0.7],
    "interpolation": ["lower"],
    "k": [1, -1, 2, [0.5, 0.3]],
    "keepdims": [True],
    "kind": ["stable"],
    "kth": [2],
    "left": [0.3],
    "like": [],
    "m": [2],
    "max": [0.3],
    "mean": [0.4],
    "method": ["lower", "higher", "hazen", "weibull", "averaged_inverted_cdf", "direct", "fft"],
    "min": [0.1],
    "minlength": [7],
    "mode": ["valid", "same", "full", "wrap", "clip", "reflect", "r", "complete", "reduced", "nearest", "mirror"],
    "n": [2, 3],
    "nan": [1.0],
    "ndmin": [3],
    "neginf": [-4.0],
    "norm": ["ortho", "forward"],
    "num": [5],
    "offset": [1, -1],
    "optimize": [True, "greedy"],
    "ord": [1, 2, "fro", "nuc", np.inf, 3],
    "order": ["C", "F", 0, 1, 2],
    "origin": [1],
    "output": [np.float64],
    "overwrite_input": [True],
    "p": [1, "fro", 2],
    "period": [4.1],
    "posinf": [4.0],
    "prefilter": [False],
    "prepend": [0.3],
    "q": [0.3],
    "range": [(-2.0, 2.0)],
    "rcond": [1e-3, 0.3],
    "reflect_type": ["odd"],
    "reshape": [False],
    "retstep": [True],
    "return_counts": [True],
    "return_index": [True],
    "return_inverse": [True],
    "return_sign": [True],
    "returned": [True],
    "right": [0.4, True],
    "rowvar": [False],
    "rtol": [1e-3, 0.3],
    "s": [(2, 2), (4, 5)],
    "scale": [1.3],
    "shape": [(3, 4)],
    "side": ["right"],
    "sorted": [False],
    "sparse": [True],
    "stable": [True],
    "stat_length": [1],
    "step": [0.5],
    "subok": [False, True],
    "to_begin": [0.3],
    "to_end": [0.3],
    "tol": [0.5],
    "trim": ["f"],
    "truncate": [1.5],
    "type": ["constant"],
    "upper": [True],
    "lower": [True],
    "weights": [np.array([1.0, 2.0, 0.5, 1.5]), np.array([[1.0, 2.0, 0.5, 1.5]] * 3)],
    "where": [_MASK, _MASK[0]],
    "wrap": [True],
}


@dataclasses.dataclass(frozen=True)
class Made:
    """A call that a form made of the library's function at ``path``."""

    path: str
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    has_further: bool = False  # a keyword that the form does not pass

    def of(self, space: Any) -> Callable[..., Any]:
        """The function of this name in a module."""
        for name in self.path.split("."):
            space = getattr(space, name)
        return space

    def __str__(self) -> str:
        shown = [_shown(arg) for arg in self.args] + [f"{key}={_shown(value)}" for key, value in self.named.items()]
        return f"{self.path}({', '.join(shown)})"


def _shown(value: Any) -> str:
    return f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)


class _Recorder:
    """A module whose calls are appended to ``made``, with the path of the function."""

    def __init__(self, recorded: Any, path: str, made: list[Made]) -> None:
        self._recorded, self._path, self._made = recorded, path, made

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._recorded, name)
        if not (inspect.ismodule(own) or callable(own)) or isinstance(own, type):
            return own
        return _Recorder(own, f"{self._path}.{name}" if self._path else name, self._made)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self._made.append(Made(self._path, args, named))
        return self._recorded(*args, **named)


def recorded(form: Form, space: Mapping[str, Any], root: str) -> list[Made]:
    """The calls of a form of its own function, with plain arguments; ``root`` names the module in ``space``."""
    found: list[Made] = []
    for call in form.calls:
        made: list[Made] = []
        watched = {**space, root: _Recorder(space[root], "", made)}
        try:
            f, args = forms.function(call, {**watched, "xp": space[root]})
            f(*args)
        except Exception:  # noqa: BLE001,S112  # a form of xp alone
            continue
        found.extend([each for each in made if each.path == form.name][-1:])
    return found


def parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function; none where it does not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def with_keywords(made: Made, function: Any) -> Iterator[Made]:
    """The call itself, and with each further keyword of the library's function."""
    yield made
    known = parameters(function)
    try:
        given = inspect.signature(function).bind(*made.args, **made.named).arguments
    except (TypeError, ValueError):
        return
    for name, parameter in known.items():
        if name in given or parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            continue
        for value in VALUES.get(name, []):
            yield dataclasses.replace(made, named={**made.named, name: value}, has_further=True)


def floats(value: Any) -> list[Any]:
    """The float arrays and numbers of arguments, in lists, tuples and dicts too."""
    if isinstance(value, dict):
        return [each for part in value.values() for each in floats(part)]
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in floats(part)]
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fc"
    return [value] if is_array or type(value) is float else []


def replaced(value: Any, by: Iterator[Any]) -> Any:
    """Arguments with others in place of their `floats`, in order."""
    if isinstance(value, dict):
        return {key: replaced(part, by) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(replaced(part, by) for part in value)
    return next(by) if floats(value) else value
