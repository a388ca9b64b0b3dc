"""Integers, booleans and masks in functions of `xp`: NumPy's values and dtypes, and its refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "complex64"]


def array(dtype: str, shape: tuple[int, ...] = (4, 5)) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 9, shape).astype(dtype)


def same(found: Any, wanted: Any) -> bool:
    """Whether the values, the dtype and the shape are NumPy's."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    tolerance = 2e-3 if wanted.dtype == np.float16 else 1e-5
    is_near = np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    return found.dtype == wanted.dtype and found.shape == wanted.shape and is_near


@pytest.mark.parametrize("shape", [(4, 5), (0, 5)], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_a_mask_keep_the_dtype(dtype, name, shape):
    x, mask = array("uint8", shape).astype(dtype), array("bool", shape)
    x = x % 3 if dtype not in ("bool", "complex64") else x
    initial = False if dtype == "bool" and name in ("max", "min") else 1
    for named in ({"axis": 0}, {"axis": -1, "keepdims": True}, {}):
        for more in ({"where": mask, "initial": initial}, {"initial": initial}):
            found, wanted = (getattr(lib, name)(x, **named, **more) for lib in (xp, np))
            assert same(found, wanted), (named, found, wanted)


def test_sums_of_a_mask_are_exact_for_large_integers():
    x = np.array([2**62 + 1, 5])
    assert xp.sum(x, where=np.array([True, False])) == 2**62 + 1
    assert xp.max(x, initial=0, where=np.array([True, False])) == 2**62 + 1


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_differences_of_unsigned_integers_do_not_wrap(dtype, edge_order):
    for found, wanted in zip(*(lib.gradient(array(dtype), edge_order=edge_order) for lib in (xp, np)), strict=True):
        assert same(found, wanted)


@pytest.mark.parametrize(
    "named",
    [
        {"mode": "mean"},
        {"mode": "mean", "stat_length": 3},
        {"mode": "median"},
        {"mode": "median", "stat_length": 2},
        {"mode": "maximum"},
        {"mode": "linear_ramp", "end_values": (1, 6)},
        {"mode": "linear_ramp", "end_values": (-3, 40)},
        {"mode": "reflect", "reflect_type": "odd"},
        {"mode": "symmetric", "reflect_type": "odd"},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_keeps_the_dtype(dtype, named):
    if dtype == "complex64" and named["mode"] == "median":
        pytest.skip("complex numbers have no order")
    if dtype == "bool" and named["mode"] == "linear_ramp":
        pytest.skip("NumPy has no ramp of booleans")
    if dtype.startswith("u") and -3 in named.get("end_values", ()):
        pytest.skip("an end value below zero")
    x = array(dtype)
    assert same(xp.pad(x, (1, 3), **named), np.pad(x, (1, 3), **named))


def test_padding_by_a_median_has_the_gradient_of_its_elements():
    x = array("float64")
    value, gradient = ox.value_and_grad(lambda x: xp.sum(xp.pad(x, 1, mode="median", stat_length=2)))(x)
    assert np.isclose(value, np.sum(np.pad(x, 1, mode="median", stat_length=2)))
    assert np.isclose(np.sum(gradient), np.pad(x, 1).size)


REFUSED = {
    "pad_width": (lambda x: xp.pad(x, -1, mode="edge"), lambda x: np.pad(x, -1, mode="edge")),
    "stat_length": (
        lambda x: xp.pad(x, 1, mode="mean", stat_length=-1),
        lambda x: np.pad(x, 1, mode="mean", stat_length=-1),
    ),
    "kth": (lambda x: xp.partition(x, 5), lambda x: np.partition(x, 5)),
    "axes": (lambda x: xp.rot90(x, axes=(0, -2)), lambda x: np.rot90(x, axes=(0, -2))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused_by_name(name):
    ours, theirs = REFUSED[name]
    x = array("float32")
    with pytest.raises(ValueError, match=r"\w"):
        theirs(x)
    for call in (ours, ox.grad(lambda x: xp.sum(ours(x)))):
        with pytest.raises(ValueError, match=f"{name} is"):
            call(x)


@pytest.mark.parametrize("mode", ["interp", "mirror", "constant", "nearest", "wrap"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64"])
def test_smoothed_integers_are_floats(dtype, mode):
    filters = pytest.importorskip("scipy.signal")
    for shape in ((9,), (4, 5)):
        x = array(dtype, shape)
        assert same(xp.signal.savgol_filter(x, 3, 1, mode=mode), filters.savgol_filter(x, 3, 1, mode=mode))


def test_a_complex_signal_has_no_analytic_one():
    with pytest.raises(ox.DtypeError, match="complex"):
        xp.signal.hilbert(np.ones(4, complex))


@pytest.mark.parametrize("of_places", [list, tuple, np.asarray, lambda x: np.asarray(x, np.uint8)[::-1]])
@pytest.mark.parametrize("edge_order", [1, 2])
def test_coordinates_of_a_gradient(of_places, edge_order):
    x, places = np.array([[1.0, 4.0, 2.0, 8.0], [3.0, 1.0, 5.0, 0.0]]), of_places([0, 1, 3, 4])
    expected = np.gradient(x, np.asarray(places, float), axis=1, edge_order=edge_order)
    f = lambda x, lib=xp: lib.gradient(x, places, axis=1, edge_order=edge_order)  # noqa: E731
    for y in f(x), ox.vjp(f, x)[0], ox.vjp(lambda x: f(x, np), x)[0]:
        np.testing.assert_allclose(y, expected, rtol=1e-12)
