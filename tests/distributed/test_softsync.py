"""Softsync and DropStale: asynchronous workers, with staleness made by order rather than by time."""

import contextlib
import itertools
import threading
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim
from oxigrad.distributed import DropStale, Softsync
from oxigrad.distributed.coordination.coordinator import Coordinator
from oxigrad.distributed.coordination.replica import Replica
from oxigrad.distributed.coordination.service import ANY, JOIN, PUSH, REPLY_WORDS, REQUEST
from oxigrad.distributed.decisions.replicas import Replicas
from oxigrad.distributed.decisions.staleness import Staleness
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.message import Header, as_bytes


class Driver:
    """Gives a coordinator requests in a chosen order."""

    def __init__(self, decisions: Staleness | Replicas, opt: Any = None) -> None:
        replica = Replica(opt or optim.SGD(1.0), ox.tree.parameters({"w": np.zeros(2)}))
        self.coordinator = Coordinator(replica, decisions)
        self.numbers = 0
        for rank in range(3):
            self.request(JOIN, rank, 0)

    def request(self, kind: int, rank: int, step: int, bufs: Any = ()) -> list[list[int]]:
        self.numbers += 1
        description = agreement.described(self.coordinator.replica.arrays)
        words = [np.array([kind, self.numbers, 1, 0], np.int64), *([description] if kind == JOIN else bufs)]
        header = Header(REQUEST, step, ANY if kind == JOIN else self.coordinator.codec.digest).sealed(words, rank=rank)
        replies = self.coordinator.receive(header, np.concatenate([as_bytes(buffer) for buffer in words]))
        return [[words[0], words[2], *words[REPLY_WORDS:]] for words in (reply.bufs[0].tolist() for reply in replies)]

    def push(self, rank: int, step: int, value: float) -> list[list[int]]:
        return self.request(PUSH, rank, step, self.coordinator.codec.encode({"w": np.full(2, value)}))

    @property
    def w(self) -> float:
        return float(self.coordinator.replica.arrays["w"][0])


def test_learning_rates_are_divided_by_the_staleness() -> None:
    """Zhang et al. 2016, arXiv:1511.05950: alpha(t) = alpha / t for t > 0."""
    driver = Driver(Staleness(1, is_scaled=True))
    for step in range(4):
        driver.push(0, step, 1.0)
    assert driver.w == -4.0
    driver.push(1, 0, 1.0)  # staleness 4
    assert driver.w == -4.25
    driver.push(2, 4, 1.0)  # staleness 1
    assert driver.w == -5.25


def test_a_step_is_the_mean_of_several_weighted_gradients() -> None:
    driver = Driver(Staleness(2, is_scaled=True))
    for step in range(2):
        driver.push(0, step, 0.0), driver.push(1, step, 0.0)
    driver.push(0, 2, 3.0)
    assert driver.w == 0.0
    driver.push(1, 0, 8.0)
    assert driver.w == -(3.0 + 8.0 / 2) / 2


def test_the_weighted_step_goes_through_the_optimizer() -> None:
    driver = Driver(Staleness(1, is_scaled=True), optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(1.0)))
    driver.push(0, 0, 0.0), driver.push(0, 1, 0.0)
    driver.push(1, 0, 2.0)  # weighted by one half before it is clipped
    assert driver.w == pytest.approx(-1 / np.sqrt(2))


def test_no_worker_waits() -> None:
    driver = Driver(Staleness(3))
    for _ in range(2):
        (answer,) = driver.push(0, 0, 1.0)
        assert answer[:2] == [0, 0]  # a token, and no decision yet
    (answer,) = driver.push(0, 0, 1.0)
    assert answer[:2] == [1, 3] and driver.w == -1.0


def test_too_stale_gradients_are_dropped_whole_and_told() -> None:
    driver = Driver(Staleness(limit=1))
    for step in range(3):
        driver.push(0, step, 1.0)
    (answer,) = driver.push(1, 1, 100.0)
    assert answer[:7] == [3, 1, driver.numbers, 0, 2, 3, 1]
    assert driver.w == -3.0
    driver.push(1, 2, 1.0)
    assert driver.w == -4.0
    assert driver.coordinator.reports[1].stale == {2: 1, 1: 1}


