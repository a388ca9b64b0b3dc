"""The leaves of a call's arguments and of what the function captures, and the kind of call that they make."""

import copy
import types
from typing import Any, NamedTuple

import numpy as np

from oxigrad import tree
from oxigrad._core import LeafKind
from oxigrad.recording import files
from oxigrad.recording.bits import is_same
from oxigrad.recording.captures import SIMPLE, Captures, is_holder
from oxigrad.recording.traced import UnrecordableError, is_traced

# Arguments and results that are constants, guarded by identity.
CONSTANTS = (*SIMPLE, type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
# The arrays of a first call are kept until another call is audited, up to so many bytes.
_MOST_BYTES = 1 << 26


class Why(NamedTuple):
    """Why the last call was not a replay: what changed, from which value to which."""

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.old} -> {self.new}"


class Key(NamedTuple):
    """The kind of a call: the structures of arguments and captures, and the kinds of their leaves."""

    structures: tuple[tree.Structure, ...]
    leaves: tuple[LeafKind, ...]
    aliases: tuple[int, ...]

    def __hash__(self) -> int:
        return hash((self.structures, len(self.leaves), self.aliases))

    def __str__(self) -> str:
        return ", ".join(map(repr, self.leaves)) or "()"


class Inputs:
    """The leaves of arguments and captures: the traced ones in ``values``, and the key of all."""

    with_ints: bool
    leaves: list[Any]
    places: list[tuple[str, int]]
    values: list[Any]
    key: Key

    def __init__(self, leaves: list[Any], structure: tree.Structure, captures: Captures, *, with_ints: bool) -> None:
        self.with_ints, self._captures = with_ints, captures
        structures, self.leaves, self.places = [structure], leaves, [("", len(leaves))]
        for path, value in captures.trees():
            captured, its = tree.flatten(value)
            structures.append(its)
            self.places.append((path, len(captured)))
            self.leaves = [*self.leaves, *captured]
        kinds = tuple(LeafKind(leaf, with_ints=with_ints) for leaf in self.leaves)
        pairs = list(zip(self.leaves, kinds, strict=True))
        self.values = [leaf for leaf, kind in pairs if kind.is_input]
        first: dict[int, int] = {}
        arrays = [leaf for leaf, kind in pairs if kind.is_array]
        aliases = tuple(first.setdefault(id(leaf), at) for at, leaf in enumerate(arrays))
        self.key = Key(tuple(structures), kinds, aliases)

    def path(self, at: int) -> str:
        """The path of a leaf."""
        for (name, count), structure in zip(self.places, self.key.structures, strict=True):
            if at < count:
                where = str(structure.path(at))
                if name:
                    return f"{name}.{where}".rstrip(".")
                return files.argument(where)
            at -= count
        raise IndexError(at)

    def require_constants(self) -> None:
        """Raises `UnrecordableError` for an argument that is neither a tree of inputs nor a constant.

        Attributes of containers beside their items are constants: each call compares them.
        """
        leaves = self.leaves[: self.places[0][1]]
        for at, (leaf, kind) in enumerate(zip(leaves, self.key.leaves, strict=False)):
            if not (kind.is_input or isinstance(leaf, CONSTANTS)):
                advice = ": make it a dataclass, call ox.tree.register, or hold it by name" if is_holder(leaf) else ""
                raise UnrecordableError(
                    f"{self.path(at)} is a {type(leaf).__name__}, whose state is not watched{advice}"
                )
        for attributes in self.key.structures[0].attributes():
            if attributes is None:
                raise UnrecordableError("an argument is a list or a dict with attributes: hold it by name")
            for name, value in attributes.items():
                if not isinstance(value, (*CONSTANTS, float, complex, np.generic)):
                    what = f"a {type(value).__name__} that is no field"
                    raise UnrecordableError(f"attribute {name} of an argument is {what}: its state is not watched")

    def described(self) -> "Inputs":
        """The same without the arrays: the kinds of the arguments in place of leaves."""
        inputs = copy.copy(self)
        arguments = self.leaves[: self.places[0][1]]
        inputs.leaves = [
            files.kind_of(leaf) if kind.is_input else {"value": leaf}
            for leaf, kind in zip(arguments, self.key.leaves, strict=False)
        ]
        inputs.values = []
        return inputs

    def captured(self) -> list[Any]:
        """The present values of captured inputs."""
        leaves = [leaf for _, value in self._captures.trees() for leaf in tree.leaves(value)]
        return [leaf for leaf in leaves if LeafKind(leaf, with_ints=self.with_ints).is_input]

    def difference(self, other: "Inputs") -> Why:
        """The first leaf of another kind."""
        pairs = zip(other.key.leaves, self.key.leaves, strict=False)
        for at, (old, new) in enumerate(pairs):
            if old != new and self.key.structures == other.key.structures:
                return Why(self.path(at), repr(old), repr(new))
        for (name, _), old, new in zip(self.places, other.key.structures, self.key.structures, strict=True):
            if old != new:
                return Why(f"the structure of {name or 'the arguments'}", str(old), str(new))
        if self.key.aliases == other.key.aliases:
            each = (other.key.structures[0], self.key.structures[0])
            return Why("attributes of the arguments", *(str(structure.attributes()) for structure in each))
        return Why("arrays that are the same", str(other.key.aliases), str(self.key.aliases))


def copies(values: list[Any]) -> list[Any]:
    """The values of inputs, which no write changes."""
    return [np.array(value, order="K") if isinstance(value, np.ndarray) else value for value in values]


def restore(values: list[Any], before: list[Any]) -> None:
    """Undoes writes of a call that has not returned, which is repeated."""
    for value, its in zip(values, before, strict=True):
        if isinstance(value, np.ndarray) and not is_same(value, its):
            value[...] = its


def change(before: list[Any], inputs: Inputs, captures: Captures) -> str | None:
    """The reason why a call cannot be recorded that has changed inputs; None for one that has not."""
    if (guard := captures.changed()) is not None:
        return f"the function changes {guard[0]}"
    now = Inputs(inputs.leaves[: inputs.places[0][1]], inputs.key.structures[0], captures, with_ints=inputs.with_ints)
    if now.key != inputs.key:
        return f"the function changes {now.difference(inputs).path}"
    at = next((at for at, pair in enumerate(zip(before, now.values, strict=True)) if not is_same(*pair)), None)
    if at is None:
        return None
    places = [at for at, kind in enumerate(inputs.key.leaves) if kind.is_input]
    return f"the function changes an array that it reads, {now.path(places[at])}"


def is_small(values: list[Any]) -> bool:
    """Whether arrays are kept."""
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray)) <= _MOST_BYTES


def is_constant(leaf: Any) -> bool:
    """Whether the leaf of a result is traced, or an object that each replay returns."""
    return is_traced(leaf) or (isinstance(leaf, CONSTANTS) and not isinstance(leaf, slice))
