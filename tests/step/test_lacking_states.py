"""Parameters that a loaded state lacks have missed all of its steps: they train as those of a new optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimizers import OPTIMIZERS, WHOLE
from oxigrad import optim


def is_old(path: str, array: Any) -> bool:
    """A predicate, which may match nothing."""
    return path == "old"


CHAINS: dict[str, Callable[[], Any]] = {
    "ema": lambda: optim.chain(optim.Adam(0.1), optim.EMA(0.9)),
    "ema from zeros": lambda: optim.chain(optim.Adam(0.1), optim.EMA(0.9, average_from="zeros")),
    "ema from the first step": lambda: optim.chain(optim.NAdam(0.1), optim.EMA(0.9, average_from="first_step")),
    "swa": lambda: optim.chain(optim.RAdam(0.1), optim.SWA(start=1, every=2)),
    "schedule-free": lambda: optim.chain(optim.SGD(0.1), optim.ScheduleFree()),
    "lookahead": lambda: optim.chain(optim.AdaBelief(0.1), optim.Lookahead(sync_period=2)),
    "partition": lambda: optim.partition({is_old: optim.SGD(0.1), "*": optim.Adamax(0.1)}),
    "groups": lambda: optim.Adam(0.1, groups={is_old: {"learning_rate": 0.2}}),
    "master": lambda: optim.Adam(0.1, master=True),
    "codes": lambda: optim.Adam(0.1, slot_dtype="8bit"),
}
# Values over all parameters differ with the other one.
ALONE = {
    name: make
    for name, make in {**OPTIMIZERS, **WHOLE}.items()
    if not make()._rule.supplied & {"total", "guard", "noise", "loss"}
}
MAKES = {**ALONE, **CHAINS}


def values(shape: tuple[int, ...] = (4, 3)) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def model(*names: str, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: values(shapes.get(name, (4, 3))) for name in names}


def train(opt: Any, tree: dict[str, Any], steps: int) -> None:
    for step in range(steps):
        opt.update(tree, {name: np.cos(p * (step + 1)) for name, p in tree.items()})


@pytest.mark.parametrize("steps", [None, 0, 2], ids=["loaded before the model", "built", "trained"])
@pytest.mark.parametrize("shape", [None, (2, 3)], ids=["lacking", "of another shape"])
@pytest.mark.parametrize("name", MAKES)
def test_its_steps_are_those_of_a_new_optimizer(name: str, shape: tuple[int, ...] | None, steps: int | None) -> None:
    make = MAKES[name]
    before, source = make(), model("old") if shape is None else model("old", "new", new=shape)
    train(before, source, 5)
    expected, alone = make(), model("new")
    train(expected, alone, 3)
    opt, tree = make(), model("old", "new")
    if steps is not None:
        opt.build(tree)
        train(opt, tree, steps)
    report = opt.load_state_dict(before.state_dict(), strict=False)
    train(opt, tree, 3 - (steps or 0))
    assert report.missing or report.mismatched or not opt.slots["new"]
    if steps:
        return check_trained(opt, tree["new"], alone["new"])
    np.testing.assert_array_equal(tree["new"], alone["new"])
    for slot, array in expected.slots["new"].items():
        np.testing.assert_array_equal(np.asarray(opt.slots["new"][slot]), np.asarray(array))
    return None


def check_trained(opt: Any, found: Any, expected: Any) -> None:
    """The steps after the load had the gradients of the first ones."""
    assert opt.step == 6
    assert np.isfinite(found).all() and found.shape == expected.shape


def test_a_trained_parameter_keeps_its_count() -> None:
    before, source = optim.Adam(0.1), model("old")
    train(before, source, 10)
    opt, tree = optim.Adam(0.1), model("old", "new")
    expected, alone = optim.Adam(0.1), model("new")
    train(opt, tree, 2)
    train(expected, alone, 2)
    opt.load_state_dict(before.state_dict(), strict=False)
    gradient = np.sin(values())
    opt.update(tree, {"old": gradient, "new": gradient})
    expected.update(alone, {"new": gradient})
    np.testing.assert_array_equal(tree["new"], alone["new"])
    again = optim.from_config(opt.get_config())
    again.load_state_dict(opt.state_dict())
    assert again.state_dict()["remembered"]["presence"]["missed_steps"] == {"new": 8}


def test_numbers_of_another_shape_are_not_taken() -> None:
    """The product of NAdam fits any shape."""
    before, source = optim.NAdam(0.1), model("w", w=(2,))
    train(before, source, 5)
    opt, tree = optim.NAdam(0.1), model("w")
    opt.build(tree)
    first = {name: np.array(slot) for name, slot in opt.slots["w"].items()}
    opt.load_state_dict(before.state_dict(), strict=False)
    for name, slot in opt.slots["w"].items():
        np.testing.assert_array_equal(slot, first[name])


def test_a_state_of_torch_that_lacks_a_parameter() -> None:
    torch = pytest.importorskip("torch")
    from oxigrad.torch import interchange

    p, q = (torch.nn.Parameter(torch.from_numpy(values())) for _ in range(2))
    theirs = torch.optim.AdamW([p, q], lr=0.1)
    for _ in range(4):
        p.grad = torch.cos(p.detach())
        theirs.step()
    ours, alone = optim.AdamW(0.1, compat="torch"), optim.AdamW(0.1, compat="torch")
    tree, expected = model("p", "q"), model("q")
    interchange.load_state_dict(ours, theirs.state_dict(), ["p", "q"], strict=False)
    train(ours, tree, 3)
    train(alone, expected, 3)
    np.testing.assert_array_equal(tree["q"], expected["q"])


@pytest.mark.parametrize("name", ["AdamW", "NAdam", "RAdam", "Adamax", "Adafactor", "ASGD"])
def test_parameters_of_torch_have_counts_of_their_own(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for library in (pytest.importorskip("oxigrad.torch"), torch.optim):
        first, second = (torch.nn.Parameter(torch.from_numpy(values())) for _ in range(2))
        opt = getattr(library, name)([first, second], lr=0.1)
        for step in range(6):
            first.grad = torch.cos(first.detach() * step)
            second.grad = torch.sin(second.detach() * step) if step > 2 else None
            opt.step()
            if step == 2:
                opt.load_state_dict(opt.state_dict())
        results.append([first.detach(), second.detach()])
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)
