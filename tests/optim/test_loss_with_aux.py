"""`minimize` with a loss that returns ``(value, aux)``: the same step, and the auxiliary result of the first evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim, xp

MAKERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: optim.Adam(0.1),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(0.5), optim.SGD(0.1)),
    "scaled": lambda: optim.SGD(0.1, loss_scale=optim.LossScale(8.0)),
    "momo": lambda: optim.MoMo(0.1),
    "sam": lambda: optim.SAM(optim.SGD(0.1)),
    "lbfgs": lambda: optim.LBFGS(max_iterations=3),
    "partition": lambda: optim.partition({"w": optim.SGD(0.1), "*": optim.Adam(0.1)}),
}
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "data parallel": lambda opt: distributed.DataParallel(opt),
    "sync replicas": lambda opt: distributed.SyncReplicas(opt, 1),
    "softsync": lambda opt: distributed.Softsync(opt),
    "model average": lambda opt: distributed.ModelAverage(opt),
    "elastic average": lambda opt: distributed.ElasticAverage(opt),
    "kfac": lambda opt: distributed.KFAC(opt),
}
WAYS: list[dict[str, bool]] = [{}, {"record": True}, {"in_backward": True}]


def model() -> dict[str, Any]:
    return {"w": np.array([[1.0, -2.0], [0.5, 3.0]]), "b": np.array([1.0, 2.0])}


def value(m: Any) -> Any:
    return xp.sum(xp.tanh(np.ones((3, 2)) @ m["w"] + m["b"]) ** 2)


def pair(m: Any) -> Any:
    return value(m), {"largest": xp.max(m["w"]), "name": "pair", "sums": (xp.sum(m["b"]), 2)}


def outcome(opt: Any, plain: Any, way: dict[str, bool]) -> Any:
    """The value of the loss before the step; None for an optimizer that does not go this way."""
    try:
        return opt.minimize(value, plain, **way)
    except ValueError:
        return None


def quiet_pair(m: Any) -> Any:
    """Without uses of the weights in the auxiliary result, by which KFAC would not take them for those of a layer."""
    return value(m), pair(ox.stop_gradient(m))[1]


def check(make: Callable[[], Any], way: dict[str, bool], pair: Callable[[Any], Any] = pair) -> None:
    plain, with_aux, opts = model(), model(), (make(), make())
    for _ in range(3):
        if (expected := outcome(opts[0], plain, way)) is None:
            with pytest.raises(ValueError, match="in_backward=True"):
                opts[0].minimize(value, plain, **way)
            with pytest.raises(ValueError, match="in_backward=True"):
                opts[1].minimize(pair, with_aux, has_aux=True, **way)
            return
        before = {name: np.array(x) for name, x in with_aux.items()}
        found, aux = opts[1].minimize(pair, with_aux, has_aux=True, **way)
        assert float(found) == float(expected)
        assert not isinstance(aux["largest"], ox.Variable)
        assert float(aux["largest"]) == np.max(before["w"])
        assert aux["name"] == "pair"
        assert (float(aux["sums"][0]), aux["sums"][1]) == (np.sum(before["b"]), 2)
        for name, x in plain.items():
            np.testing.assert_array_equal(with_aux[name], x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MAKERS)
def test_the_step_is_that_without_an_auxiliary_result(name: str, way: dict[str, bool]) -> None:
    check(MAKERS[name], way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_pass_it_on(name: str, way: dict[str, bool]) -> None:
    check(lambda: WRAPPERS[name](optim.SGD(0.1)), way, quiet_pair if name == "kfac" else pair)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MAKERS)
def test_another_result_than_a_pair_is_refused_by_name(name: str, way: dict[str, bool]) -> None:
    m = model()
    with pytest.raises((TypeError, ValueError), match=r"has_aux=True: found a loss of type|in_backward=True"):
        MAKERS[name]().minimize(value, m, has_aux=True, **way)
    np.testing.assert_array_equal(m["w"], model()["w"])


def test_a_pair_without_has_aux_is_told_of_it() -> None:
    with pytest.raises(ox.ShapeError, match="has_aux=True"):
        optim.Adam(0.1).minimize(pair, model())


def test_a_recording_replays_the_auxiliary_result() -> None:
    opt, m = optim.SGD(0.1), model()
    for _ in range(4):
        expected = np.sum(m["b"])
        assert float(opt.minimize(value_and_sum, m, has_aux=True, record=True)[1]) == expected
    assert opt._recorded_losses._recorded.replays
    assert np.shape(opt.minimize(value, m, record=True)) == ()  # a loss of its own, with a result of its own


def value_and_sum(m: Any) -> Any:
    return value(m), xp.sum(m["b"])


def test_arrays_of_other_libraries() -> None:
    torch: Any = pytest.importorskip("torch")
    m = {name: torch.tensor(x, device="cpu") for name, x in model().items()}
    found, aux = optim.Adam(0.1).minimize(lambda m: (xp.sum(m["w"] ** 2), m["w"] * 2), m, has_aux=True)
    assert float(found) == 14.25
    assert isinstance(aux, torch.Tensor)
    np.testing.assert_array_equal(aux, model()["w"] * 2)
