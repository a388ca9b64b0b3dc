"""Copies of functions, containers and objects that hold traced values, which a function reads while it is recorded."""

import functools
import gc
import operator
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oxigrad import tree
from oxigrad._core import RecordedFunction
from oxigrad.recording.answers import STAND_INS
from oxigrad.recording.captures import EMPTY, Captures, base_of, is_holder, is_of_library, items_of, slots_of
from oxigrad.recording.inputs import Inputs
from oxigrad.recording.trace import Trace
from oxigrad.recording.traced import Traced, UnrecordableError, is_traced

# The items of a container, and the attributes of an object.
_Contents = tuple[dict[Any, Any], dict[str, Any]]


class _Space(dict[str, Any]):
    """A copy of a namespace."""

    __slots__ = ("__weakref__",)


class Shadows:
    """Copies of functions, containers and objects that hold traced values; originals get what is written to them."""

    def __init__(self, captures: Captures, trees: list[Any]) -> None:
        self._captures = captures
        self._trees: list[Any] = trees
        # By its place, what stands there.
        self._of: dict[int, Any] = {}
        self._spaces: dict[int, _Space] = {}
        self._cells: dict[int, types.CellType] = {}
        # The originals by the ids of their copies; and for each pair the path, original, copy, and contents of the
        # copy.
        self._originals: dict[int, tuple[Any, Any]] = {}
        self._pairs: list[tuple[str, Any, Any, Any]] = []
        self._seen: dict[int, Any] = {}

    def note(self, path: str, original: Any, copy: Any) -> None:
        """Watches the containers of a tree and its copy; raises `UnrecordableError` for one that is there twice."""
        if isinstance(copy, Traced):
            self._originals[id(copy)] = copy, original
            return
        if copy is original or (contents := _contents(copy)) is None:
            return
        self._pair(path, original, copy)
        for part, its in zip(_contents(original) or (), contents, strict=True):
            for key, value in part.items():
                if key in its:
                    self.note(f"{path}[{key!r}]", value, its[key])

    def _pair(self, path: str, original: Any, copy: Any) -> None:
        if not isinstance(original, tuple) and self._seen.setdefault(id(original), copy) is not copy:
            raise UnrecordableError(f"{path} is a {type(original).__name__} that is an input in two places")
        self._originals[id(copy)] = copy, original
        self._pairs.append((path, original, copy, None))

    def function(self) -> Callable[..., Any]:
        """The function, which reads traced values."""
        copied = self.of(self._captures.place, self._captures.f, "")
        pairs = [(path, original, copy) for path, original, copy, _ in self._pairs]
        # Containers and objects without inputs, which the function reads themselves.
        captures = self._captures
        others = {place: captures.present(place, None) for place in captures.parts if place not in captures.copied}
        pairs += [(captures.paths[place], value, value) for place, value in others.items()]
        self._pairs = [(*pair, _contents(pair[2])) for pair in pairs]
        return copied

    def of(self, place: int, value: Any, path: str) -> Any:
        """The value of a place itself, or what stands for it."""
        captures = self._captures
        place = captures.same.get(place, place)
        if place in self._of:
            return self._of[place]
        if place in captures.input_at:
            copy = self._of[place] = self._trees[captures.input_at[place]]
            self.note(captures.inputs[captures.input_at[place]][0], value, copy)
            return copy
        if place not in captures.parts or (place not in captures.copied and not isinstance(value, types.FunctionType)):
            return value
        parts = captures.parts[place]
        if isinstance(value, types.FunctionType):
            return self._function(place, value, parts, path)
        part = functools.partial(self._part, path)
        if isinstance(value, functools.partial):
            of = {(kind, key): part(place) for kind, key, place in parts}
            keywords = {name: of["keyword", name] for name in value.keywords}
            arguments = (of.get(("argument", at), arg) for at, arg in enumerate(value.args))
            copy = self._of[place] = functools.partial(of["attribute", "func"], *arguments, **keywords)
            vars(copy).update(vars(value))
        elif isinstance(value, types.MethodType):
            copy = self._of[place] = types.MethodType(*(part(place) for _, _, place in parts))
        elif isinstance(value, RecordedFunction):
            copy = self._of[place] = part(parts[0][2])
        else:
            return self._holder(place, value, parts, path)
        self._originals[id(copy)] = copy, value
        return copy

    def _part(self, path: str, place: int, key: Any = "") -> Any:
        """A part or its copy, `EMPTY` for nothing."""
        value = self._captures.present(place, EMPTY)
        return value if value is EMPTY else self.of(place, value, f"{path}.{key}".strip("."))

    def _holder(self, place: int, value: Any, parts: list[tuple[str, Any, int]], path: str) -> Any:
        """A copy of a container or an object."""
        base: Any = base_of(value)
        if base is tuple:
            items = [self._part(path, of, key) for kind, key, of in parts if kind == "item"]
            copy = self._of[place] = tuple.__new__(type(value), items)
        else:
            copy = self._of[place] = object.__new__(type(value)) if base is object else base.__new__(type(value))
        self._pair(path, value, copy)
        for kind, key, of in parts:
            part = self._part(path, of, key)
            if kind == "attribute" and part is not EMPTY:
                _set(copy, key, part)
            elif kind == "item" and base is list:
                list.append(copy, part)
            elif kind == "item" and issubclass(base, dict):
                base.__setitem__(copy, key, part)
        return copy

    def _function(
        self, place: int, function: types.FunctionType, parts: list[tuple[str, Any, int]], path: str
    ) -> types.FunctionType:
        """A copy of a function, over a copy of its namespace."""
        namespace = function.__globals__
        space = self._spaces.get(id(namespace))
        if space is None and not is_of_library(namespace.get("__name__", "")):
            space = self._spaces[id(namespace)] = _Space(namespace)
            space.update((name, each) for name, each in STAND_INS.items() if name not in namespace)
            self._pair(path, namespace, space)
        originals = function.__closure__ or ()
        cells = tuple(self._cells.setdefault(id(cell), types.CellType()) for cell in originals)
        copy = types.FunctionType(
            function.__code__, namespace if space is None else space, function.__name__, None, cells or None
        )
        self._of[place] = copy
        self._originals[id(copy)] = copy, function
        copy.__dict__.update(function.__dict__)
        self._pair(f"{path}.__dict__", function.__dict__, copy.__dict__)
        new = dict(zip(function.__code__.co_freevars, cells, strict=True))
        for (name, cell), its in zip(new.items(), originals, strict=True):
            held = _contents(its)
            if held is not None and held[1] and id(cell) not in self._originals:
                cell.cell_contents = held[1]["cell_contents"]
            if id(cell) not in self._originals:
                self._pair(name, its, cell)
        defaults, named = list(function.__defaults__ or ()), {**(function.__kwdefaults__ or {})}
        for kind, key, of in parts:
            part = self._part(path, of, key)
            if part is EMPTY:
                continue
            if kind == "global" and space is not None:
                space[key] = part
            elif kind == "cell":
                new[key].cell_contents = part
            elif kind == "attribute":
                copy.__dict__[key] = part
            elif isinstance(key, int):
                defaults[key] = part
            else:
                named[key] = part
        copy.__defaults__, copy.__kwdefaults__ = tuple(defaults) or None, named or None
        copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
        return copy

    # --- afterwards ---------------------------------------------------------------------------------------------------

    def settle(self) -> str | None:
        """Writes to the originals what the function has written to the copies; returns the path of the first change."""
        first = None
        for path, original, copy, before in self._pairs:
            now = _contents(copy)
            if before is None or now is None or _are_same(before, now):
                continue
            where = _assign(original, before, now, self.plain)
            first = first or f"{path}{where}".lstrip(".") or "what it reads"
        return first

    def undo(self) -> None:
        """Undoes what the function has written to containers and objects that have no copies."""
        for _, original, copy, before in self._pairs:
            if original is copy and before is not None and (now := _contents(copy)) is not None:
                _assign(original, now, before, lambda part: part)

    def retire(self) -> tuple[list[tuple[Any, Any]], list[tuple[weakref.ref[Any], Any]]]:
        """The copies with their originals, whose contents they get: by weak references where these exist."""
        copies, references = [], []
        for _, original, copy, _ in self._pairs:
            now, new = _contents(copy), _contents(original)
            if copy is not original and now is not None and new is not None:
                _assign(copy, now, new, lambda part: part)
        for copy, original in self._originals.values():
            if not isinstance(copy, (Traced, tuple)):
                try:
                    references.append((weakref.ref(copy), original))
                except TypeError:
                    copies.append((copy, original))
        return copies, references

    def is_held(self, result: Any) -> bool:
        """Whether traced values, or copies of namespaces, are reached from a result or from what the function writes.

        These are in a set, a closure or a generator, for which there is no plain one.
        """
        spaces = {id(space) for space in self._spaces.values()}
        seen, rest = {id(original) for _, original in self._originals.values()}, [result, *self._written()]
        while rest:
            part = rest.pop()
            if is_traced(part) or id(part) in spaces:
                return True
            is_space = isinstance(part, types.ModuleType) or (isinstance(part, dict) and "__builtins__" in part)
            if id(part) not in seen and not is_space:
                seen.add(id(part))
                rest.extend(part.flat if type(part) is np.ndarray and part.dtype.hasobject else gc.get_referents(part))
        return False

    def _written(self) -> Iterator[Any]:
        """The keys and the plain values that the function has written to copies."""
        for _, _, copy, before in self._pairs:
            now = None if before is None else _contents(copy)
            for old, new in zip(before or (), now or (), strict=False):
                for key, part in new.items():
                    if old.get(key, EMPTY) is not part:
                        yield from (key, self.plain(part))

    def plain(self, value: Any, seen: set[int] | None = None) -> Any:
        """The original of a copy, the plain value of a traced one, also inside of new containers."""
        pair = self._originals.get(id(value))
        if pair is not None:
            return pair[1]
        if isinstance(value, Traced):
            return value.plain
        seen = set() if seen is None else seen
        if id(value) in seen or (contents := _contents(value)) is None:
            return value
        seen.add(id(value))
        items, attributes = ({key: self.plain(part, seen) for key, part in each.items()} for each in contents)
        new = items, attributes
        if _are_same(contents, new):
            return value
        if isinstance(value, tuple):
            return tuple.__new__(type(value), new[0].values())
        _assign(value, contents, new, lambda part: part)
        return value


