"""Optimizers whose rules need no elementary function have the bits of NumPy's arithmetic."""

import math
from typing import Any

import numpy as np
import pytest

from oxigrad import optim, rules


class Arithmetic:
    """NumPy's functions that are rounded correctly; no others."""

    square, abs, sign, maximum, minimum = np.square, np.abs, np.sign, np.maximum, np.minimum

    @staticmethod
    def sqrt(x: Any) -> Any:
        """Of a number a number, which promotes no array."""
        return math.sqrt(x) if isinstance(x, float) else np.sqrt(x)

    @staticmethod
    def where(condition: bool, yes: float, no: float) -> float:
        """Of numbers a number."""
        return yes if condition else no


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("optimizer", "rule", "slots", "options"),
    [
        (optim.SGD, rules.sgd, [0.0], {"learning_rate": 0.1, "momentum": 0.9}),
        (optim.Lion, rules.lion, [0.0], {"learning_rate": 0.01}),
        (optim.Adagrad, rules.adagrad, [0.0], {"learning_rate": 0.1}),
        (optim.RMSprop, rules.rmsprop, [0.0, None, None], {"learning_rate": 0.01}),
        (optim.AdamW, rules.adamw, [0.0, 0.0, None], {"learning_rate": 0.01}),
    ],
)
def test_rules_of_arithmetic_have_the_bits_of_numpy(
    optimizer: Any, rule: Any, slots: list[Any], options: dict[str, float], dtype: str
) -> None:
    random = np.random.default_rng(0)
    model = {"w": random.standard_normal(1000).astype(dtype)}
    expected, ours = model["w"].copy(), optimizer(**options)
    state = [slot if slot is None else np.full_like(expected, slot) for slot in slots]
    for step in range(1, 8):
        gradient = random.standard_normal(1000).astype(dtype)
        ours.update(model, {"w": gradient})
        counted = {} if rule is rules.lion else {"step": step}
        expected, *state = rule(Arithmetic, expected, gradient, *state, **counted, **options)
        assert model["w"].tobytes() == expected.tobytes(), step
