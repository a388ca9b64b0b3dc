"""Each option that an optimizer accepts has an effect, or it is refused by name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from oxigrad import optim
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


def test_options_of_classes_of_pytorch() -> None:
    torch: Any = pytest.importorskip("torch")
    ours: Any = pytest.importorskip("oxigrad.torch")
    for name in ("SOAP", "Shampoo", "GaLore", "Muon", "Adafactor", "SM3", "DoG"):
        weight = torch.nn.Parameter(torch.ones(SHAPE, device="cpu"))
        with pytest.raises(ValueError, match=f"{name}: state_dtype='8bit' would have no effect, since"):
            getattr(ours, name)([weight], state_dtype="8bit")
        with pytest.raises(ValueError, match=f"{name}: state_dtype='4bit' would have no effect, since"):
            getattr(ours, name)([{"params": [weight], "state_dtype": "4bit"}])
    for name in ("SOAP", "GaLore", "Muon", "SM3", "Adagrad", "RMSprop", "Yogi"):
        weight = torch.nn.Parameter(torch.ones(SHAPE, device="cpu"))
        opt = getattr(ours, name)([weight], state_dtype="bfloat16")
        weight.grad = torch.ones(SHAPE, device="cpu")
        opt.step()
        assert torch.bfloat16 in {value.dtype for value in opt.state[weight].values()}, name
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
