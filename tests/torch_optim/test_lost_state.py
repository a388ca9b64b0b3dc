"""A state that has lost a slot, or has no number of steps, is refused by name, with nothing changed."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

import oxigrad as ox  # noqa: E402
from torch_problems import OURS, equal, parameters, shapes_for, train, values  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

# LBFGS has no slots of parameters.
NAMES = [name for name in OURS.names if name != "LBFGS"]
# Names of the parameters, as errors have them.
SECOND = r"param_groups\[0\]\['params'\]\[1\]"


def trained(name: str, steps: int = 3) -> tuple[Any, Any]:
    params = parameters(shapes_for(name))
    opt = OURS.make(name, params)
    train(opt, params, range(steps))
    return opt, params


def check_refused(opt: Any, params: Any, error: type[Exception], message: str) -> None:
    """A step raises, and changes no parameter and no state."""
    before, state = values(params), {p: dict(slots) for p, slots in opt.state.items()}
    with pytest.raises(error, match=message):
        train(opt, params, [3])
    assert equal(params, before)
    assert {p: {key: id(value) for key, value in slots.items()} for p, slots in opt.state.items()} == {
        p: {key: id(value) for key, value in slots.items()} for p, slots in state.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_slot_is_a_key_error(name: str) -> None:
    """Classes that count steps make all slots in the first one."""
    keys = [key for key in trained(name)[0].state[trained(name)[1][1]] if key != "step"]
    for key in keys:
        opt, params = trained(name)
        if not opt.entry.counts and name != "SparseAdam":
            continue
        del opt.state[params[1]][key]
        check_refused(opt, params, KeyError, rf"{SECOND}: the state has no '{key}'")


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "RMSprop"])
def test_it_is_one_in_torch_too(name: str) -> None:
    params = parameters()
    opt = getattr(torch.optim, name)(params, foreach=False)
    train(opt, params)
    key = next(key for key in opt.state[params[1]] if key != "step")
    del opt.state[params[1]][key]
    with pytest.raises(KeyError, match=key):
        train(opt, params, [3])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "SparseAdam"])
def test_a_lost_count_is_a_key_error(name: str) -> None:
    opt, params = trained(name)
    if not opt.entry.counts or len(opt.state[params[1]]) < 2:
        pytest.skip("it counts no steps, or has nothing else")
    del opt.state[params[1]]["step"]
    check_refused(opt, params, KeyError, f"{SECOND}: the state has .* and no 'step'")


@pytest.mark.parametrize("count", [-5.0, 1e30, math.inf, math.nan, 2.5])
@pytest.mark.parametrize("how", ["in place", "replaced"])
@pytest.mark.parametrize("name", ["AdamW", "Adafactor", "ScheduleFreeAdamW", "SOAP", "SparseAdam"])
def test_counts_are_numbers_of_steps(name: str, how: str, count: float) -> None:
    opt, params = trained(name)
    state = opt.state[params[1]]
    if how == "in place" and isinstance(state["step"], torch.Tensor):
        state["step"].fill_(count)
    else:
        state["step"] = torch.tensor(count)
    check_refused(opt, params, ox.StateError, f"{SECOND}: the state has step")


@pytest.mark.parametrize("count", [-1, 0.5, math.inf, 10**30])
def test_the_number_of_steps_with_random_numbers_is_checked(count: Any) -> None:
    params = parameters(dtype=torch.bfloat16)
    opt = ours.AdamW(params, rounding="stochastic")
    train(opt, params)
    opt.param_groups[0]["noise_step"] = count
    before = values(params)
    with pytest.raises(ox.StateError, match=r"param_groups\[0\] has noise_step"):
        train(opt, params, [3])
    assert equal(params, before)


def test_keys_of_the_user_do_not_begin_a_state() -> None:
    params = parameters()
    opt, reference = ours.AdamW(params), ours.AdamW(others := parameters())
    opt.state[params[0]]["of the user"] = 1
    train(opt, params)
    train(reference, others)
    assert equal(params, others)
    assert opt.state[params[0]]["of the user"] == 1


@pytest.mark.parametrize(
    ("name", "flag", "key"), [("AdamW", "amsgrad", "max_exp_avg_sq"), ("RMSprop", "centered", "grad_avg")]
)
def test_slots_that_a_flag_asks_for_begin_later(name: str, flag: str, key: str) -> None:
    opt, params = trained(name)
    opt.param_groups[0][flag] = True
    train(opt, params, [3])
    assert all(key in state for state in opt.state.values())
