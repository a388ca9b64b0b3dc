"""Optimizers: a rule from `oxigrad.rules`, its hyperparameters, its slots by key path, and the steps taken.

>>> import numpy as np
>>> import oxigrad as ox
>>> model = {"w": np.array([1.0, 2.0])}
>>> opt = ox.optim.SGD(learning_rate=0.5)
>>> value = opt.minimize(lambda model: ox.xp.sum(model["w"] ** 2), model)
>>> model["w"]
array([0., 0.])
"""

from oxigrad import around, rule, rules
from oxigrad.loss_scale import LossScale as LossScale
from oxigrad.optim.combined import Chain as Chain
from oxigrad.optim.combined import Partition as Partition
from oxigrad.optim.combined import Transform as Transform
from oxigrad.optim.combined import chain as chain
from oxigrad.optim.combined import partition as partition
from oxigrad.optim.combined import transform as transform
from oxigrad.optim.config import from_config as from_config
from oxigrad.optim.defined import Choice as Choice
from oxigrad.optim.defined import RuleOptimizer as RuleOptimizer
from oxigrad.optim.defined import define as define
from oxigrad.optim.defined import register
from oxigrad.optim.lbfgs import LBFGS as LBFGS
from oxigrad.optim.optimizer import Optimizer as Optimizer
from oxigrad.optim.optimizer import Slots as Slots
from oxigrad.optim.sam import SAM as SAM
from oxigrad.quantized import Quantized as Quantized
from oxigrad.ranges import Interval as Interval

# What stands around an optimizer in a chain.
Clip = transform(around.clip)
ClipNorm = transform(around.clip_norm)
ClipGlobalNorm = transform(around.clip_global_norm)
Maximize = transform(around.maximize)
Regularize = transform(around.regularize)
GradientNoise = transform(around.gradient_noise)
Decay = transform(around.decay)
Average = transform(around.average)
StochasticAverage = transform(around.stochastic_average)
Copy = register(rule.read(around.copy).with_slots_named(around.NAMES), None, Transform, module=__name__)
Lookahead = register(rule.read(around.lookahead).with_slots_named(around.NAMES), None, Transform, module=__name__)
Centralize = transform(around.centralize, elementwise=False)
ClipAdaptive = transform(around.clip_adaptive, elementwise=False)

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
