"""The state of an optimizer by key path: checked, compared with that of another one, and saved to a file.

>>> import numpy as np
>>> import oxigrad as ox
>>> model, opt = {"w": np.ones(2)}, ox.optim.Adam(learning_rate=0.1)
>>> model = opt.update(model, {"w": np.ones(2)})
>>> state = opt.state_dict()
>>> state["step"], sorted(state["slots"]["w"])
(1, ['m', 'v'])
>>> again = ox.optim.from_config(state["config"])
>>> again.load_state_dict(state)
Report(missing=[], unexpected=[], mismatched=[])
>>> again.step
1

Files are of the format safetensors. The slot ``m`` of the parameter ``layers.0.weight`` has the name
``m.layers.0.weight``; an slot of codes is two arrays, ``m-codes.layers.0.weight`` and ``m-scales.layers.0.weight``, and
for codes of four bits, which share bytes, ``m-shape.layers.0.weight``. The slot ``1.average`` of a chain is
``1.average.layers.0.weight``. All that is not an array is JSON, under ``oxigrad`` in the metadata of the file.
"""

import copy as copying
import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from oxigrad._core import StateError
from oxigrad._names import path_name
from oxigrad.ops.backends import copied, copied_like, dtype_name, is_array
from oxigrad.rules.core import norms
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.state.step_count import check_step_count

__all__ = ["Report", "read"]
__dir__: Callable[[], list[str]] = __all__.copy

# Slots by key path and name.
Slots = Mapping[str, Mapping[str, Any]]

FORMAT = 1
_AT_MOST = 20
_NORMS = frozenset(norms.SLOTS.values())
COUNTS = ("step", "micro", "skipped")
# The ends of the names of the arrays of a slot of codes.
_SUFFIXES = ("-codes", "-scales", "-shape")
_FIELDS: dict[str, Any] = {
    "format": int,
    "optimizer": str,
    "config": (Mapping, type(None)),
    **dict.fromkeys(COUNTS, int),
    "remembered": Mapping,
    "slots": Mapping,
}


@dataclasses.dataclass
class Report:
    """The differences between a state and the expected one, as lines with key paths; False if there are none."""

    missing: list[str] = dataclasses.field(default_factory=list)
    unexpected: list[str] = dataclasses.field(default_factory=list)
    mismatched: list[str] = dataclasses.field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.mismatched)

    def lines(self) -> Iterator[str]:
        """The differences as lines of text."""
        for kind in dataclasses.fields(self):
            yield from (f"{kind.name}: {line}" for line in getattr(self, kind.name))

    def check(self) -> None:
        """Raises `StateError` with the first lines where there is a difference."""
        if not self:
            return
        lines = list(self.lines())
        more = [f"and {len(lines) - _AT_MOST} more"] if len(lines) > _AT_MOST else []
        if {path.replace('"', "") for path in self.missing} & {path.replace('"', "") for path in self.unexpected}:
            more += ['"a.b" is one key, as in dict(module.named_parameters()); a.b is a key within another']
        raise StateError(
            "\n  ".join(
                ["the state does not match the optimizer; strict=False loads what matches", *lines[:_AT_MOST], *more]
            )
        )


def without_norms(slots: Slots) -> Slots:
    """The slots without the norms of the last step, which no later step reads."""
    return {
        path: {name: array for name, array in by_name.items() if name not in _NORMS} for path, by_name in slots.items()
    }


def config_of(opt: Any) -> dict[str, Any] | None:
    """The configuration of an optimizer; None where it cannot be written down."""
    try:
        return opt.get_config()
    except TypeError:  # it has a function of the user
        return None


def copied_slots(slots: Slots) -> dict[str, dict[str, Any]]:
    """The slots with arrays of their own."""
    return {path: {name: _copied(array) for name, array in by_name.items()} for path, by_name in slots.items()}


def _copied(array: Any) -> Any:
    return array.copy() if isinstance(array, Quantized) else copied(array)


def _copied_like(array: Any, like: Any) -> Any:
    if isinstance(array, Quantized) and isinstance(like, Quantized):
        return array.copied_like(like)
    return copied_like(array, like)


# --- loading ----------------------------------------------------------------------------------------------------------


