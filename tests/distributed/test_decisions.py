"""Decisions: every gradient is decided once, nothing waits for ever, and a run can be replayed."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from oxigrad.distributed.decisions.events import Clock, Join, Leave, Pull, Push, Step, Token, Verdict
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.decisions.replicas import Replicas
from oxigrad.distributed.decisions.staleness import Staleness

LEASE = 5.0
# Without shrinking, which takes minutes for events of this kind.
SETTINGS = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],  # which depends on the load of the machine
)


class Agent:
    """A worker as the coordinator's counterpart: it computes, pushes, and asks again where it hears nothing."""

    def __init__(self) -> None:
        self.step: int | None = None  # whose parameters it computes a gradient from; None while it waits for them
        self.sent: Push | None = None
        self.told: dict[int, Verdict] = {}


class World:
    """A coordinator and its workers, with a network that may lose, repeat and reorder messages. Checks all that it sees."""

    def __init__(self, make: Any) -> None:
        self.make, self.decisions = make, make()
        self.events: list[Any] = []
        self.answers: list[Any] = []
        self.settled: list[Any] = []
        self.agents: dict[int, Agent] = {}
        self.dead: dict[int, Agent] = {}
        self.network: list[Any] = []
        self.arrived: set[tuple[int, int]] = set()
        self.in_step: dict[tuple[int, int], int] = {}
        self.told: dict[tuple[int, int], Verdict] = {}
        self.local: dict[tuple[int, int], int] = {}
        self.now, self.joined = 0.0, 0

    def handle(self, event: Any) -> None:
        """Gives an event to the coordinator, and puts its answers on the network."""
        if isinstance(event, Push) and event.worker in self.decisions.members:
            self.arrived.add((event.worker, event.number))
        actions = self.decisions.handle(event)
        self.events.append(event)
        self.answers.append(actions)
        for action in actions:
            self.check(action)
            if not isinstance(action, Step):
                self.network.append(action)
        self.settled += [(push.worker, push.number) for push, _ in self.decisions.settled()]

    def check(self, action: Any) -> None:
        if isinstance(action, Step):
            before = max(self.in_step.values(), default=0)
            assert action.step == before + 1
            assert len(action.gradients) == len(action.weights) > 0
            added, rest = action.gradients[: len(self.settled)], action.gradients[len(self.settled) :]
            assert [*added] == self.settled and [*rest] == sorted(rest)
            self.settled.clear()
            for gradient in action.gradients:
                assert gradient not in self.in_step and gradient not in self.told
                self.in_step[gradient] = action.step
            if self.decisions.members:
                assert len(action.gradients) == self.wanted()
            if isinstance(self.decisions, Replicas):
                assert {self.local[gradient] for gradient in action.gradients} == {action.step - 1}
                assert {*action.weights} == {1.0}
        elif isinstance(action, Verdict):
            gradient = action.worker, action.number
            assert action.accepted == (gradient in self.in_step) == (action.reason == "")
            if action.accepted:
                assert action.step == self.in_step[gradient]
                assert action.staleness == action.step - 1 - self.local[gradient]
            elif action.reason == "stale":
                assert action.staleness == action.step - self.local[gradient] > self.limit()
            known = self.told.setdefault(gradient, action)
            assert known == action or "unknown" in (known.reason, action.reason)
        else:
            assert action.step == self.decisions.step

    def wanted(self) -> int:
        made = self.decisions
        return made.replicas_to_aggregate if isinstance(made, Replicas) else made.gradients_per_step

    def limit(self) -> float:
        made = self.decisions
        return 0 if isinstance(made, Replicas) else float("inf") if made.limit is None else made.limit

    # --- what happens --------------------------------------------------------------------------------------------------

    def join(self) -> None:
        self.agents[self.joined] = Agent()
        self.network.append(Join(self.joined))
        self.joined += 1

    def die(self, worker: int, noticed: bool) -> None:
        self.dead[worker] = self.agents.pop(worker)
        if noticed:
            self.handle(Leave(worker))

    def compute(self, worker: int) -> None:
        agent = self.agents[worker]
        if agent.step is None:
            return
        number = 0 if agent.sent is None else agent.sent.number + 1
        agent.sent, agent.step = Push(worker, number, agent.step), None
        self.local[worker, number] = agent.sent.local_step
        self.network.append(agent.sent)

    def ask_again(self, worker: int) -> None:
        agent = self.agents[worker]
        if agent.step is None:
            is_told = agent.sent is None or agent.sent.number in agent.told
            self.network.append(Join(worker) if agent.sent is None else Pull(worker) if is_told else agent.sent)

    def deliver(self, at: int) -> None:
        message = self.network.pop(at)
        if isinstance(message, (Join, Pull, Push)):
            self.handle(message)
            return
        if (agent := self.agents.get(message.worker)) is None:
            return
        if isinstance(message, Verdict):
            agent.told[message.number] = message
        elif agent.step is None and (agent.sent is None or message.step >= agent.sent.local_step):
            agent.step = message.step

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.handle(Clock(self.now))

    # --- what must hold ------------------------------------------------------------------------------------------------

    def settle(self, steps: int) -> None:
        """Without further faults, the workers that are left take steps."""
        target = self.decisions.step + steps
        for _ in range(40 * (steps + 2) * (self.wanted() + len(self.agents) + 1)):
            if self.decisions.step >= target:
                break
            while self.network:
                self.deliver(0)
            for worker in [*self.agents]:
                self.compute(worker)
            while self.network:
                self.deliver(0)
            if all(agent.step is None for agent in self.agents.values()):
                self.tick(LEASE)
                for worker in self.agents:
                    self.ask_again(worker)
        assert self.decisions.step >= target, "the workers wait for ever"

    def finish(self) -> None:
        """All leave; every gradient that arrived is decided."""
        for worker in [*self.agents, *self.dead]:
            self.handle(Leave(worker))
        arrived = self.arrived
        known = self.told.keys()
        newest = {worker: max(n for w, n in arrived if w == worker) for worker, _ in arrived}
        # A push that a later one overtook is never looked at; its worker had given it up.
        assert all(gradient in known or gradient[1] < newest[gradient[0]] for gradient in arrived)
        assert not self.decisions.waiting
        assert sum(told.accepted for told in self.told.values()) == len(self.in_step)

    def replay(self) -> None:
        again: Decisions = self.make()
        assert [(again.handle(event), again.settled())[0] for event in self.events] == self.answers


