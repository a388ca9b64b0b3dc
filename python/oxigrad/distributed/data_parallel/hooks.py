"""Hooks of the tensors of a module, which tell when their gradients are final, while PyTorch's backward goes on."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oxigrad.distributed.data_parallel.final import FinalGradients
from oxigrad.extend import Parameters

_REGISTER = "register_post_accumulate_grad_hook"


class HookedGradients(FinalGradients):
    """The final gradients of the parameters of one module, of which hooks tell: they do not keep this object alive."""

    def __init__(self, is_final: Callable[[FinalGradients, str], None]) -> None:
        super().__init__(is_final)
        self._leaves: dict[str, Any] = {}
        self._hooks = Parameters.hooks(self, HookedGradients.announce)
        #: The key path of each parameter with a hook, by the identity of its tensor.
        self._path_of: dict[int, str] = {}
        self._pauses = 0
        self._lock = threading.Lock()
        #: The count of the changes in place of each gradient that is final.
        self._versions: dict[str, int] = {}

    @property
    def are_attached(self) -> bool:
        """Whether there are hooks."""
        return bool(self._path_of)

    def attach(self, leaves: Mapping[str, Any]) -> None:
        """Puts hooks on parameters, unless they are those of the last call, or some of them cannot have hooks."""
        if len(leaves) == len(self._leaves) and all(self._leaves.get(path) is leaf for path, leaf in leaves.items()):
            return
        self.remove()
        self._paths = self._leaves = dict(leaves)
        if all(hasattr(leaf, _REGISTER) and leaf.requires_grad and leaf.is_leaf for leaf in leaves.values()):
            self._path_of = {id(leaf): path for path, leaf in leaves.items()}
            self._hooks.attach(leaves.values())

    def announce(self, tensor: Any) -> None:
        """Notes the gradient of a tensor, whose hook has been called."""
        if self._pauses:
            return
        with self._lock:
            path = self._path_of[id(tensor)]
            self._versions[path] = _changes(tensor.grad)
            self._add(path, tensor.grad)

    def changed(self) -> str | None:
        """The key path of a gradient that was changed after its hook was called; None where there is none."""
        for path, gradient in self._final.items():
            held = self._leaves[path].grad
            if held is not gradient or _changes(held) != self._versions[path]:
                return path
        return None

    def _replaced(self, path: str) -> Any:
        """See `FinalGradients._replaced`: numbers that refuse changes in place, lest they pass for the gradient."""
        leaf = self._leaves[path]
        leaf.grad = leaf.detach().new_full((), float("nan")).expand(leaf.shape)
        self._versions[path] = _changes(leaf.grad)
        return leaf.grad

    def drop_released(self) -> None:
        """Sets the gradients that were given back to None."""
        for path in self.released:
            self._leaves[path].grad = None

    def remove(self) -> None:
        """Removes all hooks."""
        self._hooks.remove()
        self._path_of = {}
        self._paths = self._leaves = {}
        self._order = {}
        self.end()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A block in which hooks do nothing."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1


def _changes(tensor: Any) -> int:
    """The number of changes of a tensor in place."""
    return tensor._version