def checked(state: Any) -> Mapping[str, Any]:
    """The state; raises `StateError` where it is not one, or has an unknown format."""
    if not isinstance(state, Mapping):
        raise StateError(f"the state is {type(state).__name__}: expected the result of state_dict")
    if "format" in state and state["format"] != FORMAT:
        raise StateError(f"the state has the format {state['format']!r}: expected {FORMAT}; a later version wrote it")
    if {"state", "param_groups"} <= state.keys():
        raise StateError(
            "the state is of an optimizer of PyTorch: expected the result of state_dict of oxigrad.optim; "
            "oxigrad.torch.load_state_dict converts it"
        )
    for what, keys in (
        ("lacks", _FIELDS.keys() - state.keys()),
        ("has unexpected keys:", state.keys() - _FIELDS.keys()),
    ):
        if keys:
            raise StateError(f"the state {what} {', '.join(sorted(map(str, keys)))}: expected {[*_FIELDS]}")
    for name, kind in _FIELDS.items():
        if not isinstance(state[name], kind) or isinstance(state[name], bool):
            raise StateError(f"the state has {name} {state[name]!r}: expected {getattr(kind, '__name__', 'a dict')}")
    for name in COUNTS:
        check_step_count(state[name], f"the state has {name}")
    for path, by_name in state["slots"].items():
        if not ((type(by_name) is dict or isinstance(by_name, Mapping)) and all(map(is_array, by_name.values()))):
            raise StateError(
                f"{path_name(path)}: the state has {type(by_name).__name__}: expected slots, arrays by name"
            )
    return state


@dataclasses.dataclass
class PendingState:
    """Matches loaded slots with those of parameters, and reports the differences; where it is ``strict``, raises them.

    ``lacking`` are the parameters that had no slots, or whose arrays were of another shape or dtype: they keep their
    own slots.
    """

    strict: bool
    report: Report
    lacking: set[str] = dataclasses.field(default_factory=set)

    def __call__(self, slots: Slots, existing: Slots) -> dict[str, dict[str, Any]]:
        """The slots of parameters with ``existing`` ones: the matching arrays, in the same libraries."""
        report = copying.deepcopy(self.report)
        compare(report, existing, slots, str)
        fitting = {path: _fitting(report, path, slots[path], existing[path]) for path in existing if path in slots}
        self.check(report)
        vars(self.report).update(vars(report))
        self.lacking = {path for path in existing if path not in slots or (existing[path] and not fitting[path])}
        return {path: _taken(fitting.get(path, {}), named) for path, named in existing.items()}

    def check(self, report: Report) -> None:
        """Raises `StateError` for a report of differences, where it is strict."""
        if self.strict:
            report.check()


def _taken(fitting: Mapping[str, Any], existing: Mapping[str, Any]) -> dict[str, Any]:
    """The slots of one parameter: those that match, as arrays like its own, and its own in place of others."""
    return {name: _copied_like(fitting[name], array) if name in fitting else array for name, array in existing.items()}


def _fitting(report: Report, path: str, slots: Mapping[str, Any], existing: Mapping[str, Any]) -> dict[str, Any]:
    """The slots of one parameter whose shapes and dtypes match its existing ones."""
    existing = {name: array for name, array in existing.items() if name not in _NORMS}
    if existing.keys() != slots.keys():
        compare(report, existing, slots, lambda name: f"{path_name(path)}: slot {name}")
    common = [name for name in existing if name in slots]
    matches = {name: slots[name] for name in common if _is_alike(slots[name], existing[name])}
    for name in (name for name in common if name not in matches):
        there, expected = _described(slots[name]), _described(existing[name])
        report.mismatched.append(f"{path_name(path)}: slot {name} has {there}, expected {expected}")
    # Numbers alone would be those of other arrays, and arrays beside one of another shape those of another parameter.
    is_whole = len(matches) == len(common)
    is_like = all(tuple(slots[name].shape) == tuple(existing[name].shape) for name in common)
    return matches if is_whole or (is_like and any(tuple(slot.shape) for slot in matches.values())) else {}


def _is_alike(a: Any, b: Any) -> bool:
    same = a.dtype is b.dtype or dtype_name(a.dtype) == dtype_name(b.dtype)
    return same and tuple(a.shape) == tuple(b.shape)


def _described(array: Any) -> str:
    return f"shape {tuple(array.shape)} and dtype {dtype_name(array.dtype)}"


def compare(report: Report, expected: Collection[str], present: Collection[str], line: Callable[[str], str]) -> None:
    """Reports the names that are missing among those present, and those that are not expected, each as a ``line``."""
    report.missing += [line(name) for name in expected if name not in present]
    report.unexpected += [line(name) for name in present if name not in expected]


