"""Optimizers for PyTorch: every optimizer as a `torch.optim.Optimizer`. Nothing else of oxigrad imports this package.

Classes that PyTorch has too carry its names, arguments, defaults, ``param_groups`` and ``state``, so that one import is all there is to
change, and states go to and fro:

>>> import torch
>>> from oxigrad.torch import AdamW
>>> model = torch.nn.Linear(2, 1)
>>> opt = AdamW(model.parameters(), lr=1e-3)
>>> model(torch.ones(4, 2)).sum().backward()
>>> opt.step()
>>> isinstance(opt, torch.optim.AdamW)
True
"""

from oxigrad import optim
from oxigrad.torch import formulas
from oxigrad.torch.drop_in import drop_in
from oxigrad.torch.interchange import load_state_dict, state_dict

SGD = drop_in("SGD", optim.SGD.rule, slots={"m": "momentum_buffer"}, counts=False)
Adam = drop_in("Adam", optim.Adam.rule)
AdamW = drop_in("AdamW", optim.AdamW.rule)
Adamax = drop_in("Adamax", optim.Adamax.rule, slots={"u": "exp_inf"})
NAdam = drop_in("NAdam", optim.NAdam.rule, slots={"product": "mu_product"})
RAdam = drop_in("RAdam", optim.RAdam.rule)
Adagrad = drop_in(
    "Adagrad",
    optim.Adagrad.rule,
    slots={"v": "sum"},
    hyperparameters={"rate_decay": "lr_decay", "initial_accumulator": "initial_accumulator_value"},
)
Adadelta = drop_in("Adadelta", optim.Adadelta.rule, slots={"v": "square_avg", "u": "acc_delta"})
RMSprop = drop_in(
    "RMSprop",
    optim.RMSprop.rule,
    slots={"v": "square_avg", "mean": "grad_avg", "m": "momentum_buffer"},
    hyperparameters={"rho": "alpha"},
)
Rprop = drop_in(
    "Rprop",
    formulas.RPROP,
    hyperparameters={
        "eta_minus": "etas.0",
        "eta_plus": "etas.1",
        "min_size": "step_sizes.0",
        "max_size": "step_sizes.1",
    },
)
ASGD = drop_in("ASGD", formulas.ASGD, begin={"eta": "learning_rate"})

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "load_state_dict",
    "state_dict",
]


def __dir__() -> list[str]:
    return list(__all__)
