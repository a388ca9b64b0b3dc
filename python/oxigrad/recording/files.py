"""Recordings as files, entries as JSON beside arrays, which another process replays without the function."""

import operator
from typing import Any, NamedTuple

import numpy as np

from oxigrad import tree
from oxigrad._core import BatchLevel, Entry, EntryId, RuleError, StateError, StructureError, plain
from oxigrad.recording import targets
from oxigrad.recording.program.encoding import Encoder, decoded, identifier, in_pairs, join_pairs, rolled, unrolled
from oxigrad.recording.program.replay import Loops, replay_of
from oxigrad.recording.targets import Target
from oxigrad.recording.trace import MOST_ENTRIES

# More recordings of a function are not saved, and no more are read.
MOST_CASES = 64
FORMAT = "oxigrad.recording"
VERSION = 1


class Saved(NamedTuple):
    """One recorded call as a file has it: trees of arguments and result, the kinds of leaves, and entries."""

    arguments: Any
    kinds: list[Any]
    entries: list[Entry]
    outputs: list[EntryId]
    result: Any
    #: The loops of the entries: see `Replay.loops`.
    loops: Loops


def save(file: Any, name: str, cases: list[Saved]) -> None:
    """Writes recorded calls to a file; raises `StateError` where one has what no file holds."""
    import json

    from oxigrad.step.state import safetensors_io

    if len(cases) > MOST_CASES:
        raise StateError(f"found {len(cases)} recordings, expected at most {MOST_CASES}")
    encoder = Encoder()
    stated = {"format": FORMAT, "version": VERSION, "name": name, "cases": [_stated(case, encoder) for case in cases]}
    arrays, stated["complex"] = in_pairs(encoder.arrays)
    safetensors_io.write(file, arrays, {"recording": json.dumps(stated)})


def _stated(case: Saved, encoder: Encoder) -> Any:
    return {
        "arguments": encoder.encoded(case.arguments),
        "kinds": encoder.encoded(case.kinds),
        "entries": rolled([_entry(entry, encoder) for entry in case.entries], case.loops),
        "permuted": [at for at, entry in enumerate(case.entries) if entry.is_permuted],
        "outputs": [output.id for output in case.outputs],
        "result": encoder.encoded(case.result),
    }


def _entry(entry: Entry, encoder: Encoder) -> Any:
    if entry.kind == "input":
        return ["input"]
    if entry.kind == "constant":
        return ["constant", encoder.encoded(entry.value)]
    if entry.kind == "check":
        return ["check", entry.args[0].id, encoder.encoded(entry.value)]
    shape = None if entry.type is None else [list(entry.type[0]), entry.type[1]]
    named = [[key, encoder.encoded(value)] for key, value in entry.named.items()]
    return ["call", *entry.target, encoder.encoded(tuple(entry.args)), named, shape, entry.is_float]


def load_recording(file: Any) -> "LoadedRecording":
    """A recorded function from a file that `Recorded.save` wrote.

    Args:
        file: path of a file, or a binary file object.

    It takes arguments of the structure, shapes and dtypes that were recorded, and needs neither the function nor its
    source. Arrays that the function captured have the values that they had when it was saved. Its results are
    differentiable, and `vmap` takes it. If the recorded array was contiguous, a non-contiguous one is copied first, and
    the results have the bits of the function of the copy.

    Raises `StateError` for a file of another format or version, and for a damaged one: each entry, function, id and
    attribute is checked. Only functions that compute their result and nothing else are called, with arrays that they
    cannot write to. A file has no function: its constants are never audited.
    """
    import json

    from oxigrad.step.state import safetensors_io

    arrays, text = safetensors_io.read(file)
    if "recording" not in text:
        raise StateError(
            f"{file}: it has no recording: found the metadata {[*text]}, expected a file of `Recorded.save`"
        )
    try:
        stated = json.loads(text["recording"])
        if stated["format"] != FORMAT:
            raise StateError(f"found the format {stated['format']!r}, expected {FORMAT!r}")
        if stated["version"] != VERSION:
            raise StateError(f"found version {stated['version']!r} of the format, expected {VERSION}")
        if not isinstance(stated["name"], str):
            raise StateError("the name is no text")
        join_pairs(arrays, stated["complex"])
        if len(stated["cases"]) > MOST_CASES:
            raise StateError(f"found {len(stated['cases'])} recordings, expected at most {MOST_CASES}")
        cases, left = [], MOST_ENTRIES
        for case in stated["cases"]:
            cases.append(_case(case, arrays, left))
            left -= len(cases[-1].entries)
        return LoadedRecording(stated["name"], cases)
    except StateError as error:
        raise StateError(f"{file}: {error}") from None
    except KeyError as error:
        raise StateError(f"{file}: it is no recording: expected {error}, which it lacks") from None
    except Exception as error:  # noqa: BLE001 - the file may state anything
        raise StateError(f"{file}: it is no recording: {type(error).__name__}: {error}") from None


