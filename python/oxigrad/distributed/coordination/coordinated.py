"""Base class of wrapper optimizers whose steps a coordinator takes, by the gradients of all workers."""

import copy
import dataclasses
import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad import NonFiniteError, StateError
from oxigrad._typing import Array, Config, Tree
from oxigrad.distributed.communicator import SECONDS, Communicator
from oxigrad.distributed.coordination.connection import Connection, Server
from oxigrad.distributed.coordination.coordinator import Coordinator, DecodedReply
from oxigrad.distributed.coordination.replica import Replica
from oxigrad.distributed.coordination.service import LEAVE, NOTICES, PULL, PUSH, STATE, UPDATES
from oxigrad.distributed.decisions.events import Verdict
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.errors import CommunicationError, Excluded, Refused
from oxigrad.distributed.messages.gradients import GradientCodec, SparseMean
from oxigrad.distributed.messages.reports.table import WorkerReport
from oxigrad.distributed.parameters import check_unchanged
from oxigrad.distributed.wrapper import Wrapper
from oxigrad.extend import Domain
from oxigrad.optim import Optimizer

_SPARSE_MEAN = Domain(("replicas", "touches"))


class Coordinated(Wrapper):
    """Base class of wrappers whose steps a coordinator takes: a thread of rank 0's process, with its own optimizer.

    Every worker has a replica of the parameters, which its optimizer updates by the same gradients: `slots` and the
    state are whole on each worker, as of its last step, and the others continue after the loss of any of them
    (`reform`). The coordinator's optimizer begins as a copy of that of rank 0, and takes over the hyperparameters that
    are set there with its next gradient.

    Each worker pushes its gradients in `update` or `minimize`, which return with new parameters. Workers take part from
    their first step, or from `join`, until `leave`, which the end of a ``with`` block calls, and that of the worker's
    work: those that have no more data leave, and the others go on. The worker of rank 0 stays in `leave` until the
    others have left. A worker that joins again, or by its next wrapper, takes part in the next training: it waits until
    all workers have left this one. All workers make their wrappers in the same order.

    The parameters at the start are those of rank 0. The first gradient of a worker whose parameters differ from those
    of the coordinator is not used: call `join` before, or use `minimize`, which does.

    Args:
        optimizer, communicator, timeout: see `Wrapper`.
        sparse_mean: the divisor of the sum of each row of `SparseRows` gradients: "replicas", the number of gradients
            of the step, as for dense arrays, or "touches", the number of those that have the row, as in TensorFlow 1.
        lease: seconds after which a worker that computes is no longer waited for; by default the time-out.

    Attributes:
        verdicts: the decisions on this worker's gradients that came with the last step: `Verdict` has ``accepted``,
            ``staleness``, and the ``step`` that the gradient is in.
    """

    sparse_mean: Any
    lease: float

    verdicts: list[Verdict]

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        communicator: Communicator | None = None,
        timeout: float | None = None,
        sparse_mean: SparseMean = "replicas",
        lease: float | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            parameters = (
                inspect.signature(each).parameters.values() for each in (type(self).__init__, Coordinated.__init__)
            )
            names = dict.fromkeys(
                p.name for each in parameters for p in each if p.kind is not p.VAR_KEYWORD and p.name != "self"
            )
            raise TypeError(
                f"{type(self).__name__}: unknown: {', '.join(sorted(unknown))}; its arguments are {', '.join(names)}"
            )
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self._refuse_inside(Wrapper)
        self.sparse_mean = _SPARSE_MEAN.check("sparse_mean", sparse_mean)
        self._lease: float | None = None if lease is None else SECONDS.check("lease", lease)
        self.lease = self._seconds if self._lease is None else self._lease
        self.verdicts = []
        self._set_apart()
        self._enrolment.number_now()

    _unstated = frozenset({"lease"})
    _states_defaults = _has_own_writes = True
    _fixed = frozenset({"lease"})
    _transient = frozenset({"_connection", "_server", "_replica", "_former", "_refusal", "_model"})

    def _set_apart(self) -> None:
        """See `Wrapper._set_apart`."""
        super()._set_apart()
        self._former: Replica | None = None
        self._disconnect()

    def _disconnect(self) -> None:
        """The state of a worker that has not joined."""
        self._connection: Connection | None = None
        self._server: Server | None = None
        self._refusal: NonFiniteError | None = None
        self._replica: Replica | None = None
        self._local_step = 0
        self._model: Tree = None

    @property
    def _coordinator(self) -> Coordinator | None:
        """The coordinator, where this process has it."""
        return None if self._server is None else self._server.coordinator

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def _decisions(self, **options: Any) -> Decisions:
        """The state machine of the method, with the options ``step``, ``expected`` and ``lease``."""
        raise NotImplementedError

    # --- membership ---------------------------------------------------------------------------------------------------

    def join(self, model: Tree) -> Tree:
        """Joins the training: returns the model with the parameters of the coordinator, in place as `update` does.

        Raises `TimedOut` where the coordinator does not answer.
        """
        self._check_usable()
        with self._lock.stepping():
            return self._whole(model, lambda: self._join(model))

    def start(self, model: Tree) -> Tree:
        """As `join`; see `Wrapper.start`."""
        return self.join(model)

    def build(self, model: Tree) -> None:
        """As `join`. Raises `StructureError` for a model that `join` would have to replace."""
        self._check_usable()
        with self._lock.stepping():
            self._parameters.check_replaceable(model)
            self._whole(model, lambda: self._join(model))

    def reform(self, model: Tree) -> Tree:
        """Continues with the survivors and the workers that wait to join. All call it; new workers call `join`.

        A step raises `WorkerLost` where the coordinator was lost, and where another worker has called `reform` or, on
        Ray, waits to join. The survivor whose replica is of the latest step becomes the coordinator: no gradient is
        lost that a survivor was told to be in a step, and the slots of the optimizer are those of that step. The others
        get its parameters and state. Returns the model, as `join`.
        """
        with self._lock.stepping():
            return self._continued_by(self._detach, lambda _: self._join(model))

    def _detach(self) -> None:
        """Ends the connection, and the coordinator where this worker has it; the replica is kept."""
        if self._server is not None:
            self._server.end()
            coordinator = self._server.coordinator
            self._local_step, self._former = coordinator.decisions.step, coordinator.replica
        self._connection = self._server = self._refusal = self._model = None

    def leave(self, model: Tree = None) -> Any:
        """See `Wrapper.leave`. On the coordinator's rank, returns when all others have left or died.

        There, ``model``, or else the model of the last step, then has the parameters after the last step of all
        workers, and the optimizer has its state. A worker that sends nothing for longer than the lease, while it is
        waited for, is excluded.
        """
        if (connection := self._connection) is None:
            return model
        try:
            connection.request(LEAVE, self._local_step)
        except CommunicationError as error:
            if self._server is not None:
                self._server.stop()  # nobody is left to serve
            if isinstance(error, Excluded):
                raise
        self._connection = None
        connection.leave()
        if self._server is not None:
            self._server.wait_for_others(max(self.lease, self._seconds))
        return self._final(model)

    def _final(self, model: Tree) -> Tree:
        """The model after the last step of all workers, where this process has the coordinator.

        The optimizer gets its state.
        """
        last, self._model = self._model if model is None else model, None
        coordinator, replica = self._coordinator, self._replica
        if coordinator is None or replica is None or last is None:
            return model
        if self._local_step != coordinator.decisions.step or replica.checksum() != coordinator.replica.checksum():
            replica.load({**coordinator.replica.arrays}, coordinator.replica.packed_state())
            self._local_step = coordinator.decisions.step
        written = self._parameters.write(last, replica.arrays)
        if model is None and written is not last:
            text = "leave has a model to replace, which it returns where it is given the model: expected leave(model)"
            warnings.warn(f"{type(self).__name__}: {text}", RuntimeWarning, stacklevel=3)
        return model if model is None else written

    def _abandon(self) -> None:
        """See `Wrapper._abandon`."""
        if self._server is not None:
            self._server.stop()
        if self._connection is not None:
            self._connection.leave()
            self._connection = None

    def _join(self, model: Tree) -> Tree:
        if self._connection is not None:
            return model
        parameters = dict(zip(self._parameters.paths(model), self._parameters.read(model).values(), strict=True))
        if self._enrolment.begin():
            self._begin(parameters)
        if self._replica is None:
            apart = self._parameters.frozen(model), self._parameters.untrained(model)
            self._replica = Replica(self.optimizer, parameters, *apart)
        replica = self._replica
        root, size = self._enrolment.elected(self.communicator, self._local_step, self._seconds)
        if self.communicator.rank == root:
            self._coordinate(replica, size)
        agreed = self._enrolment, replica.arrays, self._agreed_config(), self._seconds
        connection = self._connection = Connection(self.communicator, root, self._server, *agreed)
        try:
            description = replica.description(self._joining_config())
            connection.join(self._local_step, description, lambda: self._answered(connection, replica))
        except BaseException as error:
            self._connection = None
            if isinstance(error, Refused):
                self._replica = None
            raise
        if self._server is None:
            self._enrolment.takes_part(self.leave)
        model = self._parameters.write_untrained(model, replica.untrained)
        self._model = self._parameters.write(model, replica.arrays)
        return self._model

    def _begin(self, parameters: Mapping[Any, np.ndarray]) -> None:
        """Starts from this worker's model and optimizer state, or continues where neither has changed."""
        replica, coordinator = self._replica, self._coordinator
        self._disconnect()
        self._former = None
        if replica is None or not replica.is_of(parameters, self.optimizer):
            return
        self._replica, self._local_step = replica, self.optimizer.step
        if coordinator is not None:
            self._former, self._local_step = coordinator.replica, coordinator.decisions.step

    def _agreed_config(self) -> Config:
        """See `Wrapper._agreed_config`."""
        return {**super()._agreed_config(), "lease": self._lease}

    def _coordinate(self, local: Replica, size: int) -> None:
        """Starts the coordinator in this process: from the replica of a former one, or from a copy of this worker's."""
        former, self._former = self._former, None
        replica = former or local.copy()
        step = max(replica.optimizer.step, self._local_step)
        coordinator = Coordinator(
            replica=replica,
            decisions=self._decisions(step=step, expected=size, lease=self.lease),
            config=self._agreed_config(),
            description=replica.description(self._joining_config()),
            sparse_mean=self.sparse_mean,
            training=self._enrolment.training,
        )
        self._shown = self._version_numbers()
        self._server = Server(coordinator, self.communicator, self._enrolment, self.leave, self._seconds)

    def _offer_settings(self) -> None:
        """Gives the coordinator in this process the hyperparameters that were set since the last gradient."""
        if self._coordinator is not None and self._shown != (settings := self._version_numbers()):
            self._shown = settings
            self._coordinator.offer(copy.deepcopy(self.optimizer))

    # --- steps --------------------------------------------------------------------------------------------------------

    def _gradients_of_step(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """See `Optimizer._gradients_of_step`. Joins before the first gradient is computed."""
        if self._connection is None:
            self.build(model)
        return super()._gradients_of_step(loss, model, record=record)

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        gradients = self._parameters.gradients(model, grads)
        if keep_root:
            self._parameters.check_replaceable(model)
        if self._connection is None:
            before = {path: array.tobytes() for path, array in self._parameters.all(model).items()}
            model = self._join(model)
            if any(array.tobytes() != before[path] for path, array in self._parameters.all(model).items()):
                self.verdicts = [Verdict(None, -1, False, self._local_step, self._local_step, "unknown")]
                self._report.count(accepted=False)
                return model
        connection, replica = self._connection, self._replica
        if connection is None or replica is None:
            raise StateError(f"{type(self).__name__}: the worker has left: join again before a step")
        parameters = replica.arrays
        if gradients.keys() != parameters.keys():
            check_unchanged(gradients, parameters, type(self).__name__)
        connection.number += 1
        if self._server is not None:
            self._offer_settings()
        connection.request(PUSH, self._local_step, connection.codec.encode(gradients))
        self._answered(connection, replica)
        vars(self)["_model"] = model = self._parameters.write(model, parameters)
        if self._refusal is not None:
            raise self._refusal
        return model

    def _answered(self, connection: Connection, replica: Replica) -> DecodedReply:
        """Waits for the answer with which the worker goes on, that with a token, and brings the replica to its step.

        Returns also for an answer that says to join later, or another training.
        """
        vars(self).update(verdicts=[], _refusal=None)
        while True:
            answer = connection.answer(self._local_step)
            for verdict in answer.verdicts:
                self.verdicts.append(verdict)
                self._report.count(accepted=verdict.accepted, staleness=verdict.staleness)
            if not self._advance(replica, connection.codec, answer):
                connection.request(PULL, self._local_step, is_apart=True)
            elif answer.head.kind in NOTICES or (answer.head.token >= 0 and answer.head.number >= connection.number):
                return answer  # and no late one, to a gradient before an interrupt or a time-out

    def _advance(self, replica: Replica, codec: GradientCodec, answer: DecodedReply) -> bool:
        """Brings the replica to the step of an answer; False where it then differs from that of the coordinator."""
        head = answer.head
        if head.kind == STATE:
            replica.load(codec.decode(answer.parts[0]), answer.parts[1])
            self._local_step = head.step
        elif head.kind == UPDATES:
            first = head.step - len(answer.parts)
            if first > self._local_step:
                return False
            for part in answer.parts[self._local_step - first :]:
                if (refusal := replica.take(codec.decode(part))) is not None:
                    self._refusal = refusal
                vars(self)["_local_step"] += 1
            return self._local_step > head.step or replica.agrees(head.checksum, f"rank {self.communicator.rank}")
        return True

    @property
    def step(self) -> int:
        """The number of steps taken by all workers together, as far as this one knows."""
        return max(self._local_step, self.optimizer.step)

    def _known_reports(self) -> list[WorkerReport]:
        """See `Wrapper._known_reports`. On the coordinator's rank, of all workers; elsewhere of this one."""
        local = self._own_report()
        if self._coordinator is None:
            return [local]
        reports = self._coordinator.reports
        copies = [dataclasses.replace(reports[rank], stale=Counter(reports[rank].stale)) for rank in sorted(reports)]
        mine = next((each for each in copies if each.rank == local.rank), local)
        mine.bytes_sent, mine.refused = local.bytes_sent, local.refused
        mine.step, mine.rate, mine.waited = local.step, local.rate, local.waited
        return copies
