"""Recordings as files: transforms, copies, and errors that name what differs."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.optim import Adam

X = np.linspace(0.1, 0.9, 6)
WEIGHT = np.arange(6.0)

GRADIENTS: dict[str, Any] = {
    "tanh": lambda x: xp.sum(xp.tanh(x)),
    "maximum": lambda x: xp.sum(xp.maximum(x, x * x)),
    "where": lambda x: xp.sum(xp.where(x > 0.4, x * x, x)),
    "concat": lambda x: xp.sum(xp.concat([x, x * x]) ** 3),
    "logsumexp": lambda x: xp.log(xp.sum(xp.exp(x))),
    "std": xp.std,
    "solve": lambda x: xp.sum(xp.linalg.solve(np.eye(6) + xp.outer(x, x), x) ** 2),
    "prod": xp.prod,
    "norm": xp.linalg.vector_norm,
    "abs": lambda x: xp.sum(xp.abs(x - 0.4) ** 3),
    "broadcast": lambda x: xp.sum(xp.tanh(x[:, None] * x) * WEIGHT),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_loaded_gradient_takes_transforms(name, tmp_path):
    f = ox.grad(GRADIENTS[name])
    g = ox.record(f)
    g(X)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    direction = np.cos(WEIGHT)
    slope = (f(X + 1e-6 * direction) - f(X - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(ox.jvp(loaded, (X,), (direction,))[1], slope, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(ox.jacobian(loaded)(X) @ direction, slope, rtol=1e-5, atol=1e-8)
    batch = np.stack([X, X[::-1], 1.1 * X])
    np.testing.assert_allclose(ox.vmap(loaded)(batch), np.stack([*map(f, batch)]), rtol=1e-12)
    np.testing.assert_allclose(ox.vmap(ox.jacobian(loaded))(batch)[1] @ direction, ox.jacobian(f)(X[::-1]) @ direction)


@pytest.mark.parametrize("number", [0.5, np.float64(0.5), np.array(0.5), 0.5 + 0j])
def test_examples_of_a_batch_are_numbers_of_a_loaded_recording(number, tmp_path):
    g = ox.record(lambda x, c: x * c)
    g(X, number)
    g.save(tmp_path / "file")
    loaded = ox.vmap(ox.load_recording(tmp_path / "file"), in_axes=(None, 0))
    batch = np.array([1, 2], dtype=np.asarray(number).dtype)
    assert np.array_equal(loaded(X, batch), np.stack([X, 2 * X]))
    with pytest.raises(ox.RuleError, match=r"argument 1: found float32\[\], expected"):
        loaded(X, np.ones(2, np.float32))


def test_arguments_that_were_not_recorded_are_named(tmp_path):
    g = ox.record(lambda x, params, c=1.0: x * params["w"] * c)
    g(X, {"w": X})
    g(X, {"w": 2.0}, c=2.0)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    for args, named, text in [
        ((X, {"w": X[:5]}), {}, r"argument 1.w: found float64\[5\], expected float64\[6\]"),
        ((X.astype(np.float32), {"w": X}), {}, r"argument 0: found float32\[6\], expected float64\[6\]"),
        ((X, {"w": 2.0}), {"c": 2}, "argument c: found int, expected float"),
        ((X, {"v": X}), {}, "argument 1: expected a dict with the keys w, found a dict with the keys v"),
        ((X,), {}, "the arguments by position: expected a tuple of 2, found a tuple of 1"),
        ((X, {"w": X}), {"k": 1}, "the arguments by name: expected a dict of"),
    ]:
        with pytest.raises(ox.RuleError, match=text):
            loaded(*args, **named)


@dataclasses.dataclass
class Weights:
    w: Any


class Pair(NamedTuple):
    w: Any


@pytest.mark.parametrize("of", [Weights, Pair])
def test_containers_that_no_file_holds_are_named(of, tmp_path):
    for f, arg in ((lambda x: x.w * 2.0, of(X)), (of, X)):
        g = ox.record(f)
        g(arg)
        with pytest.raises(ox.StateError, match=rf"an object of {of.__name__}; a file holds lists, tuples and dicts"):
            g.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_file_of_an_optimizer_is_no_recording(tmp_path):
    opt = Adam(0.1)
    opt.update({"w": X.copy()}, {"w": X})
    opt.save(tmp_path / "file")
    with pytest.raises(ox.StateError, match=r"no recording: found the metadata \['oxigrad'\]"):
        ox.load_recording(tmp_path / "file")


@ox.record
def decorated(x: Any) -> Any:
    return x * 2.0


def test_copies_of_recorded_functions_are_the_function_itself(tmp_path):
    decorated(X)
    decorated.save(tmp_path / "file")
    for function in (decorated, ox.record(lambda x: x), ox.load_recording(tmp_path / "file")):
        assert copy.deepcopy({"f": function})["f"] is function
    assert copy.copy(decorated) is decorated
    assert pickle.loads(pickle.dumps(decorated)) is decorated  # noqa: S301 - our own bytes
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(ox.record(lambda x: x))
