"""Optimizers: an update rule of `oxigrad.rules`, its hyperparameters, its slots by key path, and the count of steps.

* `optimizer`: the base class of optimizers; `options`: the options that all of them share.
* `rule_optimizer`: optimizers of one rule, made by `define`; `hyperparameters`: their hyperparameters as attributes.
* `chain`, `partition`, `composition`: optimizers of several parts; `param_groups`: hyperparameters by key path.
* `lbfgs`, `line_search`, `sam`: optimizers that evaluate the loss several times a step.
* `rate_range`: the learning-rate range test; `summary`: tables of slots.
* `loss_scale`: dynamic loss scaling for float16.
* `config`: configurations as plain data; `attributes`: the base class of objects with checked attributes.

The steps themselves are in `oxigrad.stepping`.

>>> import numpy as np
>>> import oxigrad as ox
>>> model = {"w": np.array([1.0, 2.0])}
>>> opt = ox.optim.SGD(learning_rate=0.5)
>>> value = opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
>>> model["w"]
array([0., 0.])
"""

from typing import NoReturn

from oxigrad import rules
from oxigrad._names import unknown_name
from oxigrad.optim.chain import Chain, ChainPart, Transform, transform
from oxigrad.optim.composition import chain
from oxigrad.optim.config import from_config
from oxigrad.optim.lbfgs import LBFGS
from oxigrad.optim.loss_scale import LossScale
from oxigrad.optim.optimizer import Optimizer, Slots
from oxigrad.optim.partition import Partition, partition
from oxigrad.optim.rate_range import RateRange, range_test
from oxigrad.optim.rule_optimizer import RuleOptimizer, define
from oxigrad.optim.sam import SAM
from oxigrad.rules import gradient_transforms
from oxigrad.rules.ranges import Interval
from oxigrad.rules.slots import Slot
from oxigrad.stepping.parameter_group import ParameterGroup
from oxigrad.stepping.presence import Changes
from oxigrad.stepping.quantized import Quantized

# Transforms for chains.
ClipByValue = transform(gradient_transforms.clip_by_value, changes="gradient")
ClipByNorm = transform(gradient_transforms.clip_by_norm, changes="gradient")
ClipByGlobalNorm = transform(gradient_transforms.clip_by_global_norm, changes="gradient")
Maximize = transform(gradient_transforms.maximize, changes="gradient")
Regularize = transform(gradient_transforms.regularize, changes="gradient")
GradientNoise = transform(gradient_transforms.gradient_noise, changes="gradient")
Centralize = transform(gradient_transforms.centralize, changes="gradient", elementwise=False)
AdaptiveGradientClip = transform(gradient_transforms.adaptive_gradient_clip, changes="gradient", elementwise=False)
WeightDecay = transform(gradient_transforms.weight_decay, changes="parameters")
EMA = transform(gradient_transforms.ema, "EMA", changes="parameters")
SWA = transform(gradient_transforms.swa, "SWA", changes="parameters")
Lookahead = transform(gradient_transforms.lookahead, changes="parameters")
Copy = transform(gradient_transforms.copy, changes="parameters")

# Optimizers of one rule.
SGD = define(rules.sgd, "SGD")
ASGD = define(rules.asgd, "ASGD")
OptimisticSGD = define(rules.optimistic_sgd, "OptimisticSGD")
Rprop = define(rules.rprop)
Signum = define(rules.signum)
Lion = define(rules.lion)
LARS = define(rules.lars, "LARS")
Fromage = define(rules.fromage)
Adagrad = define(rules.adagrad)
Adadelta = define(rules.adadelta)
RMSprop = define(rules.rmsprop, "RMSprop")
FTRL = define(rules.ftrl, "FTRL")
MADGRAD = define(rules.madgrad, "MADGRAD")
Adam = define(rules.adam)
AdamW = define(rules.adamw, "AdamW")
AdamLRD = define(rules.adam_lrd, "AdamLRD")
Adamax = define(rules.adamax)
NAdam = define(rules.nadam, "NAdam")
RAdam = define(rules.radam, "RAdam")
OptimisticAdam = define(rules.optimistic_adam, "OptimisticAdam")
AdaBelief = define(rules.adabelief, "AdaBelief")
AdEMAMix = define(rules.ademamix, "AdEMAMix")
ADOPT = define(rules.adopt, "ADOPT")
Adan = define(rules.adan)
Yogi = define(rules.yogi)
LAMB = define(rules.lamb, "LAMB")
NovoGrad = define(rules.novograd, "NovoGrad")
Sophia = define(rules.sophia)
Prodigy = define(rules.prodigy)
ScheduleFreeSGD = define(rules.schedule_free_sgd, "ScheduleFreeSGD", average=rules.schedule_free_average)
ScheduleFreeAdamW = define(rules.schedule_free_adamw, "ScheduleFreeAdamW", average=rules.schedule_free_average)
Adafactor = define(rules.adafactor, elementwise=False)
SM3 = define(rules.sm3, "SM3", elementwise=False)
Muon = define(rules.muon, elementwise=False)
Shampoo = define(rules.shampoo, elementwise=False)
SOAP = define(rules.soap, "SOAP", elementwise=False)

__all__ = [
    "ADOPT",
    "ASGD",
    "EMA",
    "FTRL",
    "LAMB",
    "LARS",
    "LBFGS",
    "MADGRAD",
    "SAM",
    "SGD",
    "SM3",
    "SOAP",
    "SWA",
    "AdEMAMix",
    "AdaBelief",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamLRD",
    "AdamW",
    "Adamax",
    "Adan",
    "AdaptiveGradientClip",
    "Centralize",
    "Chain",
    "ChainPart",
    "Changes",
    "ClipByGlobalNorm",
    "ClipByNorm",
    "ClipByValue",
    "Copy",
    "Fromage",
    "GradientNoise",
    "Interval",
    "Lion",
    "Lookahead",
    "LossScale",
    "Maximize",
    "Muon",
    "NAdam",
    "NovoGrad",
    "OptimisticAdam",
    "OptimisticSGD",
    "Optimizer",
    "ParameterGroup",
    "Partition",
    "Prodigy",
    "Quantized",
    "RAdam",
    "RMSprop",
    "RateRange",
    "Regularize",
    "Rprop",
    "RuleOptimizer",
    "ScheduleFreeAdamW",
    "ScheduleFreeSGD",
    "Shampoo",
    "Signum",
    "Slot",
    "Slots",
    "Sophia",
    "Transform",
    "WeightDecay",
    "Yogi",
    "chain",
    "define",
    "from_config",
    "partition",
    "range_test",
    "transform",
]

__dir__ = __all__.copy


def __getattr__(name: str) -> NoReturn:
    raise unknown_name(__name__, name, __all__)
