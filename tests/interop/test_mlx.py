"""MLX: replaced arrays, gradients of MLX, compiled programs, and functions that NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, xp
from oxigrad.step.arrays.sparse_rows import SparseRows

mx = pytest.importorskip("mlx.core")

RANDOM = np.random.default_rng(0)
WEIGHTS, INPUTS = RANDOM.standard_normal((3, 2)), RANDOM.standard_normal((8, 3))


def loss(model: Any, x: Any) -> Any:
    return xp.mean(xp.square(xp.tanh(xp.matmul(x, model["w"]))))


def trained(model: Any, x: Any, steps: int = 4) -> Any:
    opt = optim.AdamW(0.1)
    for _ in range(steps):
        opt.minimize(lambda model: loss(model, x), model)
    return model["w"]


@pytest.mark.parametrize(("dtype", "rtol"), [(mx.float32, 1e-5), (mx.float64, 1e-6)])
def test_steps_have_the_numbers_of_numpy(dtype: Any, rtol: float) -> None:
    found = trained({"w": mx.array(WEIGHTS, dtype)}, mx.array(INPUTS, dtype))
    assert (type(found), found.dtype) == (mx.array, dtype)
    np.testing.assert_allclose(np.asarray(found), trained({"w": WEIGHTS.copy()}, INPUTS), rtol=rtol)


def test_half_precision_keeps_its_dtype() -> None:
    found = trained({"w": mx.array(WEIGHTS, mx.bfloat16)}, mx.array(INPUTS, mx.bfloat16))
    assert found.dtype == mx.bfloat16
    np.testing.assert_allclose(np.asarray(found.astype(mx.float32)), trained({"w": WEIGHTS.copy()}, INPUTS), atol=0.05)


def test_an_array_is_replaced_never_written() -> None:
    w = mx.array(WEIGHTS)
    model, other = {"w": w}, w
    optim.SGD(0.1).update(model, {"w": mx.ones((3, 2))})
    assert model["w"] is not w
    np.testing.assert_array_equal(np.asarray(other), WEIGHTS.astype(np.float32))


def test_slots_are_not_the_gradients_of_the_user() -> None:
    g = mx.ones((3, 2))
    model, opt = {"w": mx.array(WEIGHTS)}, optim.SGD(0.1, 0.9)
    opt.update(model, {"w": g})
    g += 1.0  # which changes the array in place
    np.testing.assert_array_equal(np.asarray(opt.slots["w"]["m"]), np.ones((3, 2)))


def test_gradients_of_mlx_and_a_step_in_a_compiled_program() -> None:
    def of_mlx(model: Any, x: Any) -> Any:
        return mx.mean(mx.square(mx.tanh(x @ model["w"])))

    opt = optim.chain(optim.ClipByGlobalNorm(0.5), optim.AdamW(0.1))

    @mx.compile
    def step(model: Any, slots: Any, count: Any, x: Any) -> Any:
        new, state = opt.apply(model, mx.grad(of_mlx)(model, x), {"step": count, "slots": slots})
        return new, state["slots"], state["step"]

    model, x, reference = {"w": mx.array(WEIGHTS)}, mx.array(INPUTS), {"w": WEIGHTS.copy()}
    slots, count = opt.init(model)["slots"], mx.array(0)
    plain = optim.chain(optim.ClipByGlobalNorm(0.5), optim.AdamW(0.1))
    for _ in range(3):
        model, slots, count = step(model, slots, count, x)
        plain.minimize(lambda model: loss(model, INPUTS), reference)
    assert count.item() == 3
    np.testing.assert_allclose(np.asarray(model["w"]), reference["w"], rtol=1e-4)


def test_derivatives_in_a_compiled_program() -> None:
    derivative = mx.compile(ox.grad(loss))
    found = derivative({"w": mx.array(WEIGHTS)}, mx.array(INPUTS))["w"]
    np.testing.assert_allclose(np.asarray(found), ox.grad(loss)({"w": WEIGHTS}, INPUTS)["w"], rtol=1e-5)


def test_sparse_rows() -> None:
    model, expected = {"w": mx.array(WEIGHTS)}, {"w": WEIGHTS.astype(np.float32)}
    opt, reference = optim.Adam(0.1, sparse="lazy"), optim.Adam(0.1, sparse="lazy")
    values = RANDOM.standard_normal((3, 2)).astype(np.float32)
    for _ in range(2):
        opt.update(model, {"w": SparseRows(mx.array([2, 0, 2]), mx.array(values), (3, 2))})
        reference.update(expected, {"w": SparseRows(np.array([2, 0, 2]), values, (3, 2))})
    np.testing.assert_allclose(np.asarray(model["w"]), expected["w"], rtol=1e-5)


def test_state_goes_to_numpy_and_back(tmp_path) -> None:
    model, opt = {"w": mx.array(WEIGHTS)}, optim.Adam(0.1)
    opt.update(model, {"w": mx.ones((3, 2))})
    opt.save(tmp_path / "state")
    again, values = optim.Adam(0.1), {"w": np.array(model["w"])}
    again.load(tmp_path / "state")
    again.update(values, {"w": np.ones((3, 2), np.float32)})
    opt.update(model, {"w": mx.ones((3, 2))})
    np.testing.assert_allclose(np.asarray(model["w"]), values["w"], rtol=1e-6)


def test_gradients_that_do_not_fit_are_named() -> None:
    model, opt = {"layers": [{"w": mx.array(WEIGHTS)}]}, optim.Adam(0.1)
    with pytest.raises(ox.ShapeError, match=r"^layers\.0\.w: gradient has shape \(2,\), the parameter \(3, 2\)"):
        opt.update(model, {"layers": [{"w": mx.ones(2)}]})
    with pytest.raises(ox.DtypeError, match=r"^layers\.0\.w: gradient has dtype"):
        opt.update(model, {"layers": [{"w": mx.ones((3, 2), mx.float64)}]})
    with pytest.raises(ox.DtypeError, match=r"^layers\.0\.w: the parameter has dtype mlx\.core\.complex64"):
        opt.update({"layers": [{"w": mx.ones(2, mx.complex64)}]}, model)
    assert opt.step == 0


def test_operators_of_mlx_refuse_a_variable_on_their_right_and_functions_take_it() -> None:
    x = mx.array([1.0, 2.0])
    with pytest.raises((TypeError, ValueError), match="Variable"):
        ox.grad(lambda w: xp.sum(x * w))(x)
    np.testing.assert_array_equal(np.asarray(ox.grad(lambda w: xp.sum(w * x))(x)), [1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(ox.grad(lambda w: xp.sum(xp.multiply(x, w)))(x)), [1.0, 2.0])


# --- functions of the standard whose signature MLX does not have, or that it lacks -------------------------------------


def test_sorting_is_stable_in_either_direction() -> None:
    x = mx.array([2.0, 1.0, 2.0, 1.0])
    for descending in (False, True):
        expected = xp.argsort(np.asarray(x), descending=descending)
        np.testing.assert_array_equal(np.asarray(xp.argsort(x, descending=descending)), expected)
        np.testing.assert_array_equal(np.asarray(xp.sort(x, descending=descending)), np.asarray(x)[expected])


def test_a_mask_picks_elements() -> None:
    x = mx.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(np.asarray(ox.grad(lambda x: xp.sum(x[x > 0.0] ** 2))(x)), [2.0, 0.0, 6.0])


def test_complex_matrices() -> None:
    values = (RANDOM.standard_normal((3, 3)) + 1j * RANDOM.standard_normal((3, 3))).astype(np.complex64)
    x = mx.array(values)
    np.testing.assert_allclose(np.asarray(xp.linalg.inv(x)), np.linalg.inv(values), rtol=1e-4)
    assert xp.linalg.det(x).dtype == mx.complex64


def test_functions_that_mlx_lacks_take_half_precision() -> None:
    for dtype in (mx.float16, mx.bfloat16):
        found = xp.hypot(mx.array([3.0, 5.0], dtype), mx.array([4.0, 12.0], dtype))
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found.astype(mx.float32)), [5.0, 13.0])
