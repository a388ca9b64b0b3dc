"""Trees of 1,000 leaves: dataclasses with lists of dataclasses and dicts. Results are asserted, then timed."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from oxigrad import tree


@dataclasses.dataclass
class Dense:
    weight: Any
    bias: Any


@dataclasses.dataclass
class Block:
    layers: list[Dense]
    norm: dict[str, Any]
    activation: None = None


def array() -> np.ndarray:
    return np.zeros(2, np.float32)


@pytest.fixture
def model() -> dict[str, list[Block]]:
    def block() -> Block:
        return Block([Dense(array(), array()) for _ in range(4)], {"scale": array(), "shift": array()})

    return {"blocks": [block() for _ in range(100)]}


def test_flatten(benchmark, model):
    leaves, structure = tree.flatten(model)
    assert len(leaves) == len(structure) == 1000
    assert leaves[-1] is model["blocks"][-1].norm["shift"]
    benchmark(tree.flatten, model)


def test_unflatten(benchmark, model):
    leaves, structure = tree.flatten(model)
    assert tree.flatten(tree.unflatten(structure, leaves))[1] == structure
    benchmark(tree.unflatten, structure, leaves)


def test_structures_compare(benchmark, model):
    one, other = (tree.flatten(model)[1] for _ in range(2))
    assert one == other
    benchmark(one.__eq__, other)


def test_paths(benchmark, model):
    structure = tree.flatten(model)[1]
    assert str(structure.paths()[10]) == "blocks.1.layers.0.weight"
    benchmark(structure.paths)


def test_parameters(benchmark, model):
    assert len(tree.parameters(model)) == 1000
    benchmark(tree.parameters, model)


def test_map(benchmark, model):
    assert tree.map(np.shape, model)["blocks"][0].layers[0].weight == (2,)
    benchmark(tree.map, id, model)


def test_read_through_a_path(benchmark, model):
    path = tree.path("blocks.99.layers.3.bias", model)
    assert path(model) is model["blocks"][99].layers[3].bias
    benchmark(path, model)


def test_write_through_a_path(benchmark, model):
    path, value = tree.path("blocks.99.layers.3.bias", model), array()
    assert path.set(model, value) is model
    assert model["blocks"][99].layers[3].bias is value
    benchmark(path.set, model, value)
