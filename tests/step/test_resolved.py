"""Resolved steps: few Python frames while nothing changes, and every change takes effect on the next step."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import gc
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, optim, schedules, xp
from oxigrad.optim.settings.hyperparameters import Hyperparameter
from oxigrad.rules.core import rule
from oxigrad.step.arrays.precision import Precision
from oxigrad.step.parameters.hyperparameter import Version
from oxigrad.step.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.step.parameters.presence import ParticipationLog
from oxigrad.step.plan.assignment import Assignment
from oxigrad.step.plan.programs import lay_out
from oxigrad.step.plan.step_program import ResolvedGroup, StepProgram
from oxigrad.step.slots.averages import named, nonempty
from oxigrad.step.slots.view import ParameterSlots
from oxigrad.step.state.state_dict import PendingState, Report
from python_frames import frames

Model = dict[str, Any]


def model() -> Model:
    return {"a": np.linspace(0.5, 1.5, 3), "b": np.linspace(-1.0, 1.0, 4)}


def gradients(step: int) -> Model:
    return {"a": np.full(3, 0.1 * (step + 1)), "b": np.linspace(1.0, -1.0, 4)}


def steady(opt: Any) -> list[str]:
    """The frames of a step after the first ones."""
    w, g = {"a": np.ones(2), "b": np.ones(3)}, {"a": np.ones(2), "b": np.ones(3)}
    for _ in range(3):
        opt.update(w, g)
    return frames(lambda: opt.update(w, g))


@pytest.mark.parametrize("made", [optim.SGD, functools.partial(optim.SGD, momentum=0.9), optim.AdamW])
def test_a_steady_step_runs_few_frames(made: Any) -> None:
    assert 1 <= len(steady(made(0.01))) <= 12


def test_attributes_of_a_steady_step_are_read_without_a_dict() -> None:
    """CPython 3.11 and 3.12 read attributes by their place until the ``__dict__`` of an object is used."""
    opt, w = optim.AdamW(0.01), model()
    for number in range(3):
        opt.update(w, gradients(number))
    stepper = opt._stepper
    (step,) = stepper.resolved.values()
    read: list[Any] = [stepper, step, step.plan, stepper.counts, *step.plan.groups]
    referents = [{id(referent) for referent in gc.get_referents(each)} for each in read]
    assert [type(each).__name__ for each, ids in zip(read, referents, strict=True) if id(vars(each)) in ids] == []


@pytest.mark.parametrize(
    "options", [{"nonfinite": "skip"}, {"master": True}, {"accumulate": 1000}, {"zero_gradients": True}]
)
def test_options_add_few_frames(options: dict[str, Any]) -> None:
    assert len(steady(optim.AdamW(0.01, **options))) <= 16


@pytest.mark.parametrize("made", [optim.SGD, functools.partial(optim.SGD, momentum=0.9), optim.AdamW])
def test_a_schedule_adds_its_own_calls(made: Any) -> None:
    found = steady(made(schedules.linear(0.1, 0.0, 10)))
    assert any(name.startswith("oxigrad.schedules") for name in found)
    assert len(found) <= 9
    assert len(steady(made(lambda step: 0.1 / (1 + step)))) <= 9
    assert len(steady(made(schedules.warmup(schedules.cosine(0.1, 10), 2)))) <= 11
    assert len(steady(made(0.5 * schedules.linear(0.1, 0.0, 10)))) <= 12


class CalledInAnotherWay(schedules.Schedule):
    """A schedule whose call is not that of its formula."""

    def __call__(self, step: Any) -> Any:
        return 0.25 + 0 * step

    def at(self, step: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("made", [lambda schedule: schedule, lambda schedule: schedules.clip(schedule, 0.1)])
def test_a_schedule_with_a_call_of_its_own_is_called(made: Any) -> None:
    expected, found = model(), model()
    optim.SGD(0.25).update(expected, gradients(0))
    optim.SGD(made(CalledInAnotherWay())).update(found, gradients(0))
    np.testing.assert_array_equal(found["a"], expected["a"])


@pytest.mark.parametrize("value", [np.float64(0.25), np.float32(0.25), 1, np.asarray(0.25)])
def test_schedules_return_numbers_of_any_type(value: Any) -> None:
    """A Python float within the interval of a hyperparameter is taken at once; others by the hyperparameter's checks."""
    expected, found = model(), model()
    for step in range(2):
        optim.SGD(float(value)).update(expected, gradients(step))
    opt = optim.SGD(lambda step: value)
    for step in range(2):
        opt.update(found, gradients(step))
    np.testing.assert_array_equal(found["a"], expected["a"])


@pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf"), -1, np.float64(-0.5)])
def test_a_schedule_outside_of_the_interval_is_refused(value: Any) -> None:
    """At any step, before anything is changed."""
    w, opt = model(), optim.SGD(lambda step: 0.1 if step < 2 else value)
    for step in range(2):
        opt.update(w, gradients(step))
    before = copy.deepcopy(w)
    with pytest.raises(ValueError, match="learning_rate"):
        opt.update(w, gradients(2))
    np.testing.assert_array_equal(w["a"], before["a"])
    assert opt.state_dict()["step"] == 2


@pytest.mark.parametrize("made", [optim.SGD, functools.partial(optim.SGD, momentum=0.9), optim.AdamW, optim.NAdam])
def test_a_steady_pure_step_runs_few_frames(made: Any) -> None:
    opt, params = made(0.01), model()
    state = opt.init(params)
    for step in range(2):
        params, state = opt.apply(params, gradients(step), state)
    grads = gradients(2)
    assert 1 <= len(frames(lambda: opt.apply(params, grads, state))) <= 60


def test_pure_steps_of_many_threads_are_each_their_own() -> None:
    opt, params, grads = optim.AdamW(0.01), model(), gradients(1)
    states = [opt.init(params)]
    for _ in range(50):
        states.append(opt.apply(params, grads, states[-1])[1])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda state: opt.apply(params, grads, state)[0]["a"].tobytes(), states * 4))
    assert found == [optim.AdamW(0.01).apply(params, grads, state)[0]["a"].tobytes() for state in states] * 4


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])  # noqa: S301
def test_copies_take_pure_steps_of_their_own(copied: Any) -> None:
    opt, params, grads = optim.AdamW(0.01), model(), gradients(1)
    state = opt.init(params)
    for _ in range(2):
        _, state = opt.apply(params, grads, state)
    other = copied(opt)
    other.learning_rate = 0.5
    assert (opt.apply(params, grads, state)[0]["a"] == opt.apply(params, grads, state)[0]["a"]).all()
    assert (other.apply(params, grads, state)[0]["a"] != opt.apply(params, grads, state)[0]["a"]).all()
    fresh = optim.AdamW(0.5)
    before = {path: array.tobytes() for path, array in fresh.apply(params, grads, state)[0].items()}
    assert {path: array.tobytes() for path, array in other.apply(params, grads, state)[0].items()} == before


@pytest.mark.parametrize(
    "change",
    [
        lambda opt: setattr(opt, "learning_rate", 0.5),
        lambda opt: setattr(opt, "weight_decay", 0.3),
        lambda opt: setattr(opt, "seed", 4),
        lambda opt: setattr(opt, "maximize", True),
    ],
)
def test_a_pure_step_follows_the_settings(change: Any) -> None:
    opt, fresh, params = optim.AdamW(0.01), optim.AdamW(0.01), model()
    state = opt.init(params)
    for step in range(2):
        params, state = opt.apply(params, gradients(step), state)
    for each in (opt, fresh):
        with contextlib.suppress(AttributeError):
            change(each)
    for kind in (np.float64, np.float32, np.float16):
        given = [ox.tree.map(lambda array, kind=kind: array.astype(kind), tree) for tree in (params, gradients(2))]
        (one, after), (other, expected) = (each.apply(*given, state) for each in (opt, fresh))
        assert {path: array.tobytes() for path, array in one.items()} == {
            path: array.tobytes() for path, array in other.items()
        }
        assert after["slots"]["a"]["m"].tobytes() == expected["slots"]["a"]["m"].tobytes()
        opt.apply(params, gradients(2), state)


