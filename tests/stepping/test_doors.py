"""The ways to an optimizer's step (`oxigrad.optim` with its two forms, `oxigrad.torch`, `oxigrad.optax`) take the same step.

A table of situations runs through each: the results are those of `Optimizer.update`, and an error names the parameter and changes nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

Values = dict[str, np.ndarray]

SHAPES = {"a": (3,), "b": (2, 4), "c": ()}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "AdamW": {"weight_decay": 0.1},
    "RMSprop": {"momentum": 0.5},
    "Lion": {"weight_decay": 0.1},
    "LAMB": {"weight_decay": 0.1},
}


def drawn(seed: int) -> Values:
    generator = np.random.default_rng(seed)
    return {
        name: np.asarray(generator.standard_normal(shape), np.float32).reshape(shape) for name, shape in SHAPES.items()
    }


class Door:
    """A way to the step of an optimizer: parameters, a step with given gradients, and all arrays that there are."""

    # The pattern of the name of parameter "b" in errors.
    b = "b"

    def step(self, grads: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def parameters(self) -> Values:
        raise NotImplementedError

    def slots(self) -> dict[str, dict[str, Any]]:
        raise NotImplementedError

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        raise NotImplementedError

    def move(self) -> None:
        """Gives parameter "b" other memory, with the same values."""
        raise NotImplementedError

    def overlap(self) -> None:
        """Makes parameter "a" a part of the memory of "b"; skips the test where that cannot be."""
        pytest.skip("these arrays share no memory that can be written")

    def of_own_memory(self) -> Any:
        """An array in the memory of parameter "b"; skips the test where there is none."""
        pytest.skip("these arrays have no memory that can be written")

    def held(self) -> dict[str, bytes]:
        """The bytes of all parameters and slots."""
        slots = {f"{path}.{name}": slot for path, own in self.slots().items() for name, slot in own.items()}
        return {name: np.asarray(array).tobytes() for name, array in {**self.parameters(), **slots}.items()}


class Update(Door):
    """`Optimizer.update` on NumPy arrays."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values) -> None:
        self._opt, self._model = getattr(optim, name)(0.1, **arguments), {n: v.copy() for n, v in values.items()}

    def step(self, grads: Mapping[str, Any]) -> None:
        self._model = self._opt.update(self._model, dict(grads))

    def move(self) -> None:
        self._model["b"] = self._model["b"].copy()

    def overlap(self) -> None:
        self._model["a"] = self._model["b"].reshape(-1)[:3]

    def of_own_memory(self) -> Any:
        return self._model["b"]

    def parameters(self) -> Values:
        return self._model

    def slots(self) -> dict[str, dict[str, Any]]:
        return {path: dict(own) for path, own in self._opt.slots.items()}

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._opt.slots[path][name] = value


class UpdateReadOnly(Update):
    """`Optimizer.update` on arrays that may not be written, which it replaces."""

    def step(self, grads: Mapping[str, Any]) -> None:
        for array in self._model.values():
            array.setflags(write=False)
        super().step(grads)

    def overlap(self) -> None:
        pytest.skip("arrays that are replaced may share memory")

    of_own_memory = overlap


