"""Hooks of the tensors of a module, which tell when their gradients are final, while PyTorch's backward goes on."""

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_REGISTER = "register_post_accumulate_grad_hook"


class GradientHooks:
    """The hooks of the parameters of one module.

    ``is_final(path, tensor)`` is called, by one thread at a time, when the gradient of a parameter is final in a backward; ``order`` has the key paths
    in the order of the last backward. The object is called through a weak reference: hooks do not keep it alive.
    """

    def __init__(self, is_final: Callable[[str, Any], None]) -> None:
        self._is_final = weakref.WeakMethod(is_final)
        self._leaves: dict[str, Any] = {}
        self._handles: list[Any] = []
        weakref.finalize(self, _remove, self._handles)
        self._pauses = 0
        self._lock = threading.Lock()
        self._order: dict[str, None] = {}
        #: The gradient of each parameter whose bucket may be under way, with the count of its changes in place.
        self._seen: dict[str, tuple[Any, int]] = {}

    @property
    def order(self) -> list[str]:
        """The key paths of all parameters, first those with gradients, as they became final."""
        return [*dict.fromkeys([*self._order, *reversed(self._leaves)])]

    @property
    def are_attached(self) -> bool:
        """Whether there are hooks."""
        return bool(self._handles)

    @property
    def final(self) -> Mapping[str, Any]:
        """The parameters whose gradients have become final since the last step, by key path."""
        return self._seen

    def attach(self, leaves: Mapping[str, Any]) -> None:
        """Puts hooks on parameters, unless they are those of the last call, or some of them cannot have hooks."""
        if len(leaves) == len(self._leaves) and all(self._leaves.get(path) is leaf for path, leaf in leaves.items()):
            return
        self.remove()
        self._leaves = dict(leaves)
        if not all(hasattr(leaf, _REGISTER) and leaf.requires_grad and leaf.is_leaf for leaf in leaves.values()):
            return
        self._handles += [getattr(leaf, _REGISTER)(self._hook(path)) for path, leaf in leaves.items()]

    def _hook(self, path: str) -> Callable[[Any], None]:
        weak = weakref.ref(self)

        def hook(tensor: Any) -> None:
            hooks = weak()
            if hooks is not None:
                hooks._told(path, tensor)

        return hook

    def _told(self, path: str, tensor: Any) -> None:
        is_final = self._is_final()
        if is_final is None or self._pauses:
            return
        with self._lock:
            self._order.pop(path, None)
            self._order[path] = None
            self._seen[path] = tensor.grad, tensor.grad._version
            is_final(path, tensor)

    def changed(self) -> str | None:
        """The key path of a gradient that was changed after its hook was called; None where there is none."""
        for path, (gradient, version) in self._seen.items():
            held = self._leaves[path].grad
            if held is not gradient or held._version != version:
                return path
        return None

    def end(self) -> None:
        """Ends a step: no gradient is final."""
        self._seen.clear()

    def remove(self) -> None:
        """Removes all hooks."""
        _remove(self._handles)
        self._leaves, self._order = {}, {}
        self.end()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A block in which hooks do nothing."""
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1


def _remove(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
    handles.clear()
