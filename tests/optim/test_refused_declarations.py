"""Declarations and values that would be read as something else, or not at all, are refused with what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim
from oxigrad.optim import Interval, Slot


def without_call(xp: Any, p: Any, g: Any, m: Any = Slot.zeros, *, learning_rate: float = 0.1) -> Any:
    return p - learning_rate * g, m


def copied_without_call(xp: Any, p: Any, g: Any, m: Any = Slot.copy) -> Any:
    return p - g, m


def text_for_an_interval(xp: Any, p: Any, g: Any, *, beta: Annotated[float, "[0, 1)"] = 0.5) -> Any:
    return p - beta * g


def sentences(
    xp: Any, p: Any, g: Any, *, beta: Annotated[float, "Decay (in [0, 1)).", Interval("[0, 1)")] = 0.5
) -> Any:
    return p - beta * g


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "slot without a call": (lambda: optim.define(without_call), TypeError, r"m=Slot.zeros is a function.*Slot.zeros\("),
    "copy without a call": (lambda: optim.define(copied_without_call), TypeError, r"m=Slot.copy is a function"),
    "text in place of an interval": (lambda: optim.define(text_for_an_interval), TypeError, r"expected Interval\('\[0"),
    "text as a number": (lambda: Slot.scalar("3"), TypeError, "Slot.scalar: found '3'"),  # pyright: ignore[reportArgumentType]
    "flag as a number": (lambda: Slot.scalar(True), TypeError, "Slot.scalar: found True"),
    "option in a group": (
        lambda: optim.Adam(groups={"*bias": {"slot_dtype": "8bit"}}),
        TypeError,
        "the group '[*]bias': found slot_dtype, an option of the whole optimizer",
    ),
    "text as a loss": (
        lambda: optim.MoMo().update({"w": np.ones(2)}, {"w": np.ones(2)}, loss="0.1"),
        TypeError,
        "the loss, which the rule momo reads, is '0.1': expected a number",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused(name: str) -> None:
    make, kind, message = CASES[name]
    with pytest.raises(kind, match=message):
        make()


def test_what_is_accepted() -> None:
    assert optim.define(sentences)(beta=0.25).hyperparameters["beta"] == 0.25
    with pytest.raises(ValueError, match="beta"):
        optim.define(sentences)(beta=1.0)
    number: Any = np.float32(3.0)
    assert Slot.scalar(number).begin == 3.0
    for loss in (1, 1.0, np.float32(1.0), np.array(1.0)):
        optim.MoMo().update({"w": np.ones(2)}, {"w": np.ones(2)}, loss=loss)


def test_check_rule_names_the_shape_at_which_a_rule_fails() -> None:
    def by_rows(xp: Any, p: Any, g: Any, *, learning_rate: float = 0.1) -> Any:
        return p - learning_rate * g / p.shape[0]

    with pytest.raises(IndexError) as found:
        ox.testing.check_rule(by_rows)
    assert found.value.__notes__ == ["by_rows: called with a parameter of shape (); shapes=... gives others"]
    ox.testing.check_rule(by_rows, shapes=[(3,), (2, 2)])
