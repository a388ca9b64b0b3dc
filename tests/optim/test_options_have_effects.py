"""Each option that an optimizer accepts has an effect, or it is refused by name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim
from oxigrad.optim.settings.config import OPTIONS
from oxigrad.optim.table.row import TABLE

SHAPE = (70, 64)  # of as many elements as codes are for
VARIANTS = {
    name: (row.optimizer, {key: value for key, value in values.items() if key != "learning_rate"})
    for row in TABLE.values()
    for name, values in {row.optimizer.__name__: {}, **row.variants}.items()
    if row.optimizer is not optim.LBFGS
}
KEPT = ["float16", "8bit", "4bit"]


def stepped(opt: Any, dtype: str = "float32") -> tuple[np.ndarray, dict[str, str]]:
    """The parameter after three steps, and the dtypes of the slots."""
    generator = np.random.default_rng(0)
    model = {"w": generator.standard_normal(SHAPE).astype(dtype)}
    for _ in range(3):
        model = opt.update(model, {"w": generator.standard_normal(SHAPE).astype(dtype)}, loss=1.5)
    return model["w"], {name: str(slot.dtype) for name, slot in opt.slots["w"].items()}


def after_step(opt: Any, g: np.ndarray, dtype: str = "float32") -> np.ndarray:
    """The parameter after a step."""
    model = {"w": np.ones(SHAPE, dtype)}
    return opt.update(model, {"w": g}, loss=1.5)["w"]


def changes(opt: Any, g: np.ndarray | None = None) -> bool:
    """Whether a second step, by a gradient that may be one that is not finite, changes the parameter or the state."""
    before = opt.update({"w": np.ones(SHAPE, np.float32)}, {"w": gradient()}, loss=1.5)
    w, slots = before["w"].copy(), {name: np.copy(np.asarray(slot)) for name, slot in opt.slots.get("w", {}).items()}
    with np.errstate(all="ignore"):
        after = opt.update(before, {"w": gradient() if g is None else g}, loss=1.5)["w"]
    same = all(np.array_equal(slots[name], np.asarray(slot)) for name, slot in opt.slots.get("w", {}).items())
    return not (same and np.array_equal(after, w))


def gradient() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)


def infinite() -> np.ndarray:
    return np.full(SHAPE, np.inf, np.float32)


def is_frozen(opt: Any) -> bool:
    """Whether the one parameter is none that the optimizer updates."""
    try:
        after_step(opt, gradient())
    except ox.StructureError as error:
        return "not frozen" in str(error)
    return False


def zeroes(make: Any, **options: Any) -> bool:
    g = gradient()
    after_step(make(**options), g)
    return not g.any()


def accumulates(opt: Any) -> bool:
    """Whether a gradient is held, or accumulation refused by name, as by a rule that reads the loss."""
    try:
        return not changes_parameter(opt)
    except ValueError as error:
        return "accumulate is 8: expected 1" in str(error)


# For each option whether it has its effect: on an optimizer with it, and not on one without it.
EFFECTS: dict[str, tuple[dict[str, Any], Any]] = {
    "accumulate": ({"accumulate": 8}, lambda make, **options: accumulates(make(**options))),
    "nonfinite": ({"nonfinite": "skip"}, lambda make, **options: not changes(make(**options), infinite())),
    "loss_scale": (
        {"loss_scale": optim.LossScale(2.0)},
        lambda make, **options: not changes(make(**options), infinite()),
    ),
    "zero_gradients": ({"zero_gradients": True}, zeroes),
    "record_norms": (
        {"record_norms": ("gradient",)},
        lambda make, **options: "gradient-norm" in stepped(make(**options))[1],
    ),
    "groups": ({"groups": {"w": None}}, lambda make, **options: is_frozen(make(**options))),
    "dtype": ({"dtype": "float64"}, lambda make, **options: is_frozen(make(**options))),
}
# Those with tests of their own: of moments and half precision here, of rows in `tests/step`, of devices in `tests/cuda`.
ELSEWHERE = {"seed", "slot_dtype", "master", "rounding", "sparse", "state_device"}


def changes_parameter(opt: Any) -> bool:
    return not np.array_equal(after_step(opt, gradient()), np.ones(SHAPE))


def test_every_option_is_in_the_table() -> None:
    assert {*EFFECTS} | ELSEWHERE == {*OPTIONS}


@pytest.mark.parametrize("option", EFFECTS)
@pytest.mark.parametrize("name", VARIANTS)
def test_an_option_has_its_effect_on_every_optimizer(name: str, option: str) -> None:
    make, values = VARIANTS[name]
    options, has_effect = EFFECTS[option]
    assert has_effect(make, **values, **options)
    if option != "accumulate":  # the first step of some rules changes no parameter
        assert not has_effect(make, **values)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_seed_is_that_of_stochastic_rounding(name: str) -> None:
    make, values = VARIANTS[name]
    found = [stepped(make(**{**values, "rounding": "stochastic", "seed": seed}), "float16")[0] for seed in (0, 1)]
    assert not np.array_equal(*found) or "DAdapt" in make.__name__


@pytest.mark.parametrize("slot_dtype", KEPT)
@pytest.mark.parametrize("name", VARIANTS)
def test_slot_dtype_is_that_of_slots_or_refused(name: str, slot_dtype: str) -> None:
    make, values = VARIANTS[name]
    plain = stepped(make(**values))[1]
    moments = [slot for slot in make._rule.slots if slot.is_moment]
    if moments and (make._rule.elementwise or slot_dtype == "float16") and set(plain) & {slot.name for slot in moments}:
        assert slot_dtype in stepped(make(slot_dtype=slot_dtype, **values))[1].values()
    elif plain or not moments:
        message = f"{make.__name__}: slot_dtype={slot_dtype!r} would have no effect, since"
        with pytest.raises(ValueError, match=re.escape(message)):
            make(slot_dtype=slot_dtype, **values)
    else:  # without momentum, there is nothing to keep
        make(slot_dtype=slot_dtype, **values)


@pytest.mark.parametrize(("rounding", "master"), [("stochastic", False), ("kahan", False), ("nearest", True)])
@pytest.mark.parametrize("name", VARIANTS)
def test_parameters_of_half_precision_are_rounded_as_asked(name: str, rounding: str, master: bool) -> None:
    make, values = VARIANTS[name]
    plain = stepped(make(**values), "float16")
    found = stepped(make(**values, rounding=rounding, master=master), "float16")
    slots = {"kahan": "kahan-compensation", "nearest": "master-weights"}
    if rounding in slots:
        assert slots[rounding] in found[1]
    elif "DAdapt" not in make.__name__:  # whose first steps are too small for any rounding
        assert not np.array_equal(found[0], plain[0])


@pytest.mark.parametrize("slot_dtype", ["8bit", "4bit"])
def test_accumulators_begin_as_asked(slot_dtype: str) -> None:
    for make in (optim.Adagrad, optim.RMSprop, optim.Yogi):
        opt, like = make(0.0, initial_accumulator=0.5, slot_dtype=slot_dtype), make(0.0, initial_accumulator=0.5)
        model = {"w": np.zeros(SHAPE, np.float32)}
        for each in (opt, like):
            each.build(model)
        np.testing.assert_allclose(np.asarray(opt.slots["w"]["v"]), like.slots["w"]["v"], rtol=0.04)


def test_compositions() -> None:
    codes = {"slot_dtype": "8bit"}
    with pytest.raises(ValueError, match="partition: slot_dtype='8bit' would have no effect"):
        optim.partition({"w": optim.Muon(), "*": optim.SOAP()}, **codes)
    with pytest.raises(ValueError, match="SAM: slot_dtype='8bit' would have no effect"):
        optim.SAM(optim.SOAP(), **codes)
    with pytest.raises(ValueError, match="slot_dtype='8bit' would have no effect, since its rule is called on arrays"):
        optim.chain(optim.Centralize(), optim.Adam(), **codes)
    assert "8bit" in stepped(optim.partition({"w": optim.Adam(), "*": optim.Muon()}, **codes))[1].values()
    assert "8bit" in stepped(optim.chain(optim.ClipByValue(1.0), optim.Adam(), **codes))[1].values()
    assert "8bit" in stepped(optim.SGD(0.1, groups={"w": {"momentum": 0.5}}, **codes))[1].values()


@pytest.mark.parametrize("slot_dtype", ["8bit", "4bit"])
def test_pure_steps_refuse_codes(slot_dtype: str) -> None:
    """Parameters that are too small for codes have the bits of `update`; an error names the path of a larger one."""
    message = f"slot_dtype='{slot_dtype}' would have no effect, since a pure step reads no codes: expected 'float32', "
    optimizers = [
        optim.Adam(0.1, slot_dtype=slot_dtype),
        optim.chain(optim.ClipByValue(1.0), optim.SGD(0.1, 0.9), slot_dtype=slot_dtype),
        optim.partition({"w": optim.Adam(0.1), "*": optim.Muon()}, slot_dtype=slot_dtype),
    ]
    large, small = {"w": np.ones(SHAPE, np.float32)}, {"w": np.ones((3, 4), np.float32)}
    for opt in optimizers:
        with pytest.raises(ValueError, match=re.escape(f"w: {message}")):
            opt.init(large)
        pure, _ = opt.apply(small, small, opt.init(small))
        np.testing.assert_array_equal(pure["w"], opt.update({"w": small["w"].copy()}, small)["w"])
    state = optim.Adam(0.1).init(large)
    with pytest.raises(ValueError, match=re.escape(f"w: {message}")):
        optimizers[0].apply(large, large, state)
    without = optim.SGD(0.1, slot_dtype=slot_dtype)  # without momentum, there is nothing to keep
    assert without.apply(large, large, without.init(large))[0]["w"].shape == SHAPE


def test_transformations_of_optax_refuse_codes() -> None:
    jax: Any = pytest.importorskip("jax")
    ours: Any = pytest.importorskip("oxigrad.optax")
    with pytest.raises(ValueError, match="w: slot_dtype='8bit' would have no effect, since a pure step reads no codes"):
        ours.transformation(optim.Adam(0.1, slot_dtype="8bit")).init({"w": jax.numpy.ones(SHAPE)})


def test_options_of_classes_of_pytorch() -> None:
    torch: Any = pytest.importorskip("torch")
    ours: Any = pytest.importorskip("oxigrad.torch")
    for name in ("SOAP", "Shampoo", "GaLore", "Muon", "Adafactor", "SM3", "DoG"):
        weight = torch.nn.Parameter(torch.ones(SHAPE, device="cpu"))
        with pytest.raises(ValueError, match=f"{name}: state_dtype='8bit' would have no effect, since"):
            getattr(ours, name)([weight], state_dtype="8bit")
        with pytest.raises(ValueError, match=f"{name}: state_dtype='4bit' would have no effect, since"):
            getattr(ours, name)([{"params": [weight], "state_dtype": "4bit"}])
    for name in ("Shampoo", "Adafactor", "DoG"):  # without moments
        with pytest.raises(ValueError, match=f"{name}: state_dtype='bfloat16' would have no effect, since"):
            getattr(ours, name)([torch.nn.Parameter(torch.ones(SHAPE, device="cpu"))], state_dtype="bfloat16")
    for name in ("SOAP", "GaLore", "Muon", "SM3", "Adagrad", "RMSprop", "Yogi"):
        weight = torch.nn.Parameter(torch.ones(SHAPE, device="cpu"))
        opt = getattr(ours, name)([weight], state_dtype="bfloat16")
        weight.grad = torch.ones(SHAPE, device="cpu")
        opt.step()
        assert torch.bfloat16 in {value.dtype for value in opt.state[weight].values()}, name
    for option in ({"state_dtype": "8bit"}, {"state_dtype": "4bit"}, {"master": True}, {"rounding": "kahan"}):
        weight = torch.nn.Parameter(torch.ones(SHAPE, dtype=torch.bfloat16, device="cpu"))
        for group in (weight, {"params": [weight], **option}):
            with pytest.raises(ValueError, match=f"SparseAdam: {next(iter(option))}=.* is not supported"):
                ours.SparseAdam([group], **({} if isinstance(group, dict) else option))
    with pytest.raises(ValueError, match="state_dtype is '9bit'"):
        ours.AdamW([torch.nn.Parameter(torch.ones(3, device="cpu"))], state_dtype="9bit")


def test_dtypes_of_transformations_of_optax() -> None:
    jax: Any = pytest.importorskip("jax")
    ours: Any = pytest.importorskip("oxigrad.optax")
    aliases: Any = pytest.importorskip("oxigrad.optax.aliases")
    params = {"w": jax.numpy.ones((3, 4))}
    for name, alias in aliases.ALIASES.items():
        for argument in {*alias.arguments.split()} & {*aliases.SLOTS}:
            options = {"momentum": 0.9} if name in ("sgd", "noisy_sgd", "adafactor") else {}
            state = getattr(ours, name)(0.1, **{argument: "bfloat16"}, **options).init(params)
            assert "bfloat16" in {str(x.dtype) for x in jax.tree.leaves(state)}, (name, argument)
