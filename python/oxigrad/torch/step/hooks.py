"""Hooks of PyTorch that announce gradients once they are final."""

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from oxigrad.torch.library import torch
from oxigrad.torch.state.conversion import is_distributed


def _run(optimizer: "weakref.ref[Any]", announce: Callable[[Any, Any], None], p: Any = None) -> None:
    """The hook of a parameter, and the callback at the end of a backward, which has none.

    It keeps the optimizer's memory alive no longer than the optimizer lives.
    """
    if (opt := optimizer()) is not None:
        announce(opt, p)


class Hooks:
    """Hooks on the parameters of an optimizer, each after all other hooks of its parameter.

    ``announce(opt, p)`` is called for each parameter once its gradient is final, in the threads of several devices;
    and with None at the end of a backward, if it was asked for.
    """

    def __init__(self, opt: Any, announce: Callable[[Any, Any], None]) -> None:
        self._run = functools.partial(_run, weakref.ref(opt), announce)
        # The parameters that have the hook, by identity, and the handles of the hooks.
        self._handles: dict[int, tuple[weakref.ref[Any], Any]] = {}
        weakref.finalize(opt, _remove, self._handles)

    def attach(self, params: Iterable[Any]) -> None:
        """Puts hooks on the trainable parameters that have none after all others."""
        for p in params:
            if p.requires_grad and p.is_leaf and not self.is_last(p):
                if (handle := self._handle(p)) is not None:
                    handle.remove()
                self._handles[id(p)] = weakref.ref(p), p.register_post_accumulate_grad_hook(self._run)

    def _handle(self, p: Any) -> Any:
        """The handle of the hook that was put on a parameter, if any."""
        parameter, handle = self._handles.get(id(p), (None, None))
        return handle if parameter is not None and parameter() is p else None

    def is_last(self, p: Any) -> bool:
        """Whether this hook is the last one of a parameter: later ones would find no gradient."""
        handle = self._handle(p)
        return handle is not None and next(reversed(p._post_accumulate_grad_hooks), None) == handle.id

    def check_final(self, path: str, p: Any) -> None:
        """Raises `RuntimeError` for a gradient that others take, or that other workers have parts of."""
        hooks = [hook for hook in p._post_accumulate_grad_hooks.values() if getattr(hook, "func", None) is _run]
        if p.grad is None or [hook for hook in hooks if hook is not self._run and hook.args[0]() is not None]:
            raise RuntimeError(f"{path}: another hook, or another optimizer with in_backward=True, takes the gradient")
        if not is_distributed(p) and (workers := _count_workers()) > 1:
            raise RuntimeError(
                f"{path}: the gradient is that of one of {workers} workers, such as DistributedDataParallel reduces "
                "after the hooks of parameters: expected a DTensor, as fully_shard makes it, or in_backward=False"
            )

    def call_at_end(self) -> None:
        """Asks for a call at the end of the backward that runs, unless an error ends it."""
        torch.autograd.Variable._execution_engine.queue_callback(self._run)


def _remove(handles: dict[int, tuple[Any, Any]]) -> None:
    for _, handle in handles.values():
        handle.remove()


def _count_workers() -> int:
    """The number of processes of the default process group; 1 without one."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
