"""NumPy's names, which take variables, and lists of variables, as arrays: `autograd.numpy`."""

from types import ModuleType as _ModuleType

import numpy as _numpy

from oxigrad.autograd.core import VSpace as _VSpace
from oxigrad.autograd.modules import made as _made
from oxigrad.autograd.modules import public as _public
from oxigrad.autograd.numpy import numpy_vjps as numpy_vjps
from oxigrad.autograd.numpy.numpy_wrapper import array as array
from oxigrad.autograd.numpy.numpy_wrapper import array_from_args as array_from_args
from oxigrad.autograd.numpy.numpy_wrapper import asarray as asarray
from oxigrad.autograd.numpy.numpy_wrapper import concatenate_args as concatenate_args
from oxigrad.autograd.numpy.numpy_wrapper import full as full
from oxigrad.autograd.numpy.numpy_wrapper import lifted as _lifted
from oxigrad.autograd.numpy.numpy_wrapper import make_diagonal as make_diagonal
from oxigrad.autograd.numpy.numpy_wrapper import stack as stack
from oxigrad.autograd.numpy.numpy_wrapper import where as where
from oxigrad.autograd.tracer import Box as _Box
from oxigrad.xp import c_ as c_
from oxigrad.xp import r_ as r_

globals().update({name: value for name, value in _lifted(_numpy).items() if name not in globals()})
fft: _ModuleType = _made(f"{__name__}.fft", _lifted(_numpy.fft))
linalg: _ModuleType = _made(f"{__name__}.linalg", _lifted(_numpy.linalg))
random: _ModuleType = _made(f"{__name__}.random", _public(_numpy.random))
numpy_boxes: _ModuleType = _made(f"{__name__}.numpy_boxes", {"ArrayBox": _Box, "Box": _Box})
numpy_vspaces: _ModuleType = _made(f"{__name__}.numpy_vspaces", {"ArrayVSpace": _VSpace, "ComplexArrayVSpace": _VSpace})
__version__ = _numpy.__version__