MACHINES = {
    "2 of 3": lambda: Replicas(2, 3, lease=LEASE),
    "3 of 3": lambda: Replicas(3, lease=LEASE),
    "more replicas than workers": lambda: Replicas(7, 9, lease=LEASE),
    "fewer replicas than workers": lambda: Replicas(1, 2, lease=LEASE),
    "softsync": lambda: Staleness(3, is_scaled=True),
    "drop stale": lambda: Staleness(limit=1),
}


class Faults(RuleBasedStateMachine):
    """Any order of work and faults; `make` is set by a subclass."""

    make: Any

    @initialize(workers=st.integers(1, 5))
    def start(self, workers: int) -> None:
        self.world = World(type(self).make)
        for _ in range(workers):
            self.world.join()

    @precondition(lambda self: self.world.network)
    @rule(data=st.data())
    def deliver(self, data: Any) -> None:
        self.world.deliver(data.draw(st.integers(0, min(7, len(self.world.network) - 1))))

    @precondition(lambda self: self.world.network)
    @rule(data=st.data(), times=st.integers(0, 2))
    def lose_or_repeat(self, data: Any, times: int) -> None:
        message = self.world.network.pop(data.draw(st.integers(0, len(self.world.network) - 1)))
        self.world.network += [message] * times

    @precondition(lambda self: self.world.agents)
    @rule(data=st.data(), again=st.booleans())
    def work(self, data: Any, again: bool) -> None:
        worker = data.draw(st.sampled_from([*self.world.agents]))
        if again:
            self.world.ask_again(worker)
        else:
            self.world.compute(worker)

    @precondition(lambda self: len(self.world.agents) > 1)
    @rule(data=st.data(), noticed=st.booleans())
    def die(self, data: Any, noticed: bool) -> None:
        self.world.die(data.draw(st.sampled_from([*self.world.agents])), noticed)

    @precondition(lambda self: self.world.joined < 8)
    @rule()
    def join(self) -> None:
        self.world.join()

    @rule(seconds=st.floats(0, 2 * LEASE))
    def tick(self, seconds: float) -> None:
        self.world.tick(seconds)

    @invariant()
    def one_gradient_is_pushed_by_a_worker_at_a_time(self) -> None:
        if hasattr(self, "world"):
            counts = Counter((waiting.worker, waiting.number) for waiting in self.world.decisions.waiting)
            assert all(count == 1 for count in counts.values())

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.settle(2)
            self.world.finish()
            self.world.replay()


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.one_in(4)
def test_any_order_of_work_and_faults(kind: str) -> None:
    machine = type("Faults", (Faults,), {"make": staticmethod(MACHINES[kind])})
    run_state_machine_as_test(machine, settings=SETTINGS)


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("seed", range(5))
def test_a_long_run_with_faults_from_a_seed(kind: str, seed: int) -> None:
    rng, world = random.Random(seed), World(MACHINES[kind])
    for _ in range(5):
        world.join()
    for _ in range(3000):
        worker, chance = rng.choice([*world.agents]), rng.random()
        if chance < 0.55 and world.network:
            world.deliver(rng.randrange(len(world.network)))
        elif chance < 0.59 and world.network:
            world.network.pop(rng.randrange(len(world.network)))
        elif chance < 0.63 and world.network:
            world.network.append(rng.choice(world.network))
        elif chance < 0.88:
            world.compute(worker)
        elif chance < 0.94:
            world.ask_again(worker)
        elif chance < 0.945 and len(world.agents) > 2:
            world.die(worker, noticed=rng.random() < 0.5)
        elif chance < 0.955 and len(world.agents) < 8:
            world.join()
        else:
            world.tick(rng.random())
    assert world.decisions.step > 10
    world.settle(3)
    world.finish()
    world.replay()