def shadowed(
    trace: Trace, inputs: Inputs, captures: Captures, arguments: Any
) -> tuple[Callable[..., Any], Any, Any, Shadows]:
    """The function and its arguments, traced, and the copies."""
    pairs = zip(inputs.leaves, inputs.key.leaves, strict=True)
    traced, of_arrays = [], dict[int, Any]()
    for leaf, kind in pairs:
        each = trace.input(leaf) if kind.is_input else leaf
        traced.append(of_arrays.setdefault(id(leaf), each) if kind.is_array else each)
    trees, at = [], 0
    for (_, count), structure in zip(inputs.places, inputs.key.structures, strict=True):
        trees.append(tree.unflatten(structure, traced[at : at + count]))
        at += count
    (args, named), *captured = trees
    shadows = Shadows(captures, captured)
    shadows.note("arguments", arguments, (args, named))
    return shadows.function(), args, named, shadows


def release(trace: Trace, copies: list[tuple[Any, Any]], references: list[tuple[weakref.ref[Any], Any]]) -> bool:
    """Whether values or copies of a call that has ended are left; plain values and originals take their places.

    See `Shadows.retire`. A cache of results that holds values is emptied. Other objects of C, arrays of objects and
    frames keep values, which compute as plain ones.
    """
    probe: list[Any] = []
    copies.append((probe, None))

    def is_left() -> bool:
        counts = [sys.getrefcount(copy) for copy, _ in copies]  # this function has another reference to the probe
        is_alive = any(reference() is not None for reference, _ in references)
        return bool(trace.alive) or is_alive or max(counts[:-1], default=0) >= counts[-1]

    if not is_left():
        return False
    gc.collect()
    if not is_left():
        return False
    alive = [(reference(), original) for reference, original in references]
    pairs = [pair for pair in (*copies[:-1], *alive) if pair[0] is not None]
    left = [each for each in gc.get_objects() if is_traced(each) and each.recorder is trace]
    plain = {id(each): each.plain for each in left} | {id(copy): original for copy, original in pairs}
    left += [copy for copy, _ in pairs]
    holders: dict[int, Any] = {}
    new: dict[int, Any] = {}
    mine = {id(each) for each in (*copies, *pairs, *alive, copies, pairs, alive, plain, holders)}
    while left:
        seen = mine | plain.keys() | holders.keys() | {id(left), id(new)}
        new = {id(each): each for each in gc.get_referrers(*left) if id(each) not in seen}
        holders.update(new)
        left = [each for each in new.values() if isinstance(each, _REPLACED) or type(each).__name__ == "_lru_list_elem"]
    for holder in [*holders.values()]:
        _exchange(holder, functools.partial(_exchanged, plain, holders))
    return True


