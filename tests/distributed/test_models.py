"""Every wrapper takes the models that `oxigrad.optim` takes: a bare array too, which has the empty key path."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import job_methods
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim

STEPS = 4

# Wrappers whose results do not depend on timing, and those of which one worker's do not.
ALIKE: dict[str, Callable[[], Any]] = {
    "LargeBatch": lambda: distributed.LargeBatch(optim.Adam(0.1)),
    "LargeBatch of two": lambda: distributed.LargeBatch(optim.Adam(0.1), local_batches=2),
    "DataParallel": lambda: distributed.DataParallel(optim.Adam(0.1)),
    "its shards": lambda: distributed.DataParallel(optim.Adam(0.1), shard_state=True),
    "SyncReplicas": lambda: distributed.SyncReplicas(optim.Adam(0.1), 2, 2),
    "ModelAverage": lambda: distributed.ModelAverage(optim.Adam(0.1), 2),
    "DiLoCo": lambda: distributed.ModelAverage(optim.Adam(0.1), 2, outer=optim.SGD(0.7, momentum=0.9)),
    "streaming DiLoCo": lambda: distributed.ModelAverage(
        optim.Adam(0.1), 2, outer=optim.SGD(0.7, momentum=0.9), fragments=1, delay=1
    ),
    "ElasticAverage": lambda: distributed.ElasticAverage(optim.Adam(0.1), 2, moving_rate=0.2, synchronous=True),
    "DeepGradientCompression": lambda: distributed.DeepGradientCompression(
        optim.SGD(0.1), 0.5, momentum=0.9, weight_decay=0.1, min_size=1
    ),
    "its small parameters": lambda: distributed.DeepGradientCompression(optim.SGD(0.1, momentum=0.9), 0.5),
    "its all-reduce": lambda: distributed.DeepGradientCompression(optim.Adam(0.1), 1.0),
    "KFAC": lambda: job_methods.KFAC(optim.Adam(0.1)),
    "Shampoo": lambda: distributed.LargeBatch(optim.Shampoo(0.1)),
}
ALONE: dict[str, Callable[[], Any]] = {
    "Softsync": lambda: distributed.Softsync(optim.Adam(0.1), 1),
    "DropStale": lambda: distributed.DropStale(optim.Adam(0.1), 5),
    "SyncReplicas of one": lambda: distributed.SyncReplicas(optim.Adam(0.1), 1, 1),
    "asynchronous ElasticAverage": lambda: distributed.ElasticAverage(optim.Adam(0.1), 2, moving_rate=0.2),
}


@dataclasses.dataclass
class Layer:
    w: Any


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


# A model that holds an array in a place of its own, by kind.
PLACES: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda array: array,
    "read-only array": read_only,
    "list": lambda array: [array],
    "tuple": lambda array: (array,),
    "nested": lambda array: {"a": [Layer(array), "text"]},
    "dataclass": Layer,
    "dict with an empty key": lambda array: {"": array},
    "dict with the name of a count": lambda array: {".": array},
}


def trained(make: Callable[[], Any], place: Callable[[np.ndarray], Any], shape: tuple[int, ...], count: int) -> Any:
    """The arrays of a model after some steps on each worker, and the slots of its optimizer, in one list."""

    def worker(comm: Any) -> list[np.ndarray]:
        opt = make()
        model = place(np.linspace(1.0, 2.0, int(np.prod(shape))).reshape(shape))
        with opt:
            for step in range(STEPS):
                grads = np.linspace(-1.0 - step, 1.5 + comm.rank, int(np.prod(shape))).reshape(shape)
                model = opt.update(model, place(grads))
        state = opt.state_dict()
        (slots,) = state["slots"].values()
        return [*ox.tree.parameters(model).values(), *(slots[name] for name in sorted(slots))]

    return distributed.run(worker, workers=count, timeout=30)


@pytest.mark.parametrize("name", [*ALIKE, *ALONE])
def test_the_place_of_an_array_does_not_matter(name: str) -> None:
    make, count = (ALIKE[name], 2) if name in ALIKE else (ALONE[name], 1)
    for shape in ((3,), (), (2, 2)):
        expected = trained(make, lambda array: {"w": array}, shape, count)
        assert all(np.any(result[0] != np.linspace(1.0, 2.0, result[0].size).reshape(shape)) for result in expected)
        for kind, place in PLACES.items():
            found = trained(make, place, shape, count)
            for own, others in zip(found, expected, strict=True):
                assert len(own) == len(others), kind
                for a, b in zip(own, others, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=f"{name}: {kind} of {shape}")


@pytest.mark.parametrize("name", [*(name for name in ALIKE if name != "its shards"), "deterministic ElasticAverage"])
@pytest.mark.parametrize("bad", [0, 2])
def test_an_update_that_raises_loses_nothing_of_a_model_that_is_replaced(name: str, bad: int) -> None:
    """What workers exchange before a step reaches a tuple of read-only arrays, as it does a dict that is changed in place."""
    exchanges = {
        "ElasticAverage": lambda: distributed.ElasticAverage(optim.Adam(0.1), 1, moving_rate=0.2, synchronous=True),
        "deterministic ElasticAverage": lambda: distributed.ElasticAverage(
            optim.SGD(0.1), 1, moving_rate=0.2, deterministic=True
        ),
    }

    def trained_as(place: Callable[[np.ndarray], Any]) -> list[Any]:
        def worker(comm: Any) -> Any:
            opt = (ALIKE | exchanges)[name]()
            opt.nonfinite = "raise"
            model, errors = place(np.linspace(1.0, 2.0 + comm.rank, 6).reshape(2, 3)), 0
            for step in range(STEPS):
                grads = np.linspace(-1.0 - step, 1.5 + comm.rank, 6).reshape(2, 3)
                try:
                    updated = opt.update(model, place(grads * np.nan if step == bad and comm.rank == 1 else grads))
                    model = place(*ox.tree.parameters(updated).values())
                except ox.NonFiniteError:
                    errors += 1
            array = np.array(*ox.tree.parameters(model).values())
            opt.leave(model)
            return array, errors

        return distributed.run(worker, workers=2, timeout=30)

    expected, replaced = trained_as(lambda array: {"w": array}), trained_as(lambda array: (read_only(array),))
    assert expected[1][1] > 0 or (name, bad) == (
        "SyncReplicas",
        0,
    )  # which drops the first gradient of other parameters
    for (a, errors), (b, as_many) in zip(replaced, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert errors == as_many


# The byte orders of two arrays on each of two workers.
ORDERS: dict[str, list[str]] = {
    "other": [">>", ">>"],
    "both": ["><", "><"],
    "other on rank 0": [">>", "=="],
    "other on rank 1": ["==", ">>"],
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_byte_order_of_arrays_does_not_matter(name: str) -> None:
    def trained_in(orders: list[str]) -> list[list[np.ndarray]]:
        def worker(comm: Any) -> list[np.ndarray]:
            opt, of_w, of_b = ALIKE[name](), *(f"{order}f8" for order in orders[comm.rank])
            model = {"w": np.linspace(1.0, 2.0, 6).reshape(2, 3).astype(of_w), "b": np.ones(2, of_b)}
            with opt:
                for step in range(STEPS):
                    grads = np.linspace(-1.0 - step, 1.5 + comm.rank, 8)
                    model = opt.update(model, {"w": grads[:6].reshape(2, 3).astype(of_w), "b": grads[6:].astype(of_b)})
            return [model["w"].astype("=f8"), model["b"].astype("=f8")]

        return distributed.run(worker, workers=2, timeout=30)

    expected = trained_in(["==", "=="])
    for kind, orders in ORDERS.items():
        for own, others in zip(trained_in(orders), expected, strict=True):
            for a, b in zip(own, others, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13, err_msg=f"{name}: {kind}")


@pytest.mark.parametrize("name", [*ALIKE, *ALONE, "deterministic ElasticAverage"])
def test_a_model_of_empty_arrays_trains(name: str) -> None:
    makes = {
        **ALIKE,
        **ALONE,
        "deterministic ElasticAverage": lambda: distributed.ElasticAverage(optim.SGD(0.1), 1, deterministic=True),
    }

    def worker(comm: Any) -> Any:
        opt, model = makes[name](), {"w": np.zeros((0, 3))}
        with opt:
            for _ in range(STEPS):
                model = opt.update(model, {"w": np.zeros((0, 3))})
        return model["w"].shape

    count = 1 if name in ALONE else 2
    assert distributed.run(worker, workers=count, timeout=30) == [(0, 3)] * count


@pytest.mark.parametrize("name", [*ALIKE, *ALONE])
def test_tensors_and_modules_train_as_arrays(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, count = (ALIKE[name], 2) if name in ALIKE else (ALONE[name], 1)
    expected = trained(make, lambda array: [array], (3,), count)

    def worker(comm: Any) -> Any:
        module = torch.nn.ParameterList([torch.linspace(1.0, 2.0, 3, dtype=torch.float64)])
        bare = torch.linspace(1.0, 2.0, 3, dtype=torch.float64)
        for model in (module, bare):
            opt = make()
            with opt:
                for step in range(STEPS):
                    grads = torch.linspace(-1.0 - step, 1.5 + comm.rank, 3, dtype=torch.float64)
                    if model is bare:
                        bare = model = opt.update(model, grads)
                    else:
                        next(module.parameters()).grad = grads
                        opt.update(module)
        return next(module.parameters()).detach().numpy(), bare.numpy()

    for own, others in zip(distributed.run(worker, workers=count, timeout=30), expected, strict=True):
        for found in own:
            np.testing.assert_allclose(found, others[0], rtol=1e-12)


@pytest.mark.parametrize("name", [*ALIKE, *ALONE])
def test_a_state_of_a_bare_array_is_saved(name: str, tmp_path: Path) -> None:
    make = {**ALIKE, **ALONE}[name]
    if name == "SyncReplicas":
        make = ALONE["SyncReplicas of one"]

    def worker(comm: Any) -> None:
        opt, again, file = make(), make(), tmp_path / "state.safetensors"
        with opt:
            for _ in range(2):
                opt.update(np.ones(3), np.ones(3))
            opt.save(file)
            again.load(file)
        mine, its = opt.state_dict(), again.state_dict()
        assert mine["step"] == its["step"] and mine["slots"].keys() == its["slots"].keys() == {""}
        for key, slot in its["slots"][""].items():  # the centre of elastic averaging is not loaded on another wrapper
            np.testing.assert_array_equal(slot, mine["slots"][""][key], err_msg=key)
        assert its["slots"][""].keys() >= opt.optimizer.slots[""].keys()

    distributed.run(worker, workers=1, timeout=30)


@pytest.mark.parametrize("name", [*ALIKE, *ALONE])
def test_a_model_without_parameters_is_named(name: str) -> None:
    make, count = (ALIKE[name], 2) if name in ALIKE else (ALONE[name], 1)
    models = [{}, [], (), None, 1.0, "text", np.arange(3), {"n": 3}, Layer(None)]

    def worker(comm: Any) -> list[str]:
        found = []
        for model in models:
            with pytest.raises(ox.StructureError) as error:
                make().update(model, model)
            found.append(str(error.value))
        return found

    for found in distributed.run(worker, workers=count, timeout=30):
        texts = [text.partition("; found ") for text in found]
        assert {text for text, _, _ in texts} == {
            "the model has no parameters: expected an array of floating-point dtype somewhere"
        }
        assert {leaf for _, _, leaf in texts} == {"", "float", "str", "int", "ndarray of dtype int64"}
