"""Optimizers for PyTorch: every optimizer as a `torch.optim.Optimizer`. Nothing else of oxigrad imports this package.

Classes that PyTorch has too carry its names, arguments, defaults, ``param_groups`` and ``state``, so that only the import
changes, and state dicts load in both directions:

>>> import torch
>>> from oxigrad.torch import AdamW
>>> model = torch.nn.Linear(2, 1)
>>> opt = AdamW(model.parameters(), lr=1e-3)
>>> model(torch.ones(4, 2)).sum().backward()
>>> opt.step()
>>> isinstance(opt, torch.optim.AdamW)
True

The others are those of `oxigrad.optim`, under its names, with PyTorch's names for arguments (``lr``, ``betas``, ``eps``).

Options of all classes, by keyword, which `oxigrad.optim.Optimizer` describes:

* ``state_dtype``: the dtype in which moments are kept, "float32", "bfloat16", "float16" or "8bit". By default that of the
  parameter, as in PyTorch, in PyTorch's optimizers; in the others float32 for parameters of half precision.
* ``master``: whether parameters of half precision have a copy in float32; ``rounding``: how they are rounded, to "nearest",
  "stochastic" or "kahan".
* ``seed``: of random numbers.
* ``amp_fused``: whether a step with `torch.amp.GradScaler` divides gradients by the scale, rather than the scaler before it.

A step updates all tensors in host memory in one dispatch, and those on a CUDA device in one launch for all that share a rule and dtypes.
On tensors elsewhere, and where a rule needs whole matrices, the rule itself is called. Each process updates its local part of a DTensor, by
elementwise rules only.
"""

from typing import NoReturn

from oxigrad import optim
from oxigrad._names import unknown_name
from oxigrad.torch import formulas
from oxigrad.torch.drop_in import LazyAdagrad, drop_in
from oxigrad.torch.interchange import load_state_dict, state_dict
from oxigrad.torch.lbfgs import LBFGS
from oxigrad.torch.own import own
from oxigrad.torch.schedule_free import ScheduleFree
from oxigrad.torch.sparse import SparseDropIn

SGD = drop_in("SGD", optim.SGD._rule, slots={"m": "momentum_buffer"}, counts=False)
Adam = drop_in("Adam", optim.Adam._rule)
AdamW = drop_in("AdamW", optim.AdamW._rule)
Adamax = drop_in("Adamax", optim.Adamax._rule, slots={"u": "exp_inf"})
NAdam = drop_in("NAdam", formulas.NADAM, slots={"product": "mu_product"})
RAdam = drop_in("RAdam", optim.RAdam._rule)
Adagrad = drop_in(
    "Adagrad",
    optim.Adagrad._rule,
    base=LazyAdagrad,
    slots={"v": "sum"},
    hyperparameters={"rate_decay": "lr_decay", "initial_accumulator": "initial_accumulator_value"},
)
Adadelta = drop_in("Adadelta", optim.Adadelta._rule, slots={"v": "square_avg", "u": "acc_delta"})
RMSprop = drop_in(
    "RMSprop",
    optim.RMSprop._rule,
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
Adafactor = drop_in(
    "Adafactor",
    optim.Adafactor._rule,
    slots={"row": "row_var", "column": "col_var", "v": "variance"},
    hyperparameters={"epsilon1": "eps.0", "epsilon2": "eps.1", "clipping": "d"},
    takes_complex=False,
)
Muon = drop_in(
    "Muon",
    optim.Muon._rule,
    slots={"m": "momentum_buffer"},
    hyperparameters={
        "a": "ns_coefficients.0",
        "b": "ns_coefficients.1",
        "c": "ns_coefficients.2",
        "iterations": "ns_steps",
        "adjust": "adjust_lr_fn",
    },
    missing={"adjust": "original"},
    counts=False,
    takes_complex=False,
    shape="2, 3",
)
SparseAdam = drop_in("SparseAdam", optim.Adam._rule, base=SparseDropIn, fixed={"epsilon_mode": "hat", "amsgrad": None})

Signum = own(optim.Signum)
Lion = own(optim.Lion)
LARS = own(optim.LARS)
Fromage = own(optim.Fromage)
OptimisticSGD = own(optim.OptimisticSGD)
FTRL = own(optim.FTRL)
MADGRAD = own(optim.MADGRAD)
AdamLRD = own(optim.AdamLRD)
OptimisticAdam = own(optim.OptimisticAdam)
AdaBelief = own(optim.AdaBelief)
AdEMAMix = own(optim.AdEMAMix)
ADOPT = own(optim.ADOPT)
Adan = own(optim.Adan)
Yogi = own(optim.Yogi)
LAMB = own(optim.LAMB)
NovoGrad = own(optim.NovoGrad)
Sophia = own(optim.Sophia)
Prodigy = own(optim.Prodigy)
ScheduleFreeSGD = own(optim.ScheduleFreeSGD, base=ScheduleFree, hyperparameters={"beta1": "momentum"})
ScheduleFreeAdamW = own(optim.ScheduleFreeAdamW, base=ScheduleFree)
SM3 = own(optim.SM3)
Shampoo = own(optim.Shampoo)
SOAP = own(optim.SOAP, shape="2, 3")

__all__ = [
    "ADOPT",
    "ASGD",
    "FTRL",
    "LAMB",
    "LARS",
    "LBFGS",
    "MADGRAD",
    "SGD",
    "SM3",
    "SOAP",
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
    "Fromage",
    "Lion",
    "Muon",
    "NAdam",
    "NovoGrad",
    "OptimisticAdam",
    "OptimisticSGD",
    "Prodigy",
    "RAdam",
    "RMSprop",
    "Rprop",
    "ScheduleFreeAdamW",
    "ScheduleFreeSGD",
    "Shampoo",
    "Signum",
    "Sophia",
    "SparseAdam",
    "Yogi",
    "load_state_dict",
    "state_dict",
]

__dir__ = __all__.copy


def __getattr__(name: str) -> NoReturn:
    raise unknown_name(__name__, name, __all__)