# --- changes -----------------------------------------------------------------------------------------------------------

ADAM = optim.Adam


def set_slot(opt: Any, _: Model) -> None:
    opt.slots["a"]["m"] = np.array([1.0, 2.0, 3.0])


def load(opt: Any, _: Model) -> None:
    state = opt.state_dict()
    state["slots"]["a"]["v"] += 1.0
    opt.load_state_dict(state)


def fewer(opt: Any, w: Model) -> None:
    w["a"] = (w["a"],)  # another structure, and another key path
    with pytest.raises(ox.StructureError):
        opt.update(w, {"a": (np.ones(3),), "b": np.ones(4)})
    w["a"] = w["a"][0]


def read_only(_: Any, w: Model) -> None:
    w["a"].setflags(write=False)


def tie(_: Any, w: Model) -> None:
    w["b"] = np.array(w["b"])  # another array at the same path


def inner(change: Callable[[Any], None]) -> Callable[[Any, Model], None]:
    return lambda opt, _: change(opt.optimizers["*"])


def setting(name: str, value: Any) -> Callable[[Any, Model], None]:
    return lambda opt, _: setattr(opt, name, value)


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any, Model], None]]] = {
    "number": (ADAM, setting("learning_rate", 0.5)),
    "to a schedule": (ADAM, setting("learning_rate", schedules.linear(0.5, 0.0, 10))),
    "to a function": (ADAM, setting("beta1", lambda step: 0.5 + 0.01 * step)),
    "from a schedule": (lambda: ADAM(schedules.linear(0.5, 0.0, 10)), setting("learning_rate", 0.25)),
    "flag": (ADAM, setting("epsilon_mode", "inside")),
    "optional slot": (ADAM, setting("amsgrad", True)),
    "no slot any more": (lambda: ADAM(amsgrad=True), setting("amsgrad", False)),
    "groups": (ADAM, setting("groups", {"a": {"learning_rate": 0.5}})),
    "seed": (lambda: optim.chain(optim.GradientNoise(0.1), optim.SGD(0.1)), setting("seed", 7)),
    "zero_gradients": (ADAM, setting("zero_gradients", True)),
    "nonfinite": (ADAM, setting("nonfinite", "skip")),
    "loss_scale": (ADAM, setting("loss_scale", optim.LossScale(initial=8.0))),
    "accumulate": (ADAM, setting("accumulate", 2)),
    "slot": (ADAM, set_slot),
    "state": (ADAM, load),
    "structure": (ADAM, fewer),
    "read-only": (ADAM, read_only),
    "another array": (ADAM, tie),
    "partition": (lambda: optim.partition({"*": ADAM()}), inner(lambda opt: setattr(opt, "beta1", 0.5))),
    "partition, a flag": (lambda: optim.partition({"*": ADAM()}), inner(lambda opt: setattr(opt, "amsgrad", True))),
    "partition, groups": (
        lambda: optim.partition({"*": ADAM()}),
        inner(lambda opt: setattr(opt, "groups", {"a": {"learning_rate": 0.5}})),
    ),
    "a part of a chain": (
        lambda: optim.chain(optim.ClipByGlobalNorm(0.2), optim.ClipByGlobalNorm(0.15), optim.SGD(0.1)),
        lambda opt, _: setattr(opt.parts[1], "max_global_norm", 0.05),
    ),
    "chain": (lambda: optim.chain(optim.ClipByGlobalNorm(0.2), optim.SGD(0.1)), setting("max_global_norm", 0.05)),
}


