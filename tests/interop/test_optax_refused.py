"""What a transformation of optax is not made of, and how one is shown."""

from __future__ import annotations

import pytest

pytest.importorskip("optax")

import oxigrad.optax
from oxigrad import distributed, optim


@pytest.mark.parametrize("wrapper", [distributed.DataParallel, distributed.KFAC], ids=lambda cls: cls.__name__)
def test_wrappers_are_refused_when_the_transformation_is_made(wrapper: type) -> None:
    with pytest.raises(TypeError, match=f"{wrapper.__name__} wraps an optimizer: expected the optimizer within"):
        oxigrad.optax.transformation(wrapper(optim.SGD(0.1)))


def test_a_transformation_shows_its_optimizer() -> None:
    assert repr(oxigrad.optax.transformation(optim.SGD(0.5))).startswith("transformation(SGD(learning_rate=0.5")
    assert repr(oxigrad.optax.sgd(0.5)).startswith("transformation(")
