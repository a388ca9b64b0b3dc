"""Domains of hyperparameters, options and attributes: other values and names raise at once."""

import copy
import importlib
import inspect
import math
import pickle
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal
from unittest import mock

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, schedules
from oxigrad.optim import Interval
from oxigrad.optim.chain import ChainPart
from oxigrad.optim.settings import spellings
from oxigrad.optim.settings.attributes import Sealed
from oxigrad.optim.settings.config import OPTIONS
from oxigrad.rules.core.ranges import Domain, domain

nan = math.nan
RULES = [
    made
    for made in vars(optim).values()
    if isinstance(made, type) and issubclass(made, (optim.RuleOptimizer, optim.Transform)) and made._declared
]


def parameters(*names: str) -> dict[str, Any]:
    """A model with parameters of these names."""
    return {name: np.ones((2, 2)) for name in names}


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (
            lambda opt: setattr(opt, "learning_rte", 1),
            AttributeError,
            r"Adam has no attribute learning_rte \(did you mean learning_rate",
        ),
        (
            lambda opt: setattr(opt, "nonfinite", "skp"),
            ValueError,
            "nonfinite is 'skp': expected 'propagate', 'skip' or 'raise'",
        ),
        (lambda opt: setattr(opt, "accumulate", 2.5), ValueError, "accumulate is 2.5: expected a whole number"),
        (lambda opt: setattr(opt, "seed", -1), ValueError, "seed is -1"),
        (lambda opt: setattr(opt, "seed", 2**64), ValueError, "seed is 18446744073709551616"),
        (
            lambda opt: setattr(opt, "loss_scale", "dynamic"),
            TypeError,
            "loss_scale is 'dynamic': expected None or a LossScale",
        ),
        (lambda opt: setattr(opt, "zero_gradients", "no"), TypeError, "zero_gradients is 'no': expected True or False"),
        (
            lambda opt: setattr(opt, "learning_rate", -1.0),
            ValueError,
            r"learning_rate is -1.0: expected a number in \[0, inf\)",
        ),
        (lambda opt: setattr(opt, "learning_rate", nan), ValueError, "learning_rate is nan"),
        (lambda opt: setattr(opt, "beta1", 1.5), ValueError, r"beta1 is 1.5: expected a number in \[0, 1\)"),
        (lambda opt: setattr(opt, "epsilon", -1), ValueError, "epsilon is -1"),
        (lambda opt: setattr(opt, "amsgrad", "bogus"), ValueError, "amsgrad is 'bogus'"),
        (lambda opt: setattr(opt, "groups", {"*": {"beta1": 2}}), ValueError, r"the group '\*': beta1 is 2"),
        (lambda opt: setattr(opt, "groups", {"*": 3}), TypeError, r"the group '\*': found 3, expected a dict"),
        (lambda opt: opt.groups.update({"*": {}}), AttributeError, "update"),
        (lambda opt: opt.hyperparameters.update(beta1=3), AttributeError, "update"),
        (lambda opt: delattr(opt, "learning_rate"), AttributeError, "Adam: learning_rate cannot be deleted"),
        (lambda opt: setattr(opt, "step", 3), AttributeError, "step"),
        (lambda opt: setattr(opt, "slots", {}), AttributeError, "slots"),
        *(
            (lambda opt, name=name: setattr(opt, name, True), AttributeError, f"Adam: {name} is fixed at construction")
            for name in ("master", "slot_dtype", "rounding", "sparse", "dtype")
        ),
    ],
)
def test_an_invalid_assignment_is_refused(act: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    opt = optim.Adam(groups={"*": {"beta2": 0.5}})
    before = repr(opt)
    with pytest.raises(error, match=message):
        act(opt)
    assert repr(opt) == before


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.Adam(-1.0), ValueError, "learning_rate is -1.0"),
        (lambda: optim.Adam(nan), ValueError, "learning_rate is nan"),
        (lambda: optim.Adam(math.inf), ValueError, "learning_rate is inf"),
        (lambda: optim.Adam(np.float32(-1)), ValueError, "learning_rate is -1.0"),
        (lambda: optim.Adam(beta1=1.5), ValueError, "beta1 is 1.5"),
        (lambda: optim.Adam(beta2=1.0), ValueError, "beta2 is 1.0"),
        (lambda: optim.Adam(epsilon=-1), ValueError, "epsilon is -1"),
        (lambda: optim.Adam(amsgrad="bogus"), ValueError, "amsgrad is 'bogus'"),
        (lambda: optim.Adam(amsgrad=2), TypeError, "amsgrad is 2"),
        (lambda: optim.Adam(lerning_rate=1), TypeError, r"unknown: lerning_rate \(did you mean learning_rate\?\)"),
        (lambda: optim.Adam(seed=2.5), ValueError, "seed is 2.5"),
        (lambda: optim.Adam(master="no"), TypeError, "master is 'no'"),
        (lambda: optim.Adam(dtype="flaot32"), ValueError, "dtype is 'flaot32'"),
        (lambda: optim.from_config({"optimizer": "Adam", "beta1": 2.0}), ValueError, "beta1 is 2.0"),
        (lambda: optim.chain(optim.ClipByNorm(-1.0), optim.SGD()), ValueError, "max_norm is -1.0"),
        (lambda: optim.Lookahead(sync_period=2.5), ValueError, "sync_period is 2.5: expected a whole number"),
        (lambda: optim.EMA(1.5), ValueError, r"decay is 1.5: expected a number in \[0, 1\]"),
        (lambda: optim.FTRL(0.0), ValueError, r"learning_rate is 0.0: expected a number in \(0, inf\)"),
        (lambda: optim.Rprop(eta_plus=0.9), ValueError, r"eta_plus is 0.9: expected a number in \(1, inf\)"),
        (lambda: optim.Adafactor(epsilon1=-1.0), ValueError, "epsilon1 is -1.0: expected None or a number"),
        (lambda: optim.LBFGS(history=0), ValueError, "history is 0"),
        (lambda: optim.LBFGS(line_search="wolfe"), ValueError, "line_search is 'wolfe'"),
        (lambda: optim.SAM(optim.SGD(), nan), ValueError, "rho is nan"),
        (lambda: optim.SAM(optim.SGD(), adaptive="no"), TypeError, "adaptive is 'no'"),
        (lambda: optim.LossScale(interval=2.5), ValueError, "interval is 2.5: expected a whole number"),
        (lambda: optim.LossScale(factor=nan), ValueError, "factor is nan"),
        (lambda: schedules.linear(nan, 0.0, 3), ValueError, "linear: initial: found nan"),
        (lambda: schedules.join((1.0, nan), (3,)), ValueError, "join: schedules: found nan"),
        (lambda: schedules.clip(0.5, 1.0, 0.0), ValueError, "minimum is 1.0: expected at most maximum"),
        (lambda: schedules.join((1.0, 0.5), (-3,)), ValueError, r"boundaries is \(-3,\)"),
        (lambda: schedules.piecewise((1.0,), (), "bogus"), ValueError, "interpolation is 'bogus'"),
        (lambda: schedules.plateau(0.1, minimum=1.0), ValueError, "minimum is 1.0: expected at most initial"),
        (lambda: schedules.inverse_power(0.1, 0.5, offset=-10.0), ValueError, "offset is -10.0"),
        (lambda: ox.grad(lambda x, y: x, argnums=True)(1.0, 2.0), TypeError, "argnums is True"),
        (lambda: ox.grad(lambda x: x, argnums=1.5)(1.0), TypeError, "argnums is 1.5"),
        (lambda: ox.grad(lambda x: x, argnums="0")(1.0), TypeError, "argnums is '0'"),
        (
            lambda: ox.tree.register(type("A", (), {}), fields="weight"),
            TypeError,
            "fields is 'weight': expected a tuple",
        ),
        (lambda: ox.field(trainable="no"), TypeError, "trainable is 'no'"),
        (lambda: ox.SparseRows([0], [1.0], (2.7,)), TypeError, "float"),
        (lambda: ox.testing.check_grads(lambda x: x, (1.0,), order=0), ValueError, "order is 0"),
        (lambda: ox.testing.check_grads(lambda x: x, (1.0,), modes=()), ValueError, r"modes is \(\)"),
        (lambda: Interval("0, 1"), ValueError, "the interval is '0, 1'"),
        (lambda: Interval("[1, 0]"), ValueError, "expected two ascending numbers"),
    ],
)
def test_an_invalid_value_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("made", RULES, ids=lambda made: made.__name__)
def test_every_hyperparameter_declares_its_domain(made: Any) -> None:
    part = made()
    for name, declared in made._declared.items():
        assert declared.domain is not None, name
        assert getattr(part, name) == declared.default
        wrong = "no such thing" if declared.is_flag else nan
        with pytest.raises((TypeError, ValueError), match=f"^{name} is "):
            setattr(part, name, wrong)
        with pytest.raises((TypeError, ValueError), match=f"^{name} is "):
            made(**{name: wrong})
    assert repr(part) == repr(made())


