"""The border of wrappers outside of the package: the gradients that a step gets, and mistakes in a subclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxigrad import distributed, extend, optim

OPTIONS: dict[str, Any] = {"accumulate": 2, "loss_scale": optim.LossScale(1024.0)}


class Limited(extend.WrappingOptimizer):
    """Limits each element of the gradients."""

    def __init__(self, optimizer: optim.Optimizer, *, limit: float = 1.0) -> None:
        super().__init__(optimizer)
        self.limit = limit

    def _step(self, model: Any, grads: Any, *, keep_root: bool = False) -> Any:
        gradients = self._parameters.gradients(model, grads, optional=True)
        limited = {path: np.clip(extend.as_array(g), -self.limit, self.limit) for path, g in gradients.items()}
        return self.take_step(self.optimizer, model, self._parameters.tree(model, limited), keep_root=keep_root)


class Handling(Limited):
    """Handles both options: the limit does not matter."""

    _handled_options = frozenset(OPTIONS)


class Forgetful(extend.WrappingOptimizer):
    """Forgets what the step returns."""

    def _step(self, model: Any, grads: Any, *, keep_root: bool = False) -> Any:
        self.take_step(self.optimizer, model, grads, keep_root=keep_root)


def loss(model: Any) -> Any:
    return 3.0 * model["w"][0]


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda opt, model: opt.update(model, {"w": np.ones(1)}),
    "minimize": lambda opt, model: opt.minimize(loss, model),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    "inner",
    [
        optim.SGD,
        lambda **options: optim.chain(optim.SGD(), **options),
        lambda **o: distributed.LargeBatch(optim.SGD(**o)),
    ],
    ids=["rule", "chain", "wrapper"],
)
def test_an_option_by_which_a_step_gets_other_gradients_is_refused(name: str, inner: Any) -> None:
    with pytest.raises(ValueError, match=rf"Limited\(.*found {name}=.* inside.*{name}' in _handled_options of Limited"):
        Limited(inner(**{name: OPTIONS[name]}))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_is_set_later_is_refused_before_the_step(name: str, step: str) -> None:
    for nested in (False, True):
        opt: Any = Limited(optim.SGD(0.5))
        outer, model = distributed.LargeBatch(opt) if nested else opt, {"w": np.ones(1)}
        setattr(outer, name, OPTIONS[name])
        with pytest.raises(ValueError, match=f"found {name}="):
            STEPS[step](outer, model)
        assert model["w"] == 1 and opt.step == 0


@pytest.mark.parametrize("name", OPTIONS)
def test_a_wrapper_that_handles_an_option_takes_it(name: str) -> None:
    expected, model = {"w": np.zeros(1)}, {"w": np.zeros(1)}
    alone, wrapped = (
        optim.SGD(0.5, **{name: OPTIONS[name]}),
        Handling(optim.SGD(0.5, **{name: OPTIONS[name]}), limit=1e9),
    )
    for _ in range(4):
        alone.minimize(loss, expected)
        wrapped.minimize(loss, model)
    assert model["w"] == expected["w"] < 0


def test_a_parameter_without_a_gradient_is_left_as_it_is() -> None:
    model = Limited(optim.SGD(1.0), limit=2.0).update(
        {"w": np.zeros(1), "b": np.ones(1)}, {"w": np.full(1, 9.0), "b": None}
    )
    assert model["w"] == -2 and model["b"] == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_returns_nothing_is_told(step: str) -> None:
    with pytest.raises(TypeError, match="Forgetful._step returned None after the step: expected the model"):
        STEPS[step](Forgetful(optim.SGD()), {"w": np.ones(1)})


def test_a_constructor_without_that_of_the_base_class_is_told() -> None:
    class Bare(extend.WrappingOptimizer):
        def __init__(self, optimizer: optim.Optimizer) -> None:
            self.optimizer = optimizer

    with pytest.raises(TypeError, match=r"Bare.__init__ lacks super\(\).__init__\(optimizer\)"):
        Bare(optim.SGD())


def test_an_unknown_attribute_names_the_wrapper() -> None:
    opt: Any = Limited(optim.SGD())
    with pytest.raises(AttributeError, match=r"^Limited has no attribute limt \(did you mean limit\?\)"):
        opt.limt = 3.0
    with pytest.raises(
        AttributeError, match=r"^Limited has no attribute learning_rte \(did you mean learning_rate\?\)"
    ):
        _ = opt.learning_rte
    with pytest.raises(AttributeError, match=r"^DataParallel has no attribute jion"):
        _ = getattr(distributed.DataParallel(optim.SGD()), "jion")  # noqa: B009 - unknown to type checkers