def bits(opt: Any, w: Model) -> Any:
    slots = {path: {name: np.array(slot).tobytes() for name, slot in own.items()} for path, own in opt.slots.items()}
    return {path: array.tobytes() for path, array in w.items()}, slots, opt.step, opt.skipped


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_taken_up_by_the_next_step(name: str) -> None:
    make, change = CHANGES[name]
    opt, w = make(), model()
    for step in range(3):
        opt.update(w, gradients(step))
    change(opt, w)
    # A copy has no plan: what it does next is what an optimizer does that remembers nothing but its state.
    other, there = copy.deepcopy(opt), {path: array.copy() for path, array in w.items()}
    there["a"].setflags(write=w["a"].flags.writeable)
    for step in range(3, 6):
        given = gradients(step), gradients(step)
        opt.update(w, given[0])
        other = copy.deepcopy(other)
        other.update(there, given[1])
        assert bits(opt, w) == bits(other, there)
        assert all((given[0][path] == given[1][path]).all() for path in w)


def test_the_changes_are_seen_at_all() -> None:
    """The test above compares two optimizers, of which both might miss a change: here results must differ."""
    same = {
        "seed",
        "zero_gradients",
        "nonfinite",
        "structure",
        "read-only",
        "another array",
        "loss_scale",
        "no slot any more",
    }
    for name in CHANGES.keys() - same:
        make, change = CHANGES[name]
        found = []
        for changes in (False, True):
            opt, w = make(), model()
            for step in range(4):
                opt.update(w, gradients(step))
                if step == 2 and changes:
                    change(opt, w)
            found.append(bits(opt, w))
        assert found[0] != found[1], name


def test_groups_that_freeze_all_parameters_of_an_optimizer() -> None:
    opt = optim.partition({"a": optim.SGD(1.0, groups={"*": None}), "*": optim.SGD(1.0)})
    w = {"a": np.zeros(1), "b": np.zeros(1)}
    for _ in range(2):
        opt.update(w, {"b": np.ones(1)})
    opt.optimizers["a"].groups = {}
    opt.update(w, {"a": np.ones(1), "b": np.ones(1)})
    assert (w["a"], w["b"]) == (-1.0, -3.0)


def test_the_inner_optimizer_of_sam() -> None:
    opt, w = optim.SAM(optim.SGD(1.0), rho=0.0), {"x": np.ones(1)}
    for _ in range(2):
        opt.minimize(lambda m: xp.sum(m["x"]), w)
    opt.optimizer.learning_rate = 0.25
    opt.minimize(lambda m: xp.sum(m["x"]), w)
    assert w["x"] == -1.25


def test_a_schedule_that_sets_a_hyperparameter_does_so_for_the_next_step() -> None:
    def rate(step: int) -> float:
        opt.weight_decay = 0.0  # what is set while a step is under way is taken up by the next one
        return 1.0 if step < 2 else 0.5

    opt, w = optim.SGD(rate), {"x": np.zeros(1)}
    for expected in (-1.0, -2.0, -2.5, -3.0):
        opt.update(w, {"x": np.ones(1)})
        assert w["x"] == expected


def test_schedules_are_called_once_a_step() -> None:
    called: list[int] = []

    def rate(step: int) -> float:
        called.append(step)
        return 1.0

    opt, w = optim.SGD(rate, groups={"b": {"weight_decay": 0.1}}), {"a": np.zeros(1), "b": np.zeros(1)}
    g = {"a": np.ones(1), "b": np.ones(1)}
    opt.update(w, g)
    first = len(called)
    for _ in range(3):
        opt.update(w, g)
    assert called[first:] == [1, 1, 2, 2, 3, 3]  # once for each group