@pytest.mark.parametrize(
    "opt", [optim.chain(optim.ClipByNorm(), optim.SGD()), optim.ClipByNorm()], ids=["chain", "part"]
)
def test_parts_and_chains_are_sealed(opt: Any) -> None:
    with pytest.raises(AttributeError, match=r"max_nrom \(did you mean max_norm\?\)"):
        opt.max_nrom = 1.0
    with pytest.raises(ValueError, match="max_norm is -1"):
        opt.max_norm = -1
    opt.max_norm = math.inf


def test_partitions_and_sam_say_where_hyperparameters_are() -> None:
    parted, sharp = optim.partition({"*": optim.SGD()}), optim.SAM(optim.SGD())
    with pytest.raises(AttributeError, match=r"set it on one of its optimizers"):
        parted.learning_rate = 1.0
    with pytest.raises(AttributeError, match="set it on its optimizer"):
        sharp.learning_rate = 1.0
    with pytest.raises(ValueError, match="rho is -1"):
        sharp.rho = -1
    with pytest.raises(AttributeError, match="optimizer is fixed"):
        sharp.optimizer = optim.SGD()
    sharp.rho, sharp.optimizer.learning_rate = 0.5, 2.0
    assert (sharp.rho, sharp.optimizer.learning_rate) == (0.5, 2.0)


