"""Steps of models on a device whose optimizer keeps its state in host memory, beside those over NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrays
import numpy as np

from oxigrad import optim

Model = dict[str, Any]
Make = Callable[..., Any]


def there(model: Model) -> Model:
    """The arrays of a model on a device."""
    return {name: arrays.Array(np.array(x)) for name, x in model.items()}


def here(model: Model) -> Model:
    """Copies of the arrays in host memory."""
    return {name: arrays.host(x) for name, x in model.items()}


def assert_same_bits(found: Model, expected: Model) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        a, b = arrays.host(found[name]), np.asarray(value)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes(), name


def state_of(opt: Any) -> Model:
    """The arrays of the slots by path and name, all of which are in host memory."""
    found = {}
    for path, own in opt.slots.items():
        for name, slot in own.items():
            parts = slot.arrays if isinstance(slot, optim.Quantized) else {"": slot}
            found |= {f"{path} {name} {part}": array for part, array in parts.items()}
    assert all(isinstance(array, np.ndarray) for array in found.values())
    return found


def follow(make: Make, model: Model, gradients: Any, steps: int = 3) -> tuple[Any, Any, Model, Model]:
    """Steps of a model on a device and of one in host memory, which are compared after each; ``gradients`` are by the number of the step."""
    on_device, on_host = there(model), {name: np.array(x) for name, x in model.items()}
    opt, other = make(state_device="host"), make()
    for number in range(steps):
        g = gradients(number)
        is_given = {name: x is not None for name, x in g.items()}
        moved = {name: arrays.Array(x) if isinstance(x, np.ndarray) else x for name, x in g.items()}
        assert opt.update(on_device, moved) is on_device
        other.update(on_host, {name: x for name, x in g.items() if is_given[name]} if all(is_given.values()) else g)
        assert_same_bits(here(on_device), on_host)
        assert_same_bits(state_of(opt), state_of(other))
    assert (opt.step, opt.skipped) == (other.step, other.skipped)
    return opt, other, on_device, on_host


def drawn(model: Model) -> Callable[[int], Model]:
    """Normal gradients of a model, by the number of the step."""

    def gradients(number: int) -> Model:
        generator = np.random.default_rng(100 + number)
        return {n: np.asarray(generator.standard_normal(x.shape)).astype(x.dtype) for n, x in model.items()}

    return gradients


def problem(dtype: Any = "float32") -> Model:
    """Leaves of several shapes, one of them with as many numbers as a state of 8 bits asks for."""
    generator = np.random.default_rng(0)
    shapes = {"w": (70, 64), "b": (3,), "none": (2, 0), "one": ()}
    return {name: np.asarray(generator.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}