def _case(stated: Any, arrays: dict[str, np.ndarray], most: int) -> Saved:
    entries = [_read_entry(entry, at, arrays) for at, entry in enumerate(unrolled(stated["entries"], most))]
    outputs = [identifier(output) for output in stated["outputs"]]
    arguments, result = decoded(stated["arguments"], arrays), decoded(stated["result"], arrays)
    kinds = decoded(stated["kinds"], arrays)
    places, _ = tree.flatten(arguments)
    if not isinstance(kinds, list) or places != [*range(len(kinds))] or not _is_call(arguments):
        raise StateError("the arguments do not match their kinds")
    for kind in kinds:
        _check_kind(kind)
    if sum(map(_is_input, kinds)) != len(_inputs(entries)):
        raise StateError("the inputs do not match the arguments")
    if tree.flatten(result)[0] != [*range(len(outputs))]:
        raise StateError("the result does not match the outputs")
    for at in stated["permuted"]:
        entries[identifier(at).id].is_permuted = True
    return Saved(arguments, kinds, entries, outputs, result, [])


def _check_kind(kind: Any) -> None:
    """Raises an error for what is no kind of a leaf: see `kind_of`."""
    keys = {*kind} if isinstance(kind, dict) else set()
    fits = keys == {"value"} or (keys == {"class"} and kind["class"] in (float, complex, int))
    if keys == {"shape", "dtype", "scalar"}:
        extents, dtype = kind["shape"], np.dtype(str(kind["dtype"])).str
        are_extents = isinstance(extents, tuple) and all(type(each) is int and each >= 0 for each in extents)
        fits = are_extents and dtype == kind["dtype"] and type(kind["scalar"]) is bool
    if not fits:
        raise StateError(f"found {kind!r:.60}, expected the kind of an argument")


def _is_call(arguments: Any) -> bool:
    return (
        isinstance(arguments, tuple)
        and len(arguments) == 2
        and isinstance(arguments[0], tuple)
        and isinstance(arguments[1], dict)
    )


def _read_entry(stated: Any, at: int, arrays: dict[str, np.ndarray]) -> Entry:
    kind = stated[0]
    if kind == "input" and len(stated) == 1:
        return Entry("input")
    if kind == "constant":
        return Entry("constant", value=decoded(stated[1], arrays))
    if kind == "check":
        return Entry("check", args=(identifier(stated[1]),), value=decoded(stated[2], arrays), line=f"entry {at}")
    if kind != "call":
        raise StateError(f"entry {at}: found the kind {kind!r}")
    _, of, name, args, named, shape, is_float = stated
    target = Target(str(of), str(name))
    args, named = decoded(args, arrays), {str(key): decoded(value, arrays) for key, value in named}
    if not isinstance(args, tuple):
        raise StateError(f"entry {at}: the arguments are not those of a call")
    function = targets.function_of(target)
    targets.check_arguments(target, len(args), named)
    array_type = None
    if shape is not None:
        extents, dtype = shape
        if not all(type(extent) is int and extent >= 0 for extent in extents) or np.dtype(dtype).kind not in "biufc":
            raise StateError(f"entry {at}: found the type {shape!r}")
        array_type = tuple(extents), dtype
    is_float = is_float is True
    return Entry("call", target=target, function=function, args=args, named=named, type=array_type, is_float=is_float)


# The classes with a shape and a dtype that arguments have.
_ARRAYS: tuple[Any, ...] = (np.ndarray, np.generic, BatchLevel)


def kind_of(leaf: Any) -> Any:
    """The kind of a leaf: the class of a number, the shape and dtype of an array, the value of anything else."""
    leaf = plain(leaf)
    if isinstance(leaf, _ARRAYS):
        return {"shape": tuple(leaf.shape), "dtype": np.dtype(leaf.dtype).str, "scalar": isinstance(leaf, np.generic)}
    if type(leaf) in (float, complex, int):
        return {"class": type(leaf)}
    return {"value": leaf}


def _is_input(kind: Any) -> bool:
    return isinstance(kind, dict) and "value" not in kind


def _is_of(leaf: Any, kind: Any) -> bool:
    """Whether a leaf is of a kind: integers that the function did not take traced are values.

    Examples of a batch are arrays without axes where numbers were recorded.
    """
    if _is_input(kind):
        actual = kind_of(leaf)
        if actual == kind or not isinstance(plain(leaf), BatchLevel):
            return bool(actual == kind)
        dtype = np.dtype(kind["class"]).str if "class" in kind else kind["dtype"]
        return bool((actual["shape"], actual["dtype"]) == (kind.get("shape", ()), dtype))
    leaf, value = plain(leaf), kind["value"]
    return type(leaf) is type(value) and bool(leaf == value)  # True is no 1