# What is replaced as a whole.
_REPLACED = (tuple, frozenset, slice, types.FunctionType, types.MethodType, staticmethod, classmethod, property)


def _exchanged(plain: dict[int, Any], holders: dict[int, Any], part: Any) -> Any:
    """The replacement of a part: a plain value, an original, or a new object that holds them."""
    if id(part) in plain or id(part) not in holders or not isinstance(part, _REPLACED):
        return plain.get(id(part), part)
    of: Callable[[Any], Any] = functools.partial(_exchanged, plain, holders)
    if isinstance(part, types.FunctionType):
        cells = tuple(map(of, part.__closure__ or ()))
        namespace = of(part.__globals__)
        if namespace is part.__globals__ and all(map(operator.is_, cells, part.__closure__ or ())):
            new = part
        else:
            new = types.FunctionType(part.__code__, namespace, part.__name__, None, cells or None)
            functools.update_wrapper(new, part)
            new.__dict__, new.__kwdefaults__ = part.__dict__, part.__kwdefaults__
        plain[id(part)] = new  # before its defaults, which may hold it
        part.__defaults__ = new.__defaults__ = of(part.__defaults__)
    elif isinstance(part, types.MethodType):
        new = types.MethodType(of(part.__func__), of(part.__self__))
    elif isinstance(part, property):
        new = type(part)(of(part.fget), of(part.fset), of(part.fdel), part.__doc__)
    elif isinstance(part, (staticmethod, classmethod)):
        new = type(part)(of(part.__func__))
    elif isinstance(part, slice):
        new = slice(of(part.start), of(part.stop), of(part.step))
    else:
        base: Any = base_of(part)
        new = base.__new__(type(part), map(of, part))
        if hasattr(part, "__dict__"):
            new.__dict__ = part.__dict__
    plain[id(part)] = new
    return new


