"""Parts of chains that read whole leaves, over several optimizers, by every way to a step: the bits of a plain step over NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from host_state import Make, assert_same_bits, drawn, follow, problem, state_of
from oxigrad import optim, xp

PARTS: dict[str, Callable[[], Any]] = {
    "orthogonalize": lambda: optim.Orthogonalize(iterations=2),
    "hyperball": optim.Hyperball,
    "rows": lambda: optim.NormalizeRows(0.8),
    "shape": lambda: optim.ScaleByShape(base=0.5),
    "cautious": lambda: optim.WeightDecay(0.1, cautious=True),
}
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "Adam": lambda: optim.Adam(0.1),
    "SGD": lambda: optim.SGD(0.1, momentum=0.9),
    "LAMB": lambda: optim.LAMB(0.1),  # called on arrays
}
PAIRS = pytest.mark.parametrize(("part", "name"), [(part, name) for part in PARTS for name in OPTIMIZERS])


def chain_of(part: str, name: str) -> Make:
    return lambda **options: optim.chain(OPTIMIZERS[name](), PARTS[part](), **options)


def stepped(opt: Any, model: dict[str, Any], numbers: range) -> dict[str, Any]:
    for number in numbers:
        opt.update(model, drawn(model)(number))
    return model


@PAIRS
def test_state_in_host_memory(part: str, name: str) -> None:
    model = problem()
    follow(chain_of(part, name), model, drawn(model))


@PAIRS
def test_state_in_a_saved_file(part: str, name: str, tmp_path: Path) -> None:
    make = chain_of(part, name)
    opt, expected = make(), problem()
    stepped(opt, expected, range(4))
    first, again, model = make(), make(), problem()
    stepped(first, model, range(2))
    first.save(tmp_path / "saved.safetensors")
    again.load(tmp_path / "saved.safetensors")
    stepped(again, model, range(2, 4))
    assert_same_bits(model, expected)
    assert_same_bits(state_of(again), state_of(opt))


@PAIRS
def test_steps_in_the_backward(part: str, name: str) -> None:
    def loss(model: dict[str, Any]) -> Any:
        return xp.sum(xp.tanh(model["w"] @ model["v"]) ** 2) + xp.sum(model["b"] ** 2)

    found = []
    for in_backward in (True, False):
        opt, model = chain_of(part, name)(), {"w": problem()["w"], "v": problem()["w"].T[:, :9].copy(), "b": np.ones(3)}
        losses = [float(opt.minimize(loss, model, in_backward=in_backward)) for _ in range(3)]
        found.append((losses, model, state_of(opt)))
    assert found[0][0] == found[1][0]
    assert_same_bits(found[0][1], found[1][1])
    assert_same_bits(found[0][2], found[1][2])


@pytest.mark.parametrize("part", ["orthogonalize", "hyperball", "rows", "shape"])
@pytest.mark.parametrize("dtype", ["8bit", "4bit"])
def test_codes_are_refused_where_the_rule_is_called_on_arrays(part: str, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"slot_dtype='{dtype}' would have no effect, since its rule is called on"):
        chain_of(part, "Adam")(slot_dtype=dtype)
