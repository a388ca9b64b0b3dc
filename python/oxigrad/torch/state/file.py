"""The state of an optimizer outside of memory: slots in a file, and a state file that stays whole in a crash."""

import errno
import json
import mmap
import os
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from oxigrad import _core
from oxigrad._core import StateError
from oxigrad.ops.backends import dtype_name
from oxigrad.step.state import safetensors_io, write_back
from oxigrad.step.state.block_file import LONG, BlockFile
from oxigrad.step.state.write_back import WriteBack, release_free_memory
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.state.checking import check_form

_FORMAT = "oxigrad.torch state 1"
# Slots begin at multiples of it, as tensors in memory do.
_ALIGNMENT = 64
# The bytes of slots that are moved to the file after which their memory is given back.
_RELEASED = 1 << 24
# The least bytes of a mapping, and the part of the file before that it has at least.
_LEAST, _GROWTH = 1 << 20, 4


class StateFile:
    """The memory of slots, in a nameless file beside ``path``, to which `write` saves the state.

    The system writes changed pages to the nameless file, and reads them again, as memory requires. It is gone when the
    process ends. A few mappings, each larger than those before, have all slots. A process that is forked shares them,
    and may not use them. Raises `ValueError` for what is no path of a file, and `OSError` where the folder does not
    exist or cannot be written.
    """

    #: The optimizer that has written each file, while it is there.
    _writers: ClassVar[weakref.WeakValueDictionary[str, Any]] = weakref.WeakValueDictionary()

    def __init__(self, path: Any) -> None:
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path).endswith(".safetensors"):
            raise ValueError(
                f"state_device is {path!r}: expected 'host', a HostMemory(), or the path of a file that ends in "
                ".safetensors"
            )
        self.path: Any = os.path.abspath(os.fspath(path))
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, f"state_device is {path!r}: its folder does not exist", folder)
        self._file = file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with this object
        weakref.finalize(self, file.close)
        name = f"the slots beside {self.path}"
        self._write_back, self._blocks = WriteBack(file.fileno(), name), BlockFile(file.fileno(), name)
        self._end = self._placed_bytes = 0
        self._process = _core.forks()
        #: The last mapping, and the bytes of the file where it begins and ends.
        self._mapping: tuple[mmap.mmap | None, int, int] = None, 0, 0
        #: The places in the file of slots, by the address of their memory.
        self._starts: dict[int, int] = {}
        #: The slots in the file, by parameter and key.
        self._slots: dict[tuple[int, str], weakref.ref[Any]] = {}
        #: The places of slots that are gone, with their memory, by their size.
        self._free: dict[int, list[tuple[int, memoryview]]] = {}

    def place(self, path: str, p: Any, state: dict[str, Any]) -> None:
        """Moves the slots in ``state``, the state of a parameter, into the file.

        Raises `RuntimeError` for a parameter that is not in host memory, and `OSError`, with its name, where the disk
        is full.
        """
        if conversion.is_distributed(p) or p.device.type != "cpu":
            raise RuntimeError(f"{path}: state_device is a file: expected a parameter in host memory, and no DTensor")
        for key, value in state.items():
            if isinstance(value, dict):
                placed = {name: self._placed(path, p, f"{key}.{name}", value[name]) for name in ("codes", "scales")}
                state[key] = {**value, **placed}
            elif isinstance(value, torch.Tensor) and key != "step":
                state[key] = self._placed(path, p, key, value)

    def _placed(self, path: str, p: Any, key: str, value: Any) -> Any:
        """A tensor in the file with the values of a slot.

        The slot itself if it is in the file already, or has no elements.
        """
        held = self._slots.get((id(p), key))
        if (held is not None and held() is value) or value.numel() == 0 or not conversion.is_dense(value):
            return value
        placed = self._allocate(f"{path}: the state {key!r}", value).copy_(value)
        self._slots[id(p), key] = weakref.ref(placed)
        self._placed_bytes += value.nbytes
        if self._placed_bytes >= _RELEASED:
            self._placed_bytes = 0
            release_free_memory()
            self._write_back.grow(self._end)
        return placed

    def _allocate(self, name: str, like: Any) -> Any:
        """A new tensor in the file."""
        self.check_process()
        count = like.numel() * like.element_size()
        free = self._free.setdefault(count, [])
        start, place = free.pop() if free else self._extended(name, count)
        memory = place[:]  # a new object: it is freed with the last tensor there
        flat = torch.frombuffer(memory, dtype=like.dtype, count=like.numel())
        address = flat.untyped_storage().data_ptr()
        self._starts[address] = start
        weakref.finalize(memory, _release, self._starts, address, free, place)
        return flat.as_strided(like.shape, like.stride())

    def _extended(self, name: str, count: int) -> tuple[int, memoryview]:
        """The place of further bytes at the end of the file, and its memory.

        Raises `OSError` where the disk is full.
        """
        alignment = mmap.PAGESIZE if count >= LONG else _ALIGNMENT
        start = -(-self._end // alignment) * alignment
        mapped, first, last = self._mapping
        if mapped is None or start + count > last:
            first = start = -(-self._end // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            try:
                size = self._grown(start, max(count, start // _GROWTH, _LEAST))
            except OSError:  # A full disk may have room for this slot.
                size = self._grown(start, count, name)
            mapped = mmap.mmap(self._file.fileno(), size, offset=start)
            self._mapping = mapped, start, start + size
        self._end = start + count
        return start, memoryview(mapped)[start - first : start - first + count]

    def _grown(self, start: int, count: int, name: str = "") -> int:
        """The bytes that the file has from ``start`` on, once it is extended by ``count``."""
        try:
            if hasattr(os, "posix_fallocate"):  # Pages that could not be written later would end the process.
                os.posix_fallocate(self._file.fileno(), start, count)
            else:
                self._file.truncate(start + count)
        except OSError as error:
            code = error.errno or errno.EIO
            raise OSError(
                code, f"{name}: no room for {count:,} bytes beside {self.path}: {os.strerror(code)}"
            ) from error
        return count

    def check_process(self) -> None:
        """Raises `StateError` in a forked process: its writes would change the slots of its parent."""
        if _core.forks() != self._process:
            raise StateError(
                f"{self.path}: the slots of state_device are in memory that this process, a fork, shares with its "
                "parent: expected a "
                "new optimizer here, with the state that load_state_dict or read_state gives it"
            )

    def start_of(self, tensor: Any) -> int | None:
        """The place in the file of the first byte of a slot, or of a view of one.

        None for a tensor that does not lie there.
        """
        address = tensor.untyped_storage().data_ptr()
        start = self._starts.get(address)
        return None if start is None else start + tensor.data_ptr() - address

    def read(self, start: int, memory: memoryview) -> None:
        """Reads slots, from this byte of the file on. Raises `OSError` where the disk fails."""
        self._blocks.read(start, memory)

    def overwrite(self, start: int, memory: memoryview) -> None:
        """Writes slots, from this byte of the file on. Raises `OSError` where the disk fails."""
        self._blocks.write(start, memory)

    @property
    def memory_limit(self) -> float:
        """The bytes that this process may have in memory."""
        return write_back.memory_limit()

    @property
    def is_large(self) -> bool:
        """Whether the step under way, in `writing_back`, is by pieces: a large file, and a system with calls for it."""
        return self._write_back.is_writing and hasattr(os, "preadv")

    @property
    def is_beyond_memory(self) -> bool:
        """Whether steps of single parameters are by pieces: a file large beside memory, a system with calls for it."""
        return write_back.is_large(self._end) and hasattr(os, "preadv")

    def writing_back(self) -> AbstractContextManager[None]:
        """A block that changes slots, whose pages are written to the disk meanwhile where memory cannot hold them all.

        Raises `StateError` as `check_process` does.
        """
        self.check_process()
        return self._write_back.block(self._end)

    def write(self, state: Mapping[str, Any], opt: Any) -> None:
        """Writes the result of ``state_dict()`` of ``opt``, which replaces the file once complete and on the disk.

        Raises `StateError` for a file that another optimizer of this process has written, and still may.
        """
        if self._writers.get(self.path, opt) is not opt:
            raise StateError(
                f"{self.path}: another optimizer has written its state to this file, which flush() would replace: "
                "expected a state_device of its own for each"
            )
        write(self.path, state)
        self._writers[self.path] = opt


def _release(starts: dict[int, int], address: int, free: list[tuple[int, memoryview]], place: memoryview) -> None:
    """Lets the place in the file of memory that is gone be used again."""
    free.append((starts.pop(address), place))


# --- files of a state -------------------------------------------------------------------------------------------------


def write(path: Any, state: Mapping[str, Any]) -> None:
    """Writes the result of ``state_dict()`` of an optimizer to a safetensors file, atomically.

    `read_state` reads it.
    """
    arrays: dict[str, Any] = {}
    data = {key: _without_tensors(state[key], key, arrays) for key in ("state", "param_groups")}
    safetensors_io.write(path, arrays, {"format": _FORMAT, "data": json.dumps(data)})


def _without_tensors(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Plain data, with the names of tensors in their place; tensors are added to ``arrays``."""
    if isinstance(value, torch.Tensor):
        arrays[name] = conversion.local(value)
        return {"complex" if value.is_complex() else "tensor": name}
    if isinstance(value, Mapping):
        return {"dict": [[key, _without_tensors(item, f"{name}.{key}", arrays)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_without_tensors(item, f"{name}.{at}", arrays) for at, item in enumerate(value)]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise StateError(f"{name} is {type(value).__name__}: expected tensors, numbers, texts, and dicts and lists of them")


def read_state(path: Any) -> dict[str, Any]:
    """The state of an optimizer in a file that its `flush` has written: the argument of ``load_state_dict``.

    Args:
        path: path of the file, as given to ``state_device``.

    Raises `StateError` for a file of another format or a damaged one, `OSError` where it cannot be read.

    >>> import tempfile, torch
    >>> from oxigrad.torch import AdamW
    >>> weight = torch.nn.Parameter(torch.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     opt = AdamW([weight], state_device=f"{folder}/state.safetensors")
    ...     weight.grad = torch.ones(3)
    ...     opt.step()
    ...     opt.flush()
    ...     found = read_state(f"{folder}/state.safetensors")
    >>> found["state"][0]["exp_avg"]
    tensor([0.1000, 0.1000, 0.1000])
    """
    arrays, metadata = safetensors_io.read(path)
    if metadata.get("format") != _FORMAT:
        raise StateError(f"{os.fsdecode(path)}: it is no state of an optimizer of oxigrad.torch: expected {_FORMAT!r}")
    try:
        data = json.loads(metadata["data"])
        state = {key: _with_tensors(data[key], arrays) for key in ("state", "param_groups")}
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StateError(f"{os.fsdecode(path)}: the data of the state are damaged: {error!r}") from error
    check_form(state)
    return state


def _with_tensors(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in ("tensor", "complex"):
        tensor = _tensor(arrays[content])
        return tensor if kind == "tensor" else torch.view_as_complex(tensor)
    if kind == "dict":
        return {key: _with_tensors(item, arrays) for key, item in content}
    return {"list": list, "tuple": tuple}[kind](_with_tensors(item, arrays) for item in content)


def _tensor(array: np.ndarray) -> Any:
    """A tensor of the memory of an array."""
    if dtype_name(array.dtype) == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