def _exchange(holder: Any, of: Callable[[Any], Any]) -> None:
    """Replaces the parts of an object in place."""
    base: Any = base_of(holder)
    owners = gc.get_referrers(holder) if type(holder) is dict else ()
    owner = next((each for each in owners if isinstance(each, type)), None)
    if owner is not None:  # whose dictionary Python alone writes
        for name, part in [(name, part) for name, part in holder.items() if of(part) is not part]:
            type.__setattr__(owner, name, of(part))
    elif isinstance(holder, types.FunctionType):
        of(holder)
    elif isinstance(holder, (set, deque)):
        parts = [*map(of, holder)]
        base.clear(holder)
        (base.update if isinstance(holder, set) else base.extend)(holder, parts)
    elif isinstance(holder, functools.partial):
        f, args, named, its = base.__reduce__(holder)[2]
        base.__setstate__(holder, (of(f), tuple(map(of, args)), {key: of(part) for key, part in named.items()}, its))
    elif isinstance(holder, functools._lru_cache_wrapper):
        holder.cache_clear()
    elif (contents := _contents(holder)) is not None:
        new = [{of(key): of(part) for key, part in each.items()} for each in contents]
        _assign(holder, contents, (new[0], new[1]), lambda part: part)
    else:
        if isinstance(holder, BaseException):
            holder.args = tuple(map(of, holder.args))
        its = getattr(holder, "__dict__", None)
        if isinstance(its, dict):
            its.update({name: of(part) for name, part in its.items()})


