"""Optimizers: an update rule of `oxigrad.rules`, its hyperparameters, its slots by key path, and the count of steps.

* `optimizer`: the base class of optimizers; `stateful`: their state, which they save, load, copy and show.
* `table`: the optimizers, a row for each, the transforms for chains, and presets of several optimizers.
* `rule_optimizer`: optimizers of one rule, made by `define`.
* `chain`, `partition`, `composition`: optimizers of several parts.
* `closures`: L-BFGS and SAM, which evaluate the loss in a step, and the learning-rate range test.
* `settings`: hyperparameters as attributes and by key path, the options that all optimizers share, the loss scale,
  configurations as plain data, and names of arguments in other libraries.

The steps themselves are in `oxigrad.step`.

>>> import numpy as np
>>> import oxigrad as ox
>>> model = {"w": np.array([1.0, 2.0])}
>>> opt = ox.optim.SGD(learning_rate=0.5)
>>> value = opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
>>> model["w"]
array([0., 0.])
"""

from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.optim.chain import Chain, ChainPart, Transform, transform
from oxigrad.optim.closures.rate_range import RateRange, range_test
from oxigrad.optim.closures.sam import SAM
from oxigrad.optim.composition import chain
from oxigrad.optim.optimizer import Optimizer
from oxigrad.optim.partition import Partition, partition
from oxigrad.optim.rule_optimizer import RuleOptimizer, define
from oxigrad.optim.settings.config import from_config
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.optim.stateful import Slots
from oxigrad.optim.table.descent import *  # noqa: F403 - an optimizer is named in its row alone
from oxigrad.optim.table.moments import *  # noqa: F403
from oxigrad.optim.table.presets import muon_with_adamw
from oxigrad.optim.table.row import TABLE
from oxigrad.optim.table.transforms import *  # noqa: F403
from oxigrad.optim.table.transforms import TRANSFORMS
from oxigrad.rules.core.ranges import Interval
from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.parameters.parameter_group import ParameterGroup
from oxigrad.step.parameters.presence import Changes

__all__ = [
    "SAM",
    "Chain",
    "ChainPart",
    "Changes",
    "Interval",
    "LossScale",
    "Optimizer",
    "ParameterGroup",
    "Partition",
    "Quantized",
    "RateRange",
    "RuleOptimizer",
    "Slot",
    "Slots",
    "Transform",
    "chain",
    "define",
    "from_config",
    "muon_with_adamw",
    "partition",
    "range_test",
    "transform",
]
__all__ += list(TABLE | TRANSFORMS)  # pyright: ignore[reportUnsupportedDunderAll]

# What users of other libraries look for, where no name is near.
_ELSEWHERE = {
    "Momentum": "use optim.SGD(learning_rate, momentum=0.9)",
    "apply_updates": "use opt.update(model, grads)",
    "clip_grad_norm_": "use optim.chain(optim.ClipByGlobalNorm(...), optimizer)",
    "clip_grad_value_": "use optim.chain(optim.ClipByValue(...), optimizer)",
    "incremental_update": "use optim.chain(optimizer, optim.EMA(...))",
    "lr_scheduler": "use oxigrad.schedules",
    "multi_transform": "use optim.partition",
    "swa_utils": "use optim.chain(optimizer, optim.SWA(...)), or optim.EMA",
}

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__, _ELSEWHERE)
