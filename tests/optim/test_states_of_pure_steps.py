"""The state of `apply` belongs to the caller: what an optimizer says of it, and how it is given to one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

KINDS: dict[str, Any] = {
    "Adam": lambda: optim.Adam(0.1),
    "average": lambda: optim.chain(optim.SGD(0.1), optim.EMA(0.5)),
    "norms": lambda: optim.SGD(0.1, record_norms=("gradient", "update")),
    "partition": lambda: optim.partition({"b": optim.SGD(0.1, momentum=0.9), "*": optim.Adam(0.1)}),
}
GRADS = {"w": np.array([3.0, 4.0]), "b": np.array([1.0])}


def params() -> Any:
    return {"w": np.ones(2), "b": np.zeros(1)}


def holder_of(opt: Any, state: Any) -> Any:
    assert not opt.load_state_dict({**opt.state_dict(), "step": int(state["step"]), "slots": state["slots"]})
    return opt


@pytest.mark.parametrize("name", KINDS)
def test_an_optimizer_saves_no_empty_state_after_pure_steps(name: str, tmp_path: Path) -> None:
    opt, model = KINDS[name](), params()
    state = opt.init(model)
    for _ in range(2):
        with pytest.raises(ox.StateError, match=r"save: the optimizer has taken no step.*init and apply"):
            opt.save(tmp_path / "state")
        model, state = opt.apply(model, GRADS, state)
    assert not (tmp_path / "state").exists()
    holder_of(opt, state).save(tmp_path / "state")
    found = ox.state.read(tmp_path / "state")
    assert optim.from_config(found["config"]).get_config() == opt.get_config()
    without_norms = {
        path: {name: slot for name, slot in slots.items() if not name.endswith("-norm")}
        for path, slots in state["slots"].items()
    }
    np.testing.assert_equal({path: dict(slots) for path, slots in found["slots"].items()}, without_norms)


@pytest.mark.parametrize("name", KINDS)
def test_a_pure_state_gives_an_optimizer_its_steps(name: str) -> None:
    """The optimizer goes on as one that has taken all steps itself."""
    opt, model, reference, updated = KINDS[name](), params(), KINDS[name](), params()
    state = opt.init(model)
    for _ in range(3):
        model, state = opt.apply(model, GRADS, state)
        reference.update(updated, GRADS)
    holder_of(opt, state)
    opt.update(model, GRADS)
    reference.update(updated, GRADS)
    np.testing.assert_equal(model, updated)
    np.testing.assert_equal(opt.recorded_norms, reference.recorded_norms)
    if name == "average":
        np.testing.assert_equal(opt.averaged_parameters(), reference.averaged_parameters())


def test_new_and_stepped_optimizers_are_saved(tmp_path: Path) -> None:
    optim.Adam(0.1).save(tmp_path / "new")
    opt = optim.Adam(0.1)
    opt.init(params())
    opt.update(params(), GRADS)
    opt.save(tmp_path / "stepped")
    assert ox.state.read(tmp_path / "stepped")["step"] == 1


def test_norms_of_pure_steps_are_in_the_state() -> None:
    opt = KINDS["norms"]()
    _, state = opt.apply(params(), GRADS, opt.init(params()))
    assert float(state["slots"]["w"]["gradient-norm"]) == 5.0
    assert opt.recorded_norms == {"gradient": {}, "update": {}}


def test_loading_changes_no_hyperparameter(tmp_path: Path) -> None:
    opt = optim.AdamW(0.25, weight_decay=0.5)
    opt.update(params(), GRADS)
    opt.save(tmp_path / "state")
    other = optim.AdamW(0.5)
    other.load(tmp_path / "state")
    assert (other.step, other.learning_rate) == (1, 0.5)
    again = optim.from_config(ox.state.read(tmp_path / "state")["config"])
    assert (again.learning_rate, again.weight_decay) == (0.25, 0.5)
