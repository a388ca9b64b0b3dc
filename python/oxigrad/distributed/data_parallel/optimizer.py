"""DataParallel: steps by the mean gradient over workers, exchanged in buckets while it is still computed."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel.buckets import Buckets
from oxigrad.distributed.data_parallel.hooks import GradientHooks
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.methods.collective import refuse_inside
from oxigrad.distributed.methods.large_batch import LargeBatch
from oxigrad.distributed.methods.means import divided, sum_of_rows
from oxigrad.distributed.parameters import host_gradient
from oxigrad.optim.optimizer import Optimizer
from oxigrad.rules.core.ranges import Domain, Interval
from oxigrad.stepping.arrays.sparse_rows import SparseRows

_COUNT = Domain(interval=Interval("[1, inf)"), is_whole=True)
# The kind of the gradient of a parameter on a worker: None, an array, or rows.
_NONE, _DENSE, _ROWS = range(3)


class DataParallel(LargeBatch):
    """Data-parallel training: all workers take the same step, by the mean of their gradients.

    Gradients travel in buckets of ``bucket_bytes``: each bucket is exchanged in a thread while the next one is filled. The gradients of a PyTorch
    module, which are in its tensors, leave while ``loss.backward()`` goes on: a bucket as soon as all of its gradients are final, in an order that the
    workers agree on in the first step. Sums over workers are taken in the order of ranks for each element, so that the bits depend neither on the
    buckets nor on ``overlap``; the step is that of one worker by the mean gradient.

    A gradient may be None on some workers, as that of a parameter that was not used: it counts as zeros there. A parameter whose gradient is None on all
    of them is not updated. Parameters of several dtypes have buckets for each. Gradients of tied parameters are added up first. `SparseRows` are
    gathered, unless a worker has an array for the same parameter.

    Args:
        optimizer: the optimizer that takes the steps.
        bucket_bytes: the bytes that a bucket has at least, but for the last one of each dtype.
        overlap: whether gradients of PyTorch modules leave during the backward.
        local_batches: the number of batches of each worker that a step uses: the others are only added up, as by `LargeBatch`.
        communicator: see `Wrapper`.
        timeout: see `Wrapper`.

    With ``overlap``, one backward after each `update`: call further ones within `no_sync`; ``local_batches`` needs none. A gradient that is changed
    between ``backward()`` and `update` raises `RuntimeError`: clip by a chain instead. No other collective operation may come in between. Raises
    `Refused` on all workers, before the first step, where their parameters differ, with key path and rank.

    >>> from oxigrad import distributed, optim
    >>> def worker(comm):
    ...     opt, model = distributed.DataParallel(optim.SGD(1.0)), {"w": np.zeros(2), "b": np.zeros(1)}
    ...     gradient = None if comm.rank else np.array([2.0])
    ...     return opt.update(model, {"w": np.array([1.0, 3.0]) * comm.rank, "b": gradient})
    >>> distributed.run(worker, workers=2)[0]
    {'w': array([-0.5, -1.5]), 'b': array([-1.])}
    """

    _transient = LargeBatch._transient | {"_buckets", "_hooks", "_is_agreed", "_overlaps", "_order", "_specs"}

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        bucket_bytes: int = 25 << 20,
        overlap: bool = True,
        local_batches: int = 1,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, local_batches, communicator=communicator, timeout=timeout)
        refuse_inside(self, LargeBatch)
        self.bucket_bytes = int(_COUNT.check("bucket_bytes", bucket_bytes))
        self.overlap = Domain((True, False)).check("overlap", overlap)

    def _set_apart(self) -> None:
        """See `Wrapper._set_apart`."""
        super()._set_apart()
        self._buckets: Buckets | None = None
        self._hooks = GradientHooks(self._is_final)
        # Whether the workers have agreed on the order of buckets in this generation, and on exchanges during the backward.
        self._is_agreed = self._overlaps = self._is_held = False
        self._order: Sequence[str] = ()
        self._specs: Mapping[str, GradientSpec] = {}

    def no_sync(self) -> AbstractContextManager[None]:
        """A block in which backwards of a PyTorch module only accumulate gradients in its tensors, which do not leave yet.

        The first backward after the block adds its own to them.
        """
        return self._hooks.paused()

    def leave(self, model: Tree = None) -> Any:
        """See `Wrapper.leave`."""
        self._drop()
        self._hooks.remove()
        return super().leave(model)

    def _abandon(self) -> None:
        """See `Wrapper._abandon`."""
        self._hooks.remove()

    def _agreed_config(self) -> Any:
        """See `CollectiveWrapper._agreed_config`."""
        return {"optimizer": self.name, **self._own_config()}

    def _begin(self, model: Tree) -> None:
        """See `CollectiveWrapper._begin`."""
        self._drop()
        self._is_agreed = self._overlaps = False
        self._attach(model)

    def _attach(self, model: Tree) -> None:
        """Puts hooks on the tensors of a module, unless they have them."""
        if self.overlap and self.communicator.size > 1:
            self._hooks.attach(self._parameters.leaves(model))

    def _drop(self) -> None:
        """Forgets the exchanges that have begun."""
        if self._buckets is not None:
            self._buckets.drop()
        self._hooks.end()

    # --- during the backward -------------------------------------------------------------------------------------------

    def _is_final(self, path: str, tensor: Any) -> None:
        """Begins the exchange of the buckets whose gradients are all final."""
        buckets, final = self._buckets, self._hooks.final
        if not self._overlaps or buckets is None or self._pending + 1 < self.local_batches:
            return
        if buckets.has_begun(path):
            raise RuntimeError(
                f"{path}: a second gradient before update: expected update after each backward, and `with opt.no_sync():` around "
                "backwards but the last"
            )
        while (paths := buckets.next_paths()) and all(each in final for each in paths):
            gradients = {each: host_gradient(final[each][0]) for each in paths}
            buckets.begin(self._accumulated(gradients), self.communicator, self._seconds)

    # --- steps ---------------------------------------------------------------------------------------------------------

    def _read(self, model: Tree, grads: Tree | None) -> dict[str, Any]:
        """See `LargeBatch._read`. The gradients that are not None."""
        if (changed := self._hooks.changed()) is not None and self._buckets is not None and self._buckets.begun:
            self._drop()
            raise RuntimeError(
                f"{changed}: the gradient was changed after the backward, and is under way to the other workers: expected a transform in a "
                "chain, as ClipByGlobalNorm, or overlap=False"
            )
        self._is_held, self._specs = grads is None, self._parameters.specs(model)
        if grads is None:
            self._attach(model)
        if grads is not None or self._pending + 1 < self.local_batches:
            self._drop()
        return self._parameters.gradients(model, grads, optional=True)

    def _accumulated(self, gradients: Mapping[str, Any]) -> dict[str, Any]:
        """See `LargeBatch._accumulated`."""
        rest = {path: total for path, total in self._sums.items() if path not in gradients}
        return {**rest, **super()._accumulated(gradients)}

    def _means(self, sums: Mapping[str, Any], count: int) -> dict[str, Any]:
        """See `LargeBatch._means`."""
        if self.communicator.size == 1:
            return {path: divided(total, count) for path, total in sums.items()}
        contributed = sums if count else {}
        began = self._overlaps  # then these sums may be under way already
        if began:
            self._sum(self._in_order(self._order), contributed)
        kinds, gradients = self._kinds(contributed, count)
        dense = [path for path, own in kinds.items() if _DENSE in own]
        if not began:
            self._sum(self._in_order(self._order) if self._overlaps else dense, contributed)
        views = self._buckets.mean(gradients) if self._buckets else {}
        means: dict[str, Any] = {path: views[path] for path in dense}
        for path, own in kinds.items():
            if _ROWS in own and _DENSE not in own:
                rows = contributed.get(path, _no_rows(self._specs[path]))
                means[path] = divided(sum_of_rows(rows, self.communicator, self._seconds), gradients)
        self._hooks.end()
        return means

    def _sum(self, order: Sequence[str], sums: Mapping[str, Any]) -> None:
        """Completes the buckets of the parameters in ``order`` with the sums over workers."""
        if self._buckets is None or not self._buckets.fits(self._specs, order):
            self._drop()
            self._buckets = Buckets(self._specs, order, self.bucket_bytes)
        found = {path: sums[path] for path in order if path in sums}
        arrays = {path: g.todense() if isinstance(g, SparseRows) else g for path, g in found.items()}
        self._buckets.finish(arrays, self.communicator, self._seconds)

    def _in_order(self, known: Sequence[str]) -> list[str]:
        """The key paths of all parameters, first the ``known`` ones."""
        return [*dict.fromkeys([*(path for path in known if path in self._specs), *self._specs])]

    def _kinds(self, sums: Mapping[str, Any], count: int) -> tuple[dict[str, set[int]], int]:
        """The kinds of the gradients of each parameter on all workers, and the number of gradients in their sums.

        In the first step of a generation the workers agree on the order of the buckets too, that of rank 0.
        """
        paths = [*self._specs]
        own = [_ROWS if isinstance(sums.get(path), SparseRows) else _DENSE if path in sums else _NONE for path in paths]
        can_overlap = self._is_held and self._hooks.are_attached and _ROWS not in own
        order = [] if self._is_agreed else [paths.index(path) for path in self._in_order(self._hooks.order)]
        message = np.array([count, can_overlap, *own, *order], np.int64)
        rows = np.stack(self.communicator.all_gather_v(message, timeout=self._seconds))
        if not self._is_agreed:
            self._is_agreed, self._overlaps = True, bool(rows[:, 1].all())
            self._order = [paths[number] for number in rows[0, 2 + len(paths) :]]
        kinds = rows[:, 2 : 2 + len(paths)].T.tolist()
        return {path: {*found} for path, found in zip(paths, kinds, strict=True)}, int(rows[:, 0].sum())


def _no_rows(spec: GradientSpec) -> SparseRows:
    """The gradient of a parameter of which no row is used."""
    return SparseRows(np.zeros(0, np.int64), np.zeros((0, *spec.shape[1:]), spec.dtype), spec.shape)
