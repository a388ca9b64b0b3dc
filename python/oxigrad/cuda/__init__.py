"""Update rules as CUDA kernels, which are printed from the rules that run on the host and give its bits.

A step updates parameters in memory of a CUDA device, such as CuPy's arrays and PyTorch's CUDA tensors, by kernels: one launch
for all parameters that share a rule and dtypes, on the current stream of their library, in place, without waiting. That
takes a driver and the packages of ``pip install 'oxigrad[cuda]'``. What no kernel can do is computed by the rule, called on arrays: a
rule that is not elementwise, parameters that are not contiguous, gradients that are `oxigrad.SparseRows`. `why` tells the reason,
and a warning does, once, where an elementwise rule uses an op that no kernel expresses.

A rule that sums over parameters or checks gradients (global norms, ``nonfinite="skip"``) takes further small launches and no
synchronization either: whether a step was skipped is known to the host later, or when it reads ``opt.step`` or ``opt.skipped``, which
waits. A ``loss_scale`` is kept on the device too, where kernels read and update it: reading it waits, `Optimizer.minimize` and
`Optimizer.scale_loss` do not. ``nonfinite="raise"`` waits in each step.

Steps can be captured into a CUDA graph after one step outside of it. Each replay is a further step, counted on the
device; hyperparameters are those of the capture, and gradients must keep their memory. A graph refers to slots of its optimizer:
capture anew after a state was loaded, and keep the optimizer as long as replays are under way.
"""

from collections.abc import Callable
from typing import Any

from oxigrad.cuda.availability import UnavailableWarning
from oxigrad.cuda.compiler import CompileError, CompilerUnavailableError
from oxigrad.cuda.errors import CaptureError, DeviceError, DeviceLostError, DeviceMemoryError, DriverUnavailableError

__all__ = [
    "CaptureError",
    "CompileError",
    "CompilerUnavailableError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMemoryError",
    "DriverUnavailableError",
    "UnavailableWarning",
    "source",
    "why",
]
__dir__: Callable[[], list[str]] = __all__.copy


def source(opt: Any, model: Any) -> str:
    """The CUDA C++ text of the kernels that a step of the optimizer launches for the parameters of ``model``.

    Arrays of any library are treated as if they were on a device, so that no GPU is required. Each text follows a comment with the
    key paths of its parameters; a rule that has no kernel gives a comment with the reason.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD
    >>> text = source(SGD(0.1), {"w": np.zeros(3, np.float32)})
    >>> text.splitlines()[0], "__global__ void" in text
    ('// w', True)
    """
    from oxigrad.stepping.device import sources

    return sources.source(opt, model)


def why(subject: Any, model: Any = None) -> str:
    """The reason why kernels on a device do not update an array; empty if they do.

    Given an optimizer and a model, the reasons why they do not update its parameters, each on a line after the key paths: of the rule, which
    hold on any machine, such as an op that no kernel expresses, or else of the arrays.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, Muon
    >>> why(np.zeros(3))
    'it is not in memory of a CUDA device'
    >>> why(Muon(0.1), {"w": np.zeros((3, 3))})
    'w: the rule muon is not elementwise'
    """
    from oxigrad.stepping.device import sources
    from oxigrad.stepping.parameters import device_kernels

    return device_kernels.why_not(subject) if model is None else sources.why(subject, model)