def test_a_steady_step_that_is_refused_changes_nothing() -> None:
    opt, w = optim.Adam(), model()
    for step in range(2):
        opt.update(w, gradients(step))
    before = bits(opt, w)
    with pytest.raises(ox.ShapeError, match="a: gradient has shape"):
        opt.update(w, {**gradients(2), "a": np.ones(5)})
    assert bits(opt, w) == before
    with pytest.raises(ox.StructureError, match="a: the gradient is missing"):
        opt.update(w, {"b": np.ones(4)})
    opt.learning_rate = lambda step: 1 / 0
    with pytest.raises(ZeroDivisionError):
        opt.update(w, gradients(2))
    assert bits(opt, w) == before


def test_no_step_while_averages_are_swapped_in() -> None:
    opt, w = optim.chain(optim.SGD(0.1), optim.EMA(decay=0.5)), model()
    for step in range(3):
        opt.update(w, gradients(step))
    opt.swap_in(w)
    for _ in range(2):
        with pytest.raises(ox.StateError, match="swap_out"):
            opt.update(w, gradients(3))
    opt.swap_out(w)
    opt.update(w, gradients(3))
    assert opt.step == 4


# --- the parts alone ---------------------------------------------------------------------------------------------------


def decay_rule(xp, p, g, m, *, rate=0.5, beta=0.25, mode="plain"):
    m = beta * m + g
    return p - rate * (m if mode == "plain" else g), m


DECAY = rule.read(decay_rule)


def hyperparameters(**values: Any) -> dict[str, Any]:
    """The hyperparameters of a rule, with other values than its defaults."""
    return {**DECAY.defaults, **values}


def group_of(values: dict[str, Any], overrides: Mapping[str, Any]) -> ParameterGroup:
    declared = {name: Hyperparameter(name, value) for name, value in DECAY.defaults.items()}
    return ParameterGroup("Decay", SteppingOptions(Precision()), DECAY, declared, values, overrides)


def test_a_group_alone() -> None:
    group = group_of(hyperparameters(rate=lambda step: 1.0 / (1 + step)), {"beta": 0.75})
    assert group.flags == {"mode": "plain"}
    assert group.numbers(1) == {"rate": 0.5, "beta": 0.75}
    assert (group.value("beta"), group.value("rate"), group.absent, group.catches_up) == (0.75, 1.0, (), False)
    assert group.name == "Decay" and group.precision == Precision()
    assert isinstance(group.program(group.rule()), _core.Program)
    assert "beta=0.75" in group.text and "mode='plain'" in group.text


def test_a_resolved_group_alone() -> None:
    of_rule = hyperparameters(rate=lambda step: 1.0 / (1 + step))
    assignment = Assignment()
    assignment.group_number(group_of(of_rule, {}), 0)
    assignment.unite([])
    program = StepProgram(assignment, seed=0)
    resolved = program.groups[0]
    assert resolved.rule.numbers == ["step", "rate", "beta"] and resolved.varies
    assert resolved.scalars == [0.0, 0.0, 0.25]
    program.fill(3, 1, 1.0)
    assert resolved.scalars == [4.0, 0.25, 0.25]
    assert resolved.values() == {
        "step": 4,
        "drawn_at": 4,
        "micro": 1,
        "inverse_scale": 1.0,
        "mode": "plain",
        "rate": 0.25,
        "beta": 0.25,
    }
    of_rule["rate"] = 0.125
    assert program.refresh() and resolved.scalars[1:] == [0.125, 0.25] and not program.varies_on_host
    of_rule["mode"] = "other"
    assert not program.refresh()  # which takes another kernel


def test_groups_of_one_kernel_are_laid_out_as_sets_of_its_scalars() -> None:
    of_rule = hyperparameters()
    groups = [ResolvedGroup(group_of(of_rule, given)) for given in ({}, {"rate": 1.0}, {"mode": "other"}, {})]
    keyed = [(group.program, number) for number, group in enumerate(groups)]
    programs, layout = lay_out(keyed, [group.scalars for group in groups].__getitem__)
    assert layout == [(0, 0), (0, 1), (1, 0), (0, 2)]
    assert [len(sets) for _, sets in programs] == [3, 1]
    assert programs[0][1][1] is groups[1].scalars


