"""Containers of xarray as trees: structure and key paths, derivatives through xarray's methods, optimizers, errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, xp
from oxigrad.testing import check_grads

xr: Any = pytest.importorskip("xarray")

VALUES = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3))


def array(values: Any = VALUES, **named: Any) -> Any:
    return xr.DataArray(
        np.array(values),
        dims=("x", "y"),
        coords={"y": [10, 20, 30], "area": ("x", [1.0, 2.0])},
        attrs={"units": "m"},
        **named,
    )


def dataset() -> Any:
    fields = {"depth": array(name="depth"), "speed": ("x", np.array([0.3, -0.4])), "count": ("x", [1, 2])}
    return xr.Dataset(fields, coords={"t": 4.0}, attrs={"title": "run"})


def of_array(values: Any) -> Any:
    """The container with these data, as `oxigrad` makes it."""
    return ox.tree.unflatten(ox.tree.flatten(array())[1], [values])


METHODS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda a: (a * 2 - a**2 / (1.0 + a)).sum(),
    "alignment": lambda a: (a.isel(y=[1, 2]) * a.isel(y=[0, 1])).sum(),
    "broadcasting": lambda a: (a.isel(x=0, drop=True) * a.isel(y=0, drop=True)).sum(),
    "ufuncs": lambda a: np.exp(np.sin(a)).sum(),
    "coordinates": lambda a: (a * a.area).sum(),
    "mean": lambda a: (a.mean("x") ** 2).sum(),
    "std": lambda a: a.std("y").sum(),
    "max": lambda a: a.max(),
    "prod": lambda a: a.prod("y").sum(),
    "cumsum": lambda a: (a.cumsum("y") ** 2).sum(),
    "sel": lambda a: (a.sel(y=20) ** 2).sum(),
    "isel": lambda a: (a.isel(x=0, y=[0, 2]) ** 3).sum(),
    "where": lambda a: (a.where(a > 1.0) ** 2).sum(),
    "clip": lambda a: (a.clip(0.7, 1.5) ** 2).sum(),
    "fillna": lambda a: a.fillna(0.0).sum(),
    "transpose": lambda a: (a.transpose("y", "x") * a).sum(),
    "dot": lambda a: xr.dot(a, a),
    "diff": lambda a: (a.diff("y") ** 2).sum(),
    "roll": lambda a: (a.roll(x=1) * a).sum(),
    "shift": lambda a: (a.shift(y=1, fill_value=0.0) * a).sum(),
    "rolling": lambda a: (a.rolling(y=2).mean() ** 2).sum(),
    "groupby": lambda a: (a.groupby("y").mean() ** 2).sum(),
    "concat": lambda a: (xr.concat([a, a * a], "z") ** 2).sum(),
    "stack": lambda a: (a.stack(z=("x", "y")) ** 2).sum(),
    "weighted": lambda a: a.weighted(a.area).mean().sum(),
    "integrate": lambda a: (a.integrate("y") ** 2).sum(),
    "differentiate": lambda a: (a.differentiate("y") ** 2).sum(),
    "to_dataset": lambda a: (a.to_dataset(name="depth").depth ** 2).sum(),
    "data": lambda a: xp.sum(a.data**2),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_xarray_are_differentiable(name: str) -> None:
    f = METHODS[name]
    a = array(name="depth")
    value, gradient = ox.value_and_grad(f)(a)
    np.testing.assert_allclose(np.asarray(value), np.asarray(f(a)), rtol=1e-12)
    assert isinstance(gradient, xr.DataArray) and gradient.name == "depth"
    xr.testing.assert_identical(gradient.copy(data=VALUES), a)
    check_grads(lambda values: ox.tree.leaves(f(of_array(values)))[0], (VALUES,))


def test_a_dataset_and_results_that_are_containers() -> None:
    fields = dataset()
    f = lambda d: (d.depth**2).sum() + (d.speed * d["count"]).sum()  # noqa: E731
    gradient = ox.grad(f)(fields)
    assert isinstance(gradient, xr.Dataset) and gradient.attrs == {"title": "run"}
    np.testing.assert_allclose(gradient.depth, 2.0 * VALUES)
    np.testing.assert_array_equal(gradient.speed, [1.0, 2.0])
    np.testing.assert_array_equal(gradient["count"], [1, 2])
    xr.testing.assert_identical(gradient.coords.to_dataset(), fields.coords.to_dataset())
    result, pull = ox.vjp(lambda d: d.assign(depth=np.sin(d.depth)), fields)
    assert isinstance(result, xr.Dataset)
    np.testing.assert_allclose(
        pull(xr.ones_like(fields).astype(float).assign(count=fields["count"]))[0].depth, np.cos(VALUES)
    )
    _, tangent = ox.jvp(lambda a: a**2, (array(),), (array(),))
    xr.testing.assert_allclose(tangent, 2.0 * array() ** 2)
    assert isinstance(ox.hvp(lambda a: (a**3).sum(), (array(),), (array(),))[0], xr.DataArray)


def test_key_paths_and_structure() -> None:
    tree = {"a": array(), "d": dataset(), "v": xr.Variable("x", [1.0, 2.0])}
    assert list(map(str, ox.tree.parameters(tree))) == ["a.data", "d.depth", "d.speed", "v.data"]
    path = ox.tree.path("d.speed", tree)
    np.testing.assert_array_equal(path(tree), [0.3, -0.4])
    path.set(tree, np.array([5.0, 6.0]))
    assert isinstance(tree["d"], xr.Dataset)
    np.testing.assert_array_equal(tree["d"].speed, [5.0, 6.0])
    with pytest.raises(ox.KeyPathError, match="sped.*Dataset has the children depth, speed, count"):
        ox.tree.path("d.sped", tree)
    doubled = ox.tree.map(lambda x: 2 * x, tree)
    xr.testing.assert_identical(doubled["a"], array(2 * VALUES))
    assert isinstance(doubled["v"], xr.Variable)
    assert ox.tree.flatten(tree)[1] == ox.tree.flatten(copy.deepcopy(tree))[1]
    other = dataset().drop_vars("speed")
    with pytest.raises(ox.StructureError, match="d: expected .*Dataset"):
        ox.tree.map(lambda x, y: x, tree, {**tree, "d": other})
    vector, unravel = ox.tree.ravel(array())
    xr.testing.assert_identical(unravel(vector), array())


def test_what_does_not_fit_is_bare() -> None:
    assert ox.tree.map(np.sum, array()) == VALUES.sum()
    assert ox.tree.map(np.shape, dataset()) == {"depth": (2, 3), "speed": (2,), "count": (2,)}
    point = xr.DataArray(2.0, attrs={"units": "m"})
    assert ox.grad(lambda a: a**2)(point).attrs == {"units": "m"}
    assert ox.tree.map(lambda x: 3.0, point).item() == 3.0
    rows = ox.vmap(lambda a: xp.sum(a**2))(array())
    np.testing.assert_allclose(rows, np.sum(VALUES**2, axis=1))


@pytest.mark.parametrize(
    "opt", [optim.Adam(0.05), optim.SGD(0.05, momentum=0.9), optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.05))]
)
def test_optimizers_step_data_in_place(opt: Any) -> None:
    loss = lambda m: ((m["a"] - 1.0) ** 2).sum() + (m["d"].speed ** 2).sum()  # noqa: E731
    model = {"a": array(), "d": dataset()}
    plain = {"a": VALUES.copy(), "speed": np.array([0.3, -0.4])}
    memory, again = model["a"].data, copy.deepcopy(opt)
    for _ in range(4):
        _, gradients = ox.value_and_grad(loss)(model)
        opt.update(model, gradients)
        again.minimize(lambda m: xp.sum((m["a"] - 1.0) ** 2) + xp.sum(m["speed"] ** 2), plain)
    assert model["a"].data is memory
    np.testing.assert_allclose(model["a"], plain["a"], rtol=1e-12)
    np.testing.assert_allclose(model["d"].speed, plain["speed"], rtol=1e-12)
    np.testing.assert_array_equal(model["d"]["count"], [1, 2])


def test_state_is_saved_and_loaded_by_key_path(tmp_path: Any) -> None:
    model, opt, again = {"a": array()}, optim.Adam(0.1), optim.Adam(0.1)
    opt.minimize(lambda m: (m["a"] ** 2).sum(), model)
    assert "a.data" in list(map(str, opt.slots))
    opt.save(tmp_path / "state")
    again.load(tmp_path / "state")
    other = copy.deepcopy(model)
    for each, tree in ((opt, model), (again, other)):
        each.minimize(lambda m: (m["a"] ** 2).sum(), tree)
    xr.testing.assert_identical(model["a"], other["a"])


def test_errors_name_the_key_path() -> None:
    model = {"a": array()}
    with pytest.raises(ox.ShapeError, match=r"a\.data"):
        optim.SGD(0.1).update(model, {"a": array().isel(x=[0])})
    with pytest.raises(ox.StructureError, match=r"a\.data: the gradient is missing: expected an array"):
        optim.SGD(0.1).update(model, {"a": VALUES})
    with pytest.raises(TypeError, match="lose its derivative"):
        ox.grad(lambda a: a.values.sum())(array())
    with pytest.raises(ox.DerivativeError, match="the loss depends on no parameter: it is DataArray"):
        optim.SGD(0.1).minimize(
            lambda m: xr.zeros_like(m["a"]).sum(), {"a": array(np.zeros((2, 3), int)), "b": VALUES.copy()}
        )


def test_data_of_files_is_loaded(tmp_path: Any) -> None:
    pytest.importorskip("scipy.io")
    dataset().drop_attrs().to_netcdf(tmp_path / "fields.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "fields.nc", engine="scipy") as model:
        optim.SGD(0.5).minimize(lambda d: (d.depth**2).sum(), model)
        np.testing.assert_allclose(model.depth, 0.0, atol=1e-15)


def test_recordings_take_containers() -> None:
    """xarray refuses traced values beside variables, whose namespaces differ: the function runs as it is."""
    f = ox.record(ox.grad(lambda a: (a**2).sum()))
    with pytest.warns(UserWarning, match="cannot be recorded, and ran twice"):
        f(array(VALUES))
    for scale in (1.0, 2.0, 3.0):
        found = f(array(scale * VALUES))
        np.testing.assert_allclose(np.asarray(found), 2.0 * scale * VALUES)
