"""Declarations of slots, the kinds of rules, totals, and the decay of slots."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim
from oxigrad.optim.table.row import TABLE
from oxigrad.rules.core.slots import Slot
from oxigrad.step.parameters.decay import decay_factors, number_of


def declaring(slot: Any, **options: Any) -> Any:
    """An optimizer with one slot, declared by this default."""

    def rule(xp, p, g, s=slot, *, learning_rate=0.1, initial=3.0, switch=0.0, kind="float16"):
        return p - learning_rate * g, s

    return optim.define(rule, "Declaring")(**options)


@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        (Slot.zeros(), [0.0, 0.0]),
        (Slot.copy(), [1.0, 2.0]),
        (Slot.full(0.5), [0.5, 0.5]),
        (Slot.full("initial"), [3.0, 3.0]),
        (Slot.computed(lambda xp, p, initial: p * initial), [3.0, 6.0]),
        (lambda xp, p, initial: p + initial, [4.0, 5.0]),
        (Slot.scalar(0.25), 0.25),
        (Slot.zeros(when="initial"), [0.0, 0.0]),
        (Slot.zeros(when="switch"), None),
        (Slot.full("initial", when="switch"), None),
    ],
)
def test_initial_values(slot: Any, expected: Any) -> None:
    opt, model = declaring(slot), {"w": np.array([1.0, 2.0])}
    opt.update(model, {"w": np.ones(2)})
    if expected is None:
        assert not opt.slots["w"]
    else:
        np.testing.assert_array_equal(opt.slots["w"]["s"], expected)


def test_arrays_that_functions_return_twice_are_slots_apart() -> None:
    twice = np.zeros(2)

    def rule(
        xp,
        p,
        g,
        a=Slot.computed(lambda xp, p: p),
        b=Slot.computed(lambda xp, p: twice),
        c=Slot.computed(lambda xp, p: twice),
        d=Slot.zeros(),
        *,
        learning_rate=0.1,
    ):
        return p - learning_rate * g, a, b, c, d

    opt, w = optim.define(rule, "Sharing")(), np.array([1.0, 2.0])
    opt.build({"w": w})
    slots = opt.slots["w"]
    arrays = [w, *(slots[name] for name in "abcd")]
    assert not any(np.shares_memory(x, y) for x, y in itertools.combinations(arrays, 2))
    np.testing.assert_array_equal(slots["a"], w)


def test_dtypes_and_names_of_slots() -> None:
    opt, model = declaring(Slot.copy(name="own-name", dtype_by="kind")), {"w": np.array([1.0, 2.0])}
    opt.build(model)
    assert opt.slots["w"]["own-name"].dtype == np.float16


def test_a_slot_comes_and_goes_with_its_hyperparameter() -> None:
    opt, model, g = optim.SGD(1.0), {"w": np.zeros(2)}, {"w": np.ones(2)}
    opt.update(model, g)
    assert not opt.slots["w"]
    opt.momentum = 0.5
    opt.update(model, g)
    opt.update(model, g)
    np.testing.assert_array_equal(opt.slots["w"]["m"], 1.5)
    np.testing.assert_array_equal(model["w"], -1.0 - 1.0 - 1.5)
    scheduled = optim.SGD(1.0, momentum=ox.schedules.linear(0.0, 0.5, 2))
    scheduled.build(model)
    assert "m" in scheduled.slots["w"]


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        (
            "learning_rate",
            r"^rule: the argument s='learning_rate' comes before \*, as slots do: expected it after \*, for a hyperparameter",
        ),
        (True, r"the argument s=True comes before \*"),
        (0.25, r"s=0.25 comes before \*.*for a slot a declaration, such as s=Slot.scalar\(0.0\)"),
        (
            Slot.zeros(when="momentum"),
            "the slot s: found momentum, expected a hyperparameter of learning_rate, initial",
        ),
        (Slot.zeros(decay="beta"), "the slot s: found beta"),
        (Slot.full("value"), "the slot s: found value"),
        (Slot.computed(lambda xp, p, width: p), "the slot s: found width"),
    ],
)
def test_wrong_declarations(slot: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declaring(slot)


def test_a_dtype_is_declared_and_not_inferred_from_a_name() -> None:
    with pytest.raises(
        TypeError, match=r"the slot m: expected a declared dtype, as in Slot.zeros\(dtype_by='m_dtype'\)"
    ):
        optim.define(lambda xp, p, g, m, *, m_dtype="float16": (p, m))


# --- kinds ---------------------------------------------------------------------------------------------------------------


def test_define_and_transform_state_the_kind_of_a_rule() -> None:
    of_gradient, of_parameters = lambda xp, p, g: -g, lambda xp, p, new: p
    with pytest.raises(TypeError, match=r"changes new parameters: expected oxigrad.optim.transform"):
        optim.define(of_parameters)
    with pytest.raises(TypeError, match=r"signature \(xp, p, new, "):
        optim.transform(of_gradient, changes="parameters")
    with pytest.raises(TypeError, match=r"signature \(xp, p, g, "):
        optim.transform(of_parameters, changes="gradient")
    with pytest.raises(ValueError, match="changes is 'steps': expected 'gradient' or 'parameters'"):
        optim.transform(of_gradient, changes="steps")
    for changes, rule in (("gradient", of_gradient), (None, of_gradient)):
        assert optim.transform(rule, "Kind", changes=changes)._rule.kind == "gradient"
    for changes, rule in (("parameters", of_parameters), (None, of_parameters)):
        assert optim.transform(rule, "Kind", changes=changes)._rule.kind == "after"


def test_rules_and_their_parts_pickle() -> None:
    for value in (
        ox.rules.adamw,
        ox.rules.core.moments.moving_mean,
        Slot,
        optim.ChainPart,
        optim.Chain,
    ):
        assert pickle.loads(pickle.dumps(value)) is value  # noqa: S301


# --- totals --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [1, 3])
def test_totals_suspend_a_rule_of_arrays(leaves: int) -> None:
    calls: list[int] = []

    def twice(xp, p, g, *, total, noise, learning_rate=1.0):
        calls.append(1)
        first = total(g)
        draw = noise()
        second = total(first * g)
        return p - learning_rate * (first + second) + 0.0 * draw, *()

    def counted(xp, p, g, m, *, learning_rate=1.0):
        calls.append(10)
        return p - learning_rate * g, m

    totals = optim.define(twice, elementwise=False)
    model = {f"p{k}": np.zeros(2) for k in range(leaves)}
    grads = {f"p{k}": np.full(2, k + 1.0) for k in range(leaves)}
    calls.clear()
    totals().update(model, grads)
    first = 2.0 * sum(range(1, leaves + 1))
    np.testing.assert_allclose([*model.values()], -(first + first * first))
    assert sum(calls) == (1 if leaves == 1 else 3 * leaves)
    # A part without totals is called once, whatever stands before it.
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.define(counted, elementwise=False)())
    calls.clear()
    opt.update(model, grads)
    assert calls == [10] * leaves


def test_noise_of_a_rule_with_totals_is_that_of_the_kernel() -> None:
    def rule(xp, p, g, *, total, noise, learning_rate=1.0):
        before = noise()
        return p - learning_rate * g / total(g * g) * before * noise()

    model, grads = {"a": np.zeros(3), "b": np.zeros(2)}, {"a": np.ones(3), "b": np.ones(2)}
    found = optim.define(rule, elementwise=False)(seed=3).update(model, grads)
    expected = optim.define(rule)(seed=3).update({"a": np.zeros(3), "b": np.zeros(2)}, grads)
    for path in "ab":
        np.testing.assert_allclose(found[path], expected[path], rtol=1e-14)


# --- decay ---------------------------------------------------------------------------------------------------------------


def factors(rule: Any, **values: Any) -> dict[str, Any]:
    """The factors of the slots after which rows catch up, with the hyperparameters ``values``."""
    opt, model = optim.define(rule)(**values, sparse="catch_up"), {"w": np.zeros((2, 1))}
    for ids in ([0], [1]):
        opt.update(model, {"w": ox.SparseRows(ids, np.ones((1, 1)), (2, 1))})
    numbers = {name: schedule(0) if callable(schedule) else schedule for name, schedule in opt.hyperparameters.items()}
    return {
        name: number_of(factor, numbers)
        for name, factor in decay_factors(
            opt._rule, {n: v for n, v in opt.hyperparameters.items() if not callable(v)}
        ).items()
    }


def test_declared_factors_agree_with_the_rule() -> None:
    def bounded(xp, p, g, u=Slot.zeros(decay="beta"), w=Slot.zeros(decay=0.5), *, beta=0.9, learning_rate=0.1):
        u = xp.maximum(beta * u, xp.abs(g))
        return p - learning_rate * u, u, 0.5 * w + g

    assert factors(bounded) == {"u": 0.9, "w": 0.5}
    assert factors(bounded, beta=0.25) == {"u": 0.25, "w": 0.5}
    assert factors(bounded, beta=ox.schedules.linear(0.5, 0.75, 3)) == {"u": 0.5, "w": 0.5}

    def wrong(xp, p, g, u=Slot.zeros(decay="beta"), *, beta=0.9, learning_rate=0.1):
        u = beta * beta * u + g
        return p - learning_rate * u, u

    with pytest.raises(
        ox.RuleError, match="the rule wrong: rows .* does not multiply the slot u by beta; .* or 'dense'$"
    ):
        factors(wrong)


def test_a_declared_factor_is_a_function_of_hyperparameters_that_may_have_schedules() -> None:
    def rule(xp, p, g, u=Slot.zeros(decay=lambda xp, p, beta: xp.sqrt(beta)), *, beta=0.81, learning_rate=0.1):
        u = xp.sqrt(beta) * u + g
        return p - learning_rate * u, u

    assert factors(rule) == {"u": pytest.approx(0.9)}
    assert factors(rule, beta=ox.schedules.linear(0.25, 0.75, 3)) == {"u": 0.5}
    prodigy, dadapt = (ox.optim.Prodigy._rule, ox.optim.DAdaptAdamW._rule)
    for each in (prodigy, dadapt):
        assert number_of(decay_factors(each, {})["s"], {"beta2": 0.25, "beta3": 0.0}) == 0.5
    assert number_of(decay_factors(prodigy, {})["s"], {"beta2": 0.25, "beta3": 0.75}) == 0.75

    def wrong(xp, p, g, u=Slot.zeros(decay=lambda xp, p, beta: xp.sqrt(beta)), *, beta=0.81, learning_rate=0.1):
        u = beta * u + g
        return p - learning_rate * u, u

    with pytest.raises(ox.RuleError, match="the rule wrong: rows .* does not multiply the slot u by its decay;"):
        factors(wrong)
    with pytest.raises(TypeError, match="the slot u: found gamma, expected a hyperparameter of learning_rate"):

        @optim.define
        def other(xp, p, g, u=Slot.zeros(decay=lambda xp, p, gamma: gamma), *, learning_rate=0.1):
            return p - learning_rate * g, u


def test_the_factor_of_a_part_follows_its_renamed_hyperparameter() -> None:
    slot = Slot.zeros(decay=lambda xp, p, beta: xp.sqrt(beta)).renamed({"beta": "1.beta"})
    assert number_of(slot.decay, {"1.beta": 0.25, "beta": 0.0}) == 0.5


@pytest.mark.parametrize("name", TABLE)
def test_declared_factors_of_the_optimizers(name: str) -> None:
    row = TABLE[name]
    if not row.optimizer._rule.elementwise:
        return
    for values in ({}, *row.variants.values(), *row.native.values()):
        rule, settings = row.optimizer._rule, dict(row.optimizer(**values).hyperparameters)
        rule = rule.without([slot for slot, asks in rule.optional if not settings[asks]])
        for slot, factor in decay_factors(rule, settings).items():
            declared = next(each.decay for each in rule.slots if each.name == slot)
            # L2 weight decay adds to slots, and so does shrinkage.
            assert factor == declared or declared is None or any(settings.get(n) for n in ("weight_decay", "shrinkage"))


def test_measured_factors() -> None:
    def rule(xp, p, g, m, v, top, kept, gone, *, step, beta=0.9, learning_rate=0.1):
        m = xp.where(step == 1, g, beta * m + (1 - beta) * g)
        v = v - (1 - beta) * (v - g * g)
        top = xp.maximum(top, v)
        kept = kept + xp.where(xp.remainder(step, 2.0) == 0.0, 1.0, 3.0) * g / (xp.sqrt(v) + 1e-8)
        return p - learning_rate * m, m, v, top, kept, 2.0 * g

    assert factors(rule) == {"m": 0.9, "v": pytest.approx(0.9), "top": 1.0, "kept": 1.0, "gone": 0.0}


def test_a_measured_factor_does_not_follow_a_schedule() -> None:
    def rule(xp, p, g, m, *, beta=0.9, learning_rate=0.1):
        m = beta * m + g
        return p - learning_rate * m, m

    assert factors(rule, learning_rate=ox.schedules.linear(0.5, 0.25, 3)) == {"m": 0.9}
    with pytest.raises(ox.RuleError, match="does not multiply the slot m by a factor; .* declares its decay"):
        factors(rule, beta=ox.schedules.linear(0.5, 0.75, 3))


@pytest.mark.parametrize(
    "after",
    [
        lambda xp, p, m, step: m + 1.0,
        lambda xp, p, m, step: m + p,
        lambda xp, p, m, step: m * m,
        lambda xp, p, m, step: m * p,
        lambda xp, p, m, step: xp.exp(m),
        lambda xp, p, m, step: m * (1.0 - 1.0 / step),
        lambda xp, p, m, step: xp.where(xp.remainder(step, 100.0) == 0.0, 0.5 * m, m),
        lambda xp, p, m, step: xp.where(m > 0.0, m, 0.5 * m),
        lambda xp, p, m, step: xp.maximum(m, 1.0),
        lambda xp, p, m, step: xp.maximum(m, p),
        lambda xp, p, m, step: -xp.maximum(m, 0.0 * p),
        lambda xp, p, m, step: xp.clip(m, -1.0, 1.0),
    ],
)
def test_slots_without_a_factor(after: Any) -> None:
    def rule(xp, p, g, m, *, step, learning_rate=0.1):
        return p - learning_rate * g, after(xp, p, m, step) + g

    with pytest.raises(ox.RuleError, match="does not multiply the slot m by a factor; .* declares its decay"):
        factors(rule)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
def test_a_rule_that_needs_an_array_like_another_is_refused_as_a_kernel(name: str) -> None:
    def rule(xp, p, g, *, learning_rate=0.1):
        return p - learning_rate * g + getattr(xp, name)(p)

    with pytest.raises(
        ox.RuleError, match=r"^the rule rule: a rule cannot use the dtype .* define\(..., elementwise=False"
    ):
        optim.define(rule, elementwise=True)