class Apply(Door):
    """`Optimizer.apply` on NumPy arrays."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values) -> None:
        self._opt, self._params = getattr(optim, name)(0.1, **arguments), {n: v.copy() for n, v in values.items()}
        self._state = self._opt.init(self._params)

    def step(self, grads: Mapping[str, Any]) -> None:
        self._params, self._state = self._opt.apply(self._params, dict(grads), self._state)

    def move(self) -> None:
        self._params = {**self._params, "b": self._params["b"].copy()}

    def overlap(self) -> None:
        self._params = {**self._params, "a": self._params["b"].reshape(-1)[:3]}

    def parameters(self) -> Values:
        return self._params

    def slots(self) -> dict[str, dict[str, Any]]:
        return self._state["slots"]

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._state["slots"][path][name] = value


class Tensors(Door):
    """A class of `oxigrad.torch`."""

    b = r"param_groups\[0\]\['params'\]\[1\]"

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values) -> None:
        self._torch, own = importlib.import_module("torch"), importlib.import_module("oxigrad.torch")
        self._params = {n: self._torch.nn.Parameter(self._torch.tensor(v)) for n, v in values.items()}
        kind = getattr(own, name)
        preset = optim.__dict__[name](0.1, **arguments).get_config()
        places = kind.entry.places
        keywords: dict[str, Any] = {}
        for ours, (key, item) in places.items():
            value = preset.get(ours, kind.entry.rule.defaults[ours])
            if item is not None:
                keywords.setdefault(key, {})[item] = value
            elif key in kind.__signature__.parameters:
                keywords[key] = value
        keywords = {k: tuple(v[i] for i in sorted(v)) if isinstance(v, dict) else v for k, v in keywords.items()}
        self._opt = kind(list(self._params.values()), **keywords)

    def step(self, grads: Mapping[str, Any]) -> None:
        for name, p in self._params.items():
            p.grad = None
            if grads[name] is None:
                continue
            g = grads[name]
            if not isinstance(g, self._torch.Tensor):
                g = self._torch.from_numpy(g) if g.flags.writeable else self._torch.tensor(g)
            if g.shape != p.shape or g.dtype != p.dtype:
                p.grad_dtype = None
                stand_in = p.detach().clone()
                p.grad = stand_in
                stand_in.data = g
            else:
                p.grad = g
        self._opt.step()

    def move(self) -> None:
        self._params["b"].data = self._params["b"].data.clone()

    def overlap(self) -> None:
        self._params["a"].data = self._params["b"].data.view(-1)[:3]

    def of_own_memory(self) -> Any:
        return self._params["b"].data

    def parameters(self) -> Values:
        return {name: p.detach().numpy() for name, p in self._params.items()}

    def _key(self, slot: str) -> str:
        return self._opt.entry.key_of_slot(slot)

    def slots(self) -> dict[str, dict[str, Any]]:
        rule = self._opt.entry.rule
        return {
            name: {
                slot.name: self._opt.state[p][self._key(slot.name)].numpy()
                for slot in rule.slots
                if self._key(slot.name) in self._opt.state[p]
            }
            for name, p in self._params.items()
        }

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._opt.state[self._params[path]][self._key(name)] = self._torch.tensor(value)


class Pytrees(Door):
    """A transformation of `oxigrad.optax`, outside of a compiled function."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values) -> None:
        self._jnp, own = importlib.import_module("jax.numpy"), importlib.import_module("oxigrad.optax")
        self._tx = own.transformation(getattr(optim, name)(0.1, **arguments))
        self._params = {n: self._jnp.asarray(v) for n, v in values.items()}
        self._state = self._tx.init(self._params)
        self._apply = self._tx.apply

    def step(self, grads: Mapping[str, Any]) -> None:
        given = {name: self._jnp.asarray(g) for name, g in grads.items()}
        self._params, self._state = self._apply(given, self._state, self._params)

    def move(self) -> None:
        self._params = {**self._params, "b": self._jnp.array(self._params["b"], copy=True)}

    def parameters(self) -> Values:
        return {name: np.asarray(p) for name, p in self._params.items()}

    def slots(self) -> dict[str, dict[str, Any]]:
        slots = self._state.slots.items()
        return {path: {name: tree[path] for name, tree in slots if tree[path] is not None} for path in SHAPES}

    def set_slot(self, path: str, name: str, value: np.ndarray) -> None:
        self._state.slots[name][path] = self._jnp.asarray(value)


class CompiledPytrees(Pytrees):
    """A transformation of `oxigrad.optax` under ``jax.jit``."""

    def __init__(self, name: str, arguments: Mapping[str, Any], values: Values) -> None:
        super().__init__(name, arguments, values)
        self._apply = importlib.import_module("jax").jit(self._tx.apply)


DOORS: dict[str, tuple[type[Door], str]] = {
    "update": (Update, "numpy"),
    "update-read-only": (UpdateReadOnly, "numpy"),
    "apply": (Apply, "numpy"),
    "torch": (Tensors, "torch"),
    "optax": (Pytrees, "optax"),
    "optax-jit": (CompiledPytrees, "optax"),
}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Callable[..., Door]:
    """Each way in turn, as a function of the optimizer's name."""
    kind, module = DOORS[request.param]
    pytest.importorskip(module)
    return lambda name, values=None: kind(name, OPTIMIZERS[name], values or drawn(0))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_door_takes_the_same_steps(name: str, door: Any) -> None:
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in range(1, 4):
        one.step(drawn(seed))
        reference.step(drawn(seed))
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameters()[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)
    assert one.slots().keys() == reference.slots().keys()
    for path, slots in reference.slots().items():
        for slot, expected in slots.items():
            np.testing.assert_allclose(
                one.slots()[path][slot], expected, rtol=1e-4, atol=1e-5, err_msg=f"{path} {slot}"
            )


# Gradients of parameter "b" that no rule takes, and what the error says.
WRONG = {
    "shape": (np.zeros((4, 2), np.float32), ox.ShapeError, r"gradient has shape \(4, 2\), the parameter \(2, 4\)"),
    "broadcast": (np.zeros(4, np.float32), ox.ShapeError, r"gradient has shape \(4,\), the parameter \(2, 4\)"),
    "number": (np.zeros((), np.float32), ox.ShapeError, r"gradient has shape \(\), the parameter \(2, 4\)"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 2])
