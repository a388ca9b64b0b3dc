"""Gradients that are final while a backward goes on: by key path, in the order in which they became so."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from oxigrad.extend import Parameters, adapter_of


class FinalGradients:
    """The gradients of parameters that have become final since the last step.

    ``is_final(self, path)`` is called, by one thread at a time, when the gradient of a parameter is final. The object
    of this method is held by a weak reference.
    """

    def __init__(self, is_final: Callable[["FinalGradients", str], None]) -> None:
        self._is_final = weakref.WeakMethod(is_final)
        self._paths: Iterable[str] = ()
        self._order: dict[str, None] = {}
        self._final: dict[str, Any] = {}
        #: The parameters whose gradients were given back: they are in buckets that have left.
        self.released: set[str] = set()
        #: Whether a step by these gradients has begun.
        self.has_begun: bool = False

    @property
    def order(self) -> list[str]:
        """The key paths of all parameters, first those with gradients, as they became final.

        The others from the last one on.
        """
        return [*dict.fromkeys([*self._order, *reversed([*self._paths])])]

    def has_all(self, paths: Iterable[str]) -> bool:
        """Whether the gradients of all these parameters are final."""
        return all(path in self._final for path in paths)

    def read(self, path: str, *, on_host: bool = True) -> Any:
        """A gradient that is final, in host memory or where it is."""
        gradient = self._final[path]
        return Parameters.on_host(gradient) if on_host else adapter_of(gradient).resolved(gradient)

    def release(self, paths: Iterable[str]) -> None:
        """Gives the memory of gradients back, which are final, and are not read again in this step."""
        for path in paths:
            self._final[path] = self._replaced(path)
            self.released.add(path)

    def _replaced(self, path: str) -> Any:
        """The array in the place of a gradient whose memory is given back; None where nothing else reads it."""

    def end(self) -> None:
        """Ends a step: no gradient is final."""
        self._final.clear()
        self.released.clear()
        self.has_begun = False

    def _add(self, path: str, gradient: Any) -> None:
        is_final = self._is_final()
        if is_final is not None:
            self._order.pop(path, None)
            self._order[path] = None
            self._final[path] = gradient
            self.has_begun = True
            is_final(self, path)


class ReplayedGradients(FinalGradients):
    """The gradients of a model in `minimize`: each is final when nothing left of the replay adds to it.

    Those that are `SparseRows` are not among them.
    """

    def __init__(self, is_final: Callable[[FinalGradients, str], None]) -> None:
        super().__init__(is_final)
        #: Whether an error has ended a step whose gradients were sent.
        self.is_broken: bool = False
        self._taken: Any = None

    def begin(self, announced: Any, *, takes: bool) -> Callable[[int, Any], bool]:
        """Begins a step of gradients that are ``announced``; returns the function that is called with each one.

        Where it ``takes`` gradients, the result of the replay does not have them: see `put_back`.
        """
        self._taken = announced if takes else None
        self._paths = announced.paths
        self._order = {}
        self.has_begun: bool = True

        def take(which: int, g: Any) -> bool:
            is_dense, complete = announced.take(which, g)
            if complete is not None:
                self._add(*complete)
            return is_dense and takes

        return take

    def put_back(self, grads: Any) -> Any:
        """The gradients that a replay returned, with those that were taken from it.

        None for those that are given back.
        """
        return grads if self._taken is None else self._taken.put_back(grads, self._final)

    def end(self) -> None:
        """See `FinalGradients.end`."""
        super().end()
        self.is_broken = False
        self._taken = None

    def fail(self, *, is_under_way: bool) -> None:
        """Ends a step after an error, where some of its gradients may be on their way to the other workers."""
        self.end()
        self.is_broken = is_under_way

    def check_whole(self) -> None:
        """Raises `RuntimeError` where an error has ended a step while its gradients were under way."""
        if self.is_broken:
            raise RuntimeError(
                "an error has ended the step before while its gradients were under way to the other workers, which "
                "wait for the rest: expected leave, or reform, which all workers call"
            )