@pytest.mark.parametrize(("limit", "is_used"), [(0, False), (2, False), (3, True), (None, True)])
def test_a_gradient_beyond_the_limit_is_dropped(limit: int | None, *, is_used: bool) -> None:
    """A worker keeps a gradient back while the other takes three steps by gradients of ones."""
    goes_on = threading.Event()

    def worker(comm: Any) -> Any:
        opt = Softsync(optim.SGD(1.0), gradients_per_step=1, scaled=False, limit=limit)
        with opt:
            own = opt.join({"w": np.zeros(1)})
            comm.all_reduce([np.zeros(1)])
            if comm.rank:
                goes_on.wait(30.0)
            for _ in range(1 if comm.rank else 3):
                own = opt.update(own, {"w": np.ones(1)})
            goes_on.set()
            return [each.accepted for each in opt.verdicts], opt.step

    assert distributed.run(worker, workers=2, timeout=30.0)[1] == ([is_used], 3 + is_used)


VALUES = [0.1, 1e16, -1e16]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_gradients_are_added_as_soon_as_their_turn_has_come(order: tuple[int, ...]) -> None:
    """The sum is that in the order of ranks, whichever came first; only gradients that overtook others are kept apart."""
    driver = Driver(Replicas(3, expected=3))
    arrived: set[int] = set()
    for rank in order:
        driver.push(rank, 0, VALUES[rank])
        arrived.add(rank)
        first = next(rank for rank in range(4) if rank not in arrived)
        kept = {rank for (rank, _), _ in driver.coordinator._held}
        assert kept == ({rank for rank in arrived if rank > first} if len(arrived) < 3 else set())
    assert driver.w == -(((VALUES[0] + VALUES[1]) + VALUES[2]) / 3)


@pytest.mark.parametrize("error", [KeyboardInterrupt, distributed.TimedOut])
def test_a_late_answer_is_not_taken_for_that_of_the_next_step(error: type[BaseException]) -> None:
    """The wait for an answer ends early; the gradient is in a step all the same, and later steps go on from there."""

    def worker(comm: Any) -> Any:
        opt, model = DropStale(optim.SGD(1.0), staleness=0), {"w": np.zeros(2)}
        told = []
        with opt:
            opt.start(model)
            if comm.rank:
                for number in range(1, 6):
                    receive = opt._connection._receive
                    if number == 2:
                        opt._connection._receive = lambda *_: (_ for _ in ()).throw(error("the wait"))
                    with contextlib.suppress(error):
                        opt.update(model, {"w": np.ones(2)})
                        told.append((number, opt.step, float(model["w"][0]), opt.verdicts[-1].accepted))
                    opt._connection._receive = receive
        return told

    # The third gradient is of the parameters before the second step.
    expected = [(1, 1, -1.0, True), (3, 2, -2.0, False), (4, 3, -3.0, True), (5, 4, -4.0, True)]
    assert distributed.run(worker, workers=2, timeout=30.0)[1] == expected


WRAPPERS = {
    "softsync": lambda: Softsync(optim.SGD(0.1, momentum=0.5), gradients_per_step=2),
    "downpour": lambda: Softsync(optim.SGD(0.1), scaled=False),
    "drop stale": lambda: DropStale(optim.Adam(0.1), staleness=2),
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.slow
def test_workers_train_together(name: str) -> None:
    def worker(comm: Any) -> Any:
        own = {"w": np.full(4, 5.0)}
        with WRAPPERS[name]() as opt:
            for _ in range(100):
                opt.minimize(lambda m: ox.xp.sum((m["w"] - 1.0) ** 2), own)
        return own["w"], opt.report()[0], opt

    found = distributed.run(worker, workers=3)
    coordinator = found[0][2]
    for w, report, _ in found:
        assert np.all(abs(w - 1.0) < 0.2)
        assert report.accepted + report.dropped <= 100
    reports = coordinator.report()
    assert sum(report.accepted + report.dropped for report in reports) == 300
    taken = sum(report.accepted for report in reports)
    each = getattr(coordinator, "gradients_per_step", 1)
    assert coordinator._coordinator.replica.optimizer.step == -(-taken // each)


@pytest.mark.parametrize("name", WRAPPERS)
def test_config(name: str) -> None:
    opt = WRAPPERS[name]()
    assert repr(optim.from_config(opt.get_config())) == repr(opt)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Softsync(optim.SGD(), 0),
        lambda: Softsync(optim.SGD(), scaled="no"),  # type: ignore[arg-type]
        lambda: DropStale(optim.SGD(), -1),
        lambda: DropStale(optim.SGD(), 0.5),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments(make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="gradients_per_step|scaled|staleness"):
        make()
