"""Changes of parameters, gradients, groups and state between steps have the same effect as with torch; shared memory is refused."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
ours = pytest.importorskip("oxigrad.torch")

import oxigrad as ox  # noqa: E402
from torch_problems import copies, gradients, values  # noqa: E402

pytestmark = pytest.mark.usefixtures("default_device")

Parameter = torch.nn.Parameter
Make = Callable[..., Any]


def steps(opt: Any, params: Any, numbers: Any) -> None:
    for step in numbers:
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = g
        opt.step()


def gradients_that_are_expanded(make: Make) -> Any:
    """The gradient of a sum has strides 0."""
    p = Parameter(torch.randn(4, 3))
    opt = make([p])
    for _ in range(3):
        opt.zero_grad()
        p.sum().backward()
        opt.step()
    return p


def one_gradient_of_two_parameters(make: Make) -> Any:
    p, q = Parameter(torch.randn(4)), Parameter(torch.randn(4))
    opt = make([p, q])
    p.grad = q.grad = torch.randn(4)
    opt.step()
    opt.step()
    return [p, q]


def channels_come_last(make: Make) -> Any:
    """Parameter and state are in the format channels_last; every second gradient is contiguous."""
    p = Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))
    opt = make([p], weight_decay=0.1)
    for step in range(4):
        g = torch.randn(2, 3, 4, 4)
        p.grad = g.to(memory_format=torch.channels_last) if step % 2 else g
        opt.step()
    kept = [t for t in opt.state[p].values() if isinstance(t, torch.Tensor)]
    return [p, *kept, [t.stride() for t in kept]]


def gradients_are_changed_in_place(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([p])
    p.grad = torch.randn(4)
    opt.step()
    p.grad *= -3.0
    opt.step()
    p.grad.zero_()
    opt.step()
    return p


def parameters_are_changed_between_steps(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([p])
    steps(opt, [p], [0])
    with torch.no_grad():
        p.mul_(2.0)
    steps(opt, [p], [1])
    p.data = torch.randn(4)
    steps(opt, [p], [2])
    return p


def a_frozen_parameter_with_a_gradient(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([p])
    p.grad = torch.ones(4)
    p.requires_grad_(False)
    opt.step()
    return p


def parameters_lack_gradients_in_turn(make: Make) -> Any:
    params = [Parameter(torch.randn(5)) for _ in range(50)]
    opt = make(params)
    for step in range(5):
        for p, g in zip(params, gradients(params, step), strict=True):
            p.grad = g
        for p in params[step::3]:
            p.grad = None
        opt.step()
    return params


def no_parameter_has_a_gradient(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([{"params": []}, {"params": [p]}])
    assert opt.step() is None
    steps(opt, [p], [0])
    return [p, len(opt.state)]


def the_state_is_changed(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([p])
    for step in range(5):
        steps(opt, [p], [step])
        own = opt.state[p]
        if step == 1:
            own["step"].fill_(100.0)
        if step == 2:
            own["exp_avg"].zero_()
        if step == 3:
            own["exp_avg_sq"] = torch.ones(4)
            own["mine"] = torch.ones(2)
    return [p, sorted(opt.state_dict()["state"][0])]


def the_state_is_deleted(make: Make) -> Any:
    p, q = Parameter(torch.randn(4)), Parameter(torch.randn(3))
    opt = make([p, q])
    for step in range(6):
        steps(opt, [p, q], [step])
        if step == 1:
            opt.state.clear()
        if step == 3:
            del opt.state[q]
    return [p, q, float(opt.state[p]["step"]), float(opt.state[q]["step"])]


def hyperparameters_of_other_types(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([p], lr=1, weight_decay=0)
    steps(opt, [p], [0])
    for lr in (np.float64(0.1), np.float32(0.25), torch.tensor(0.5)):
        opt.param_groups[0]["lr"] = lr
        steps(opt, [p], [1])
    return p


def the_default_dtype_is_float64(make: Make) -> Any:
    torch.set_default_dtype(torch.float64)
    try:
        p = Parameter(torch.randn(4))
        opt = make([p])
        steps(opt, [p], range(3))
        return [p, opt.state[p].get("step")]
    finally:
        torch.set_default_dtype(torch.float32)


def a_gradient_with_a_graph(make: Make) -> Any:
    p = Parameter(torch.randn(4))
    opt = make([p])
    (p.grad,) = torch.autograd.grad((p**3).sum(), p, create_graph=True)
    opt.step()
    return p


def a_gradient_that_is_not_finite(make: Make) -> Any:
    p = Parameter(torch.zeros(4))
    opt = make([p])
    p.grad = torch.tensor([1.0, float("inf"), float("nan"), 4.0])
    opt.step()
    return torch.nan_to_num(p.detach(), 7.0)


def parts_of_one_tensor(make: Make) -> Any:
    whole = torch.randn(8)
    p, q = Parameter(whole[:4]), Parameter(whole[4:])
    steps(make([p, q]), [p, q], range(3))
    return whole


def groups_with_keys_of_their_own(make: Make) -> Any:
    p = Parameter(torch.zeros(4))
    opt = make([{"params": [p], "name": "x", "mine": {"a": 1}}])
    steps(opt, [p], [0])
    (group,) = opt.state_dict()["param_groups"]
    return [group["name"], group["mine"], sorted(group), repr(opt)]


def memory_is_freed(make: Make) -> Any:
    p = Parameter(torch.zeros(4))
    opt = make([p])
    steps(opt, [p], range(2))
    found = [weakref.ref(opt), weakref.ref(p)]
    del opt, p
    gc.collect()
    return [reference() is None for reference in found]


def the_step_is_compiled(make: Make) -> Any:
    p = Parameter(torch.zeros(4))
    opt = make([p])
    step = torch.compile(lambda: opt.step(), backend="eager")
    p.grad = torch.ones(4)
    step()
    step()
    return p


SITUATIONS: list[Callable[[Make], Any]] = [
    gradients_that_are_expanded,
    one_gradient_of_two_parameters,
    channels_come_last,
    gradients_are_changed_in_place,
    parameters_are_changed_between_steps,
    a_frozen_parameter_with_a_gradient,
    parameters_lack_gradients_in_turn,
    no_parameter_has_a_gradient,
    the_state_is_changed,
    the_state_is_deleted,
    hyperparameters_of_other_types,
    the_default_dtype_is_float64,
    a_gradient_with_a_graph,
    a_gradient_that_is_not_finite,
    parts_of_one_tensor,
    groups_with_keys_of_their_own,
    memory_is_freed,
    the_step_is_compiled,
]


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, (list, tuple)):
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, check_device=False)  # of counts of steps
        assert found.stride() == expected.stride()
    else:
        assert found == expected


PAIRS = [(name, situation) for name in ("AdamW", "RAdam", "SGD", "RMSprop") for situation in SITUATIONS]
PAIRS.remove(("RAdam", the_step_is_compiled))  # the compiler is slow
PAIRS.remove(("RMSprop", the_step_is_compiled))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method")  # by Dynamo, in some versions
@pytest.mark.parametrize(("name", "situation"), PAIRS, ids=lambda part: getattr(part, "__name__", part))
def test_a_situation(name: str, situation: Callable[[Make], Any]) -> None:
    if situation.__name__.startswith("the_state") and name not in ("AdamW", "RAdam"):
        name = "Adam"  # which has this state
    outcomes = []
    for library in (ours, torch.optim):
        torch.manual_seed(0)
        outcomes.append(situation(functools.partial(getattr(library, name), lr=0.1)))
    same(*outcomes)


# --- refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["AdamW", "SGD", "Lion"])
def test_a_changed_shape_is_refused(name: str) -> None:
    (p, q), opt = copies([torch.ones(4), torch.ones(3)]), None
    opt = getattr(ours, name)([("first", p), ("second", q)], lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    steps(opt, [p, q], [0])
    q.data = torch.ones(5)
    before = values([p, q])
    p.grad, q.grad = torch.ones(4), None
    q.grad = torch.ones(5)
    with pytest.raises((ox.ShapeError, RuntimeError), match="second"):
        opt.step()
    assert torch.equal(p, before[0]) and torch.equal(q, before[1])
    steps_taken = {float(own["step"]) for own in opt.state.values() if "step" in own}
    assert steps_taken <= {1.0}
