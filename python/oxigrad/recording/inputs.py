"""The leaves of a call's arguments and of what the function captures, and the kind of call that they make."""

import copy
from typing import Any, NamedTuple

import numpy as np

from oxigrad import tree
from oxigrad.recording import files
from oxigrad.recording.captures import Captures


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
    leaves: tuple[Any, ...]
    aliases: tuple[int, ...]

    def __str__(self) -> str:
        return ", ".join(map(_shown, self.leaves)) or "()"


def _shown(kind: Any) -> str:
    if isinstance(kind, tuple):
        return f"{np.dtype(kind[1]).name}{list(kind[0])}" if isinstance(kind[0], tuple) else repr(kind[1])
    return kind.__name__


class Inputs:
    """The leaves of arguments and captures: the traced ones in ``values``, and the key of all."""

    with_ints: bool
    leaves: list[Any]
    places: list[tuple[str, int]]
    values: list[Any]
    key: Key

    def __init__(self, given: list[Any], structure: tree.Structure, captures: Captures, *, with_ints: bool) -> None:
        self.with_ints, self._captures = with_ints, captures
        structures, self.leaves, self.places = [structure], given, [("", len(given))]
        for path, read in captures.inputs:
            found, its = tree.flatten(read())
            structures.append(its)
            self.places.append((path, len(found)))
            self.leaves = [*self.leaves, *found]
        self.values = [leaf for leaf in self.leaves if is_traced(leaf, with_ints=with_ints)]
        first: dict[int, int] = {}
        arrays = [leaf for leaf in self.values if isinstance(leaf, np.ndarray)]
        aliases = tuple(first.setdefault(id(leaf), at) for at, leaf in enumerate(arrays))
        self.key = Key(tuple(structures), tuple(_kind(leaf, with_ints=with_ints) for leaf in self.leaves), aliases)

    def path(self, at: int) -> str:
        """The path of a leaf."""
        for (name, count), structure in zip(self.places, self.key.structures, strict=True):
            if at < count:
                where = str(structure.path(at))
                if name:
                    return f"{name}.{where}".rstrip(".")
                return f"argument {where[2:]}" if where.startswith("0.") else f"argument {where.removeprefix('1.')}"
            at -= count
        raise IndexError(at)

    def described(self) -> "Inputs":
        """The same without the arrays: the kinds of the arguments in place of leaves."""
        made = copy.copy(self)
        given = self.leaves[: self.places[0][1]]
        traced = [is_traced(leaf, with_ints=self.with_ints) for leaf in given]
        made.leaves = [
            files.kind_of(leaf) if is_traced else {"value": leaf} for leaf, is_traced in zip(given, traced, strict=True)
        ]
        made.values = []
        return made

    def captured(self) -> list[Any]:
        """The present values of captured inputs."""
        leaves = [leaf for _, read in self._captures.inputs for leaf in tree.leaves(read())]
        return [leaf for leaf in leaves if is_traced(leaf, with_ints=self.with_ints)]

    def difference(self, other: "Inputs") -> Why:
        """The first leaf of another kind."""
        pairs = zip(other.key.leaves, self.key.leaves, strict=False)
        for at, (old, new) in enumerate(pairs):
            if old != new and self.key.structures == other.key.structures:
                return Why(self.path(at), _shown(old), _shown(new))
        for (name, _), old, new in zip(self.places, other.key.structures, self.key.structures, strict=True):
            if old != new:
                return Why(f"the structure of {name or 'the arguments'}", str(old), str(new))
        return Why("arrays that are the same", str(other.key.aliases), str(self.key.aliases))


def is_traced(leaf: Any, *, with_ints: bool) -> bool:
    """Whether a leaf is an input of a recording: an array of NumPy or a number, integers only ``with_ints``."""
    return (
        isinstance(leaf, (np.ndarray, np.generic))
        or type(leaf) in (float, complex)
        or (with_ints and type(leaf) is int)
    )


def _kind(leaf: Any, *, with_ints: bool) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.shape, leaf.dtype.str, leaf.flags.c_contiguous
    if isinstance(leaf, np.generic):
        return (), leaf.dtype.str, type(leaf)
    if is_traced(leaf, with_ints=with_ints):
        return type(leaf)
    if isinstance(leaf, (bool, int, str, bytes, type(None))):
        return type(leaf), leaf
    return type(leaf), _Identity(leaf)


class _Identity:
    """An object that is compared by identity."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)