def _contents(holder: Any) -> _Contents | None:
    """The items of a container and the attributes of an object; None for what has neither."""
    if isinstance(holder, types.CellType):
        try:
            return {}, {"cell_contents": holder.cell_contents}
        except ValueError:
            return {}, {}
    if isinstance(holder, (Traced, type, types.ModuleType, types.FunctionType, np.ndarray)) or (
        not is_holder(holder) and not isinstance(holder, (list, tuple, dict))
    ):
        return None
    attributes = {**getattr(holder, "__dict__", {}), **slots_of(holder)}
    return dict(items_of(holder)), {name: part for name, part in attributes.items() if part is not EMPTY}


def _are_same(before: _Contents, now: _Contents) -> bool:
    return all(
        list(one) == list(other)
        and all(part is its or _is_equal(part, its) for part, its in zip(one.values(), other.values(), strict=True))
        for one, other in zip(before, now, strict=True)
    )


def _is_equal(part: Any, other: Any) -> bool:
    """Whether a value is replaced by equal plain data, which is no change."""
    return type(part) is type(other) and isinstance(part, (int, str, bytes)) and part == other


def _assign(original: Any, before: _Contents, now: _Contents, plain: Callable[[Any], Any]) -> str:
    """Puts the changed contents into an object; returns the name of the first one."""
    (items, attributes), (its, theirs) = before, now
    first = ""
    for name in {**attributes, **theirs}:
        if attributes.get(name, EMPTY) is theirs.get(name, EMPTY):
            continue
        first = first or ("" if name == "cell_contents" else f".{name}")
        if name in theirs:
            _set(original, name, plain(theirs[name]))
        elif isinstance(original, types.CellType):
            del original.cell_contents
        else:
            object.__delattr__(original, name)
    changed = [key for key in {**items, **its} if items.get(key, EMPTY) is not its.get(key, EMPTY)]
    if [*map(id, items)] == [*map(id, its)] and not changed:
        return first
    is_space = isinstance(original, dict) and "__builtins__" in its
    if isinstance(original, list):
        list.__setitem__(original, slice(None), [plain(part) for part in its.values()])
    elif is_space:  # which other threads read
        for key in changed:
            space: Any = original
            if key in its:
                space[key] = plain(its[key])
            else:
                space.pop(key, None)
    elif isinstance(original, dict):
        new, base = {key: plain(part) for key, part in its.items()}, base_of(original)
        base.clear(original)
        for key, part in new.items():
            base.__setitem__(original, key, part)
    return first or "".join(f".{key}" if is_space else f"[{key!r}]" for key in changed[:1])


def _set(holder: Any, name: str, value: Any) -> None:
    if isinstance(holder, types.CellType):
        holder.cell_contents = value
    else:
        object.__setattr__(holder, name, value)
