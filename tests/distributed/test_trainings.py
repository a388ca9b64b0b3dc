"""The identities of trainings, and the watch over a worker that does not answer."""

import random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from test_decisions import SETTINGS

from oxigrad.distributed.coordination.enrolment import Enrolment
from oxigrad.distributed.decisions.training import Training, Trainings, admission
from oxigrad.distributed.decisions.watch import PARTS, Watch

# --- trainings ---------------------------------------------------------------------------------------------------------


class Job(RuleBasedStateMachine):
    """Workers that make wrappers, join and leave trainings in turn, at any speed; some are new, and do not know the count.

    Worker 0 has the coordinator, which serves the training that worker 0 is in, and waits in it until the others have left.
    """

    @initialize(workers=st.integers(2, 4))
    def start(self, workers: int) -> None:
        self.counts = [Trainings() for _ in range(workers)]
        self.enrolments = [Enrolment(counts) for counts in self.counts]
        for each in self.enrolments:
            each.number_now()
        self.done = [0] * workers  # the trainings that each worker has ended
        self.inside: list[Training | None] = [None] * workers
        self.served: Training | None = None
        self.kinds: dict[int, bool] = {}  # whether all workers go on with the same wrapper after a training
        self.seen: dict[Training, int] = {}  # which of the trainings it is, counted by the test

    @rule(data=st.data())
    def join(self, data: Any) -> None:
        worker = data.draw(st.integers(0, len(self.counts) - 1))
        if self.inside[worker] is not None:
            return
        enrolment = self.enrolments[worker]
        enrolment.begin()
        if worker == 0:
            self.inside[0] = self.served = enrolment.training
            assert self.seen.setdefault(enrolment.training, self.done[0]) == self.done[0]
        elif self.served is not None:
            decision = admission(self.served, enrolment.training)
            if decision == "tell":
                enrolment.adopt(self.served)
                self.done[worker] = self.done[0]
                decision = admission(self.served, enrolment.training)
            ahead = self.done[worker] - self.done[0]
            assert decision == ("serve" if ahead == 0 else "later" if ahead > 0 else "over")
            if decision == "serve":
                assert self.seen[enrolment.training] == self.done[worker]
                self.inside[worker] = enrolment.training

    @rule(data=st.data(), again=st.booleans())
    def leave(self, data: Any, again: bool) -> None:
        """Ends a training; the next one is of the same wrapper, or of another one: all workers do the same."""
        worker = data.draw(st.integers(0, len(self.counts) - 1))
        if self.inside[worker] is None or (worker == 0 and any(self.inside[1:])):
            return
        self.enrolments[worker].end(bytes(8))
        self.inside[worker] = None
        self.done[worker] += 1
        if worker == 0:
            self.served = None
        if not self.kinds.setdefault(self.done[worker], again):
            self.enrolments[worker] = Enrolment(self.counts[worker])
            self.enrolments[worker].number_now()

    @rule(data=st.data())
    def restart(self, data: Any) -> None:
        """A worker dies, and a new one takes its place, which does not know the count and joins the present training."""
        worker = data.draw(st.integers(0, len(self.counts) - 1))
        if worker and self.served is not None:
            self.counts[worker], self.inside[worker] = Trainings(is_known=False), None
            self.enrolments[worker] = Enrolment(self.counts[worker])
            self.enrolments[worker].number_now()
            assert self.enrolments[worker].training == Training()
            self.enrolments[worker].begin()
            self.enrolments[worker].adopt(self.served)
            self.done[worker], self.inside[worker] = self.done[0], self.served

    @invariant()
    def no_worker_is_in_another_training(self) -> None:
        if hasattr(self, "inside"):
            assert {training for training in self.inside if training is not None} <= {self.served}


TestJob = Job.TestCase
TestJob.settings = SETTINGS


@pytest.mark.parametrize("seed", range(3))
def test_identities_have_one_order_and_one_code(seed: int) -> None:
    rng = random.Random(seed)
    trainings = [Training(rng.choice([0, 1, 7, 1 << 31]), rng.choice([0, 1, 2, 1 << 31])) for _ in range(40)]
    assert [Training.of_code(each.code) for each in trainings] == trainings
    assert sorted(trainings) == sorted(trainings, key=lambda each: each.code)


# --- the watch ---------------------------------------------------------------------------------------------------------


class Watching(RuleBasedStateMachine):
    """A worker that waits for another one, which is alive, has nothing to say, or is stopped; the worker itself may be stopped too."""

    @initialize()
    def start(self) -> None:
        self.watch = Watch(float(PARTS))
        self.silent = self.waited = self.since_question = 0
        self.asked = False
        self.end: str | None = None

    def see(self, action: str | None) -> None:
        if action == "ask":
            assert self.silent >= PARTS // 2 and not self.asked
            self.asked, self.since_question = True, 0
        elif action == "lost":
            assert self.asked, "it was never asked"
            assert self.silent >= PARTS and self.since_question >= PARTS // 2
        elif action == "late":
            assert self.silent == 0 and self.waited >= PARTS, "it lives"
        self.end = action if action in ("lost", "late") else None

    @precondition(lambda self: self.end)
    @rule()
    def begin_again(self) -> None:
        self.start()

    @precondition(lambda self: not self.end)
    @rule(took=st.floats(0.1, 2.9))
    def wait(self, took: float) -> None:
        self.silent, self.waited, self.since_question = self.silent + 1, self.waited + 1, self.since_question + 1
        self.see(self.watch.waited(took))
        assert self.end == "lost" or self.silent < PARTS + PARTS // 2, "a stopped worker takes the job with it"

    @precondition(lambda self: not self.end)
    @rule(took=st.floats(3.1, 1e6))
    def be_stopped(self, took: float) -> None:
        self.silent = self.waited = 0
        self.asked = False
        assert self.watch.waited(took) is None, "a worker that was stopped itself knows nothing of the other one"

    @precondition(lambda self: not self.end)
    @rule(has_content=st.booleans())
    def hear(self, has_content: bool) -> None:
        self.silent, self.asked = 0, False
        self.waited = 0 if has_content else self.waited
        self.see(self.watch.heard(has_content))


TestWatching = Watching.TestCase
TestWatching.settings = SETTINGS