def _described(kind: Any) -> str:
    """The kind of a leaf for errors."""
    if not _is_input(kind):
        return f"{kind['value']!r:.60}"
    return kind["class"].__name__ if "class" in kind else f"{np.dtype(kind['dtype'])}{[*kind['shape']]}"


_PARTS = {"0": "the arguments by position", "1": "the arguments by name"}


def argument(path: str) -> str:
    """The name of a place in the arguments of a call, by its key path."""
    part, _, rest = path.partition(".")
    return f"argument {rest}" if rest else _PARTS.get(part, path)


def _likeness(leaves: list[Any], structure: tree.Structure, case: Saved) -> tuple[bool, int]:
    """The likeness to recorded arguments: whether the structure is equal, and the number of equal leaves."""
    count = sum(_is_of(leaf, kind) for leaf, kind in zip(leaves, case.kinds, strict=False))
    return structure == tree.flatten(case.arguments)[1], count


def _difference(arguments: Any, case: Saved) -> str:
    """The first place in which the arguments of a call differ from the recorded ones."""
    leaves, structure = tree.flatten(arguments)
    expected = tree.flatten(case.arguments)[1]
    for at, (leaf, kind) in enumerate(zip(leaves, case.kinds, strict=False)):
        if structure == expected and not _is_of(leaf, kind):
            place = argument(str(structure.path(at)))
            return f"{place}: found {_described(kind_of(leaf))}, expected {_described(kind)}"
    try:
        tree.map(lambda *_: None, case.arguments, arguments)
    except StructureError as error:
        path, _, text = str(error).partition(": ")
        return f"{argument(path)}: {text}"
    return f"the arguments: found {structure}, expected {expected}"


def _inputs(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind == "input"]


def _in_order(value: Any, entry: Entry) -> Any:
    """An input that no call can write to, in the order of its indices unless the program takes any order."""
    if not isinstance(value, np.ndarray):
        return value
    value = value.view() if entry.is_permuted or value.flags.c_contiguous else value.copy(order="C")
    value.flags.writeable = False
    return value


def _fits_order(value: Any, entry: Entry) -> bool:
    """Whether an input is in the order that was recorded."""
    return not isinstance(value, np.ndarray) or value.flags.c_contiguous is not entry.is_permuted


def _writable(value: Any) -> Any:
    """A result: a copy of a constant, and of a part of an input."""
    is_ours = type(value) is np.ndarray and not value.flags.writeable and value.base is not None
    return np.array(value, order="K") if is_ours else value


class LoadedRecording:
    """A recorded function from a file: see `load_recording`."""

    def __init__(self, name: str, cases: list[Saved]) -> None:
        self.__name__ = name
        self._cases = [(case, replay_of(case.entries, case.outputs, of_file=len(cases))) for case in cases]

    def __deepcopy__(self, _: Any) -> "LoadedRecording":
        return self

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The result of the recorded function.

        Raises `ShapeError`, `DtypeError` or `StructureError` for other arguments than those that were recorded, as one
        `RuleError`, and so it does where the function would have taken a branch that was not recorded. Raises
        `StateError` for integers and arrays that are too large for a program of a file.
        """
        leaves, structure = tree.flatten((args, named))
        failed, fitting = None, []
        for case, replay in self._cases:
            if structure != tree.flatten(case.arguments)[1] or not all(map(_is_of, leaves, case.kinds)):
                continue
            inputs = [leaf for leaf, kind in zip(leaves, case.kinds, strict=True) if _is_input(kind)]
            fitting.append((not all(map(_fits_order, inputs, _inputs(case.entries))), case, replay, inputs))
        for _, case, replay, inputs in sorted(fitting, key=operator.itemgetter(0)):
            taken = list(map(_in_order, inputs, _inputs(case.entries)))
            results, failed = replay.run(taken)
            if failed is None:
                originals = {id(one): other for one, other in zip(taken, inputs, strict=True)}
                results = [_writable(originals.get(id(each), each)) for each in results]
                return tree.unflatten(tree.flatten(case.result)[1], results)
        if failed is not None:
            raise RuleError(
                f"{self.__name__}: a branch that was not recorded: {failed[0]}: {failed[1]!r} -> {failed[2]!r}"
            )
        nearest = max((case for case, _ in self._cases), key=lambda case: _likeness(leaves, structure, case))
        raise RuleError(f"{self.__name__}: {_difference((args, named), nearest)}, as in the nearest recording")

    @property
    def recordings(self) -> list[Any]:
        """The programs."""
        return [replay for _, replay in self._cases]

    def __repr__(self) -> str:
        kinds = "; ".join(", ".join(map(_described, case.kinds)) for case, _ in self._cases)
        return f"load_recording({self.__name__}): {kinds}"
