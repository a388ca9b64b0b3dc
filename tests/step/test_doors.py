"""The ways to an optimizer's step (`oxigrad.optim` with its two forms, `oxigrad.torch`, `oxigrad.optax`) take the same step.

A table of situations runs through each: the results are those of `Optimizer.update`, and an error names the parameter and changes nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from doors import CALLED, DOORS, KERNEL, OPTIMIZERS, Apply, Door, OfTensors, Tensors, Update, UpdateTensors, drawn
from oxigrad.step.arrays.sparse_rows import SparseRows


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
    slot = one.array_slot()
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
        slot = each.array_slot()
        each.set_slot("b", slot, np.full((2, 4), 0.25, np.float32))
        each.step(drawn(3))
    np.testing.assert_allclose(one.parameters()["b"], reference.parameters()["b"], rtol=1e-4, atol=1e-5)
    assert np.all(one.parameters()["b"] != 0.0)


# --- parameters that come, go, or stay as they are ---------------------------------------------------------------------------


def assert_close(one: Door, reference: Door, *paths: str) -> None:
    """The parameters and slots at some paths, by default all of the reference, are those of the reference."""
    for path in paths or reference.parameters():
        np.testing.assert_allclose(one.parameter(path), reference.parameter(path), rtol=1e-4, atol=1e-5, err_msg=path)
        for slot, expected in reference.slots_of(path).items():
            found = one.slots_of(path)[slot]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"{path} {slot}")


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop", "Lion"])
@pytest.mark.parametrize(
    "kind", ["update", "update-read-only", "update-torch", "apply", "workers", "torch", "torch-in-backward"]
)
def test_a_parameter_without_a_gradient_stays_and_misses_the_step(name: str, kind: str) -> None:
    """By the step that its rule reads: it goes on as if the step had not been. The trees of optax have every gradient."""
    made, module = DOORS[kind]
    pytest.importorskip(module)
    one, reference = made(name, OPTIMIZERS[name], drawn(0)), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3):
        is_missing = seed == 2
        before = np.array(one.parameter("b"))
        one.step({**drawn(seed), "b": None} if is_missing else drawn(seed))
        assert np.array_equal(one.parameter("b"), before) == is_missing
        if not is_missing:
            reference.step(drawn(seed))
    np.testing.assert_allclose(one.parameter("b"), reference.parameter("b"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_array_at_two_key_paths_is_one_parameter(name: str, door: Any) -> None:
    """Its gradients are added up."""
    values = {**drawn(0), "a": drawn(0)["b"]}
    one = door(name, values, tied=True)
    reference = Update(name, OPTIMIZERS[name], {path: values[path] for path in "bc"})
    for seed in (1, 2, 3):
        grads = {**drawn(seed), "a": drawn(seed + 10)["b"]}
        one.step(grads)
        reference.step({"b": grads["a"] + grads["b"], "c": grads["c"]})
    assert_close(one, reference, "c")
    np.testing.assert_allclose(one.parameter("b"), reference.parameter("b"), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(one.parameter("a"), one.parameter("b"))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_frozen_parameter_stays(name: str, door: Any) -> None:
    one = door(name, frozen="b")
    reference = Update(name, OPTIMIZERS[name], {path: value for path, value in drawn(0).items() if path != "b"})
    for seed in (1, 2, 3):
        one.step(drawn(seed))
        reference.step({path: g for path, g in drawn(seed).items() if path != "b"})
    assert_close(one, reference)
    np.testing.assert_array_equal(one.parameter("b"), drawn(0)["b"])
    assert not one.slots_of("b")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_that_is_added_begins_its_steps(name: str, door: Any) -> None:
    one, first, second = door(name), Update(name, OPTIMIZERS[name], drawn(0)), None
    for seed in range(1, 6):
        if seed == 3:
            one.add("d", drawn(9)["b"])
            second = Update(name, OPTIMIZERS[name], {"d": drawn(9)["b"]})
        one.step({**drawn(seed), "d": drawn(seed + 10)["b"]} if second else drawn(seed))
        first.step(drawn(seed))
        if second:
            second.step({"d": drawn(seed + 10)["b"]})
    assert second is not None
    assert_close(one, first)
    assert_close(one, second)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_others_go_on_after_a_parameter_is_removed(name: str, door: Any) -> None:
    one, reference = door(name), Update(name, OPTIMIZERS[name], drawn(0))
    for seed in (1, 2, 3, 4):
        one.step({path: g for path, g in drawn(seed).items() if seed < 3 or path != "b"})
        reference.step(drawn(seed))
        if seed == 2:
            one.remove("b")
    assert_close(one, reference, "a", "c")


@pytest.mark.parametrize("change", ["appear", "vanish"])
@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_another_structure_is_refused_and_nothing_changes(name: str, change: str, door: Any) -> None:
    """A parameter that comes or goes without a word to the optimizer, or to its state."""
    one = door(name)
    for seed in (1, 2):
        one.step(drawn(seed))
    grads: dict[str, Any] = drawn(3)
    if change == "appear":
        one.appear("d", drawn(9)["b"])
        grads["d"] = drawn(9)["b"]
    else:
        one.vanish("b")
        del grads["b"]
    before = one.held(without="d")
    with pytest.raises((ox.StructureError, ox.StateError), match="d|b"):
        one.step(grads)
    assert one.held(without="d") == before


@pytest.mark.parametrize("name", [KERNEL, CALLED])
def test_the_number_of_steps_that_was_set_is_read(name: str, door: Any) -> None:
    one, reference = door(name), Apply(name, OPTIMIZERS[name], drawn(0))
    for each in (one, reference):
        each.step(drawn(1))
        each.set_step(7)
        each.step(drawn(2))
    assert_close(one, reference)


# --- tables of rows -----------------------------------------------------------------------------------------------------------


TABLES: dict[str, tuple[type[Door], str, dict[str, Any]]] = {
    "update": (Update, "Adam", {"sparse": "lazy", "epsilon_mode": "hat"}),
    "update-torch": (UpdateTensors, "Adam", {"sparse": "lazy", "epsilon_mode": "hat"}),
    "torch": (Tensors, "SparseAdam", {}),
}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Callable[..., Door]:
    """Each way to a step of tables in turn, and the same rule on whole arrays."""
    kind, name, arguments = TABLES[request.param]
    pytest.importorskip("numpy" if kind is Update else "torch")
    return lambda: kind(name, arguments, {"a": drawn(0)["b"], "b": drawn(1)["b"]})


def rows_for(one: Door, seed: int, *indices: int) -> Any:
    """A gradient of these rows, and as an array."""
    dense = np.zeros((2, 4), np.float32)
    values = drawn(seed)["b"]
    for index in indices:
        dense[index] += values[index]
    if isinstance(one, Tensors):
        torch = importlib.import_module("torch")
        return torch.sparse_coo_tensor(
            [indices], torch.tensor(values[[*indices]]), (2, 4), check_invariants=False
        ), dense
    made = one.array(values[[*indices]])
    return SparseRows(np.array(indices), made, (2, 4)), dense


def test_rows_with_a_gradient_are_updated(table: Any) -> None:
    """By the step of the dense gradient where all rows are there; other rows stay."""
    one = table()
    reference = Update("Adam", {"epsilon_mode": "hat"}, {path: np.array(p) for path, p in one.parameters().items()})
    for seed in (1, 2):
        a, b = rows_for(one, seed, 0, 1), rows_for(one, seed + 10, 1, 0)
        one.step({"a": a[0], "b": b[0]})
        reference.step({"a": a[1], "b": b[1]})
    assert_close(one, reference)
    before = np.array(one.parameter("b")[1])
    one.step({"a": rows_for(one, 3, 0)[0], "b": rows_for(one, 4, 0)[0]})
    np.testing.assert_array_equal(one.parameter("b")[1], before)


@pytest.mark.parametrize("steps", [0, 2])
def test_tables_that_overlap_are_refused_and_nothing_changes(steps: int, table: Any) -> None:
    one = table()
    for seed in range(steps):
        one.step({path: rows_for(one, seed, 0)[0] for path in "ab"})
    if isinstance(one, OfTensors):
        one._params["a"].data = one._params["b"].data
    else:
        one._params["a"] = one._params["b"][::-1]
    before = one.held()
    with pytest.raises(ox.AliasError):
        one.step({path: rows_for(one, 3, 1)[0] for path in "ab"})
    assert one.held() == before


@pytest.mark.parametrize("steps", [0, 2])
def test_a_dense_gradient_beside_rows_is_taken_whole_or_not_at_all(steps: int, table: Any) -> None:
    one, other = table(), table()
    for seed in range(steps):
        for each in (one, other):
            each.step({path: rows_for(each, seed, 0)[0] for path in "ab"})
    before, given = one.held(), {"a": rows_for(one, 3, 0)[0], "b": drawn(4)["b"]}
    if isinstance(one, Tensors):
        with pytest.raises(RuntimeError, match="does not support dense gradients"):
            one.step(given)
        assert one.held() == before
        return
    one.step(given)
    every = other.array(drawn(4)["b"])
    other.step({"a": rows_for(other, 3, 0)[0], "b": SparseRows(np.array([0, 1]), every, (2, 4))})
    assert one.held() == other.held()
