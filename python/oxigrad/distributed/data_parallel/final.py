"""Gradients that are final while a backward goes on: by key path, in the order in which they became so."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from oxigrad._core import Watched
from oxigrad.distributed.parameters import host_gradient
from oxigrad.ops.backends import resolved
from oxigrad.stepping.arrays.alignment import align
from oxigrad.stepping.arrays.gradient_check import check_gradient
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.arrays.tied_gradients import summed
from oxigrad.stepping.plan.announcements import CompleteGradients, watched_leaves
from oxigrad.stepping.plan.plan import Plan


class FinalGradients:
    """The gradients of parameters that have become final since the last step.

    ``is_final(self, path)`` is called, by one thread at a time, when the gradient of a parameter is final. The object of this method is
    held by a weak reference.
    """

    def __init__(self, is_final: Callable[["FinalGradients", str], None]) -> None:
        self._is_final = weakref.WeakMethod(is_final)
        self._paths: Iterable[str] = ()
        self._order: dict[str, None] = {}
        self._final: dict[str, Any] = {}
        #: The parameters whose gradients were given back: they are in buckets that have left.
        self.released: set[str] = set()

    @property
    def order(self) -> list[str]:
        """The key paths of all parameters, first those with gradients, as they became final; the others from the last one on."""
        return [*dict.fromkeys([*self._order, *reversed([*self._paths])])]

    def has_all(self, paths: Iterable[str]) -> bool:
        """Whether the gradients of all these parameters are final."""
        return all(path in self._final for path in paths)

    def read(self, path: str, *, on_host: bool = True) -> Any:
        """A gradient that is final, in host memory or where it is."""
        gradient = self._final[path]
        return host_gradient(gradient) if on_host else resolved(gradient)

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

    def _add(self, path: str, gradient: Any) -> None:
        is_final = self._is_final()
        if is_final is not None:
            self._order.pop(path, None)
            self._order[path] = None
            self._final[path] = gradient
            is_final(self, path)


class ReplayedGradients(FinalGradients):
    """The gradients of a model that `minimize` computes: each is final when nothing that is left of the replay adds to it.

    Those that are `SparseRows` are not among them.
    """

    def __init__(self, is_final: Callable[[FinalGradients, str], None]) -> None:
        super().__init__(is_final)
        #: Whether a step by these gradients is under way, and whether an error has ended one whose gradients were sent.
        self.is_open: bool = False
        self.is_broken: bool = False
        self._taken: tuple[Plan, CompleteGradients] | None = None

    def begin(self, plan: Plan, watched: Watched, *, takes: bool) -> Callable[[int, Any], bool]:
        """Begins a step; returns the function that is called with each gradient, as `value_and_grad_of` calls it.

        Where it ``takes`` gradients, the result of the replay does not have them: see `put_back`.
        """
        chosen, complete = watched_leaves(watched), CompleteGradients(plan.parameters)
        self._taken = (plan, complete) if takes else None
        self._paths = [p.text for p in plan.parameters]
        self._order, self.is_open = {}, True

        def take(which: int, g: Any) -> bool:
            leaf = chosen[which]
            p = complete.parameter(leaf)
            if p is None or isinstance(g, SparseRows):
                return False
            if not complete.add(p, leaf, g):
                return takes
            gradients = complete.pop(p)
            gradient = gradients[0] if len(gradients) == 1 else summed(gradients)
            check_gradient(p.text, gradient, p.shape, p.dtype)
            self._add(p.text, gradient)
            return takes

        return take

    def put_back(self, grads: Any) -> Any:
        """The gradients that a replay returned, with those that were taken from it; None for those that are given back."""
        if self._taken is None:
            return grads
        plan, complete = self._taken
        aligned = align(plan.structure, grads)
        for p in plan.parameters:
            if p.text in self._final:
                for i in p.indices:
                    aligned.leaves[i] = None
                aligned.leaves[p.index] = self._final[p.text]
        for leaf, g in complete.held.items():
            aligned.leaves[leaf] = g
        return aligned

    def end(self) -> None:
        """See `FinalGradients.end`."""
        super().end()
        self.is_open = self.is_broken = False
        self._taken = None

    def fail(self, *, is_under_way: bool) -> None:
        """Ends a step after an error, where some of its gradients may be on their way to the other workers."""
        self.end()
        self.is_broken = is_under_way

    def check_whole(self) -> None:
        """Raises `RuntimeError` where an error has ended a step while its gradients were under way."""
        if self.is_broken:
            raise RuntimeError(
                "an error has ended the step before while its gradients were under way to the other workers, which wait for the rest: "
                "expected leave, or reform, which all workers call"
            )
