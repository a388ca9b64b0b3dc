"""`minimize` with the step in the backward: the bits of a step after it, and memory for a few gradients."""

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim, schedules, xp

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(4, 8, 6))


def new_model(dtype: Any = np.float32):
    """A deep model with a parameter at several depths, a tied one, one that is read through views, and unused ones."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=(6, 6)).astype(dtype)
    return {
        "first": first,
        "layers": [rng.normal(size=(6, 6)).astype(dtype) for _ in range(3)],
        "large": rng.normal(size=(130, 130)).astype(dtype) / 100,
        "gain": np.ones(6, dtype),
        "tied": first,
        "scale": np.array(1.5, dtype),
        "unused": np.ones(3, dtype),
        "name": "net",
        "count": 3,
    }


def net(model, x):
    h = xp.tanh(x @ model["first"]) * model["gain"]
    for layer in model["layers"]:
        h = xp.tanh(h @ layer.T + h @ xp.reshape(layer, (6, 6))) * model["gain"]
    h = xp.tanh(h @ model["tied"] + model["first"][0])
    return xp.mean((h @ model["large"][:6] * model["scale"]) ** 2)


def trained(opt, in_backward, steps=4, dtype: Any = np.float32, model=None):
    model, losses = new_model(dtype) if model is None else model, []
    for step in range(steps):
        x = INPUTS[step % len(INPUTS)].astype(dtype)
        losses.append(float(opt.minimize(lambda model, x=x: net(model, x), model, in_backward=in_backward)))
    return losses, model


def bits(tree):
    return [np.asarray(leaf).tobytes() for leaf in ox.tree.leaves(tree) if hasattr(leaf, "dtype")]


def state(opt):
    found = opt.state_dict()
    return {name: value for name, value in found.items() if name not in ("config", "format")}


def same_state(a, b):
    a, b = state(a), state(b)
    assert str(a["step"]) == str(b["step"])
    assert a["slots"].keys() == b["slots"].keys()
    for path, own in a["slots"].items():
        for name, value in own.items():
            assert bits({"x": value}) == bits({"x": b["slots"][path][name]}), (path, name)


# Base classes, and those that take matrices alone, which a partition below has.
_OTHERS = {"Optimizer", "RuleOptimizer", "Muon"}


def classes():
    """The optimizers of the table that take steps by `update`."""
    for name in optim.__all__:
        cls = getattr(optim, name)
        if isinstance(cls, type) and issubclass(cls, optim.Optimizer) and name not in _OTHERS:
            try:
                cls()
            except (TypeError, ValueError):
                continue
            if cls.minimize is optim.Optimizer.minimize and cls._gradients is optim.Optimizer._gradients:
                yield name


@pytest.mark.parametrize("name", [*classes()])
def test_every_optimizer_has_the_bits_of_a_step_after_the_backward(name):
    made = getattr(optim, name)
    after, inside = made(), made()
    expected, found = trained(after, False), trained(inside, True)
    assert found[0] == expected[0]
    assert bits(found[1]) == bits(expected[1])
    same_state(inside, after)


OPTIONS = {
    "8bit": lambda: optim.AdamW(0.01, slot_dtype="8bit"),
    "4bit": lambda: optim.AdamW(0.01, slot_dtype="4bit"),
    "groups": lambda: optim.AdamW(0.01, groups={"gain": {"weight_decay": 0.5}, "layers.1": None}),
    "schedule": lambda: optim.AdamW(schedules.linear(0.1, 0.0, 4)),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(0.1), optim.AdamW(0.01)),
    "clip by value": lambda: optim.chain(optim.ClipByValue(0.01), optim.SGD(0.1)),
    "norms": lambda: optim.AdamW(0.01, record_norms="gradient"),
    "partition": lambda: optim.Partition({"layers.*": optim.Muon(0.01), "*": optim.AdamW(0.01)}),
    "catch up": lambda: optim.Adam(0.01, sparse="catch_up"),
    "accumulate": lambda: optim.AdamW(0.01, accumulate=2),
    "loss_scale": lambda: optim.AdamW(0.01, loss_scale=optim.LossScale(8.0, interval=2)),
    "skip": lambda: optim.AdamW(0.01, nonfinite="skip"),
    "raise": lambda: optim.AdamW(0.01, nonfinite="raise"),
    "host": lambda: optim.AdamW(0.01, state_device="host"),
    "SAM": lambda: optim.SAM(optim.SGD(0.1)),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_have_the_bits_of_a_step_after_the_backward(name):
    after, inside = OPTIONS[name](), OPTIONS[name]()
    expected, found = trained(after, False), trained(inside, True)
    assert found[0] == expected[0]
    assert bits(found[1]) == bits(expected[1])
    same_state(inside, after)


def test_gradients_that_are_to_be_zeros_give_the_bits_of_a_step_after_the_backward():
    found = []
    for in_backward in (False, True):
        opt, model = optim.AdamW(0.01, zero_gradients=True), {"w": np.arange(1.0, 4.0)}
        for _ in range(2):
            opt.minimize(lambda m: xp.sum(m["w"] ** 2), model, in_backward=in_backward)
        found.append(bits(model))
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{}, {"master": True}, {"rounding": "stochastic"}, {"rounding": "kahan"}], ids=str)
def test_half_precision_has_the_bits_of_a_step_after_the_backward(options):
    after, inside = (optim.AdamW(0.01, seed=3, **options) for _ in range(2))
    expected, found = trained(after, False, dtype=np.float16), trained(inside, True, dtype=np.float16)
    assert bits(found[1]) == bits(expected[1])
    same_state(inside, after)


def test_a_training_changes_its_mode_at_any_step():
    after, mixed = optim.AdamW(0.01), optim.AdamW(0.01)
    _, expected = trained(after, False, steps=4)
    _, found = trained(mixed, True, steps=1)
    for step in range(1, 4):
        x = INPUTS[step].astype(np.float32)
        mixed.minimize(lambda model, x=x: net(model, x), found, in_backward=step % 2 == 0)
    assert bits(found) == bits(expected)


def test_gradients_are_given_back_while_the_backward_runs():
    """Counts, at each derivative of a deep model, the gradients of its layers that are alive."""
    alive, most, size = [], [], 40_000

    def rule(g, y, x, w):
        gc.collect(0)
        most.append(sum(ref() is not None for ref in alive))
        gradient = g * x
        alive.append(weakref.ref(gradient))
        return g * w, gradient

    layer = ox.custom_vjp(lambda x, w: x * w, rule)
    found = {}
    for in_backward in (False, True):
        alive.clear()
        most.clear()
        model = [np.ones(size) for _ in range(8)]

        def loss(model):
            h = np.ones(size)
            for w in model:
                h = layer(h, w)
            return xp.sum(h)

        optim.SGD(0.1).minimize(loss, model, in_backward=in_backward)
        found[in_backward] = max(most)
    assert found[False] == 7
    assert found[True] <= 1


def test_an_array_that_the_loss_reads_past_the_model_is_updated_last():
    def make():
        return {"w": np.full(4, 0.5), "v": np.full(4, 2.0)}

    def loss(model, outer):
        return xp.sum(xp.exp(model["v"] * outer["w"]) * model["w"]) + xp.sum(model["v"] * outer["v"][::-1])

    found = []
    for in_backward in (False, True):
        model, opt = make(), optim.SGD(0.1)
        for _ in range(3):
            opt.minimize(lambda m, model=model: loss(m, model), model, in_backward=in_backward)
        found.append(bits(model))
    assert found[0] == found[1]


def test_a_read_only_parameter_is_replaced():
    found = []
    for in_backward in (False, True):
        model = new_model()
        model["gain"].flags.writeable = False
        found.append(bits(trained(optim.AdamW(0.1), in_backward, model=model)[1]))
    assert found[0] == found[1]


def failing(model):
    def rule(g, y, x):
        raise RuntimeError("midway")

    broken = ox.custom_vjp(lambda x: x * 1.0, rule)
    return xp.sum(broken(model["a"]) @ model["b"])


def test_an_error_in_the_middle_names_the_parameters_that_are_ahead():
    opt, model = optim.Adam(0.1), {"a": np.ones((200, 200)), "b": np.ones((200, 200))}
    with pytest.raises(RuntimeError, match="midway"):
        opt.minimize(failing, model, in_backward=True)
    assert opt.ahead == ["b"]
    assert (model["a"] == 1).all() and (model["b"] != 1).all()
    for call in (
        opt.state_dict,
        lambda: copy.deepcopy(opt),
        lambda: opt.update(model, model),
        lambda: opt.minimize(lambda m: xp.sum(m["a"] @ m["b"]), model, in_backward=True),
    ):
        with pytest.raises(ox.StateError, match="^b was updated in the backward of a step that is not finished"):
            call()
    opt.flush(model)
    assert (opt.ahead, opt.step) == ([], 1)
    opt.minimize(lambda m: xp.sum(m["a"] @ m["b"]), model, in_backward=True)
    assert opt.step == 2


def test_a_parameter_that_becomes_read_only_is_replaced():
    found = []
    for in_backward in (False, True):
        opt, model = optim.AdamW(0.1), new_model()
        trained(opt, in_backward, model=model, steps=2)
        model["gain"].flags.writeable = False
        found.append(bits(trained(opt, in_backward, model=model)[1]))
    assert found[0] == found[1]


def test_a_derivative_that_reads_the_state_in_the_middle_is_refused():
    opt, model = optim.SGD(0.1, 0.9), {"a": np.ones((200, 200)), "b": np.ones((200, 200))}

    def rule(g, y, x):
        opt.state_dict()
        return (g,)

    saving = ox.custom_vjp(lambda x: x * 1.0, rule)
    with pytest.raises(ox.StateError, match="^b was updated in the backward"):
        opt.minimize(lambda m: xp.sum(saving(m["a"]) @ m["b"]), model, in_backward=True)
    assert opt.ahead == ["b"]


def test_slots_that_are_copies_of_parameters_begin_anew_after_an_error():
    found = []
    for in_backward in (False, True):
        opt, model = optim.ScheduleFreeSGD(0.1), {"a": np.ones(2), "b": np.ones((2, 2))}
        with pytest.raises(RuntimeError, match="midway"):
            opt.minimize(failing, model, in_backward=in_backward)
        model["b"][...] = 3.0
        opt.minimize(lambda m: xp.sum(m["a"] @ m["b"]), model, in_backward=in_backward)
        found.append(bits(model))
    assert found[0] == found[1]


def test_an_error_before_the_first_update_changes_nothing():
    opt, model = optim.Adam(0.1), {"a": np.ones(2), "b": np.ones((2, 2))}
    with pytest.raises(RuntimeError, match="midway"):
        opt.minimize(failing, model, in_backward=True)
    assert (opt.ahead, opt.step) == ([], 0)
    assert (model["b"] == 1).all()


REFUSED = {
    "record": (lambda: optim.SGD(0.1), {"record": True}, "record=True"),
    "LBFGS": (lambda: optim.LBFGS(), {}, "LBFGS.* does not support in_backward"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_gradients_is_refused_by_name(name):
    make, options, message = REFUSED[name]
    model = {"w": np.ones(3)}
    with pytest.raises(ValueError, match=message):
        make().minimize(lambda m: xp.sum(m["w"] ** 2), model, in_backward=True, **options)
    assert (model["w"] == 1).all()


def test_an_outer_derivative_is_refused_by_name():
    def outer(w):
        model = {"w": w}
        optim.SGD(0.1).minimize(lambda m: xp.sum(m["w"] ** 2), model, in_backward=True)
        return xp.sum(model["w"])

    with pytest.raises(ox.DerivativeError, match="^w: in_backward=True"):
        ox.grad(outer)(np.ones(3))


def test_a_wrapper_of_workers_is_refused_by_name():
    def worker(comm):
        opt, model = distributed.DataParallel(optim.SGD(0.1)), {"w": np.ones(3)}
        with pytest.raises(ValueError, match=r"DataParallel\(SGD\) does not support in_backward=True"):
            opt.minimize(lambda m: xp.sum(m["w"] ** 2), model, in_backward=True)
        return model["w"]

    assert all((w == 1).all() for w in distributed.run(worker, workers=2))