def test_sam_refuses_update() -> None:
    model = parameters("w")
    with pytest.raises(ox.RuleError, match=r"call minimize\(loss, model\)"):
        optim.SAM(optim.SGD()).update(model, parameters("w"))
    np.testing.assert_array_equal(model["w"], 1.0)


def test_a_loss_scale_is_sealed() -> None:
    scale = optim.LossScale()
    with pytest.raises(AttributeError, match=r"factr \(did you mean factor\?\)"):
        scale.factr = 3.0  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="factor is 0.5"):
        scale.factor = 0.5


def test_a_subclass_may_define_attributes() -> None:
    class Counting(optim.SGD):  # type: ignore[misc, valid-type]
        limit: Any = None

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.calls = 0

    opt = Counting(0.1)
    opt.calls += 1
    opt.limit = 3
    opt._note = "anything"
    with pytest.raises(AttributeError, match="Counting has no attribute call"):
        opt.call = 1


class Halving(optim.Adam):  # type: ignore[misc, valid-type]
    """Adam with a method, and an attribute of its own."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.halved = 0

    def halve(self) -> None:
        self.learning_rate /= 2
        self.halved += 1


def test_a_subclass_is_restored_as_such() -> None:
    model, grads = parameters("w"), parameters("w")
    opt = Halving(0.2, compat="keras", seed=3)
    opt.halve()
    assert (opt.learning_rate, opt.epsilon, opt.halved) == (0.1, 1e-7, 1)
    opt.update(model, grads)
    again = optim.from_config(opt.get_config())
    assert type(again) is Halving and again.get_config() == opt.get_config()
    again.load_state_dict(opt.state_dict())
    copies = [again, copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))]  # noqa: S301
    assert {type(each) for each in copies} == {Halving}
    expected = opt.update({"w": model["w"].copy()}, grads)
    for each in copies:
        np.testing.assert_array_equal(each.update({"w": model["w"].copy()}, grads)["w"], expected["w"])


def test_a_subclass_takes_the_same_steps_in_a_chain() -> None:
    found, expected = (
        optim.chain(optim.ClipByValue(0.1), kind(0.1)).update(parameters("w"), parameters("w"))
        for kind in (Halving, optim.Adam)
    )
    np.testing.assert_array_equal(found["w"], expected["w"])
    assert type(optim.from_config(optim.chain(Halving(0.1), optim.EMA()).get_config()).parts[0]._copy()) is Halving


class Renamed(optim.SGD):
    """A subclass whose constructor has other arguments."""

    def __init__(self, rate: float = 0.1) -> None:
        super().__init__(learning_rate=rate)


class RenamedEMA(optim.EMA):
    """As `Renamed`, of a transform."""

    def __init__(self, share: float = 0.1) -> None:
        super().__init__(decay=share)


class AnotherEMA(optim.EMA):
    """A transform under another name."""


@pytest.mark.parametrize(
    "again",
    [
        lambda: pickle.loads(pickle.dumps(Renamed())),  # noqa: S301
        lambda: copy.copy(Renamed()),
        lambda: optim.from_config(Renamed().get_config()),
        lambda: optim.from_config(RenamedEMA().get_config()),
        lambda: pickle.loads(pickle.dumps(optim.chain(Renamed(), optim.EMA()))),  # noqa: S301
        lambda: optim.chain(optim.chain(Renamed(), optim.EMA()), optim.SWA()),
        lambda: repr(optim.chain(optim.SGD(), RenamedEMA())),
    ],
)
def test_a_constructor_of_a_subclass_with_other_arguments_is_named(again: Any) -> None:
    with pytest.raises(
        TypeError, match=r"Renamed(EMA)?: got an .* '(learning_rate|decay)': expected a constructor that takes"
    ):
        again()


def test_a_subclass_of_a_transform_is_restored_as_such() -> None:
    opt = optim.chain(optim.SGD(), AnotherEMA(0.5))
    for again in (pickle.loads(pickle.dumps(opt)), optim.from_config(opt.get_config())):  # noqa: S301
        assert again.parts[1].name == "AnotherEMA" and again.parts[1].decay == 0.5


@pytest.mark.parametrize("name", ["update", "apply"])
def test_a_subclass_with_another_step_is_refused(name: str) -> None:
    message = f"Doubled overrides {name}, which minimize, chains and partitions do not call: .* oxigrad.optim.define"
    with pytest.raises(TypeError, match=message):
        type(optim.Adam)("Doubled", (optim.Adam,), {name: lambda self, *args: args[0]})


# --- options that are set take effect ----------------------------------------------------------------------------------


def test_options_that_are_set_take_effect() -> None:
    opt, model, bad = optim.SGD(1.0), parameters("w"), {"w": np.full((2, 2), nan)}
    opt.update(model, {"w": np.zeros((2, 2))})
    opt.nonfinite = "skip"
    opt.update(model, bad)
    assert (opt.step, opt.skipped) == (1, 1)
    opt.nonfinite, opt.accumulate = "raise", 2
    opt.update(model, {"w": np.full((2, 2), 1.0)})
    assert opt.step == 1
    with pytest.raises(ValueError, match="1 of 2 gradients are accumulated"):
        opt.accumulate = 1
    opt.update(model, {"w": np.full((2, 2), 3.0)})
    np.testing.assert_array_equal(model["w"], -1.0)
    opt.accumulate, opt.zero_gradients = 1, True
    grads = {"w": np.ones((2, 2))}
    opt.update(model, grads)
    np.testing.assert_array_equal(model["w"], -2.0)
    np.testing.assert_array_equal(grads["w"], 0.0)


def test_a_loss_scale_that_is_set_skips_steps() -> None:
    opt = optim.SGD(1.0)
    opt.loss_scale = optim.LossScale(4.0)
    assert opt.nonfinite == "skip"
    opt.nonfinite = "propagate"
    assert opt.nonfinite == "skip"
    opt.loss_scale = None
    assert opt.nonfinite == "propagate"


# --- schedules ---------------------------------------------------------------------------------------------------------


def test_a_schedule_that_leads_out_of_the_range_raises_at_that_step() -> None:
    opt, model = optim.SGD(lambda step: 0.5 - step), parameters("w")
    opt.update(model, parameters("w"))
    with pytest.raises(ValueError, match=r"learning_rate at step 1 is -0.5: expected a number in \[0, inf\)"):
        opt.update(model, parameters("w"))
    np.testing.assert_array_equal(model["w"], 0.5)
    assert opt.step == 1


@pytest.mark.parametrize("rate", [0.1 - 0.01 * 10, np.float32(-1e-9), -1e-8])
def test_a_schedule_may_miss_an_end_by_rounding(rate: Any) -> None:
    opt, model = optim.SGD(lambda step: rate), parameters("w")
    opt.update(model, parameters("w"))
    assert opt.step == 1
    np.testing.assert_allclose(model["w"], 1.0, rtol=0, atol=1e-7)


# --- custom rules ------------------------------------------------------------------------------------------------------


def own(
    xp: Any,
    p: Any,
    g: Any,
    *,
    rate: Annotated[float, Interval("(0, 1]")] = 0.5,
    count: Annotated[int, Interval("[1, inf)")] = 1,
    mode: Literal["a", "b"] = "a",
    limit: Annotated[float, Interval("[0, inf]")] | None = None,
    anything: "float" = 1.0,
    unknown: "NotImported" = 1.0,  # type: ignore[name-defined]  # noqa: F821
) -> Any:
    """Descent."""
    return p - rate * g


Own = optim.define(own)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"count": 1.5}, {"mode": "c"}, {"limit": -1.0}, {"anything": nan}])
def test_a_custom_rule_declares_domains(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    for make in (lambda: Own(**wrong), lambda: Own(groups={"*": wrong}), lambda: setattr(Own(), name, wrong[name])):
        with pytest.raises(ValueError, match=f"{name} is "):
            make()
    with pytest.raises(ValueError, match=f"{name} is "):
        optim.from_config({"optimizer": "Own", **wrong})
    Own(rate=1, count=3.0, mode="b", limit=math.inf, anything=-math.inf, unknown=-3)
    assert pickle.loads(pickle.dumps(Own(limit=2.0))).limit == 2.0  # noqa: S301


def test_whole_numbers_are_ints() -> None:
    """A rule that shapes arrays by one needs no conversion, whatever the library or the schedule that gave it."""
    for value in (3, 3.0, np.float32(3.0), np.int64(3)):
        assert type(Own(count=value).count) is int
    model, gradients = {"w": np.ones((4, 6))}, {"w": np.arange(24.0).reshape(4, 6)}
    opt = optim.GaLore(rank=schedules.constant(2.0))
    opt.update(model, gradients)
    assert opt.slots["w"]["m"].shape == (2, 6)


@pytest.mark.parametrize("kind", [int, float])
def test_counts_of_groups_of_pytorch_are_whole_numbers(kind: Any) -> None:
    torch = pytest.importorskip("torch")
    module = importlib.import_module("oxigrad.torch")
    weight = torch.nn.Parameter(torch.ones(4, 6))
    weight.grad = torch.arange(24.0).reshape(4, 6)
    opt = module.GaLore([weight], rank=kind(2))
    opt.step()
    assert opt.state[weight]["exp_avg"].shape == (2, 6)
    before = weight.detach().clone()
    opt.param_groups[0]["update_proj_gap"] = 2.5
    with pytest.raises(ValueError, match=r"^param_groups\[0\]\['update_proj_gap'\] is 2.5: expected a whole number"):
        opt.step()
    assert torch.equal(weight, before)


def test_a_default_out_of_its_range_is_refused_where_the_rule_is_defined() -> None:
    def wrong(xp: Any, p: Any, g: Any, *, rate: Annotated[float, Interval("[0, 1]")] = 2.0) -> Any:
        return p

    with pytest.raises(ValueError, match="rate is 2.0"):
        optim.define(wrong)


@pytest.mark.parametrize("text", ["[0, 1)", "(-inf, 0]", "(0, inf]", "[1, 1]"])
def test_intervals_agree_with_their_text(text: str) -> None:
    interval = Interval(text)
    for value in (-math.inf, -1.0, -1e-300, 0.0, 0.5, 1.0, math.nextafter(1.0, 2.0), math.inf, nan):
        above = value > interval.low or (text[0] == "[" and value == interval.low)
        below = value < interval.high or (text[-1] == "]" and value == interval.high)
        assert (value in interval) == (above and below)
        assert not (value in interval and not interval.nearly_contains(value))
        if above and below:
            assert Domain((None,), interval).check("x", value) == value
        else:
            with pytest.raises(ValueError, match="x is"):
                Domain((None,), interval).check("x", value)
    assert not interval.nearly_contains(nan)


def test_domains_of_annotations() -> None:
    cases: list[tuple[Any, Any, str]] = [
        (None, 1.0, "a number"),
        (bool, False, "True or False"),
        (None, True, "True or False"),
        (Literal["a", None], "a", "'a' or None"),
        (Literal["a"] | None, None, "'a' or None"),
        (Annotated[int, Interval("[1, 3]")], 1, "a whole number in [1, 3]"),
        (Annotated[float | None, Interval("[1, 3]")], None, "None or a number in [1, 3]"),
    ]
    for annotation, default, words in cases:
        found = domain(annotation, default)
        assert found is not None and found.expected() == words
    assert domain(None, "text") is None and domain(None, None) is None


# --- optimizers inside of others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("around", [optim.SAM, lambda opt: optim.partition({"*": opt})], ids=["sam", "partition"])
def test_options_of_an_optimizer_inside_of_another_belong_outside(around: Any) -> None:
    inner = optim.SGD(1.0)
    outer, model = around(inner), parameters("w")
    inner.accumulate = 2
    with pytest.raises(ValueError, match="accumulate must be set on"):
        outer.build(model)
    inner.accumulate = 1
    outer.build(model)
    with pytest.raises(AttributeError, match="accumulate must be set on the optimizer that takes the steps"):
        inner.accumulate = 2
    inner.groups = {"w": {"learning_rate": 0.25}}
    outer.minimize(lambda model: ox.xp.sum(model["w"]), model)
    np.testing.assert_array_equal(model["w"], 0.75)
    inner.groups = {"w": None, "*": {}}
    with pytest.raises(ox.StructureError, match="no parameters"):
        outer.minimize(lambda model: ox.xp.sum(model["w"]), model)


@pytest.mark.parametrize("wrong", ["float32", 3, ["a"]])
def test_selectors_of_key_paths(wrong: Any) -> None:
    with pytest.raises(TypeError, match="to is "):
        ox.tree.key_paths(parameters("w"), to=wrong)
    with pytest.raises(TypeError, match="to is "):
        ox.tree.key_paths(parameters("w"), to=(np.ndarray, wrong))


def test_a_transform_requires_a_function() -> None:
    for transform in (ox.grad, ox.value_and_grad, ox.jacobian, ox.hessian):
        with pytest.raises(TypeError, match="found 3, expected a function"):
            transform(3)
    with pytest.raises(ox.ShapeError, match="has_aux=True"):
        ox.grad(lambda x: (x, 1))(1.0)
    assert ox.grad(lambda x: x * x, argnums=[0])(2.0) == (4.0,)


SPELLINGS: list[tuple[Callable[[], Any], str]] = [
    (lambda: optim.SGD(lr=0.1), "SGD: unknown: lr: use learning_rate; its hyperparameters are"),
    (lambda: optim.SGD(0.1, wd=0.1), "unknown: wd: use weight_decay"),
    (lambda: optim.Adam(betas=(0.9, 0.999)), "unknown: betas: use beta1 and beta2"),
    (lambda: optim.Adan(betas=(0.9, 0.999, 0.9)), "unknown: betas: use beta1 and beta2 and beta3"),
    (lambda: optim.Adam(b1=0.9), "unknown: b1: use beta1"),
    (lambda: optim.Adam(beta_2=0.9), "unknown: beta_2: use beta2"),
    (lambda: optim.AdamW(eps=1e-3), "unknown: eps: use epsilon"),
    (lambda: optim.RMSprop(alpha=0.9), "unknown: alpha: use rho"),
    (lambda: optim.RMSprop(decay_rate=0.9), "unknown: decay_rate: use rho"),
    (lambda: optim.Adam(mu_dtype="bfloat16"), "unknown: mu_dtype: use slot_dtype"),
    (lambda: optim.Adam(gradient_accumulation_steps=4), "use accumulate"),
    (lambda: optim.Adam(clipnorm=1.0), r"unknown: clipnorm: use optim.chain\(optim.ClipByNorm\(...\), optimizer\)"),
    (lambda: optim.SGD(params=[]), r"the parameters are an argument of opt.update\(model, grads\)"),
    (lambda: optim.SGD(fused=True), "every step is fused"),
    (lambda: optim.SGD(0.1, maximize=True), r"use optim.chain\(optim.Maximize\(\), optimizer\)"),
    (lambda: optim.Adam().lr, "Adam has no attribute lr: use learning_rate"),
    (lambda: setattr(optim.Adam(), "lr", 1.0), "Adam has no attribute lr: use learning_rate"),
    (lambda: optim.chain(optim.ClipByNorm(1.0), optim.Adam()).lr, "has no attribute lr: use learning_rate"),
    (lambda: optim.Adam().iterations, "Adam has no attribute iterations: use step"),
    (lambda: optim.Adam(groups={"*.bias": {"lr": 0.1}}), "unknown hyperparameters: lr: use learning_rate"),
]


@pytest.mark.parametrize("case", SPELLINGS, ids=lambda case: case[1])
def test_spellings_of_other_libraries_are_understood(case: tuple[Callable[[], Any], str]) -> None:
    with pytest.raises((TypeError, AttributeError), match=case[1]):
        case[0]()


def test_spellings_name_what_exists() -> None:
    """Each counterpart is an argument or attribute of some optimizer, and each name in advice is public."""
    known = {name for cls in vars(optim).values() if isinstance(cls, type) for name in dir(cls)}
    known |= {name for cls in vars(optim).values() if hasattr(cls, "_declared") for name in cls._declared} | set(
        OPTIONS
    )
    for candidates in spellings._NAMES.values():
        for candidate in candidates:
            assert known.issuperset((candidate,) if isinstance(candidate, str) else candidate)
    for advice in spellings._ADVICE.values():
        assert all(hasattr(optim, name) for name in re.findall(r"optim\.(\w+)", advice))
        assert all(hasattr(optim.Adam(), name) for name in re.findall(r"opt\.(\w+)", advice))


def test_the_error_of_a_property_of_a_sealed_class_is_that_of_the_property() -> None:
    def sealed(cls: type) -> list[type]:
        return [cls, *(each for below in cls.__subclasses__() for each in sealed(below))]

    def failing(_: Any) -> Any:
        raise AttributeError("the cause")

    classes = [
        each for each in sealed(Sealed) if each.__module__.startswith("oxigrad.") and not inspect.isabstract(each)
    ]
    assert optim.Adam in classes
    for cls in [*classes, ChainPart]:
        for name in [name for name, value in vars(cls).items() if isinstance(value, property)]:
            with (
                mock.patch.object(cls, name, property(failing)),
                pytest.raises(AttributeError, match=r"^the cause$"),
            ):
                getattr(object.__new__(cls), name)


@pytest.mark.parametrize(
    "make", [lambda **k: optim.SAM(optim.SGD(0.1), **k), lambda **k: optim.partition({"a": optim.SGD(0.1)}, **k)]
)
@pytest.mark.parametrize("option", [{"groups": {"a": None}}, {"dtype": "float32"}, {"sead": 1}])
def test_an_option_that_has_no_effect_is_refused(make, option) -> None:
    with pytest.raises(TypeError, match=f"unknown options: {next(iter(option))}"):
        make(**option)
