"""DataParallel: steps by the mean gradient over workers, exchanged in buckets while it is still computed."""

import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import numpy as np

from oxigrad import state
from oxigrad._typing import R, T, Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.data_parallel.buckets import Buckets
from oxigrad.distributed.data_parallel.final import FinalGradients, ReplayedGradients
from oxigrad.distributed.data_parallel.hooks import HookedGradients
from oxigrad.distributed.data_parallel.kinds import flags_of, kinds_of
from oxigrad.distributed.data_parallel.local_sums import FIELDS, added, counted
from oxigrad.distributed.data_parallel.shards import Shards
from oxigrad.distributed.data_parallel.tensor_buckets import agreed_group, on_host
from oxigrad.distributed.decisions.training import exchanging
from oxigrad.distributed.errors import CommunicationError, NotSupported, Refused, WorkerLost
from oxigrad.distributed.fields import check_flags
from oxigrad.distributed.messages.gradients import GradientSpec
from oxigrad.distributed.methods.collective import CollectiveWrapper
from oxigrad.distributed.methods.means import divided, no_rows, sum_of_rows
from oxigrad.extend import COUNT, as_array
from oxigrad.optim import Optimizer


class DataParallel(CollectiveWrapper):
    """Data-parallel training: all workers take the same step, by the mean of their gradients.

    Gradients travel in buckets of ``bucket_bytes``. A thread exchanges one bucket while the next one fills. With
    ``overlap``, a bucket leaves as soon as all of its gradients are final: during ``loss.backward()`` of a PyTorch
    module, or while `minimize` computes derivatives of NumPy arrays. The workers agree on the order of buckets in the
    first step, and again where gradients had to wait. Sums over workers are taken in the order of ranks for each
    element, so bits depend neither on the buckets nor on ``overlap``. The mean gradient takes one step on every worker.

    A gradient may be None on some workers, such as for an unused parameter: it counts as zeros. A parameter whose
    gradient is None on all workers is not updated. Each dtype has its own buckets. Gradients of tied parameters are
    added up first. `SparseRows` are gathered, unless a worker has an array for the same parameter.

    Args:
        optimizer: the optimizer that takes the steps.
        bucket_bytes: the bytes that a bucket has at least, but for the last one of each dtype.
        overlap: whether gradients leave during the backward.
        local_batches: batches of each worker for one step, whose gradients are added up first, as by `LargeBatch`.
        shard_state: whether each worker keeps slots only for its part of the parameters, and updates that (ZeRO-1).
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    With ``overlap``, call further backwards before an `update` within `no_sync`; ``local_batches`` needs no such block.
    Changing a gradient between ``backward()`` and `update` raises `RuntimeError`: clip by a chain instead. No other
    collective operation may come in between. Raises `Refused` with key path and rank for parameters that differ.

    With ``shard_state`` the bits are the same, for any number of workers. Parameters of elementwise rules are cut into
    slices: anywhere, at multiples of 256 elements with 8-bit and 4-bit slots, or of 4096 for rules that sum over
    elements. A parameter stays whole if its rule is called on arrays (`Muon`), if its gradient is rows, or if the
    norm of its change is recorded. `slots` has this worker's slices. All workers call `state_dict`, `save` and `flush`.
    The state has the form of one process, and loads on any number of workers; `save` writes it on rank 0. Raises
    `TypeError`, before the first step, for optimizers other than rules, chains and partitions. Slices of a lost worker
    are lost: a step raises `WorkerLost`, and the training continues from a saved state.

    >>> from oxigrad import distributed, optim
    >>> def worker(comm):
    ...     opt, model = distributed.DataParallel(optim.SGD(1.0)), {"w": np.zeros(2), "b": np.zeros(1)}
    ...     gradient = None if comm.rank else np.array([2.0])
    ...     return opt.update(model, {"w": np.array([1.0, 3.0]) * comm.rank, "b": gradient})
    >>> distributed.run(worker, workers=2)[0]
    {'w': array([-0.5, -1.5]), 'b': array([-1.])}
    """

    bucket_bytes: int = 25 << 20
    local_batches: int = 1
    overlap: bool = True
    shard_state: bool = False
    _fields = FIELDS
    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {"local_batches": counted}
    _transient = frozenset(
        "_buckets _group _hooks _is_agreed _is_blocked _order _overlaps _replayed _rides _source _specs".split()
    )

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        bucket_bytes: int = bucket_bytes,
        overlap: bool = overlap,
        local_batches: int = local_batches,
        shard_state: bool = shard_state,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self._refuse_inside(DataParallel)
        self._pending = self._count = 0
        self._sums: dict[str, Any] = {}
        self.local_batches, self.bucket_bytes = local_batches, COUNT.check("bucket_bytes", bucket_bytes)
        self.overlap, self.shard_state = check_flags(overlap=overlap, shard_state=shard_state)
        self._shards: Shards | None = Shards(optimizer) if shard_state else None

    def _set_apart(self) -> None:
        """See `Wrapper._set_apart`."""
        super()._set_apart()
        self._buckets: Buckets | None = None
        self._group: Any = None
        self._hooks, self._replayed = HookedGradients(self._is_final), ReplayedGradients(self._is_final)
        self._source: FinalGradients | None = None  # of the gradients of the present step
        self._order: Sequence[str] = ()
        self._specs: Mapping[str, GradientSpec] = {}
        self._agree_anew()

    @property
    def pending(self) -> int:
        """The number of batches since the last step."""
        return self._pending

    def no_sync(self) -> AbstractContextManager[None]:
        """A block whose backwards of a module accumulate gradients; the first backward after it sends the sum."""
        return self._hooks.paused()

    def leave(self, model: Tree = None) -> Any:
        """See `Wrapper.leave`."""
        self._drop()
        self._abandon()
        return super().leave(model)

    def _abandon(self) -> None:
        """See `Wrapper._abandon`."""
        self._hooks.remove()

    def _begin(self, model: Tree) -> None:
        """See `CollectiveWrapper._begin`."""
        self._drop()
        self._buckets = None
        self._agree_anew()
        self._attach(model)
        self._divide(model)

    def _wants_agreement(self) -> bool:
        """See `CollectiveWrapper._wants_agreement`: gradients stay, or wait for one that came in the first step."""
        return self.overlap and (not self._overlaps or self._is_blocked)

    def _agree_anew(self) -> None:
        """See `CollectiveWrapper._agree_anew`: on the order of the buckets, and on exchanges during the backward."""
        # `_rides`: the last bucket carries what workers tell each other. The flags are of this generation.
        self._is_agreed = self._overlaps = self._rides = self._is_blocked = False

    def _attach(self, model: Tree) -> None:
        """Puts hooks on the tensors of a module, unless they have them."""
        if self.overlap and self.communicator.size > 1:
            self._hooks.attach(self._parameters.leaves(model))

    def _drop(self) -> None:
        """Ends a step: forgets the exchanges that have begun; no gradient is final."""
        if self._buckets is not None and self._buckets.running:
            self._buckets.drop()
        for gradients in (self._hooks, self._replayed):
            if gradients.has_begun:
                gradients.end()
        self._replayed.is_broken = False

    # --- with the state in shards -------------------------------------------------------------------------------------

    def reform(self, model: Tree) -> Tree:
        """See `CollectiveWrapper.reform`. Raises `NotSupported` with ``shard_state``."""
        if self._shards is not None:
            lost = "shard_state=True: the slots of a lost worker are lost: expected a new DataParallel on"
            raise NotSupported(f"{lost} communicator.reform(), with a saved state")
        return super().reform(model)

    def _completed(self, model: Tree) -> tuple[list[int], bool]:
        """See `CollectiveWrapper._completed`."""
        if self._shards is not None:
            self._shards.divide(self._parameters, model, self.communicator.size)
        else:
            self._group = agreed_group(self.communicator, [*self._parameters.leaves(model).values()], self._seconds)
            self._sums = self._sums if self._group is not None else on_host(self._sums)
        return super()._completed(model)

    def _divide(self, model: Tree) -> None:
        """Divides the parameters once, and takes this worker's part of a state that was loaded before."""
        shards = self._shards
        if shards is not None and not shards.extents:
            shards.divide(self._parameters, model, self.communicator.size)
        if shards is not None and shards.loaded is not None:
            self._load_inner(shards.loaded[0], strict=shards.loaded[1])

    def _recover(self, model: Tree, error: WorkerLost) -> tuple[Tree, bool]:
        """See `CollectiveWrapper._recover`. Raises `WorkerLost` with ``shard_state``."""
        if self._shards is None:
            return super()._recover(model, error)
        with self._telling_of_slots():
            raise error

    @contextmanager
    def _telling_of_slots(self) -> Iterator[None]:
        """A block in which the loss of workers is told with the slots that are lost with them."""
        try:
            yield
        except WorkerLost as error:
            self._check_ends(error)
            raise error if self._shards is None else self._shards.lost(error) from error

    def _take(self, model: Tree, means: Mapping[str, Any], *, keep_root: bool) -> Tree:
        """The model after a step by the mean gradients of all workers."""
        if self._shards is None:
            return self.take_step(self.optimizer, model, self._parameters.tree(model, means), keep_root=keep_root)
        if keep_root:
            self._parameters.check_replaceable(model)
        with self._telling_of_slots():
            return self._shards.take(self._parameters, model, means, self.communicator, self._seconds)

    def _inner_state(self, *, copy: bool, for_others: bool) -> dict[str, Any]:
        """See `Wrapper._inner_state`."""
        state, shards = super()._inner_state(copy=copy, for_others=for_others), self._shards
        if shards is None:
            return state
        if for_others:  # at the start: no worker has taken a step
            return {**state, "slots": {}} if shards.loaded is None else dict(shards.loaded[0])
        with self._gathering("save and state_dict with shard_state=True"):
            return shards.state(state, self.communicator, self._seconds)

    def _load_inner(self, state: Mapping[str, Any], *, strict: bool) -> state.Report:
        """See `Wrapper._load_inner`."""
        if self._shards is None:
            return super()._load_inner(state, strict=strict)
        report = super()._load_inner(self._shards.part(state, self.communicator.rank), strict=strict)
        self._shards.loaded = None if self._shards.extents else (state, strict)
        return report

    def save(self, file: str | os.PathLike[str]) -> None:
        """See `Optimizer.save`. With ``shard_state`` all workers call it, and rank 0 writes the file."""
        if self._shards is None:
            super().save(file)
            return
        with self._lock.reading():
            self._write_on_one(file, self._whole_state(copy=False))

    @property
    def _has_own_writes(self) -> bool:
        """See `Wrapper._has_own_writes`: the slices are written after the optimizer's step."""
        return self._shards is not None

    def flush(self, model: Tree) -> Tree:
        """See `Optimizer.flush`. With ``shard_state`` all workers call it."""
        if self._shards is None or not self._stepper.micro:
            return super().flush(model)
        with self._lock.stepping(), exchanging(self._enrolment), self._telling_of_slots():
            self._divide(model)
            return self._shards.flush(self._parameters, model, self.communicator, self._seconds)

    def minimize(
        self,
        loss: Callable[[T], R],
        model: T,
        *,
        record: bool = False,
        in_backward: bool = False,
        has_aux: bool = False,
    ) -> R:
        """See `Wrapper.minimize`. With ``overlap``, unrecorded gradients leave while derivatives are computed.

        After an error in the middle, while gradients are under way, a step raises `RuntimeError`: call `reform` or
        `leave`.
        """
        if in_backward or record or has_aux or not self._leaves_early():
            return super().minimize(loss, model, record=record, in_backward=in_backward, has_aux=has_aux)
        lock = self._late_lock()
        try:

            def begin(watched: Any, constants: Sequence[Any], value: Any) -> Callable[[int, Any], bool]:
                lock.take()
                self._replayed.check_whole()
                if self._buckets is not None and not self._buckets.has_specs(self._parameters.specs(model)):
                    self._buckets = None
                return self._replayed.begin(self._parameters.announced(model, watched), takes=self._gives_back)

            try:
                value, grads = self._unrecorded_gradients(loss, model, begin)
            except BaseException:
                self._replayed.fail(is_under_way=self._buckets is not None and self._buckets.begun > 0)
                raise
            lock.take()  # where nothing was replayed
            self._within_step(model, lambda: self._step(model, grads, keep_root=True))
        finally:
            if lock.entered:
                lock.hold.__exit__(None, None, None)
        return value

    def _leaves_early(self) -> bool:
        """Whether `minimize` announces gradients one by one. Gradients of a single bucket leave together anyway."""
        may_leave = self.overlap and self.communicator.size > 1 and self._takes_plain_gradients()
        has_several = self._buckets is None or len(self._buckets) > 1
        return may_leave and (not self._is_agreed or (self._overlaps and has_several))

    def _is_final(self, source: FinalGradients, path: str) -> None:
        """Begins the exchange of the buckets whose gradients are all final."""
        buckets = self._buckets
        if not self._overlaps or buckets is None or self._pending + 1 < self.local_batches:
            return
        if buckets.has_begun(path):
            raise RuntimeError(
                f"{path}: a second gradient before update: expected update after each backward, and `with "
                "opt.no_sync():` around backwards but the last"
            )
        while (paths := buckets.next_paths()) and source.has_all(paths):
            gradients = {each: source.read(each, on_host=self._group is None) for each in paths}
            if self._rides and buckets.begun == len(buckets) - 1:  # all of them are final
                buckets.flags[:] = flags_of(self._specs, {}, self._count + 1, self._specs)
            with exchanging(self._enrolment):
                buckets.begin(self._accumulated(gradients), self.communicator, self.timeout)
            if self._gives_back:
                source.release(paths)

    @property
    def _gives_back(self) -> bool:
        """Whether gradients are given back once they have left: a worker keeps the sums of its part alone."""
        return self._overlaps and self._buckets is not None and self._buckets.slices is not None

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """See `Wrapper._step`."""
        gradients = self._read(model, grads)
        try:
            model, late = self._entered(model)
            sums, count = (gradients, 0) if late else (self._accumulated(gradients), self._count + 1)
            if self._pending + 1 < self.local_batches:
                added_up = {"_sums": sums if count else {}, "_count": count, "_pending": self._pending + 1}
                return self._with_step(lambda: model, added_up, accepted=not late)
            model, means = self._repeated(model, lambda: self._means(sums, count))
            # The batches are in the mean: a step that refuses it is not repeated with them.
            values = {"_sums": {}, "_count": 0, "_pending": 0, "_done": self._done + (means is not None)}
            if means is None:  # the others have completed this step, by the gradients of all, or all were late
                return self._with_step(lambda: model, values, accepted=not late)
            step = functools.partial(self._take, model, means, keep_root=keep_root)
            return self._with_step(step, values, accepted=not late)
        except CommunicationError:  # failed exchanges, on all workers, are not those of the next step
            self._drop()
            raise

    def _read(self, model: Tree, grads: Tree | None) -> dict[str, Any]:
        """The gradients of a batch that are not None, by key path."""
        if self._replayed.is_broken:
            self._replayed.check_whole()
        changed = self._hooks.changed() if self._hooks.has_begun else None
        if changed is not None and self._buckets is not None and self._buckets.begun:
            self._drop()
            raise RuntimeError(
                f"{changed}: the gradient was changed after the backward, and is under way to the other workers: "
                "expected a transform in a chain, as ClipByGlobalNorm, or overlap=False"
            )
        if self._shards is not None and self._done >= 0:  # else the start does it
            self._divide(model)
        source: FinalGradients | None = self._replayed if self._replayed.has_begun else None
        if grads is None:
            self._attach(model)
        if grads is None and self._hooks.are_attached:
            source = self._hooks
            self._hooks.drop_released()
        elif source is not None:
            grads = self._replayed.put_back(grads)
        if (grads is not None and source is None) or self._pending + 1 < self.local_batches:
            self._drop()
        gradients = self._parameters.gradients(model, grads, optional=True, on_host=self._group is None)
        vars(self).update(_source=source, _specs=self._parameters.last_specs())
        return gradients

    def _accumulated(self, gradients: Mapping[str, Any]) -> dict[str, Any]:
        """The sums of this worker with further gradients."""
        add, is_on_host = (added, True) if self._group is None else (self._group.added, False)
        sums = dict(self._sums)
        for path, gradient in gradients.items():
            is_whole = self.local_batches == 1 and not (is_on_host and gradient.dtype.itemsize == 2)
            sums[path] = gradient if is_whole else add(sums.get(path), gradient)
        return sums

    def _means(self, sums: Mapping[str, Any], count: int) -> dict[str, Any] | None:
        """The means over all workers of their sums of ``count`` gradients; None where all of them have none."""
        if self._group is None and {*map(type, sums.values())} - {np.ndarray}:
            sums = on_host(sums)  # after the loss of a worker, they may be on a device
        if self.communicator.size == 1:
            return {path: divided(total, count) for path, total in sums.items()} if count else None
        contributed = sums if count else {}
        released = self._source.released if self._source is not None and count else ()
        flags = flags_of(self._specs, contributed, count, released)
        began = self._overlaps or self._rides  # then these sums may be under way already
        if began:
            self._sum(self._in_order(self._order), contributed, flags)
        buckets = self._buckets if began and self._rides else None
        carried = self._told(flags) if buckets is None else buckets.flags
        dense, sparse, gradients = kinds_of(carried, self._specs)
        if not began:
            self._sum(self._in_order(self._order) if self._overlaps or self._rides else dense, contributed, flags)
        if not gradients:
            self._drop()
            return None
        views = {} if self._buckets is None else self._buckets.mean(gradients, self.communicator.rank)
        # With the state in shards, this worker may have no part of a parameter.
        means: dict[str, Any] = dict(zip(dense, map(views.get, dense), strict=True))
        for path in sparse:
            rows = contributed.get(path, no_rows(self._specs[path]))
            means[path] = divided(sum_of_rows(rows, self.communicator, self.timeout), gradients)
        self._drop()
        return means

    def _sum(self, order: Sequence[str], sums: Mapping[str, Any], flags: np.ndarray) -> None:
        """Completes the buckets in ``order`` with the sums over workers; the last may carry the ``flags``."""
        slices = None if self._shards is None else self._shards.slices
        # Where nothing overlaps, all slices go in one bucket: its parts are of one size for all workers only then.
        limit = self.bucket_bytes if slices is None or self._overlaps else math.inf
        flags = flags if self._rides else np.zeros(0)
        if self._buckets is None or not self._buckets.fits(self._specs, order, limit, slices, flags.size):
            self._drop()
            self._buckets = Buckets(self._specs, order, limit, slices, flags.size, self._group)
        source = self._source if self._overlaps else None
        vars(self)["_is_blocked"] = source is not None and self._buckets.is_blocked(source.has_all)
        if {*map(type, sums.values())} - {np.ndarray}:
            sums = {path: as_array(sums[path]) for path in order if path in sums}
        self._buckets.finish(sums, self.communicator, self.timeout, flags)

    def _in_order(self, first: Sequence[str]) -> list[str]:
        """The key paths of all parameters, those of ``first`` first."""
        return [*dict.fromkeys([*filter(self._specs.__contains__, first), *self._specs])]

    def _told(self, flags: np.ndarray) -> np.ndarray:
        """The sums of the flags of all workers, by a message of their own.

        In the first step of a generation the workers agree on the order of the buckets too, that of rank 0, and whether
        later steps need no such message.
        """
        paths, source = [*self._specs], self._source
        first = () if source is None else source.order
        order = [] if self._is_agreed else [paths.index(path) for path in self._in_order(first)]
        message = np.array([source is not None, *flags, *order], np.int64)
        parts = self.communicator.all_gather_v(message, timeout=self.timeout)
        if any(part.size != message.size for part in parts):
            raise Refused("tree", "workers have other numbers of parameters: expected one model on every worker")
        rows = np.stack(parts)
        sums = rows[:, 1 : 1 + len(flags)].sum(axis=0)
        if not self._is_agreed:
            are_arrays = not sums[1 + len(paths) :].any()
            self._is_agreed, self._overlaps = True, bool(rows[:, 0].all()) and are_arrays
            self._rides = are_arrays and bool(paths) and self._shards is None and self._group is None
            self._order = [paths[number] for number in rows[0, 1 + len(flags) :]]
        return sums
