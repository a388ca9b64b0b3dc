"""Random models for `test_steps`: arrays of many dtypes and layouts, in nested containers, with shared parameters."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import tree

try:
    import torch
except ImportError:
    torch: Any = None
try:
    from ml_dtypes import bfloat16
except ImportError:
    bfloat16: Any = None

DTYPES = ["float64", "float64", "float32", "float32", "float16", *(["bfloat16"] if bfloat16 else [])]
SHAPES = [(), (1,), (3,), (17,), (0,), (2, 0), (3, 4), (5, 1), (2, 3, 4), (1, 130), (600,)]
LARGE = (4100,)


class Draw(random.Random):
    """Random choices from one seed, and random numbers as arrays."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.arrays = np.random.default_rng(seed)

    def flag(self, probability: float = 0.5) -> bool:
        """True so often."""
        return self.random() < probability

    def values(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Numbers around zero, contiguous."""
        return np.asarray(self.arrays.standard_normal(shape)).astype(numpy_dtype(dtype))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a name, for NumPy."""
    return np.dtype(bfloat16 if name == "bfloat16" else name)


# --- layouts -----------------------------------------------------------------------------------------------------------


def _stepped(values: np.ndarray) -> np.ndarray:
    room = np.zeros((*values.shape[:-1], 3 * values.shape[-1]), values.dtype)
    room[..., 1::3] = values
    return room[..., 1::3]


def _misaligned(values: np.ndarray) -> np.ndarray:
    room = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    room[...] = values
    return room


def _read_only(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.setflags(write=False)
    return copy


def _reversed(values: np.ndarray) -> np.ndarray:
    backwards = (slice(None, None, -1),) * values.ndim
    return values[backwards].copy()[backwards]


def _swapped_axes(values: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.moveaxis(values, 0, -1).copy(), -1, 0)


Layout = Callable[[np.ndarray], Any]
PLAIN: dict[str, Layout] = {"contiguous": np.copy, "misaligned": _misaligned, "read-only": _read_only}
WITH_AXES: dict[str, Layout] = {
    "fortran": np.asfortranarray,
    "reversed": _reversed,
    "stepped": _stepped,
    "swapped axes": _swapped_axes,
}


def to_torch(values: np.ndarray) -> Any:
    """A tensor of its own with these values."""
    if values.dtype == bfloat16:
        return torch.tensor(values.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(np.ascontiguousarray(values).reshape(values.shape))


def _torch_stepped(values: np.ndarray) -> Any:
    tensor = to_torch(values)
    room = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype)
    room[..., ::2] = tensor
    return room[..., ::2]


def _torch_within(values: np.ndarray) -> Any:
    tensor = to_torch(values)
    room = torch.zeros(tensor.numel() + 5, dtype=tensor.dtype)
    room[3 : 3 + tensor.numel()] = tensor.reshape(-1)
    return room[3 : 3 + tensor.numel()].view(tensor.shape)


def _torch_swapped(values: np.ndarray) -> Any:
    return to_torch(values).movedim(0, -1).contiguous().movedim(-1, 0)


def negated(values: np.ndarray) -> Any:
    """A tensor whose numbers are minus those in its memory."""
    tensor = to_torch(values)
    return torch.complex(torch.zeros_like(tensor), -tensor).conj().imag


TENSORS: dict[str, Layout] = {"tensor": to_torch, "within": _torch_within}
TENSORS_WITH_AXES: dict[str, Layout] = {"stepped tensor": _torch_stepped, "swapped tensor": _torch_swapped}


def layouts(library: str, dtype: str, shape: tuple[int, ...]) -> dict[str, Layout]:
    """The layouts that an array can have as a parameter or as a gradient."""
    if library == "torch":
        return {**TENSORS, **(TENSORS_WITH_AXES if shape else {})}
    found = {**PLAIN, **(WITH_AXES if shape else {})}
    if dtype != "bfloat16":
        found["big-endian"] = lambda values: values.astype(values.dtype.newbyteorder(">"))
    return found


def read(array: Any) -> np.ndarray:
    """A copy of the numbers of an array, contiguous and in the host's byte order."""
    if torch and isinstance(array, torch.Tensor):
        array = array.detach().resolve_conj().resolve_neg()
        array = array.float().numpy().astype(bfloat16) if array.dtype == torch.bfloat16 else array.numpy()
    found = np.asarray(array)
    return np.array(found, numpy_dtype(found.dtype.name), order="C")


def memory(array: Any) -> np.ndarray:
    """An array of NumPy in the same memory, to see what shares it."""
    if torch and isinstance(array, torch.Tensor):
        array = array.detach()
        if array.dtype == torch.bfloat16:
            array = array.view(torch.int16)
        return torch._neg_view(array).numpy() if array.is_neg() else array.numpy()
    return array


# --- containers --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Pair:
    """A container with two fields."""

    first: Any
    second: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A container that cannot be written."""

    first: Any
    second: Any = None


@tree.register(fields=("first", "second"))
class Registered:
    """A container that the tree was told of."""

    def __init__(self, first: Any, second: Any = None) -> None:
        self.first, self.second = first, second


class Watched(dict):
    """A dict that tells of each assignment."""

    hook: Callable[[], Any] | None = None
    in_step = False

    def __setitem__(self, key: Any, value: Any) -> None:
        if Watched.hook and Watched.in_step:
            Watched.hook()
        super().__setitem__(key, value)


def nested(draw: Draw, leaves: list[Any]) -> Any:
    """The leaves in random containers, in their order, with other things between them."""
    parts = list(leaves)
    if len(leaves) > 2 and draw.flag(0.7):
        cut = draw.randrange(1, len(leaves))
        parts = [nested(draw, leaves[:cut]), nested(draw, leaves[cut:])]
    if draw.flag(0.3):
        parts.insert(draw.randrange(len(parts) + 1), draw.choice([None, 3, "text", np.arange(3)]))
    kind = draw.choice([dict, dict, list, tuple, Pair, Frozen, Registered, Watched])
    if kind in (dict, Watched):
        names = draw.sample(["a", "weight", "bias", "x y", "0", "u.v", "é"], 7)
        return kind({(names[i] if i < 7 else f"p{i}"): part for i, part in enumerate(parts)})
    if kind in (list, tuple):
        return kind(parts)
    if len(parts) > 2:
        parts = [parts[:1], parts[1:]]
    return kind(*parts)


# --- weights and models --------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Weight:
    """A parameter: its dtype and shape, the leaves of the model that are it, and how it is called."""

    library: str
    dtype: str
    shape: tuple[int, ...]
    layout: str
    leaves: list[int] = dataclasses.field(default_factory=list)
    text: str = ""

    @property
    def key(self) -> str:
        """Its key in a flat model."""
        return ox._core.tree_unquoted(self.text)

    def made(self, values: np.ndarray) -> Any:
        """An array of the values, in the layout."""
        if self.layout == "parameter":
            return torch.nn.Parameter(to_torch(values))
        return layouts(self.library, self.dtype, self.shape)[self.layout](values)


def random_weight(draw: Draw, dtypes: list[str], libraries: list[str]) -> Weight:
    """A weight of some shape, dtype and layout."""
    library, dtype = draw.choice(libraries), draw.choice(dtypes)
    shape = LARGE if draw.flag(0.04) else draw.choice(SHAPES)
    names = [*layouts(library, dtype, shape), *(["parameter"] * 2 if library == "torch" else [])]
    if draw.flag(0.8):  # what the core updates by its rule alone, or replaces, is rare
        names = [name for name in names if name not in ("big-endian", "read-only")]
    return Weight(library, dtype, shape, draw.choice(names))


class Model:
    """A random model, and the same weights as a flat dict of contiguous arrays of NumPy."""

    def __init__(self, draw: Draw) -> None:
        dtypes = draw.choice([["float64"], ["float32"], ["float64", "float32"], DTYPES])
        libraries = draw.choice([["numpy"], ["numpy"], *([["torch"], ["numpy", "torch"]] if torch else [])])
        self.weights = [random_weight(draw, dtypes, libraries) for _ in range(draw.randint(1, 5))]
        order = [k for k in range(len(self.weights)) for _ in range(1 + (draw.flag(0.15) and draw.randint(1, 2)))]
        draw.shuffle(order)
        arrays = [w.made(draw.values(w.shape, w.dtype)) for w in self.weights]
        self.tree = nested(draw, [arrays[k] for k in order])
        numbers = {id(array): k for k, array in enumerate(arrays)}
        leaves, structure = tree.flatten(self.tree)
        for i, leaf in enumerate(leaves):
            if id(leaf) in numbers:
                self.weights[numbers[id(leaf)]].leaves.append(i)
        for weight in self.weights:
            weight.text = str(structure.path(weight.leaves[0]))
        self.weights.sort(key=lambda weight: weight.leaves[0])
        self.plain = {w.key: read(self.array(w)) for w in self.weights}

    def array(self, weight: Weight) -> Any:
        """The array that a weight is at present."""
        return tree.leaves(self.tree)[weight.leaves[0]]

    def replace(self, arrays: dict[int, Any]) -> None:
        """Puts other arrays at leaves, in new containers."""
        leaves, structure = tree.flatten(self.tree)
        self.tree = tree.unflatten(structure, [arrays.get(i, leaf) for i, leaf in enumerate(leaves)])

    def like(self, arrays: dict[int, Any]) -> Any:
        """A tree of the model's structure with other leaves."""
        leaves, structure = tree.flatten(self.tree)
        return tree.unflatten(structure, [arrays.get(i, leaf) for i, leaf in enumerate(leaves)])

    def __str__(self) -> str:
        rows = (f"{w.text} {w.library} {w.dtype} {w.shape} {w.layout} at {len(w.leaves)} paths" for w in self.weights)
        return "; ".join(rows)
