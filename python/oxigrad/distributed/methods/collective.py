"""Base class of wrappers whose workers all call the same collective operations."""

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from oxigrad import state as state_module
from oxigrad._typing import Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.decisions.training import NO_TRAINING, common, exchanging
from oxigrad.distributed.errors import TimedOut, WorkerLost, log
from oxigrad.distributed.fields import Field, integer
from oxigrad.distributed.messages import agreement, transfer
from oxigrad.distributed.messages.configuration import values_of_functions
from oxigrad.distributed.messages.message import checksum
from oxigrad.distributed.wrapper import Wrapper
from oxigrad.extend import config_of
from oxigrad.optim import Optimizer

_Result = TypeVar("_Result")


def _digest(description: np.ndarray) -> int:
    return int.from_bytes(hashlib.sha256(description.tobytes()).digest()[:8], "little", signed=True)


class CollectiveWrapper(Wrapper):
    """Base class of wrappers whose workers all call the same collective operations.

    All workers call `start`, or their first `update` does it: they then have the parameters and the state of the worker
    of rank 0. Where a worker is lost in a step, the survivors reform and repeat the operation. A worker that joins
    receives parameters, slots and the state of the wrapper from a survivor before its first step. If it has not called
    `start`, the gradient of its first `update` is of other parameters: it is dropped, and counted so in the report.
    """

    _fields: ClassVar[tuple[Field, ...]] = (integer("_done", "done", -1),)
    #: Whether all workers update the same parameters in each step, so that they must have the same hyperparameters.
    _are_replicas: ClassVar[bool] = True

    def __init__(
        self, optimizer: Optimizer, *, communicator: Communicator | None = None, timeout: float | None = None
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self._refuse_inside(type(self))
        # The number of collective operations completed; -1 before the start. Survivors that differ are brought up to
        # date.
        self._done = -1
        self._set_apart()
        self._enrolment.number_now()

    def start(self, model: Tree) -> Tree:
        """Starts this worker, and returns ``model`` with the parameters that all workers start from.

        All workers call it. Raises `Refused` on all of them where their models, the wrapper's arguments or the
        optimizers differ.
        """
        self._check_usable()
        with self._lock.stepping():
            return self._entered(model)[0]

    def reform(self, model: Tree) -> Tree:
        """Admits the workers that wait to join, and returns ``model``.

        All workers call it, those that join call `start`.
        """
        with self._lock.stepping():
            self._reform()
            return self._agree(model)[0]

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def _begin(self, model: Tree) -> None:
        """Makes the worker's own state for the parameters of the start, where none was loaded."""

    def _receive(self, model: Tree) -> None:
        """Adapts the state that was received from another worker: by default, it is the own one as well."""

    def _wants_agreement(self) -> bool:
        """Whether this worker wants all of them to `_agree_anew`."""
        return False

    def _agree_anew(self) -> None:
        """Forgets what workers agreed on in the first step. All of them call it, and agree again in the next one."""

    # --- agreement ----------------------------------------------------------------------------------------------------

    def _entered(self, model: Tree) -> tuple[Tree, bool]:
        """The model of a worker that takes part: `_agree` before the first step."""
        return self._agree(model) if self._done < 0 else (model, False)

    def _agree(self, model: Tree) -> tuple[Tree, bool]:
        """Brings workers that are new, or behind, up to date.

        Returns the model, and whether this worker was one of several.

        The workers tell each other the operations that they have completed. The first of those with the most gives its
        parameters and its state to those with fewer.
        """
        completed, root, data = self._offered(model)
        late = self._done < completed[root]
        if data is not None and (late or completed[root] < 0) and self.communicator.rank != root:
            values, state = transfer.unpack(data)
            self._load(state, strict=True)
            model = self._parameters.write_untrained(self._parameters.write(model, values), values)
            if late:
                self._warn_of_hyperparameters(state["config"])
                self._receive(model)
        self.communicator.trainings.completed = self._done = max(completed[root], 0)
        self._begin(model)
        return model, late

    def _offered(self, model: Tree) -> tuple[list[int], int, np.ndarray | None]:
        """The operations that each worker completed, the first worker with the most, and its state if one has fewer.

        The state has the arrays that no step updates too, if those of workers differ.
        """
        while True:
            try:
                with exchanging(NO_TRAINING):  # a worker that joins does not know the training yet
                    return self._offered_now(model)
            except WorkerLost as error:
                self._survive(error)

    def _offered_now(self, model: Tree) -> tuple[list[int], int, np.ndarray | None]:
        completed, are_alike = self._completed(model)
        root, data = completed.index(max(completed)), np.empty(0, np.uint8)
        if len(set(completed)) == 1 and completed[root] >= 0:
            return completed, root, None
        if self.communicator.rank == root:  # the others do not know the number of bytes
            arrays = self._parameters.read(model) if are_alike else self._parameters.all(model)
            data = transfer.pack(arrays, self._whole_state(copy=False, for_others=True))
        return completed, root, self.communicator.all_gather_v(data, timeout=self.timeout)[root]

    def _survive(self, error: WorkerLost) -> None:
        """Continues with the survivors of a loss. Raises `WorkerLost` as `_check_ends` does."""
        former = self.communicator
        self._check_ends(error)
        self._reform()
        # The notice of an end may come after another worker, which has received it, forms the next generation.
        self._check_ends(WorkerLost(former.unfinished, steps=former.unfinished))
        if error.ranks:
            ranks, size = ", ".join(map(str, sorted(error.ranks))), self.communicator.size
            log.warning("%s continues with %d workers, without rank %s", self.name, size, ranks)

    def _check_ends(self, error: WorkerLost) -> None:
        """Raises `WorkerLost` if the work of a lost worker has ended, at an earlier step and without `leave`."""
        if not error.steps:
            return
        ends = " and ".join(
            f"the work of rank {rank} ended {f'after step {step}' if step else 'before its first step'}"
            for rank, step in error.steps.items()
        )
        raise WorkerLost(
            error.ranks,
            f"step {(self.communicator.trainings.completed or 0) + 1}",
            f"{ends}, without leave(): expected as many steps on every worker, or leave() where its data ends; "
            "reform() continues without it",
            error.steps,
        ) from error

    def _missed(
        self, model: Tree, error: WorkerLost
    ) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, Any]] | None:
        """Continues with the survivors after a `WorkerLost`: returns what they completed without this worker, or None.

        These are their parameters, the values of their attributes, and the slots of their optimizer. This worker takes
        none of them by itself.
        """
        self._survive(error)
        completed, root, data = self._offered(model)
        is_behind, self._done = self._done < completed[root], max(completed[root], 0)
        if data is None or not is_behind:
            return None
        parameters, state = transfer.unpack(data)
        values, mismatched = self._restored(*self._own_parts(state))
        state_module.Report(mismatched=mismatched).check()
        return parameters, values, state["slots"]

    def _completed(self, model: Tree) -> tuple[list[int], bool]:
        """The operations that each worker has completed, and whether the arrays that no step updates are alike.

        Raises `Refused` on all of them where their models differ.
        """
        arrays, untrained = self._parameters.read(model), self._parameters.untrained(model)
        description = agreement.described(arrays, self._agreed_config(), untrained)
        hyperparameters = agreement.described({}, self._agreed_settings())
        crc = checksum(map(np.ascontiguousarray, untrained.values()))
        self._enrolment.number_now()
        numbers = [self._done, _digest(description), _digest(hyperparameters), crc, self._enrolment.number]
        rows = self.communicator.all_gather_v(np.array(numbers, np.int64), timeout=self.timeout)
        agreement.check_method([each.size for each in rows], len(numbers))
        if training := common([int(each[4]) for each in rows]):
            self._enrolment.take_number(training)
        completed = [int(each[0]) for each in rows]
        self._check_same(description, [each[1] for each in rows])
        if max(completed) < 0:  # those that join later have the hyperparameters of their own start
            self._check_same(hyperparameters, [each[2] for each in rows])
        return completed, len({int(each[3]) for each in rows}) == 1

    def _check_same(self, description: np.ndarray, digests: list[int]) -> None:
        """Raises `Refused` on all workers where their descriptions, which have these digests, differ."""
        if any(each != digests[0] for each in digests):
            first, *others = self.communicator.all_gather_v(description, timeout=self.timeout)
            differences = (agreement.difference(first, each, f"rank {rank}") for rank, each in enumerate(others, 1))
            raise next(error for error in differences if error is not None)

    def _check_settings(self, model: Tree) -> None:
        """Compares hyperparameters and parameters with those of the others, which all call it in the same rounds.

        Raises `Refused` on all workers where they differ.
        """
        if self.communicator.size == 1 or not self._are_replicas:
            return
        settings = [*self._agreed_settings(), values_of_functions(self.optimizer)]
        description = agreement.described({}, settings, replicas=self._parameters.of_core(model))
        numbers = np.array([_digest(description), self._wants_agreement()], np.int64)
        rows = self.communicator.all_gather_v(numbers, timeout=self.timeout)
        self._check_same(description, [int(each[0]) for each in rows])
        if any(int(each[1]) for each in rows):
            self._agree_anew()

    def _warn_of_hyperparameters(self, theirs: Any) -> None:
        """Warns where this worker joins others whose optimizer has another configuration."""
        ours = config_of(self)
        if self._are_replicas and ours is not None and theirs is not None:
            apart = [
                [{n: value for n, value in each.items() if n != "parts"}, *each["parts"]] for each in (ours, theirs)
            ]
            unlike = agreement.unlike_config(apart[0], apart[1], "this worker, which joins,")
            if unlike is not None:
                warnings.warn(f"{unlike}, as on the others", RuntimeWarning, stacklevel=2)

    def _repeated(self, model: Tree, operation: Callable[[], _Result]) -> tuple[Tree, _Result | None]:
        """The model, and the result of collective operations, which the survivors repeat after the loss of a worker.

        The result is None where the others have completed the operations: the model and the state are then theirs.
        """
        while True:
            try:
                result = operation()
                if self._done % agreement.ROUNDS == 0 < self._done:
                    self._check_settings(model)
                self.communicator.trainings.completed = self._done + 1
                return model, result
            except WorkerLost as error:
                model, is_behind = self._recover(model, error)
                if is_behind:
                    return model, None
            except TimedOut as error:
                raise TimedOut(f"step {self._done + 1}: {error}") from error

    def _write_on_one(self, file: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
        """Writes a state on rank 0; all workers call it, and none goes on before the file is written."""
        try:
            if self.communicator.rank == 0:
                self._write_state(file, state)
        finally:
            with self._gathering("save"):
                self.communicator.all_reduce([np.zeros(1)], timeout=self.timeout)

    def _recover(self, model: Tree, error: WorkerLost) -> tuple[Tree, bool]:
        """Continues with the survivors after a `WorkerLost`: as `_agree`."""
        self._survive(error)
        return self._agree(model)
