"""Models whose parameters are arrays of several libraries: each is updated on its device, and totals are over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import libraries
import oxigrad as ox
from libraries import host
from oxigrad import optim, xp

RANDOM = np.random.default_rng(0)
EAGER = "numpy read-only array-api-strict device tiny torch jax".split()
WEIGHTS = {name: RANDOM.standard_normal((3, 2)) for name in [*EAGER, "dask"]}
GRADIENTS = [{name: RANDOM.standard_normal((3, 2)) for name in WEIGHTS} for _ in range(4)]

# What is different about steps over several libraries: totals, guards, numbers, averages, and steps that are held back.
MAKES: dict[str, Callable[[], Any]] = {
    "adamw": lambda: optim.AdamW(0.1),
    "rprop": lambda: optim.Rprop(0.1),
    "soap": lambda: optim.SOAP(0.1),
    "prodigy": lambda: optim.Prodigy(d0=0.01),
    "clipped": lambda: optim.chain(optim.ClipByGlobalNorm(0.5), optim.SGD(0.1, 0.9), optim.WeightDecay(0.01)),
    "skipping": lambda: optim.Adam(0.1, nonfinite="skip"),
    "accumulated": lambda: optim.Adam(0.1, accumulate=2),
    "averaged": lambda: optim.chain(optim.Adam(0.1), optim.EMA(0.9)),
    "grouped": lambda: optim.Adam(0.1, groups={"t*": {"learning_rate": 0.01}, "device": None}),
    "partition": lambda: optim.partition({"t*": optim.Lion(0.1), "*": optim.Adam(0.1)}),
}


@pytest.fixture
def names(library) -> list[str]:
    """The libraries that are installed, and compute at once."""
    return [name for name in EAGER if libraries.named(name).is_there()]


def arrays_of(values: dict[str, np.ndarray], names: list[str]) -> dict[str, Any]:
    """A tree with an array of each library, at its name."""
    return {name: libraries.named(name).asarray(values[name].copy()) for name in names}


def reference(make: Callable[[], Any], names: list[str]) -> tuple[dict[str, Any], Any]:
    """The same steps over NumPy alone."""
    model, opt = {name: WEIGHTS[name].copy() for name in names}, make()
    for grads in GRADIENTS:
        model = opt.update(model, {name: grads[name] for name in names})
    return model, opt


def close(model: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(host(model[name]), value, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("name", MAKES)
def test_each_parameter_is_updated_where_it_lives(name: str, names: list[str]) -> None:
    model, opt = arrays_of(WEIGHTS, names), MAKES[name]()
    first = dict(model)
    for grads in GRADIENTS:
        assert opt.update(model, arrays_of(grads, names)) is model
    close(model, reference(MAKES[name], names)[0])
    for where, array in model.items():
        assert type(array) is type(first[where])
        assert getattr(array, "device", None) == getattr(first[where], "device", None)
        assert all(type(slot) is type(array) for slot in opt.slots.get(where, {}).values() if slot.shape)
    for where in {"numpy", "torch", "array-api-strict"} & {*names}:
        assert model[where] is first[where]


@pytest.mark.parametrize("name", MAKES)
def test_the_pure_step_leaves_each_parameter_in_its_library(name: str, names: list[str]) -> None:
    model, opt = arrays_of(WEIGHTS, names), MAKES[name]()
    state = opt.init(model)
    for grads in GRADIENTS:
        before = dict(model)
        model, state = opt.apply(model, arrays_of(grads, names), state)
        assert {where: type(array) for where, array in model.items()} == {w: type(a) for w, a in before.items()}
    close(model, reference(MAKES[name], names)[0])


def test_what_the_core_updates_has_the_bits_of_numpy_alone() -> None:
    names = ["numpy", "read-only", "array-api-strict", "tiny"]
    model, opt = arrays_of(WEIGHTS, names), optim.AdamW(0.1)
    for grads in GRADIENTS:
        opt.update(model, arrays_of(grads, names))
    expected, _ = reference(lambda: optim.AdamW(0.1), names)
    for name in names[:3]:
        np.testing.assert_array_equal(host(model[name]), expected[name])


def test_a_gradient_that_is_not_finite_skips_the_step_of_all(names: list[str]) -> None:
    for bad in names:
        model, opt = arrays_of(WEIGHTS, names), optim.Adam(0.1, nonfinite="skip")
        grads = {**GRADIENTS[0], bad: np.full((3, 2), np.nan)}
        opt.update(model, arrays_of(grads, names))
        assert (opt.step, opt.skipped) == (0, 1)
        for name in names:
            np.testing.assert_array_equal(host(model[name]), WEIGHTS[name])


def test_averages_are_of_the_libraries_of_their_parameters(names: list[str]) -> None:
    make = MAKES["averaged"]
    model, opt = arrays_of(WEIGHTS, names), make()
    for grads in GRADIENTS:
        opt.update(model, arrays_of(grads, names))
    _, expected = reference(make, names)
    found = opt.averaged_parameters(model)
    for name, average in expected.averaged_parameters().items():
        assert type(found[name]) is type(model[name])
        np.testing.assert_allclose(host(found[name]), average, rtol=1e-12, err_msg=name)


def test_a_state_goes_from_each_library_to_another(names: list[str], tmp_path) -> None:
    make = MAKES["clipped"]
    model, opt = arrays_of(WEIGHTS, names), make()
    for grads in GRADIENTS[:2]:
        opt.update(model, arrays_of(grads, names))
    opt.save(tmp_path / "state")
    turned = dict(
        zip(names, [*names[1:], names[0]], strict=True)
    )  # the parameter at each path is now another library's
    moved = {at: libraries.named(other).asarray(host(model[at])) for at, other in turned.items()}
    again = make()
    again.load(tmp_path / "state")
    for grads in GRADIENTS[2:]:
        again.update(moved, {at: libraries.named(other).asarray(grads[at]) for at, other in turned.items()})
    close(moved, reference(make, names)[0])


def test_gradients_of_a_loss_over_one_library_each(names: list[str]) -> None:
    model = arrays_of(WEIGHTS, names)
    value, grads = ox.value_and_grad(lambda model: {name: xp.sum(xp.square(p)) for name, p in model.items()}["numpy"])(
        model
    )
    np.testing.assert_allclose(value, np.sum(WEIGHTS["numpy"] ** 2))
    for name, g in grads.items():
        assert type(g) is type(model[name])
        np.testing.assert_allclose(host(g), 2.0 * WEIGHTS["numpy"] if name == "numpy" else 0.0, atol=0.0)


# --- what cannot be read -----------------------------------------------------------------------------------------------


def test_lazy_parameters_stay_lazy_beside_others(library) -> None:
    library("dask.array")
    names = ["numpy", "tiny", "dask"]
    model, opt = arrays_of(WEIGHTS, names), optim.AdamW(0.1)
    with uncomputed(library):
        for grads in GRADIENTS:
            opt.update(model, arrays_of(grads, names))
    close(model, reference(lambda: optim.AdamW(0.1), names)[0])


@pytest.mark.parametrize("way", ["update", "apply"])
def test_a_total_over_lazy_parameters_and_others_names_the_lazy_ones(way: str, library) -> None:
    library("dask.array")
    names = ["numpy", "tiny", "dask"]
    model, grads, opt = arrays_of(WEIGHTS, names), arrays_of(GRADIENTS[0], names), MAKES["clipped"]()
    state = opt.init(model)
    message = r"^dask: a value over all parameters.*expected arrays with values"
    with uncomputed(library), pytest.raises(ox.ArrayMemoryError, match=message):
        opt.update(model, grads) if way == "update" else opt.apply(model, grads, state)
    assert opt.step == 0
    np.testing.assert_array_equal(model["numpy"], WEIGHTS["numpy"])


def test_a_total_over_traced_parameters_and_constants_is_traced(library) -> None:
    jax = library("jax")
    libraries.named("jax").asarray(1.0)  # in double precision
    make = MAKES["clipped"]
    opt, names = make(), ["jax", "numpy"]
    state = opt.init(arrays_of(WEIGHTS, names))
    constant, constant_gradient = WEIGHTS["numpy"], GRADIENTS[0]["numpy"]

    @jax.jit
    def step(p: Any, g: Any) -> Any:
        return opt.apply({"jax": p, "numpy": constant}, {"jax": g, "numpy": constant_gradient}, state)[0]

    found = step(WEIGHTS["jax"], GRADIENTS[0]["jax"])
    expected = make().update({n: WEIGHTS[n].copy() for n in names}, {n: GRADIENTS[0][n] for n in names})
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def uncomputed(library: Any) -> Any:
    """A context in which it is an error to compute a graph of Dask's."""

    def refuse(*args: Any, **named: Any) -> Any:
        raise AssertionError("a graph is computed")

    return library("dask").config.set(scheduler=refuse)
