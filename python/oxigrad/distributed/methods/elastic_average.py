"""Elastic averaging: workers train on their own, and are pulled to a centre that they pull in turn."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from oxigrad import xp
from oxigrad._typing import Array, Tree
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.coordination.connection import Connection, Server
from oxigrad.distributed.coordination.coordinator import DecodedReply
from oxigrad.distributed.coordination.elastic_centre import Centre, ElasticCoordinator, greet, moved
from oxigrad.distributed.coordination.service import LEAVE, NOTICES, PULL, PUSH
from oxigrad.distributed.decisions.elastic import Elastic, moving_rate
from oxigrad.distributed.errors import CommunicationError, Refused, WorkerLost
from oxigrad.distributed.fields import BOUND, FACTOR, Arrays, Plain, arrays, check_flags, integer
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.methods.collective import CollectiveWrapper
from oxigrad.distributed.methods.means import mean_over_workers
from oxigrad.distributed.parameters import check_unchanged
from oxigrad.extend import COUNT, Domain, as_array, to_host
from oxigrad.optim import SGD, Interval, Optimizer, Quantized

_RATE = Domain((None,), Interval("(0, 1)"))
# The centre as a worker last saw it, and, of rank 0, as it is.
_SEEN, _KEPT = "elastic-centre", "elastic-kept"


class ElasticAverage(CollectiveWrapper):
    """Elastic averaging SGD (Zhang, Choromanska and LeCun 2015, arXiv:1412.6651) around any optimizer.

    Each worker trains its own parameters x by ``optimizer``. Every ``period`` updates, before the step, it exchanges
    with the centre c: with ``d = moving_rate * (x - c)``, the worker moves by ``-d`` and the centre by ``d``. The step
    uses the gradient at the parameters before the move, as in the paper's algorithm 1.

    Asynchronously, a thread of rank 0 keeps the centre, and each worker exchanges with it when it is ready. A worker
    calls `leave` when it has no more data; otherwise the end of its work does so. Synchronously, all workers exchange
    at once, and the centre moves by the sum of their moves (equations 5 and 6 of the paper, with ``beta = size *
    moving_rate``); each keeps a copy of it.

    Args:
        optimizer: the optimizer of each worker.
        period: updates between two exchanges of a worker; each call of `update` counts.
        moving_rate: by default ``0.9 / period / size``, as in TensorFlow 1's ElasticAverageOptimizer.
        rho: adds ``rho * (x - c)``, with the centre of the last exchange, to each gradient. It is 0 by default, since
            the exchange is this force already in the paper; TensorFlow 1 adds both, with ``rho = moving_rate /
            learning_rate``.
        synchronous: whether all workers exchange at once.
        deterministic: whether an asynchronous centre applies exchanges in rounds by rank, so that the result depends on
            no timing; a worker then waits for those before it.
        nesterov: EAMSGD (algorithm 2): around `SGD` with momentum, `minimize` takes the gradient at `lookahead`.
        lease: seconds without an exchange after which an asynchronous worker counts as having left; None sets no limit.
        communicator: communicator of this worker; by default the `current` one of the thread.
        timeout: seconds that a wait for other workers takes at most; by default the communicator's.

    All workers start from the parameters of rank 0; one that joins later gets the centre, or synchronously the
    parameters and the state of a survivor. Asynchronously, parameters that groups freeze have the same values on all
    workers, else `Refused`. The state has the centre: asynchronously the centre of rank 0 at the time of the save.
    Raises `ValueError` or `TypeError` for arguments that exclude each other, and `WorkerLost` where the keeper of the
    centre has died: call `reform`, which makes another worker the keeper.

    >>> import numpy as np
    >>> from oxigrad import distributed, optim
    >>> def worker(comm):
    ...     opt = distributed.ElasticAverage(optim.SGD(1.0), period=1, moving_rate=0.25, synchronous=True)
    ...     model = {"w": np.zeros(1)}
    ...     for _ in range(2):
    ...         model = opt.update(model, {"w": np.array([4.0 * comm.rank])})
    ...     return float(model["w"][0]), float(opt.centre()["w"][0])
    >>> distributed.run(worker, workers=2)
    [(0.0, -1.0), (-7.0, -1.0)]
    """

    period: int
    moving_rate: float | None
    rho: float
    synchronous: bool
    deterministic: bool
    nesterov: bool
    lease: float | None

    _are_replicas = False
    _has_own_writes = True

    def _write_served(self, value: Any) -> tuple[Plain, Arrays]:
        """The centre as it is, on the worker that serves it."""
        return {}, {} if self._server is None else {path: {_KEPT: array} for path, array in self.centre().items()}

    _fields = (
        integer("_count", "count"),
        arrays("_centre", _SEEN),
        dataclasses.replace(arrays("_loaded_centre", _KEPT), write=_write_served),
    )
    _transient: ClassVar[frozenset[str]] = frozenset({"_connection", "_server"})

    def __init__(
        self,
        optimizer: Optimizer,
        period: int = 10,
        *,
        moving_rate: float | None = None,
        rho: float = 0.0,
        synchronous: bool = False,
        deterministic: bool = False,
        nesterov: bool = False,
        lease: float | None = None,
        communicator: Communicator | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self.period, self.rho = COUNT.check("period", period), FACTOR.check("rho", rho)
        self.moving_rate, self.lease = _RATE.check("moving_rate", moving_rate), BOUND.check("lease", lease)
        self.synchronous, self.deterministic, self.nesterov = check_flags(
            synchronous=synchronous, deterministic=deterministic, nesterov=nesterov
        )
        if rho and self.optimizer.loss_scale is not None:
            raise ValueError("rho and loss_scale are mutually exclusive: gradients are scaled, the penalty is not")
        if synchronous and (deterministic or lease is not None):
            raise ValueError(
                "synchronous exchanges are deterministic and have no lease: expected deterministic=False, lease=None"
            )
        if nesterov and not (isinstance(optimizer, SGD) and optimizer.momentum and not optimizer.nesterov):
            raise ValueError(f"nesterov is EAMSGD: found {optimizer!r}, expected SGD with momentum and nesterov=False")
        self._count = 0
        self._centre: dict[str, np.ndarray] = {}
        self._loaded_centre: dict[str, np.ndarray] = {}
        self._is_started = False
        self._description = np.empty(0, np.uint8)
        # The pushes that the centre had applied with the last one of this worker, and the parameters that it pushed.
        self._applied = -1
        self._position: dict[str, np.ndarray] = {}

    def _set_apart(self) -> None:
        """See `Wrapper._set_apart`."""
        super()._set_apart()
        self._connection: Connection | None = None
        self._server: Server | None = None
        #: The number of the last push that was answered.
        self._number = 0

    @property
    def _rate(self) -> float:
        if self.moving_rate is not None:
            return self.moving_rate
        return moving_rate(self.period, self.communicator.size)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        """See `Wrapper._step`."""
        model, late = self._entered(model)
        check_unchanged(self._parameters.specs(model), self._centre, "ElasticAverage")
        grads = self._penalized(model, grads) if self.rho and not late else grads
        if self._count and self._count % self.period == 0:
            model = self._exchange(model)
        self._count += 1
        if not late:
            model = self.take_step(self.optimizer, model, grads, keep_root=keep_root)
        self._report.count(accepted=not late)
        self.communicator.trainings.completed = self._count
        return model

    def _penalized(self, model: Tree, grads: Tree | None) -> Tree:
        """The gradients with the penalty ``rho / 2 * |x - c|**2`` added to the loss."""
        values = self._parameters.wide(model)
        penalized = {}
        for path, g in self._parameters.gradients(model, grads).items():
            dense = as_array(g)
            pull = values[path] - self._centre[path]
            penalized[path] = (dense + self._centre[path].dtype.type(self.rho) * pull).astype(dense.dtype, copy=False)
        return self._parameters.tree(model, penalized)

    def _exchange(self, model: Tree) -> Tree:
        """Exchanges with the centre."""
        if not self.synchronous:
            return self._pushed(model)
        while True:
            parameters = self._parameters.wide(model)
            differences = {path: value - self._centre[path] for path, value in parameters.items()}
            rate, beta = self._rate, self._rate * self.communicator.size
            new = {path: parameters[path] - d.dtype.type(rate) * d for path, d in differences.items()}
            try:
                means = mean_over_workers(differences, self.communicator, timeout=self.timeout)
                break
            except WorkerLost as error:
                if (missed := self._missed(model, error)) is not None:  # the others have completed this exchange
                    self._centre = missed[1]["_centre"]
                    return self._written(model, new)
        self._done += 1
        self._centre = {path: c + c.dtype.type(beta) * means[path] for path, c in self._centre.items()}
        return self._written(model, new)

    def _written(self, model: Tree, values: Mapping[str, np.ndarray]) -> Tree:
        like = self._parameters.read(model)
        cast = {path: value.astype(like[path].dtype, copy=False) for path, value in values.items()}
        return self._parameters.write(model, cast)

    def centre(self) -> dict[str, np.ndarray]:
        """The centre by key path, as this worker last saw it; float32 for parameters of half precision."""
        if self._server is not None:
            return self._kept(self._server)
        return {path: value.copy() for path, value in self._centre.items()}

    # --- the asynchronous centre --------------------------------------------------------------------------------------

    def reform(self, model: Tree) -> Tree:
        """Continues with the survivors and the workers that wait to join. All call it; new workers call `start`.

        Synchronously, see `CollectiveWrapper.reform`. Asynchronously, it is needed after the loss of the worker that
        keeps the centre: the survivor with the latest exchange keeps it from then on, so that no exchange that a
        survivor was answered is lost. The parameters of the workers are not changed.
        """
        if self.synchronous:
            return super().reform(model)
        with self._lock.stepping():
            if not self._is_started:
                self._reform()
                return self._entered(model)[0]
            self._continued_by(self._surrender_centre, lambda centre: self._join(self._elect_keeper(centre)))
            return model

    def _surrender_centre(self) -> dict[str, np.ndarray]:
        """The latest centre that this worker knows; it keeps none from then on."""
        server, self._server = self._server, None
        if server is not None:
            server.end()
            self._applied = server.coordinator.decisions.step
            return self._kept(server)
        centre = {path: array.copy() for path, array in self._centre.items()}
        for path, position in self._position.items():  # the centre was answered before this move
            centre[path] += moved(centre[path], position, self._rate)
        return centre

    @staticmethod
    def _kept(server: Server) -> dict[str, np.ndarray]:
        """A copy of the centre that this worker keeps."""
        assert isinstance(server.coordinator, ElasticCoordinator)  # noqa: S101 - for the type checker
        return server.coordinator.copies()

    def _elect_keeper(self, centre: dict[str, np.ndarray]) -> Connection:
        """The connection to the elected keeper of the centre. This worker serves ``centre`` if it is elected."""
        communicator = self.communicator
        root, size = self._enrolment.elected(communicator, self._applied, self._seconds)
        if communicator.rank == root:
            step = max(self._applied, 0)
            decisions = Elastic(ordered=self.deterministic, lease=self.lease, step=step, expected=size)
            agreed = self._agreed_config(), self._description, self._enrolment.training
            coordinator = ElasticCoordinator(Centre(centre), decisions, self._rate, *agreed)
            self._server = Server(coordinator, communicator, self._enrolment, self._depart, self._seconds)
        connection = self._connection = self._connected(centre, root)
        return connection

    def _connected(self, parameters: Mapping[str, np.ndarray], root: int) -> Connection:
        """A connection to the worker ``root``, which keeps the centre or begins synchronous exchanges."""
        agreed = self._enrolment, parameters, self._agreed_config(), self._seconds
        return Connection(self.communicator, root, self._server, *agreed)

    def leave(self, model: Tree = None) -> Any:
        """See `Wrapper.leave`: returns ``model``, asynchronously with the centre as its parameters.

        Rank 0 waits for the other workers to leave, at most for the time-out.
        """
        with self._lock.stepping():
            if (connection := self._connection) is None:
                return super().leave(model)
            self._pull(connection)
            server = self._server
            self._depart()
            if server is not None:
                self._centre = self._kept(server)
            return model if model is None else self._written(model, self._centre)

    def _depart(self) -> None:
        """Tells the worker that keeps the centre that the work of this one has ended.

        That one waits for the others, at most for the time-out.
        """
        if self._connection is not None:
            with contextlib.suppress(CommunicationError):
                self._connection.request(LEAVE, self._applied)
            if self._server is not None:
                self._server.wait(self._seconds)
                self._server.end()
            self._disconnect()

    def _abandon(self) -> None:
        """See `Wrapper._abandon`."""
        if self._server is not None:
            self._server.stop()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.leave()
        self._is_started, self._connection, self._server, self._number, self._applied = False, None, None, 0, -1

    def _entered(self, model: Tree) -> tuple[Tree, bool]:
        """See `CollectiveWrapper._entered`: the parameters are from rank 0, or from the centre."""
        if self._is_started:
            return model, False
        parameters = self._parameters.wide(model)
        if self.synchronous:
            self._description = agreement.described(parameters, self._joining_config())
            self._greet(parameters)
            model, late = self._agree(model)
            self._is_started = True
            return model, late
        frozen = {str(path): np.asarray(to_host(array)) for path, array in self._parameters.frozen(model).items()}
        self._description = agreement.described(parameters, self._joining_config(), constant=frozen)
        seen, first = self._centre, self._loaded_centre or self._centre or parameters
        self._enrolment.begin()
        try:
            self._join(self._elect_keeper({path: np.array(first[path]) for path in parameters}))
        except BaseException:
            self._connection = None
            raise
        self._is_started = True
        if self._count:  # It continues from a checkpoint.
            self._centre = seen
            return model, False
        return self._written(model, self._centre), False

    def _greet(self, parameters: Mapping[str, np.ndarray]) -> None:
        """Asks rank 0, as asynchronous workers do, to begin; on rank 0, answers all.

        Raises `Refused` where workers have other arguments.
        """
        communicator = self.communicator
        if communicator.size == 1 or communicator.generation:
            return
        self._enrolment.begin()
        if communicator.rank:
            connection = self._connected(parameters, 0)
            connection.join(0, self._description, lambda: self._answered(connection))
        else:
            self._enrolment.end_former()
            greet(communicator, self._description, self._enrolment.training, self._seconds)

    def _join(self, connection: Connection) -> None:
        """Asks the worker that keeps the centre to admit this one, and takes the centre."""
        answer = connection.join(max(self._applied, 0), self._description, lambda: self._answered(connection))
        self._number = 0
        self._adopt_centre(connection, answer, {})
        if self._server is None:
            self._enrolment.takes_part(self._depart)

    def _pull(self, connection: Connection) -> None:
        """Takes the centre as it is."""
        connection.number = self._number = 0
        connection.request(PULL, self._applied)
        self._adopt_centre(connection, self._answered(connection), {})

    def _answered(self, connection: Connection) -> DecodedReply:
        """Waits for the answer to the last request: the centre, or a refusal of the push."""
        while True:
            answer = connection.answer(max(self._applied, 0))
            has_centre = answer.head.token >= 0 and answer.head.number >= connection.number
            is_refused = any(not each.accepted and each.number >= connection.number for each in answer.verdicts)
            if has_centre or is_refused or answer.head.kind in NOTICES:
                return answer

    def _adopt_centre(self, connection: Connection, answer: DecodedReply, position: dict[str, np.ndarray]) -> None:
        centre = connection.codec.decode(answer.parts[0])
        self._centre = {path: np.array(as_array(value)) for path, value in centre.items()}
        self._applied, self._position = answer.head.step, position

    def _pushed(self, model: Tree) -> Tree:
        connection = self._connection
        assert connection is not None  # noqa: S101 - for the type checker
        parameters = self._parameters.wide(model)
        for _ in range(2):
            connection.number = self._number + 1  # the same after an interrupt: a push is applied once
            connection.request(PUSH, self._applied, connection.codec.encode(parameters))
            answer = self._answered(connection)
            if all(each.accepted for each in answer.verdicts):
                break
            self._join(connection)  # its lease had ended
        else:
            raise Refused("member", "the centre refuses the exchange of this worker")
        self._number += 1
        self._adopt_centre(connection, answer, {path: np.array(value) for path, value in parameters.items()})
        return self._written(model, {p: x - moved(self._centre[p], x, self._rate) for p, x in parameters.items()})

    # --- EAMSGD -------------------------------------------------------------------------------------------------------

    def lookahead(self, model: Tree) -> Tree:
        """A copy of ``model`` where EAMSGD takes gradients: ``x + momentum * v``, with the momentum's last step ``v``.

        For gradients of your own with ``nesterov``: take them here, and give them to `update` with ``model``.
        """
        slots, groups, step = self.optimizer.slots, self._parameters.plan(model).groups, self.optimizer.step

        def ahead(p: Any, x: Any) -> Any:
            if "m" not in slots.get(p.text, {}):
                return x
            numbers, m = groups[p.group].numbers(step), slots[p.text]["m"]
            there = x - numbers["learning_rate"] * numbers["momentum"] * xp.asarray(
                np.asarray(m) if isinstance(m, Quantized) else m
            )
            return xp.asarray(xp.astype(there, x.dtype))

        return self._parameters.mapped(model, ahead)

    def _gradients(self, loss: Callable[[Tree], Array], model: Tree, *, record: bool) -> tuple[Any, Any]:
        """See `Optimizer._gradients`; with ``nesterov``, value and gradient are those at `lookahead`."""
        return super()._gradients(loss, self.lookahead(model) if self.nesterov else model, record=record)

    # --- state --------------------------------------------------------------------------------------------------------

    def _begin(self, model: Tree) -> None:
        """See `CollectiveWrapper._begin`."""
        if not self._centre:
            self._centre = {path: np.array(v) for path, v in self._parameters.wide(model).items()}
