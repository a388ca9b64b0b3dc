"""Optimizers: a rule from `oxigrad.rules`, its hyperparameters, its slots by key path, and the steps taken.

>>> import numpy as np
>>> import oxigrad as ox
>>> model = {"w": np.array([1.0, 2.0])}
>>> opt = ox.optim.SGD(learning_rate=0.5)
>>> value = opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
>>> model["w"]
array([0., 0.])
"""

from oxigrad.optim.lbfgs import LBFGS
from oxigrad.optim.optimizer import (
    SGD,
    SM3,
    SOAP,
    Adafactor,
    Adam,
    AdamW,
    Average,
    Centralize,
    Chain,
    Choice,
    Clip,
    ClipAdaptive,
    ClipGlobalNorm,
    ClipNorm,
    Decay,
    GradientNoise,
    Lookahead,
    Momentum,
    Muon,
    Optimizer,
    Partition,
    Regularize,
    RuleOptimizer,
    Shampoo,
    Slots,
    StochasticAverage,
    Transform,
    chain,
    define,
    from_config,
    partition,
    transform,
)
from oxigrad.optim.sam import SAM

__all__ = [
    "LBFGS",
    "SAM",
    "SGD",
    "SM3",
    "SOAP",
    "Adafactor",
    "Adam",
    "AdamW",
    "Average",
    "Centralize",
    "Chain",
    "Choice",
    "Clip",
    "ClipAdaptive",
    "ClipGlobalNorm",
    "ClipNorm",
    "Decay",
    "GradientNoise",
    "Lookahead",
    "Momentum",
    "Muon",
    "Optimizer",
    "Partition",
    "Regularize",
    "RuleOptimizer",
    "Shampoo",
    "Slots",
    "StochasticAverage",
    "Transform",
    "chain",
    "define",
    "from_config",
    "partition",
    "transform",
]