# --- single decisions --------------------------------------------------------------------------------------------------


def joined(decisions: Decisions, workers: int) -> list[Any]:
    return [action for worker in range(workers) for action in decisions.handle(Join(worker))]


def tokens(actions: list[Any]) -> list[Any]:
    return [action.worker for action in actions if isinstance(action, Token)]


def test_no_first_gradient_is_wasted() -> None:
    """TensorFlow dropped one gradient of each worker at the start, by tokens of the step 0."""
    decisions = Replicas(2)
    assert joined(decisions, 2) == [Token(0, 0), Token(1, 0)]
    for number in range(5):
        decisions.handle(Push(0, number, number))
        actions = decisions.handle(Push(1, number, number))
        assert actions[0] == Step(number + 1, ((0, number), (1, number)), (1.0, 1.0))
        assert all(action.accepted for action in actions[1:3])
        assert actions[3:] == [Token(0, number + 1), Token(1, number + 1)]


def test_a_late_gradient_is_reported_with_its_staleness() -> None:
    decisions = Replicas(1, 2)
    joined(decisions, 2)
    for number in range(4):
        decisions.handle(Push(0, number, number))
    assert decisions.handle(Push(1, 0, 0)) == [Verdict(1, 0, False, 4, 4, "stale"), Token(1, 4)]


def test_sums_are_in_the_order_of_workers_and_not_of_arrival() -> None:
    decisions = Replicas(3)
    joined(decisions, 3)
    decisions.handle(Push(2, 0, 0)), decisions.handle(Push(0, 0, 0))
    assert decisions.handle(Push(1, 0, 0))[0].gradients == ((0, 0), (1, 0), (2, 0))


def test_a_fast_worker_does_not_stand_in_for_one_that_computes() -> None:
    decisions = Replicas(2, 3)
    joined(decisions, 3)
    assert decisions.handle(Push(0, 0, 0)) == []
    assert decisions.handle(Leave(1)) == []  # worker 2 computes
    assert tokens(decisions.handle(Leave(2))) == [0]
    assert decisions.handle(Push(0, 1, 0))[0] == Step(1, ((0, 0), (0, 1)), (1.0, 1.0))