# --- files ------------------------------------------------------------------------------------------------------------


def write(file: Any, state: Mapping[str, Any]) -> None:
    """Writes the result of `Optimizer.state_dict` to a file, whole or not at all; see `safetensors_io.write`."""
    _files().write(file, *flat(state))


def flat(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of a state by name, and the rest as metadata of a file. Raises `StateError` if not plain data."""
    slots = state["slots"]
    named = ((path, *part) for path, by_name in slots.items() for slot in by_name.items() for part in _parts(*slot))
    arrays = {f"{name}.{path}": array for path, name, array in named}
    rest = {**{name: value for name, value in state.items() if name != "slots"}, "parameters": [*slots]}
    try:
        text = json.dumps(rest)
        text.encode()
    except (TypeError, ValueError) as error:
        raise StateError(f"the state of a schedule or of the loss scale is not plain data: {error}") from error
    return arrays, {"oxigrad": text}


def _files() -> Any:
    """The module, imported when it is first needed, since its imports take long."""
    from oxigrad.step.state import safetensors_io

    if not (
        hasattr(safetensors_io, "write") and hasattr(safetensors_io, "read")
    ):  # A signal handler came while it is imported.
        raise StateError(
            "the first save or load of this process is still under way, in this thread: save again after it"
        )
    return safetensors_io


def _parts(name: str, array: Any) -> list[tuple[str, Any]]:
    """The arrays of a slot in a file: one, or codes, their scales and, for codes that share bytes, the shape."""
    if not isinstance(array, Quantized):
        return [(name, array)]
    return [(f"{name}-{part}", np.asarray(field) if part == "shape" else field) for part, field in array.fields.items()]


def _whole(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The slots of one parameter from their `_parts`."""
    if not any(name.endswith(_SUFFIXES) for name in parts):
        return dict(parts)
    whole = {name: array for name, array in parts.items() if not name.endswith(_SUFFIXES)}
    for name in sorted({name.rpartition("-")[0] for name in parts.keys() - whole.keys()}):
        codes, scales, shape = (f"{name}{suffix}" for suffix in _SUFFIXES)
        if missing := [part for part in (codes, scales) if part not in parts]:
            raise ValueError(f"it has a part of the slot {name}, but no {missing[0]}")
        packed: Any = _shape(parts[shape]) if shape in parts else None
        whole[name] = Quantized(parts[codes], parts[scales], packed)
    return whole


def _shape(array: Any) -> tuple[int, ...]:
    """The shape that an array of a file has."""
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any():
        raise ValueError(f"found a shape {array!r}: expected whole numbers")
    return tuple(map(int, array))


def read(file: Any) -> Mapping[str, Any]:
    """The state in a file, with arrays of NumPy, for `Optimizer.load_state_dict`; its ``config`` is for `from_config`.

    Raises `StateError` for a file that has no state, or is damaged.
    """
    arrays, metadata = _files().read(file)
    return whole(arrays, metadata, _files().source(file))


def whole(arrays: Mapping[str, Any], metadata: Mapping[str, str], source: str) -> Mapping[str, Any]:
    """The state of which `flat` gave arrays and metadata. Raises `StateError`, with the ``source``, for others."""
    try:
        rest = json.loads(metadata["oxigrad"])
    except KeyError:
        raise StateError(f"{source}: it has arrays, but not the state of an optimizer") from None
    except (ValueError, RecursionError) as error:
        raise StateError(f"{source}: its metadata cannot be read: {error}") from error
    if not isinstance(rest, dict):
        raise StateError(f"{source}: its metadata is {type(rest).__name__}: expected a dict")
    paths = rest.pop("parameters", None)
    if not (isinstance(paths, list) and all(isinstance(path, str) for path in paths)):
        raise StateError(f"{source}: its metadata does not list the parameters")
    slots: dict[str, dict[str, Any]] = {path: {} for path in paths}
    for name, array in arrays.items():
        slot, _, path = name.partition(".")
        if slot.isdecimal():  # the slot's name begins with the number of a part of a chain
            slot, path = f"{slot}.{path.partition('.')[0]}", path.partition(".")[2]
        if (by_name := slots.get(path)) is None:
            raise StateError(f"{source}: the array {name!r} is not a slot of a parameter")
        by_name[slot] = array
    try:
        restored = {path: _whole(parts) for path, parts in slots.items()}
    except (TypeError, ValueError) as error:
        raise StateError(f"{source}: {error}") from error
    return checked({**rest, "slots": restored})
