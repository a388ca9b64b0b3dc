"""Loss scales that a CUDA device keeps: the numbers of a loss scale on the host, without waiting in any step."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver
from test_device_step import assert_same_bits, on_device, poisoned

import optimizers
import oxigrad as ox
from oxigrad import cuda, optim, schedules
from oxigrad.optim import AdamW, LossScale, chain

MODEL, GRADS = optimizers.problem("float32")
# Whether the gradients of each step are finite.
STEPS = [True, True, False, True, False, False, True, True, True]


def given(finite: bool) -> dict[str, Any]:
    return GRADS if finite else poisoned(GRADS)


def scale(**options: Any) -> LossScale:
    return LossScale(**{"initial": 8.0, "interval": 2, **options})


MAKERS: dict[str, Callable[[LossScale], Any]] = {
    "adamw": lambda found: AdamW(0.1, loss_scale=found),
    "groups": lambda found: AdamW(0.1, loss_scale=found, groups={"p1": {"learning_rate": 0.5}, "p3": {"beta1": 0.5}}),
    "tail": lambda found: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), optim.EMA(0.9), loss_scale=found),
    "codes": lambda found: AdamW(0.1, loss_scale=found, slot_dtype="8bit"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_steps_are_those_of_the_host_and_do_not_wait(name: str, mock: MockDriver) -> None:
    scales = scale(), scale()
    a, b = map(MAKERS[name], scales)
    there, here = on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}
    mock.immediate = False  # the device is behind
    for finite in STEPS:
        a.update(there, on_device(given(finite)))
        b.update(here, given(finite))
        assert_same_bits(there, here)
    assert "wait" not in mock.counts()
    assert scales[0].state_dict() == scales[1].state_dict()
    assert "wait" in mock.counts()
    assert (a.step, a.skipped, a.scale) == (b.step, b.skipped, b.scale) == (6, 3, scales[0].value)


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_factor_and_interval(factor: float, mock: MockDriver) -> None:
    """The value is read from the device, and the host takes the same steps on its own."""
    found = scale(factor=factor, interval=3)
    opt, there = AdamW(0.1, loss_scale=found), on_device(MODEL)
    for number, finite in enumerate(STEPS):
        opt.update(there, on_device(given(finite)))
        held = arrays.host(opt._stepper.counts.scale.array)
        assert tuple(held) == (found.value, found.good), number


def test_a_loop_of_steps_does_not_wait(mock: MockDriver) -> None:
    def loss(model: Any) -> Any:
        return ox.xp.sum(model["w"] * model["w"])

    def train(model: Any) -> tuple[Any, list[Any]]:
        opt = AdamW(0.1, loss_scale=LossScale(2.0**126, interval=2))  # the first steps overflow
        return opt, [opt.minimize(loss, model) for _ in range(6)]

    start = np.linspace(-4, 5, 50).astype(np.float32)
    here, there = {"w": start.copy()}, {"w": arrays.Array(start.copy())}
    mock.immediate = False
    with np.errstate(over="ignore"):
        a, found = train(there)
        waited = "wait" in mock.counts()
        b, expected = train(here)
    assert not waited
    np.testing.assert_array_equal([arrays.host(x) for x in found], expected)
    assert_same_bits(there, here)
    assert (a.step, a.skipped, a.scale) == (b.step, b.skipped, b.scale)
    assert b.skipped


def test_a_scaled_loss_of_the_users(mock: MockDriver) -> None:
    opt, there = AdamW(0.1, loss_scale=scale()), on_device(MODEL)
    assert float(opt.scale_loss(np.float32(0.5))) == 4.0
    mock.immediate = False
    for finite in STEPS[:3]:
        opt.update(there, on_device(given(finite)))
    scaled = opt.scale_loss(arrays.Array(np.float32(0.5)))
    assert "wait" not in mock.counts()
    assert scaled.dtype == np.float32 and float(arrays.host(scaled)) == 0.5 * opt.scale == 4.0
    assert float(opt.scale_loss(np.float64(0.5))) == 4.0
    assert AdamW(0.1).scale_loss(0.5) == 0.5


def test_a_scale_that_is_set_between_steps(mock: MockDriver) -> None:
    scales = scale(), scale()
    a, b = (AdamW(0.1, loss_scale=found) for found in scales)
    there, here = on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}
    mock.immediate = False
    for number, finite in enumerate(STEPS):
        for found in scales:
            if number == 2:
                found.value = 64.0
            elif number == 4:
                found.factor = 4.0
            elif number == 6:
                found.load_state_dict({"value": 2.0, "good": 1})
            elif number == 7:
                found.observe(finite=False)
        a.update(there, on_device(given(finite)))
        b.update(here, given(finite))
    assert_same_bits(there, here)
    assert scales[0].state_dict() == scales[1].state_dict()


def test_another_scale(mock: MockDriver) -> None:
    firsts, seconds = (scale(), scale()), (scale(initial=4.0), scale(initial=4.0))
    a, b = (AdamW(0.1, loss_scale=found) for found in firsts)
    there, here = on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}
    mock.immediate = False
    for number, finite in enumerate(STEPS):
        if number == 3:
            a.loss_scale, b.loss_scale = seconds
        elif number == 6:
            a.loss_scale = b.loss_scale = None
            a.nonfinite = b.nonfinite = "skip"
        a.update(there, on_device(given(finite)))
        b.update(here, given(finite))
    assert_same_bits(there, here)
    assert [found.state_dict() for found in (firsts[0], seconds[0])] == [
        found.state_dict() for found in (firsts[1], seconds[1])
    ]
    assert (a.step, a.skipped) == (b.step, b.skipped)


def test_one_scale_of_two_optimizers(mock: MockDriver) -> None:
    theirs, ours = scale(), scale()
    pairs = [(AdamW(0.1, loss_scale=theirs), AdamW(0.1, loss_scale=ours)) for _ in range(2)]
    models = [(on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}) for _ in range(2)]
    for finite in STEPS:
        for (a, b), (there, here) in zip(pairs, models, strict=True):
            a.update(there, on_device(given(finite)))
            b.update(here, given(finite))
    for there, here in models:
        assert_same_bits(there, here)
    assert theirs.state_dict() == ours.state_dict()


@pytest.mark.parametrize("how", ["state", "deepcopy", "pickle of the scale"])
def test_copies_and_states_learn_first(how: str, mock: MockDriver) -> None:
    found = scale()
    opt, there = AdamW(0.1, loss_scale=found), on_device(MODEL)
    mock.immediate = False
    for finite in STEPS[:4]:
        opt.update(there, on_device(given(finite)))
    if how == "state":
        assert opt.state_dict()["remembered"]["loss_scale"] == {"value": 8.0, "good": 1}
    elif how == "deepcopy":
        again = copy.deepcopy(opt)
        assert again.loss_scale is not found and again.scale == 8.0 and (again.step, again.skipped) == (3, 1)
        again.update(there, on_device(GRADS))
        assert found.state_dict() == {"value": 8.0, "good": 1} and again.scale == 16.0
    else:
        again = pickle.loads(pickle.dumps(found))  # noqa: S301 - its own bytes
        assert again.state_dict() == {"value": 8.0, "good": 1}


def test_the_errors_of_raising_leave_the_scale(mock: MockDriver) -> None:
    scales = scale(), scale()
    a, b = (AdamW(0.1, loss_scale=found, nonfinite="raise") for found in scales)
    there, here = on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}
    for finite in STEPS:
        for opt, model, grads in ((a, there, on_device(given(finite))), (b, here, given(finite))):
            if finite:
                opt.update(model, grads)
                continue
            with pytest.raises(ox.NonFiniteError, match="^p9: the gradient has infinities"):
                opt.update(model, grads)
        assert scales[0].state_dict() == scales[1].state_dict()
        assert_same_bits(there, here)
    assert (a.step, a.skipped) == (b.step, b.skipped) == (6, 0)


def test_the_treatment_can_be_changed(mock: MockDriver) -> None:
    a, b = (AdamW(0.1, nonfinite="skip") for _ in range(2))
    there, here = on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}
    mock.immediate = False
    for number, finite in enumerate([True, False, True, False, True]):
        a.nonfinite = b.nonfinite = "skip" if number < 2 or number == 3 else "raise"
        a.update(there, on_device(given(finite)))
        b.update(here, given(finite))
    assert (a.step, a.skipped) == (b.step, b.skipped) == (3, 2)
    assert_same_bits(there, here)


def test_rules_on_arrays_take_the_scale_of_the_host(mock: MockDriver) -> None:
    """Rows, which no kernel takes, between steps that a device counts."""
    scales = scale(), scale()
    a, b = (optim.Adam(0.1, loss_scale=found, sparse="lazy") for found in scales)
    there, here = {"w": arrays.Array(np.ones((3, 5), np.float32))}, {"w": np.ones((3, 5), np.float32)}
    for number, finite in enumerate(STEPS):
        g = np.full((3, 5), 1.0 if finite else np.inf, np.float32)
        rows = ox.SparseRows(np.array([0, 2]), g[:2], (3, 5))
        on = ox.SparseRows(arrays.Array(np.array([0, 2])), arrays.Array(g[:2]), (3, 5))
        there = a.update(there, {"w": on if number % 3 == 1 else arrays.Array(g)})
        here = b.update(here, {"w": rows if number % 3 == 1 else g})
    np.testing.assert_allclose(arrays.host(there["w"]), here["w"], rtol=1e-6)
    assert scales[0].state_dict() == scales[1].state_dict()
    assert (a.step, a.skipped) == (b.step, b.skipped)


def test_a_schedule_waits_for_the_count(mock: MockDriver) -> None:
    scales = scale(), scale()
    a, b = (AdamW(schedules.exponential(0.1, 0.9), loss_scale=found) for found in scales)
    there, here = on_device(MODEL), {key: np.array(x) for key, x in MODEL.items()}
    mock.immediate = False
    for finite in STEPS:
        a.update(there, on_device(given(finite)))
        b.update(here, given(finite))
    assert_same_bits(there, here)
    assert scales[0].state_dict() == scales[1].state_dict()


def test_a_subclass_is_observed_on_the_host(mock: MockDriver) -> None:
    class Slow(LossScale):
        def _after(self, *, finite: bool) -> dict[str, Any]:
            return {**super()._after(finite=finite), "value": 8.0}

    opt, there = AdamW(0.1, loss_scale=Slow(8.0, interval=1)), on_device(MODEL)
    for _ in range(3):
        opt.update(there, on_device(GRADS))
    assert opt.scale == 8.0 and opt._stepper.counts.scale is None


def test_a_steady_step_allocates_and_uploads_nothing(mock: MockDriver) -> None:
    opt, there, grads = AdamW(0.1, loss_scale=scale()), on_device(MODEL), on_device(GRADS)
    for _ in range(2):
        opt.update(there, grads)
    mock.forget()
    opt.update(there, grads)
    assert not {"allocate", "load", "upload", "wait", "pinned"} & mock.counts().keys()
    launched = [entry for entry, *_ in mock.launches()]
    assert launched[0] == "scale_read" and launched[-2:] == ["scale_update", "advance"]


def test_a_capture_is_refused(mock: MockDriver) -> None:
    opt, there, grads = AdamW(0.1, loss_scale=scale()), on_device(MODEL), on_device(GRADS)
    opt.update(there, grads)
    with mock.capture(arrays.LEGACY_STREAM), pytest.raises(cuda.CaptureError, match="a graph replays the numbers"):
        opt.update(there, grads)
    opt.update(there, grads)
    assert opt.step == 2
