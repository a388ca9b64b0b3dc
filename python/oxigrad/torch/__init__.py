"""Optimizers for PyTorch: every optimizer as a `torch.optim.Optimizer`. Nothing else of oxigrad imports this package.

Classes that PyTorch has too carry its names, arguments, defaults, ``param_groups`` and ``state``, so that only the
import changes, and state dicts load in both directions:

>>> import torch
>>> from oxigrad.torch import AdamW
>>> model = torch.nn.Linear(2, 1)
>>> opt = AdamW(model.parameters(), lr=1e-3)
>>> model(torch.ones(4, 2)).sum().backward()
>>> opt.step()
>>> isinstance(opt, torch.optim.AdamW)
True

The others are the optimizers of `oxigrad.optim`, with PyTorch's names for arguments (``lr``, ``betas``, ``eps``).

Options of all classes, by keyword, which `oxigrad.optim.Optimizer` describes:

* ``state_dtype``: the dtype in which moments are kept, "float32", "bfloat16", "float16", "8bit" or "4bit". By default,
  PyTorch's optimizers use the dtype of the parameter, as in PyTorch. The others use float32 for half precision.
* ``master``: whether parameters of half precision have a copy in float32; ``rounding``: how they are rounded, to
  "nearest", "stochastic" or "kahan".
* ``seed``: of random numbers.
* ``amp_fused``: whether a step with `torch.amp.GradScaler` divides gradients by the scale, rather than the scaler
  before it.
* ``max_norm``: the limit of the norm of all gradients, to which a step scales them down, exactly
  (`oxigrad.optim.ClipByGlobalNorm`); None for no limit. A parameter group may have its own, by which its gradients are
  scaled.
* ``in_backward``: whether each parameter is updated in the backward, as soon as its gradient is final, and the
  gradient dropped. ``step()`` finishes the step; see `no_step`, `norm_pass` and `ahead`.
* ``state_device``: "host" or a `HostMemory`, for parameters on a GPU whose state is in the memory of the host, and
  which are updated there; or the path of a safetensors file, for slots that lie in a file beside it rather than in
  memory; `flush` writes the state to the file, and `read_state` reads it.

A step updates all tensors in host memory in one dispatch, and those on a CUDA device in one launch for all that share a
rule and dtypes. On tensors elsewhere, and where a rule needs whole matrices, the rule itself is called. Each process
updates its local part of a DTensor, by elementwise rules only.
"""

from collections.abc import Callable
from typing import Any

from oxigrad._names import unknown_name
from oxigrad.optim.table.row import TABLE, Row
from oxigrad.torch import formulas
from oxigrad.torch.additional import AdditionalOptimizer, additional
from oxigrad.torch.drop_in import DropIn, LazyAdagrad, drop_in
from oxigrad.torch.interchange import load_state_dict, state_dict
from oxigrad.torch.lbfgs import LBFGS
from oxigrad.torch.schedule_free import ScheduleFree
from oxigrad.torch.sparse import SparseDropIn
from oxigrad.torch.state.file import read_state
from oxigrad.torch.step.offload.host import HostMemory

# Rules with the state of PyTorch's classes, if `oxigrad.optim` has another state.
_RULES = {"ASGD": formulas.ASGD, "NAdam": formulas.NADAM, "Rprop": formulas.RPROP}
# The base classes of optimizers that are more than a step by a rule.
_BASES: dict[str, type] = {"Adagrad": LazyAdagrad, "ScheduleFreeSGD": ScheduleFree, "ScheduleFreeAdamW": ScheduleFree}


def _class(name: str, row: Row) -> Any:
    """The class of a row of the table: PyTorch's with another step if PyTorch has it, else one of this package."""
    rule = row.optimizer._rule
    shape = "3" if rule.elementwise else "2, 3"
    if "torch" in row.presets:
        places = vars(row.torch) | ({"coupled": TABLE["Adam"].optimizer._rule} if name == "AdamW" else {})
        return drop_in(name, _RULES.get(name, rule), shape=shape, base=_BASES.get(name, DropIn), **places)
    return additional(row.optimizer, shape=shape, base=_BASES.get(name, AdditionalOptimizer), **vars(row.torch))


_CLASSES = {name: _class(name, row) for name, row in TABLE.items() if name != "LBFGS"}
globals().update(_CLASSES)

SparseAdam = drop_in(
    "SparseAdam",
    TABLE["Adam"].optimizer._rule,
    base=SparseDropIn,
    fixed={"epsilon_mode": "hat", "amsgrad": None},
)

__all__ = ["LBFGS", "HostMemory", "SparseAdam", "load_state_dict", "read_state", "state_dict"]
__all__ += list(_CLASSES)  # pyright: ignore[reportUnsupportedDunderAll]
__dir__: Callable[[], list[str]] = __all__.copy


# Names of PyTorch and of other libraries.
_ELSEWHERE = {
    "EMA": "use torch.optim.swa_utils.AveragedModel, which takes modules that our optimizers train",
    "FusedAdam": "use Adam, or AdamW for decoupled weight decay: every step is fused",
    "GradScaler": "use torch.amp.GradScaler, which takes our optimizers",
    "clip_grad_norm_": "use torch.nn.utils.clip_grad_norm_, or the argument max_norm of an optimizer",
    "lr_scheduler": "use torch.optim.lr_scheduler, which takes our optimizers",
    "swa_utils": "use torch.optim.swa_utils, which takes modules that our optimizers train",
}


def __getattr__(name: str) -> Any:
    plain, bits, _ = name.removeprefix("Paged").partition("8bit" if name.endswith("8bit") else "4bit")
    advice = {name: f'use {plain}(..., state_dtype="{bits}")'} if bits and plain in __all__ else _ELSEWHERE
    raise unknown_name(__name__, name, __all__, advice)
