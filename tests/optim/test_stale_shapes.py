"""A parameter of another shape than at the first step: an error before anything is changed, whatever calls the rule."""

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, xp

SHAPES = [((2, 2), (3, 3)), ((2, 3), (3, 2)), ((4,), (2, 2)), ((3,), (1,))]
OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda: optim.SGD(0.1),
    "Adam": lambda: optim.Adam(0.1),
    "RMSprop": lambda: optim.RMSprop(0.1),
    "ScheduleFreeAdamW": lambda: optim.ScheduleFreeAdamW(0.1),
    "Adafactor": lambda: optim.Adafactor(0.1),
    "SM3": lambda: optim.SM3(0.1),
    "Shampoo": lambda: optim.Shampoo(0.1),
    "SOAP": lambda: optim.SOAP(0.1),
    "LBFGS": lambda: optim.LBFGS(),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.1), optim.EMA(0.9)),
    "SAM": lambda: optim.SAM(optim.Adam(0.1)),
}


@pytest.mark.parametrize("library", ["numpy", "jax.numpy", "torch"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_another_shape(name: str, library: str, first: Any, second: Any) -> None:
    ones = pytest.importorskip(library).ones
    opt, loss = OPTIMIZERS[name](), lambda m: xp.sum(m["w"] ** 2)
    opt.minimize(loss, {"w": ones(first)})
    model, before = {"w": ones(second)}, opt.state_dict()
    with pytest.raises(ox.ShapeError, match=r"^w: the parameter has shape "):
        opt.minimize(loss, model)
    assert opt.step == 1
    np.testing.assert_array_equal(np.asarray(model["w"]), np.ones(second))
    after = opt.state_dict()
    assert before["slots"].keys() == after["slots"].keys()
    opt.rebuild(model)
    opt.minimize(loss, model)
    assert opt.step == 2
