"""Optimizers: a rule from `oxigrad.rules`, its hyperparameters, its slots by key path, and the steps taken.

>>> import numpy as np
>>> import oxigrad as ox
>>> model = {"w": np.array([1.0, 2.0])}
>>> opt = ox.optim.SGD(learning_rate=0.5)
>>> value = opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
>>> model["w"]
array([0., 0.])
"""

from oxigrad import rules
from oxigrad.optim.chain import Chain, Partition, Transform, chain, partition, transform
from oxigrad.optim.config import from_config
from oxigrad.optim.lbfgs import LBFGS
from oxigrad.optim.loss_scale import LossScale
from oxigrad.optim.optimizer import Optimizer, Slots
from oxigrad.optim.rule_optimizer import RuleOptimizer, define, register
from oxigrad.optim.sam import SAM
from oxigrad.rules import gradient_transforms, rule
from oxigrad.rules.ranges import Interval
from oxigrad.stepping.parameter_group import ParameterGroup
from oxigrad.stepping.quantized import Quantized

# What stands around an optimizer in a chain.
ClipByValue = transform(gradient_transforms.clip_by_value)
ClipByNorm = transform(gradient_transforms.clip_by_norm)
ClipByGlobalNorm = transform(gradient_transforms.clip_by_global_norm)
Maximize = transform(gradient_transforms.maximize)
Regularize = transform(gradient_transforms.regularize)
GradientNoise = transform(gradient_transforms.gradient_noise)
WeightDecay = transform(gradient_transforms.weight_decay)
EMA = transform(gradient_transforms.ema, "EMA")
SWA = transform(gradient_transforms.swa, "SWA")
Copy = register(
    rule.read(gradient_transforms.copy).with_slots_named(gradient_transforms.NAMES), None, Transform, module=__name__
)
Lookahead = register(
    rule.read(gradient_transforms.lookahead).with_slots_named(gradient_transforms.NAMES),
    None,
    Transform,
    module=__name__,
)
Centralize = transform(gradient_transforms.centralize, elementwise=False)
AdaptiveGradientClip = transform(gradient_transforms.adaptive_gradient_clip, elementwise=False)

# Optimizers of one rule.
SGD = define(rules.sgd, "SGD")
Momentum = define(rules.momentum)
ASGD = define(rules.asgd, "ASGD")
Rprop = define(rules.rprop)
Signum = define(rules.signum)
Lion = define(rules.lion)
LARS = define(rules.lars, "LARS")
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
    "ClipByGlobalNorm",
    "ClipByNorm",
    "ClipByValue",
    "Copy",
    "GradientNoise",
    "Interval",
    "Lion",
    "Lookahead",
    "LossScale",
    "Maximize",
    "Momentum",
    "Muon",
    "NAdam",
    "NovoGrad",
    "Optimizer",
    "ParameterGroup",
    "Partition",
    "Prodigy",
    "Quantized",
    "RAdam",
    "RMSprop",
    "Regularize",
    "Rprop",
    "RuleOptimizer",
    "ScheduleFreeAdamW",
    "ScheduleFreeSGD",
    "Shampoo",
    "Signum",
    "Slots",
    "Sophia",
    "Transform",
    "WeightDecay",
    "Yogi",
    "chain",
    "define",
    "from_config",
    "partition",
    "transform",
]


def __dir__() -> list[str]:
    return list(__all__)