def test_a_wrong_gradient_is_named_and_nothing_changes(name: str, wrong: str, steps: int, door: Any) -> None:
    one = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
    gradient, error, message = WRONG[wrong]
    if steps:
        before = one.held()
    with pytest.raises(error, match=f"^{one.b}: {message}"):
        one.step({**drawn(5), "b": gradient})
    if steps:
        assert one.held() == before
        one.step(drawn(6))
        assert one.held() != before


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop", "Lion", "LAMB"])
def test_a_slot_of_another_shape_is_named_and_nothing_changes(name: str, door: Any) -> None:
    one = door(name)
    for seed in (1, 2):
        one.step(drawn(seed))
    slot = next(name for name, array in one.slots()["b"].items() if np.shape(array))
    kept = np.array(one.slots()["b"][slot])
    parameters = {path: array.copy() for path, array in one.parameters().items()}
    with pytest.raises((ox.ShapeError, ox.StateError), match=f"^{one.b}: "):  # noqa: PT012 - by some on assignment
        one.set_slot("b", slot, np.zeros(8, np.float32))
        one.step(drawn(3))
    for path, array in parameters.items():
        np.testing.assert_array_equal(one.parameters()[path], array)
    one.set_slot("b", slot, kept)
    one.step(drawn(3))
    reference = Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        reference.step(drawn(seed))
    np.testing.assert_allclose(one.parameters()["b"], reference.parameters()["b"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Lion"])
def test_a_slot_that_is_replaced_is_read(name: str, door: Any) -> None:
    """A slot assigned between two steps counts, by whichever memory it has."""
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    for each in (one, reference):
        for seed in (1, 2):
            each.step(drawn(seed))
        slot = next(name for name, array in each.slots()["b"].items() if np.shape(array))
        each.set_slot("b", slot, np.full((2, 4), 0.25, np.float32))
        each.step(drawn(3))
    np.testing.assert_allclose(one.parameters()["b"], reference.parameters()["b"], rtol=1e-4, atol=1e-5)
    assert np.all(one.parameters()["b"] != 0.0)


# --- memory, and parameters that stay as they are --------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_that_moves_is_updated_where_it_lies(name: str, door: Any) -> None:
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        one.step(drawn(seed))
        reference.step(drawn(seed))
        one.move()
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameters()[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 2])
def test_parameters_that_overlap_are_refused_and_nothing_changes(name: str, steps: int, door: Any) -> None:
    one = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
    one.overlap()
    before = {path: np.array(value) for path, value in one.parameters().items()}
    with pytest.raises((ox.AliasError, ox.ArrayMemoryError)):
        one.step(drawn(5))
    for path, value in before.items():
        np.testing.assert_array_equal(one.parameters()[path], value)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 2])
def test_a_gradient_in_the_memory_of_its_parameter_is_refused(name: str, steps: int, door: Any) -> None:
    one = door(name)
    for seed in range(steps):
        one.step(drawn(seed + 1))
    before = {path: np.array(value) for path, value in one.parameters().items()}
    with pytest.raises(ox.AliasError):
        one.step({**drawn(5), "b": one.of_own_memory()})
    for path, value in before.items():
        np.testing.assert_array_equal(one.parameters()[path], value)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_of_every_layout_are_read(name: str, door: Any) -> None:
    """Every second element of an array, transposed and broadcast ones."""
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    layouts = [
        lambda g: {**g, "b": np.repeat(g["b"], 2, axis=1)[:, ::2]},
        lambda g: {**g, "b": np.ascontiguousarray(g["b"].T).T},
        lambda g: {**g, "b": np.broadcast_to(np.float32(0.5), (2, 4))},
    ]
    for seed, layout in enumerate(layouts, 1):
        given = layout(drawn(seed))
        one.step(given)
        reference.step({path: np.array(g) for path, g in given.items()})
    for path, expected in reference.parameters().items():
        np.testing.assert_allclose(one.parameters()[path], expected, rtol=1e-4, atol=1e-5, err_msg=path)


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop", "Lion"])
@pytest.mark.parametrize("kind", ["update", "update-read-only", "apply", "torch"])
def test_a_parameter_without_a_gradient_stays_and_misses_the_step(name: str, kind: str) -> None:
    """By the step that its rule reads: it goes on as if the step had not been. The trees of optax have every gradient."""
    made, module = DOORS[kind]
    pytest.importorskip(module)
    one, reference = made(name, OPTIMIZERS[name], drawn(0)), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        is_missing = seed == 2
        before = np.array(one.parameters()["b"])
        one.step({**drawn(seed), "b": None} if is_missing else drawn(seed))
        assert np.array_equal(one.parameters()["b"], before) == is_missing
        if not is_missing:
            reference.step(drawn(seed))
    np.testing.assert_allclose(one.parameters()["b"], reference.parameters()["b"], rtol=1e-4, atol=1e-5)