def test_a_version_alone() -> None:
    version, other = Version(), Version()
    number, structure = version.number, version.structure
    version.raise_number()
    assert version.number > number and version.structure == structure
    version.raise_structure()
    assert version.structure > structure and version.number != other.number


def test_slots_that_are_assigned_raise_the_version() -> None:
    version = Version()
    slots = ParameterSlots("w", {"m": np.zeros(2)}, version)
    before = version.structure
    with pytest.raises(ox.ShapeError):
        slots["m"] = np.zeros(3)
    assert version.structure == before
    slots["m"] = np.ones(2)
    assert version.structure > before


def test_averages_alone() -> None:
    stepper = ox.optim.SGD()._stepper
    stepper.refuse_swapped()
    stepper.swapped = {}
    with pytest.raises(ox.StateError, match="swap_out brings the parameters back"):
        stepper.refuse_swapped()
    slots = {"a": {"average": 1.0}, "b": {"m": 2.0}}
    assert named(slots, "average") == {"a": 1.0}
    assert nonempty({"a": 1.0}, "averages") == {"a": 1.0}
    with pytest.raises(ox.StateError, match="there are no averages"):
        nonempty({}, "averages")


def test_matching_of_slots_alone() -> None:
    own = {"w": {"m": np.zeros(2), "v": np.zeros(2)}}
    found = PendingState(strict=False, report=(report := Report()))(
        {"w": {"m": np.ones(2), "v": np.ones(3)}, "x": {}}, own
    )
    assert (found["w"]["m"] == 0).all() and (found["w"]["v"] == 0).all()
    assert report.unexpected == ["x"] and len(report.mismatched) == 1 and not report.missing
    with pytest.raises(ox.StateError, match=re.escape("w: slot v has shape (3,)")):
        PendingState(strict=True, report=Report())({"w": {"m": np.ones(2), "v": np.ones(3)}}, own)


@dataclasses.dataclass
class Stepping:
    """As much of a stepper as a state needs."""

    taken: int = 0
    micro: int = 0
    skipped: int = 0
    slots: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    fitting: Any = None
    swapped: dict[str, Any] | None = None
    presence: ParticipationLog = dataclasses.field(default_factory=ParticipationLog)

    @property
    def counts(self) -> Stepping:
        return self

    def check_whole(self) -> None:
        pass

    def refuse_swapped(self) -> None:
        if self.swapped is not None:
            raise ox.StateError("the averages are swapped in")

    @property
    def table(self) -> Stepping:
        return self

    @property
    def by_path(self) -> Mapping[str, Mapping[str, Any]]:
        return self.slots

    def resumed(self, counts: Mapping[str, int], slots: Any, fitting: Any, presence: Mapping[str, Any]) -> Stepping:
        made = Stepping(counts["step"], counts["micro"], counts["skipped"], slots, fitting)
        made.presence = ParticipationLog.of(presence)
        return made


class Stateful:
    """As much of an optimizer as a state needs."""

    name = "Stateful"
    accumulate = 1

    def __init__(self, stepper: Stepping) -> None:
        self._stepper = stepper

    def get_config(self) -> dict[str, Any]:
        return {}

    def _remembering(self) -> dict[str, Any]:
        return {}

    def _resume(self, stepper: Any) -> None:
        self._stepper = stepper


def test_a_state_alone() -> None:
    from oxigrad.optim.stateful import collect, resume

    first: Any = Stateful(Stepping(taken=5, skipped=1, slots={"w": {"m": np.ones(2)}}))
    second: Any = Stateful(Stepping(slots={"w": {"m": np.zeros(2)}}))
    assert not resume(second, collect(first))
    assert (second._stepper.counts.taken, second._stepper.counts.skipped) == (5, 1)
    assert (second._stepper.slots["w"]["m"] == 1).all()
    assert second._stepper.slots["w"]["m"] is not first._stepper.slots["w"]["m"]
    second._stepper.swapped = {}
    with pytest.raises(ox.StateError):
        collect(second)


