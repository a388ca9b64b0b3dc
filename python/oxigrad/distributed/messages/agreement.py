"""The agreement of workers: descriptions of their models, and the difference between two of them in words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

import oxigrad
from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.message import checksum

_NONE: Mapping[str, Any] = MappingProxyType({})

ROUNDS = 16
"""Steps between two comparisons of hyperparameters and parameters."""

VERSION_BYTES = 64
"""The bytes of `version`."""


def version() -> np.ndarray:
    """The version of the package as `VERSION_BYTES` bytes, which the workers of a job exchange before anything else."""
    return np.frombuffer(oxigrad.__version__.encode()[:VERSION_BYTES].ljust(VERSION_BYTES, b"\0"), np.uint8).copy()


def check_versions(rows: np.ndarray) -> None:
    """Raises `Refused` where the versions of all workers, in the order of ranks, are not one.

    >>> check_versions(np.concatenate([version(), version()]))
    """
    first, *others = (row.tobytes().rstrip(b"\0").decode(errors="replace") for row in rows.reshape(-1, VERSION_BYTES))
    for rank, other in enumerate(others, 1):
        check_version(f"rank {rank}", other, "rank 0", first)


def check_version(whose: str, theirs: str, reference: str, expected: str) -> None:
    """Raises `Refused` where a worker runs another version of the package than a reference."""
    if theirs != expected:
        text = f"{whose} runs oxigrad {theirs}, {reference} {expected}: expected one version on every worker"
        raise Refused("version", text)


def described(
    arrays: Mapping[str, Any],
    config: Any = None,
    untrained: Mapping[str, Any] = _NONE,
    constant: Mapping[str, Any] = _NONE,
    replicas: Mapping[str, Any] = _NONE,
) -> np.ndarray:
    """A description as bytes: the package's version, configurations as plain data, shapes and dtypes by key path.

    ``untrained`` are the arrays that no step updates. Of ``constant`` ones among them, and of ``replicas``, which all
    workers must have alike, the values are described too.
    """
    arrays = {**arrays, **replicas}
    apart = {f"{path} (not trained)": array for path, array in {**untrained, **constant}.items()}
    parameters = {
        path: [[*map(int, array.shape)], np.dtype(array.dtype).name] for path, array in {**arrays, **apart}.items()
    }
    for path, array in {**{f"{path} (not trained)": array for path, array in constant.items()}, **replicas}.items():
        parameters[path].append(checksum([np.ascontiguousarray(array)]))
    description = {"version": oxigrad.__version__, "config": config, "parameters": parameters}
    return np.frombuffer(json.dumps(description).encode(), np.uint8)


def difference(ours: np.ndarray, other: np.ndarray, whose: str) -> Refused | None:
    """The error that says how the description ``other``, of ``whose`` worker, differs from ``ours``.

    None where they agree.

    >>> ours, other = (described({"w": np.zeros(size)}) for size in (2, 3))
    >>> difference(ours, other, "rank 1")
    Refused('w: shape (3,) on rank 1: expected (2,)')
    """
    if ours.tobytes() == other.tobytes():
        return None
    try:
        theirs, expected = json.loads(other.tobytes()), json.loads(ours.tobytes())
        return next(_differences(theirs, expected, whose))
    except Refused as error:
        return error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Refused("description", f"{whose} sent a description of its model that cannot be read")
    except StopIteration:
        return Refused("order", f"the parameters on {whose} are in another order: expected one model on every worker")


def _differences(theirs: Any, ours: Any, whose: str) -> Iterator[Refused]:
    check_version(whose, theirs["version"], "the others", ours["version"])
    if (unlike := unlike_config(theirs["config"], ours["config"], whose)) is not None:
        yield Refused("config", unlike)
    parameters, wanted = theirs["parameters"], ours["parameters"]
    for path in wanted:
        if path not in parameters:
            yield Refused("tree", f"{path}: missing on {whose}: expected shape {_shape(wanted[path])}")
        elif parameters[path] != wanted[path]:
            yield Refused("tree", f"{path}: {_unlike(parameters[path], wanted[path], whose)}")
    if extra := [path for path in parameters if path not in wanted]:
        yield Refused("tree", f"{extra[0]}: on {whose} only: expected the parameters {', '.join(wanted)}")


def check_method(sizes: Sequence[int], expected: int) -> None:
    """Raises `Refused` if workers of a method state different amounts of numbers at the start of a generation."""
    unlike = next((rank for rank, size in enumerate(sizes) if size != expected), None)
    if unlike is not None:
        text = (
            f"rank {unlike} begins another method: expected one wrapper, and one value of synchronous, on every worker"
        )
        raise Refused("config", text)


SHARDS = "shards"
"""The key of the shards of data in a configuration."""

_DEFAULT = "its default"


def unlike_config(theirs: Any, ours: Any, whose: str, path: str = "") -> str | None:
    """The first difference of two configurations, or of lists of them, as plain data; None without one.

    >>> unlike_config(
    ...     {"optimizer": "SGD", "learning_rate": 0.1}, {"optimizer": "SGD", "learning_rate": 1.0}, "rank 1"
    ... )
    'learning_rate of the optimizer on rank 1 is 0.1: expected 1.0'
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        keys = dict.fromkeys([*ours, *theirs])  # without those that have their default
        pairs = [(f"{path}.{key}".lstrip("."), theirs.get(key, _DEFAULT), ours.get(key, _DEFAULT)) for key in keys]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = [(path and f"{path}[{at}]", *pair) for at, pair in enumerate(zip(theirs, ours, strict=True))]
    elif theirs == ours:
        return None
    else:
        value, expected = (each if each is _DEFAULT else json.dumps(each) for each in (theirs, ours))
        if path.startswith(SHARDS):  # only rank 0 is compared with
            return f"{path} is {value} on {whose}, {expected} on rank 0: expected the same shards on every worker"
        of = f"{path} of the optimizer" if path else "the optimizer"
        return f"{of} on {whose} is {value}: expected {expected}"
    return next(filter(None, (unlike_config(a, b, whose, at) for at, a, b in pairs)), None)


def _unlike(entry: Any, expected: Any, whose: str) -> str:
    if entry[0] != expected[0]:
        return f"shape {_shape(entry)} on {whose}: expected {_shape(expected)}"
    if entry[1] != expected[1]:
        return f"dtype {entry[1]} on {whose}: expected {expected[1]}"
    return f"other values on {whose}: expected the same ones on every worker"


def _shape(entry: Any) -> tuple[int, ...]:
    return tuple(map(int, entry[0]))
