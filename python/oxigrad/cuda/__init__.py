"""Update rules as CUDA kernels, printed from the rules that run on the host and equal to them bit for bit.

A step updates parameters in memory of a CUDA device, such as CuPy's arrays and PyTorch's CUDA tensors, by kernels. One
launch updates all parameters that share a rule and dtypes, in place, on the current stream of their library, without
waiting. Kernels need a driver and the packages of ``pip install 'oxigrad[cuda]'``.

Everything else is computed by the rule, called on arrays: rules that are not elementwise, parameters that are not
contiguous, gradients that are `oxigrad.SparseRows`. `why` returns the reason. An elementwise rule with an op that no
kernel expresses also warns, once.

A rule that sums over parameters or checks gradients (global norms, ``nonfinite="skip"``) takes further small launches,
without synchronization. The host learns later whether a step was skipped; reading ``opt.step`` or ``opt.skipped`` waits
for it. A ``loss_scale`` is kept on the device too, where kernels read and update it. Reading it waits;
`Optimizer.minimize` and `Optimizer.scale_loss` do not. ``nonfinite="raise"`` waits in each step.

Steps can be captured into a CUDA graph after one step outside of it. Each replay is a further step, counted on the
device. Hyperparameters keep their values from the capture, and gradients must keep their memory. A graph refers to
slots of its optimizer: capture again after loading a state, and keep the optimizer alive while replays run.
"""

from typing import TYPE_CHECKING, Any

from oxigrad._names import without
from oxigrad.cuda.availability import UnavailableWarning, why_not
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

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)


def source(opt: Any, model: Any) -> str:
    """The CUDA C++ text of the kernels that a step of the optimizer launches for the parameters of ``model``.

    Args:
        opt: optimizer of `oxigrad.optim`.
        model: tree of the parameters, with arrays of any library.

    Arrays of any library are treated as device arrays, so no GPU is required. Each text follows a comment with the key
    paths of its parameters. A rule without a kernel is a comment with the reason.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD
    >>> text = source(SGD(0.1), {"w": np.zeros(3, np.float32)})
    >>> text.splitlines()[0], "__global__ void" in text
    ('// w', True)
    """
    return opt._kernel_source(model)


def why(subject: Any, model: Any = None) -> str:
    """The reason why kernels on a device do not update an array; empty if they do.

    Args:
        subject: an array, or an optimizer of `oxigrad.optim`.
        model: tree of the parameters, if ``subject`` is an optimizer.

    With an optimizer and a model, returns the reasons why kernels do not update its parameters, one line for each
    reason after its key paths. The reasons are the rule's, which hold on any machine, such as an op that no kernel
    expresses, or else the arrays'.

    >>> import numpy as np
    >>> from oxigrad.optim import SGD, Muon
    >>> why(np.zeros(3))
    'it is not in memory of a CUDA device'
    >>> why(Muon(0.1), {"w": np.zeros((3, 3))})
    'w: the rule muon is not elementwise'
    """
    return why_not(subject) if model is None else subject._why_no_kernel(model)
