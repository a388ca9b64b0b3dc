"""`oxigrad.testing.check_rule`: it accepts the rules of the package, and names the fault of invalid ones."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import rules
from oxigrad.rules.core.slots import Slot
from oxigrad.testing import check_rule

OWN = {
    name: rule
    for name, rule in vars(rules).items()
    if inspect.isfunction(rule) and list(inspect.signature(rule).parameters)[:3] == ["xp", "p", "g"]
}
MATRICES: dict[str, Any] = {"elementwise": False, "shapes": ((3, 4), (5, 2))}
OPTIONS: dict[str, dict[str, Any]] = {
    "adafactor": MATRICES,
    "sm3": MATRICES,
    "galore": MATRICES,
    "muon": {**MATRICES, "tolerances": {"float32": 1e-3, "float16": 0.2, "bfloat16": 1.0}},
    "shampoo": {**MATRICES, "tolerances": {"float32": 0.1, "float16": 1.0, "bfloat16": 10.0}},
    # Eigenvectors have no sign.
    "soap": {**MATRICES, "tolerances": {"float32": 10.0, "float16": 10.0, "bfloat16": 10.0}},
    # Differences of nearly equal numbers.
    "prodigy": {"tolerances": {"float32": 0.1, "float16": 10.0, "bfloat16": 10.0}},
    "dog": {"tolerances": {"float32": 0.01, "float16": 0.1, "bfloat16": 0.5}, "initial_value": 0.1},
    "dowg": {"tolerances": {"float16": 0.1, "bfloat16": 1.0}},
    "cocob": {"tolerances": {"float16": 0.1, "bfloat16": 1.0}},
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.one_in(10)
def test_the_package_s_rules_pass(name: str) -> None:
    check_rule(OWN[name], **OPTIONS.get(name, {}))


def test_there_are_rules() -> None:
    assert {"sgd", "adam", "muon"} <= OWN.keys()
    assert len(OWN) > 20


def test_hyperparameters_are_checked_as_given() -> None:
    check_rule(rules.adam, beta1=0.5, epsilon=1e-3)
    with pytest.raises(TypeError, match="adam: .*beta3"):
        check_rule(rules.adam, beta3=0.9)


class Constant:
    """A rule whose trace is right once, and wrong on arrays."""

    __name__ = "varying"

    def __init__(self) -> None:
        self.calls = 0
        self.__signature__ = inspect.signature(lambda xp, p, g: None)

    def __call__(self, xp: Any, p: Any, g: Any) -> Any:
        self.calls += 1
        return p - 0.1 * self.calls * g


def in_place(xp: Any, p: Any, g: Any, m: Any) -> Any:
    if isinstance(m, np.ndarray) and m.shape:
        m *= 0.5
    return p - m, m + g


def wrong_shape(xp: Any, p: Any, g: Any, m: Any) -> Any:
    return p - g, xp.sum(m + g)


def integers(xp: Any, p: Any, g: Any, m: Any) -> Any:
    return p - g, xp.astype(xp.sign(g), np.int32)


def divides_by_zero(xp: Any, p: Any, g: Any, v: Any, *, rate: float = 0.1) -> Any:
    v = 0.9 * v + 0.1 * g * g
    return p - rate * g / xp.sqrt(v), v


def overflows(xp: Any, p: Any, g: Any, m: Any) -> Any:
    return p - 1e-9 * g, m + xp.exp(xp.abs(g))


def branches(xp: Any, p: Any, g: Any) -> Any:
    return p - g if xp.sum(g) > 0 else p


def too_few(xp: Any, p: Any, g: Any, m: Any) -> Any:
    return p - g


def cancels(xp: Any, p: Any, g: Any) -> Any:
    return p - ((g + 1e6) - 1e6)


def decays_twice(xp: Any, p: Any, g: Any, m: Any = Slot.zeros(decay="beta"), *, beta: float = 0.9) -> Any:
    m = beta * beta * m + g
    return p - 0.1 * m, m


BROKEN: dict[Callable[..., Any], tuple[str, dict[str, Any]]] = {
    in_place: ("the rule in_place writes an argument in place .*: expected a new array", {"elementwise": False}),
    wrong_shape: (r"wrong_shape: it returned the slot m with shape \(\): expected \(5,\)", {"elementwise": False}),
    integers: ("integers: it returned the slot m with dtype int32", {"elementwise": False}),
    divides_by_zero: (
        "divides_by_zero: the parameter is not finite after step 1, for float64 gradients of size 0.0",
        {},
    ),
    overflows: ("overflows: the slot m is not finite after step 1, for float64 gradients of size 1000.0", {}),
    branches: ("the rule branches: .*elementwise=False", {"elementwise": True}),
    too_few: ("found 1 results, expected the parameter and 1 slots", {}),
    cancels: (
        "cancels: the rule on an array of float32: the parameter .* above 1e-04 relative to float64, after step 1",
        {},
    ),
    Constant(): ("varying: ", {}),
    decays_twice: ("decays_twice: a step with a zero gradient does not multiply the slot m by its decay beta", {}),
}


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_named_with_its_fault(rule: Callable[..., Any]) -> None:
    message, options = BROKEN[rule]
    with pytest.raises((AssertionError, ox.RuleError), match=re.compile(message)):
        check_rule(rule, **options)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="tolerances has float8"):
        check_rule(rules.sgd, tolerances={"float8": 1.0})
    for steps in (0, True, 1.5):
        with pytest.raises(ValueError, match="steps is"):
            check_rule(rules.sgd, steps=steps)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="signature"):
        check_rule(lambda x: x)
