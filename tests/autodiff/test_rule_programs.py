"""Programs of structured rules: one serves all shapes, and a rule that reads more of its arguments has none."""

import itertools
from typing import Any

import numpy as np
import pytest
from test_structured import array, own_frames, python_rule

import oxigrad as ox
from oxigrad import _core
from oxigrad.autodiff.rules import symbols

ARGUMENTS = {
    "g": ("array", 2, np.dtype(float)),
    "x": ("array", 2, np.dtype(complex)),
    "x_shape": ("shape", 3),
    "axis": ("known", (0, -1)),
    "key": ("datum",),
}


def traced(rule: Any) -> Any:
    """The program of a rule whose parameters have the names above."""
    names = rule.__code__.co_varnames[: rule.__code__.co_argcount]
    return symbols.traced(rule, [ARGUMENTS[name] for name in names])


UNTRACEABLE = {
    "the truth of a size": lambda g, x_shape: g if x_shape[0] else -g,
    "a comparison of a size": lambda g, x_shape: g if x_shape[0] == 3 else -g,
    "a comparison of shapes": lambda g, x_shape: g if x_shape == (2, 3, 4) else -g,
    "a hash of a size": lambda g, x_shape: g * len({*x_shape}),
    "a count of a size": lambda g, x_shape: g * len(range(x_shape[0])),
    "a size as a number": lambda g, x_shape: g * float(x_shape[0]),
    "a size in an array": lambda g, x_shape: g * np.ones(x_shape),
    "a key": lambda g, key: g if key == 0 else -g,
    "the length of a key": lambda g, key: g * len(key),
    "the parts of a key": lambda g, key: g * next(iter(key)),
    "a value": lambda g, x: g if x else -g,
    "the values": lambda g, x: sum(g * each for each in x),
    "an array": lambda g, x: np.asarray(x),
    "the shape of a product of arrays": lambda g, x: g if len((g * x).shape) else -g,
    "the dtype of a product": lambda g, x: g if (g * x).dtype == float else -g,
    "a constant array": lambda g: g * np.ones(3),
    "an array on the left": lambda g: np.ones(3) * g,
    "a function of NumPy": lambda g: np.fft.fftn(g),
    "a ufunc of NumPy": lambda g: np.exp(g),
    "sizes in an array": lambda g, x_shape: g * np.array(x_shape)[0],
    "a result that is no array": lambda g: 0.0,
    "an error": lambda g: g.unknown,
}


@pytest.mark.parametrize("what", UNTRACEABLE)
def test_a_rule_that_reads_more_has_no_program(what) -> None:
    assert traced(UNTRACEABLE[what]) is None


def test_a_program_names_the_arguments_whose_dtypes_it_depends_on() -> None:
    assert traced(lambda g, x: g * x)[3] == []
    assert traced(lambda g, x: -g if x.dtype == complex else g)[3] == [1]


def test_a_scaled_array_has_its_shape() -> None:
    assert traced(lambda g: g * 2.0 if len((-g * 3.0).shape) == 2 else -g) is not None


# Ops with attributes for a shape of any sizes.
ROWS = {
    "sum": lambda shape: {"axis": 1, "keepdims": False},
    "mean": lambda shape: {"axis": (0, 2), "keepdims": True},
    "max": lambda shape: {"axis": -1, "keepdims": False},
    "reshape": lambda shape: {"shape": (shape[0] * shape[1], shape[2])},
    "expand_dims": lambda shape: {"axis": -1},
    "permute_dims": lambda shape: {"axes": (1, 2, 0)},
    "broadcast_to": lambda shape: {"shape": (2, *shape)},
    "index": lambda shape: {"key": (slice(None), shape[1] - 1)},
    "flip": lambda shape: {"axis": 1},
    "cumulative_sum": lambda shape: {"axis": 2},
}
SHAPES = [*itertools.product((1, 2, 5), (1, 3), (1, 4))]


@pytest.mark.parametrize("name", ROWS)
def test_one_program_serves_all_shapes(name) -> None:
    for at, shape in enumerate(SHAPES):
        x, named = array(*shape), ROWS[name](shape)
        with ox.Tape() as tape:
            variable = tape.watch(x)
            y = _core.record(name, [variable], named)
        g = array(*y.shape, seed=3)
        (pulled,), frames = own_frames(lambda tape=tape, y=y, v=variable, g=g: tape.gradient(y, [v], g))
        assert not at or "traced" not in frames
        expected = python_rule(name, 0, g, (x,), y.value, named)
        assert pulled.tobytes() == np.asarray(expected).tobytes()


def test_more_programs_than_are_kept_give_the_same_gradients() -> None:
    x = array(2, 2, 2, 2, 2)
    for key in itertools.islice(itertools.product(range(-5, 5), repeat=3), 400):
        axis = tuple(dict.fromkeys(key))
        if len({a % 5 for a in axis}) < len(axis):
            continue
        gradient = ox.grad(lambda x, axis=axis: ox.xp.sum(ox.xp.flip(x, axis=axis) * x[::-1]))(x)
        np.testing.assert_array_equal(gradient, np.flip(x[::-1], axis) + np.flip(x, axis)[::-1])