# --- lifetime ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def collected() -> Iterator[None]:
    gc.collect()
    yield
    gc.collect()


def use(opt: Any) -> None:
    w, g = {"a": np.ones(2), "b": np.ones(3)}, {"a": np.ones(2), "b": np.ones(3)}
    for _ in range(2):
        opt.update(w, g)
    opt.load_state_dict(opt.state_dict())
    opt.update(w, g)


MAKES: dict[str, tuple[int, Callable[[int], Any]]] = {
    "sgd": (1000, lambda k: optim.SGD(0.001 * k)),
    "adamw": (1000, lambda k: optim.AdamW(0.001, groups={"a": {"weight_decay": 0.001 * k}})),
    "schedules": (1000, lambda k: optim.SGD(schedules.linear(0.1, 0.0, 10 + k))),
    "functions": (1000, lambda k: optim.SGD(lambda step: 0.001 * k)),
    "partition": (300, lambda k: optim.partition({"a": optim.SGD(0.1), "*": optim.Adam(0.001 * k)})),
    "chain": (100, lambda k: optim.chain(optim.ClipByValue(1.0 + k), optim.SGD(0.1), nonfinite="skip")),
}


@pytest.mark.slow
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("name", MAKES)
def test_optimizers_that_were_made_used_and_dropped_leave_nothing(name: str) -> None:
    count, make = MAKES[name]
    for k in range(3):  # what is made once, at the first of a kind
        use(make(k))

    def growth() -> int:
        gc.collect()
        before = len(gc.get_objects())
        for k in range(count):
            use(make(k))
        gc.collect()
        return len(gc.get_objects()) - before

    # The least of several, since threads of other tests may end meanwhile.
    assert min(growth() for _ in range(3)) < 100


def test_a_plan_is_made_anew_once_for_arrays_that_it_does_not_fit() -> None:
    """For rows, a lazy view and a read-only parameter; the new plan takes what the one before it took, too."""
    torch: Any = pytest.importorskip("torch")
    rows = ox.SparseRows([1], np.ones((1, 2)), (3, 2))
    dense = torch.ones((3, 2), dtype=torch.float64, device="cpu")
    lazy = torch.complex(dense, dense).conj().imag
    for unread in (rows, lazy):
        opt, model = ox.optim.Adam(0.1), {"w": torch.ones((3, 2), dtype=torch.float64, device="cpu")}
        like, expected = ox.optim.Adam(0.1), {"w": np.ones((3, 2))}
        plans = []
        for g in (dense, dense, unread, dense, unread, dense):
            opt.update(model, {"w": g})
            like.update(expected, {"w": g.todense() if g is rows else np.asarray(g.resolve_neg())})
            plans.append(opt._stepper.plan)
            np.testing.assert_array_equal(model["w"].numpy(), expected["w"])
        assert len({*map(id, plans)}) == 2 and plans[1] is plans[0] and plans[2] is plans[-1]
        assert plans[-1].reads and not plans[0].reads
    array = np.ones(3)
    opt, model = ox.optim.Adam(0.1), {"w": array}
    opt.update(model, {"w": np.ones(3)})
    first = opt._stepper.plan
    array.flags.writeable = False
    opt.update(model, {"w": np.ones(3)})
    assert model["w"] is not array and opt._stepper.plan is not first
    with pytest.raises(ox.ArrayMemoryError, match="w: the gradient does not share its memory"):
        ox.optim.Adam(0.1).update({"w": np.ones(3)}, {"w": torch.ones(3, dtype=torch.float64, device="meta")})
