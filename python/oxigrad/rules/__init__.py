"""Update rules: the formulas of optimizers for one parameter, written once over ``xp``.

A rule takes ``xp``, the parameter ``p``, its gradient ``g`` and its slots, and returns the new parameter and the new
slots. After ``*`` come ``step`` (counted from 1), ``noise`` and ``total``, which are supplied to rules that name them, and the
hyperparameters with their defaults. A hyperparameter that is True, False, None or a string is a flag: it may be branched
on; a numeric one is a symbol, and may not.

The default of a slot declares it (see `oxigrad.rules.slots.Slot`): ``Slot.zeros()``, which no default means too,
``Slot.zeros(when="amsgrad")`` for a slot that exists only where a hyperparameter is set, ``Slot.scalar(0.0)`` for one number
for each parameter, ``Slot.copy()`` of the parameter, ``Slot.full(...)`` and ``Slot.computed(...)``.

Defaults are PyTorch's where PyTorch has the optimizer, else optax's; `oxigrad.optim.table` has those of others.

Rules by family:

* `sgd`: SGD and its variants, and rules of the gradient's sign; `adagrad`: Adagrad, RMSprop and related rules.
* `adam`, `adam_variants`: Adam and its variants; `moments`: the moving means that they share.
* `layerwise`: LARS, LAMB, Fromage and NovoGrad; `schedule_free`: schedule-free SGD and AdamW, and Prodigy.
* `factored` (Adafactor, SM3), `orthogonal` (Muon), `preconditioned` (Shampoo, SOAP): rules called on whole arrays;
  `arrays`: the functions that they share.
* `parameter_free`: DoG, DoWG, D-Adaptation and COCOB, which estimate the learning rate.
* `gradient_transforms`: clipping, weight decay, averages and other transforms for chains.

Representation of rules:

* `rule`: a rule with the declarations of its signature, and its evaluation; `composition`: several rules composed into one.
* `slots`: declarations of slots; `ranges`: domains of hyperparameters.
"""

from oxigrad.rules.adagrad import adadelta, adagrad, ftrl, madgrad, rmsprop
from oxigrad.rules.adam import adam, adam_lrd, adamax, adamw, adopt, nadam, radam
from oxigrad.rules.adam_variants import adabelief, adan, ademamix, optimistic_adam, sophia, yogi
from oxigrad.rules.factored import adafactor, sm3
from oxigrad.rules.layerwise import fromage, lamb, lars, novograd
from oxigrad.rules.orthogonal import muon
from oxigrad.rules.parameter_free import cocob, dadapt_adamw, dadapt_sgd, dog, dowg
from oxigrad.rules.preconditioned import shampoo, soap
from oxigrad.rules.schedule_free import prodigy, schedule_free_adamw, schedule_free_average, schedule_free_sgd
from oxigrad.rules.sgd import asgd, lion, optimistic_sgd, polyak_sgd, rprop, sgd, signum

__all__ = [
    "adabelief",
    "adadelta",
    "adafactor",
    "adagrad",
    "adam",
    "adam_lrd",
    "adamax",
    "adamw",
    "adan",
    "ademamix",
    "adopt",
    "asgd",
    "cocob",
    "dadapt_adamw",
    "dadapt_sgd",
    "dog",
    "dowg",
    "fromage",
    "ftrl",
    "lamb",
    "lars",
    "lion",
    "madgrad",
    "muon",
    "nadam",
    "novograd",
    "optimistic_adam",
    "optimistic_sgd",
    "polyak_sgd",
    "prodigy",
    "radam",
    "rmsprop",
    "rprop",
    "schedule_free_adamw",
    "schedule_free_average",
    "schedule_free_sgd",
    "sgd",
    "shampoo",
    "signum",
    "sm3",
    "soap",
    "sophia",
    "yogi",
]
