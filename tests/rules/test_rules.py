"""Rules compared with NumPy programs, their flags and presets, and the generated native code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import generated
import optimizer_tables
import oxigrad as ox
from libraries import host
from optimizers import slot_dtype_for
from oxigrad import optim, schedules
from oxigrad.optim.table.row import TABLE
from oxigrad.optim.table.transforms import TRANSFORMS

STEPS = 25


def gradients(seed: int = 0) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    return iter(generator.standard_normal((STEPS, 6)))


def start() -> np.ndarray:
    return np.random.default_rng(9).standard_normal(6)


# --- loops: the parameter after each step, as the formula has it ------------------------------------------------------------


def asgd_loop() -> Iterator[np.ndarray]:
    """formula: plain steps of a schedule, L2 regularization; the average of what came since step 5."""
    w = start()
    for step, g in enumerate(gradients()):
        w = w - 0.1 / (1 + 0.1 * step) ** 0.75 * (g + 0.01 * w)
        yield w


def adan_loop() -> Iterator[np.ndarray]:
    w, m, d, n, before = start(), 0.0, 0.0, 0.0, None
    for t, g in enumerate(gradients(), 1):
        difference = 0.0 if before is None else g - before
        m = 0.98 * m + 0.02 * g
        d = 0.92 * d + 0.08 * difference
        n = 0.99 * n + 0.01 * (g + 0.92 * difference) ** 2
        top = m / (1 - 0.98**t) + 0.92 * d / (1 - 0.92**t)
        w = (w - 0.1 * top / (np.sqrt(n / (1 - 0.99**t)) + 1e-8)) / (1 + 0.1 * 0.2)
        before = g
        yield w


def lars_loop() -> Iterator[np.ndarray]:
    w, v = start(), 0.0
    for g in gradients():
        local = 0.1 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.2 * np.linalg.norm(w))
        v = 0.9 * v + 0.5 * local * (g + 0.2 * w)
        w = w - v
        yield w


def lamb_loop() -> Iterator[np.ndarray]:
    w, m, v = start(), 0.0, 0.0
    for t, g in enumerate(gradients(), 1):
        w = w - 0.1 * 0.2 * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = (m / (1 - 0.9**t)) / np.sqrt(v / (1 - 0.999**t) + 1e-6)
        w = w - 0.1 * min(max(np.linalg.norm(w) / np.linalg.norm(u), 0.5), 0.8) * u
        yield w


def ftrl_loop() -> Iterator[np.ndarray]:
    w, z, n = start(), np.zeros(6), np.full(6, 0.1)
    for g in gradients():
        sigma = ((n + g * g) ** 0.4 - n**0.4) / 0.5
        z = z + g + 2 * 0.01 * w - sigma * w
        n = n + g * g
        bound = n**0.4 / 0.5 + 2 * (0.02 + 0.3 / (2 * 0.5))
        w = np.where(np.abs(z) <= 0.05, 0.0, (np.sign(z) * 0.05 - z) / bound)
        yield w


def madgrad_loop() -> Iterator[np.ndarray]:
    w = first = start()
    s, v = 0.0, 0.0
    for k, g in enumerate(gradients()):
        rate = (0.1 + 1e-6) * np.sqrt(k + 1)
        s, v = s + rate * g, v + rate * g * g
        w = 0.9 * w + 0.1 * (first - s / (np.cbrt(v) + 1e-6))
        yield w


def sophia_loop() -> Iterator[np.ndarray]:
    w, m = start(), 0.0
    h = np.linspace(0.0, 5.0, 6)
    for t, g in enumerate(gradients(), 1):
        m = 0.965 * m + 0.035 * g
        w = w - 0.1 * np.clip(m / (1 - 0.965**t) / np.maximum(0.05 * h, 1e-8), -1, 1)
        yield w


RATES = [*np.linspace(0.1, 0.5, 10), *np.linspace(0.5, 0.0, 15)]


def adamc_loop(peak: float | None = 0.5) -> Iterator[np.ndarray]:
    w, m, v = start(), 0.0, 0.0
    for t, g in enumerate(gradients(), 1):
        rate = RATES[t - 1]
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - rate**2 / (peak or max(RATES[:t])) * 0.3 * w
        w = w - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        yield w


def stable_adamw_loop() -> Iterator[np.ndarray]:
    """Algorithm 2 of the paper, whose moments have betas with a bias correction of their own."""
    w, m, v = start(), 0.0, 0.0
    for t, g in enumerate(gradients(), 1):
        b1, b2 = (beta * (1 - beta ** (t - 1)) / (1 - beta**t) for beta in (0.9, 0.99))
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        rate = 0.1 / max(1.0, np.sqrt(np.mean(g * g / np.maximum(v, 0.5**2))))
        w = w - rate * 0.2 * w - rate * m / (np.sqrt(v) + 0.5)
        yield w


def laprop_loop() -> Iterator[np.ndarray]:
    w, m, n = start(), 0.0, 0.0
    for t, g in enumerate(gradients(), 1):
        n = 0.95 * n + 0.05 * g * g
        m = 0.8 * m + 0.2 * g / (np.sqrt(n / (1 - 0.95**t)) + 1e-15)
        w = w - RATES[t - 1] * m / (1 - 0.8**t)
        yield w


def simplified_ademamix_loop() -> Iterator[np.ndarray]:
    w, m, v = start(), 0.0, 0.0
    for t, g in enumerate(gradients(), 1):
        m, v = 0.99 * m + g, 0.95 * v + 0.05 * g * g
        w = w - RATES[t - 1] * ((m + 3.0 * g) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8) + 0.2 * w)
        yield w


def scheduled(step: Any) -> float:
    return RATES[int(step)]


LOOPS: dict[str, tuple[Callable[[], Any], Callable[[], Iterator[np.ndarray]]]] = {
    "asgd": (lambda: optim.ASGD(schedules.inverse_power(0.1, 0.1, 0.75), weight_decay=0.01, t0=5), asgd_loop),
    "adan": (lambda: optim.Adan(0.1, weight_decay=0.2), adan_loop),
    "lars separate": (lambda: optim.LARS(0.5, weight_decay=0.2, trust_coefficient=0.1, norms="separate"), lars_loop),
    "lamb clamped": (
        lambda: optim.LAMB(
            0.1, weight_decay=0.2, clamp=True, min_trust=0.5, max_trust=0.8, decoupled=True, epsilon_mode="inside"
        ),
        lamb_loop,
    ),
    "ftrl": (lambda: optim.FTRL(0.5, -0.4, l1=0.05, l2=0.02, shrinkage=0.01, beta=0.3), ftrl_loop),
    "madgrad": (lambda: optim.MADGRAD(0.1), madgrad_loop),
    "adamc": (lambda: optim.AdamC(scheduled, weight_decay=0.3, max_learning_rate=0.5), adamc_loop),
    "adamc, largest so far": (lambda: optim.AdamC(scheduled, weight_decay=0.3), lambda: adamc_loop(None)),
    "stable adamw": (lambda: optim.StableAdamW(0.1, epsilon=0.5, weight_decay=0.2), stable_adamw_loop),
    "laprop": (lambda: optim.LaProp(scheduled, 0.8, 0.95), laprop_loop),
    "simplified ademamix": (
        lambda: optim.SimplifiedAdEMAMix(scheduled, alpha=3.0, weight_decay=0.2),
        simplified_ademamix_loop,
    ),
    "sophia given": (lambda: optim.Sophia(0.1, gamma=0.05, estimate="given"), sophia_loop),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_rule_is_its_formula(name: str) -> None:
    make, loop = LOOPS[name]
    opt, model = make(), {"w": start()}
    opt.build(model)
    if "given" in name:
        opt.slots["w"]["h"][...] = np.linspace(0.0, 5.0, 6)
    for g, expected in zip(gradients(), loop(), strict=True):
        opt.update(model, {"w": g})
        np.testing.assert_allclose(model["w"], expected, rtol=1e-11, atol=1e-14)
    if name == "ftrl":
        assert (model["w"] == 0).any() or np.abs(opt.slots["w"]["linear"]).min() > 0.05


def test_asgd_averages_exactly_from_its_first_step_on(asarray: Any) -> None:
    opt = optim.ASGD(schedules.inverse_power(0.1, 0.1, 0.75), weight_decay=0.01, t0=5)
    model, seen = {"w": asarray(start())}, list(asgd_loop())
    for step, g in enumerate(gradients(), 1):
        model = opt.update(model, {"w": asarray(g)})
        since = seen[min(step, 5) - 1 if step > 5 else step - 1 : step]
        average = host(opt.averaged_parameters()["w"])
        np.testing.assert_allclose(average, np.mean(since if step > 5 else [seen[step - 1]], axis=0), rtol=1e-12)
    before = host(model["w"]).copy()
    model = opt.swap_in(model)
    np.testing.assert_array_equal(host(model["w"]), host(opt.averaged_parameters()["w"]))
    np.testing.assert_array_equal(host(opt.swap_out(model)["w"]), before)


def test_asgd_with_l1_regularization() -> None:
    opt, w, model = optim.chain(optim.Regularize(l1=0.1), optim.ASGD(0.1)), start(), {"w": start()}
    for g in gradients():
        w = w - 0.1 * (g + 0.1 * np.sign(w))
        opt.update(model, {"w": g})
    np.testing.assert_allclose(model["w"], w, rtol=1e-12)


def test_a_part_of_the_coordinates_stays_and_the_others_are_those_of_adam() -> None:
    generator = np.random.default_rng(0)
    model, g = {"w": np.zeros(100_000)}, generator.standard_normal(100_000)
    plain, dropped = {"w": np.zeros(100_000)}, optim.AdamLRD(0.1, dropout_rate=0.3)
    optim.Adam(0.1).update(plain, {"w": g})
    dropped.update(model, {"w": g})
    stays = model["w"] == 0
    assert stays.mean() == pytest.approx(0.3, abs=0.005)
    np.testing.assert_array_equal(model["w"][~stays], plain["w"][~stays])


# --- flags and presets -----------------------------------------------------------------------------------------------------


def slots_of(opt: Any) -> list[str]:
    opt.build({"w": start()})
    return sorted(opt.slots["w"])


def test_slots_are_there_only_where_they_are_used() -> None:
    assert slots_of(optim.Adam()) == ["m", "v"]
    assert slots_of(optim.Adam(amsgrad="raw")) == ["m", "v", "v_max"]
    assert slots_of(optim.RMSprop()) == ["v"]
    assert slots_of(optim.RMSprop(momentum=0.9)) == ["m", "v"]
    assert slots_of(optim.RMSprop(centered=True, momentum=schedules.constant(0.5))) == ["m", "mean", "v"]
    grouped = optim.RMSprop(groups={"b": {"momentum": 0.9}})
    grouped.update({"w": start(), "b": start()}, {"w": start(), "b": start()})
    assert {path: sorted(own) for path, own in grouped.slots.items()} == {"w": ["v"], "b": ["m", "v"]}


def test_a_slot_comes_and_goes_with_its_flag(asarray: Any) -> None:
    opt, model = optim.Adam(0.1), {"w": asarray(start())}
    plain, found = optim.Adam(0.1), {"w": start()}
    for number, g in enumerate(gradients()):
        opt.amsgrad = "raw" if number == 0 else None
        model = opt.update(model, {"w": asarray(g)})
        plain.update(found, {"w": g})
        assert ("v_max" in opt.slots["w"]) == (number == 0)
        np.testing.assert_allclose(host(model["w"]), found["w"], rtol=1e-12)


def test_a_slot_comes_and_goes_with_its_flag_where_state_is_passed(asarray: Any) -> None:
    opt, params = optim.Adam(0.1), {"w": asarray(start())}
    other, model = optim.Adam(0.1), {"w": start()}
    state = opt.init(params)
    for flag, g in zip([None, "raw", "raw", None], [*gradients(), *gradients()], strict=False):
        opt.amsgrad = other.amsgrad = flag
        params, state = opt.apply(params, {"w": asarray(g)}, state)
        other.update(model, {"w": g})
        assert sorted(state["slots"]["w"]) == sorted(other.slots["w"])
        np.testing.assert_allclose(host(params["w"]), model["w"], rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.Adam(amsgrad="rew"), "amsgrad is 'rew': expected None, True, False, 'raw' or 'corrected'"),
        (lambda: optim.Adam(epsilon_mode="out"), "epsilon_mode is 'out': expected 'outside', 'inside' or 'hat'"),
        (lambda: optim.Adagrad(epsilon_mode="hat"), "epsilon_mode is 'hat': expected 'outside' or 'inside'"),
        (lambda: optim.Adamax(epsilon_mode="hat"), "epsilon_mode is 'hat': expected 'inside' or 'outside'"),
        (lambda: optim.LARS(norms="max"), "norms is 'max': expected 'sum' or 'separate'"),
        (lambda: optim.Sophia(estimate="exact"), "estimate is 'exact': expected 'squared' or 'given'"),
    ],
)
def test_a_flag_that_a_rule_does_not_know(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_presets() -> None:
    found = optim.RMSprop(0.5, compat="keras", epsilon=1e-3)
    assert (found.learning_rate, found.rho, found.epsilon, found.epsilon_mode) == (0.5, 0.9, 1e-3, "inside")
    assert optim.from_config(found.get_config()).get_config() == found.get_config()
    assert optim.Adagrad(0.1, 0.0, 0.2, compat="keras").initial_accumulator == 0.2
    with pytest.raises(ValueError, match="Rprop: compat is 'keras': expected 'torch', 'optax'"):
        optim.Rprop(compat="keras")
    own = optim.define(lambda xp, p, g, *, rate=1.0: p - rate * g, "OfOneLibrary")
    with pytest.raises(ValueError, match="OfOneLibrary: compat is .torch.: expected None"):
        own(compat="torch")


def test_every_preset_is_of_an_optimizer_and_of_its_hyperparameters() -> None:
    classes = {name: row.optimizer for name, row in TABLE.items()} | TRANSFORMS
    assert {library for made in classes.values() for library in made._presets} == {"torch", "optax", "keras"}
    for made in classes.values():
        for library, values in made._presets.items():
            made(compat=library)
            assert values.keys() <= made._declared.keys()


def test_a_step_of_averages_and_counts_as_a_pure_function() -> None:
    model = {"w": start(), "b": start()[:2]}
    for opt in (optim.Prodigy(), optim.ScheduleFreeAdamW(), optim.NAdam(), optim.ASGD(0.1, compat="torch")):
        params, state, found = model, opt.init(model), ox.tree.map(np.copy, model)
        for g in gradients():
            params, state = opt.apply(params, {"w": g, "b": g[:2]}, state)
            opt.update(found, {"w": g, "b": g[:2]})
        for key, value in found.items():
            np.testing.assert_allclose(host(params[key]), value, rtol=1e-11)


# --- native code -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not generated.PATHS[0].exists(), reason="the sources of the core are not here")
def test_native_code_is_printed_from_the_rules() -> None:
    written = tuple(path.read_text() for path in generated.PATHS)
    assert written == generated.texts(), "the rules have changed: make generated"


@pytest.mark.skipif(not optimizer_tables.PATH.exists(), reason="the pages are not here")
def test_the_table_of_optimizers_is_printed_from_the_rules() -> None:
    assert optimizer_tables.PATH.read_text() == optimizer_tables.rules(), "the rules have changed: make generated"
    assert optimizer_tables.ALIASES.printed() == optimizer_tables.aliases(), "the rows have changed: make generated"


@pytest.mark.parametrize("name", generated.SHIPPED)
def test_shipped_rules_run_as_native_code(name: str) -> None:
    assert generated.SHIPPED[name]().program.is_native


# Compensated summation rounds the parameter after its norm is taken, and is interpreted, as are rules that sum over leaves.
INTERPRETED = {
    "AdamWKahan",
    "ClippedAdamW",
    "ClippedAdamWAverage",
    "ClippedAdamWMaster",
    "ClippedAdamWTail",
    "Lamb",
    "Lars",
    "NovoGrad",
    "Prodigy",
}


@pytest.mark.parametrize("name", sorted({*generated.SHIPPED} - INTERPRETED))
def test_shipped_rules_that_record_norms_run_as_native_code(name: str) -> None:
    opt = generated.SHIPPED[name]()
    opt.record_norms = ("gradient", "update", "parameter")
    choice = opt._whole_group("bfloat16")
    program = choice.program(choice.rule())
    assert program.is_native and program.results >= 3, program


@pytest.mark.parametrize(
    ("make", "has_sums", "draws", "unit"),
    [
        (lambda: optim.SGD(0.1), False, False, 1),
        (lambda: optim.AdamLRD(0.1), False, True, 1),
        (lambda: optim.LAMB(0.1), True, False, 4096),
        (lambda: optim.Adam(0.1, nonfinite="skip"), True, False, 4096),
        (lambda: optim.Adam(0.1, record_norms="update"), True, False, 0),
    ],
)
def test_programs_tell_where_leaves_may_be_cut(make: Any, has_sums: bool, draws: bool, unit: int) -> None:
    opt = make()
    group = opt._whole_group()
    program = group.program(group.rule())
    assert (program.has_sums, program.draws, program.unit) == (has_sums, draws, unit)


def test_a_custom_rule_is_interpreted() -> None:
    assert not optim.define(lambda xp, p, g: p - xp.tanh(g), "OfTanh")().program.is_native


# --- names ---------------------------------------------------------------------------------------------------------------


def rule_with(slot: str, hyperparameter: str) -> Any:
    """A rule with a slot and a hyperparameter of these names."""
    text = f"lambda xp, p, g, {slot}, *, {hyperparameter}=0.5: (p - {hyperparameter} * g, 0.5 * {slot} + g)"
    return eval(text)  # noqa: S307 - the names are those below


@pytest.mark.parametrize("name", ["step", "micro", "inverse_scale", "noise", "total", "guard"])
def test_a_supplied_argument_has_no_default(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is supplied by each step"):
        optim.define(rule_with("m", name), "Named")


TAKEN = {*dir(optim.RuleOptimizer), *vars(optim.Adam()), "compat", "optimizer", "part"}


@pytest.mark.parametrize("name", sorted(TAKEN - {"step"}))
def test_names_that_optimizers_have_are_refused(name: str) -> None:
    for make in (optim.define, optim.transform):
        with pytest.raises(TypeError, match=f"found hyperparameters named {name}:"):
            make(rule_with("m", name), "Named")


@pytest.mark.parametrize("name", ["self", "args", "keywords", "format", "owner", "model", "key", "lr", "mean", "path"])
def test_any_other_name_of_a_hyperparameter_works(name: str) -> None:
    made = optim.define(rule_with("m", name), "Named")
    for options in ({}, {"accumulate": 2}, {"nonfinite": "skip"}, {"sparse": "lazy"}, {"groups": {"w": {name: 0.25}}}):
        value = 0.5 if "groups" in options else 0.25
        opt = optim.from_config(made(**{name: value}, **options).get_config())
        model = {"w": np.zeros(2)}
        for _ in range(options.get("accumulate", 1)):
            opt.update(model, {"w": np.ones(2)})
        np.testing.assert_array_equal(model["w"], -0.25)
        assert getattr(opt, name) == value


OPTIONS = [
    {"accumulate": 2},
    {"accumulate": 2, "nonfinite": "skip", "loss_scale": ox.optim.LossScale(initial=1.0)},
    {"master": True, "accumulate": 2},
    {"rounding": "kahan", "accumulate": 2, "nonfinite": "raise"},
    {"rounding": "stochastic"},
    {"sparse": "lazy"},
    {"sparse": "catch_up"},
    {"slot_dtype": "8bit", "accumulate": 2},
    {"slot_dtype": "4bit"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "slot", ["mean", "master", "compensation", "last_step", "copy", "slow", "step", "micro", "seed", "codes", "m"]
)
def test_a_slot_of_any_name_with_any_option(slot: str, options: dict[str, Any]) -> None:
    made = optim.define(rule_with(slot, "learning_rate"), "Named")
    for dtype in (np.float16, np.float32):
        opt, model = made(**options), {"w": np.zeros((64, 128), dtype)}
        for _ in range(2):
            opt.update(model, {"w": np.ones((64, 128), dtype)})
        steps = 2 // options.get("accumulate", 1)
        np.testing.assert_array_equal(model["w"], -0.5 * steps)
        np.testing.assert_allclose(np.asarray(opt.slots["w"][slot]), sum(0.5**k for k in range(steps)), rtol=1e-2)
        assert all("-" in name for name in opt.slots["w"] if name != slot)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_optimizer_with_every_option(options: dict[str, Any]) -> None:
    for name, made in vars(optim).items():
        if not (isinstance(made, type) and issubclass(made, optim.RuleOptimizer) and made._declared) or name == "LBFGS":
            continue
        for dtype in (np.float16, np.float32):
            kinds = {"slot_dtype": slot_dtype_for(made, options["slot_dtype"])} if "slot_dtype" in options else {}
            try:
                opt, model = made(**{**options, **kinds}), {"w": np.ones((4, 4), dtype)}
                for _ in range(2):
                    opt.update(model, {"w": np.ones((4, 4), dtype)}, loss=1.5)
            # A rule of which slots do not decay, or that sees whole arrays; or that reads the loss.
            except (ox.RuleError, ValueError) as error:
                if "catch up" not in str(error) and "reads the loss of one gradient" not in str(error):
                    raise
            own = {slot.name for slot in made._rule.slots}
            assert all(slot in own or "-" in slot for slot in opt.slots.get("w", {})), name


@pytest.mark.parametrize(
    "part", [optim.Lookahead(), optim.Copy("float16"), optim.ClipByValue(), optim.Maximize()], ids=str
)
def test_parts_compose_with_every_optimizer(part: Any) -> None:
    for made in vars(optim).values():
        if (
            isinstance(made, type)
            and issubclass(made, optim.RuleOptimizer)
            and made._declared
            and made is not optim.LBFGS
        ):
            opt = optim.chain(*((made(), part) if part._rule.kind == "after" else (part, made())))
            opt.update({"w": np.ones((4, 4))}, {"w": np.ones((4, 4))}, loss=1.5)
