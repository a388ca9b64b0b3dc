"""The ways to a step and the options that may be combined with them, and what becomes of each combination.

A cell of the table is a run of three steps with the same gradients. It is accepted or refused; an accepted one has the bits of
`Optimizer.update` with the option or not, and differs from the same way without the option or not.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import doors
import oxigrad as ox
from doors import DOORS, Apply, Door, Minimize, OfTensors, Pytrees, Tensors, TensorsInBackward, Values, Workers, cannot
from oxigrad import distributed, optim

SHAPES = {"a": (70, 70), "b": (3, 2)}
STEPS = 3


# --- options -----------------------------------------------------------------------------------------------------------


def _plain(gradients: Values, number: int) -> Mapping[str, Any]:
    return gradients


def _with_nan(gradients: Values, number: int) -> Mapping[str, Any]:
    """Gradients whose second ones have a NaN."""
    return {path: np.where(number == 1, np.nan, g).astype(g.dtype) for path, g in gradients.items()}


def _in_rows(gradients: Values, number: int) -> Mapping[str, Any]:
    """Gradients of some rows of "a", others in each step."""
    rows = [number, number + 2]
    return {**gradients, "a": ox.SparseRows(rows, gradients["a"][rows], gradients["a"].shape)}


@dataclasses.dataclass(frozen=True)
class Option:
    """Arguments of an optimizer, and the situation in which they have an effect.

    Args:
        arguments: these arguments; those of the step without the option are ``without``.
        name: the class of `oxigrad.optim`; of the step without the option, ``other``.
        dtype: the dtype of parameters and gradients.
        given: the gradients of a step by its number.
    """

    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    name: str = "AdamW"
    dtype: str = "float32"
    given: Callable[[Values, int], Mapping[str, Any]] = _plain
    other: str = "AdamW"


# For parameters of half precision, of which PyTorch's optimizers keep moments of half precision by default.
_MOMENTS = {"slot_dtype": "float32"}
OPTIONS = {
    "plain": Option(other="SGD"),
    "accumulate=2": Option({"accumulate": 2}),
    "loss_scale": Option({"loss_scale": optim.LossScale(8.0)}, given=_with_nan),
    "nonfinite=skip": Option({"nonfinite": "skip"}, given=_with_nan),
    "nonfinite=raise": Option({"nonfinite": "raise"}, given=_with_nan),
    "zero_gradients": Option({"zero_gradients": True}),
    "sparse=lazy": Option({"sparse": "lazy"}, given=_in_rows),
    "sparse=catch_up": Option({"sparse": "catch_up"}, given=_in_rows),
    "rounding=stochastic": Option({"rounding": "stochastic", "seed": 5, **_MOMENTS}, dtype="float16"),
    "rounding=kahan": Option({"rounding": "kahan", **_MOMENTS}, dtype="float16"),
    "master": Option({"master": True, **_MOMENTS}, dtype="float16"),
    "slot_dtype=8bit": Option({"slot_dtype": "8bit"}),
    "slot_dtype=float16": Option({"slot_dtype": "float16"}),
    "record_norms": Option({"record_norms": "gradient"}),
    "max_norm": Option({"max_norm": 1.0}),
    "LAMB": Option(name="LAMB"),
    "DoG": Option({"learning_rate": 1.0}, name="DoG"),
    "AdamLRD": Option({"dropout_rate": 0.5}, name="AdamLRD"),
    "Muon": Option(name="Muon"),
}


# --- ways --------------------------------------------------------------------------------------------------------------


class Recorded(Minimize):
    """`Optimizer.minimize` of a recorded loss."""

    record = True


class Host(doors.Update):
    """`Optimizer.update` with the state in host memory."""

    further = MappingProxyType({"state_device": "host"})


class Large(Workers):
    """`LargeBatch` of one worker."""

    wrapper = distributed.LargeBatch


class Shards(Workers):
    """`DataParallel` with shards of the state, of one worker."""

    wrapper = functools.partial(distributed.DataParallel, shard_state=True)


class Replicas(Workers):
    """`SyncReplicas` of one worker."""

    wrapper = functools.partial(distributed.SyncReplicas, replicas_to_aggregate=1)


class Average(Workers):
    """`ModelAverage` of one worker, after each step."""

    wrapper = functools.partial(distributed.ModelAverage, interval=1)


class NormPass(TensorsInBackward):
    """A class of `oxigrad.torch` with ``in_backward=True``, whose norm a first backward measures."""

    def step(self, grads: Mapping[str, Any]) -> None:
        with self._opt.norm_pass():
            self.loss(grads).backward()
        super().step(grads)


class HostTensors(Tensors):
    """A class of `oxigrad.torch` with the state in host memory."""

    options = MappingProxyType({"state_device": "host"})


class HostInBackward(TensorsInBackward):
    """A class of `oxigrad.torch` with the state in host memory, stepped in the backward."""

    options = MappingProxyType({"in_backward": True, "state_device": "host"})


class _InFile:
    """A way whose state is a file, which ends with it."""

    def __init__(self, *args: Any, **how: Any) -> None:
        folder = pathlib.Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.options = {**type(self).options, "state_device": folder / "state.safetensors"}  # type: ignore[attr-defined]
        super().__init__(*args, **how)


class FileTensors(_InFile, Tensors):
    """A class of `oxigrad.torch` with the state in a file."""


class FileInBackward(_InFile, TensorsInBackward):
    """A class of `oxigrad.torch` with the state in a file, stepped in the backward."""


WAYS: dict[str, tuple[type[Door], str]] = {
    **DOORS,
    "minimize-record": (Recorded, "numpy"),
    "host": (Host, "numpy"),
    "LargeBatch": (Large, "numpy"),
    "shards": (Shards, "numpy"),
    "SyncReplicas": (Replicas, "numpy"),
    "ModelAverage": (Average, "numpy"),
    "torch-norm-pass": (NormPass, "torch"),
    "torch-host": (HostTensors, "torch"),
    "torch-host-in-backward": (HostInBackward, "torch"),
    "torch-file": (FileTensors, "torch"),
    "torch-file-in-backward": (FileInBackward, "torch"),
}

# The arguments that a way requires.
IMPLIED = {"torch-norm-pass": {"max_norm": 1.0}}


# --- cells -------------------------------------------------------------------------------------------------------------

REFUSALS = (TypeError, ValueError, RuntimeError, ox.StateError)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run of steps leaves: the bytes of parameters, and of all else that can be seen."""

    parameters: Mapping[str, bytes]
    others: Mapping[str, bytes]
    raised: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A combination: ``reason`` is the error by which it is refused, or None.

    ``is_expressible`` is whether the way has a word for the option at all, ``has_bits`` whether the parameters are those of
    `Optimizer.update`, ``has_effect`` whether anything differs from the same way without the option.
    """

    reason: str | None = None
    is_expressible: bool = True
    has_bits: bool = True
    has_effect: bool = True

    @property
    def mark(self) -> str:
        """The cell in a word."""
        if not self.is_expressible:
            return "-"
        if self.reason is not None:
            return "refused"
        return "ok" if self.has_bits and self.has_effect else "no effect" if self.has_bits else "other bits"


def _drawn(dtype: str, seed: int) -> Values:
    draws = np.random.default_rng(seed)
    return {path: draws.standard_normal(shape).astype(dtype) for path, shape in SHAPES.items()}


@functools.cache
def outcome(way: str, option: str, *, is_given: bool = True, implied: str = "") -> Outcome:
    """What the steps of a way leave, with the option or without; raises what the way raises before the first step.

    ``implied`` is the name of a way whose implied arguments are added.
    """
    kind, library = WAYS[way]
    if library != "numpy":
        pytest.importorskip(library)
        pytest.importorskip(f"oxigrad.{library}")
    row = OPTIONS[option]
    name, own = (row.name, row.arguments) if is_given else (row.other, {})
    arguments = copy.deepcopy({**IMPLIED.get(implied or way, {}), **own})
    if issubclass(kind, Tensors) and (lacking := arguments.keys() & {*_ONLY_OPTIM}):
        cannot(f"PyTorch's optimizers have no option {', '.join(lacking)}")
    door = kind(name, arguments, _drawn(row.dtype, 0))
    gradients = [row.given(_drawn(row.dtype, 1 + number), number) for number in range(STEPS)]
    if isinstance(door, (Minimize, OfTensors, Pytrees)) and row.given is _in_rows:
        cannot("the gradients of a loss are whole")
    is_scaled = "loss_scale" in arguments and not isinstance(door, Minimize)
    # A pure step leaves the scale as it is; others halve it after the step with a NaN.
    scales = (8.0, 8.0, 8.0 if isinstance(door, (Apply, Pytrees)) else 4.0) if is_scaled else (1.0,) * STEPS
    raised, seen = "", dict[str, bytes]()
    for number, grads in enumerate(gradients):
        given = {
            path: g if isinstance(g, ox.SparseRows) else g * g.dtype.type(scales[number]) for path, g in grads.items()
        }
        try:
            door.step(given)
        except ox.NonFiniteError as error:
            if number == 0:
                raise
            raised = type(error).__name__
        seen |= {f"{number}.{path}": g.tobytes() for path, g in given.items() if isinstance(g, np.ndarray)}
    parameters = {path: door.parameter(path).tobytes() for path in SHAPES}
    return Outcome(parameters, {**seen, **_slots(door)}, raised)


_ONLY_OPTIM = ("accumulate", "loss_scale", "nonfinite", "zero_gradients", "sparse", "record_norms")


def _slots(door: Door) -> dict[str, bytes]:
    """The bytes of all slots, which may be codes."""
    found = {f"{path}.{name}": slot for path in SHAPES for name, slot in door.raw_slots(path).items()}
    return {name: _bytes(slot) for name, slot in found.items()}


def _bytes(slot: Any) -> bytes:
    slot = getattr(slot, "codes", slot)
    torch = importlib.import_module("torch") if type(slot).__module__.startswith("torch") else None
    if torch is not None and slot.dtype is torch.bfloat16:
        slot = slot.float()
    array = np.asarray(slot)
    return f"{array.dtype}{array.shape}".encode() + array.tobytes()


@functools.cache
def cell(way: str, option: str) -> Cell:
    """The combination of a way and an option."""
    try:
        found = outcome(way, option)
    except pytest.skip.Exception as error:
        return Cell(str(error), is_expressible=False)
    except REFUSALS as error:
        return Cell(f"{type(error).__name__}: {error}")
    expected = outcome("update", option, implied=way)
    has_bits = found.parameters == expected.parameters and found.raised == expected.raised
    without = outcome(way, option, is_given=False)
    return Cell(has_bits=has_bits, has_effect=found != without)


def cells(ways: Mapping[str, Any] = WAYS) -> Iterator[tuple[str, str, Cell]]:
    """The option, the way and what becomes of them, for all combinations."""
    for option in OPTIONS:
        for way in ways:
            yield option, way, cell(way, option)
