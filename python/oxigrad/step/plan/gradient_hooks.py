"""Hooks on the leaves of PyTorch's autograd, each called once the gradient of its leaf is final."""

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any


def _run(owner: "weakref.ref[Any]", announce: Callable[..., None], *leaf: Any) -> None:
    """The hook of a leaf. It keeps the owner's memory alive no longer than the owner lives."""
    if (living := owner()) is not None:
        announce(living, *leaf)


class GradientHooks:
    """The hooks of an ``owner`` on leaves, each after all other hooks of its leaf.

    ``announce(owner, leaf)`` is called for each leaf once its gradient is final, in the threads of several devices.
    """

    def __init__(self, owner: Any, announce: Callable[..., None]) -> None:
        #: The hook of all leaves. Without an argument it calls ``announce(owner)``.
        self.run: Callable[..., None] = functools.partial(_run, weakref.ref(owner), announce)
        self._handles: dict[int, Any] = {}
        weakref.finalize(owner, _remove, self._handles)

    def attach(self, leaves: Iterable[Any]) -> None:
        """Puts hooks on the trainable leaves that have none after all others."""
        for leaf in leaves:
            if leaf.requires_grad and leaf.is_leaf and not self.is_last(leaf):
                if (handle := self._handles.get(id(leaf))) is not None:
                    handle.remove()
                self._handles[id(leaf)] = leaf.register_post_accumulate_grad_hook(self.run)

    def is_last(self, leaf: Any) -> bool:
        """Whether this hook is the last one of a leaf: later ones would find no gradient."""
        hooks = leaf._post_accumulate_grad_hooks
        return bool(hooks) and next(reversed(hooks.values())) is self.run

    def has_others(self, leaf: Any) -> bool:
        """Whether a leaf has the hook of another living owner too."""
        hooks = [*leaf._post_accumulate_grad_hooks.values()]
        return hooks != [self.run] and any(
            getattr(hook, "func", None) is _run and hook is not self.run and hook.args[0]() is not None
            for hook in hooks
        )

    def remove(self) -> None:
        """Removes all hooks."""
        _remove(self._handles)


def _remove(handles: dict[int, Any]) -> None:
    for handle in handles.values():
        handle.remove()
    handles.clear()