def test_more_replicas_than_workers_are_shared_by_those_there_are() -> None:
    decisions = Replicas(4)
    joined(decisions, 2)
    assert tokens(decisions.handle(Push(0, 0, 0))) == [0]
    assert tokens(decisions.handle(Push(1, 0, 0))) == [1]
    assert tokens(decisions.handle(Push(0, 1, 0))) == []  # worker 1 computes the last one
    actions = decisions.handle(Push(1, 1, 0))
    assert actions[0] == Step(1, ((0, 0), (0, 1), (1, 0), (1, 1)), (1.0,) * 4)
    assert [action.number for action in actions if isinstance(action, Verdict)] == [0, 1, 0, 1]


def test_workers_above_the_total_take_turns() -> None:
    decisions, now = Replicas(1, 2), 0.0
    assert tokens(joined(decisions, 3)) == [0, 1]
    seen = Counter()
    holders = [0, 1]
    numbers = Counter()
    for _ in range(12):
        now += 1
        decisions.handle(Clock(now))
        worker = holders.pop(0)
        holders += tokens(decisions.handle(Push(worker, numbers[worker], decisions.step)))
        numbers[worker] += 1
        seen[worker] += 1
    assert min(seen.values()) >= 3, seen


def test_a_lease_passes_the_work_of_a_silent_worker_on() -> None:
    decisions = Replicas(2, lease=10.0)
    joined(decisions, 2)
    decisions.handle(Clock(1.0))
    assert decisions.handle(Push(0, 0, 0)) == []
    assert decisions.handle(Clock(9.0)) == []
    assert decisions.handle(Clock(10.0)) == [Token(0, 0)]
    assert decisions.handle(Push(0, 1, 0))[0] == Step(1, ((0, 0), (0, 1)), (1.0, 1.0))
    assert decisions.handle(Push(1, 0, 0))[0] == Verdict(1, 0, False, 1, 1, "stale")


def test_the_last_worker_that_leaves_takes_the_step_with_it() -> None:
    decisions = Replicas(3)
    joined(decisions, 1)
    assert tokens(decisions.handle(Push(0, 0, 0))) == [0]
    assert decisions.handle(Leave(0)) == [Step(1, ((0, 0),), (1.0,)), Verdict(0, 0, True, 0, 1)]


def test_a_worker_that_has_not_joined_is_told_so() -> None:
    decisions = Replicas(1)
    joined(decisions, 1)
    assert decisions.handle(Push(7, 0, 0)) == [Verdict(7, 0, False, 0, 0, "unknown")]
    decisions.handle(Leave(0))
    assert decisions.handle(Push(0, 0, 0)) == decisions.handle(Join(0)) == []  # messages from before it left


def test_a_gradient_of_a_step_that_was_lost_is_refused() -> None:
    decisions = Replicas(1, step=3)
    joined(decisions, 1)
    assert decisions.handle(Push(0, 0, 5))[0] == Verdict(0, 0, False, -2, 3, "future")


def test_weights_of_stale_gradients() -> None:
    """Zhang et al. 2016: the learning rate is divided by the staleness, where there is any."""
    decisions = Staleness(2, is_scaled=True, step=6)
    joined(decisions, 2)
    decisions.handle(Push(0, 0, 6))
    assert decisions.handle(Push(1, 0, 2))[0] == Step(7, ((0, 0), (1, 0)), (1.0, 0.25))
    decisions.handle(Push(0, 1, 6))
    assert decisions.handle(Push(1, 1, 5))[0].weights == (1.0, 0.5)


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_gradients_above_the_limit_are_dropped(limit: int) -> None:
    decisions = Staleness(limit=limit, step=10)
    joined(decisions, 1)
    for number in range(6):
        step = decisions.step
        told = next(a for a in decisions.handle(Push(0, number, step - number)) if isinstance(a, Verdict))
        assert told.accepted == (number <= limit) and told.staleness == number
